/*
 * rhh_kernels.cuh
 *		The kernels, in the order of a table's life.
 *
 *		fill		states of numbers not yet handed out
 *		batch		a batch's rows, or only those that failed before (replay)
 *		rehash		entries and orphans of a table into a larger one (growth)
 *		reconcile	copies of a key and orphans merge (finish)
 *		compact		the slots' live entries move to the front (finish)
 *		extract		a range of live entries or orphans into result columns
 *
 * Kernels of one table run in one stream, so each finds the table at rest.
 * Each launch has at most as many tiles as view.reserves and view.orphan_limit
 * allow for; the host sees to it.
 *
 * Template arguments: the slot's bytes and whether equal fingerprints need
 * verifying.  Three pairs are in use: <8, false>, <8, true>, <16, false>.
 */
#ifndef RHH_KERNELS_CUH
#define RHH_KERNELS_CUH

#include "rhh_table.cuh"

#define RHH_WARP 0xFFFFFFFFu

/* Number of the calling lane's tile in the grid, and how many there are. */
#define RHH_TILE_ID(N) ((blockIdx.x * blockDim.x + threadIdx.x) / (N))
#define RHH_TILES(N) (gridDim.x * blockDim.x / (N))

/* rhh_mix32's inverse: a key of <= 32 bits from its fingerprint. */
RHH_DEV uint32_t
rhh_unmix32(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x43021123U;
	x ^= x >> 15 ^ x >> 30;
	x *= 0x1d69e2a5U;
	x ^= x >> 16;
	return x;
}

RHH_DEV uint64_t
rhh_init_word(const rhh_program &prog, uint32_t word)
{
	switch (prog.init[word])
	{
		case RHH_INIT_MOST:
			return (uint64_t) INT64_MAX;
		case RHH_INIT_LEAST:
			return (uint64_t) INT64_MIN;
		default:
			return 0;
	}
}

/* Initial states of the groups [first, first + n). */
static __global__ void
rhh_fill_kernel(const __grid_constant__ rhh_program prog, uint64_t *states,
				uint64_t first, uint64_t n)
{
	uint32_t	n_words = prog.n_state_words;
	uint64_t	end = (first + n) * n_words;

	for (uint64_t i = first * n_words + blockIdx.x * blockDim.x + threadIdx.x;
		 i < end; i += gridDim.x * blockDim.x)
		states[i] = rhh_init_word(prog, (uint32_t) (i % n_words));
}

/*
 * The place of a group in a block's table of local states: an index below
 * n_local (a power of two), or RHH_NO_GROUP if there is no room near.  Any
 * thread by itself; racing threads with one group get one place.
 */
RHH_DEV uint32_t
rhh_local_place(uint32_t *local_groups, uint32_t n_local, uint32_t group)
{
	uint32_t	i = group * 0x9E3779B1u >> 16;

	for (int probe = 0; probe < RHH_CUDA_LOCAL_PROBES; probe++, i++)
	{
		uint32_t   *at = &local_groups[i & (n_local - 1)];
		uint32_t	seen = *(volatile uint32_t *) at;

		if (seen == RHH_NO_GROUP)
			seen = atomicCAS(at, RHH_NO_GROUP, group);
		if (seen == group || seen == RHH_NO_GROUP)
			return i & (n_local - 1);
	}
	return RHH_NO_GROUP;
}

