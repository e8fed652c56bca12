/*
 * slab_alloc.cuh
 *		SlabAlloc and SlabAlloc-light: slabs of 128 bytes for slab_hash.cuh,
 *		allocated by warps, with no lock.
 *
 * After S. Ashkiani, M. Farach-Colton, J. D. Owens, "A dynamic hash table for
 * the GPU", IPDPS 2018, section V.
 *
 *	allocator     = super blocks, each one cudaMalloc
 *	super block   = 2^block_bits memory blocks
 *	memory block  = 1024 units and a bitmap of 1024 bits, a set bit for a unit in
 *					use: 32 words, one for each lane of a warp
 *	unit          = a slab
 *
 *	an address:
 *		+---------------+----------------------+------------------+
 *		|  super block  |     memory block     |       unit       |
 *		| 31         24 | 23                10 | 9              0 |
 *		+---------------+----------------------+------------------+
 *
 * There are at most 255 super blocks, so that no slab has the address SLAB_NULL.
 * SlabAlloc-light is one array: the 22 upper bits are the memory block's number,
 * and to decode an address is to multiply by 128.
 *
 * A warp has a resident memory block, whose bitmap its lanes hold in a register
 * each.  It sets a bit that is clear there with one atomic, whose answer, taken
 * or lost, is what the lane knows from then on.  When no bit is clear the warp
 * changes its resident block, to one hashed from its number and the changes so
 * far.  The paper goes on hashing and, after a number of changes, asks the host
 * for more super blocks.  Here all are allocated by create(): after
 * SLAB_HASHED_CHANGES a warp goes through the memory blocks one by one, and when
 * it has seen all, in vain, the allocation fails, and a flag spares the launch's
 * other warps the same walk until a slab is freed.  So every allocation ends,
 * and none fails while a slab stays free.  Beside warps that free, one may fail
 * though a slab became free behind its back; that slab may then be refused until
 * another is freed, or to the end of the launch.
 *
 * Free slabs are all ones, and so is what allocate() returns: who frees a slab
 * has made it so (a kernel earlier, or never touched it).  Nothing needs to be
 * fenced, and the slab can be linked to by a relaxed store.
 *
 * Allocating and freeing may run beside each other in any kernels on any
 * streams; create, destroy and clear beside nothing.
 */
#ifndef SLAB_ALLOC_CUH
#define SLAB_ALLOC_CUH

#include "table.cuh"

#define SLAB_BYTES 128
#define SLAB_WORDS 32			/* of a slab, one for each lane */
#define SLAB_UNITS 1024			/* of a memory block */
#define SLAB_UNIT_BITS 10
#define SLAB_BLOCK_BITS 14		/* of an address */
#define SLAB_MAX_SUPERS 255
#define SLAB_NULL 0xFFFFFFFFu	/* the address of no slab */

/* Resident changes by hash before going through all blocks. */
#define SLAB_HASHED_CHANGES 8

/* The paper's super block: 256 memory blocks, 32 MiB. */
#define SLAB_DEFAULT_BLOCK_BITS 8

/* What works on a slab: a warp, or half of one of 64 lanes. */
typedef rhh_tile<SLAB_WORDS> slab_warp;

/*
 * What a warp keeps from allocation to allocation: uniform, but for the bitmap.
 * A new one has no block; the first allocation looks for it, so that a kernel
 * that allocates nothing reads nothing.
 */
struct slab_resident
{
	uint32_t	bitmap;			/* the lane's word of it, as last seen */
	uint32_t	block;
	uint32_t	n_changes;
	uint32_t	n_in_vain;		/* changes since the last success */

	__device__ RHH_INLINE slab_resident() : bitmap(~0u), block(0), n_changes(0), n_in_vain(0)
	{
	}
};

/*
 * Where an allocator is, part of a kernel's argument (__grid_constant__, for
 * super_blocks is indexed).  LIGHT: SlabAlloc-light.
 */
template <bool LIGHT>
struct slab_alloc_view
{
	uint32_t   *super_blocks[LIGHT ? 1 : SLAB_MAX_SUPERS];
	uint32_t   *bitmaps;		/* of all memory blocks, 32 words each */
	uint32_t   *exhausted;		/* flag: == launch, which saw no free slab */
	uint32_t	n_blocks;
	uint32_t	block_bits;
	uint32_t	launch;			/* its number, from 1; hashed too */

	/* The slab of an address that is not SLAB_NULL. */
	__device__ RHH_INLINE uint32_t *slab(uint32_t address) const
	{
		if (LIGHT)
			return super_blocks[0] + (uint64_t) address * SLAB_WORDS;
		return super_blocks[address >> (SLAB_BLOCK_BITS + SLAB_UNIT_BITS)] +
			(address & ((1u << (SLAB_BLOCK_BITS + SLAB_UNIT_BITS)) - 1)) * SLAB_WORDS;
	}

