/*-------------------------------------------------------------------------
 *
 * heap_feed.c
 *		Heap pages to columns: reads a sequential scan's pages itself.
 *
 * If the child is a plain sequential scan of a heap, its rows need not come one
 * by one through ExecProcNode(): this file reads the table's pages instead.  The
 * scan node still provides everything else: the lock, permissions, the snapshot,
 * the predicate lock, the ring buffer (a larger one for a device), the block numbers of synchronized and of
 * parallel scans, instrumentation and statistics.  These are in its scan
 * descriptor, or this file does what SeqNext() and ExecScan() would do.
 *
 * Each page goes through three steps:
 *
 *		1. Core reads and pins the page, and says which tuples are visible
 *		   (gpurhh_heap_next_page()).  The pin stays until the next page is
 *		   read; the content lock is released at once.
 *		2. The columns that WHERE needs are loaded, WHERE is computed (vector.c),
 *		   and the rows that do not pass are dropped.
 *		3. If joins' build sides have left filters of their keys (key_filter.c), the
 *		   columns of the keys are loaded, and rows that cannot have a match are
 *		   dropped.
 *		4. The columns to be fed are loaded into the block.  Expressions are
 *		   computed from columns that are loaded into memory beside it.  Rows
 *		   that the block has no room for wait for the next block.
 *
 * How columns are loaded depends on the tuples.  Usually no tuple of a page has
 * a NULL among the attributes up to the last one that is needed.  Then the
 * attributes before the first one of variable width are at the same offset in
 * all tuples.  From that one on all tuples of the page are walked through together,
 * one attribute after the other.  If a tuple has NULLs, or was stored
 * before columns were added, the page's tuples are walked through one by one.
 *
 * A device may do steps 2 to 4 by itself (page_layout.c, gpurhh_heap_feed_pages()).  Then the block has
 * buffers, and the line pointers of visible tuples unless the device finds these, too; and these buffers stay pinned
 * until the device has read them.
 *
 * If WHERE or an expression might raise an error for one of the rows, core's
 * ExecQual() and ExecProject() evaluate these rows one by one, so that the error
 * is core's.  They also do so if a numeric does not have its declared scale
 * (odd_arguments.c).  gpurhh_heap_feed_create() refuses WHERE and expressions that
 * vector.c does not know.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "scan/heap_state.h"

/* With so many tuples on a page, most of its cache lines are needed, and are asked for at once. */
#define DENSE_TUPLES 32

/* ---------- preparation ---------- */

/* Finds columns for an expression, see vector.c. */
typedef struct FinderArg
{
	HeapFeed   *heap;
	LoadSet    *set;
} FinderArg;

/* Adds a load to the set; the table's attribute is known to be fit for it. */
static int
add_load(HeapFeed *heap, LoadSet *set, int attribute, int bytes, int scale,
		 bool own_memory)
{
	HeapLoad   *load;

	if (set->loads == NULL)
		set->loads = palloc0(sizeof(HeapLoad));
	else
		set->loads = repalloc(set->loads, sizeof(HeapLoad) * (set->n_loads + 1));
	load = &set->loads[set->n_loads];
	memset(load, 0, sizeof(HeapLoad));
	load->attribute = attribute;
	load->bytes = bytes;
	load->scale = scale;
	load->nulls = palloc0(heap->max_rows);
	if (own_memory && bytes > 0)
		load->to = (char *) TYPEALIGN(64, palloc0((Size) heap->max_rows * bytes + 64));
	return set->n_loads++;
}

/* The table's attribute that a Var is, or NULL if it is none. */
Form_pg_attribute
gpurhh_heap_attribute(const HeapFeed *heap, Node *expr)
{
	TupleDesc	desc = RelationGetDescr(heap->scan->ss.ss_currentRelation);
	Var		   *var = (Var *) expr;
	Form_pg_attribute att;

	if (!IsA(expr, Var) ||
		var->varno != ((Scan *) heap->scan->ss.ps.plan)->scanrelid ||
		var->varattno <= 0 || var->varattno > desc->natts)
		return NULL;
	att = TupleDescAttr(desc, var->varattno - 1);
	if (att->attisdropped || att->atttypid != var->vartype)
		return NULL;
	return att;
}

static bool
find_column(Node *expr, bool only_null, int *column, VectorType *type,
			void *arg)
{
	FinderArg  *finder = arg;
	LoadSet    *set = finder->set;
	Form_pg_attribute att = gpurhh_heap_attribute(finder->heap, expr);
	int			bytes = 0;
	bool		pointer = false;
	int			digits;
	int			scale = -1;

	if (att == NULL)
		return false;
	if (only_null && att->attlen < 0)
		*type = VECTOR_ANY;
	else if (gpurhh_vector_type(att->atttypid, type))
	{
		pointer = *type == VECTOR_STRING || *type == VECTOR_BPCHAR;
		bytes = pointer ? sizeof(char *) : att->attlen;
	}
	else if (gpurhh_decimal_type(expr, &digits, &scale) && !only_null &&
			 digits <= GPURHH_DECIMAL128_DIGITS)
	{
		*type = digits <= GPURHH_DECIMAL_DIGITS ? VECTOR_DECIMAL :
			VECTOR_DECIMAL128;
		bytes = digits <= GPURHH_DECIMAL_DIGITS ? 8 : 16;
	}
	else if (only_null)
		*type = VECTOR_ANY;
	else
		return false;
	for (int i = 0; i < set->n_loads; i++)
	{
		/* those without memory are loaded into the block */
		if (set->loads[i].attribute == att->attnum - 1 &&
			set->loads[i].bytes == bytes &&
			(bytes == 0 || set->loads[i].to != NULL))
		{
			*column = i;
			return true;
		}
	}
	*column = add_load(finder->heap, set, att->attnum - 1, bytes, scale, true);
	set->loads[*column].pointer = pointer;
	return true;
}

/* Once all loads are known: describes the attributes. */
static void
finish_set(HeapFeed *heap, LoadSet *set)
{
	TupleDesc	desc = RelationGetDescr(heap->scan->ss.ss_currentRelation);
	int			offset = 0;

	for (int i = 0; i < set->n_loads; i++)
		set->n_attributes = Max(set->n_attributes, set->loads[i].attribute + 1);
	set->attributes = palloc0(sizeof(HeapAttribute) * Max(set->n_attributes, 1));
	set->first_varying = set->n_attributes;
	for (int a = 0; a < set->n_attributes; a++)
	{
		HeapAttribute *attribute = &set->attributes[a];
		Form_pg_attribute att = TupleDescAttr(desc, a);

		attribute->length = att->attlen;
		attribute->align = att->attalign;
		attribute->by_value = att->attbyval;
		attribute->first_load = -1;
		if (offset >= 0 && att->attlen > 0)
		{
			offset = att_align_nominal(offset, att->attalign);
			attribute->offset = offset;
			offset += att->attlen;
		}
		else
		{
			/* all behind this one have none */
			attribute->offset = offset;
			if (offset >= 0)
				set->first_varying = a;
			offset = -1;
		}
		attribute->missing = getmissingattr(desc, a + 1, &attribute->missing_null);
		if (!attribute->missing_null)
			attribute->missing = datumCopy(attribute->missing, att->attbyval,
										   att->attlen);
	}
	for (int i = 0; i < set->n_loads; i++)
	{
		HeapLoad   *load = &set->loads[i];
		HeapAttribute *attribute = &set->attributes[load->attribute];

		load->next = attribute->first_load;
		attribute->first_load = i;
	}
	set->vectors = palloc0(sizeof(Vector) * Max(set->n_loads, 1));
}