/*
 * A batch.  A thread has a row: it packs the row's key and, when the row's
 * group is known, updates the group's states.  In between each tile takes its
 * lanes' keys one after the other.
 *
 * A row's group number is resolved before any of its states is touched; rows
 * without one are the failed ones.  A warp's 32 rows are one word of the bitmap
 * of failed rows, which no other warp touches, so it is simply stored.  With
 * replay, only rows set in it take part.
 *
 * n_local > 0: up to n_local groups are aggregated in the block's shared
 * memory, keyed by group number, and flushed at the end; a group without room
 * there goes directly to the table.  For that a row need only be found once,
 * so failing is not affected.
 */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_batch_kernel(const __grid_constant__ rhh_program prog,
				 const __grid_constant__ rhh_view view,
				 const __grid_constant__ rhh_rows rows,
				 bool replay, uint32_t n_local)
{
	extern __shared__ uint64_t local_states[];
	uint32_t   *local_groups = (uint32_t *) (local_states + n_local * prog.n_state_words);
	const int	N = rhh_slots<BYTES>::N;
	const rhh_tile<N> tile;
	const uint32_t lane = threadIdx.x & 31;
	const uint32_t n_words = prog.n_state_words;
	rhh_tally	tally;

	tally.reserve = view.reserves[RHH_TILE_ID(N)];
	tally.placed = 0;
	tally.cap_hits = 0;

	if (n_local > 0)
	{
		for (uint32_t i = threadIdx.x; i < n_local * n_words; i += blockDim.x)
			local_states[i] = rhh_init_word(prog, i % n_words);
		for (uint32_t i = threadIdx.x; i < n_local; i += blockDim.x)
			local_groups[i] = RHH_NO_GROUP;
		__syncthreads();
	}

	/* 64 bits: first may pass 2^32 before the loop ends. */
	for (uint64_t first = blockIdx.x * blockDim.x + (threadIdx.x & ~31u);
		 first < rows.n_rows; first += gridDim.x * blockDim.x)
	{
		uint32_t	row = (uint32_t) first + lane;
		bool		valid = row < rows.n_rows;
		bool		null_key = false;
		bool		mine;
		uint64_t	key = 0;
		uint32_t	fp = 0,
					group = RHH_NO_GROUP,
					pending,
					failed;

		if (replay)
		{
			uint32_t	again = rows.failed[first >> 5];

			if (again == 0)
				continue;		/* the whole warp does */
			valid = valid && (again >> lane & 1);
		}
		if (valid)
			null_key = rhh_pack_key(prog, rows, row, &key, &fp);
		if (null_key)
		{
			group = 0;
			if (*(volatile uint32_t *) &view.ctl->null_seen == 0)
				view.ctl->null_seen = 1;
		}

		__syncwarp();
		mine = valid && !null_key;
		pending = tile.ballot(mine);
		while (pending)
		{
			int			src = __ffs(pending) - 1;
			uint64_t	k = tile.shfl(key, src);
			uint32_t	f = tile.shfl(fp, src);
			uint32_t	r = tile.shfl(row, src);
			uint32_t	g = RHH_NO_GROUP;
			bool		same;

			if (n_local > 0)
				g = rhh_find_old<BYTES, VERIFY>(view, prog, rows, tile, k, f, r);
			if (g == RHH_NO_GROUP)
				g = rhh_find_or_insert<BYTES, VERIFY>(view, prog, rows, tile,
													  k, f, r, &tally);

			/* Neighbours with the key need not look, where it is all here. */
			same = tile.rank == (uint32_t) src ||
				(mine && prog.plan.form != RHH_KEY_WIDE && key == k);
			if (same)
				group = g;
			pending &= ~tile.ballot(same);
		}
		__syncwarp();

		failed = __ballot_sync(RHH_WARP, valid && group == RHH_NO_GROUP);
		if (lane == 0)
		{
			rows.failed[first >> 5] = failed;
			if (failed)
				atomicAdd(rows.n_failed, (uint32_t) __popc(failed));
		}

		if (group != RHH_NO_GROUP && n_words > 0)
		{
			uint32_t	at = n_local > 0
				? rhh_local_place(local_groups, n_local, group) : RHH_NO_GROUP;

			if (at != RHH_NO_GROUP)
				rhh_update<true>(prog, rows, row, local_states + at * n_words);
			else
				rhh_update<false>(prog, rows, row,
								  view.states + (size_t) group * n_words);
		}
		__syncwarp();
	}

	if (tile.rank == 0)
	{
		view.reserves[RHH_TILE_ID(N)] = tally.reserve;
		if (tally.placed)
			atomicAdd((unsigned long long *) &view.ctl->placed,
					  (unsigned long long) tally.placed);
		if (tally.cap_hits)
			atomicAdd((unsigned long long *) &view.ctl->cap_hits,
					  (unsigned long long) tally.cap_hits);
	}

	if (n_local > 0)
	{
		__syncthreads();
		for (uint32_t i = threadIdx.x; i < n_local * prog.n_states; i += blockDim.x)
		{
			uint32_t	at = i / prog.n_states;
			uint32_t	group = local_groups[at];

			if (group != RHH_NO_GROUP)
				rhh_merge_state(prog.states[i % prog.n_states],
								view.states + (size_t) group * n_words,
								local_states + at * n_words);
		}
	}
}