	__device__ RHH_INLINE uint32_t address(uint32_t block, uint32_t unit) const
	{
		if (!LIGHT)
			block = block >> block_bits << SLAB_BLOCK_BITS | (block & ((1u << block_bits) - 1));
		return block << SLAB_UNIT_BITS | unit;
	}

	__device__ RHH_INLINE uint32_t block_of(uint32_t address) const
	{
		uint32_t	block = address >> SLAB_UNIT_BITS;

		if (LIGHT)
			return block;
		return block >> SLAB_BLOCK_BITS << block_bits | (block & ((1u << SLAB_BLOCK_BITS) - 1));
	}

	/*
	 * The address of a slab, all ones, that is the caller's alone; or SLAB_NULL.
	 * All lanes of the warp.
	 */
	__device__ uint32_t allocate(const slab_warp &warp, slab_resident &r) const
	{
		/* Warps that share a block begin at different lanes' words. */
		uint32_t	turn = RHH_TILE_ID(SLAB_WORDS) % SLAB_WORDS;

		for (;;)
		{
			rhh_lanes	not_full = warp.ballot(r.bitmap != ~0u);
			rhh_lanes	from_turn = not_full >> turn << turn;
			uint32_t	got = SLAB_NULL;
			uint32_t	lane;

			if (not_full == 0)
			{
				if (!change_resident(warp, r))
					return SLAB_NULL;
				continue;
			}
			lane = rhh_first_lane(from_turn ? from_turn : not_full);
			if (warp.rank == lane)
			{
				uint32_t	bit = __ffs((int) ~r.bitmap) - 1;
				uint32_t	old = atomicOr(&bitmaps[(uint64_t) r.block * SLAB_WORDS + lane], 1u << bit);

				if (!(old >> bit & 1))
					got = address(r.block, lane * 32 + bit);
				r.bitmap = old | 1u << bit;
			}
			got = warp.shfl(got, lane);
			if (got != SLAB_NULL)
			{
				r.n_in_vain = 0;
				return got;
			}
		}
	}

	/*
	 * Frees a slab that is all ones and that nobody can reach any more.  One
	 * lane.
	 */
	__device__ void release(uint32_t address) const
	{
		uint32_t	unit = address & (SLAB_UNITS - 1);

		atomicAnd(&bitmaps[(uint64_t) block_of(address) * SLAB_WORDS + unit / 32],
				  ~(1u << (unit % 32)));
		if (rhh_load_relaxed32(exhausted))
			atomicExch(exhausted, 0u);
	}

private:
	/* Reads another block's bitmap.  False: none has a free slab. */
	__device__ bool change_resident(const slab_warp &warp, slab_resident &r) const
	{
		bool		give_up;

		if (r.n_in_vain < SLAB_HASHED_CHANGES)
		{
			uint64_t	x = (uint64_t) launch << 40 ^ (uint64_t) r.n_changes << 24 ^ RHH_TILE_ID(SLAB_WORDS);

			/* a multiply-xor-multiply hash */
			x *= 0x9E3779B97F4A7C15ULL;
			x ^= x >> 32;
			x *= 0xD6E8FEB86659FD93ULL;
			r.block = __umulhi((uint32_t) (x >> 32), n_blocks);
		}
		else if (++r.block == n_blocks)
			r.block = 0;
		r.n_changes++;
		r.n_in_vain++;
		r.bitmap = rhh_load_relaxed32(&bitmaps[(uint64_t) r.block * SLAB_WORDS + warp.rank]);

		/*
		 * Lane 0 alone sets the flag, or a lane that is late might set it after
		 * another's release; and as lanes may read it at different times, what
		 * lane 0 reads holds.
		 */
		give_up = r.n_in_vain > SLAB_HASHED_CHANGES + n_blocks;
		if (give_up && warp.rank == 0)
			atomicExch(exhausted, launch);
		if (!give_up)
			give_up = warp.shfl(rhh_load_relaxed32(exhausted), 0) == launch;
		if (give_up)
		{
			r.bitmap = ~0u;
			r.n_in_vain = 0;
		}
		return !give_up;
	}
};

/* The bitmaps of an allocator of n_slabs free slabs; units beyond are in use. */
static __global__ void
slab_alloc_clear_kernel(uint32_t *bitmaps, uint32_t n_words, uint64_t n_slabs)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n_words; i += gridDim.x * blockDim.x)
	{
		uint64_t	first = (uint64_t) i * 32;

		bitmaps[i] = first + 32 <= n_slabs ? 0 : first >= n_slabs ? ~0u : ~0u << (n_slabs - first);
	}
}

static __global__ void
slab_alloc_count_kernel(const uint32_t *bitmaps, uint32_t n_words, unsigned long long *n_set)
{
	uint32_t	n = 0;

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n_words; i += gridDim.x * blockDim.x)
		n += __popc(rhh_load_relaxed32(&bitmaps[i]));
	if (n)
		atomicAdd(n_set, (unsigned long long) n);
}