/* A column of strings; false: it is not one of the table. */
static bool
prepare_strings(HeapFeed *heap, HeapColumns *columns, HeapColumn *column, Expr *expr,
				int parameter)
{
	Form_pg_attribute att;

	/* a varchar as text, for example: the same bytes */
	while (IsA(expr, RelabelType))
		expr = ((RelabelType *) expr)->arg;
	att = gpurhh_heap_attribute(heap, (Node *) expr);
	if (att == NULL ||
		att->attlen != (column->encoding == GPU_ENC_NAME ? NAMEDATALEN : -1))
		return false;
	if (column->hash)
	{
		column->load = add_load(heap, &columns->set, att->attnum - 1, sizeof(char *), -1, true);
		columns->set.loads[column->load].pointer = true;
		return true;
	}
	column->attribute = att->attnum - 1;
	column->load = add_load(heap, &columns->set, att->attnum - 1,
							GPURHH_STRING_BYTES, -1, false);
	columns->set.loads[column->load].string =
		column->info->derivation;
	columns->set.loads[column->load].parameter = parameter;
	return true;
}

/* Notes that an expression is a small integer, or a boolean. */
static void
find_constant(HeapColumn *column, const Expr *expr)
{
	const Const *constant = (const Const *) expr;

	column->is_constant = IsA(expr, Const) && !constant->constisnull &&
		(constant->consttype == INT2OID || constant->consttype == INT4OID ||
		 constant->consttype == BOOLOID);
	if (column->is_constant)
		column->constant = constant->consttype == INT2OID ? DatumGetInt16(constant->constvalue) :
			constant->consttype == INT4OID ? DatumGetInt32(constant->constvalue) :
			DatumGetBool(constant->constvalue);
}

/* False: the column cannot be had, and *why says why. */
static bool
prepare_column(HeapFeed *heap, HeapColumns *columns, HeapColumn *column, Expr *expr,
			   GpuColumn how, const char **why)
{
	GpuEncoding encoding = how.encoding;
	const GpuEncodingInfo *info = &gpurhh_encodings[encoding];
	VectorType	type = info->vector;
	Form_pg_attribute att = gpurhh_heap_attribute(heap, (Node *) expr);
	FinderArg	finder = {heap, &columns->set};
	const char *reason;
	int			digits;

	column->encoding = encoding;
	column->info = info;
	column->load = -1;
	column->limb_of = -1;
	column->attribute = att != NULL ? att->attnum - 1 : -1;
	if (att == NULL || !gpurhh_decimal_type((Node *) expr, &digits, &column->scale))
		column->scale = -1;
	if (gpurhh_is_string(encoding) && !gpurhh_is_candidate(encoding) &&
		prepare_strings(heap, columns, column, expr, how.parameter))
		return true;
	if (att != NULL && att->attlen > 0 && info->derivation == DERIVED_WORD)
	{
		column->encode = true;
		column->load = add_load(heap, &columns->set, att->attnum - 1,
								att->attlen, -1, true);
		return true;
	}
	if (att != NULL && info->role != ROLE_FILTER && att->attlen == info->bytes)
	{
		/* by its bytes, as which a column that the keys determine is fed too */
		column->load = add_load(heap, &columns->set, att->attnum - 1,
								info->bytes, -1, false);
		return true;
	}
	column->expr = gpurhh_vector_compile(expr, &heap->scan->ss.ps,
										 heap->max_rows, find_column, &finder,
										 &reason);
	if (column->expr == NULL)
	{
		*why = psprintf("an expression %s", reason);
		return false;
	}
	column->computed = !IsA(expr, Var);
	find_constant(column, expr);
	if (encoding == GPU_ENC_DECIMAL && GPURHH_DECIMAL_LIMBS(how.parameter) > 1)
		type = VECTOR_DECIMAL128;
	if (gpurhh_vector_result_type(column->expr) != type)
	{
		*why = "an expression has another type than the column that is fed";
		return false;
	}
	return true;
}

/* Finds the column of the first limb, whose expression gives the other limbs too. */
static bool
find_limb_source(HeapFeed *heap, const GpuColumn *columns, int c)
{
	HeapColumn *column = &heap->fed.columns[c];

	if (gpurhh_encodings[columns[c].encoding].limb == 0)
		return false;
	for (int other = 0; other < c; other++)
	{
		if (columns[other].encoding == GPU_ENC_DECIMAL &&
			columns[other].attribute == columns[c].attribute)
		{
			column->encoding = columns[c].encoding;
			column->info = &gpurhh_encodings[columns[c].encoding];
			column->load = -1;
			column->limb_of = other;
			return true;
		}
	}
	elog(ERROR, "column of a limb without the first one");
	return false;				/* keep compiler quiet */
}

static HeapFeed *
create_feed(SeqScanState *scan, List *exprs, ResultState *above,
			int n_columns, const GpuColumn *columns, const char **why)
{
	HeapFeed   *heap = palloc0(sizeof(HeapFeed));
	Plan	   *plan = scan->ss.ps.plan;
	FinderArg	finder = {heap, &heap->filter_set};
	ListCell   *lc;

	heap->scan = scan;
	heap->above = above;
	heap->exprs = exprs;
	heap->given = memcpy(palloc(sizeof(GpuColumn) * Max(n_columns, 1)), columns,
						 sizeof(GpuColumn) * n_columns);
	heap->max_rows = MaxHeapTuplesPerPage;

	/*
	 * All of WHERE or nothing: core evaluates the conditions in an order that
	 * keeps row-level security's before those that could leak a row.
	 */
	heap->quals = palloc0(sizeof(VectorExpr *) * Max(list_length(plan->qual), 1));
	foreach(lc, plan->qual)
	{
		const char *reason;
		VectorExpr *qual = gpurhh_vector_compile(lfirst(lc), &scan->ss.ps,
												 heap->max_rows, find_column,
												 &finder, &reason);

		if (qual == NULL)
		{
			*why = psprintf("the filter %s", reason);
			return NULL;
		}
		heap->quals[heap->n_quals++] = qual;
	}
	finish_set(heap, &heap->filter_set);

	heap->fed.n = n_columns;
	heap->fed.columns = palloc0(sizeof(HeapColumn) * n_columns);
	for (int c = 0; c < n_columns; c++)
	{
		if (list_length(exprs) <= columns[c].attribute)
		{
			*why = "the scan returns fewer columns than are fed";
			return NULL;
		}
		if (find_limb_source(heap, columns, c))
			continue;
		/* is made of others once the block is full */
		heap->fed.columns[c].later = gpurhh_is_of_pair(columns[c].encoding);
		if (heap->fed.columns[c].later)
			continue;
		if (!prepare_column(heap, &heap->fed, &heap->fed.columns[c],
							list_nth(exprs, columns[c].attribute), columns[c],
							why))
			return NULL;
	}
	finish_set(heap, &heap->fed.set);

	heap->offsets = palloc(sizeof(OffsetNumber) * heap->max_rows);
	heap->data = palloc(sizeof(char *) * heap->max_rows);
	heap->at = palloc(sizeof(char *) * heap->max_rows);
	heap->active = palloc0(heap->max_rows);
	return heap;
}

/*
 * Makes a feed of expressions over the rows of child, whose pages it will read.
 * The expressions are the child's target list, or that of a Result above it.
 * Returns NULL if the rows have to be asked for one by one; then *why says why.
 * The feed is allocated in context and lives as long as the child does.
 */
