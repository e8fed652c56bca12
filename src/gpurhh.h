/*-------------------------------------------------------------------------
 *
 * gpurhh.h
 *		Everything that more than one file of src/ needs, grouped by the file
 *		that defines it.
 *
 * Data flows one way and back once:
 *
 *		child rows (feed.c) or heap pages (heap_feed.c) -> blocks of the pool
 *		(channel.c) -> service.c -> device (gpu/) -> result words ->
 *		agg_emit.c -> rows
 *
 * and rows that the device refuses go to host_table.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_H
#define GPURHH_H

#include "postgres.h"

#include "commands/explain.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "port/atomics.h"
#include "portability/instr_time.h"
#include "storage/buffile.h"
#include "storage/condition_variable.h"
#include "storage/dsm.h"
#include "storage/lwlock.h"
#include "utils/dsa.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "rhh_device.h"

#define GPURHH_VERSION "0.1.0"

/* ---------- guc.c ---------- */

extern bool enable_gpu_hashagg;
extern char *gpurhh_device;
extern int	gpurhh_device_memory_mb;
extern int	gpurhh_pool_size_kb;
extern int	gpurhh_batch_rows;
extern double gpurhh_load_factor;
extern int	gpurhh_max_probe_buckets;
extern int	gpurhh_cpu_threads;
extern int	gpurhh_service_idle_timeout_s;
extern int	gpurhh_service_start;
extern double gpurhh_setup_cost;
extern double gpurhh_row_cost;
extern double gpurhh_group_cost;

/* Does the shared service start with the server? */
typedef enum ServiceStart
{
	SERVICE_START_AUTO,			/* where there is a GPU for it */
	SERVICE_START_ON,
	SERVICE_START_OFF			/* no: with the first query that needs it */
} ServiceStart;

extern void gpurhh_init_guc(void);

/* ---------- types.c ---------- */

/* How a value of a type travels in a column, and back from a result's words. */
typedef enum GpuEncoding
{
	GPU_ENC_NONE,				/* not in a column */
	GPU_ENC_BOOL,				/* 1 byte */
	GPU_ENC_CHAR,				/* 1 byte */
	GPU_ENC_INT2,
	GPU_ENC_INT4,				/* int4, date */
	GPU_ENC_OID,				/* oid, enums and others without a sign */
	GPU_ENC_INT8,				/* int8, time, timestamp, timestamptz, money */
	GPU_ENC_FLOAT4,				/* -0 made 0, one NaN */
	GPU_ENC_FLOAT8,
	GPU_ENC_FLOAT4_RAW,			/* as it is */
	GPU_ENC_FLOAT8_RAW,
	/* as integers in the order of their type, for minima and maxima: */
	GPU_ENC_FLOAT4_ORDER,
	GPU_ENC_FLOAT8_ORDER,
	GPU_ENC_OID_ORDER,
	GPU_ENC_UINT8_ORDER,		/* 8 bytes without a sign */
	GPU_ENC_UUID,				/* 16 bytes */
	GPU_ENC_STRING,				/* 16 bytes, see dictionary.c */
	GPU_ENC_BPCHAR,				/* the same without trailing blanks; parameter:
								 * how many characters they make it */
	GPU_ENC_NAME,				/* the same of a name */
	/* the same of strings that may be a group's least or greatest, else NULL: */
	GPU_ENC_LEAST_STRING,
	GPU_ENC_LEAST_BPCHAR,
	GPU_ENC_GREATEST_STRING,
	GPU_ENC_GREATEST_BPCHAR,
	GPU_ENC_DECIMAL,			/* numeric's limb 0, see decimal.c; parameter:
								 * GPURHH_DECIMAL_PARAMETER() */
	GPU_ENC_LIMB1,				/* its other limbs, if there are more */
	GPU_ENC_LIMB2,
	/* by reference, in 8 bytes, see encoding.c: */
	GPU_ENC_BYTES,				/* as many bytes as the parameter says */
	GPU_ENC_TIMETZ,
	GPU_ENC_TID,
	GPU_ENC_YEARS,				/* an integer as a numeric, perhaps infinite */
	GPU_ENC_INTERVAL_TIME,		/* an interval's fields */
	GPU_ENC_INTERVAL_DAYS,
	GPU_ENC_INTERVAL_MONTHS,
	GPU_ENC_INTERVAL_INFINITE,	/* gpurhh_interval_infinite() */
	GPU_ENC_FILTER,				/* a boolean made "is true", 1 byte, never NULL */
	/* made of two fed columns of float8, see pairs.c; never NULL; parameter:
	 * GPURHH_PAIR() of them */
	GPU_ENC_BOTH,				/* neither is NULL, 1 byte */
	GPU_ENC_PRODUCT				/* 16 bytes: their product as two doubles */
} GpuEncoding;

#define GPURHH_PAIR(first, second) ((first) << 8 | (second))

static inline bool
gpurhh_is_of_pair(GpuEncoding encoding)
{
	return encoding == GPU_ENC_BOTH || encoding == GPU_ENC_PRODUCT;
}

/* Keys of what has no fixed width; see dictionary.c. */
static inline bool
gpurhh_is_string(GpuEncoding encoding)
{
	return encoding >= GPU_ENC_STRING && encoding <= GPU_ENC_GREATEST_BPCHAR;
}

/* Of these, those that go through candidates.c. */
static inline bool
gpurhh_is_candidate(GpuEncoding encoding)
{
	return encoding >= GPU_ENC_LEAST_STRING &&
		encoding <= GPU_ENC_GREATEST_BPCHAR;
}

static inline bool
gpurhh_is_greatest(GpuEncoding encoding)
{
	return encoding == GPU_ENC_GREATEST_STRING ||
		encoding == GPU_ENC_GREATEST_BPCHAR;
}

/* Of a timetz on disk; the struct is padded. */
#define GPU_TIMETZ_BYTES	12

/* The C type of a vector's values. */
typedef enum VectorType
{
	VECTOR_ANY,					/* none: only whether it is NULL is known */
	VECTOR_BOOL,				/* 1 byte, 0 or 1 */
	VECTOR_INT2,
	VECTOR_INT4,				/* also date */
	VECTOR_OID,					/* unsigned; also enums */
	VECTOR_INT8,				/* also time, timestamp, timestamptz */
	VECTOR_FLOAT4,
	VECTOR_FLOAT8,
	VECTOR_UUID,
	VECTOR_STRING,				/* pointers to varlenas, toasted or not */
	VECTOR_BPCHAR /* the same, without trailing blanks */,
	VECTOR_DECIMAL,				/* numeric as an int64, see decimal.c */
	VECTOR_DECIMAL128			/* the same as an int128 */
} VectorType;

typedef struct GpuEncodingInfo
{
	uint8		bytes;			/* in a column */
	VectorType	vector;			/* that expressions of it are computed in;
								 * VECTOR_ANY: they are not */
	bool		by_reference;	/* values are made one by one, with memory */
} GpuEncodingInfo;

/* A column's encoding, and what it has to know. */
typedef struct GpuColumn
{
	GpuEncoding encoding;
	int			parameter;		/* what it is depends on the encoding; or 0 */
	int			attribute;		/* of the child, from 0 */
} GpuColumn;

#define GPU_MAX_STATES 4		/* of one argument */
#define GPU_MAX_OPERANDS 8		/* states that one output is made of */