/*
 * Enters every entry of n_old_buckets old buckets, or of a list of n_old
 * orphans, into another table, without looking for equal keys: copies stay
 * copies, of different groups, until they are reconciled.  The old ones are
 * only read.  If the new list of orphans runs over, the new table is to be
 * thrown away.
 */
template <int BYTES>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_rehash_kernel(const __grid_constant__ rhh_view view, const void *old_slots,
				  uint32_t n_old_buckets, const rhh_orphan *old_orphans,
				  uint32_t n_old_orphans)
{
	const int	N = rhh_slots<BYTES>::N;
	const rhh_tile<N> tile;

	for (uint64_t i = RHH_TILE_ID(N); i < n_old_buckets; i += RHH_TILES(N))
	{
		rhh_entry	e = rhh_slots<BYTES>::load(old_slots, i * N + tile.rank);
		uint32_t	pending = tile.ballot(e.group != RHH_NO_GROUP);

		for (; pending; pending &= pending - 1)
		{
			rhh_entry	x = rhh_entry_of(tile, e, __ffs(pending) - 1);

			rhh_place<BYTES>(view, tile, x,
							 rhh_home_bucket(x.fp, view.n_buckets), 0);
		}
	}
	for (uint32_t i = RHH_TILE_ID(N); i < n_old_orphans; i += RHH_TILES(N))
	{
		rhh_entry	x = {old_orphans[i].key, old_orphans[i].fp, old_orphans[i].group};

		rhh_place<BYTES>(view, tile, x,
						 rhh_home_bucket(x.fp, view.n_buckets), 0);
	}
}

/* ---------- finish ---------- */

RHH_DEV bool
rhh_is_dead(const rhh_view &view, uint32_t group)
{
	return rhh_load_shared32(&view.dead[group >> 5]) >> (group & 31) & 1;
}

/* Merges a group's states into another's and marks it dead.  A whole tile. */
template <int N>
RHH_DEV void
rhh_bury(const rhh_view &view, const rhh_program &prog, const rhh_tile<N> &tile,
		 uint32_t group, uint32_t into)
{
	for (uint32_t s = tile.rank; s < prog.n_states; s += N)
		rhh_merge_state(prog.states[s],
						view.states + (size_t) into * prog.n_state_words,
						view.states + (size_t) group * prog.n_state_words);
	if (tile.rank == 0)
	{
		atomicOr(&view.dead[group >> 5], 1u << (group & 31));
		atomicAdd((unsigned long long *) &view.ctl->merged, 1ULL);
	}
}

/*
 * Slots: each copy of a key but the one with the least group number merges into
 * that one.  It is never merged itself, so nobody reads states that somebody
 * else still adds to.  Slots stay as they are, for the probes of others; the
 * dead are passed over by compacting.
 *
 * Orphans (after the slots, in another launch): one whose key has a slot merges
 * into the least copy.
 */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_reconcile_kernel(const __grid_constant__ rhh_program prog,
					 const __grid_constant__ rhh_view view, uint32_t n_orphans)
{
	const int	N = rhh_slots<BYTES>::N;
	const rhh_tile<N> tile;

	if (n_orphans == 0)
	{
		for (uint64_t b = RHH_TILE_ID(N); b < view.n_buckets; b += RHH_TILES(N))
		{
			rhh_entry	e = rhh_slots<BYTES>::load(view.slots, b * N + tile.rank);
			uint32_t	pending = tile.ballot(e.group != RHH_NO_GROUP);

			for (; pending; pending &= pending - 1)
			{
				rhh_entry	x = rhh_entry_of(tile, e, __ffs(pending) - 1);
				uint32_t	least = rhh_least_copy<BYTES, VERIFY>(view, prog, tile, x);

				if (least < x.group)
					rhh_bury(view, prog, tile, x.group, least);
			}
		}
	}
	for (uint32_t i = RHH_TILE_ID(N); i < n_orphans; i += RHH_TILES(N))
	{
		rhh_entry	x = {view.orphans[i].key, view.orphans[i].fp, view.orphans[i].group};
		uint32_t	least = rhh_least_copy<BYTES, VERIFY>(view, prog, tile, x);

		if (least != RHH_NO_GROUP)
			rhh_bury(view, prog, tile, x.group, least);
	}
}

