/*
 * feed.c
 *		Rows that the device makes of another table's groups (map_feed).
 *
 * A first table is filled, and its groups are read.  The rows that should come of them
 * are written down here, by code that shares nothing with the devices', and a second
 * table is fed by the device.  Its run compares what comes out with those rows, or with what
 * a program of the second table makes of them (program_reference.c).
 */
#include "join_plan.h"

/* The digits of a number of n words to base 2^64, each signed. */
static void
signed_digits(const uint64_t *words, uint32_t n, int64_t *digits)
{
	bool		borrowed = false;	/* the digit before was negative: 1 more here */

	for (uint32_t i = 0; i < n; i++)
	{
		unsigned __int128 digit = (unsigned __int128) words[i] + (borrowed ? 1 : 0);

		digits[i] = (int64_t) (uint64_t) digit;
		borrowed = digit >= (unsigned __int128) 1 << 63;
	}
}

/* One column of the row of a group. */
static void
expect_value(data *data, uint32_t c, uint64_t row, const rhh_row_spec *rows, uint32_t set,
			 const uint64_t *group)
{
	const rhh_row_column *column = &rows->columns[c];
	const uint64_t *at = group + column->word;
	bool		key_null = (group[0] & UINT64_C(1) << column->key) != 0;
	int64_t		digits[3];

	data->nulls[c][row] = column->null_word != 0 && group[column->null_word] == 0;
	switch (column->kind)
	{
		case RHH_ROW_KEY:
			data->nulls[c][row] = key_null ||
				(rows->outside[set] & UINT64_C(1) << column->key) != 0;
			put_value(data, c, row, at[0], at[data->d->spec.column_bytes[c] == 16]);
			break;
		case RHH_ROW_KEY_IS_NULL:
			data->nulls[c][row] = key_null;
			break;
		case RHH_ROW_SET:
			put_value(data, c, row, rows->first_set + set, 0);
			break;
		case RHH_ROW_WORD:
			put_value(data, c, row, at[0], at[data->d->spec.column_bytes[c] == 16]);
			break;
		case RHH_ROW_DIGIT1:
			signed_digits(at, 2, digits);
			put_value(data, c, row, (uint64_t) digits[1], 0);
			break;
		case RHH_ROW_DIGIT2:
			signed_digits(at, 3, digits);
			put_value(data, c, row, (uint64_t) digits[2], 0);
			break;
		case RHH_ROW_ANY:
			data->nulls[c][row] = at[0] == 0;
			put_value(data, c, row, at[1], data->d->spec.column_bytes[c] == 16 ? at[2] : 0);
			break;
		case RHH_ROW_NULL:
			data->nulls[c][row] = 1;
			break;
	}
}

/* All rows that should come of the groups, set by set. */
static data *
expect_rows(const def *d, const rhh_row_spec *rows, const map *groups)
{
	data	   *data = make_data(d, (uint64_t) rows->n_sets * groups->n_groups, 1);

	for (uint32_t set = 0; set < rows->n_sets; set++)
		for (uint32_t g = 0; g < groups->n_groups; g++)
			for (uint32_t c = 0; c < d->spec.n_columns; c++)
				expect_value(data, c, (uint64_t) set * groups->n_groups + g, rows, set,
							 map_group(groups, g));
	return data;
}

/* ---------- a second table of a first one's groups ---------- */

/* How a second table is made of a first one. */
typedef struct level
{
	def			d;
	rhh_row_spec rows;
} level;

/* A column of the second table's rows; returns its number. */
static int
level_column(level *level, rhh_row_kind kind, uint32_t bytes, uint32_t key, uint32_t word)
{
	int			c = def_column(&level->d, bytes, GEN_CUSTOM, 0, 1);

	level->rows.columns[c] = (rhh_row_column){
		.kind = kind, .key = (uint8_t) key, .part = -1, .word = word
	};
	return c;
}

/*
 * A second table that groups the first one's groups by each of the sets, whose keys are
 * bits: all of its keys, the set's number, and states over all of its states.
 */
static void
level_init(level *level, const def *first, const uint64_t *sets, uint32_t n_sets)
{
	const rhh_map_spec *spec = &first->spec;
	uint32_t	word = 1;

	memset(level, 0, sizeof(*level));
	def_init(&level->d);
	level->rows.n_sets = n_sets;
	level->rows.first_set = 3;
	for (uint32_t set = 0; set < n_sets; set++)
		level->rows.outside[set] = ~sets[set] & ((UINT64_C(1) << spec->n_keys) - 1);
	for (uint32_t k = 0; k < spec->n_keys; k++)
	{
		uint32_t	bytes = spec->column_bytes[spec->key_column[k]];

		level->d.spec.key_column[level->d.spec.n_keys++] =
			(uint8_t) level_column(level, RHH_ROW_KEY, bytes, k, word);
		word += rhh_key_words(spec, k);
	}
	level->d.spec.key_column[level->d.spec.n_keys++] =
		(uint8_t) level_column(level, RHH_ROW_SET, 1, 0, 0);
	def_state(&level->d, RHH_COUNT, -1, -1);
	def_state(&level->d, RHH_COUNT, level_column(level, RHH_ROW_KEY_IS_NULL, 4, 0, 0), -1);
	for (uint32_t s = 0; s < spec->n_states; s++)
	{
		uint32_t	n_words = rhh_state_words(spec, s);

		if (spec->states[s].op == RHH_ANY)
			def_state(&level->d, RHH_COUNT,
					  level_column(level, RHH_ROW_ANY, n_words > 2 ? 16 : 4, 0, word), -1);
		else
		{
			def_state(&level->d, RHH_SUM_I128,
					  level_column(level, RHH_ROW_WORD, 8, 0, word), -1);
			if (n_words > 1)
				def_state(&level->d, RHH_SUM_I64,
						  level_column(level, RHH_ROW_DIGIT1, 8, 0, word), -1);
			if (n_words > 2)
				def_state(&level->d, RHH_SUM_I64,
						  level_column(level, RHH_ROW_DIGIT2, 8, 0, word), -1);
		}
		word += n_words;
	}
	def_state(&level->d, RHH_COUNT, level_column(level, RHH_ROW_NULL, 1, 0, 0), -1);
	/* and a state over what is NULL where the first key is 0, or NULL */
	if (spec->n_states > 0)
	{
		int			c = level_column(level, RHH_ROW_WORD, 8, 0, rhh_first_state_word(spec));

		level->rows.columns[c].null_word = 1;
		def_state(&level->d, RHH_SUM_I64, c, -1);
		def_state(&level->d, RHH_COUNT, c, -1);
	}
}

