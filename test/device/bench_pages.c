/*
 * bench_pages.c
 *		--bench: how fast pages are read, from the memory of the host and from the cache, by layouts
 *		like those of queries.
 */
#include <fnmatch.h>
#include <poll.h>

#include "device_test.h"
#include "page_rows.h"

#define BENCH_PAGES		131072u /* in the cache: 1 GB, ... */
#define MADE_PAGES		16384u	/* ... which are so many, again and again */
#define BATCH_PAGES		12288u
#define N_BATCHES		((BENCH_PAGES + BATCH_PAGES - 1) / BATCH_PAGES)

/* A batch, and then its memory. */
#define BATCH_ROOM		(BATCH_PAGES * (sizeof(rhh_page) + sizeof(uint32_t)) + 8192)

typedef struct page_shape
{
	const char *name;
	bool		lineitem;		/* rows like those of TPC-H, else of two int4 */
	bool		filters;
	bool		computes;
	bool		much;			/* two keys, and a product of three more */
} page_shape;

static const page_shape page_shapes[] = {
	{"pages narrow", false, false, false, false},
	{"pages wide", true, false, false, false},
	{"pages filtered", true, true, false, false},
	{"pages computed", true, false, true, false},
	{"pages filtered and computed", true, true, true, false},
	{"pages of query 1", true, true, true, true}
};

/* A numeric of scale 2, as it is stored. */
static void
put_decimal(tuple *t, uint64_t cents)
{
	const uint16_t all[] = {(uint16_t) (cents / 1000000), (uint16_t) (cents / 100 % 10000), (uint16_t) (cents % 100 * 100)};
	uint32_t	first = 0;
	uint32_t	end = 3;
	int			weight;
	uint8_t		value[16];

	while (end > 0 && all[end - 1] == 0)
		end--;
	while (first < end && all[first] == 0)
		first++;
	weight = end == 0 ? 0 : 1 - (int) first;
	/* the short format, which has the scale from bit 7 on */
	put_2_bytes(value, 0x8000u | 2 << 7 | ((uint32_t) weight & 0x7f));
	memcpy(value + 2, all + first, 2 * (end - first));
	put_varlena(t, value, 2 + 2 * (end - first), true);
}

static void
put_int4(tuple *t, int32_t value)
{
	put_attribute(t, &value, 4, 4);
}

static void
make_tuple(tuple *t, const page_shape *shape, rng *r)
{
	static const char text[] = "DELIVER IN PERSON         REG AIR   carefully final deposits sleep furiously above";
	const int64_t key = (int64_t) below(r, 60000000);

	tuple_clear(t);
	if (!shape->lineitem)
	{
		put_int4(t, (int32_t) below(r, 100));
		put_int4(t, (int32_t) below(r, 1000));
		return;
	}
	put_attribute(t, &key, 8, 8);
	put_int4(t, (int32_t) below(r, 2000000));
	put_int4(t, (int32_t) below(r, 100000));
	put_int4(t, 1 + (int32_t) below(r, 7));
	put_decimal(t, 100 * (1 + below(r, 50)));
	put_decimal(t, 90000 + below(r, 10000000));
	put_decimal(t, below(r, 11));
	put_decimal(t, below(r, 9));
	put_varlena(t, &"ANR"[below(r, 3)], 1, true);
	put_varlena(t, &"OF"[below(r, 2)], 1, true);
	put_int4(t, -2922 + (int32_t) below(r, 2500));
	put_int4(t, -2922 + (int32_t) below(r, 2500));
	put_int4(t, -2922 + (int32_t) below(r, 2500));
	put_varlena(t, text, 25, true);
	put_varlena(t, text + 25, 10, true);
	put_varlena(t, text + 35, 10 + (uint32_t) below(r, 34), true);
}