/*
 * Orphans among themselves: each merges into the first of the list with its
 * key, those merged into a slot left out; the survivors are appended to
 * another list.  Marks set meanwhile do no harm: an orphan marked in here is
 * never the first of its key.  One warp's tile an orphan; comparing all pairs
 * is bearable because the list is short.
 */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_orphans_kernel(const __grid_constant__ rhh_program prog,
				   const __grid_constant__ rhh_view view, uint32_t n_orphans,
				   rhh_orphan *survivors, uint32_t *n_survivors)
{
	const int	N = rhh_slots<BYTES>::N;
	const rhh_tile<N> tile;

	for (uint32_t i = RHH_TILE_ID(N); i < n_orphans; i += RHH_TILES(N))
	{
		rhh_orphan	o = view.orphans[i];
		uint32_t	into = RHH_NO_GROUP;

		/* Its own mark only the launch before this can have set. */
		if (rhh_is_dead(view, o.group))
			continue;
		for (uint32_t j = 0; j < i && into == RHH_NO_GROUP; j += N)
		{
			rhh_entry	e = {0, 0, RHH_NO_GROUP};
			uint32_t	match;

			if (j + tile.rank < i)
			{
				rhh_orphan	other = view.orphans[j + tile.rank];

				e.key = other.key;
				e.fp = other.fp;
				e.group = other.group;
			}
			match = tile.ballot(rhh_slots<BYTES>::same(e, o.key, o.fp));
			for (; match && into == RHH_NO_GROUP; match &= match - 1)
			{
				uint32_t	group = tile.shfl(e.group, __ffs(match) - 1);
				bool		dead = rhh_is_dead(view, group);

				/* One lane's word for it: the mark may appear in between. */
				if (!tile.shfl((int) dead, 0) &&
					(!VERIFY || rhh_group_is_group(view, prog, tile, group, o.group)))
					into = group;
			}
		}
		if (into != RHH_NO_GROUP)
			rhh_bury(view, prog, tile, o.group, into);
		else if (tile.rank == 0)
			survivors[atomicAdd(n_survivors, 1u)] = o;
	}
}

/*
 * Compacting needs no memory but the upload buffers: the slots go in chunks,
 * in order.  compact gathers a chunk's live entries in scratch, append copies
 * them to the front, behind those of earlier chunks and never beyond the chunk,
 * and append_end counts them.  Afterwards the table is a list.
 */
template <int BYTES>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_compact_kernel(const __grid_constant__ rhh_view view, uint64_t first, uint64_t n,
				   void *scratch, bool probe_stats)
{
	const uint32_t lane = threadIdx.x & 31;
	uint64_t	sum = 0;
	uint32_t	most = 0;

	for (uint64_t i = blockIdx.x * blockDim.x + (threadIdx.x & ~31u); i < n;
		 i += gridDim.x * blockDim.x)
	{
		uint64_t	at = first + i + lane;
		rhh_entry	e = {0, 0, RHH_NO_GROUP};
		uint32_t	live,
					to = 0;
		bool		mine;

		if (i + lane < n)
			e = rhh_slots<BYTES>::load(view.slots, at);
		mine = e.group != RHH_NO_GROUP && !rhh_is_dead(view, e.group);
		live = __ballot_sync(RHH_WARP, mine);
		if (lane == 0 && live)
			to = atomicAdd(&view.ctl->chunk_live, (uint32_t) __popc(live));
		to = __shfl_sync(RHH_WARP, to, 0) + __popc(live & ((1u << lane) - 1));
		if (mine)
		{
			if (BYTES == 8)
				((uint64_t *) scratch)[to] = ((const uint64_t *) view.slots)[at];
			else
				((ulonglong2 *) scratch)[to] = ((const ulonglong2 *) view.slots)[at];
			if (probe_stats)
			{
				uint32_t	rank = rhh_rank(view, e, (uint32_t) (at / rhh_slots<BYTES>::N));

				sum += rank;
				most = ::max(most, rank);
			}
		}
	}
	if (probe_stats)
	{
		for (int step = 16; step > 0; step /= 2)
		{
			sum += __shfl_xor_sync(RHH_WARP, sum, step);
			most = ::max(most, __shfl_xor_sync(RHH_WARP, most, step));
		}
		if (lane == 0 && most > 0)
		{
			atomicAdd((unsigned long long *) &view.ctl->probe_sum,
					  (unsigned long long) sum);
			atomicMax(&view.ctl->probe_max, most);
		}
	}
}