/* Fills the first table, which is the caller's to end. */
static bool
fill_first(context *ctx, const char *where, run *first, const data *data)
{
	run_options options = default_options;

	options.no_failures = true;
	run_start(first, ctx->device, data, &options, ctx->device->pool, ctx->device->pool_bytes);
	(void) drive(ctx->device, first, 1);
	run_check(first);
	fault(ctx, where, first->why);
	return first->why[0] == '\0';
}

/* Feeds a second table with the groups of a first one.  stats are the second one's; they may be NULL. */
static void
check_feed(context *ctx, const char *where, const def *d, uint64_t n_rows, level *level,
		   const run_options *options, rhh_map_stats *stats)
{
	data	   *data = make_data(d, n_rows, ctx->seed++);
	run			first;

	if (stats != NULL)
		memset(stats, 0, sizeof(*stats));
	if (fill_first(ctx, where, &first, data))
	{
		struct data *rows = expect_rows(&level->d, &level->rows, first.outcome);
		run_options fed = *options;
		run			second;

		fed.source = first.table;
		fed.row_spec = &level->rows;
		fed.n_groups = first.outcome->n_groups;
		run_start(&second, ctx->device, rows, &fed, ctx->device->pool,
				  ctx->device->pool_bytes);
		(void) drive(ctx->device, &second, 1);
		run_check(&second);
		fault(ctx, where, second.why);
		if (stats != NULL)
			*stats = second.stats;
		run_end(&second);
		free_data(rows);
	}
	run_end(&first);
	free_data(data);
}

/* Keys of all forms, NULLs, states of one to three words, pieces of all sizes. */
void
case_feed(context *ctx)
{
	static const uint64_t one[] = {1, 0};
	static const uint64_t many[] = {7, 1, 6, 0, 2};
	run_options options = default_options;
	level		level;
	def			d;

	options.no_failures = true;

	def_init(&d);
	def_key(&d, 8, GEN_UNIFORM, 30000, 10);
	def_common_states(&d);
	level_init(&level, &d, one, 2);
	check_feed(ctx, "one key", &d, rows(100000), &level, &options, NULL);
	level.d.spec.max_batch_rows = 1000;
	check_feed(ctx, "pieces of 1000 rows", &d, rows(100000), &level, &options, NULL);
	level.d.spec.max_batch_rows = 7;
	check_feed(ctx, "pieces of 7 rows", &d, 500, &level, &options, NULL);

	/* a column without NULLs needs no bitmap, and a key outside of its set has only NULLs */
	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, 100000, 0);
	def_common_states(&d);
	level_init(&level, &d, one, 2);
	check_feed(ctx, "no NULL", &d, enough_rows(300000), &level, &options, NULL);

	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, 300, 20);
	def_key(&d, 2, GEN_PATTERN, 0, 0);
	def_key(&d, 16, GEN_UNIFORM, 20, 40);
	def_state(&d, RHH_SUM_I128, def_column(&d, 8, GEN_EXTREME, 0, 30), -1);
	def_state(&d, RHH_SUM_SQUARES, def_column(&d, 8, GEN_EXTREME, 0, 30), -1);
	def_state(&d, RHH_SUM_SQUARES, def_column(&d, 4, GEN_EXTREME, 0, 30), -1);
	def_state(&d, RHH_MIN_I64, def_column(&d, 2, GEN_EXTREME, 0, 30), -1);
	def_state(&d, RHH_ANY, def_column(&d, 16, GEN_ANY, 0, 30), -1);
	def_state(&d, RHH_ANY, def_column(&d, 4, GEN_ANY, 0, 30), -1);
	level_init(&level, &d, many, 5);
	check_feed(ctx, "wide keys", &d, rows(60000), &level, &options, NULL);

	def_init(&d);
	def_key(&d, 1, GEN_UNIFORM, 200, 20);
	def_key(&d, 1, GEN_UNIFORM, 200, 20);
	def_key(&d, 4, GEN_UNIFORM, 5, 20);
	def_state(&d, RHH_SUM_I128, def_column(&d, 8, GEN_HUGE_POSITIVE, 0, 0), -1);
	level_init(&level, &d, many, 5);
	check_feed(ctx, "packed keys", &d, rows(80000), &level, &options, NULL);
	level.d.spec.expected_groups = 1000000;
	check_feed(ctx, "large estimate", &d, rows(80000), &level, &options, NULL);
}