/* How a column of the result is made of keys or states, its operands. */
typedef enum GpuFinal
{
	GPU_FINAL_KEY,				/* a grouping column */
	GPU_FINAL_ANY,				/* a column the grouping columns determine */
	GPU_FINAL_COUNT,
	/* of a state and RHH_COUNT, NULL when that is 0: */
	GPU_FINAL_VALUE,			/* the state, as a value of the argument's kind */
	GPU_FINAL_SUM_INT8,
	GPU_FINAL_SUM_NUMERIC,
	GPU_FINAL_AVG_INT8,			/* of a 64-bit sum */
	GPU_FINAL_AVG_NUMERIC,		/* of a 128-bit sum */
	/* and RHH_MAX_I64, which tells NaN, and the sums of more limbs: */
	GPU_FINAL_SUM_DECIMAL,
	GPU_FINAL_AVG_DECIMAL,
	/* chosen by the second level, and then as GPU_FINAL_ANY: */
	GPU_FINAL_LEAST,
	GPU_FINAL_GREATEST,
	GPU_FINAL_GROUPING,			/* GROUPING(): known from the set */
	GPU_FINAL_SUM_MONEY,
	/* of RHH_SUM_I128 of the time and RHH_COUNT, then RHH_SUM_I64 of days and of
	 * months, and RHH_OR: */
	GPU_FINAL_SUM_INTERVAL,
	GPU_FINAL_AVG_INTERVAL,
	GPU_FINAL_SUM_FLOAT,
	GPU_FINAL_AVG_FLOAT,
	/* of integers: RHH_SUM_I64 or _I128, RHH_COUNT, RHH_SUM_SQUARES; of numerics
	 * also RHH_MAX_I64, which tells NaN */
	GPU_FINAL_VAR_POP,
	GPU_FINAL_VAR_SAMP,
	GPU_FINAL_STDDEV_POP,
	GPU_FINAL_STDDEV_SAMP,
	/* of RHH_MOMENTS_F64 and RHH_COUNT */
	GPU_FINAL_VAR_POP_FLOAT,
	GPU_FINAL_VAR_SAMP_FLOAT,
	GPU_FINAL_STDDEV_POP_FLOAT,
	GPU_FINAL_STDDEV_SAMP_FLOAT,
	/* of two arguments' rows in which neither is NULL: RHH_SUM_F64 and RHH_COUNT,
	 * and RHH_SUM_F64 of the other one */
	GPU_FINAL_PAIR_AVG,
	/* the first one's RHH_MOMENTS_F64, RHH_COUNT, RHH_AND and RHH_OR, the second
	 * one's but for the count, and RHH_SUM_TWICE_F64 of the products; parameter:
	 * core's final function */
	GPU_FINAL_PAIR
} GpuFinal;

typedef struct GpuAggregate
{
	Oid			function;		/* pg_proc's */
	Oid			argtype;		/* InvalidOid: none, or any (count) */
	GpuFinal	final;
	rhh_state_op states[GPU_MAX_STATES];	/* its operands; 0: no more */
	GpuEncoding encoding;		/* of the argument; GPU_ENC_NONE: its type's */
} GpuAggregate;

extern const GpuEncodingInfo gpurhh_encodings[];	/* by GpuEncoding */

extern bool gpurhh_resolve(Oid type, int32 typmod, Oid collation,
						   GpuColumn *column, const char **problem);
extern bool gpurhh_resolve_type(Node *expr, GpuColumn *column,
								const char **problem);
extern bool gpurhh_resolve_limbs(Node *expr, GpuColumn *column,
								 const char **problem);
extern bool gpurhh_compares_bytes(Oid collation);
extern const GpuAggregate *gpurhh_find_aggregate(Oid function);
extern const char *gpurhh_aggregate_problem(Oid function);

/* ---------- decimal.c ---------- */

#define GPURHH_DECIMAL_DIGITS	18	/* that one limb has at least */
#define GPURHH_DECIMAL128_DIGITS 37 /* that an int128 has at least */
#define GPURHH_LIMB_BITS	61
#define GPURHH_DECIMAL_PARAMETER(scale, limbs) ((limbs) << 16 | (scale))
#define GPURHH_DECIMAL_SCALE(parameter) ((parameter) & 0xffff)
#define GPURHH_DECIMAL_LIMBS(parameter) ((parameter) >> 16)
#define GPURHH_MAX_LIMBS	3
#define GPURHH_DECIMAL_NAN	PG_INT64_MAX	/* in limb 0 */
#define GPURHH_DECIMAL128_NAN	((int128) (~(uint128) 0 >> 1))

extern int	gpurhh_decimal_limbs(int digits);
extern bool gpurhh_decimal_type(Node *expr, int *digits, int *scale);
extern bool gpurhh_is_extract_years(Node *expr);
extern bool gpurhh_decimal_read(const char *value, int scale, int n_limbs,
								int64 *limbs);
extern bool gpurhh_decimal_read_column(const char *const *data,
									   const uint32 *positions, int n,
									   int scale, int64 *to);
extern bool gpurhh_decimal_read_as(const char *value, int given_scale,
								   int scale, int128 *result);
extern bool gpurhh_decimal_read128(const char *value, int scale,
								   int128 *result);
extern bool gpurhh_decimal_integer(const char *value, int scale,
								   int64 *result);
extern bool gpurhh_decimal_fits(const int128 *values, int n, int n_limbs);
extern void gpurhh_decimal_split(const int128 *values, int n, int limb,
								 int64 *to);
extern bool gpurhh_decimal_power(int exponent, int128 *result);
extern bool gpurhh_decimal_fits_key(const int64 *values, int n);
extern Datum gpurhh_decimal_make(int128 value, int scale);
extern Datum gpurhh_decimal_nan(void);
extern Datum gpurhh_decimal_value(int64 value, int scale);
extern Datum gpurhh_decimal_sum(const int128 *sums, int n_limbs, int scale);
extern void gpurhh_decimal_serialize(StringInfo to, Datum value);

/*
 * Keys beyond every limb: this and the number of a numeric that is not as its type
 * modifier declares, an odd one, in a dictionary (dictionary.c).
 */
#define GPURHH_DECIMAL_ODD	(INT64CONST(1) << 62)

static inline bool
gpurhh_decimal_is_odd(uint64 word)
{
	return (int64) word >= GPURHH_DECIMAL_ODD &&
		(int64) word != GPURHH_DECIMAL_NAN;
}

/* The int64 for an int128 that it holds, or that is NaN. */
static inline int64
gpurhh_decimal_narrow(int128 value)
{
	return value == GPURHH_DECIMAL128_NAN ? GPURHH_DECIMAL_NAN : (int64) value;
}

/* ---------- encoding.c ---------- */

extern void gpurhh_convert_values(GpuEncoding encoding, void *values, int n);
extern int64 gpurhh_convert_back(GpuEncoding encoding, int64 word);
extern uint64 gpurhh_encode_reference(GpuEncoding encoding, int parameter,
									  const void *stored);
extern Datum gpurhh_decode_reference(GpuEncoding encoding, int parameter,
									 const uint64 *word, Size stride);

/* ---------- agg_final.c ---------- */

/* A number as two doubles to be added up; the second is small. */
typedef struct Twice
{
	float8		high;
	float8		low;
} Twice;

extern Twice gpurhh_twice(const uint64 *words, Size stride);
extern float8 gpurhh_sum_of_deviations(Twice products, Twice x, Twice y,
									   uint64 count);
extern bool gpurhh_not_finite(uint64 flags, float8 *result);

extern bool gpurhh_final_is_sample(GpuFinal final);
extern Datum gpurhh_final_variance(GpuFinal final, int128 sum, uint64 count,
								   const uint64 *squares, int scale);
extern Datum gpurhh_final_squares(const uint64 *squares, int scale);
extern int64 gpurhh_final_money(uint64 low, uint64 high);
extern Datum gpurhh_final_interval(GpuFinal final, int128 time, int64 days,
								   int64 months, int infinite, uint64 count);
extern float8 gpurhh_final_sum_float(uint64 sum, uint64 flags, bool single);
extern float8 gpurhh_final_avg_float(uint64 sum, uint64 flags, uint64 count);
extern float8 gpurhh_final_variance_float(GpuFinal final, const uint64 *moments,
										  Size stride, uint64 count);

/* ---------- pairs.c ---------- */

typedef struct Feed Feed;
typedef struct PairFinal PairFinal;

extern void gpurhh_pairs_fill(Feed *feed);
extern PairFinal *gpurhh_pair_final_create(Oid function);
extern float8 gpurhh_pair_final(PairFinal *final, const int *words,
								const uint64 *group, Size stride, bool *isnull);
extern float8 gpurhh_pair_avg(const int *words, const uint64 *group,
							  Size stride);

/* ---------- agg_path.c ---------- */