/* Column 0 is the key, and the others are numbers to be added up. */
static void
make_layout(rhh_page_layout *layout, const page_shape *shape, def *d)
{
	rhh_program *program = &layout->program;
	const uint32_t n_results = shape->much ? 5 : shape->computes ? 2 : 0;
	uint32_t	n = 0;

	memset(layout, 0, sizeof(*layout));
	if (!shape->lineitem)
	{
		for (uint8_t a = 0; a < 2; a++)
		{
			layout->attributes[a] = (rhh_page_attribute){.length = 4, .align = 4};
			layout->loads[a] = (rhh_page_load){.attribute = a, .column = a, .kind = RHH_PAGE_VALUE};
		}
		layout->n_attributes = layout->n_loads = 2;
		def_key(d, 4, GEN_UNIFORM, 100, 0);
		def_state(d, RHH_SUM_I64, def_column(d, 4, GEN_SMALL, 0, 0), -1);
		rhh_page_find_offsets(layout);
		return;
	}
	for (uint32_t a = 0; a < 11; a++)
		layout->attributes[a] = a == 0			 ? (rhh_page_attribute){.length = 8, .align = 8} :
			(a < 4 || a > 9) ? (rhh_page_attribute){.length = 4, .align = 4} :
			(rhh_page_attribute){.length = -1, .align = 4};
	layout->n_attributes = 11;
	rhh_page_find_offsets(layout);
	def_key(d, 16, GEN_UNIFORM, 3, 0);
	if (shape->much)
		def_key(d, 16, GEN_UNIFORM, 2, 0);
	for (uint8_t a = 4; a < 7; a++)
	{
		n = (uint32_t) def_column(d, 8, GEN_SMALL, 0, 0);
		def_state(d, RHH_SUM_I128, (int) n, -1);
		/* by which NaN is found */
		if (shape->much)
			def_state(d, RHH_MAX_I64, (int) n, -1);
		layout->loads[layout->n_loads++] = (rhh_page_load){
			.attribute = a, .column = (uint8_t) n, .kind = RHH_PAGE_DECIMAL, .scale = 2
		};
	}
	for (uint8_t key = 0; key < d->spec.n_keys; key++)
		layout->loads[layout->n_loads++] = (rhh_page_load){
			.attribute = (uint8_t) (8 + key), .column = key, .kind = RHH_PAGE_STRING, .blanks = RHH_PAGE_DECLARED, .parameter = 1
		};
	for (uint32_t r = 0; r < n_results; r++)
		def_state(d, RHH_SUM_I128, def_column(d, 8, GEN_SMALL, 0, 0), -1);
	n = d->spec.n_columns;
	if (shape->computes || shape->filters)
		for (uint8_t i = 0; i < 4; i++)
			layout->inputs[layout->n_inputs++] = i == 3 ? (rhh_page_load){.attribute = 10, .kind = RHH_PAGE_VALUE} :
				(rhh_page_load){.attribute = (uint8_t) (5 + i), .kind = RHH_PAGE_DECIMAL, .scale = 2};
	if (shape->filters)
	{
		/* discount from 5 to 7, of a day in a year: few rows are left */
		const uint8_t discount = add_op(program, RHH_OP_COLUMN, n + 1, 0, 0);
		const uint8_t day = add_op(program, RHH_OP_COLUMN, n + 3, 0, 0);
		const uint8_t low = add_op(program, RHH_OP_LE_INT8, add_constant(program, 5), discount, 0);
		const uint8_t high = add_op(program, RHH_OP_LE_INT8, discount, add_constant(program, 7), 0);
		const uint8_t begin = add_op(program, RHH_OP_LE_INT8, add_constant(program, shape->much ? -5000 : -2191), day, 0);
		const uint8_t end = add_op(program, RHH_OP_LT_INT8, day, add_constant(program, shape->computes ? 5000 : -1826), 0);
		uint8_t		both = add_op(program, RHH_OP_AND, begin, end, 0);

		if (!shape->computes)
		{
			both = add_op(program, RHH_OP_AND, both, low, 0);
			both = add_op(program, RHH_OP_AND, both, high, 0);
		}
		program->has_filter = true;
		program->filter = both;
		layout->filter_inputs = 0xa;
	}
	if (shape->computes)
	{
		const uint8_t price = add_op(program, RHH_OP_COLUMN, n, 0, 0);
		const uint8_t one = add_constant(program, 100);
		const uint8_t discounted = add_op(program, RHH_OP_SUB_DECIMAL, one, add_op(program, RHH_OP_COLUMN, n + 1, 0, 0), 0);
		const uint8_t product = add_op(program, RHH_OP_MUL_TO_DECIMAL128, price, discounted, 0);

		for (uint8_t limb = 0; limb < 2; limb++)
		{
			program->results[limb].op = add_op(program, limb == 0 ? RHH_OP_LIMB_1_OF_2 : RHH_OP_LIMB_2_OF_2, product, 0, 0);
			program->results[limb].column = (uint8_t) (n - n_results + limb);
		}
		program->n_results = 2;
		if (shape->much)
		{
			const uint8_t taxed = add_op(program, RHH_OP_ADD_DECIMAL, one, add_op(program, RHH_OP_COLUMN, n + 2, 0, 0), 0);
			const uint8_t wide = add_op(program, RHH_OP_DECIMAL_AS_DECIMAL128, taxed, 0, 0);
			const uint8_t last = add_op(program, RHH_OP_MUL_DECIMAL128, product, wide, 0);

			for (uint32_t limb = 0; limb < 3; limb++)
			{
				program->results[2 + limb].op = add_op(program, (uint8_t) (RHH_OP_LIMB_1_OF_3 + limb), last, 0, 0);
				program->results[2 + limb].column = (uint8_t) (n - 3 + limb);
			}
			program->n_results = 5;
		}
	}
}