HeapFeed *
gpurhh_heap_feed_create(PlanState *child, List *exprs, ResultState *above,
						int n_columns, const GpuColumn *columns,
						MemoryContext context, const char **why)
{
	SeqScanState *scan = (SeqScanState *) child;
	MemoryContext old;
	HeapFeed   *heap;

	if (!IsA(child, SeqScanState))
	{
		*why = "the child is not a sequential scan";
		return NULL;
	}
	if (scan->ss.ss_currentRelation->rd_tableam != GetHeapamTableAmRoutine())
	{
		*why = "the table is not a heap";
		return NULL;
	}
	/* the row that is rechecked is not the one in the table */
	if (child->state->es_epq_active != NULL)
	{
		*why = "a concurrently updated row is rechecked";
		return NULL;
	}
	old = MemoryContextSwitchTo(context);
	heap = create_feed(scan, exprs, above, n_columns, columns, why);
	MemoryContextSwitchTo(old);
	return heap;
}

/*
 * Says by which keys rows may be tested before they are fed: expressions like those of
 * gpurhh_heap_feed_create(), which are columns of the table.  Else the feed's rows are never
 * tested.
 */
void
gpurhh_heap_feed_add_keys(HeapFeed *heap, List *exprs, int n_columns,
						  const GpuColumn *columns, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	HeapColumns *keys = &heap->keys;
	Size		bytes = 0;
	bool		all = true;

	keys->columns = palloc0(sizeof(HeapColumn) * n_columns);
	for (int c = 0; c < n_columns && all; c++)
	{
		Node	   *expr = gpurhh_without_relabel(list_nth(exprs, columns[c].attribute));
		const char *why;

		keys->columns[c].hash = gpurhh_is_string(columns[c].encoding);
		all = gpurhh_heap_attribute(heap, expr) != NULL &&
			prepare_column(heap, keys, &keys->columns[c], (Expr *) expr, columns[c], &why);
		bytes += (Size) heap->max_rows * (gpurhh_encodings[columns[c].encoding].bytes + 1);
	}
	if (all)
	{
		finish_set(heap, &keys->set);
		/* parts of a block are padded */
		bytes += (2 * n_columns + 1) * 64 + heap->max_rows;
		gpurhh_feed_init(&heap->key_feed, n_columns, columns, bytes, heap->max_rows);
		Assert(heap->key_feed.capacity_rows == heap->max_rows);
		heap->key_base = (char *) TYPEALIGN(64, palloc0(bytes + 64));
		if (heap->key_feed.n_strings > 0)
			heap->untested = palloc(heap->max_rows);
		keys->n = n_columns;
	}
	MemoryContextSwitchTo(old);
}

/* From now on rows are tested so, if they can be; NULL: they are not. */
void
gpurhh_heap_feed_test(HeapFeed *heap, KeyTests *tests)
{
	heap->tests = heap->keys.n > 0 ? tests : NULL;
}

static void
reset_columns(HeapColumns *columns)
{
	for (int c = 0; c < columns->n; c++)
	{
		if (columns->columns[c].expr != NULL)
			gpurhh_vector_reset(columns->columns[c].expr);
	}
}

/*
 * Begins the scan as SeqNext() does; to be called before the first row, also
 * after a rescan.  Returns false if rows have to be asked for one by one this
 * time.
 */
bool
gpurhh_heap_feed_begin(HeapFeed *heap)
{
	ScanState  *ss = &heap->scan->ss;
	EState	   *estate = ss->ps.state;

	/* what ExecProcNode() would do first */
	if (ss->ps.chgParam != NULL)
		ExecReScan(&ss->ps);

	heap->n_rows = 0;
	heap->next_row = 0;
	heap->ended = false;
	gpurhh_heap_feed_end_cache(heap);
	for (int i = 0; i < heap->n_quals; i++)
		gpurhh_vector_reset(heap->quals[i]);
	reset_columns(&heap->fed);
	reset_columns(&heap->keys);

	if (estate->es_epq_active != NULL ||
		!ScanDirectionIsForward(estate->es_direction) ||
		!IsMVCCSnapshot(estate->es_snapshot))
		return false;
	if (ss->ss_currentScanDesc == NULL)
		ss->ss_currentScanDesc = table_beginscan(ss->ss_currentRelation,
												 estate->es_snapshot, 0, NULL);
	return (ss->ss_currentScanDesc->rs_flags & SO_ALLOW_PAGEMODE) != 0;
}

/* The table that is read. */
Relation
gpurhh_heap_feed_relation(HeapFeed *heap)
{
	return heap->scan->ss.ss_currentRelation;
}

/*
 * Before gpurhh_heap_feed_begin(): from now on this process reads those blocks of the
 * table that a parallel scan gives to it, and not those that the plan's scan would give, whether
 * that is parallel or not.  scan NULL: ends that, so that the plan's scan starts at the table's
 * beginning, or has given out nothing.
 */
void
gpurhh_heap_feed_share(HeapFeed *heap, ParallelTableScanDesc scan)
{
	ScanState  *ss = &heap->scan->ss;

	if (scan != NULL && ss->ps.plan->parallel_aware)
		heap->plan_scan = ss->ss_currentScanDesc;
	else if (ss->ss_currentScanDesc != NULL)
		table_endscan(ss->ss_currentScanDesc);
	if (scan != NULL)
		ss->ss_currentScanDesc = table_beginscan_parallel(ss->ss_currentRelation, scan);
	else
	{
		ss->ss_currentScanDesc = heap->plan_scan;
		heap->plan_scan = NULL;
	}
}

/* ---------- loading ---------- */

static inline HeapScanDesc
scan_desc(const HeapFeed *heap)
{
	return (HeapScanDesc) heap->scan->ss.ss_currentScanDesc;
}

static inline HeapTupleHeader
tuple_of(const HeapFeed *heap, int row)
{
	Page		page = BufferGetPage(heap->buffer);
	ItemId		item = PageGetItemId(page, heap->offsets[row]);

	return (HeapTupleHeader) PageGetItem(page, item);
}

/* None of the first n attributes is NULL or missing. */
static inline bool
has_attributes(HeapTupleHeader tuple, int n)
{
	if (unlikely(HeapTupleHeaderGetNatts(tuple) < n))
		return false;
	if (likely((tuple->t_infomask & HEAP_HASNULL) == 0))
		return true;
	for (int a = 0; a < n / 8; a++)
	{
		if (tuple->t_bits[a] != 0xff)
			return false;
	}
	/* a bit is 1 where the attribute is not NULL */
	return n % 8 == 0 ||
		(~tuple->t_bits[n / 8] & ((1 << (n % 8)) - 1)) == 0;
}

static inline void
store_decimal(LoadSet *set, HeapLoad *load, int row, const char *from)
{
	bool		has_scale;

	if (load->bytes == 8)
		has_scale = gpurhh_decimal_read(from, load->scale, 1,
										(int64 *) load->to + row);
	else
		has_scale = gpurhh_decimal_read128(from, load->scale,
										   (int128 *) load->to + row);
	if (unlikely(!has_scale))
		set->odd = true;
}

static inline bool
is_referred_to(const HeapLoad *load)
{
	return load->string != DERIVED_NOT || load->pointer || load->scale >= 0;
}

/*
 * Stores what is fed of a varlena or a name, such as a string's key.  Memory may
 * be read up to readable, also beyond the value.
 */
static inline void
store_referred(LoadSet *set, HeapLoad *load, int row, const char *from,
			   const char *readable)
{
	if (load->string != DERIVED_NOT)
		gpurhh_strings_add(set->strings, load->string, load->parameter,
						   (const struct varlena *) from, readable,
						   load->to + (Size) row * GPURHH_STRING_BYTES);
	else if (load->pointer)
		((const char **) load->to)[row] = from;
	else
		store_decimal(set, load, row, from);
}