/* What the CustomScan's custom_private holds; see agg_path.c. */
enum GpuAggPrivateIndex
{
	GPUAGG_PRIVATE_COLUMNS,		/* List of IntList: of each fed column the
								 * encoding, parameter and attribute */
	GPUAGG_PRIVATE_KEYS,		/* IntList: fed columns that are keys */
	GPUAGG_PRIVATE_STATES,		/* IntList: op, argument, filter; repeated */
	GPUAGG_PRIVATE_OUTPUTS,		/* List of IntList: final, encoding, parameter,
								 * operands; a GROUPING()'s are its values */
	GPUAGG_PRIVATE_GROUPS,		/* Float: estimated number of groups */
	GPUAGG_PRIVATE_LEADER_EMITS,	/* Integer: of a parallel plan's participants,
									 * only the leader */
	GPUAGG_PRIVATE_SHOWN_KEYS,	/* Integer: keys that are outputs, the first */
	GPUAGG_PRIVATE_SETS,		/* List of IntList: keys of each grouping set;
								 * NIL: one, of all keys */
	GPUAGG_PRIVATE_CHOICES,		/* IntList: of each key behind the shown ones, a
								 * GpuChoice; or else: */
	GPUAGG_PRIVATE_DISTINCT,	/* List of IntList: of each state over a hidden
								 * key its op and the key, from 0 */
	GPUAGG_PRIVATE_REGROUPED,	/* Float: estimated groups of the second level */
	GPUAGG_PRIVATE_TOP,			/* Float: of the third */
	GPUAGG_PRIVATE_LAST = GPUAGG_PRIVATE_TOP
};

/* Which of a group's values the second level keeps. */
typedef enum GpuChoice
{
	GPU_CHOICE_LEAST_STRING,	/* by their bytes */
	GPU_CHOICE_GREATEST_STRING,
	GPU_CHOICE_LEAST_ENUM,
	GPU_CHOICE_GREATEST_ENUM
} GpuChoice;

typedef struct GpuRefusal
{
	int			statement;		/* 1-based */
	char	   *group_by;
	char	   *reason;
	void	   *path_columns;	/* of a path that was added: it tells the path */
	bool		planned;		/* and the path was chosen, so: no refusal */
} GpuRefusal;

typedef struct GpuRefusalCollector
{
	int			statement;
	List	   *refusals;		/* of GpuRefusal */
	MemoryContext context;
} GpuRefusalCollector;

/* What is gathered about one GROUP BY. */
typedef struct PlanInfo
{
	PlannerInfo *root;
	bool		explain;		/* somebody will read the reason */
	char	   *refusal;		/* not NULL: why it cannot be done */

	UpperRelationKind stage;	/* of planning: what groups */
	List	   *clause;			/* of SortGroupClause */
	List	   *full_clause;	/* the same before the planner reduced it */
	PathTarget *target;			/* what is to be computed */
	RelOptInfo *input_rel;		/* what below is of */
	Path	   *input;
	Path	   *partial_input;	/* for parallel plans; may be NULL */

	List	   *keys;			/* grouping expressions */
	int			n_shown_keys;	/* the first of the keys; hidden ones follow */
	List	   *sets;			/* of IntList: which of keys; NIL: one set of all.
								 * One that has all is the first. */
	bool		told_by_reference;	/* some keys are equal, and the scan tuple's
									 * entries have their grouping references */
	List	   *choices;		/* hidden keys: IntList of GpuChoice; or else: */
	List	   *distinct_args;	/* hidden keys: of count(DISTINCT), ... */
	List	   *distinct_states;	/* IntLists of op and hidden key, from 0 */
	bool		one_emitter;	/* some rows are nobody else's to return */
	List	   *redundant;		/* those that the planner took from the keys */
	List	   *aggrefs;		/* distinct Aggrefs of target list and HAVING */
	List	   *groupings;		/* GROUPING()s in them */
	List	   *determined;		/* Vars outside of both, and of redundant */

	PathTarget *child_target;	/* the columns to feed */
	List	   *columns;		/* those fed: IntList of encoding, parameter and
								 * attribute (number in child_target) */
	List	   *key_columns;	/* IntList */
	List	   *states;			/* IntList: op, argument, filter; repeated */
	int			n_states;
	List	   *scan_tlist;		/* custom_scan_tlist */
	List	   *outputs;		/* parallel: IntList of final, encoding,
								 * parameter, operands */
} PlanInfo;

extern void gpurhh_init_agg_path(void);

/* ---------- agg_union.c ---------- */

extern bool gpurhh_find_union(PlanInfo *info, RelOptInfo *output_rel);

/* ---------- agg_plan.c ---------- */

/*
 * While not NULL, the query that is being planned, and no other that is planned
 * meanwhile, has its refusals collected here.
 */
extern GpuRefusalCollector *gpurhh_refusal_collector;

extern void gpurhh_note_plan(CustomScan *cscan, Plan *child);
extern void gpurhh_note_keys(CustomScan *cscan);
extern PlannedStmt *gpurhh_plan_and_collect(Query *query, const char *source,
											GpuRefusalCollector *collector);
extern void gpurhh_init_agg_plan(void);

/* ---------- agg_cost.c ---------- */

extern bool gpurhh_core_is_cheap(PlanInfo *info, RelOptInfo *output_rel);
extern const char *gpurhh_add_agg_paths(PlanInfo *info,
										RelOptInfo *output_rel,
										List *having);

/* ---------- agg_exec.c ---------- */

extern Node *gpurhh_create_agg_state(CustomScan *cscan);
extern void gpurhh_register_agg_methods(void);
extern const struct CustomScanMethods gpurhh_agg_scan_methods;

/* ---------- agg_rights.c ---------- */

extern void gpurhh_check_rights(CustomScan *cscan, bool explain_only);

/* ---------- dictionary.c ---------- */

#define GPURHH_STRING_BYTES	16	/* of a key that stands for a string */
#define GPURHH_STRING_LONG	0xff	/* its last one, where a dictionary has it */
/* the same of a char(n) that has not n characters: see dictionary.c */
#define GPURHH_STRING_ODD	0x80	/* beside the length */
#define GPURHH_STRING_ODD_LONG 0xfe

/* Strings looked up together: enough to overlap the waits for memory. */
#define GPURHH_STRING_BATCH	64

StaticAssertDecl(GPURHH_STRING_BATCH >= RHH_MAX_COLUMNS,
				 "a row's strings are looked up together");

static inline uint8
gpurhh_string_last_byte(const uint64 *key)
{
	return ((const uint8 *) key)[GPURHH_STRING_BYTES - 1];
}

/* Of the last byte: does the key have a number? */
static inline bool
gpurhh_string_is_long(uint8 last)
{
	return last >= GPURHH_STRING_ODD_LONG;
}

static inline bool
gpurhh_string_is_odd(uint8 last)
{
	return (last & GPURHH_STRING_ODD) != 0 && last != GPURHH_STRING_LONG;
}

/* Of a char(n): what it is compared by. */
static inline uint32
gpurhh_string_without_blanks(const char *data, uint32 length)
{
	while (length > 0 && data[length - 1] == ' ')
		length--;
	return length;
}

/* A string that is no key itself, in a dictionary or kept by itself. */
typedef struct StringEntry
{
	uint32		hash;			/* the low half of gpurhh_string_hash() */
	char		string[FLEXIBLE_ARRAY_MEMBER];	/* varlena */
} StringEntry;

static inline Size
gpurhh_string_entry_bytes(uint32 length)
{
	return MAXALIGN(offsetof(StringEntry, string) + VARHDRSZ + length);
}

static inline void
gpurhh_string_write_entry(StringEntry *entry, const char *data, uint32 length,
						  uint32 hash)
{
	entry->hash = hash;
	SET_VARSIZE(entry->string, VARHDRSZ + length);
	memcpy(VARDATA(entry->string), data, length);
}

/* Numbers for the strings that are no keys themselves. */
typedef struct Dictionary Dictionary;
typedef struct DictionaryShared DictionaryShared;

typedef struct StringLookup
{
	const char *data;
	uint32		length;
	uint64		hash;
	uint64		number;			/* 0: none */
	char	   *to;				/* where the key goes */
	bool		odd;
	struct varlena *detoasted;	/* to be freed then; or NULL */
} StringLookup;