/* Reads pages, of the cache or of the host, in batches that lie in the pool; returns ms. */
static double
read_all(device *device, const def *d, uint8_t *pool, bool cached, rhh_map_stats *stats)
{
	const rhh_device_ops *ops = device->ops;
	double		start_ms = now_ms();
	uint32_t	submitted = 0;
	uint32_t	done = 0;
	rhh_map    *map;
	rhh_error	err;

	if (ops->map_create(device->dev, &d->spec, &map, &err) != RHH_OK)
		die(err.message);
	while (done < N_BATCHES)
	{
		struct pollfd fd = {.fd = ops->event_fd(device->dev), .events = POLLIN};
		rhh_event	events[16];
		uint32_t	n;

		while (submitted < N_BATCHES)
		{
			rhh_batch	batch;

			memcpy(&batch, pool + BATCH_ROOM * submitted, sizeof(batch));
			batch.cached = cached;
			if (cached)
			{
				batch.first_page = 0;
				batch.end_page = BENCH_PAGES;
			}
			if (ops->map_submit(map, &batch, 0, &err) != RHH_OK)
			{
				if (err.status == RHH_INVALID)
					die(err.message);
				break;
			}
			submitted++;
		}
		if (ops->poll(device->dev, events, 16, &n, &err) != RHH_OK)
			die(err.message);
		for (uint32_t e = 0; e < n; e++)
		{
			if (events[e].status != RHH_OK || events[e].n_bad_pages > 0 || events[e].n_refused > 0)
				die("pages could not be read");
			done++;
		}
		if (n == 0)
			poll(&fd, 1, 10);
	}
	start_ms = now_ms() - start_ms;
	ops->map_stats(map, stats);
	ops->map_destroy(map);
	return start_ms;
}

/* Lays out the batches, each behind its rhh_batch; returns the rows of all. */
static uint64_t
make_batches(const page_shape *shape, const rhh_page_layout *layout, uint8_t *pages, uint8_t *pool)
{
	rng			r = {.state = 1};
	uint32_t	n_rows[MADE_PAGES];
	uint64_t	sum = 0;
	tuple		t;

	for (uint32_t p = 0; p < MADE_PAGES; p++)
	{
		page_clear(pages + (size_t) p * RHH_PAGE_BYTES);
		n_rows[p] = 0;
		for (make_tuple(&t, shape, &r); page_add(pages + (size_t) p * RHH_PAGE_BYTES, &t);
			 make_tuple(&t, shape, &r))
			n_rows[p]++;
	}
	for (uint32_t first = 0; first < BENCH_PAGES; first += BATCH_PAGES)
	{
		uint8_t    *base = pool + BATCH_ROOM * (first / BATCH_PAGES);
		rhh_batch  *batch = (void *) base;
		rhh_page   *at;
		uint32_t   *slots;

		memset(base, 0, BATCH_ROOM);
		batch->base = (uint8_t *) (((uintptr_t) base + sizeof(rhh_batch) + 63) & ~(uintptr_t) 63);
		memcpy(batch->base, layout, sizeof(*layout));
		batch->pages_offset = (uint32_t) (sizeof(*layout) + 63) / 64 * 64;
		at = (void *) (batch->base + batch->pages_offset);
		batch->slots_offset = batch->pages_offset + BATCH_PAGES * (uint32_t) sizeof(rhh_page);
		slots = (void *) (batch->base + batch->slots_offset);
		batch->used_bytes = batch->refused_offset = batch->slots_offset + BATCH_PAGES * (uint32_t) sizeof(uint32_t);
		batch->end_page = MADE_PAGES;
		for (uint32_t p = first; p < BENCH_PAGES && p < first + BATCH_PAGES; p++, at++)
		{
			at->number = p % MADE_PAGES;
			at->n_rows = n_rows[p % MADE_PAGES];
			at->first_row = batch->n_rows;
			for (uint32_t i = 0; i < at->n_rows; i++)
				at->visible[i / 64] |= (uint64_t) 1 << i % 64;
			*slots++ = p;
			batch->n_rows += at->n_rows;
			batch->n_pages++;
		}
		sum += batch->n_rows;
	}
	return sum;
}