/* Rows that the second table refuses come back by their numbers. */
void
case_feed_refused(context *ctx)
{
	static const uint64_t sets[] = {3, 1, 2};
	run_options options = default_options;
	level		level;
	def			d;

	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, 20000, 5);
	def_key(&d, 8, GEN_UNIFORM, 50, 5);
	def_common_states(&d);
	options.min_failures = 1;
	level_init(&level, &d, sets, 3);
	level.d.spec.memory_limit_bytes = 256 << 10;
	check_feed(ctx, "small memory", &d, enough_rows(100000), &level, &options, NULL);
	level.d.spec.max_batch_rows = 1000;
	check_feed(ctx, "small pieces", &d, enough_rows(100000), &level, &options, NULL);
	options.min_failures = 0;
	/* where the CUDA device's stash ran over, what was left of it was taken for groups */
	level.d.spec.memory_limit_bytes = 4 << 20;
	level.d.spec.max_batch_rows = 1 << 20;
	check_feed(ctx, "larger memory", &d, enough_rows(100000), &level, &options, NULL);
	options.cancel_at_batch = 2;
	check_feed(ctx, "cancelled", &d, rows(100000), &level, &options, NULL);
}

/* What cannot be fed is refused, and extracting may begin anywhere. */
void
case_feed_invalid(context *ctx)
{
	static const uint64_t sets[] = {1};
	const rhh_device_ops *ops = ctx->device->ops;
	data	   *data;
	run			first;
	level		level;
	def			d;
	rhh_map    *second;
	rhh_feed	feed = {0};
	uint8_t		refused[1024];
	rhh_error	err;

	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, 1000, 0);
	def_common_states(&d);
	level_init(&level, &d, sets, 1);
	level.d.spec.max_batch_rows = 8 * sizeof(refused);
	data = make_data(&d, 20000, ctx->seed++);
	if (fill_first(ctx, "first", &first, data))
	{
		if (ops->map_create(ctx->device->dev, &level.d.spec, &second, &err) != RHH_OK)
			fault(ctx, "map_create", err.message);
		else
		{
			feed.source = second;
			feed.rows = &level.rows;
			feed.refused = refused;
			if (ops->map_feed(second, &feed, 0, &err) != RHH_INVALID)
				fault(ctx, "", "a table that is not finished was fed");
			feed.source = first.table;
			feed.first_group = first.outcome->n_groups;
			if (ops->map_feed(second, &feed, 0, &err) != RHH_OK || feed.n_groups != 0)
				fault(ctx, "", "there was a group behind the last");
			feed.first_group = 0;
			feed.set = 1;
			if (ops->map_feed(second, &feed, 0, &err) != RHH_INVALID)
				fault(ctx, "", "a set that is not there was fed");
			feed.set = 0;
			level.rows.first_set = 256;
			if (ops->map_feed(second, &feed, 0, &err) != RHH_INVALID)
				fault(ctx, "", "a set's number that fits no byte was fed");
			level.rows.first_set = 0;
			level.rows.n_parts = 1;
			if (ops->map_feed(second, &feed, 0, &err) != RHH_INVALID)
				fault(ctx, "", "set numbers that a map's groups do not have were fed");
			level.rows.n_parts = 0;
			feed.rows = NULL;
			if (ops->map_feed(second, &feed, 0, &err) != RHH_INVALID)
				fault(ctx, "", "rows that nobody has described were fed");
			feed.rows = &level.rows;
			for (uint32_t c = 0; c < level.d.spec.n_columns; c++)
			{
				rhh_row_column saved = level.rows.columns[c];

				level.rows.columns[c].kind = RHH_ROW_NULL + 1;
				if (ops->map_feed(second, &feed, 0, &err) != RHH_INVALID)
					fault(ctx, "", "an unknown kind of column was fed");
				level.rows.columns[c] = saved;
				level.rows.columns[c].kind = RHH_ROW_WORD;
				level.rows.columns[c].word = rhh_result_words(&d.spec);
				if (ops->map_feed(second, &feed, 0, &err) != RHH_INVALID)
					fault(ctx, "", "words behind a group's were fed");
				level.rows.columns[c] = saved;
				level.rows.columns[c].null_word = rhh_result_words(&d.spec);
				if (ops->map_feed(second, &feed, 0, &err) != RHH_INVALID)
					fault(ctx, "", "NULLs by a word behind a group's were fed");
				level.rows.columns[c] = saved;
			}
			level.rows.columns[0].key = 1;
			if (ops->map_feed(second, &feed, 0, &err) != RHH_INVALID)
				fault(ctx, "", "a key that is not there was fed");
			ops->map_destroy(second);
		}

		/* the last 10 groups once more */
		if (ops->map_seek(first.table, first.outcome->n_groups + 1, &err) != RHH_INVALID)
			fault(ctx, "", "there was a place behind the last group's");
		if (ops->map_seek(first.table, first.outcome->n_groups - 10, &err) != RHH_OK ||
			ops->map_extract(first.table, &first.result, 0, &err) != RHH_OK)
			fault(ctx, "map_seek", err.message);
		else
		{
			rhh_event	event;

			if (!next_event(ctx, &event) || first.result.n_groups != 10 || !first.result.last)
				fault(ctx, "", "the last groups did not come out again");
			for (uint32_t i = 0; i < 10; i++)
				if (first.result.words[first.result.capacity_groups + i] !=
					map_group(first.outcome, first.outcome->n_groups - 10 + i)[1])
					fault(ctx, "", "other groups than the last ones came out");
		}
	}
	run_end(&first);
	free_data(data);
}