#define LOAD_LOOP(T) \
	do { \
		T		   *pg_restrict to = (T *) load->to; \
		\
		for (int i = 0; i < n; i++) \
			to[i] = *(const T *) (data[i] + offset); \
	} while (0)

/* The same offset in n tuples. */
static void
load_fixed(LoadSet *set, HeapLoad *load, int offset, const char *const *data,
		   int n)
{
	if (is_referred_to(load))
	{
		for (int i = 0; i < n; i++)
			store_referred(set, load, i, data[i] + offset, data[i] + offset);
		return;
	}

	switch (load->bytes)
	{
		case 0:
			break;
		case 1:
			LOAD_LOOP(uint8);
			break;
		case 2:
			LOAD_LOOP(uint16);
			break;
		case 4:
			LOAD_LOOP(uint32);
			break;
		case 8:
			LOAD_LOOP(uint64);
			break;
		case 16:
			for (int i = 0; i < n; i++)
				memcpy(load->to + (Size) i * 16, data[i] + offset, 16);
			break;
		default:
			for (int i = 0; i < n; i++)
				memcpy(load->to + (Size) i * load->bytes, data[i] + offset,
					   load->bytes);
			break;
	}
}

static inline void
store_value(HeapLoad *load, int row, const char *from)
{
	switch (load->bytes)
	{
		case 0:
			break;
		case 1:
			load->to[row] = *from;
			break;
		case 2:
			((uint16 *) load->to)[row] = *(const uint16 *) from;
			break;
		case 4:
			((uint32 *) load->to)[row] = *(const uint32 *) from;
			break;
		case 8:
			((uint64 *) load->to)[row] = *(const uint64 *) from;
			break;
		default:
			memcpy(load->to + (Size) row * load->bytes, from, load->bytes);
			break;
	}
}

static inline void
store_null(HeapLoad *load, int row)
{
	load->nulls[row] = 1;
	load->any_null = true;
	/* keep uninitialized memory out of shared memory's readers */
	if (load->bytes > 0)
		memset(load->to + (Size) row * load->bytes, 0, load->bytes);
}

/* Stores the value of a column that was added after the tuple was stored. */
static void
store_missing(LoadSet *set, const HeapAttribute *attribute, int row)
{
	for (int i = attribute->first_load; i >= 0; i = set->loads[i].next)
	{
		HeapLoad   *load = &set->loads[i];

		if (attribute->missing_null)
			store_null(load, row);
		else if (is_referred_to(load))
			store_referred(set, load, row, DatumGetPointer(attribute->missing),
						   DatumGetPointer(attribute->missing));
		else if (load->bytes > 0)
		{
			Datum		value[2];	/* 16 bytes, aligned */

			if (attribute->by_value)
				store_att_byval(value, attribute->missing, attribute->length);
			else
				memcpy(value, DatumGetPointer(attribute->missing), load->bytes);
			store_value(load, row, (const char *) value);
		}
	}
}

/* Loads any tuple, as heap_deform_tuple() does. */
static void
load_tuple(LoadSet *set, HeapTupleHeader tuple, int row)
{
	const char *data = (const char *) tuple + tuple->t_hoff;
	bool		has_null = (tuple->t_infomask & HEAP_HASNULL) != 0;
	int			present = Min(HeapTupleHeaderGetNatts(tuple), set->n_attributes);
	bool		moved = false;	/* offsets no longer hold */
	int			a;
	uint32		offset = 0;

	for (a = 0; a < present; a++)
	{
		const HeapAttribute *attribute = &set->attributes[a];

		if (has_null && att_isnull(a, tuple->t_bits))
		{
			moved = true;
			for (int i = attribute->first_load; i >= 0; i = set->loads[i].next)
				store_null(&set->loads[i], row);
			continue;
		}
		if (!moved && attribute->offset >= 0 && attribute->length > 0)
			offset = attribute->offset;
		else if (attribute->length == -1)
			offset = att_align_pointer(offset, attribute->align, -1,
									   data + offset);
		else
			offset = att_align_nominal(offset, attribute->align);
		for (int i = attribute->first_load; i >= 0; i = set->loads[i].next)
		{
			HeapLoad   *load = &set->loads[i];

			if (is_referred_to(load))
				store_referred(set, load, row, data + offset, data + offset);
			else
				store_value(load, row, data + offset);
		}
		offset = att_addlength_pointer(offset, attribute->length,
									   data + offset);
	}
	for (; a < set->n_attributes; a++)
		store_missing(set, &set->attributes[a], row);
}

/* Does what load_fixed() does, of values that are at at[i]. */
static void
load_at(LoadSet *set, HeapLoad *load, const char *const *at, int n, const char *page_end)
{
	if (is_referred_to(load))
	{
		for (int i = 0; i < n; i++)
			store_referred(set, load, i, at[i], page_end);
		return;
	}
	load_fixed(set, load, 0, at, n);
}

static inline const char *
skip_padding(const char *at, char align)
{
	return (const char *) att_align_pointer((uintptr_t) at, align, -1, at);
}

static inline const char *
end_of_varlena(const char *value)
{
	return value + (likely(VARATT_IS_1B(value) && !VARATT_IS_1B_E(value)) ?
					VARSIZE_1B(value) : VARSIZE_ANY(value));
}

/*
 * Goes on to the end of a varlena in n tuples, and loads it.  Most are loaded to one place, and then what loads them
 * finds their ends, too.
 */
static void
walk_varlena(LoadSet *set, const HeapAttribute *attribute, const char **at, int n,
			 const char *page_end)
{
	HeapLoad   *load = attribute->first_load < 0 ? NULL : &set->loads[attribute->first_load];

	if (load == NULL)
	{
		for (int i = 0; i < n; i++)
			at[i] = end_of_varlena(skip_padding(at[i], attribute->align));
		return;
	}
	if (load->next < 0 && load->scale >= 0 && load->bytes == sizeof(int64))
	{
		if (unlikely(!gpurhh_decimal_read_column(at, n, attribute->align, page_end, load->scale,
												 (int64 *) load->to)))
			set->odd = true;
		return;
	}
	if (load->next < 0 && load->string != DERIVED_NOT)
	{
		gpurhh_strings_add_column(set->strings, load->string, load->parameter, at, n, attribute->align,
								  page_end, load->to);
		return;
	}
	for (int i = 0; i < n; i++)
		at[i] = skip_padding(at[i], attribute->align);
	for (; load != NULL; load = load->next < 0 ? NULL : &set->loads[load->next])
		load_at(set, load, at, n, page_end);
	for (int i = 0; i < n; i++)
		at[i] = end_of_varlena(at[i]);
}

/*
 * Loads the attributes from the first one of variable width on, of n tuples that
 * have all of them and no NULL among them.
 */
static void
load_walking(LoadSet *set, const char **at, const char *const *data, int n, const char *page_end)
{
	for (int i = 0; i < n; i++)
		at[i] = data[i] + set->attributes[set->first_varying].offset;
	for (int a = set->first_varying; a < set->n_attributes; a++)
	{
		const HeapAttribute *attribute = &set->attributes[a];
		const uint32 alignment = att_align_nominal(1, attribute->align);

		gpurhh_heap_step();
		if (attribute->length == -1)
		{
			walk_varlena(set, attribute, at, n, page_end);
			continue;
		}
		/* (tuples are aligned to what any type needs) */
		if (alignment > 1)
		{
			for (int i = 0; i < n; i++)
				at[i] = (const char *) TYPEALIGN(alignment, at[i]);
		}
		for (int i = attribute->first_load; i >= 0; i = set->loads[i].next)
			load_at(set, &set->loads[i], at, n, page_end);
		if (a == set->n_attributes - 1)
			break;
		for (int i = 0; i < n; i++)
			at[i] += attribute->length > 0 ? (Size) attribute->length : strlen(at[i]) + 1;
	}
}