/* Writes strings' keys.  All zeros but for the dictionary, it is ready. */
typedef struct StringEncoder
{
	Dictionary *dictionary;
	int			n_waiting;
	bool		missing;		/* there was one without a number */
	bool		odd;			/* there was one whose key is odd, ever */
	uint64		hash;
	StringLookup waiting[GPURHH_STRING_BATCH];
} StringEncoder;

extern Dictionary *gpurhh_dictionary_create(MemoryContext parent, Size limit,
											int min_strings,
											double expected_strings);
extern void gpurhh_dictionary_free(Dictionary *dictionary);
extern dsa_pointer gpurhh_dictionary_share(dsa_area *area, Size limit,
										   int min_strings,
										   double expected_strings);
extern Dictionary *gpurhh_dictionary_attach(dsa_area *area, dsa_pointer place,
											MemoryContext context);
extern void gpurhh_dictionary_unshare(dsa_area *area, dsa_pointer place);
extern void gpurhh_dictionary_stats(Dictionary *dictionary, uint64 *n_strings,
									uint64 *bytes);
extern StringEntry *gpurhh_dictionary_entry(const Dictionary *dictionary,
											uint64 number);
extern uint64 gpurhh_string_hash(const char *data, uint32 length);
extern struct varlena *gpurhh_dictionary_string(const Dictionary *dictionary,
												uint64 number);
extern int	gpurhh_string_compare(const Dictionary *dictionary,
								  const uint64 *a, const uint64 *b);
extern bool gpurhh_string_odd_length(const char *data, uint32 length,
									 uint32 bytes, int characters);
extern const char *gpurhh_string_of_key(const Dictionary *dictionary,
										const uint64 *key, uint32 *length);
extern void gpurhh_strings_add(StringEncoder *encoder, GpuEncoding encoding,
							   int parameter, const struct varlena *value,
							   const char *readable, char *to);
extern void gpurhh_strings_add_column(StringEncoder *encoder,
									  GpuEncoding encoding, int parameter,
									  const char *const *data,
									  const uint32 *positions, int n,
									  const char *readable, char *to);
extern bool gpurhh_strings_finish(StringEncoder *encoder, uint32 *hash);
extern bool gpurhh_dictionary_add_numeric(StringEncoder *encoder, Datum value,
										  uint64 *word, uint32 *hash);
extern Datum gpurhh_dictionary_numeric(const Dictionary *dictionary,
									   uint64 word);

/* ---------- kept_strings.c ---------- */

/*
 * The words of a record at which the keys of strings begin, and those of keys that
 * are numerics, which may be odd.
 */
typedef struct StringWords
{
	int			n;
	int			n_keys;			/* of these in the record's key, the first ones */
	uint16		at[RHH_MAX_KEYS + RHH_MAX_STATES];
	int			n_numerics;
	uint16		numeric_at[RHH_MAX_KEYS];
	uint16		scale[RHH_MAX_KEYS];	/* of each */
} StringWords;

extern void gpurhh_string_words_init(StringWords *words,
									 const rhh_table_spec *spec,
									 const GpuColumn *columns);
extern void gpurhh_strings_resolve(const StringWords *words,
								   const Dictionary *dictionary,
								   uint64 *record);
extern void gpurhh_string_make_key(MemoryContext context, const char *data,
								   uint32 length, bool odd, uint64 *key);
extern void gpurhh_string_copy(MemoryContext context, uint64 *key);
extern void gpurhh_strings_copy(const StringWords *words,
								MemoryContext context, uint64 *record);
extern void gpurhh_strings_free(const StringWords *words,
								const uint64 *record);
extern void gpurhh_string_free(const uint64 *key);
extern uint32 gpurhh_strings_hash(const StringWords *words,
								  const uint64 *record, int n_words);
extern bool gpurhh_strings_equal(const StringWords *words, const uint64 *a,
								 const uint64 *b, int n_words);
extern void gpurhh_strings_write(const StringWords *words, BufFile *file,
								 const uint64 *record);
extern void gpurhh_strings_read(const StringWords *words, BufFile *file,
								uint64 *record, MemoryContext context);

/* ---------- feed.c ---------- */

typedef struct FeedColumn
{
	GpuEncoding encoding;
	int			parameter;		/* see GpuColumn */
	int			attribute;
	uint8		bytes;
	bool		is_key;			/* as the caller says: NULL is a group */
	bool		any_null;		/* in the batch being filled */
	uint32		values_offset;
	uint32		nulls_offset;
} FeedColumn;

/*
 * Writes rows into the columns of one block at a time.  Knows the layout and
 * the encodings, and nothing of devices.
 */
struct Feed
{
	int			n_columns;
	int			n_attributes;	/* of the child's rows, up to the last needed */
	uint32		capacity_rows;	/* rows that fit a block */
	char	   *base;			/* the block being filled, or NULL */
	uint32		n_rows;
	FeedColumn	columns[RHH_MAX_COLUMNS];

	/* strings; the caller sets the dictionary and where rows go whose strings
	 * are not in it */
	int			n_strings;
	uint8		string_columns[RHH_MAX_COLUMNS];
	StringEncoder strings;
	void		(*defer) (void *arg, TupleTableSlot *slot, uint32 hash);
	void	   *defer_arg;
	struct Candidates *candidates;	/* the caller's too; NULL: no such columns */

	/* the caller's: told of a row of which numerics are fed as NULL, as they are
	 * not what is declared, while it is being appended; and of rows with integers
	 * that gpurhh_is_watched() */
	void		(*odd_row) (void *arg, Feed *feed, TupleTableSlot *slot);
	void	   *odd_arg;
	const uint64 *watched;		/* NULL: none is */
};

#define GPURHH_WATCHED_BITS	12	/* how many bits there are, as a power of 2 */

static inline uint32
gpurhh_watched_bit(int64 integer)
{
	return (uint32) (((uint64) integer * UINT64CONST(0x9e3779b97f4a7c15)) >>
					 (64 - GPURHH_WATCHED_BITS));
}

/* May a decimal of one limb equal one that is not what is declared? */
static inline bool
gpurhh_is_watched(const uint64 *watched, int64 integer)
{
	uint32		bit = gpurhh_watched_bit(integer);

	return (watched[bit / 64] >> (bit % 64)) & 1;
}

extern void gpurhh_feed_init(Feed *feed, int n_columns,
							 const GpuColumn *columns,
							 Size block_bytes, int max_rows);
extern void gpurhh_feed_start(Feed *feed, char *base);
extern void gpurhh_feed_slot(Feed *feed, TupleTableSlot *slot);
extern void gpurhh_feed_nulls(Feed *feed, int column, const uint8 *nulls,
							  int n);
extern uint8 *gpurhh_feed_null_bitmap(Feed *feed, int column);
extern void gpurhh_feed_no_strings(Feed *feed, int column, int n);
extern void gpurhh_feed_string(Feed *feed, int column, uint32 row,
							   const struct varlena *value, bool regular);
extern void gpurhh_feed_describe(const Feed *feed, rhh_batch *batch);
extern bool gpurhh_feed_take_back(Feed *feed, int column, uint32 row);
extern void gpurhh_feed_finish(Feed *feed, rhh_batch *batch);

/* ---------- vector.c, vector_*.c: see vector.h ---------- */

/* One column of a chunk of rows. */
typedef struct Vector
{
	const void *values;			/* of the column's or expression's type */
	const uint8 *nulls;			/* a byte for each row, 1: NULL; or NULL: none
								 * is */
} Vector;

typedef struct VectorExpr VectorExpr;

/*
 * Whether expr is a column: then its number and type are stored.  only_null:
 * its values are not needed, VECTOR_ANY will do.
 */
typedef bool (*VectorColumnFinder)(Node *expr, bool only_null, int *column,
								   VectorType *type, void *arg);

extern bool gpurhh_vector_type(Oid type, VectorType *result);
extern VectorExpr *gpurhh_vector_compile(Expr *expr, PlanState *parent,
										 int max_rows,
										 VectorColumnFinder find_column,
										 void *finder_arg, const char **why);