/* ---------- columns that a program makes of them ---------- */

/* What the second table's columns are: fed ones (those of level), and what a program computes. */
typedef struct computing
{
	level		level;
	def			table;
	joined		joined;
	rhh_program program;
} computing;

/* A fed column; returns its number. */
static uint16_t
fed_column(computing *p, rhh_row_kind kind, uint32_t bytes, uint32_t key, uint32_t word)
{
	const uint16_t c = (uint16_t) level_column(&p->level, kind, bytes, key, word);

	p->joined.spec.column_bytes[c] = (uint8_t) bytes;
	p->joined.spec.n_columns = c + 1u;
	return c;
}

/* A column of the table that is a fed one; returns its number. */
static int
passed_column(computing *p, uint16_t fed)
{
	const int	c = def_column(&p->table, p->joined.spec.column_bytes[fed], GEN_CUSTOM, 0, 0);

	p->joined.spec.column[c] = fed;
	return c;
}

static uint8_t
add_op(computing *p, uint8_t code, uint8_t a, uint8_t b, uint8_t c)
{
	const uint32_t i = p->program.n_ops++;

	p->program.ops[i] = (rhh_op){code, a, b, c};
	return (uint8_t) i;
}

static uint8_t
constant(computing *p, int64_t value, bool null)
{
	const uint32_t i = p->program.n_constants++;

	p->program.constants[i][0] = (uint64_t) value;
	p->program.null_constant[i] = null;
	return add_op(p, RHH_OP_CONSTANT, (uint8_t) i, 0, 0);
}

/* A column of the table that an operation computes; returns its number. */
static int
computed_column(computing *p, uint8_t op, uint32_t bytes)
{
	const int	c = def_column(&p->table, bytes, GEN_CUSTOM, 0, 0);
	const uint32_t r = p->program.n_results++;

	p->program.results[r].op = op;
	p->program.results[r].column = (uint8_t) c;
	p->joined.spec.column[c] = RHH_COMPUTED;
	return c;
}

static void
set_filter(computing *p, uint8_t op)
{
	p->program.has_filter = true;
	p->program.filter = op;
}

static void
add_key(computing *p, int column)
{
	p->table.spec.key_column[p->table.spec.n_keys++] = (uint8_t) column;
}

/* Of the first table's states, the words. */
enum
{
	FIRST_COUNT,
	FIRST_SUM,
	FIRST_VALUES,
	FIRST_WIDE,					/* two words */
	FIRST_SQUARES,				/* three */
	FIRST_MIN,
	FIRST_ANY
};

static uint32_t
state_word(const def *d, uint32_t s)
{
	uint32_t	word = rhh_first_state_word(&d->spec);

	for (uint32_t i = 0; i < s; i++)
		word += rhh_state_words(&d->spec, i);
	return word;
}

/* Keys of three widths with NULLs, and states of one to three words. */
static void
first_of_program(def *d, uint64_t n_keys)
{
	int			v;

	def_init(d);
	def_key(d, 8, GEN_UNIFORM, n_keys, 10);
	def_key(d, 4, GEN_UNIFORM, 9, 20);
	def_key(d, 16, GEN_UNIFORM, 2, 30);
	v = def_column(d, 4, GEN_SMALL, 0, 90);
	def_state(d, RHH_COUNT, -1, -1);
	def_state(d, RHH_SUM_I64, v, -1);
	def_state(d, RHH_COUNT, v, -1);
	def_state(d, RHH_SUM_I128, def_column(d, 8, GEN_EXTREME, 0, 30), -1);
	def_state(d, RHH_SUM_SQUARES, def_column(d, 8, GEN_EXTREME, 0, 30), -1);
	def_state(d, RHH_MIN_I64, def_column(d, 2, GEN_EXTREME, 0, 30), -1);
	def_state(d, RHH_ANY, def_column(d, 4, GEN_ANY, 0, 60), -1);
}

/* Which rows the program's filter keeps, and where it is bad. */
typedef enum filter_kind
{
	FILTER_NO_PROGRAM,			/* all columns are fed ones */
	FILTER_NONE,
	FILTER_TRUE,				/* keeps all rows */
	FILTER_SOME,
	FILTER_FALSE,
	FILTER_NULL,				/* is NULL in all rows, which drops them */
	BAD_RESULT,					/* there is none, and a result is bad in few rows */
	BAD_DROPPED,				/* the filter drops these */
	BAD_KEPT,					/* it keeps these, and few others */
	BAD_FILTER,					/* it is bad itself, in these */
	BAD_ALL						/* a result is bad in all rows */
} filter_kind;

static const char *const filter_names[] = {
	"no program", "no filter", "none dropped", "some dropped", "all dropped", "NULL drops all",
	"bad result", "bad and dropped", "bad and kept", "bad filter", "all bad"
};