/*
 * Loads n rows of the page, beginning with row first, to the start of the loads.
 * Returns false if one of them has a numeric without its declared scale; then
 * core has to evaluate these rows.
 */
static bool
load_rows(HeapFeed *heap, LoadSet *set, int first, int n)
{
	bool		same = true;

	set->odd = false;
	for (int i = 0; i < set->n_loads; i++)
		set->loads[i].any_null = false;
	if (heap->any_null || heap->least_natts < set->n_attributes)
	{
		for (int row = first; row < first + n && same; row++)
			same = has_attributes(tuple_of(heap, row), set->n_attributes);
	}
	if (same)
	{
		for (int i = 0; i < set->n_loads; i++)
		{
			HeapLoad   *load = &set->loads[i];

			if (load->attribute >= set->first_varying)
				continue;
			gpurhh_heap_step();
			load_fixed(set, load, set->attributes[load->attribute].offset,
					   heap->data + first, n);
		}
		if (set->first_varying < set->n_attributes)
			load_walking(set, heap->at, heap->data + first, n,
						 BufferGetPage(heap->buffer) + BLCKSZ);
	}
	else
	{
		for (int i = 0; i < set->n_loads; i++)
			memset(set->loads[i].nulls, 0, n);
		for (int row = 0; row < n; row++)
			load_tuple(set, tuple_of(heap, first + row), row);
	}
	for (int i = 0; i < set->n_loads; i++)
	{
		set->vectors[i].values = set->loads[i].to;
		set->vectors[i].nulls = set->loads[i].any_null ? set->loads[i].nulls : NULL;
	}
	return !set->odd;
}

/* ---------- rows ---------- */

/* Puts a row of the page into the scan's slot, for core to evaluate. */
static void
store_row(HeapFeed *heap, int row)
{
	HeapScanDesc desc = scan_desc(heap);
	ScanState  *ss = &heap->scan->ss;
	HeapTuple	tuple = &desc->rs_ctup;
	Page		page = BufferGetPage(heap->buffer);
	ItemId		item = PageGetItemId(page, heap->offsets[row]);

	tuple->t_data = (HeapTupleHeader) PageGetItem(page, item);
	tuple->t_len = ItemIdGetLength(item);
	ItemPointerSet(&tuple->t_self, BufferGetBlockNumber(heap->buffer), heap->offsets[row]);
	ExecStoreBufferHeapTuple(tuple, ss->ss_ScanTupleSlot, heap->buffer);
	ResetExprContext(ss->ps.ps_ExprContext);
	ss->ps.ps_ExprContext->ecxt_scantuple = ss->ss_ScanTupleSlot;
}

/* The row that a Result makes from a row below it; valid until its next one. */
TupleTableSlot *
gpurhh_project_above(ResultState *result, TupleTableSlot *slot)
{
	ExprContext *econtext = result->ps.ps_ExprContext;

	ResetExprContext(econtext);
	econtext->ecxt_outertuple = slot;
	return ExecProject(result->ps.ps_ProjInfo);
}

/* Core's projection of the row that is in the scan's slot and has passed WHERE. */
static TupleTableSlot *
project_row(HeapFeed *heap)
{
	ScanState  *ss = &heap->scan->ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;

	if (ss->ps.ps_ProjInfo != NULL)
		slot = ExecProject(ss->ps.ps_ProjInfo);
	if (heap->above != NULL)
		slot = gpurhh_project_above(heap->above, slot);
	return slot;
}

static void
clear_row(HeapFeed *heap)
{
	ExecClearTuple(heap->scan->ss.ss_ScanTupleSlot);
	ResetExprContext(heap->scan->ss.ps.ps_ExprContext);
}

/*
 * Has core evaluate WHERE for the page's rows.  A row that passes is projected
 * before WHERE looks at the next row, because core would raise an error of the
 * projection before one of the next row's WHERE.
 */
static void
filter_by_row(HeapFeed *heap)
{
	ScanState  *ss = &heap->scan->ss;

	for (int row = 0; row < heap->n_rows; row++)
	{
		CHECK_FOR_INTERRUPTS();
		store_row(heap, row);
		heap->active[row] = ExecQual(ss->ps.qual, ss->ps.ps_ExprContext);
		if (heap->active[row])
			(void) project_row(heap);
	}
	clear_row(heap);
}

/* Drops those of the page's rows that are not active. */
static void
keep_active(HeapFeed *heap)
{
	int			kept = 0;

	for (int row = 0; row < heap->n_rows; row++)
	{
		heap->offsets[kept] = heap->offsets[row];
		heap->data[kept] = heap->data[row];
		kept += heap->active[row];
	}
	heap->n_rows = kept;
}

/* Drops those of the page's rows that do not pass WHERE. */
static void
filter_rows(HeapFeed *heap)
{
	PlanState  *ps = &heap->scan->ss.ps;
	int			n = heap->n_rows;
	int			n_left = n;
	bool		known;

	if (n == 0)
		return;
	memset(heap->active, 1, n);
	known = load_rows(heap, &heap->filter_set, 0, n);
	for (int i = 0; known && i < heap->n_quals && n_left > 0; i++)
		known = gpurhh_vector_filter(heap->quals[i], heap->filter_set.vectors, n,
									 heap->active, &n_left);
	if (!known)
		filter_by_row(heap);
	keep_active(heap);
	InstrCountFiltered1(ps, n - heap->n_rows);
}

/*
 * Finds where the attributes of each of the page's rows start, whether any row has
 * a NULL, and how many attributes the row with the fewest has.
 */
static void
find_data(HeapFeed *heap, Page page)
{
	int			n = heap->n_rows;
	const OffsetNumber *offsets = heap->offsets;
	const char **data = heap->data;
	uint16		any_mask = 0;
	int			least_natts = MaxHeapAttributeNumber;

	for (int row = 0; row < n; row++)
	{
		HeapTupleHeader tuple = (HeapTupleHeader)
			PageGetItem(page, PageGetItemId(page, offsets[row]));

		any_mask |= tuple->t_infomask;
		least_natts = Min(least_natts, HeapTupleHeaderGetNatts(tuple));
		data[row] = (const char *) tuple + tuple->t_hoff;
	}
	heap->any_null = (any_mask & HEAP_HASNULL) != 0;
	heap->least_natts = least_natts;
}

/* Goes on to the next page that has rows to be fed; false at the end. */
static bool
next_page(HeapFeed *heap)
{
	HeapScanDesc desc = scan_desc(heap);

	do
	{
		Page		page;
		int			n;

		heap->n_rows = 0;
		heap->next_row = 0;
		/* whoever wants those that are in the cache takes them in the end */
		if (heap->cached != NULL)
		{
			heap->cached->most_pages = UINT32_MAX;
			heap->cached->may_trust = false;
		}
		if (gpurhh_heap_next_page(desc, heap->dense, heap->cached) != HEAP_PAGE)
			return false;
		heap->buffer = desc->rs_cbuf;
		page = BufferGetPage(heap->buffer);
		n = desc->rs_ntuples;
		gpurhh_count_heap_tuples(heap->scan->ss.ss_currentRelation, n);
		heap->dense = n >= DENSE_TUPLES;
		memcpy(heap->offsets, desc->rs_vistuples, sizeof(OffsetNumber) * n);
		heap->n_rows = n;
		find_data(heap, page);
		if (heap->n_quals > 0)
			filter_rows(heap);
	} while (heap->n_rows == 0);
	return true;
}