extern VectorType gpurhh_vector_result_type(const VectorExpr *expr);
extern void gpurhh_vector_reset(VectorExpr *expr);
extern bool gpurhh_vector_evaluate(VectorExpr *expr, const Vector *columns,
								   int n, const uint8 *active,
								   Vector *result);
extern bool gpurhh_vector_filter(VectorExpr *condition, const Vector *columns,
								 int n, uint8 *active, int *n_left);

/* ---------- candidates.c ---------- */

/* Chooses the strings that may be a group's least or greatest. */
typedef struct Candidates Candidates;

/*
 * A row of the block has no string, as the dictionary did not take it.  odd: with
 * trailing blanks, and another number of them than is declared.
 */
typedef void (*CandidateRefused)(void *arg, const Feed *feed, uint32 row,
								 int column, const char *data, uint32 length,
								 bool odd);

/* Memory for the strings that others are compared to. */
#define GPURHH_CANDIDATES_LIMIT	(get_hash_memory_limit() / 2)

extern Candidates *gpurhh_candidates_create(MemoryContext context,
											const rhh_table_spec *spec,
											const GpuColumn *columns,
											Size limit,
											CandidateRefused refused,
											void *refused_arg);
extern void gpurhh_candidates_add(Candidates *candidates, Feed *feed, int n,
								  const Vector *const *strings);
extern void gpurhh_candidates_finish(Candidates *candidates, Feed *feed);
extern int	gpurhh_candidates_columns(const Candidates *candidates,
									  const uint8 **columns);
extern double gpurhh_candidates_capacity(int n_key_bytes, int n_strings,
										 Size limit);

/* ---------- agg_emit.c ---------- */

/* Numerics that are not what is declared; see odd_arguments.c. */
typedef struct OddPlan OddPlan;
typedef struct OddValues OddValues;
typedef struct OddState OddState;

/* Groups decoded at a time: enough to forget the setup, few enough for L1. */
#define GPURHH_EMIT_WINDOW 256

typedef struct EmitColumn EmitColumn;

/* How groups become rows, and those that are about to. */
typedef struct Emit
{
	int			n_columns;
	EmitColumn *columns;
	bool		allocates;		/* some values need memory */
	int			n_quals;		/* of HAVING; 0: it is not computed here */
	VectorExpr **quals;
	Vector	   *vectors;		/* what it looks at */

	const Dictionary *dictionary;	/* of the groups; the caller sets it */
	OddValues  *odd_arguments;	/* and this, before the groups that have some;
								 * NULL: none has */

	/* the window */
	const uint64 *words;
	Size		stride;
	uint32		next;			/* row */
	uint32		n_rows;
	bool		recheck;		/* core has to evaluate HAVING for each */
	uint8		active[GPURHH_EMIT_WINDOW];
	uint16		rows[GPURHH_EMIT_WINDOW];	/* that passed HAVING, if any */
	const OddState *odd_states[GPURHH_EMIT_WINDOW]; /* if odd_arguments is not NULL */
} Emit;

extern void gpurhh_emit_init(Emit *emit, List *outputs,
							 const rhh_table_spec *spec, const OddPlan *odd);
extern bool gpurhh_emit_having(Emit *emit, List *having, PlanState *parent);
extern void gpurhh_emit_reset(Emit *emit);
extern int	gpurhh_emit_window(Emit *emit, const uint64 *words, Size stride,
							   uint32 n);
extern void gpurhh_emit_row(Emit *emit, TupleTableSlot *slot);

/* ---------- heap_feed.c ---------- */

/* Reads the pages of a sequential scan into a feed. */
typedef struct HeapFeed HeapFeed;

extern HeapFeed *gpurhh_heap_feed_create(PlanState *child, List *exprs,
										 ResultState *above, int n_columns,
										 const GpuColumn *columns,
										 MemoryContext context,
										 const char **why);
extern TupleTableSlot *gpurhh_project_above(ResultState *result,
											TupleTableSlot *slot);
extern bool gpurhh_heap_feed_begin(HeapFeed *heap);
extern bool gpurhh_heap_feed_fill(HeapFeed *heap, Feed *feed);

/* ---------- page_feed.c ---------- */

/* Reads the pages of the scans below a node. */
typedef struct PageFeed PageFeed;

extern PageFeed *gpurhh_page_feed_create(PlanState *child, int n_columns,
										 const GpuColumn *columns,
										 MemoryContext context,
										 const char **why);
extern void gpurhh_page_feed_ways(PageFeed *feed, bool *pages, bool *rows);
extern void gpurhh_page_feed_begin(PageFeed *feed);
extern bool gpurhh_page_feed_fill(PageFeed *feed, Feed *to);

/* A participant's handle of an open query; owned by a memory context. */
typedef struct Channel Channel;

/* Where sessions and the device service meet. */
typedef struct ChannelArea ChannelArea;

typedef struct GpuNodeCounts GpuNodeCounts;

/* ---------- host_table.c ---------- */

typedef struct HostTable HostTable;

extern HostTable *gpurhh_host_create(const rhh_table_spec *spec,
									 MemoryContext parent, Size memory_limit);
extern uint64 gpurhh_host_add_batch(HostTable *host, const rhh_batch *batch,
									bool all_rows);
extern void gpurhh_host_merge(HostTable *host, const uint64 *words,
							  Size stride);
extern void gpurhh_host_merge_records(HostTable *host, uint64 *records,
									  int n);
extern bool gpurhh_host_absorb(HostTable *host, const uint64 *words,
							   Size stride);
extern bool gpurhh_host_is_empty(HostTable *host);
extern const uint64 *gpurhh_host_next(HostTable *host);
extern uint64 gpurhh_host_spilled(HostTable *host);
extern void gpurhh_host_load_group(const rhh_table_spec *spec,
								   const rhh_batch *batch, uint32 row,
								   uint64 *record);
extern void gpurhh_host_keep_strings(HostTable *host,
									 const StringWords *strings);
extern bool gpurhh_host_next_is_loaded(HostTable *host);
extern void gpurhh_host_choose(HostTable *host, uint32 first_state,
							   List *choices, const Dictionary *dictionary);
extern void gpurhh_host_free(HostTable *host);

/* ---------- regroup_rows.c ---------- */

#define GPURHH_REGROUP_MAX_SETS	64

/* The number of a group's grouping set, beside the NULL bits in word 0. */
#define GPURHH_SET_SHIFT	32
#define GPURHH_SET_OF(word0)	((int) ((word0) >> GPURHH_SET_SHIFT))

/* What a column of the second level's rows is made of. */
typedef enum RegroupKind
{
	REGROUP_KEY,				/* a key; NULL also where it is not in the set */
	REGROUP_IS_NULL,			/* of a key only whether it is NULL */
	REGROUP_SET,				/* the set's number */
	REGROUP_WORD,				/* a word of a state, or two */
	REGROUP_DIGIT1,				/* the second word of an integer of several, all */
	REGROUP_DIGIT2,				/* signed, see regroup_rows.c; the third one */
	REGROUP_ANY					/* RHH_ANY's value, NULL where there is none */
} RegroupKind;

typedef struct RegroupColumn
{
	RegroupKind kind;
	int			key;			/* its NULL bit */
	int			word;			/* of the first level, its first */
	int			part;			/* of the groups that have it; -1: all */
} RegroupColumn;

/* How a device makes groups of another of its table's groups. */
typedef struct RegroupPlan
{
	rhh_table_spec spec;		/* of the second level's table */
	RegroupColumn columns[RHH_MAX_COLUMNS];
	bool		keep_first;		/* the first level's groups are results too */
	int			n_parts;		/* 0, or the groups have sets already, for each of
								 * this plan's as many */
	int			first_set;		/* the sets' numbers begin with it */
	int			n_sets;
	uint64		outside[GPURHH_REGROUP_MAX_SETS];	/* NULL bits of the keys
													 * that are not in a set */
} RegroupPlan;

extern void gpurhh_regroup_feed_init(Feed *feed, const RegroupPlan *plan,
									 Size block_bytes, int max_rows);
extern void gpurhh_regroup_feed_rows(Feed *feed, const RegroupPlan *plan,
									 int set, const uint64 *words,
									 Size stride, uint32 n);