/* A division that is bad in few of the groups, and NULL where their first key is. */
static uint8_t
few_bad(computing *p, uint8_t key)
{
	return add_op(p, RHH_OP_DIV_INT8, constant(p, 100, false),
				  add_op(p, RHH_OP_MOD_INT8, key, constant(p, 211, false), 0), 0);
}

static void
add_filter(computing *p, filter_kind filter, uint8_t key, uint8_t sum, uint8_t count)
{
	const uint8_t zero = constant(p, 0, false);
	const uint8_t is_bad = add_op(p, RHH_OP_EQ_INT8,
								  add_op(p, RHH_OP_MOD_INT8, key, constant(p, 211, false), 0), zero, 0);

	switch (filter)
	{
		case FILTER_TRUE:
			set_filter(p, add_op(p, RHH_OP_LT_INT8, zero, count, 0));
			break;
		case FILTER_SOME:
			/* the first is NULL in some rows, the second decides where it is true */
			set_filter(p, add_op(p, RHH_OP_OR, add_op(p, RHH_OP_LT_INT8, zero, sum, 0),
								 add_op(p, RHH_OP_EQ_INT8,
										add_op(p, RHH_OP_MOD_INT8, key, constant(p, 5, false), 0),
										constant(p, 2, false), 0), 0));
			break;
		case FILTER_FALSE:
			set_filter(p, add_op(p, RHH_OP_LT_INT8, count, zero, 0));
			break;
		case FILTER_NULL:
			set_filter(p, constant(p, 1, true));
			break;
		case BAD_DROPPED:
			set_filter(p, add_op(p, RHH_OP_NOT, is_bad, 0, 0));
			break;
		case BAD_KEPT:
			set_filter(p, add_op(p, RHH_OP_OR, is_bad,
								 add_op(p, RHH_OP_EQ_INT8,
										add_op(p, RHH_OP_MOD_INT8, key, constant(p, 7, false), 0), zero, 0),
								 0));
			break;
		case BAD_FILTER:
			set_filter(p, add_op(p, RHH_OP_LE_INT8, few_bad(p, key), constant(p, 50, false), 0));
			break;
		default:
			break;
	}
}

/* Computed columns that states take: sums and products, conditions, columns of 1 to 16 bytes. */
static void
add_computed(computing *p, filter_kind filter, uint8_t key, uint8_t sum, uint8_t count, uint8_t null,
			 uint8_t is_null)
{
	const uint8_t product = add_op(p, RHH_OP_MUL_TO_DECIMAL128, sum, add_op(p, RHH_OP_ADD_INT8, count,
																			constant(p, 17, false), 0), 0);
	const uint8_t is_small = add_op(p, RHH_OP_LE_INT8, count, constant(p, 1, false), 0);
	const int	other = computed_column(p, add_op(p, RHH_OP_MUL_INT8, sum, constant(p, -3, false), 0), 8);

	def_state(&p->table, RHH_SUM_I128, other, -1);
	def_state(&p->table, RHH_COUNT, other, -1);
	/* a computed filter of a state, of a byte */
	def_state(&p->table, RHH_SUM_I64, other, computed_column(p, is_small, 1));
	def_state(&p->table, RHH_MAX_I64,
			  computed_column(p, add_op(p, RHH_OP_IF, is_small, count, add_op(p, RHH_OP_NEG_INT8, sum, 0, 0)), 8),
			  -1);
	def_state(&p->table, RHH_SUM_I64,
			  computed_column(p, add_op(p, RHH_OP_LIMB_1_OF_2, product, 0, 0), 8), -1);
	def_state(&p->table, RHH_COUNT, computed_column(p, add_op(p, RHH_OP_AS_BYTES, product, 0, 0), 16), -1);
	def_state(&p->table, RHH_COUNT,
			  computed_column(p, add_op(p, RHH_OP_ADD_INT8, null, constant(p, 1, false), 0), 8), -1);
	def_state(&p->table, RHH_SUM_I64, computed_column(p, is_null, 4), -1);
	if (filter >= BAD_RESULT && filter <= BAD_KEPT)
		def_state(&p->table, RHH_SUM_I64, computed_column(p, few_bad(p, key), 8), -1);
	if (filter == BAD_ALL)
		def_state(&p->table, RHH_COUNT,
				  computed_column(p, add_op(p, RHH_OP_DIV_INT8, count, constant(p, 0, false), 0), 8), -1);
}

/*
 * A second table by the sets of a first one's keys.  It has few groups or many, by keys of which one is computed
 * and others are fed.  Fed columns are in another order than the table has them; one is there twice, and one not at
 * all.
 */
