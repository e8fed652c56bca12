/*
 * rhh_kernels.cuh
 *		The kernels, in the order of a map's life.
 *
 *		fill		initialises the states of group numbers not yet handed out
 *		look, scatter, aggregate
 *					take the rows of a large batch, or of few groups, to the map
 *					(rhh_aggregate.cuh)
 *		batch		takes the rows of a batch to the map one by one; or only those
 *					that were refused before, or that aggregate has left (replay)
 *		rehash		enters all entries and orphans into a larger table (growth)
 *		reconcile	merges orphans into the groups of their keys (finish)
 *		compact		moves the live entries of the slots to the front (finish)
 *		extract		writes a range of live entries or orphans to result columns
 *		rows		makes rows for another map of such columns
 *
 * The kernels of one map run in one stream, so each finds the map at rest.  The host
 * takes care that no launch has more tiles than view.reserves and view.orphan_limit
 * allow.
 *
 * Template arguments are the bytes of a slot and whether keys with equal fingerprints
 * are verified.  Three pairs are in use: <8, false>, <8, true>, <16, false>.
 */
#ifndef RHH_KERNELS_CUH
#define RHH_KERNELS_CUH

#include "rhh_group_rows.h"
#include "cuda/rhh_aggregate.cuh"

#define RHH_WARP 0xFFFFFFFFu

/* Initialises the states of the groups [first, first + n). */
static __global__ void
rhh_fill_kernel(const __grid_constant__ rhh_grouping grouping, uint64_t *states,
				uint64_t first, uint64_t n)
{
	uint32_t	n_words = grouping.n_state_words;
	uint64_t	end = (first + n) * n_words;

	for (uint64_t i = first * n_words + blockIdx.x * blockDim.x + threadIdx.x;
		 i < end; i += gridDim.x * blockDim.x)
		states[i] = rhh_init_word(grouping, (uint32_t) (i % n_words));
}

/*
 * Takes the rows of a batch to the map.  Each thread has a row: it packs the row's key,
 * and when the row's group is known it updates the group's states.  In between, each
 * tile looks for the keys of its lanes one after the other, the tiles of a warp in step.
 *
 * The group number of a row is known before any state is touched; the rows that get
 * none are refused.  The 32 rows of a warp are one word of the bitmap of refused rows.
 * No other warp touches that word, so it is simply stored.  With replay only the rows
 * whose bits are set take part; and none do if n_left is given and *n_left is 0.
 */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_batch_kernel(const __grid_constant__ rhh_grouping grouping,
				 const __grid_constant__ rhh_view view,
				 const __grid_constant__ rhh_rows rows,
				 bool replay, const uint32_t *n_left)
{
	typedef rhh_slots<BYTES> S;
	const typename S::warp_tiles team;
	const uint32_t lane = threadIdx.x & 31;
	const uint32_t n_words = grouping.n_state_words;
	const uint32_t n_rows = rhh_n_rows(rows);
	rhh_insert_rows<S, VERIFY> op = {{{view, grouping}, rows, grouping.plan.form != RHH_KEY_WIDE}};
	uint32_t	probes = 0,
				moves = 0;

	if (n_left != NULL && *n_left == 0)
		return;
	rhh_begin_tally(view, op);

	/* 64 bits, because first may pass 2^32 before the loop ends. */
	for (uint64_t first = blockIdx.x * blockDim.x + (threadIdx.x & ~31u);
		 first < n_rows; first += gridDim.x * blockDim.x)
	{
		uint32_t	row = (uint32_t) first + lane;
		bool		valid = row < n_rows;
		bool		null_key = false;
		uint32_t	refused;

		if (replay)
		{
			uint32_t	again = rows.refused[first >> 5];

			if (again == 0)
				continue;		/* the same for the whole warp */
			valid = valid && (again >> lane & 1);
		}
		op.row = row;
		op.key = 0;
		op.fp = 0;
		op.group = RHH_NO_GROUP;
		if (valid)
			null_key = rhh_pack_key(grouping, rows, row, &op.key, &op.fp);
		if (null_key)
		{
			op.group = 0;
			if (*(volatile uint32_t *) &view.ctl->null_seen == 0)
				view.ctl->null_seen = 1;
		}
		op.mine = valid && !null_key;

		op.pending = team.ballot(op.mine);
		rhh_insert_loop<S>(view, team, op, &probes, &moves);

		refused = __ballot_sync(RHH_WARP, valid && op.group == RHH_NO_GROUP);
		if (lane == 0)
		{
			rows.refused[first >> 5] = refused;
			if (refused)
				atomicAdd(rows.n_refused, (uint32_t) __popc(refused));
		}

		if (op.group != RHH_NO_GROUP && n_words > 0)
			rhh_update(grouping, rows, row, view.states + (size_t) op.group * n_words);
		__syncwarp();
	}

	rhh_end_tally(view, op);
}

