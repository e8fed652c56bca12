/*
 * rhh_cpu_table.c
 *		One partition of a map of the CPU device: slots, records, growth.
 *
 * rhh_cpu_table.h has the layout and the search.  This file has the insert with its chain
 * of displacements, the rebuild, the memory of records, and what is done with a finished
 * partition.
 *
 * An insert that is not possible leaves the partition as it was: if the chain ends at the
 * probe cap, it is undone from its log.  So it is always the new key that fails, and an
 * entry that is in the table stays there.
 *
 * Growing doubles the number of buckets, once or several times.  Home buckets come from the
 * high bits of the fingerprint, so the entries of old bucket b go to about bucket 2b: both
 * tables are walked once, in order, and no record is touched.  The probe cap cannot make it
 * fail: if a set of entries fits n buckets at distances below a cap, it fits 2n buckets
 * (the homes of any run of k new buckets lie in at most k/2 + 1 old ones).
 *
 * Memory.  Slots are replaced, records are only added.  All of it is charged to the budgets
 * of the map and of the device first, and rhh_cpu_part_free() gives everything back.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* MAP_ANONYMOUS, madvise */
#endif

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cpu/rhh_cpu_host.h"
#include "cpu/rhh_cpu_table.h"

#define HUGE_PAGE_BYTES ((size_t) 2 << 20)
#define MAX_BUCKETS (1u << 28)	/* slot counts stay below 2^32 */

/* ---------- memory ---------- */

static bool
charge_one(rhh_cpu_budget *budget, uint64_t bytes)
{
	uint64_t	used = atomic_load_explicit(&budget->used_bytes,
											memory_order_relaxed);
	uint64_t	peak;

	do
	{
		if (bytes > budget->limit_bytes || used > budget->limit_bytes - bytes)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&budget->used_bytes, &used,
													used + bytes,
													memory_order_relaxed,
													memory_order_relaxed));
	used += bytes;
	peak = atomic_load_explicit(&budget->peak_bytes, memory_order_relaxed);
	while (peak < used &&
		   !atomic_compare_exchange_weak_explicit(&budget->peak_bytes, &peak, used,
												  memory_order_relaxed,
												  memory_order_relaxed))
		;
	return true;
}

/*
 * Gives all that is kept for other maps back to the machine.  It holds the lock until
 * all is unmapped, so that a thread that finds nothing kept any more finds the memory
 * available.
 */
static void
drop_kept(rhh_cpu_reserve *reserve)
{
	pthread_mutex_lock(&reserve->lock);
	for (uint32_t i = 0; i < reserve->n_kept; i++)
		munmap(reserve->kept[i].pages, reserve->kept[i].bytes);
	reserve->n_kept = 0;
	reserve->kept_bytes = 0;
	pthread_mutex_unlock(&reserve->lock);
}

/* Looks whether the machine has memory for so much in all. */
static bool
look(const rhh_cpu_budget *budget, uint64_t used_bytes)
{
	rhh_cpu_host host;

	rhh_cpu_host_look(budget->root, &host);
	/* memory lent since the last look may not have been touched yet */
	return host.total_bytes == 0 || host.available_bytes >= rhh_cpu_host_floor(&host) +
		budget->look_bytes + used_bytes -
		atomic_load_explicit(&budget->seen_bytes, memory_order_relaxed);
}

/*
 * Does the machine have memory for so much in all?  If several threads ask at once, each
 * of them may look.
 */