static void
computing_init(computing *p, const def *first, const uint64_t *sets, uint32_t n_sets, filter_kind filter,
			   bool many)
{
	const uint32_t values = state_word(first, FIRST_VALUES);
	uint16_t	key[3],
				set,
				nothing[3],
				count,
				sum,
				least,
				any,
				wide[2],
				squares;

	memset(p, 0, sizeof(*p));
	def_init(&p->level.d);
	def_init(&p->table);
	p->joined.d = &p->table;
	p->level.rows.n_sets = n_sets;
	p->level.rows.first_set = 3;
	for (uint32_t s = 0; s < n_sets; s++)
		p->level.rows.outside[s] = ~sets[s] & 7;

	(void) fed_column(p, RHH_ROW_KEY_IS_NULL, 4, 1, 0); /* is not used */
	any = fed_column(p, RHH_ROW_ANY, 4, 0, state_word(first, FIRST_ANY));
	nothing[0] = fed_column(p, RHH_ROW_NULL, 16, 0, 0);
	key[2] = fed_column(p, RHH_ROW_KEY, 16, 2, 3);
	nothing[1] = fed_column(p, RHH_ROW_NULL, 4, 0, 0);
	sum = fed_column(p, RHH_ROW_WORD, 8, 0, state_word(first, FIRST_SUM));
	p->level.rows.columns[sum].null_word = values;
	count = fed_column(p, RHH_ROW_WORD, 8, 0, state_word(first, FIRST_COUNT));
	nothing[2] = fed_column(p, RHH_ROW_NULL, 1, 0, 0);
	key[0] = fed_column(p, RHH_ROW_KEY, 8, 0, 1);
	least = fed_column(p, RHH_ROW_WORD, 8, 0, state_word(first, FIRST_MIN));
	wide[0] = fed_column(p, RHH_ROW_WORD, 8, 0, state_word(first, FIRST_WIDE));
	wide[1] = fed_column(p, RHH_ROW_DIGIT1, 8, 0, state_word(first, FIRST_WIDE));
	squares = fed_column(p, RHH_ROW_DIGIT2, 8, 0, state_word(first, FIRST_SQUARES));
	key[1] = fed_column(p, RHH_ROW_KEY, 4, 1, 2);
	set = fed_column(p, RHH_ROW_SET, 1, 0, 0);

	def_state(&p->table, RHH_COUNT, -1, -1);
	add_key(p, passed_column(p, set));
	if (filter != FILTER_NO_PROGRAM)
	{
		const int	fed[] = {
			passed_column(p, key[0]), passed_column(p, key[1]), passed_column(p, sum), passed_column(p, count),
			passed_column(p, nothing[0]), passed_column(p, nothing[1])
		};
		uint8_t		ops[5];
		uint8_t		is_null;

		for (int i = 0; i < 4; i++)
			ops[i] = add_op(p, RHH_OP_COLUMN, (uint8_t) fed[i], 0, 0);
		ops[4] = add_op(p, RHH_OP_COLUMN, (uint8_t) fed[5], 0, 0);
		add_filter(p, filter, ops[0], ops[2], ops[3]);
		is_null = add_op(p, RHH_OP_COLUMN_IS_NULL, (uint8_t) fed[4], 0, 0);
		/* a key plus a constant, of more bytes than the key */
		add_key(p, computed_column(p, add_op(p, RHH_OP_ADD_INT8, ops[1], constant(p, 1000, false), 0), 8));
		/* and a condition, in a byte */
		add_key(p, computed_column(p, add_op(p, RHH_OP_IS_NULL, ops[2], 0, 0), 1));
		if (many)
			add_key(p, computed_column(p, add_op(p, RHH_OP_MOD_INT8, ops[0], constant(p, 1000003, false), 0), 8));
		add_computed(p, filter, ops[0], ops[2], ops[3], ops[4], is_null);
		p->joined.spec.program = &p->program;
	}
	if (many)
		add_key(p, passed_column(p, key[0]));
	add_key(p, passed_column(p, key[2]));
	if (many)
		add_key(p, passed_column(p, nothing[2]));
	def_state(&p->table, RHH_SUM_I128, passed_column(p, sum), -1);
	def_state(&p->table, RHH_COUNT, passed_column(p, any), -1);
	def_state(&p->table, RHH_MIN_I64, passed_column(p, least), -1);
	def_state(&p->table, RHH_SUM_I64, passed_column(p, wide[0]), -1);
	def_state(&p->table, RHH_SUM_I64, passed_column(p, wide[1]), -1);
	def_state(&p->table, RHH_SUM_I64, passed_column(p, squares), -1);
	def_state(&p->table, RHH_COUNT, passed_column(p, nothing[0]), -1);
}

static const uint64_t program_sets[] = {7, 1, 6, 0, 2};

/* Pieces of different sizes, and how many rows there are then, of the first table. */
static const struct
{
	uint32_t	max_rows;
	uint64_t	n_rows;
	uint32_t	n_sets;
}			program_pieces[] = {
	{7, 300, 3},
	{1000, 2500, 5},
	{20000, 50000, 2}
};

/* Columns that are computed, filters that drop none, some and all rows; few groups and many. */
void
case_feed_program(context *ctx)
{
	for (int filter = FILTER_NO_PROGRAM; filter <= FILTER_NULL; filter++)
		for (size_t i = 0; i < LENGTH_OF(program_pieces); i++)
			for (int many = 0; many < 2; many++)
			{
				const uint64_t n = program_pieces[i].n_rows > 10000 ? rows(program_pieces[i].n_rows)
					: program_pieces[i].n_rows;
				run_options options = default_options;
				static computing p; /* too large for the stack */
				rhh_map_stats stats;
				char		where[80];
				def			d;

				first_of_program(&d, many ? n / 4 : 20);
				computing_init(&p, &d, program_sets, program_pieces[i].n_sets, filter, many);
				p.table.spec.max_batch_rows = program_pieces[i].max_rows;
				options.joined = &p.joined;
				options.no_failures = true;
				snprintf(where, sizeof(where), "%s, pieces of %u rows, %s groups", filter_names[filter],
						 program_pieces[i].max_rows, many ? "many" : "few");
				check_feed(ctx, where, &d, n, &p.level, &options, &stats);
				if (ctx->why[0] != '\0')
					return;
				if ((filter == FILTER_FALSE || filter == FILTER_NULL ? stats.rows > 0 : stats.rows == 0) ||
					(filter == FILTER_SOME) != (stats.rows > 0 && stats.filtered_rows > 0))
					fault(ctx, where, "not as many rows are kept as there should be");
				if (i == 2)
					continue;
				/* batches of the same rows between the pieces */
				options.mixed = true;
				snprintf(where, sizeof(where), "%s, pieces and batches of %u rows, %s groups",
						 filter_names[filter], program_pieces[i].max_rows, many ? "many" : "few");
				check_feed(ctx, where, &d, n, &p.level, &options, NULL);
			}
}