/*
 * Enters all entries of the old buckets, and those of a list of orphans, into another
 * table.  The old buckets and the old list are only read.  If the new list of orphans
 * runs over, the host must throw the new table away.
 */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_rehash_kernel(const __grid_constant__ rhh_grouping grouping,
				  const __grid_constant__ rhh_view view, const __grid_constant__ rhh_buckets old,
				  const rhh_orphan *old_orphans, uint32_t n_old_orphans)
{
	typedef rhh_slots<BYTES> S;
	const typename S::warp_tiles team;
	const uint32_t lane = threadIdx.x & 31;
	const uint64_t n_old = (uint64_t) old.n_buckets * S::SLOTS;
	rhh_enter_entries<S, VERIFY> op = {{view, grouping}, S::none(), 0};
	uint32_t	probes = 0,
				moves = 0;

	/* First the slots, then the orphans; warps stay together. */
	for (uint64_t first = blockIdx.x * blockDim.x + (threadIdx.x & ~31u);
		 first < n_old + n_old_orphans; first += gridDim.x * blockDim.x)
	{
		uint64_t	i = first + lane;

		op.entry = S::none();
		if (i < n_old)
			op.entry = S::at(old.slots, i);
		else if (i < n_old + n_old_orphans)
		{
			rhh_orphan	o = old_orphans[i - n_old];

			op.entry = S::make(o.key, o.fp, o.group);
		}
		op.pending = team.ballot(!S::is_empty(op.entry));
		rhh_insert_loop<S>(view, team, op, &probes, &moves);
	}
}

/* ---------- finish ---------- */

RHH_DEV bool
rhh_is_dead(const rhh_view &view, uint32_t group)
{
	return rhh_load_relaxed32(&view.dead[group >> 5]) >> (group & 31) & 1;
}

/* Merges the states of a group into another group and marks it dead.  A whole tile. */
template <class Team>
RHH_DEV void
rhh_bury(const rhh_view &view, const rhh_grouping &grouping, const Team &tile,
		 uint32_t group, uint32_t into)
{
	for (uint32_t s = tile.rank; s < grouping.n_states; s += Team::SIZE)
		rhh_merge_state(grouping.states[s],
						view.states + (size_t) into * grouping.n_state_words,
						view.states + (size_t) group * grouping.n_state_words);
	if (tile.rank == 0)
	{
		atomicOr(&view.dead[group >> 5], 1u << (group & 31));
		atomicAdd((unsigned long long *) &view.ctl->merged, 1ULL);
	}
}

/*
 * Merges each orphan whose key has a slot into the group of that slot.  A group with a
 * slot is never merged into another one itself.
 */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_reconcile_kernel(const __grid_constant__ rhh_grouping grouping,
					 const __grid_constant__ rhh_view view, uint32_t n_orphans)
{
	typedef rhh_slots<BYTES> S;
	const typename S::warp_tiles team;
	const uint32_t tiles_a_warp = RHH_WARP_SIZE / S::LANES;
	rhh_find_entry<S, VERIFY> op = {{view, grouping}, S::none(), false, RHH_NO_GROUP};
	uint32_t	probes = 0;

	for (uint32_t first = RHH_TILE_ID(RHH_WARP_SIZE) * tiles_a_warp; first < n_orphans;
		 first += RHH_TILES(S::LANES))
	{
		uint32_t	i = first + team.shift / S::LANES;
		rhh_orphan	o = {0, RHH_NO_GROUP, 0};

		op.group = RHH_NO_GROUP;
		op.pending = i < n_orphans;
		if (op.pending)
		{
			o = view.orphans[i];
			op.entry = S::make(o.key, o.fp, o.group);
		}
		rhh_find_loop<S>(view, team, op, &probes);
		if (op.group != RHH_NO_GROUP)
			rhh_bury(view, grouping, team, o.group, op.group);
	}
}