/* The host's side; owns the memory. */
template <bool LIGHT>
struct slab_allocator
{
	typedef slab_alloc_view<LIGHT> view_type;

	static const bool is_light = LIGHT;

	view_type	view = {};
	uint32_t	n_supers = 0;
	uint64_t	n_slabs = 0;
	uint64_t   *count = nullptr;	/* device: scratch of used() */

	/* A kernel's argument: a new one for each launch. */
	const view_type &for_launch()
	{
		if (++view.launch == 0)
			view.launch = 1;
		return view;
	}

	/*
	 * Allocates n_slabs free slabs, at least 1.  block_bits: a super block has
	 * 2^block_bits memory blocks, more if 255 super blocks are too few.  The
	 * limits are 2^32 - 2^24 slabs (2^32 - 2^10 in the light variant).
	 */
	cudaError_t create(uint64_t n, uint32_t block_bits, cudaStream_t stream)
	{
		uint64_t	n_blocks;

		destroy();
		if (n == 0)
			n = 1;
		n_blocks = (n + SLAB_UNITS - 1) / SLAB_UNITS;
		if (LIGHT)
			block_bits = 22;
		else
			while (block_bits < SLAB_BLOCK_BITS && n_blocks > (uint64_t) SLAB_MAX_SUPERS << block_bits)
				block_bits++;
		if (n_blocks > (LIGHT ? (UINT64_C(1) << 22) - 1 : (uint64_t) SLAB_MAX_SUPERS << block_bits) ||
			(!LIGHT && block_bits > SLAB_BLOCK_BITS))
			return cudaErrorInvalidValue;
		n_slabs = n;
		view.n_blocks = (uint32_t) n_blocks;
		view.block_bits = block_bits;
		for (uint64_t done = 0; done < n; n_supers++)
		{
			uint64_t	now = min((uint64_t) SLAB_UNITS << block_bits, n - done);

			TABLE_TRY(cudaMalloc(&view.super_blocks[n_supers], now * SLAB_BYTES));
			done += now;
		}
		TABLE_TRY(cudaMalloc(&view.bitmaps, n_blocks * SLAB_BYTES));
		TABLE_TRY(cudaMalloc(&view.exhausted, sizeof *view.exhausted));
		TABLE_TRY(cudaMalloc(&count, sizeof *count));
		return clear(stream);
	}

	void destroy()
	{
		for (uint32_t s = 0; s < (LIGHT ? 1 : SLAB_MAX_SUPERS); s++)
			(void) cudaFree(view.super_blocks[s]);
		(void) cudaFree(view.bitmaps);
		(void) cudaFree(view.exhausted);
		(void) cudaFree(count);
		view = view_type();
		n_supers = 0;
		n_slabs = 0;
		count = nullptr;
	}

	/* All slabs free and all ones. */
	cudaError_t clear(cudaStream_t stream)
	{
		uint32_t	n_words = view.n_blocks * SLAB_WORDS;
		uint64_t	done = 0;

		for (uint32_t s = 0; s < n_supers; s++)
		{
			uint64_t	now = min((uint64_t) SLAB_UNITS << view.block_bits, n_slabs - done);

			TABLE_TRY(cudaMemsetAsync(view.super_blocks[s], 0xFF, now * SLAB_BYTES, stream));
			done += now;
		}
		TABLE_TRY(cudaMemsetAsync(view.exhausted, 0, sizeof *view.exhausted, stream));
		RHH_LAUNCH(slab_alloc_clear_kernel, table_blocks(n_words, 256), 256, 0, stream,
				   view.bitmaps, n_words, n_slabs);
		return cudaGetLastError();
	}

	/* Slabs in use.  Waits for the stream. */
	cudaError_t used(uint64_t *n_used, cudaStream_t stream)
	{
		uint32_t	n_words = view.n_blocks * SLAB_WORDS;

		TABLE_TRY(cudaMemsetAsync(count, 0, sizeof *count, stream));
		RHH_LAUNCH(slab_alloc_count_kernel, table_blocks(min(n_words, 1u << 18), 256), 256, 0, stream,
				   view.bitmaps, n_words, (unsigned long long *) count);
		TABLE_TRY(cudaGetLastError());
		TABLE_TRY(cudaMemcpyAsync(n_used, count, sizeof *count, cudaMemcpyDeviceToHost, stream));
		TABLE_TRY(cudaStreamSynchronize(stream));
		*n_used -= (uint64_t) view.n_blocks * SLAB_UNITS - n_slabs;
		return cudaSuccess;
	}

	uint64_t memory_bytes() const
	{
		return n_slabs == 0 ? 0
			: n_slabs * SLAB_BYTES + (uint64_t) view.n_blocks * SLAB_BYTES + sizeof *view.exhausted + sizeof *count;
	}
};

typedef slab_allocator<false> slab_alloc;
typedef slab_allocator<true> slab_alloc_light;

#endif							/* SLAB_ALLOC_CUH */