/*
 * The program is bad in rows that the filter keeps, of which events tell, or in none but those that it drops,
 * and all is well.
 */
void
case_feed_program_bad(context *ctx)
{
	for (int filter = BAD_RESULT; filter <= BAD_ALL; filter++)
		for (size_t i = 0; i < LENGTH_OF(program_pieces); i++)
		{
			const uint64_t n = program_pieces[i].n_rows > 10000 ? enough_rows(program_pieces[i].n_rows / 2)
				: program_pieces[i].n_rows;
			run_options options = default_options;
			static computing p;
			rhh_map_stats stats;
			char		where[80];
			def			d;

			first_of_program(&d, n / 2);
			computing_init(&p, &d, program_sets, 2, filter, i % 2 == 0);
			p.table.spec.max_batch_rows = program_pieces[i].max_rows;
			options.joined = &p.joined;
			options.no_failures = true;
			snprintf(where, sizeof(where), "%s, pieces of %u rows", filter_names[filter],
					 program_pieces[i].max_rows);
			check_feed(ctx, where, &d, n, &p.level, &options, &stats);
			if (ctx->why[0] != '\0')
				return;
			if (filter == BAD_DROPPED ? stats.refused_rows > 0 || stats.filtered_rows == 0
				: stats.refused_rows == 0)
				fault(ctx, where, "not as many rows are bad as there should be");
			if (filter == BAD_ALL && stats.rows > 0)
				fault(ctx, where, "not all rows are bad");
			options.cancel_at_batch = 1;
			check_feed(ctx, "cancelled", &d, n, &p.level, &options, NULL);
		}
}

/* Rows for which the second table has no memory are lost, and events tell of them. */
void
case_feed_program_refused(context *ctx)
{
	static const filter_kind filters[] = {FILTER_NO_PROGRAM, FILTER_NONE, FILTER_SOME, BAD_RESULT};

	for (size_t i = 0; i < LENGTH_OF(filters); i++)
		for (uint32_t max_rows = 200; max_rows <= 2000; max_rows += 1800)
		{
			run_options options = default_options;
			static computing p;
			char		where[80];
			def			d;

			first_of_program(&d, 20000);
			computing_init(&p, &d, program_sets, 3, filters[i], true);
			p.table.spec.memory_limit_bytes = 256 << 10;
			p.table.spec.max_batch_rows = max_rows;
			options.joined = &p.joined;
			/* all pieces may have bad rows, and then none gets so far */
			options.min_failures = filters[i] != BAD_RESULT;
			snprintf(where, sizeof(where), "small memory, %s, pieces of %u rows", filter_names[filters[i]],
					 max_rows);
			check_feed(ctx, where, &d, enough_rows(30000), &p.level, &options, NULL);
			options.mixed = true;
			check_feed(ctx, "batches as well", &d, enough_rows(30000), &p.level, &options, NULL);
			options.mixed = false;
			options.min_failures = 0;
			options.cancel_at_batch = 3;
			check_feed(ctx, "cancelled", &d, enough_rows(30000), &p.level, &options, NULL);
		}
}

/* Expects a piece to be refused before it is one. */
static void
expect_no_feed(context *ctx, const char *what, rhh_map *map, rhh_feed *feed, const char *message)
{
	rhh_error	err;

	feed->n_groups = 1;
	expect_error(ctx, what, ctx->device->ops->map_feed(map, feed, 0, &err), RHH_INVALID, &err, message);
	if (feed->n_groups != 0)
		fault(ctx, what, "there are groups of a piece that is none");
}

/*
 * The same of a table of which the columns are right.  If it has a limit, it is to have no memory for joins.  False:
 * it has, or has not even as much as it needs itself.
 */
static bool
expect_unfed_table(context *ctx, const char *what, const rhh_map_spec *spec, const rhh_join_spec *joins,
				   rhh_feed *feed, const char *message)
{
	const rhh_device_ops *ops = ctx->device->ops;
	const rhh_status expected = spec->memory_limit_bytes > 0 ? RHH_NO_MEMORY : RHH_OK;
	rhh_status	status;
	rhh_map    *map;
	rhh_error	err;

	if (ops->map_create(ctx->device->dev, spec, &map, &err) != RHH_OK)
		return false;
	status = ops->map_join(map, joins, &err);
	if (status == expected)
		expect_no_feed(ctx, what, map, feed, message);
	ops->map_destroy(map);
	return status == expected;
}