/*
 * Merges the orphans that are left among themselves: each goes into the first orphan
 * of the list with the same key, and the first ones are appended to another list.  A
 * tile has one orphan and compares it with all before it, which is bearable because the
 * list is short.  Marks that other tiles set at the same time do no harm, since an
 * orphan that is marked here is never the first with its key.
 */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_orphans_kernel(const __grid_constant__ rhh_grouping grouping,
				   const __grid_constant__ rhh_view view, uint32_t n_orphans,
				   rhh_orphan *survivors, uint32_t *n_survivors)
{
	typedef rhh_slots<BYTES> S;
	const int	N = S::LANES;
	const typename S::tile tile;

	for (uint32_t i = RHH_TILE_ID(N); i < n_orphans; i += RHH_TILES(N))
	{
		rhh_orphan	o = view.orphans[i];
		typename S::slot mine = S::make(o.key, o.fp, o.group);
		uint32_t	into = RHH_NO_GROUP;

		/* If this orphan is marked, then by the kernel that ran before this one. */
		if (rhh_is_dead(view, o.group))
			continue;
		for (uint32_t j = 0; j < i && into == RHH_NO_GROUP; j += N)
		{
			uint32_t	group = RHH_NO_GROUP;
			rhh_lanes	match;

			if (j + tile.rank < i)
			{
				rhh_orphan	other = view.orphans[j + tile.rank];

				if (S::same(mine, S::make(other.key, other.fp, other.group)))
					group = other.group;
			}
			match = tile.ballot(group != RHH_NO_GROUP);
			for (; match && into == RHH_NO_GROUP; match &= match - 1)
			{
				uint32_t	g = tile.shfl(group, rhh_first_lane(match));
				bool		dead = rhh_is_dead(view, g);

				/* One lane decides, because the mark may be set in between. */
				if (!tile.shfl((int) dead, 0) &&
					(!VERIFY || rhh_group_is_group(view, grouping, tile, true, g, o.group)))
					into = g;
			}
		}
		if (into != RHH_NO_GROUP)
			rhh_bury(view, grouping, tile, o.group, into);
		else if (tile.rank == 0)
			survivors[atomicAdd(n_survivors, 1u)] = o;
	}
}

/* Adds what the lanes of a warp have counted of probe lengths, all of them, to those of the map. */
RHH_DEV void
rhh_count_probes(uint64_t sum, uint32_t most, rhh_control *ctl)
{
	for (int step = 16; step > 0; step /= 2)
	{
		sum += __shfl_xor_sync(RHH_WARP, sum, step);
		most = ::max(most, __shfl_xor_sync(RHH_WARP, most, step));
	}
	if ((threadIdx.x & 31) == 0 && most > 0)
	{
		atomicAdd((unsigned long long *) &ctl->probe_sum, (unsigned long long) sum);
		atomicMax(&ctl->probe_max, most);
	}
}

/* Conditions on groups; none: all are wanted. */
struct rhh_group_filter
{
	uint32_t	n;
	rhh_group_condition conditions[RHH_MAX_CONDITIONS];
};

/* The value of a state of integers that begins at this word, in 128 bits. */
RHH_DEV void
rhh_state_value(uint8_t op, const uint64_t *word, uint64_t *low, int64_t *high)
{
	*low = word[0];
	*high = (int64_t) word[0] >> 63;
	if (op == RHH_SUM_I128)
	{
		/* high * 2^32 + low, low unsigned, high signed */
		*low = word[0] + (word[1] << 32);
		*high = ((int64_t) word[1] >> 32) + (*low < word[0]);
	}
}

/* Is a group wanted? */
RHH_DEV bool
rhh_is_wanted(const rhh_grouping &grouping, const rhh_view &view, const rhh_group_filter &filter,
			  uint32_t group)
{
	const uint64_t *words = view.states + (size_t) group * grouping.n_state_words;

	for (uint32_t c = 0; c < filter.n; c++)
	{
		const rhh_group_condition &condition = filter.conditions[c];
		const rhh_grouping_state &state = grouping.states[condition.state];
		uint64_t	low;
		int64_t		high;

		if (condition.except_state >= 0 &&
			words[grouping.states[condition.except_state].word] == condition.except_word)
			continue;
		rhh_state_value(state.op, &words[state.word], &low, &high);
		if (!rhh_condition_holds(&condition, low, high))
			return false;
	}
	return true;
}