static void
bench_one(device *device, const page_shape *shape, int repeat)
{
	const rhh_device_ops *ops = device->ops;
	rhh_device_config config = {.cpu_threads = option_threads};
	const size_t pool_bytes = BATCH_ROOM * N_BATCHES;
	rhh_map_stats stats[2] = {{.kernel_ns = 0}};
	double		best[2] = {1e12, 1e12};
	rhh_page_layout layout;
	uint8_t    *pages;
	uint8_t    *pool;
	uint8_t    *made = need(pool_bytes);
	uint64_t	n_rows;
	rhh_error	err;
	def			d;

	def_init(&d);
	make_layout(&layout, shape, &d);
	if (posix_memalign((void **) &pages, 4096, (size_t) MADE_PAGES * RHH_PAGE_BYTES) != 0 ||
		posix_memalign((void **) &pool, 4096, pool_bytes) != 0)
		die("out of memory");
	n_rows = make_batches(shape, &layout, pages, pool);
	memcpy(made, pool, pool_bytes);
	d.spec.expected_groups = 100;
	d.spec.max_batch_rows = 1 << 22;
	d.spec.max_batch_bytes = 1 << 20;
	d.spec.max_page_bytes = 1 << 28;
	if (ops->open(device->info.ordinal, &config, &device->dev, &err) != RHH_OK ||
		ops->register_pool(device->dev, pool, pool_bytes, &err) != RHH_OK ||
		ops->register_pages(device->dev, pages, MADE_PAGES, &err) != RHH_OK)
		die(err.message);
	for (uint32_t i = 0; i < BENCH_PAGES / RHH_SLAB_PAGES; i++)
		if (ops->cache_slab(device->dev, i, &err) != RHH_OK)
			die(err.message);
	for (int r = 0; r <= repeat; r++)
		for (int cached = 0; cached < 2; cached++)
		{
			double		ms;

			/* devices write into batches */
			memcpy(pool, made, pool_bytes);
			ms = read_all(device, &d, pool, cached != 0, &stats[cached]);

			if (ms < best[cached])
				best[cached] = ms;
		}
	ops->close(device->dev);
	for (int cached = 0; cached < 2; cached++)
		printf("%s,%s%s,%llu,%llu,%u,%.3f,%.3f,%.3f,%.1f,%.1f\n", device->name, shape->name, cached ? " of the cache" : "",
			   (unsigned long long) n_rows, (unsigned long long) stats[cached].rows, option_threads, best[cached] * 1e6 / (double) n_rows,
			   (double) stats[cached].upload_ns / (double) n_rows, (double) stats[cached].kernel_ns / (double) n_rows,
			   (double) n_rows / best[cached] / 1e3, (double) BENCH_PAGES * RHH_PAGE_BYTES / best[cached] / 1e6);
	fflush(stdout);
	free(pages);
	free(pool);
	free(made);
}

void
bench_pages(device *device, int repeat, const char *only)
{
	bool		any = false;

	for (size_t i = 0; i < LENGTH_OF(page_shapes); i++)
	{
		if (only != NULL && fnmatch(only, page_shapes[i].name, 0) != 0)
			continue;
		if (!any)
			printf("device,case,rows,rows_left,threads,ns_per_row,reading_ns_per_row,grouping_ns_per_row,M_rows_per_s,GB_of_pages_per_s\n");
		any = true;
		bench_one(device, &page_shapes[i], repeat);
	}
}