/* How columns of what is fed may not be made, whatever the table's columns are. */
static void
invalid_fed_columns(context *ctx, const computing *p, const def *first, rhh_map *map, rhh_feed *feed,
					rhh_row_spec *rows)
{
	const uint32_t n_words = rhh_result_words(&first->spec);

	for (uint32_t c = 0; c < p->joined.spec.n_columns; c++)
	{
		const rhh_row_column good = rows->columns[c];
		const uint32_t bytes = p->joined.spec.column_bytes[c];

		rows->columns[c].kind = RHH_ROW_NULL + 1;
		expect_no_feed(ctx, "kind", map, feed, "made in an unknown way");
		rows->columns[c] = good;
		rows->columns[c].kind = RHH_ROW_WORD;
		rows->columns[c].word = n_words - (bytes > 8 ? 1 : 0);
		expect_no_feed(ctx, "word", map, feed, "made of words behind the group's");
		rows->columns[c] = good;
		rows->columns[c].null_word = n_words;
		expect_no_feed(ctx, "null_word", map, feed, "made of words behind the group's");
		rows->columns[c] = good;
		rows->columns[c].kind = RHH_ROW_KEY;
		rows->columns[c].key = 3;
		rows->columns[c].word = 1;
		expect_no_feed(ctx, "key", map, feed, "made of no key");
		rows->columns[c] = (rhh_row_column){.kind = bytes == 8 ? RHH_ROW_SET : RHH_ROW_DIGIT1, .part = -1, .word = 1};
		expect_no_feed(ctx, "bytes", map, feed, "cannot have");
		rows->columns[c] = good;
	}
}

/* What cannot be fed to a table with a program, and how it must not be. */
void
case_feed_program_invalid(context *ctx)
{
	static const char *const joined_or_kept = "groups are neither joined nor made of rows that are kept";
	const rhh_device_ops *ops = ctx->device->ops;
	static computing p;
	static rhh_join_spec joins;
	rhh_map_spec spec;
	data	   *data;
	run			first;
	def			d;
	rhh_map    *map;
	rhh_feed	feed = {0};
	rhh_event	event;
	rhh_error	err;
	uint8_t		refused[1024];

	first_of_program(&d, 100);
	computing_init(&p, &d, program_sets, 2, FILTER_SOME, false);
	p.table.spec.max_batch_rows = 8 * sizeof(refused);
	data = make_data(&d, 5000, ctx->seed++);
	if (fill_first(ctx, "first", &first, data))
	{
		feed.source = first.table;
		feed.rows = &p.level.rows;
		feed.refused = refused;

		/* tables of other kinds, with the same columns */
		spec = p.table.spec;
		spec.n_states = 0;
		spec.flags = RHH_KEEP_ROWS;
		if (!expect_unfed_table(ctx, "kept", &spec, &p.joined.spec, &feed, joined_or_kept))
			fault(ctx, "kept", "there is no such table");
		spec.flags = RHH_RETURN_ROWS;
		if (!expect_unfed_table(ctx, "returned", &spec, &p.joined.spec, &feed,
								"a map that returns rows takes those of joins only"))
			fault(ctx, "returned", "there is no such table");
		/* one that has had joins; the CPU device counts no memory of such, so it has them always */
		spec = p.table.spec;
		for (uint32_t kb = 256; kb > 0; kb = kb * 3 / 4)
		{
			spec.memory_limit_bytes = kb << 10;
			if (expect_unfed_table(ctx, "no joins any more", &spec, &p.joined.spec, &feed, joined_or_kept))
				break;
		}

		if (ops->map_create(ctx->device->dev, &p.table.spec, &map, &err) != RHH_OK)
			fault(ctx, "map_create", err.message);
		else
		{
			if (ops->map_join(map, &p.joined.spec, &err) != RHH_OK)
				fault(ctx, "map_join", err.message);
			invalid_fed_columns(ctx, &p, &d, map, &feed, &p.level.rows);
			feed.set = 2;
			expect_no_feed(ctx, "set", map, &feed, "there is no set");
			feed.set = 0;
			feed.source = map;
			expect_no_feed(ctx, "itself", map, &feed, "are not finished");
			feed.source = first.table;
			feed.first_group = first.outcome->n_groups;
			if (ops->map_feed(map, &feed, 0, &err) != RHH_OK || feed.n_groups != 0)
				fault(ctx, "", "there was a group behind the last");
			feed.first_group = 0;

			/* what is behind the fed columns means nothing, even if the table has more columns */
			memset(&joins, 0, sizeof(joins));
			joins = p.joined.spec;
			for (uint32_t c = joins.n_columns; c < RHH_MAX_COLUMNS; c++)
				p.level.rows.columns[c].kind = RHH_ROW_NULL + 1;
			if (ops->map_feed(map, &feed, 5, &err) != RHH_OK || feed.n_groups == 0)
				fault(ctx, "map_feed", err.message);
			else if (next_event(ctx, &event) &&
					 (event.kind != RHH_EVENT_BATCH || event.map != map || event.tag != 5 || event.n_refused > 0 ||
					  event.more))
				fault(ctx, "", "a piece ended in another way");
			/* that there are rows now does not keep it from having other joins, or a piece from being wrong */
			if (ops->map_join(map, &joins, &err) != RHH_OK)
				fault(ctx, "map_join, again", err.message);
			invalid_fed_columns(ctx, &p, &d, map, &feed, &p.level.rows);
			ops->map_destroy(map);
		}
	}
	run_end(&first);
	free_data(data);
}