/*
 * Compacting makes a list of the table.  It takes the slots in chunks, in order.  The
 * compact kernel gathers the live entries of a chunk in the scratch memory; the append
 * kernel copies them to the front of the slots, behind those of earlier chunks, which
 * never reaches beyond the chunk itself; and append_end counts them.  If all slots are
 * one chunk, the scratch memory is the list.
 */
template <int BYTES>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_compact_kernel(const __grid_constant__ rhh_grouping grouping,
				   const __grid_constant__ rhh_view view,
				   const __grid_constant__ rhh_group_filter filter, uint64_t first, uint64_t n,
				   void *scratch, bool probe_stats)
{
	typedef rhh_slots<BYTES> S;
	const int	ITEMS = RHH_CUDA_COMPACT_ITEMS;
	const uint32_t lane = threadIdx.x & 31;
	uint64_t	sum = 0;
	uint32_t	most = 0;

	for (uint64_t i = (uint64_t) (blockIdx.x * blockDim.x + (threadIdx.x & ~31u)) * ITEMS; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x * ITEMS)
	{
		typename S::slot e[ITEMS];
		uint32_t	live[ITEMS];
		bool		wanted[ITEMS];
		uint32_t	n_live = 0,
					n_there = 0,
					to = 0;

		RHH_UNROLL
		for (int k = 0; k < ITEMS; k++)
		{
			uint64_t	at = i + k * 32 + lane;

			e[k] = at < n ? S::at(view.slots, first + at) : S::none();
		}
		RHH_UNROLL
		for (int k = 0; k < ITEMS; k++)
		{
			wanted[k] = !S::is_empty(e[k]);
			if (filter.n > 0)
			{
				n_there += __popc(__ballot_sync(RHH_WARP, wanted[k]));
				wanted[k] = wanted[k] && rhh_is_wanted(grouping, view, filter, S::group(e[k]));
			}
			live[k] = __ballot_sync(RHH_WARP, wanted[k]);
			n_live += __popc(live[k]);
		}
		if (lane == 0 && n_live > 0)
			to = atomicAdd(&view.ctl->chunk_live, n_live);
		if (lane == 0 && n_there > n_live)
			atomicAdd((unsigned long long *) &view.ctl->left_out, (unsigned long long) (n_there - n_live));
		to = __shfl_sync(RHH_WARP, to, 0);
		RHH_UNROLL
		for (int k = 0; k < ITEMS; k++)
		{
			if (wanted[k])
				((typename S::slot *) scratch)[to + __popc(live[k] & ((1u << lane) - 1))] = e[k];
			if (probe_stats && !S::is_empty(e[k]))
			{
				uint64_t	at = first + i + k * 32 + lane;
				uint32_t	rank = rhh_rank<S>(e[k], (uint32_t) (at / S::SLOTS), view.n_buckets);

				sum += rank;
				most = ::max(most, rank);
			}
			to += __popc(live[k]);
		}
	}
	if (probe_stats)
		rhh_count_probes(sum, most, view.ctl);
}

/* Copies the entries of a chunk; slot_words: the 64-bit words of a slot. */
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

/* One thread: the chunk has been copied. */
static __global__ void
rhh_append_end_kernel(rhh_control *ctl)
{
	ctl->live += ctl->chunk_live;
	ctl->chunk_live = 0;
}

/* ---------- extract ---------- */