/* ---------- agg_regroup.c ---------- */

/* Makes groups of a first level's groups. */
typedef struct Regroup Regroup;

/*
 * A value of DISTINCT is an odd numeric: it is in no state, but this is called once
 * for the group that it is in, given by its words, and for one of its states.
 */
typedef void (*RegroupOdd)(void *arg, const uint64 *group, int state,
						   Datum value);

extern Regroup *gpurhh_regroup_create(const rhh_table_spec *first,
									  const GpuColumn *columns,
									  int n_shown_keys, List *sets,
									  List *choices, List *distinct_states,
									  double expected_groups,
									  double expected_top);
extern Regroup *gpurhh_regroup_above(Regroup *regroup);
extern void gpurhh_regroup_keep_strings(Regroup *regroup);
extern void gpurhh_regroup_set_odd(Regroup *regroup, RegroupOdd odd, void *arg);
extern bool gpurhh_regroup_keeps_strings(const Regroup *regroup);
extern const rhh_table_spec *gpurhh_regroup_spec(const Regroup *regroup);
extern int	gpurhh_regroup_n_sets(const Regroup *regroup);
extern void gpurhh_regroup_key(const Regroup *regroup, int set,
							   const uint64 *group, uint64 *key);
extern RegroupPlan *gpurhh_regroup_plan(Regroup *regroup);
extern const uint64 *gpurhh_regroup_translate(Regroup *regroup,
											  const uint64 *words,
											  Size stride, uint32 n);
extern void gpurhh_regroup_start(Regroup *regroup, MemoryContext context);
extern bool gpurhh_regroup_makes_groups(const Regroup *regroup);
extern bool gpurhh_regroup_add(Regroup *regroup, const Dictionary *dictionary,
							   const uint64 *words, Size stride, uint32 n);
extern const uint64 *gpurhh_regroup_next(Regroup *regroup, uint32 *n);
extern uint64 gpurhh_regroup_spilled(Regroup *regroup);
extern void gpurhh_regroup_end(Regroup *regroup);

/* ---------- agg_input.c ---------- */

/* Where rows that a device's table does not have are finished. */
typedef struct HostSide
{
	HostTable **table;			/* made when it is needed, */
	const rhh_table_spec *spec; /* of this, */
	MemoryContext context;		/* here */
	Channel    *channel;		/* that gives them back; or NULL */
	uint64	   *n_rows;			/* counts them, */
	ChannelArea *area;			/* and so does this; or NULL */
} HostSide;

extern void gpurhh_add_on_host(const HostSide *host, const rhh_batch *batch,
							   bool all_rows);
extern void gpurhh_take_returned(const HostSide *host);

/* ---------- agg_upper.c ---------- */

/* Groups on their way to a level that this session feeds. */
typedef struct UpperFeed UpperFeed;

extern UpperFeed *gpurhh_upper_start(Regroup *regroup, MemoryContext context);
extern void gpurhh_upper_add(UpperFeed *upper, const uint64 *words,
							 Size stride, uint32 n);
extern Channel *gpurhh_upper_finish(UpperFeed *upper, HostTable **host,
									GpuNodeCounts *counts);

/* ---------- channel_area.c ---------- */

#define GPURHH_MAX_QUERIES	128
#define GPURHH_SESSION_QUERIES (GPURHH_MAX_QUERIES / 4) /* where all share them */
#define GPURHH_MAX_BLOCKS	2048
#define GPURHH_MAX_DEVICES	17	/* the CPU and sixteen GPUs */
#define GPURHH_DEVICE_NAME_LEN 32
#define GPURHH_MESSAGE_LEN	256

/* Changes with the layout, as far as a number can. */
#define GPURHH_AREA_MAGIC \
	((uint32) (0x67707500 ^ (sizeof(ChannelArea) << 8) ^ \
			   (sizeof(ChannelQuery) << 4) ^ sizeof(ChannelBlock)))
#define GPURHH_MIN_BLOCK_BYTES	((Size) 128 * 1024)
#define GPURHH_MAX_BLOCK_BYTES	((Size) 1024 * 1024)

typedef enum ServiceState
{
	SERVICE_STOPPED,
	SERVICE_STARTING,
	SERVICE_RUNNING
} ServiceState;

/* Who has to free a block. */
typedef enum BlockHolder
{
	BLOCK_NOBODY,				/* on the free list */
	BLOCK_SESSION,				/* fills it, finishes refused rows, or reads
								 * groups from it */
	BLOCK_SERVICE				/* queued, with a device, or on the way back */
} BlockHolder;

typedef struct ChannelBlock
{
	int			next;			/* in the list it is on; -1 ends it */
	BlockHolder holder;
	bool		refused;		/* the whole batch comes back */
	bool		needs_merge;	/* as results: see rhh_result */
	bool		first_level;	/* and are not of the second, but of the first */
	uint32		n_groups;
	rhh_batch	batch;			/* base is not valid across processes */
} ChannelBlock;

typedef struct BlockList
{
	int			head;
	int			tail;
} BlockList;

typedef enum QueryState
{
	QUERY_FREE,
	QUERY_ACTIVE,
	QUERY_RELEASED				/* the session is done; the service cleans up */
} QueryState;

/* Where a query has a second level: who makes it? */
typedef enum QueryRegroup
{
	REGROUP_NONE,				/* nobody, or the session of what it fetches */
	REGROUP_UNDECIDED,			/* until the session knows nothing can be read */
	REGROUP_WANTED,				/* the device, if it has memory for it */
	REGROUP_ON_DEVICE			/* the device; what is fetched is of both levels */
} QueryRegroup;

/*
 * One query's conversation with the service.  Its participants (the processes
 * that have it open: one, or those of a parallel plan) write the spec, the
 * batches and their wishes; the service answers, and wakes those who wait.
 */
typedef struct ChannelQuery
{
	QueryState	state;			/* the service looks for QUERY_FREE unlocked */
	uint32		generation;		/* the service's that it was opened with */
	uint64		serial;			/* no other query of the area has it */
	int			session_pid;	/* of a worker: its leader's */
	int			n_participants;
	ConditionVariable news;		/* of anything that one may wait for */
	char		device[GPURHH_DEVICE_NAME_LEN]; /* asked for */
	rhh_table_spec spec;
	QueryRegroup regroup;
	RegroupPlan regroup_plan;	/* unless REGROUP_NONE from the start */

	BlockList	queued;			/* to the service */
	BlockList	returned;		/* to the finisher, with failed rows */
	int			n_outstanding;	/* queued, with the device, or returned */
	uint64		n_done;			/* batches that are not outstanding any more */
	bool		sleeps;			/* what gives its rows may sleep meanwhile, and
								 * leave returned batches where they are */
	bool		at_limit;		/* a participant waits for n_outstanding to be less */
	bool		at_share;		/* or for what the session keeps to be less */
	int			finisher_pid;	/* whose host table has what the device
								 * refused; 0: nobody's yet */

	bool		input_done;		/* no more batches will come */
	bool		finished;		/* service: the table is ready to be read */
	bool		refused;		/* service: no table; batches come back whole */
	bool		failed;			/* service: ends in an error, see message */
	char		message[GPURHH_MESSAGE_LEN];	/* why refused or failed */

	int			n_fetching;		/* participants that wait for groups */
	BlockList	results;		/* to whichever participant comes first */
	int			n_results;
	bool		all_extracted;	/* service: no results after those */

	char		used_device[GPURHH_DEVICE_NAME_LEN];
	rhh_table_stats stats;
	rhh_table_stats second_stats;	/* of the second level's table */
} ChannelQuery;

/* Whose groups a query's results are: the first level's, or what was made of it. */
static inline const rhh_table_spec *
gpurhh_result_spec(const ChannelQuery *query, bool first_level)
{
	return query->regroup == REGROUP_ON_DEVICE && !first_level ?
		&query->regroup_plan.spec : &query->spec;
}