/* ---------- feeding ---------- */

/* Values by reference, n of them as they were loaded, into the block. */
static void
encode_values(const Vector *loaded, const HeapLoad *load,
			  const FeedColumn *column, char *to, int n)
{
	for (int i = 0; i < n; i++)
		((uint64 *) to)[i] =
			loaded->nulls != NULL && loaded->nulls[i] ? 0 :
			gpurhh_encode_reference(column->encoding, column->parameter,
									load->to + (Size) i * load->bytes);
}

/* Stores 0 where a result is NULL: a filter that is NULL is not true; and see store_null(). */
static void
clear_nulls(const Vector *result, int bytes, char *to, int n)
{
	if (result->nulls == NULL)
		return;
	for (int i = 0; i < n; i++)
	{
		if (result->nulls[i])
			memset(to + (Size) i * bytes, 0, bytes);
	}
}

/* Stores n results of an expression in column c of the block. */
static void
store_results(const HeapColumn *from, Feed *feed, int c, char *to, int n)
{
	const FeedColumn *column = &feed->columns[c];
	const int	limb = from->info->limb;

	if (from->info->derivation != DERIVED_LIMB || GPURHH_DECIMAL_LIMBS(column->parameter) == 1)
		memcpy(to, from->result.values, (Size) n * column->bytes);
	else if (limb < from->n_limbs)
		gpurhh_decimal_split(from->result.values, n, from->n_limbs, limb, (int64 *) to);
	else
	{
		gpurhh_feed_zeros(feed, c, n);
		return;
	}
	clear_nulls(&from->result, column->bytes, to, n);
}

/* Stores the string keys of n results of an expression in the block. */
static void
add_strings(const Vector *result, GpuDerivation derivation, Feed *feed,
			int column, int n)
{
	const struct varlena *const *strings = result->values;
	char	   *to = feed->base + feed->columns[column].values_offset +
		(Size) feed->n_rows * GPURHH_STRING_BYTES;

	for (int i = 0; i < n; i++, to += GPURHH_STRING_BYTES)
	{
		if (result->nulls != NULL && result->nulls[i])
			memset(to, 0, GPURHH_STRING_BYTES);
		else
			gpurhh_strings_add(&feed->strings, derivation,
							   feed->columns[column].parameter, strings[i],
							   (const char *) strings[i], to);
	}
}

/* Adds those strings of n rows that may be the least or greatest of their groups. */
static void
add_candidates(HeapFeed *heap, Feed *feed, int n)
{
	const uint8 *columns;
	const Vector *strings[RHH_MAX_KEYS];
	int			n_columns = gpurhh_candidates_columns(feed->candidates, &columns);

	for (int i = 0; i < n_columns; i++)
		strings[i] = &heap->fed.columns[columns[i]].result;
	gpurhh_candidates_add(feed->candidates, feed, n, strings);
}

/*
 * Stores n numbers that are fed wider than they are, or at a greater scale, in the block.
 * Returns false if one does not fit.
 */
static bool
store_converted(const Vector *result, const FeedColumn *column, uint32 row, char *base, int n)
{
	char	   *to = base + column->values_offset + (Size) row * column->bytes;

	if (column->step == FEED_RESCALED)
		return gpurhh_decimal_rescale(result->values, result->nulls, n,
									  GPURHH_RESCALED_EXPONENT(column->parameter),
									  (int64 *) to);
	gpurhh_widen(column->encoding, result->values, n, to);
	clear_nulls(result, column->bytes, to, n);
	return true;
}

static inline bool
is_converted(const FeedColumn *column)
{
	return column->step == FEED_WIDENED || column->step == FEED_RESCALED;
}

/* Feeds n rows from next_row on by core's projection. */
static void
feed_by_row(HeapFeed *heap, Feed *feed, int n)
{
	for (int i = 0; i < n; i++)
	{
		store_row(heap, heap->next_row + i);
		gpurhh_feed_or_leave(feed, project_row(heap));
	}
	clear_row(heap);
}

/* Of n decimals of one limb. */
static bool
any_watched(const uint64 *watched, const int64 *values, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (gpurhh_is_watched(watched, values[i]))
			return true;
	}
	return false;
}

/*
 * Computes the columns to be fed of n loaded rows.  Their strings do not go into
 * the dictionary here.  Returns false if core has to evaluate the rows.
 */
static bool
compute_columns(HeapColumns *columns, Feed *feed, int n)
{
	LoadSet    *set = &columns->set;

	for (int c = 0; c < columns->n; c++)
	{
		HeapColumn *column = &columns->columns[c];
		int			n_limbs = GPURHH_DECIMAL_LIMBS(feed->columns[c].parameter);

		gpurhh_heap_step();
		if (column->later)
			continue;
		if (column->limb_of >= 0)
		{
			column->result = columns->columns[column->limb_of].result;
			column->n_limbs = columns->columns[column->limb_of].n_limbs;
		}
		else if (column->expr == NULL)
			column->result = set->vectors[column->load];
		else if (!gpurhh_vector_evaluate(column->expr, set->vectors, n, NULL,
										 &column->result))
			return false;
		else if (feed->columns[c].step == FEED_BEFORE)
			add_strings(&column->result,
						column->info->derivation, feed, c, n);
		else if (is_converted(&feed->columns[c]))
		{
			if (!store_converted(&column->result, &feed->columns[c], feed->n_rows,
								 feed->base, n))
				return false;
		}
		else if (column->encoding == GPU_ENC_DECIMAL && n_limbs > 1)
		{
			column->n_limbs = gpurhh_decimal_limbs_needed(column->result.values, n, n_limbs);
			if (column->n_limbs == 0)
				return false;
		}
		else if (column->encoding == GPU_ENC_DECIMAL && unlikely(feed->watched != NULL) &&
				 !feed->columns[c].is_key && any_watched(feed->watched, column->result.values, n))
			return false;
		else if (column->encoding == GPU_ENC_DECIMAL && column->computed &&
				 feed->columns[c].is_key &&
				 !gpurhh_decimal_fits_key(column->result.values, n))
			return false;
	}
	return true;
}

/* Of a string of the table, without detoasting it; false: that is not known. */
static inline bool
hash_string(const char *value, GpuDerivation derivation, uint64 *hash)
{
	const char *data = value;
	uint32		length;

	if (derivation == DERIVED_NAME)
		length = strnlen(value, NAMEDATALEN);
	else if (VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value))
		return false;
	else
	{
		data = VARDATA_ANY(value);
		length = VARSIZE_ANY_EXHDR(value);
	}
	if (derivation == DERIVED_UNPADDED)
		length = gpurhh_string_without_blanks(data, length);
	*hash = gpurhh_key_filter_string(data, length);
	return true;
}

/* What n strings are known by, in the first half of their columns. */
static void
hash_strings(const Vector *strings, GpuDerivation derivation, uint64 *to, uint8 *untested,
			 int n)
{
	const char *const *values = strings->values;

	for (int i = 0; i < n; i++)
	{
		if (strings->nulls == NULL || !strings->nulls[i])
			untested[i] |= !hash_string(values[i], derivation, &to[2 * i]);
	}
}

/*
 * Loads n rows of the page, beginning with row first, straight into the feed's block or
 * beside it, and computes what is computed of them.  Returns false if core has to evaluate
 * the rows.
 */