/*
 * Writes the groups [first, first + n) of the list of slots, or of the orphans, as
 * columns of stride words.  SINGLE's NULL group, which has number 0 and no slot, is group
 * null_at, behind the last one of the list.
 */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_extract_kernel(const __grid_constant__ rhh_grouping grouping,
				   const __grid_constant__ rhh_view view, const void *list, bool orphans,
				   uint64_t first, uint32_t n, uint64_t null_at,
				   uint64_t *out, uint32_t stride)
{
	typedef rhh_slots<BYTES> S;
	const rhh_key_plan &plan = grouping.plan;

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += gridDim.x * blockDim.x)
	{
		bool		null_group = !orphans && first + i == null_at;
		uint32_t	group = 0;	/* of NULL */
		uint64_t	short_key = 0;
		uint64_t   *to = out + i;
		const uint64_t *states;

		if (orphans)
		{
			rhh_orphan	o = view.orphans[first + i];

			group = o.group;
			short_key = BYTES == 8 ? rhh_unhash32(&plan.hash, o.fp) : o.key;
		}
		else if (!null_group)
		{
			typename S::slot e = S::at(list, first + i);

			group = S::group(e);
			short_key = BYTES == 8 ? rhh_unhash32(&plan.hash, S::hash(e)) : S::key(e);
		}

		if (plan.form == RHH_KEY_WIDE)
		{
			const uint64_t *words = view.keys + (size_t) group * plan.n_words;

			for (uint32_t w = 0; w < plan.n_words; w++, to += stride)
				*to = words[w];
		}
		else
		{
			uint64_t	key = VERIFY ? (null_group ? 0 : view.keys[group]) : short_key;

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

		states = view.states + (size_t) group * grouping.n_state_words;
		for (uint32_t s = 0; s < grouping.n_states; s++)
		{
			const rhh_grouping_state &st = grouping.states[s];
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
				for (uint32_t w = 0; w < st.n_words; w++, to += stride)
					*to = word[w];
			}
		}
	}
}

/* ---------- rows of groups ---------- */

/* Where the columns of a batch are, and how wide. */
struct rhh_row_columns
{
	uint8_t    *base;
	uint32_t	n_columns;
	uint8_t		bytes[RHH_MAX_COLUMNS];
	uint32_t	values_offset[RHH_MAX_COLUMNS];
	uint32_t	nulls_offset[RHH_MAX_COLUMNS];	/* 0: the column has no bitmap */
};

/* Stores the value of n bytes whose first word and, of 16 bytes, second one are given. */
RHH_DEV void
rhh_store_value(uint8_t *values, uint32_t row, uint32_t bytes, uint64_t low, uint64_t high)
{
	switch (bytes)
	{
		case 1:
			values[row] = (uint8_t) low;
			break;
		case 2:
			((uint16_t *) values)[row] = (uint16_t) low;
			break;
		case 4:
			((uint32_t *) values)[row] = (uint32_t) low;
			break;
		case 8:
			((uint64_t *) values)[row] = low;
			break;
		default:
			((uint64_t *) values)[2 * (uint64_t) row] = low;
			((uint64_t *) values)[2 * (uint64_t) row + 1] = high;
			break;
	}
}

/*
 * Makes the rows of one set of n groups, whose words rhh_extract_kernel has written as
 * columns of stride words.  A thread makes a row.  A warp's 32 rows are one word of each
 * bitmap, which no other warp writes.
 */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_rows_kernel(const __grid_constant__ rhh_row_spec rows,
				const __grid_constant__ rhh_row_columns out, uint32_t set,
				const uint64_t *words, uint32_t stride, uint32_t n)
{
	const uint64_t outside = rows.outside[set];
	const uint32_t lane = threadIdx.x & 31;

	for (uint64_t first = blockIdx.x * blockDim.x + (threadIdx.x & ~31u); first < n;
		 first += gridDim.x * blockDim.x)
	{
		uint32_t	row = (uint32_t) first + lane;
		bool		valid = row < n;
		uint64_t	word0 = valid ? words[row] : 0;
		uint64_t	set_value = rhh_row_set(&rows, set, word0);

		for (uint32_t c = 0; c < out.n_columns; c++)
		{
			const rhh_row_column *column = &rows.columns[c];
			const uint64_t *at = words + (uint64_t) column->word * stride + row;
			bool		absent = column->kind == RHH_ROW_KEY && (outside >> column->key & 1);
			uint64_t	low = 0;
			uint64_t	high = 0;

			if (valid && !absent)
			{
				low = rhh_row_word(column->kind, at, stride, set_value, 0);
				if (out.bytes[c] > 8)
					high = rhh_row_word(column->kind, at, stride, set_value, 1);
			}
			if (valid)
				rhh_store_value(out.base + out.values_offset[c], row, out.bytes[c], low, high);
			if (out.nulls_offset[c] != 0)
			{
				uint32_t	nulls = __ballot_sync(RHH_WARP, valid &&
												  rhh_row_is_null(column, rows.n_parts, outside,
																  words + row, stride));

				if (lane == 0)
					((uint32_t *) (out.base + out.nulls_offset[c]))[first >> 5] = nulls;
			}
		}
	}
}

#endif							/* RHH_KERNELS_CUH */