/* Cumulative since the service started. */
typedef struct ServiceStats
{
	TimestampTz started_at;
	uint64		queries;
	uint64		rows_fed;
	uint64		bytes_uploaded;
	uint64		groups_returned;
	uint64		failed_slots;
	uint64		rehashes;
	uint64		host_rows;
	uint64		host_queries;	/* that stayed with a session, see load.c */
	uint64		late_batches;	/* for which the pool had no block */
	uint64		device_errors;
	uint64		pool_wait_us;	/* sessions' waiting for free blocks */
	uint64		upload_ns;
	uint64		kernel_ns;
	uint64		extract_ns;
} ServiceStats;

/* What a private service cannot read from its own configuration. */
typedef struct ServiceSettings
{
	int			device_memory_mb;
	int			cpu_threads;
	int			idle_timeout_s;
} ServiceSettings;

/*
 * The shared area: in main shared memory with preload, else in a DSM segment
 * of the session.  The lock guards everything but the blocks' contents, and
 * is held for a few instructions at a time.
 */
struct ChannelArea
{
	uint32		magic;			/* a service of another build keeps away */
	LWLock		lock;
	int			tranche_id;
	bool		shared;			/* one for all sessions */
	bool		owner_gone;		/* private: the session ended */

	ServiceState service_state;
	int			service_pid;
	struct Latch *service_latch;
	uint32		generation;		/* grows with each service */
	TimestampTz starting_since;
	ServiceSettings settings;
	ServiceStats stats;
	TimestampTz cuda_failed_at; /* 0: never; "auto" then keeps away a while */

	int			devices_wanted; /* requests to look again, and answers */
	int			devices_seen;
	int			n_devices;
	rhh_device_info devices[GPURHH_MAX_DEVICES];

	Size		pool_offset;	/* from the area's start */
	Size		block_bytes;
	int			n_blocks;
	int			n_free;
	int			free_head;		/* last freed first: it is warm in caches */
	uint64		n_freed;		/* so often a block came free to be filled */
	bool		service_wants_block;	/* wake the service when one is freed */
	bool		any_at_share;	/* some query may be at_share */
	uint64		want_block[GPURHH_MAX_QUERIES / 64];	/* a bit for each query
														 * that waits for one */
	int			next_waiter;	/* query whose turn it is, if it waits */
	pg_atomic_uint32 n_reading; /* sessions, see load.c */
	uint64		last_serial;

	ChannelQuery queries[GPURHH_MAX_QUERIES];
	ChannelBlock blocks[FLEXIBLE_ARRAY_MEMBER];
};

extern void gpurhh_init_channel(void);
extern Size gpurhh_channel_area_bytes(Size pool_bytes);
extern void gpurhh_channel_area_init(ChannelArea *area, Size pool_bytes,
									 bool shared);
extern ChannelArea *gpurhh_channel_attach(const char **why);
extern ChannelArea *gpurhh_channel_peek(void);
extern ChannelArea *gpurhh_shared_area(void);
extern int	gpurhh_private_pool_kb(void);
extern bool gpurhh_ensure_service(ChannelArea *area, const char **why);
extern void gpurhh_refresh_devices(ChannelArea *area);
extern uint32 gpurhh_area_segment(ChannelArea *area);
extern ChannelArea *gpurhh_area_in_segment(uint32 handle);

/* Used by both ends; the caller holds the lock. */
extern void gpurhh_block_push(ChannelArea *area, BlockList *list, int block);
extern int	gpurhh_block_pop(ChannelArea *area, BlockList *list);
extern void gpurhh_block_free(ChannelArea *area, int block);
extern void gpurhh_block_done(ChannelArea *area, ChannelQuery *query,
							  int block);
extern int	gpurhh_block_take(ChannelArea *area, BlockHolder holder);
extern int	gpurhh_session_share(const ChannelArea *area,
								 const ChannelQuery *query);
extern int	gpurhh_session_keeps(const ChannelArea *area,
								 const ChannelQuery *query);
extern char *gpurhh_block_base(ChannelArea *area, int block);
extern void gpurhh_wake_service(ChannelArea *area);
extern void gpurhh_count_host_rows(ChannelArea *area, uint64 rows);

/* ---------- channel.c ---------- */

/* Names a query to other processes. */
typedef struct ChannelAddress
{
	uint32		segment;		/* dsm_handle; 0: the shared area */
	int			index;
	uint64		serial;
} ChannelAddress;

typedef enum ChannelBlockResult
{
	CHANNEL_BLOCK,				/* a block to fill */
	CHANNEL_RETURNED,			/* rows that the device refused */
	CHANNEL_LATE				/* none to be had for a while */
} ChannelBlockResult;

typedef struct ChannelResult
{
	uint64	   *words;			/* column-major, stride capacity_groups; the
								 * caller's, and of a block's size */
	uint32		capacity_groups;
	uint32		n_groups;
	bool		needs_merge;
	bool		first_level;	/* there is a second, and these are not of it */
	bool		last;			/* there are no more, for any participant */
} ChannelResult;

extern Channel *gpurhh_channel_open(ChannelArea *area,
									const rhh_table_spec *spec,
									const RegroupPlan *regroup_plan,
									bool sleeps, MemoryContext context,
									const char **why);
extern ChannelAddress gpurhh_channel_address(Channel *channel);
extern Channel *gpurhh_channel_join(const ChannelAddress *address,
									bool may_finish, MemoryContext context);
extern Size gpurhh_channel_block_bytes(Channel *channel);
extern ChannelBlockResult gpurhh_channel_acquire(Channel *channel, bool wait,
												 char **base);
extern void gpurhh_channel_submit(Channel *channel, const rhh_batch *batch);
extern void gpurhh_channel_drop_block(Channel *channel);
extern bool gpurhh_channel_take_returned(Channel *channel, rhh_batch *batch,
										 bool *refused);
extern void gpurhh_channel_give_back(Channel *channel);
extern void gpurhh_channel_end_input(Channel *channel);
extern bool gpurhh_channel_wait_finished(Channel *channel);
extern double gpurhh_channel_pool_wait_ms(Channel *channel);
extern uint64 gpurhh_channel_late_batches(Channel *channel);
extern bool gpurhh_channel_claim_finish(Channel *channel);
extern bool gpurhh_channel_may_emit(Channel *channel, bool only_one);
extern bool gpurhh_channel_complete(Channel *channel);
extern void gpurhh_channel_regroup(Channel *channel, bool wanted);
extern bool gpurhh_channel_regrouped(Channel *channel,
									 rhh_table_stats *stats);
extern bool gpurhh_channel_fetch(Channel *channel, ChannelResult *result);
extern bool gpurhh_channel_stats(Channel *channel, rhh_table_stats *stats,
								 char *device, char *refusal);
extern ChannelArea *gpurhh_channel_area(Channel *channel);
extern void gpurhh_channel_close(Channel *channel);

/* ---------- load.c ---------- */

/* A node's run that is reading its input. */
typedef struct Reading Reading;

extern Reading *gpurhh_load_begin(MemoryContext context);
extern void gpurhh_load_end(Reading *reading);
extern bool gpurhh_load_is_high(void);
extern void gpurhh_load_count_stay(void);

/* ---------- service.c ---------- */

extern void gpurhh_register_service(void);
extern bool gpurhh_start_service_worker(ChannelArea *area, uint32 dsm_handle,
										const char **why);
extern PGDLLEXPORT void gpurhh_service_main(Datum main_arg);

/* ---------- cuda_library.c ---------- */

extern bool gpurhh_has_cuda_library(void);

/* ---------- agg_parallel.c ---------- */

/* What a node did: sums over its runs, and the participants of each. */
struct GpuNodeCounts
{
	uint64		runs;
	uint64		feeders;		/* participants that read a part of the input */
	uint64		rows_fed;
	uint64		bytes_fed;
	uint64		batches;
	uint64		host_rows;		/* finished on the host */
	uint64		host_spilled;	/* records it wrote to disk */
	uint64		late_batches;	/* for which the pool had no block */
	uint64		groups_returned;
	uint64		dictionary_strings;
	uint64		dictionary_bytes;	/* the most of any run */
	uint64		deferred_rows;	/* written, once or more often */
	uint64		passes;			/* that read them */
	uint64		odd_values;		/* see odd_arguments.c */
	uint64		odd_compared;	/* others that may equal one of these */
	uint64		odd_bytes;		/* the most of any run */
	double		feed_ms;		/* wall time to read and hand over the input */
	double		pool_wait_ms;	/* of that: waiting for a free block; of the third
								 * level it is of fetch_ms */
	double		fetch_ms;		/* wall time to wait for groups and copy them;
								 * of the host table and of levels, too */
	double		form_ms;		/* to make rows of them, by sampling */
};