static bool
load_columns(HeapFeed *heap, HeapColumns *columns, Feed *feed, int first, int n)
{
	LoadSet    *set = &columns->set;

	for (int c = 0; c < columns->n; c++)
	{
		const HeapColumn *from = &columns->columns[c];
		const FeedColumn *column = &feed->columns[c];

		if (!from->later && from->load >= 0 && !from->encode && !from->hash)
			set->loads[from->load].to = feed->base +
				column->values_offset + (Size) feed->n_rows * column->bytes;
	}
	set->strings = &feed->strings;
	return load_rows(heap, set, first, n) && compute_columns(columns, feed, n);
}

/* Stores what is not in the block yet of n rows that load_columns() has loaded. */
static void
store_columns(HeapColumns *columns, Feed *feed, uint8 *untested, int n)
{
	for (int c = 0; c < columns->n; c++)
	{
		HeapColumn *from = &columns->columns[c];
		const GpuEncodingInfo *info = from->info;
		FeedColumn *column = &feed->columns[c];
		char	   *to = feed->base + column->values_offset +
			(Size) feed->n_rows * column->bytes;

		if (from->later)
			continue;
		if (from->encode)
			encode_values(&from->result, &columns->set.loads[from->load], column, to, n);
		else if (from->hash)
			hash_strings(&from->result, info->derivation, (uint64 *) to, untested, n);
		else if (from->load < 0 && column->step != FEED_BEFORE &&
				 column->step != FEED_LATER && !is_converted(column))
			store_results(from, feed, c, to, n);
		if (column->step == FEED_4_ORDERED)
			gpurhh_order_4_bytes(column->order, to, n);
		else if (column->step == FEED_8_ORDERED)
			gpurhh_order_8_bytes(column->order, to, n);
		if (from->result.nulls != NULL && info->role == ROLE_ANY)
			gpurhh_feed_nulls(feed, c, from->result.nulls, n);
	}
}

/* Feeds as many rows of the page as the block has room for; returns how many. */
static int
feed_rows(HeapFeed *heap, Feed *feed)
{
	int			n = Min((uint32) (heap->n_rows - heap->next_row),
						feed->capacity_rows - feed->n_rows);
	bool		known = load_columns(heap, &heap->fed, feed, heap->next_row, n);
	uint32		hash;

	/* rows that are to be deferred are handed over as rows, too */
	if (!gpurhh_strings_finish(&feed->strings, &hash) || !known)
	{
		feed_by_row(heap, feed, n);
		return n;
	}
	store_columns(&heap->fed, feed, NULL, n);
	if (feed->candidates != NULL)
		add_candidates(heap, feed, n);
	feed->n_rows += n;
	return n;
}

/* ---------- keys ---------- */

/* Drops those of the page's rows that cannot have a match; returns how many. */
static int
test_rows(HeapFeed *heap)
{
	Feed	   *feed = &heap->key_feed;
	int			n = heap->n_rows;

	if (!gpurhh_key_tests_begin(heap->tests, n))
		return 0;
	gpurhh_feed_start(feed, heap->key_base);
	/* a row with a numeric that is not as declared may have to be left over */
	if (!load_columns(heap, &heap->keys, feed, 0, n))
		return 0;
	if (heap->untested != NULL)
		memset(heap->untested, 0, n);
	store_columns(&heap->keys, feed, heap->untested, n);
	feed->n_rows = n;
	memset(heap->active, 1, n);
	gpurhh_key_tests_run(heap->tests, feed, heap->untested, heap->active);
	if (memchr(heap->active, 0, n) != NULL)
		keep_active(heap);
	return n - heap->n_rows;
}

/*
 * Fills the feed's block.  Returns true if there are more rows, and the block is
 * full or has not been started; false if all rows are in blocks.  whole_pages, if not
 * 0: the block has been started, and is full after so many pages, or if a page may have more rows
 * than there is room for.
 *
 * Between calls a page may stay pinned, as it does between two rows of core's
 * scan, but no lock is held.  So the caller may wait for a block.
 */
bool
gpurhh_heap_feed_fill(HeapFeed *heap, Feed *feed, uint32 whole_pages)
{
	Instrumentation *instrument = heap->scan->ss.ps.instrument;
	uint64		n_rows = 0;		/* that the scan would return */
	uint32		n_pages = 0;

	if (heap->ended)
		return false;
	if (instrument)
		InstrStartNode(instrument);
	for (;;)
	{
		if (heap->next_row == heap->n_rows)
		{
			if (whole_pages > 0 &&
				(n_pages++ == whole_pages || feed->n_rows + heap->max_rows > feed->capacity_rows))
				break;
			if (!next_page(heap))
			{
				heap->ended = true;
				break;
			}
			if (heap->tests != NULL)
				n_rows += test_rows(heap);
			if (heap->n_rows == 0)
				continue;
		}
		if (feed->base == NULL || feed->n_rows == feed->capacity_rows)
			break;
		{
			int			n = feed_rows(heap, feed);

			heap->next_row += n;
			n_rows += n;
		}
	}
	if (instrument)
		InstrStopNode(instrument, (double) n_rows);
	return !heap->ended;
}

/* ---------- pages for a device ---------- */

/* Have all pages been read? */
bool
gpurhh_heap_feed_has_ended(const HeapFeed *heap)
{
	return heap->ended;
}

/* Are there rows of a page that have been read, and are not in a block yet? */
bool
gpurhh_heap_feed_is_amid(const HeapFeed *heap)
{
	return heap->next_row < heap->n_rows;
}

/* Marks the line pointers of n visible tuples, which are in ascending order. */
static void
mark_visible(rhh_page *page, const OffsetNumber *offsets, int n)
{
	uint64		word = 0;
	uint32		at = 0;

	if (offsets[n - 1] == n)
	{
		/* 1 to n */
		for (int w = 0; w < n / 64; w++)
			page->visible[w] = ~UINT64CONST(0);
		if (n % 64 > 0)
			page->visible[n / 64] = (UINT64CONST(1) << n % 64) - 1;
		return;
	}
	for (int i = 0; i < n; i++)
	{
		const uint32 item = offsets[i] - 1;

		if (item / 64 != at)
		{
			page->visible[at] = word;
			at = item / 64;
			word = 0;
		}
		word |= UINT64CONST(1) << item % 64;
	}
	page->visible[at] = word;
}

/*
 * From now on a device reads pages, which stay pinned until it has, about so many at a time.  Core reads a large table's pages that
 * are not in shared buffers by a ring of 256 kB, or some more, and where all of that have pins takes any buffer instead: so a table of 1.5
 * times the buffers drove all of its pages out that were there, the next time again, and those of everybody else.  The scan gets a larger ring
 * (gpurhh_ring()); core's own read stream, from 17 on, keeps the one before.  To be called between gpurhh_heap_feed_begin() and
 * the first page.
 */
void
gpurhh_heap_feed_hold_pages(HeapFeed *heap, int n_pages)
{
	HeapScanDesc desc = scan_desc(heap);
	MemoryContext old_context;

	/* a scan that is begun anew has it already */
	if (desc->rs_strategy == NULL || desc->rs_strategy == heap->ring)
		return;
	old_context = MemoryContextSwitchTo(GetMemoryChunkContext(desc));
	heap->ring = desc->rs_strategy = gpurhh_ring(n_pages);
	MemoryContextSwitchTo(old_context);
}

/*
 * From now on blocks of which the device has copies, with so many attributes of each row, are left out, see
 * gpurhh_heap_feed_cached().  To be called between gpurhh_heap_feed_begin() and the first page.
 */
void
gpurhh_heap_feed_use_cache(HeapFeed *heap, uint8 n_attributes)
{
	Assert(heap->cached == NULL);
	heap->cached = gpurhh_cached_pages_create(scan_desc(heap), n_attributes, GetMemoryChunkContext(heap));
}