/* Words of 64 bits, slot_words a slot. */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_append_kernel(rhh_control *ctl, uint64_t *slots, const uint64_t *scratch,
				  uint32_t slot_words)
{
	uint64_t	n = (uint64_t) ctl->chunk_live * slot_words;
	uint64_t   *to = slots + ctl->live * slot_words;

	for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += gridDim.x * blockDim.x)
		to[i] = scratch[i];
}

static __global__ void
rhh_append_end_kernel(rhh_control *ctl)
{
	ctl->live += ctl->chunk_live;
	ctl->chunk_live = 0;
}

/* ---------- extract ---------- */

/*
 * Groups [first, first + n) of the compacted slots, or of the orphans, as
 * columns of stride words.  Group null_at of the compacted slots, behind their
 * last, is SINGLE's NULL group (number 0).
 */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_extract_kernel(const __grid_constant__ rhh_program prog,
				   const __grid_constant__ rhh_view view, bool orphans,
				   uint64_t first, uint32_t n, uint64_t null_at,
				   uint64_t *out, uint32_t stride)
{
	const rhh_key_plan &plan = prog.plan;

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += gridDim.x * blockDim.x)
	{
		bool		null_group = !orphans && first + i == null_at;
		rhh_entry	e = {0, 0, 0};
		uint64_t   *to = out + i;
		const uint64_t *states;

		if (orphans)
		{
			rhh_orphan	o = view.orphans[first + i];

			e.key = o.key;
			e.fp = o.fp;
			e.group = o.group;
		}
		else if (!null_group)
			e = rhh_slots<BYTES>::load(view.slots, first + i);

		if (plan.form == RHH_KEY_WIDE)
		{
			const uint64_t *words = view.keys + (size_t) e.group * plan.n_words;

			for (uint32_t w = 0; w < plan.n_words; w++, to += stride)
				*to = words[w];
		}
		else
		{
			uint64_t	key = VERIFY ? (null_group ? 0 : view.keys[e.group])
				: BYTES == 8 ? (uint64_t) rhh_unmix32(e.fp) : e.key;

			if (plan.form == RHH_KEY_SINGLE)
			{
				*to = null_group;
				to += stride;
				*to = null_group ? 0 : key;
				to += stride;
			}
			else
			{
				*to = key >> plan.null_shift;
				to += stride;
				for (uint32_t k = 0; k < plan.n_keys; k++, to += stride)
				{
					/* PACKED's columns have less than 8 bytes. */
					*to = key >> plan.shift[k]
						& (((uint64_t) 1 << 8 * plan.bytes[k]) - 1);
				}
			}
		}

		states = view.states + (size_t) e.group * prog.n_state_words;
		for (uint32_t s = 0; s < prog.n_states; s++)
		{
			const rhh_program_state &st = prog.states[s];
			const uint64_t *word = states + st.word;

			if (st.op == RHH_SUM_I128)
			{
				/* high * 2^32 + low, low unsigned, high signed */
				uint64_t	low = word[0] + (word[1] << 32);

				to[0] = low;
				to[stride] = (uint64_t) ((int64_t) word[1] >> 32) + (low < word[0]);
				to += 2 * (size_t) stride;
			}
			else
			{
				uint32_t	n_words = st.op != RHH_ANY ? 1 : st.bytes > 8 ? 3 : 2;

				for (uint32_t w = 0; w < n_words; w++, to += stride)
					*to = word[w];
			}
		}
	}
}

#endif							/* RHH_KERNELS_CUH */