/* Where a level of groups above the first was made. */
typedef enum GpuLevelPlace
{
	GPU_LEVEL_NONE,				/* there is none, or not by this process */
	GPU_LEVEL_HOST,
	GPU_LEVEL_DEVICE
} GpuLevelPlace;

typedef struct GpuLevelStats
{
	GpuLevelPlace place;
	rhh_table_stats table;		/* the device's */
} GpuLevelStats;

/* For EXPLAIN ANALYZE. */
typedef struct GpuNodeStats
{
	bool		valid;			/* the input has been read */
	bool		feed_pages;		/* pages are read */
	bool		feed_rows;		/* rows are asked for; perhaps both */
	const char *feed_why;		/* why rows */
	char		device[GPURHH_DEVICE_NAME_LEN];
	char		refusal[GPURHH_MESSAGE_LEN];	/* why not on a device; "" */
	GpuNodeCounts counts;
	bool		parallel;
	bool		strings;		/* are among the columns */
	bool		numerics;		/* are among the arguments */
	rhh_table_stats table;
	GpuLevelStats second;
	GpuLevelStats third;
} GpuNodeStats;

/* In the parallel plan's DSM segment. */
typedef struct GpuAggShared GpuAggShared;

extern Size gpurhh_parallel_bytes(void);
extern void gpurhh_parallel_init(GpuAggShared *shared, dsm_segment *segment);
extern void gpurhh_parallel_start(GpuAggShared *shared, bool leader_emits,
								  Channel *channel, bool stays,
								  dsa_pointer dictionary);
extern bool gpurhh_parallel_has_others(GpuAggShared *shared);
extern bool gpurhh_parallel_stays(GpuAggShared *shared);
extern dsa_pointer gpurhh_parallel_dictionary(GpuAggShared *shared);
extern Channel *gpurhh_parallel_join(GpuAggShared *shared,
									 MemoryContext context);
extern bool gpurhh_parallel_attach(GpuAggShared *shared);
extern bool gpurhh_parallel_detach(GpuAggShared *shared,
								   GpuNodeCounts *counts);
extern void gpurhh_parallel_note_odd(GpuAggShared *shared);
extern bool gpurhh_parallel_any_odd(GpuAggShared *shared);
extern bool gpurhh_parallel_emits_later(GpuAggShared *shared);
extern bool gpurhh_parallel_may_emit(GpuAggShared *shared, Channel *channel,
									 bool one_emitter);
extern void gpurhh_parallel_add_counts(GpuAggShared *shared,
									   GpuNodeCounts *counts);
extern void gpurhh_parallel_note_alone(GpuAggShared *shared,
									   const GpuNodeStats *stats);
extern bool gpurhh_parallel_alone_stats(GpuAggShared *shared,
										GpuNodeStats *stats);
extern void gpurhh_parallel_counts(GpuAggShared *shared,
								   GpuNodeCounts *counts);
extern void gpurhh_parallel_save_late(GpuAggShared *shared, BufFile **file,
									  const rhh_batch *batch);
extern void gpurhh_parallel_close_file(BufFile **file, void *end, Size size);
extern void gpurhh_parallel_close_late(BufFile **file);
extern void gpurhh_parallel_read_late(GpuAggShared *shared,
									  Size block_bytes,
									  void (*add)(void *arg,
												  const rhh_batch *batch),
									  void *arg);

extern BufFile *gpurhh_parallel_create_deferred(GpuAggShared *shared,
												int *participant,
												int partition);
extern bool gpurhh_parallel_any_deferred(GpuAggShared *shared);
extern int	gpurhh_parallel_next_deferred(GpuAggShared *shared);
extern bool gpurhh_parallel_open_deferred(GpuAggShared *shared,
										  int participant, int partition,
										  BufFile **file);

extern BufFile *gpurhh_parallel_create_choices(GpuAggShared *shared);
extern bool gpurhh_parallel_any_choices(GpuAggShared *shared);
extern BufFile *gpurhh_parallel_open_choices(GpuAggShared *shared, int number);

extern BufFile *gpurhh_parallel_create_odd_arguments(GpuAggShared *shared);
extern bool gpurhh_parallel_any_odd_arguments(GpuAggShared *shared);
extern BufFile *gpurhh_parallel_open_odd_arguments(GpuAggShared *shared, int number);

/* ---------- agg_choices.c ---------- */

extern void gpurhh_choice_group(const rhh_table_spec *spec,
								const StringWords *strings, int n_shown_keys,
								const Feed *feed, uint32 row, int column,
								const char *data, uint32 length, bool odd,
								MemoryContext context, uint64 *words);
extern void gpurhh_choices_save(GpuAggShared *shared, BufFile **file,
								const StringWords *strings,
								const uint64 *words, int n_words);
extern void gpurhh_choices_close(BufFile **file);
extern void gpurhh_choices_read(GpuAggShared *shared,
								const StringWords *strings, int n_words,
								Regroup *regroup);

/* ---------- odd_arguments.c ---------- */

/* The least or greatest of some values. */
typedef struct OddBest
{
	struct varlena *value;
	bool		ties;			/* it equals this integer by the power of 10 that
								 * was declared, */
	int64		integer;
	bool		later;			/* which came after it, from another row */
} OddBest;

/* The values of one argument in a group. */
struct OddState
{
	uint64		count;
	/* NULL where no aggregate asks for it, or there is no value: */
	void	   *sums;			/* core's state */
	OddBest		least;
	OddBest		greatest;
	struct varlena *last;
};

extern OddPlan *gpurhh_odd_plan(const rhh_table_spec *first,
								const GpuColumn *columns,
								const Regroup *regroup, List *outputs);
extern int	gpurhh_odd_argument(const OddPlan *plan, int state);
extern OddValues *gpurhh_odd_create(const OddPlan *plan,
									MemoryContext context);
extern void gpurhh_odd_add_row(OddValues *values, const Feed *feed,
							   TupleTableSlot *slot);
extern void gpurhh_odd_add(OddValues *values, const Dictionary *dictionary,
						   const uint64 *group, Size stride, int argument,
						   Datum value);
extern const uint64 *gpurhh_odd_watched(const OddValues *values);
extern void gpurhh_odd_added(OddValues *values, uint64 *n_values,
							 uint64 *n_compared);
extern uint64 gpurhh_odd_bytes(const OddValues *values);
extern void gpurhh_odd_save(const OddValues *values, GpuAggShared *shared);
extern void gpurhh_odd_read(OddValues *values, GpuAggShared *shared);
extern const OddState *gpurhh_odd_find(OddValues *values,
									   const Dictionary *dictionary,
									   const uint64 *group, Size stride);
extern Datum gpurhh_odd_final(OddValues *values, const OddState *state,
							  GpuFinal final, uint64 count, bool nan,
							  Datum sum, Datum squares);
extern void gpurhh_odd_free(OddValues *values);

/* ---------- agg_defer.c ---------- */

#define GPURHH_DEFER_PARTITIONS 32

/* Rows whose strings a full dictionary did not take. */
typedef struct Deferred Deferred;

extern Deferred *gpurhh_deferred_create(MemoryContext context,
										GpuAggShared *shared);
extern void gpurhh_deferred_free(Deferred *deferred);
extern void gpurhh_deferred_save(Deferred *deferred, TupleTableSlot *slot,
								 uint32 hash);
extern void gpurhh_deferred_close(Deferred *deferred);
extern bool gpurhh_deferred_next(Deferred *deferred);
extern bool gpurhh_deferred_read(Deferred *deferred, TupleTableSlot *slot);

/* ---------- explain.c ---------- */

extern void gpurhh_explain_agg(CustomScanState *node, List *ancestors,
							   ExplainState *es, const GpuNodeStats *stats);

#endif							/* GPURHH_H */