static bool
machine_has(rhh_cpu_budget *budget, uint64_t used_bytes)
{
	struct timespec ts;
	uint64_t	now_ns;
	uint64_t	no_memory_ns;

	if (used_bytes <= atomic_load_explicit(&budget->seen_bytes, memory_order_relaxed))
		return true;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	now_ns = (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
	no_memory_ns = atomic_load_explicit(&budget->no_memory_ns, memory_order_relaxed);
	if (no_memory_ns != 0 && now_ns - no_memory_ns < RHH_CPU_LOOK_AGAIN_NS)
		return false;
	if (!look(budget, used_bytes))
	{
		/* what is kept may be what the machine lacks */
		drop_kept(budget->reserve);
		if (!look(budget, used_bytes))
		{
			atomic_store_explicit(&budget->no_memory_ns, now_ns, memory_order_relaxed);
			return false;
		}
	}
	atomic_store_explicit(&budget->no_memory_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&budget->seen_bytes, used_bytes + budget->look_bytes,
						  memory_order_relaxed);
	return true;
}

/* May the device lend so much more to a map? */
static bool
may_lend(rhh_cpu_budget *device, const rhh_cpu_budget *map, uint64_t bytes)
{
	uint64_t	used = atomic_load_explicit(&device->used_bytes, memory_order_relaxed);
	uint64_t	limit = device->limit_bytes;

	if (atomic_load_explicit(&map->used_bytes, memory_order_relaxed) + bytes >
		limit / RHH_CPU_LARGE_DIVISOR)
		limit -= limit / RHH_CPU_SMALL_DIVISOR;
	return used + bytes <= limit && machine_has(device, used + bytes);
}

/* Charges a budget and those above it, or none of them. */
bool
rhh_cpu_charge(rhh_cpu_budget *budget, uint64_t bytes)
{
	/* this may fail for each new key: then leave the device's counter alone */
	if (bytes > budget->limit_bytes ||
		atomic_load_explicit(&budget->used_bytes, memory_order_relaxed) >
		budget->limit_bytes - bytes)
		return false;
	/* from the top down, so that a map's peak is of what it got */
	if (budget->parent != NULL &&
		(!may_lend(budget->parent, budget, bytes) || !rhh_cpu_charge(budget->parent, bytes)))
		return false;
	if (charge_one(budget, bytes))
		return true;
	rhh_cpu_release(budget->parent, bytes);
	return false;
}

void
rhh_cpu_release(rhh_cpu_budget *budget, uint64_t bytes)
{
	for (; budget != NULL; budget = budget->parent)
	{
		uint64_t	used = atomic_fetch_sub_explicit(&budget->used_bytes, bytes,
													 memory_order_relaxed) - bytes;

		/* what is given back others may take: look before it is lent again */
		if (budget->root != NULL &&
			atomic_load_explicit(&budget->seen_bytes, memory_order_relaxed) >
			used + 2 * budget->look_bytes)
			atomic_store_explicit(&budget->seen_bytes, used + budget->look_bytes,
								  memory_order_relaxed);
	}
}

/*
 * Zeroed pages, huge ones if asked for and to be had, but for what is left at the end.
 * They take no memory before they are touched.
 */
static void *
map_pages(size_t wanted_bytes, bool huge)
{
	size_t		page_bytes = (size_t) sysconf(_SC_PAGESIZE);
	size_t		bytes = (wanted_bytes + page_bytes - 1) & ~(page_bytes - 1);
	size_t		extra = huge ? HUGE_PAGE_BYTES : 0;
	uint8_t    *p = mmap(NULL, bytes + extra, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (huge)
	{
		size_t		head = -(uintptr_t) p & (HUGE_PAGE_BYTES - 1);

		if (head > 0)
			munmap(p, head);
		p += head;
		if (extra > head)
			munmap(p + bytes, extra - head);
#ifdef MADV_HUGEPAGE
		(void) madvise(p, bytes & ~(HUGE_PAGE_BYTES - 1), MADV_HUGEPAGE);
#endif
	}
	return p;
}

/* False: no memory; there is nothing to free. */
bool
rhh_cpu_reserve_init(rhh_cpu_reserve *reserve, uint64_t limit_bytes)
{
	memset(reserve, 0, sizeof(*reserve));
	reserve->limit_bytes = limit_bytes / RHH_CPU_KEPT_DIVISOR < RHH_CPU_KEPT_BYTES_MAX ?
		limit_bytes / RHH_CPU_KEPT_DIVISOR : RHH_CPU_KEPT_BYTES_MAX;
	reserve->kept = calloc(reserve->limit_bytes / HUGE_PAGE_BYTES + 1,
						   sizeof(*reserve->kept));
	if (reserve->kept == NULL)
		return false;
	if (pthread_mutex_init(&reserve->lock, NULL) == 0)
		return true;
	free(reserve->kept);
	reserve->kept = NULL;
	return false;
}

void
rhh_cpu_reserve_free(rhh_cpu_reserve *reserve)
{
	drop_kept(reserve);
	free(reserve->kept);
	pthread_mutex_destroy(&reserve->lock);
}

/* Takes the entry out; the lock is held. */
static void *
remove_kept(rhh_cpu_reserve *reserve, uint32_t i)
{
	void	   *pages = reserve->kept[i].pages;

	reserve->kept_bytes -= reserve->kept[i].bytes;
	reserve->n_kept--;
	memmove(&reserve->kept[i], &reserve->kept[i + 1],
			(reserve->n_kept - i) * sizeof(*reserve->kept));
	return pages;
}

/*
 * Huge pages of just this many bytes, at least HUGE_PAGE_BYTES, with anything
 * in them; NULL: there are none.
 */
static void *
take_kept(rhh_cpu_reserve *reserve, size_t bytes)
{
	void	   *pages = NULL;

	pthread_mutex_lock(&reserve->lock);
	for (uint32_t i = reserve->n_kept; i-- > 0 && pages == NULL;)
	{
		if (reserve->kept[i].bytes == bytes)
			pages = remove_kept(reserve, i);
	}
	pthread_mutex_unlock(&reserve->lock);
	return pages;
}

/* Keeps huge pages, in place of those kept for longest if need be. */
static void
keep_pages(rhh_cpu_reserve *reserve, void *pages, size_t bytes)
{
	if (bytes > reserve->limit_bytes)
	{
		munmap(pages, bytes);
		return;
	}
	pthread_mutex_lock(&reserve->lock);
	while (reserve->kept_bytes + bytes > reserve->limit_bytes)
	{
		size_t		oldest_bytes = reserve->kept[0].bytes;

		munmap(remove_kept(reserve, 0), oldest_bytes);
	}
	reserve->kept[reserve->n_kept].pages = pages;
	reserve->kept[reserve->n_kept].bytes = bytes;
	reserve->n_kept++;
	reserve->kept_bytes += bytes;
	pthread_mutex_unlock(&reserve->lock);
}

static size_t
bucket_bytes(uint32_t n_buckets)
{
	return (size_t) n_buckets * sizeof(rhh_cpu_bucket);
}

/*
 * Memory of so many bytes, aligned to a cache line: huge pages, perhaps such as have been
 * kept, or from malloc if it is less than one, because mapping is slow for these.  What it
 * has may be anything if it need not be zeroed.  The caller has charged it.
 */
void *
rhh_cpu_take_pages(rhh_cpu_reserve *reserve, size_t bytes, bool zeroed)
{
	void	   *p;

	if (bytes >= HUGE_PAGE_BYTES)
	{
		p = take_kept(reserve, bytes);
		if (p == NULL)
			return map_pages(bytes, true);
	}
	else if (posix_memalign(&p, 64, bytes) != 0)
		return NULL;
	return zeroed ? memset(p, 0, bytes) : p;
}

void
rhh_cpu_give_pages(rhh_cpu_reserve *reserve, void *p, size_t bytes)
{
	if (bytes >= HUGE_PAGE_BYTES)
		keep_pages(reserve, p, bytes);
	else
		free(p);
}

static rhh_cpu_bucket *
allocate_buckets(rhh_cpu_part *part, uint32_t n_buckets)
{
	return rhh_cpu_take_pages(part->layout->reserve, bucket_bytes(n_buckets), true);
}

static void
free_buckets(rhh_cpu_part *part, rhh_cpu_bucket *buckets, uint32_t n_buckets)
{
	rhh_cpu_give_pages(part->layout->reserve, buckets, bucket_bytes(n_buckets));
}

/*
 * Makes sure that there is room for one more record.  The segment in use is
 * charged step by step and mapped as a whole: what is not charged is not
 * touched.
 */
static bool
make_record_room(rhh_cpu_part *part)
{
	const rhh_cpu_layout *layout = part->layout;
	bool		new_segment = part->n_segments == 0 || part->last_records ==
		(part->n_segments == 1 ? layout->first_records : layout->records_per_segment);
	uint32_t	n = part->n_segments - (new_segment ? 0 : 1);
	size_t		step = n == 0 ? layout->first_step_bytes : layout->step_bytes;

	if (!new_segment && part->last_records < part->last_charged)
		return true;

	if (!new_segment && step > RHH_CPU_SEGMENT_BYTES - part->last_charged_bytes)
		step = RHH_CPU_SEGMENT_BYTES - part->last_charged_bytes;
	if (n >= layout->max_segments || !rhh_cpu_charge(part->budget, step))
		return false;
	if (new_segment)
	{
		if (n == part->segments_room)
		{
			uint32_t	room = n == 0 ? 16 : 2 * n;
			uint8_t   **segments = realloc(part->segments, room * sizeof(uint8_t *));

			if (segments == NULL)
			{
				rhh_cpu_release(part->budget, step);
				return false;
			}
			part->segments = segments;
			part->segments_room = room;
		}
		/* a huge page must not be touched where only a part of it is charged */
		part->segments[n] = NULL;
		if (step == RHH_CPU_SEGMENT_BYTES)
			part->segments[n] = take_kept(layout->reserve, step);
		if (part->segments[n] == NULL)
			part->segments[n] = map_pages(RHH_CPU_SEGMENT_BYTES,
										  step == RHH_CPU_SEGMENT_BYTES);
		if (part->segments[n] == NULL)
		{
			rhh_cpu_release(part->budget, step);
			return false;
		}
		part->n_segments++;
		part->last_records = 0;
		part->last_charged_bytes = 0;
	}
	part->last_charged_bytes += step;
	part->record_bytes += step;
	part->last_charged = (uint32_t) (part->last_charged_bytes / layout->record_bytes);
	if (part->last_charged > layout->records_per_segment)
		part->last_charged = layout->records_per_segment;
	return true;
}

/* The number of the group whose record is to come next; there must be room. */
static uint32_t
next_group(const rhh_cpu_part *part)
{
	return (part->n_segments - 1) << part->layout->segment_bits |
		part->last_records;
}

/* The keys of a segment's records, where these have none. */
static uint32_t *
keys_apart(const rhh_cpu_part *part, uint32_t segment)
{
	return (uint32_t *) (part->segments[segment] +
						 (size_t) part->layout->records_per_segment *
						 part->layout->stride);
}

/* Sets a record's states as if no row has touched them. */
static void
start_states(const rhh_cpu_layout *layout, uint8_t *record)
{
	uint64_t   *words = (uint64_t *) record;

	for (uint32_t w = layout->key_words; w < layout->record_words; w++)
		words[w] = 0;
	for (uint32_t i = 0; i < layout->n_initial; i++)
		words[layout->initial_word[i]] = (uint64_t) layout->initial[i];
}

/* Makes group next_group() with this key. */
static void
start_record(rhh_cpu_part *part, const uint64_t *key)
{
	const rhh_cpu_layout *layout = part->layout;
	uint64_t   *words = (uint64_t *) rhh_cpu_record(part, next_group(part));

	for (uint32_t w = 0; w < layout->key_words; w++)
		words[w] = key[w];
	if (!layout->verify)
		keys_apart(part, part->n_segments - 1)[part->last_records] = (uint32_t) key[0];
	/* the segment may be one that another map has used */
	start_states(layout, (uint8_t *) words);
	part->last_records++;
	part->n_groups++;
}

/* ---------- slots ---------- */

static void
set_buckets(rhh_cpu_part *part, rhh_cpu_bucket *buckets, uint32_t n_buckets)
{
	const rhh_map_spec *spec = &part->layout->spec;
	uint64_t	slots = (uint64_t) n_buckets * RHH_CPU_SLOTS;

	part->buckets = buckets;
	part->n_buckets = n_buckets;
	part->max_probe = spec->max_probe_buckets < n_buckets ?
		spec->max_probe_buckets : n_buckets;
	part->grow_above = (uint32_t) ((double) slots * (double) spec->load_factor);
	part->refuse_above = (uint32_t) ((double) slots * RHH_CPU_HARD_LOAD);
	if (part->refuse_above < part->grow_above)
		part->refuse_above = part->grow_above;
	part->sparse_above = part->most_buckets < MAX_BUCKETS && n_buckets < RHH_CPU_SPARSE_BUCKETS ?
		(uint32_t) slots / RHH_CPU_SPARSE_DIVISOR : UINT32_MAX;
	atomic_store_explicit(&part->slots, slots, memory_order_relaxed);
}

/*
 * Puts an entry that is not in the partition into a slot, displacing richer ones.  False:
 * some entry would exceed the probe cap, and nothing has changed.
 */
static bool
place(rhh_cpu_part *part, uint32_t fp, uint32_t group)
{
	uint32_t	b = rhh_home_bucket(fp, part->n_buckets);
	uint32_t	distance = 0;
	uint32_t	n_log = 0;
	struct
	{
		uint32_t	b;
		uint32_t	slot;
	}			log[RHH_CPU_MAX_CHAIN];

	while (distance < part->max_probe)
	{
		rhh_cpu_bucket *bucket = &part->buckets[b];

		if (!rhh_cpu_bucket_full(bucket))
		{
			uint32_t	slot = 0;

			while (bucket->group[slot] != 0)
				slot++;
			bucket->fp[slot] = fp;
			bucket->group[slot] = group;
			return true;
		}
		if (distance > 0)
		{
			uint32_t	slot = 0;
			uint32_t	least = rhh_cpu_richest(part, b, &slot);

			if (least < distance)
			{
				uint32_t	rich_fp = bucket->fp[slot];
				uint32_t	rich_group = bucket->group[slot];

				if (n_log == RHH_CPU_MAX_CHAIN)
					break;
				log[n_log].b = b;
				log[n_log].slot = slot;
				n_log++;
				bucket->fp[slot] = fp;
				bucket->group[slot] = group;
				fp = rich_fp;
				group = rich_group;
				distance = least;
			}
		}
		distance++;
		if (++b == part->n_buckets)
			b = 0;
	}

	/* no slot for what is carried now: give every entry its old slot back */
	while (n_log-- > 0)
	{
		rhh_cpu_bucket *bucket = &part->buckets[log[n_log].b];
		uint32_t	slot = log[n_log].slot;
		uint32_t	poor_fp = bucket->fp[slot];
		uint32_t	poor_group = bucket->group[slot];

		bucket->fp[slot] = fp;
		bucket->group[slot] = group;
		fp = poor_fp;
		group = poor_group;
	}
	return false;
}

/* Rebuilds the partition with old_n << doublings buckets.  False: it is as it was. */
static bool
rebuild(rhh_cpu_part *part, uint32_t doublings)
{
	rhh_cpu_bucket *old = part->buckets;
	uint32_t	old_n = part->n_buckets;
	uint32_t	new_n = old_n << doublings;
	rhh_cpu_bucket *buckets;

	if (part->cannot_grow || old_n > part->most_buckets >> doublings ||
		!rhh_cpu_charge(part->budget, bucket_bytes(new_n)))
		return false;
	buckets = allocate_buckets(part, new_n);
	if (buckets == NULL)
	{
		rhh_cpu_release(part->budget, bucket_bytes(new_n));
		part->cannot_grow = true;
		return false;
	}

	set_buckets(part, buckets, new_n);
	for (uint32_t b = 0; b < old_n; b++)
	{
		for (uint32_t i = 0; i < RHH_CPU_SLOTS && old[b].group[i] != 0; i++)
		{
			if (place(part, old[b].fp[i], old[b].group[i]))
				continue;
			/* see the top: only a chain longer than its log can get here */
			set_buckets(part, old, old_n);
			free_buckets(part, buckets, new_n);
			rhh_cpu_release(part->budget, bucket_bytes(new_n));
			part->cannot_grow = true;
			return false;
		}
	}
	free_buckets(part, old, old_n);
	rhh_cpu_release(part->budget, bucket_bytes(old_n));
	rhh_cpu_count(&part->rehashes, 1);
	return true;
}

/*
 * Doubles the buckets, or makes as many at once as were estimated: since the table has
 * become full, the estimate was not far too high.
 */
static bool
grow(rhh_cpu_part *part)
{
	uint32_t	jump = part->jump;

	part->jump = 0;
	return (jump > 1 && rebuild(part, jump)) || rebuild(part, 1);
}

/*
 * Makes a group for a key that is not in the partition.  Returns its number plus one; or
 * 0 if there is no slot or no record for it, and then no state and no entry has changed.
 */
uint32_t
rhh_cpu_insert(rhh_cpu_part *part, uint32_t fp, const uint64_t *key)
{
	uint32_t	group;

	if (!make_record_room(part))
		return 0;
	if (part->n_slots_used >= part->sparse_above && !grow(part))
		part->sparse_above = UINT32_MAX;
	if (part->n_slots_used >= part->grow_above && !grow(part) &&
		(part->most_buckets < MAX_BUCKETS || part->n_slots_used >= part->refuse_above))
		return 0;
	group = next_group(part) + 1;
	while (!place(part, fp, group))
	{
		rhh_cpu_count(&part->failed_slots, 1);

		/*
		 * Keys that crowd one place (equal fingerprints, a small probe cap)
		 * would make a table of any size grow.
		 */
		if (part->n_slots_used < part->grow_above / 2 || !grow(part))
			return 0;
	}
	part->n_slots_used++;
	start_record(part, key);
	return group;
}

/* The group of SINGLE's NULL key, plus one; 0: no memory for its record. */
uint32_t
rhh_cpu_null_group(rhh_cpu_part *part)
{
	static const uint64_t no_key = 0;

	if (part->null_group == 0)
	{
		if (!make_record_room(part))
			return 0;
		part->null_group = next_group(part) + 1;
		start_record(part, &no_key);
	}
	return part->null_group;
}

/* ---------- life of a partition ---------- */

static size_t
clamp_step(uint64_t bytes, size_t most)
{
	size_t		step = RHH_CPU_STEP_BYTES_MIN;

	while (step < most && 2 * (uint64_t) step <= bytes)
		step *= 2;
	return step;
}

/* Rounds n up a little, if records of that size lie in two cache lines less often. */
uint32_t
rhh_cpu_stride(uint32_t bytes)
{
	uint32_t	power = 8;

	while (power < bytes)
		power *= 2;
	return power <= 64 && power - bytes <= power / RHH_CPU_STRIDE_WASTE ? power : bytes;
}

/* Lays out a map.  limit_bytes is the least of the limits that apply to it. */
void
rhh_cpu_layout_init(rhh_cpu_layout *layout, const rhh_map_spec *spec,
					uint32_t n_workers, uint64_t limit_bytes)
{
	uint64_t	part_limit;
	uint64_t	local_bytes = limit_bytes / RHH_CPU_LOCAL_DIVISOR / n_workers;
	uint32_t	word;

	memset(layout, 0, sizeof(*layout));
	layout->spec = *spec;
	rhh_key_plan_init(&layout->plan, spec);
	layout->verify = layout->plan.form == RHH_KEY_WIDE || layout->plan.bits > 32;
	/* one thread needs neither lists nor a local table */
	if (n_workers > 1)
	{
		while (1u << layout->part_bits < RHH_CPU_PARTS_PER_THREAD * n_workers &&
			   1u << layout->part_bits < RHH_CPU_MAX_PARTS)
			layout->part_bits++;
	}
	layout->n_parts = 1u << layout->part_bits;
	part_limit = limit_bytes / layout->n_parts;

	layout->key_words = layout->verify ? layout->plan.n_words : 0;
	word = layout->key_words;
	for (uint32_t s = 0; s < spec->n_states; s++)
	{
		uint64_t	start = rhh_op_start(spec->states[s].op);

		layout->state_word[s] = word;
		if (start != 0)
		{
			layout->initial_word[layout->n_initial] = word;
			layout->initial[layout->n_initial++] = (int64_t) start;
		}
		word += rhh_state_words(spec, s);
	}
	layout->record_words = word;
	layout->stride = word == 0 ? 0 : rhh_cpu_stride((uint32_t) (word * sizeof(uint64_t)));
	layout->record_bytes = layout->stride +
		(layout->verify ? 0 : (uint32_t) sizeof(uint32_t));

	layout->run_rows = layout->key_words <= 4 ? RHH_CPU_RUN_ROWS :
		layout->key_words <= 16 ? RHH_CPU_RUN_ROWS_WIDE : RHH_CPU_RUN_ROWS_WIDER;

	layout->records_per_segment =
		(uint32_t) (RHH_CPU_SEGMENT_BYTES / layout->record_bytes);
	layout->segment_bits = 32 - (uint32_t) __builtin_clz(layout->records_per_segment - 1);
	/* the number plus one must fit 32 bits */
	layout->max_segments = (uint32_t) (UINT64_C(1) << (32 - layout->segment_bits)) - 1;
	layout->first_step_bytes = clamp_step(part_limit / 16, RHH_CPU_STEP_BYTES_MAX);
	layout->step_bytes = clamp_step(part_limit / 16, RHH_CPU_SEGMENT_BYTES);
	layout->first_records = layout->step_bytes < RHH_CPU_SEGMENT_BYTES ?
		layout->records_per_segment :
		(uint32_t) (RHH_CPU_FIRST_SEGMENT_BYTES / layout->record_bytes);

	layout->simple_states = true;
	for (uint32_t s = 0; s < spec->n_states; s++)
		layout->simple_states &= spec->states[s].op <= RHH_ANY;
	layout->sorts_rows = layout->simple_states && layout->first_records >= RHH_CPU_FEW_GROUPS && spec->n_states > 0;
	if (layout->stride > 0)
		layout->stride_inverse = (uint32_t) (UINT32_MAX / layout->stride + 1);

	if (n_workers > 1)
	{
		if (local_bytes > RHH_CPU_LOCAL_BYTES_MAX)
			local_bytes = RHH_CPU_LOCAL_BYTES_MAX;
		layout->local_buckets = RHH_CPU_MIN_BUCKETS;
		while (2 * layout->local_buckets *
			   (sizeof(rhh_cpu_bucket) + RHH_CPU_SLOTS * layout->record_bytes) <=
			   local_bytes)
			layout->local_buckets *= 2;
		if (layout->local_buckets < RHH_CPU_LOCAL_MIN_BUCKETS)
			layout->local_buckets = 0;
	}
}

/* False: no memory; the partition is empty and may be freed or forgotten. */
bool
rhh_cpu_part_init(rhh_cpu_part *part, const rhh_cpu_layout *layout,
				  rhh_cpu_budget *budget, uint64_t limit_bytes)
{
	uint64_t	groups = layout->spec.expected_groups / layout->n_parts;
	uint64_t	slots;
	uint64_t	n_buckets;

	memset(part, 0, sizeof(*part));
	part->layout = layout;
	part->budget = budget;
	part->most_buckets = MAX_BUCKETS;

	if (groups > MAX_BUCKETS)
		groups = MAX_BUCKETS;
	groups += groups / RHH_CPU_SLACK_DIVISOR;
	slots = (uint64_t) ((double) groups / (double) layout->spec.load_factor);
	for (; slots > RHH_CPU_INITIAL_SLOTS_MAX / layout->n_parts; slots = (slots + 1) / 2)
		part->jump++;
	if (part->jump > RHH_CPU_MAX_JUMP)
		part->jump = RHH_CPU_MAX_JUMP;
	n_buckets = slots / RHH_CPU_SLOTS + 1;

	/* leave most of a small limit to the records */
	while (n_buckets > RHH_CPU_MIN_BUCKETS &&
		   n_buckets * sizeof(rhh_cpu_bucket) > limit_bytes / layout->n_parts / 8)
		n_buckets /= 2;
	if (n_buckets < RHH_CPU_MIN_BUCKETS)
		n_buckets = RHH_CPU_MIN_BUCKETS;

	for (;; n_buckets = n_buckets / 2 > RHH_CPU_MIN_BUCKETS ?
		 n_buckets / 2 : RHH_CPU_MIN_BUCKETS)
	{
		uint64_t	bytes = bucket_bytes((uint32_t) n_buckets);

		if (rhh_cpu_charge(budget, bytes))
		{
			rhh_cpu_bucket *buckets = allocate_buckets(part, (uint32_t) n_buckets);

			if (buckets != NULL)
			{
				set_buckets(part, buckets, (uint32_t) n_buckets);
				break;
			}
			rhh_cpu_release(budget, bytes);
		}
		if (n_buckets == RHH_CPU_MIN_BUCKETS)
			return false;
	}
	if (!make_record_room(part))
	{
		rhh_cpu_part_free(part);
		return false;
	}
	return true;
}

/* Makes a thread's local table.  If there is no memory for it, it stays unused. */
void
rhh_cpu_local_init(rhh_cpu_local *local, const rhh_cpu_layout *layout,
				   rhh_cpu_budget *budget)
{
	rhh_cpu_part *part = &local->part;
	rhh_cpu_bucket *buckets;

	memset(local, 0, sizeof(*local));
	part->layout = layout;
	part->budget = budget;
	part->most_buckets = layout->local_buckets;
	local->full = local->bypassed = true;
	if (layout->local_buckets == 0 ||
		!rhh_cpu_charge(budget, bucket_bytes(RHH_CPU_MIN_BUCKETS)))
		return;
	buckets = allocate_buckets(part, RHH_CPU_MIN_BUCKETS);
	if (buckets == NULL)
	{
		rhh_cpu_release(budget, bucket_bytes(RHH_CPU_MIN_BUCKETS));
		return;
	}
	set_buckets(part, buckets, RHH_CPU_MIN_BUCKETS);
	local->used = true;
	local->full = local->bypassed = false;
}

/* Frees the slots of a finished partition: only its records are still read. */
void
rhh_cpu_part_free_slots(rhh_cpu_part *part)
{
	if (part->buckets != NULL)
	{
		free_buckets(part, part->buckets, part->n_buckets);
		rhh_cpu_release(part->budget, bucket_bytes(part->n_buckets));
		part->buckets = NULL;
	}
}

void
rhh_cpu_part_free(rhh_cpu_part *part)
{
	rhh_cpu_part_free_slots(part);
	for (uint32_t i = 0; i < part->n_segments; i++)
	{
		size_t		step = i == 0 ? part->layout->first_step_bytes : part->layout->step_bytes;

		/* mapped as huge pages, see make_record_room() */
		if (step == RHH_CPU_SEGMENT_BYTES)
			keep_pages(part->layout->reserve, part->segments[i], step);
		else
			munmap(part->segments[i], RHH_CPU_SEGMENT_BYTES);
	}
	free(part->segments);
	rhh_cpu_release(part->budget, part->record_bytes);
	part->segments = NULL;
	part->n_segments = 0;
	part->record_bytes = 0;
}

/* Counts the buckets that are read to find each key once. */
void
rhh_cpu_part_probe_stats(rhh_cpu_part *part)
{
	uint64_t	sum = 0;
	uint32_t	max = 0;

	for (uint32_t b = 0; b < part->n_buckets; b++)
	{
		const rhh_cpu_bucket *bucket = &part->buckets[b];

		for (uint32_t i = 0; i < RHH_CPU_SLOTS && bucket->group[i] != 0; i++)
		{
			uint32_t	n = rhh_cpu_distance(part, bucket->fp[i], b) + 1;

			sum += n;
			if (n > max)
				max = n;
		}
	}
	atomic_store_explicit(&part->probe_sum, sum, memory_order_relaxed);
	atomic_store_explicit(&part->probe_max, max, memory_order_relaxed);
}

/* ---------- merging ---------- */

/* Adds a group's states to those of another record of the same key. */
static void
combine(const rhh_cpu_layout *layout, uint8_t *to_record, const uint8_t *from_record)
{
	for (uint32_t s = 0; s < layout->spec.n_states; s++)
	{
		uint32_t	word = layout->state_word[s];

		rhh_state_combine(layout->spec.states[s].op,
						  rhh_arg_bytes(&layout->spec, s),
						  (uint64_t *) to_record + word,
						  (const uint64_t *) from_record + word);
	}
}

/*
 * Makes room for n more entries that come in the order of their home buckets.  A table
 * that grew while they come would be full at its front while the rest of it is empty, and
 * place() would not find a slot for them there.
 */
static void
reserve_slots(rhh_cpu_part *part, uint32_t n)
{
	uint32_t	doublings = 0;

	while ((uint64_t) part->grow_above << doublings < (uint64_t) part->n_slots_used + n &&
		   part->n_buckets << doublings <= part->most_buckets / 2)
		doublings++;
	if (doublings > 0)
		(void) rebuild(part, doublings);
}

/*
 * Moves those groups of a local table that belong to this partition into it.  Returns how
 * many found no room: these stay in the slots of the local table, and the others are taken
 * out.  Several partitions may do so at the same time: each writes only to slots of its
 * own groups, and of the other slots reads the fingerprints.
 */
uint32_t
rhh_cpu_part_merge(rhh_cpu_part *part, uint32_t part_number, rhh_cpu_part *local)
{
	const rhh_cpu_layout *layout = part->layout;
	uint32_t	n_left = 0;

	reserve_slots(part, local->n_groups / layout->n_parts);
	if (part_number == 0 && local->null_group != 0)
	{
		uint32_t	group = rhh_cpu_null_group(part);

		if (group != 0)
		{
			combine(layout, rhh_cpu_record(part, group - 1),
					rhh_cpu_record(local, local->null_group - 1));
			local->null_group = 0;
		}
		else
			n_left++;
	}
	for (uint32_t b = 0; b < local->n_buckets; b++)
	{
		rhh_cpu_bucket *bucket = &local->buckets[b];

		for (uint32_t i = 0; i < RHH_CPU_SLOTS; i++)
		{
			uint32_t	fp = bucket->fp[i];
			const uint64_t *key;
			const uint8_t *record;
			uint64_t	short_key;
			uint32_t	group;

			if (rhh_cpu_share(layout, fp) != part_number || bucket->group[i] == 0)
				continue;
			record = rhh_cpu_record(local, bucket->group[i] - 1);
			short_key = rhh_unhash32(&layout->plan.hash, fp);
			key = layout->verify ? (const uint64_t *) record : &short_key;
			group = rhh_cpu_find(part, fp, rhh_home_bucket(fp, part->n_buckets),
								 layout->verify ? key : NULL);
			if (group == 0)
				group = rhh_cpu_insert(part, fp, key);
			if (group != 0)
			{
				combine(layout, rhh_cpu_record(part, group - 1), record);
				bucket->group[i] = 0;
			}
			else
				n_left++;
		}
	}
	atomic_store_explicit(&part->groups, part->n_groups, memory_order_relaxed);
	return n_left;
}

/* ---------- results ---------- */

/* Copies word w of n records to a column of the result. */
static inline void
copy_word(uint64_t *to, const uint8_t *record, uint32_t stride, uint32_t w, uint32_t n)
{
	const uint8_t *from = record + w * sizeof(uint64_t);

	for (uint32_t i = 0; i < n; i++, from += stride)
		to[i] = *(const uint64_t *) from;
}

/* The same of a key's bits, (key >> shift) & mask; apart: its keys, or NULL. */
static inline void
copy_bits(uint64_t *to, const uint8_t *record, uint32_t stride, const uint32_t *apart,
		  uint32_t n, uint32_t shift, uint64_t mask)
{
	if (apart != NULL)
	{
		for (uint32_t i = 0; i < n; i++)
			to[i] = ((uint64_t) apart[i] >> shift) & mask;
		return;
	}
	for (uint32_t i = 0; i < n; i++, record += stride)
		to[i] = (*(const uint64_t *) record >> shift) & mask;
}

/* How many groups were made before the one with this number. */
static uint64_t
groups_before(const rhh_cpu_part *part, uint32_t number)
{
	const rhh_cpu_layout *layout = part->layout;
	uint32_t	segment = number >> layout->segment_bits;
	uint32_t	index = number & ((1u << layout->segment_bits) - 1);

	return segment == 0 ? index : layout->first_records +
		(uint64_t) (segment - 1) * layout->records_per_segment + index;
}

/* The number of the i-th group made. */
static uint32_t
number_of(const rhh_cpu_layout *layout, uint64_t i)
{
	if (i < layout->first_records)
		return (uint32_t) i;
	i -= layout->first_records;
	return (uint32_t) (1 + i / layout->records_per_segment) << layout->segment_bits |
		(uint32_t) (i % layout->records_per_segment);
}

/* Is a group wanted, whose states are these words? */
static bool
is_wanted(const rhh_map_spec *spec, const rhh_group_condition *conditions, uint32_t n,
		  const uint64_t *states)
{
	const uint32_t first = rhh_state_word(spec, 0);

	for (uint32_t c = 0; c < n; c++)
	{
		const rhh_group_condition *condition = &conditions[c];
		const uint64_t *word = &states[rhh_state_word(spec, condition->state) - first];
		const int64_t high = spec->states[condition->state].op == RHH_SUM_I128 ?
			(int64_t) word[1] : (int64_t) word[0] >> 63;

		if (condition->except_state >= 0 &&
			states[rhh_state_word(spec, (uint32_t) condition->except_state) - first] ==
			condition->except_word)
			continue;
		if (!rhh_condition_holds(condition, word[0], high))
			return false;
	}
	return true;
}

/*
 * Forgets the groups for which a condition is false.  The partition is finished, and nothing is looked
 * for in it any more.  Returns how many it had.
 */
uint64_t
rhh_cpu_part_filter(rhh_cpu_part *part, const rhh_group_condition *conditions, uint32_t n)
{
	const rhh_cpu_layout *layout = part->layout;
	const uint64_t n_before = part->n_groups;
	uint32_t	null_group = 0;
	uint64_t	n_kept = 0;

	for (uint64_t i = 0; i < n_before; i++)
	{
		const uint32_t number = number_of(layout, i);
		uint8_t    *record = rhh_cpu_record(part, number);
		uint32_t	to;

		if (!is_wanted(&layout->spec, conditions, n,
					   (const uint64_t *) record + layout->key_words))
			continue;
		to = number_of(layout, n_kept++);
		if (part->null_group == number + 1)
			null_group = to + 1;
		if (to == number)
			continue;
		memcpy(rhh_cpu_record(part, to), record, layout->stride);
		if (!layout->verify)
		{
			const uint32_t mask = (1u << layout->segment_bits) - 1;

			keys_apart(part, to >> layout->segment_bits)[to & mask] =
				keys_apart(part, number >> layout->segment_bits)[number & mask];
		}
	}
	part->null_group = null_group;
	part->n_groups = n_kept;
	return n_before - n_kept;
}

/*
 * Copies n groups, from the first-th one made on, to a result, from its group at on.
 */
void
rhh_cpu_part_extract(const rhh_cpu_part *part, uint64_t first, uint32_t n,
					 const rhh_result *result, uint32_t at)
{
	/* few enough that their records stay cached from the first word to the last */
	enum
	{
		BLOCK = 256
	};
	const rhh_cpu_layout *layout = part->layout;
	const rhh_key_plan *plan = &layout->plan;
	size_t		column = result->capacity_groups;
	uint64_t   *words = result->words;
	uint32_t	state_words = layout->record_words - layout->key_words;

	if (part->null_group != 0)
	{
		uint64_t	i = groups_before(part, part->null_group - 1);

		for (uint32_t j = 0; j < n; j++)
			words[at + j] = 0;
		if (i >= first && i < first + n)
			words[at + (uint32_t) (i - first)] = 1;
	}
	else if (plan->form == RHH_KEY_SINGLE)
		memset(&words[at], 0, n * sizeof(uint64_t));

	while (n > 0)
	{
		bool		in_first = first < layout->first_records;
		uint64_t	behind = in_first ? first : first - layout->first_records;
		uint32_t	segment = in_first ? 0 :
			1 + (uint32_t) (behind / layout->records_per_segment);
		uint32_t	index = (uint32_t) (behind % layout->records_per_segment);
		uint32_t	room = (in_first ? layout->first_records :
							layout->records_per_segment) - index;
		const uint32_t *apart = layout->verify ? NULL : keys_apart(part, segment) + index;
		const uint8_t *record = part->segments[segment] +
			(size_t) index * layout->stride;
		uint32_t	m = n < BLOCK ? n : BLOCK;
		uint64_t   *to = words + at;

		if (m > room)
			m = room;

		switch (plan->form)
		{
			case RHH_KEY_SINGLE:
				to += column;
				copy_bits(to, record, layout->stride, apart, m, 0, UINT64_MAX);
				to += column;
				break;
			case RHH_KEY_PACKED:
				copy_bits(to, record, layout->stride, apart, m, plan->null_shift,
						  UINT64_MAX);
				to += column;
				for (uint32_t k = 0; k < plan->n_keys; k++, to += column)
					copy_bits(to, record, layout->stride, apart, m, plan->shift[k],
							  UINT64_MAX >> (64 - 8 * plan->bytes[k]));
				break;
			default:
				for (uint32_t w = 0; w < layout->key_words; w++, to += column)
					copy_word(to, record, layout->stride, w, m);
				break;
		}
		for (uint32_t w = 0; w < state_words; w++, to += column)
			copy_word(to, record, layout->stride, layout->key_words + w, m);
		first += m;
		at += m;
		n -= m;
	}
}

/*
 * Moves the groups that merging has left in a local table to a result, from its group at
 * on.  Returns the number of groups that the result has then.
 */
uint32_t
rhh_cpu_local_extract(rhh_cpu_local *local, const rhh_result *result, uint32_t at)
{
	rhh_cpu_part *part = &local->part;

	if (!local->used)
		return at;
	if (part->null_group != 0 && at < result->capacity_groups)
	{
		rhh_cpu_part_extract(part, groups_before(part, part->null_group - 1), 1, result,
							 at++);
		part->null_group = 0;
	}
	for (uint32_t b = 0; b < part->n_buckets; b++)
	{
		for (uint32_t i = 0; i < RHH_CPU_SLOTS && at < result->capacity_groups; i++)
		{
			uint32_t   *group = &part->buckets[b].group[i];

			if (*group == 0)
				continue;
			rhh_cpu_part_extract(part, groups_before(part, *group - 1), 1, result, at++);
			*group = 0;
		}
	}
	return at;
}