/* The blocks that have been left out so far, which the caller may take; NULL: none are. */
CachedPages *
gpurhh_heap_feed_cached(HeapFeed *heap)
{
	return heap->cached;
}

/* None are left out any more, and those that have been the caller has seen to. */
void
gpurhh_heap_feed_end_cache(HeapFeed *heap)
{
	if (heap->cached != NULL)
		gpurhh_cached_pages_end(heap->cached);
	heap->cached = NULL;
}

/* Notes that the page that has been read last, which is page p of a batch, may be put into the cache. */
static void
note_for_cache(const CachedPages *cached, BlockNumber block, PagesToCache *to, uint32 p)
{
	CacheRequest *request = to->request;
	CacheRef   *last = request->n_refs > 0 ? &request->refs[request->n_refs - 1] : NULL;
	XLogRecPtr	lsn;

	to->blocks[p] = InvalidBlockNumber;
	if (!gpurhh_cached_pages_vouch(cached, block, &lsn))
		return;
	if (last == NULL || last->chunk != block / GPURHH_CACHE_PAGES)
	{
		last = &request->refs[request->n_refs++];
		memset(last, 0, sizeof(CacheRef));
		last->chunk = block / GPURHH_CACHE_PAGES;
		last->lsn = lsn;
	}
	/* the map has been looked at once more, in the middle of a chunk */
	if (last->lsn != lsn)
		return;
	last->pages |= UINT32_C(1) << block % GPURHH_CACHE_PAGES;
	to->blocks[p] = block;
}

/*
 * Goes on to the next pages, for a device to read: at most most_pages of them, with at most most_rows
 * visible tuples, which is more than a page can have.  The caller has to release a pin of each, whose
 * number is that of its buffer, from 0.  Returns how many there are; 0: there are no more, or enough
 * have been left out (most_cached).  to gets those that may be put into the cache; NULL: none may.  Of those whose rows
 * the device is to find, these are not counted yet but for *n_rows.
 */
uint32
gpurhh_heap_feed_pages(HeapFeed *heap, rhh_page *pages, uint32 most_pages, uint32 most_rows,
					   uint32 most_cached, PagesToCache *to, uint32 *n_rows)
{
	HeapScanDesc desc = scan_desc(heap);
	Instrumentation *instrument = heap->scan->ss.ps.instrument;
	uint32		n_pages = 0;

	*n_rows = 0;
	Assert(heap->next_row == heap->n_rows);
	if (heap->ended)
		return 0;
	if (instrument)
		InstrStartNode(instrument);
	if (heap->cached != NULL)
	{
		heap->cached->most_pages = most_cached;
		heap->cached->may_trust = to != NULL && to->page_rows > 0;
	}
	while (n_pages < most_pages && *n_rows + heap->max_rows <= most_rows)
	{
		rhh_page   *page = &pages[n_pages];
		HeapNext	next = gpurhh_heap_next_page(desc, false, heap->cached);
		int			n;

		heap->ended = next == HEAP_ENDED;
		if (next != HEAP_PAGE)
			break;
		if (heap->cached != NULL && heap->cached->unseen)
		{
			if (!BufferIsValid(desc->rs_cbuf))
				to->pins[n_pages] = heap->cached->buffer;
			memset(page, 0, sizeof(rhh_page));
			page->number = heap->cached->buffer - 1;
			page->all_visible = 1;
			/* the first one of a batch leaves room for one that is full */
			n = to->page_rows;
			if (to->n_thought == 0)
				n += Min(heap->max_rows, most_rows - *n_rows - n);
			to->n_thought += n;
		}
		else
		{
			n = desc->rs_ntuples;
			gpurhh_count_heap_tuples(heap->scan->ss.ss_currentRelation, n);
			if (n == 0)
				continue;
			memset(page, 0, sizeof(rhh_page));
			page->number = desc->rs_cbuf - 1;
			page->n_rows = n;
			page->first_row = *n_rows;
			mark_visible(page, desc->rs_vistuples, n);
		}
		if (to != NULL)
			note_for_cache(heap->cached, desc->rs_cblock, to, n_pages);
		/* the scan's pin is the batch's from now on */
		desc->rs_cbuf = InvalidBuffer;
		*n_rows += n;
		n_pages++;
	}
	if (to != NULL)
		gpurhh_cached_pages_confirm(heap->cached, to->request, to->blocks, n_pages);
	if (instrument)
		InstrStopNode(instrument, (double) (*n_rows - (to != NULL ? to->n_thought : 0)));
	return n_pages;
}

/* So many rows come out of the scan of pages that were left out. */
void
gpurhh_heap_feed_count_cached(HeapFeed *heap, uint64 n)
{
	Instrumentation *instrument = heap->scan->ss.ps.instrument;

	gpurhh_count_heap_tuples(heap->scan->ss.ss_currentRelation, n);
	if (instrument)
	{
		InstrStartNode(instrument);
		InstrStopNode(instrument, (double) n);
	}
}

/*
 * Pins the page of a block that was left out, of which the device could not read the copy, or has refused rows,
 * for gpurhh_heap_feed_take_page(): page gets the buffer's number, and of a copy that was not read the
 * tuples that are visible.  Returns how many of these there are.
 */
uint32
gpurhh_heap_feed_pin_block(HeapFeed *heap, BlockNumber block, rhh_page *page)
{
	HeapScanDesc desc = scan_desc(heap);
	int			n;

	page->number = gpurhh_heap_read_block(desc, block) - 1;
	if (page->bad == RHH_PAGE_REFUSED)
		return 0;				/* the others are in the map */
	n = desc->rs_ntuples;
	memset(page->visible, 0, sizeof(page->visible));
	if (n > 0)
		mark_visible(page, desc->rs_vistuples, n);
	return n;
}

/* So many rows that gpurhh_heap_feed_pages() has counted do not come out of the scan. */
static void
uncount_rows(HeapFeed *heap, uint64 n)
{
	Instrumentation *instrument = heap->scan->ss.ps.instrument;

	if (instrument)
		instrument->tuplecount -= n;
}

/*
 * The rows of a page that a device could not read are the next to be fed.  The caller keeps it pinned
 * until it has asked gpurhh_heap_feed_page_rows() for all of them.  Returns how many WHERE has dropped.
 */
uint64
gpurhh_heap_feed_take_page(HeapFeed *heap, const rhh_page *page)
{
	int			n = 0;

	Assert(heap->next_row == heap->n_rows);
	heap->buffer = page->number + 1;
	for (uint32 item = 0; item < RHH_PAGE_ITEMS; item++)
	{
		if ((page->visible[item / 64] >> item % 64) & 1)
			heap->offsets[n++] = item + 1;
	}
	heap->next_row = 0;
	heap->n_rows = n;
	find_data(heap, BufferGetPage(heap->buffer));
	if (heap->n_quals > 0)
		filter_rows(heap);
	uncount_rows(heap, n - heap->n_rows);
	return n - heap->n_rows;
}

/* The device has dropped n rows of pages, because of WHERE. */
void
gpurhh_heap_feed_dropped(HeapFeed *heap, uint64 n)
{
	InstrCountFiltered1(&heap->scan->ss.ps, n);
	uncount_rows(heap, n);
}

/* Feeds rows of such a page.  Returns true if there are more, and the block is full, or has not been
 * started. */
bool
gpurhh_heap_feed_page_rows(HeapFeed *heap, Feed *feed)
{
	while (heap->next_row < heap->n_rows)
	{
		if (feed->base == NULL || feed->n_rows == feed->capacity_rows)
			return true;
		heap->next_row += feed_rows(heap, feed);
	}
	return false;
}
