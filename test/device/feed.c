/*
 * feed.c
 *		Rows that the device makes of another table's groups (map_feed).
 *
 * A first table is filled, and its groups are read.  The rows that should come of them
 * are written down here, by code that shares nothing with the devices', and a second
 * table is fed by the device.  Its run compares what comes out with those rows.
 */
#include "device_test.h"

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

/* Feeds a second table with the groups of a first one. */
static void
check_feed(context *ctx, const char *where, const def *d, uint64_t n_rows, level *level,
		   const run_options *options)
{
	data	   *data = make_data(d, n_rows, ctx->seed++);
	run			first;

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
	check_feed(ctx, "one key", &d, rows(100000), &level, &options);
	level.d.spec.max_batch_rows = 1000;
	check_feed(ctx, "pieces of 1000 rows", &d, rows(100000), &level, &options);
	level.d.spec.max_batch_rows = 7;
	check_feed(ctx, "pieces of 7 rows", &d, 500, &level, &options);

	/* a column without NULLs needs no bitmap, and a key outside of its set has only NULLs */
	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, 100000, 0);
	def_common_states(&d);
	level_init(&level, &d, one, 2);
	check_feed(ctx, "no NULL", &d, enough_rows(300000), &level, &options);

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
	check_feed(ctx, "wide keys", &d, rows(60000), &level, &options);

	def_init(&d);
	def_key(&d, 1, GEN_UNIFORM, 200, 20);
	def_key(&d, 1, GEN_UNIFORM, 200, 20);
	def_key(&d, 4, GEN_UNIFORM, 5, 20);
	def_state(&d, RHH_SUM_I128, def_column(&d, 8, GEN_HUGE_POSITIVE, 0, 0), -1);
	level_init(&level, &d, many, 5);
	check_feed(ctx, "packed keys", &d, rows(80000), &level, &options);
	level.d.spec.expected_groups = 1000000;
	check_feed(ctx, "large estimate", &d, rows(80000), &level, &options);
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
	check_feed(ctx, "small memory", &d, enough_rows(100000), &level, &options);
	level.d.spec.max_batch_rows = 1000;
	check_feed(ctx, "small pieces", &d, enough_rows(100000), &level, &options);
	options.min_failures = 0;
	/* where the CUDA device's stash ran over, what was left of it was taken for groups */
	level.d.spec.memory_limit_bytes = 4 << 20;
	level.d.spec.max_batch_rows = 1 << 20;
	check_feed(ctx, "larger memory", &d, enough_rows(100000), &level, &options);
	options.cancel_at_batch = 2;
	check_feed(ctx, "cancelled", &d, rows(100000), &level, &options);
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

				level.rows.columns[c].kind = RHH_ROW_ANY + 1;
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
