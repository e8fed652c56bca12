/*
 * simt.h
 *		CUDA's threads on one CPU thread, so that the .cuh files run, and are
 *		tested, where there is no GPU: in CI, under a debugger, under ASan.
 *
 * A CUDA source compiled by a C++17 compiler with this header instead of by
 * nvcc runs the same code.  Every thread of a block is a fiber.  A scheduler
 * with a seeded generator picks who runs next, at every warp-wide operation,
 * atomic, relaxed load and, by chance, more often than a GPU would ever change
 * its mind.  So interleavings that a GPU shows once in a billion rows are
 * common, and a seed repeats them exactly.
 *
 * What it is not: fast (some 10^7 switches a second), a model of weak memory
 * (everything is sequentially consistent), or a model of lockstep (lanes of a
 * warp drift apart as Volta and later may let them).
 *
 * Streams.  A copy from the host to the device is done as late as may be: when something behind it in its stream is,
 * or an event behind it is waited or asked for.  All else is done when its call returns, whatever stream it is in.
 *
 * Limits.  Blocks run simt::config.blocks_at_once at a time; kernels with static __shared__
 * variables need 1, the default; SIMT_LAUNCH_TOGETHER is for those without.  Dynamic shared memory is declared by
 * SIMT_DYNAMIC_SHARED.  No cooperative groups, no __activemask, no grid sync.
 * A warp has SIMT_WARP_SIZE lanes, 32 or (AMD's) 64; then masks have 64 bits.
 *
 * A deadlock (all fibers wait, or nobody gets on for a long time) prints who
 * waits and aborts.
 */
#ifndef SIMT_H
#define SIMT_H

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <set>
#include <vector>

#include <sys/mman.h>

#ifndef SIMT_WARP_SIZE
#define SIMT_WARP_SIZE 32
#endif

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#define __host__
#define __device__
#define __global__ __attribute__((unused))	/* a header's kernels need not be */
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define SIMT_DYNAMIC_SHARED(type, name) type *name = (type *) simt::current->home->shared

struct uint2
{
	unsigned	x, y;
};
struct int2
{
	int			x, y;
};
struct alignas(16) uint4
{
	unsigned	x, y, z, w;
};
struct alignas(16) ulonglong2
{
	unsigned long long x, y;
};
struct dim3
{
	unsigned	x, y, z;
	dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
		: x(x), y(y), z(z)
	{
	}
};
static inline uint2
make_uint2(unsigned x, unsigned y)
{
	return {x, y};
}
static inline uint4
make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
	return {x, y, z, w};
}
static inline ulonglong2
make_ulonglong2(unsigned long long x, unsigned long long y)
{
	return {x, y};
}

namespace simt
{

#if SIMT_WARP_SIZE == 64
typedef uint64_t mask_t;
#else
typedef uint32_t mask_t;
#endif

struct settings
{
	uint64_t	seed = 1;
	unsigned	blocks_at_once = 1;
	unsigned	blocks_together = 3;	/* of kernels launched by SIMT_LAUNCH_TOGETHER */
	unsigned	switch_one_in = 4;	/* atomics and relaxed loads that switch */
	size_t		stack_bytes = 64 << 10;
};
inline settings config;

/* Generator of the schedule: xorshift64*. */
inline uint64_t rng_state = 1;
static inline uint64_t
random64()
{
	rng_state ^= rng_state >> 12;
	rng_state ^= rng_state << 25;
	rng_state ^= rng_state >> 27;
	return rng_state * 0x2545F4914F6CDD1DULL;
}

/* Lanes that meet: those of mask.  Generations alternate between two buffers. */
struct meeting
{
	mask_t		mask;
	mask_t		arrived;
	const char *what;			/* the operation they meet in */
	unsigned	generation;
	uint64_t	values[2][SIMT_WARP_SIZE][2];
};

struct fiber;
struct warp
{
	std::vector<meeting> meetings;
	std::vector<fiber *> waiting;	/* for a meeting */
};
struct block
{
	dim3		index;
	void	   *shared;
	size_t		shared_bytes;
	unsigned	n_threads, n_arrived, n_ended, generation;
	std::vector<warp> warps;
	std::vector<fiber *> waiting;	/* in __syncthreads */
};
struct fiber
{
	void	   *sp = nullptr;
	char	   *stack = nullptr;
#if !defined(__x86_64__)
	ucontext_t	context;
#endif
	void	   *fake_stack = nullptr;
	block	   *home = nullptr; /* its block */
	warp	   *group = nullptr;	/* its warp */
	size_t		at = 0;			/* its place in runnable */
	dim3		thread;
	unsigned	lane = 0;
	bool		runnable = false;
	bool		ended = false;
};

inline fiber *current;
inline fiber scheduler;
inline dim3 grid_dim,
			block_dim;
inline std::function<void()> *body;
inline std::vector<fiber *> runnable;
inline std::vector<fiber *> pool;	/* fibers with stacks, reused */
inline uint64_t n_switches;

#if defined(__x86_64__)
extern "C" void simt_swap(void **save_sp, void *sp);
asm(R"(
	   .text
	   .weak simt_swap
	   .type simt_swap,@function
	   simt_swap:
	   pushq %rbp
	   pushq %rbx
	   pushq %r12
	   pushq %r13
	   pushq %r14
	   pushq %r15
	   movq %rsp, (%rdi)
	   movq %rsi, %rsp
	   popq %r15
	   popq %r14
	   popq %r13
	   popq %r12
	   popq %rbx
	   popq %rbp
	   ret
	   .size simt_swap,.-simt_swap
	   )");
#endif

static inline void
switch_to(fiber *from, fiber *to)
{
	n_switches++;
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_start_switch_fiber(&from->fake_stack, to->stack, config.stack_bytes);
#endif
#if defined(__x86_64__)
	simt_swap(&from->sp, to->sp);
#else
	swapcontext(&from->context, &to->context);
#endif
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(from->fake_stack, nullptr, nullptr);
#endif
}

[[noreturn]] static inline void
die(const char *why)
{
	fprintf(stderr, "simt: %s (seed %llu)\n", why, (unsigned long long) config.seed);
	abort();
}

/* Lets others run; the caller stays runnable unless it was taken off. */
static inline void
to_scheduler()
{
	switch_to(current, &scheduler);
}

static inline void
yield()
{
	if (current)
		to_scheduler();
}

/* Also keeps accesses in order: slots are accessed as one word and as halves. */
static inline void
maybe_yield()
{
	asm volatile("" : : : "memory");
	if (current && random64() % config.switch_one_in == 0)
		to_scheduler();
}

/* Is it not in the dynamic shared memory of the thread's block? */
static inline void
must_be_global(const void *p)
{
	if (current && (uintptr_t) p - (uintptr_t) current->home->shared < current->home->shared_bytes)
		die("a load of global memory has an address in shared memory");
}

static inline void
make_runnable(fiber *f)
{
	if (!f->runnable)
	{
		f->runnable = true;
		f->at = runnable.size();
		runnable.push_back(f);
	}
}

static inline void
take_off(fiber *f)
{
	runnable[f->at] = runnable.back();
	runnable[f->at]->at = f->at;
	runnable.pop_back();
	f->runnable = false;
}

static inline void check_block(block *b);

static inline void
fiber_main()
{
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
	for (;;)
	{
		(*body)();
		current->ended = true;
		take_off(current);
		current->home->n_ended++;
		check_block(current->home);
		to_scheduler();
	}
}

/*
 * The lanes of mask meet and give a value (of up to 16 bytes) each; returns
 * all values, by lane.  Valid until the caller's next meeting with this mask.
 */
static inline uint64_t (*
						meet(const char *what, mask_t mask, uint64_t low, uint64_t high = 0))[2]
{
	fiber	   *me = current;
	warp	   *w = me->group;
	size_t		i = 0;
	unsigned	generation;

	if (!(mask >> me->lane & 1))
		die("a lane is not in its own mask");
	while (i < w->meetings.size() && w->meetings[i].mask != mask)
		i++;
	if (i == w->meetings.size())
		w->meetings.push_back(meeting{mask, 0, what, 0, {}});
	{
		meeting &m = w->meetings[i];

		generation = m.generation;
		if (m.arrived == 0)
			m.what = what;
		else if (strcmp(m.what, what) != 0)
			die("lanes meet in different operations");
		m.values[generation & 1][me->lane][0] = low;
		m.values[generation & 1][me->lane][1] = high;
		m.arrived |= (mask_t) 1 << me->lane;
		if (m.arrived == mask)
		{
			m.arrived = 0;
			m.generation++;
			for (fiber *f : w->waiting)
				if (mask >> f->lane & 1)
					make_runnable(f);
			w->waiting.erase(std::remove_if(w->waiting.begin(), w->waiting.end(),
											[](fiber *f) {
												return f->runnable;
											}),
							 w->waiting.end());
			maybe_yield();
			return w->meetings[i].values[generation & 1];
		}
	}
	w->waiting.push_back(me);
	take_off(me);
	to_scheduler();
	if (w->meetings[i].generation == generation)
		die("a lane was woken too early");
	return w->meetings[i].values[generation & 1];
}

/* __syncthreads is over when all threads that have not ended have arrived. */
static inline void
check_block(block *b)
{
	if (b->n_arrived == 0 || b->n_arrived + b->n_ended < b->n_threads)
		return;
	b->n_arrived = 0;
	b->generation++;
	for (fiber *f : b->waiting)
		make_runnable(f);
	b->waiting.clear();
}

static inline void
sync_block()
{
	fiber	   *me = current;
	block	   *b = me->home;

	b->waiting.push_back(me);
	take_off(me);
	b->n_arrived++;
	check_block(b);
	to_scheduler();
}

static inline fiber *
new_fiber()
{
	fiber	   *f = new fiber;

	f->stack = (char *) aligned_alloc(64, config.stack_bytes);
#if defined(__x86_64__)
	{
		void	  **sp = (void **) (f->stack + config.stack_bytes);

		*--sp = nullptr;		/* alignment, and the end of a backtrace */
		*--sp = (void *) fiber_main;
		for (int i = 0; i < 6; i++)
			*--sp = nullptr;
		f->sp = sp;
	}
#else
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = config.stack_bytes;
	f->context.uc_link = nullptr;
	makecontext(&f->context, fiber_main, 0);
#endif
	return f;
}

static inline void
run(dim3 grid, dim3 threads, size_t shared_bytes, std::function<void()> kernel)
{
	uint64_t	n_blocks = (uint64_t) grid.x * grid.y * grid.z;
	unsigned	n_threads = threads.x * threads.y * threads.z;
	unsigned	n_warps = (n_threads + SIMT_WARP_SIZE - 1) / SIMT_WARP_SIZE;

	if (n_threads == 0 || n_threads > 1024 || n_blocks == 0)
		die("a launch of no blocks, or of blocks of 0 or more than 1024 threads");
	rng_state = config.seed * 0x9E3779B97F4A7C15ULL | 1;
	config.seed++;
	body = &kernel;
	grid_dim = grid;
	block_dim = threads;
	for (uint64_t first = 0; first < n_blocks; first += config.blocks_at_once)
	{
		uint64_t	n = std::min<uint64_t>(config.blocks_at_once, n_blocks - first);
		std::vector<block> blocks(n);
		std::vector<std::vector<char>> shared(n);
		uint64_t	limit = 0;

		while (pool.size() < n * n_threads)
			pool.push_back(new_fiber());
		for (uint64_t b = 0; b < n; b++)
		{
			block &bl = blocks[b];
			uint64_t	id = first + b;

			shared[b].assign(shared_bytes + 16, (char) 0xA5);
			bl.index = dim3(id % grid.x, id / grid.x % grid.y, id / grid.x / grid.y);
			bl.shared = (void *) (((uintptr_t) shared[b].data() + 15) & ~(uintptr_t) 15);
			bl.shared_bytes = shared_bytes;
			bl.n_threads = n_threads;
			bl.n_arrived = bl.n_ended = bl.generation = 0;
			bl.warps.resize(n_warps);
			for (unsigned t = 0; t < n_threads; t++)
			{
				fiber	   *f = pool[b * n_threads + t];

				f->home = &bl;
				f->group = &bl.warps[t / SIMT_WARP_SIZE];
				f->lane = t % SIMT_WARP_SIZE;
				f->thread = dim3(t % threads.x, t / threads.x % threads.y,
								 t / threads.x / threads.y);
				f->ended = f->runnable = false;
				make_runnable(f);
			}
		}
		while (!runnable.empty())
		{
			current = runnable[random64() % runnable.size()];
			switch_to(&scheduler, current);
			current = nullptr;
			if (++limit > (uint64_t) 40e9)
				die("no end in sight");
		}
		for (block &b : blocks)
			if (b.n_ended != b.n_threads)
			{
				for (fiber *f : b.waiting)
					fprintf(stderr, "thread %u of block %u waits in __syncthreads\n", f->thread.x, b.index.x);
				for (warp &w : b.warps)
					for (fiber *f : w.waiting)
						fprintf(stderr, "thread %u of block %u waits for its warp\n", f->thread.x, b.index.x);
				die("all threads wait: a deadlock");
			}
	}
}

static inline void
run_together(dim3 grid, dim3 threads, size_t shared_bytes, std::function<void()> kernel)
{
	unsigned	before = config.blocks_at_once;

	config.blocks_at_once = config.blocks_together;
	run(grid, threads, shared_bytes, kernel);
	config.blocks_at_once = before;
}

template <typename T>
static inline T
value_of(uint64_t (*values)[2], unsigned lane)
{
	T			t;

	static_assert(sizeof(T) <= 16, "");
	memcpy((void *) &t, values[lane], sizeof t);
	return t;
}

template <typename T>
static inline uint64_t (*
						meet_with(const char *what, mask_t mask, const T &value))[2]
{
	uint64_t	raw[2] = {0, 0};

	memcpy(raw, &value, sizeof value);
	return meet(what, mask, raw[0], raw[1]);
}

}								/* namespace simt */

#define threadIdx (simt::current->thread)
#define blockIdx (simt::current->home->index)
#define blockDim (simt::block_dim)
#define gridDim (simt::grid_dim)
#define warpSize SIMT_WARP_SIZE

/* A copy to the device that is not done yet. */
struct simt_copy
{
	void	   *to;
	const void *from;
	size_t		bytes;
};

struct simt_stream
{
	std::deque<simt_copy> copies;
	size_t		n_done = 0;		/* copies before these */
};

/* It has been reached when so many copies of a stream are done. */
struct simt_event
{
	std::chrono::steady_clock::time_point at;
	simt_stream *stream = nullptr;
	size_t		n_copies = 0;
};

inline std::set<simt_stream *> simt_streams;

/* Does the first n copies of a stream. */
static inline void
simt_finish(simt_stream *stream, size_t n = SIZE_MAX)
{
	if (simt_streams.count(stream) == 0)
		return;
	for (; stream->n_done < n && !stream->copies.empty(); stream->n_done++)
	{
		const simt_copy copy = stream->copies.front();

		memcpy(copy.to, copy.from, copy.bytes);
		stream->copies.pop_front();
	}
}

static inline void
simt_finish_all()
{
	for (simt_stream *stream : simt_streams)
		simt_finish(stream);
}

/* SIMT_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...) */
#define SIMT_LAUNCH(kernel, grid, threads, shared_bytes, stream, ...) \
	(simt_finish(stream), simt::run(grid, threads, shared_bytes, [&] { (kernel)(__VA_ARGS__); }))

/* The same for a kernel that has no static __shared__ variables. */
#define SIMT_LAUNCH_TOGETHER(kernel, grid, threads, shared_bytes, stream, ...) \
	(simt_finish(stream), simt::run_together(grid, threads, shared_bytes, [&] { (kernel)(__VA_ARGS__); }))

/* ---------- warp-wide ---------- */

static inline void
__syncthreads()
{
	simt::sync_block();
}
static inline int
__syncthreads_or(int yes)
{
	static int	any;			/* one block at a time meets here */

	if (simt::config.blocks_at_once != 1)
		simt::die("__syncthreads_or wants one block at a time");
	any = 0;
	__syncthreads();
	any |= yes;
	__syncthreads();
	int			result = any;

	__syncthreads();
	return result;
}
static inline void
__syncwarp(simt::mask_t mask = (simt::mask_t) ~0ULL)
{
	simt::meet("syncwarp", mask, 0);
}

static inline simt::mask_t
__ballot_sync(simt::mask_t mask, int yes)
{
	auto		values = simt::meet("ballot", mask, yes != 0);
	simt::mask_t result = 0;

	for (unsigned i = 0; i < SIMT_WARP_SIZE; i++)
		if (mask >> i & 1)
			result |= (simt::mask_t) values[i][0] << i;
	return result;
}
static inline int
__any_sync(simt::mask_t mask, int yes)
{
	return __ballot_sync(mask, yes) != 0;
}
static inline int
__all_sync(simt::mask_t mask, int yes)
{
	return __ballot_sync(mask, yes) == mask;
}

/* Reading a lane that is not in the mask is undefined in CUDA: refused here. */
template <typename T>
static inline T
simt_shfl(simt::mask_t mask, T value, unsigned from)
{
	auto		values = simt::meet_with(__func__, mask, value);

	if (!(mask >> from & 1))
		simt::die("a shuffle reads a lane outside its mask");
	return simt::value_of<T>(values, from);
}
template <typename T>
static inline T
__shfl_sync(simt::mask_t mask, T value, int lane, int width = SIMT_WARP_SIZE)
{
	unsigned	base = simt::current->lane & ~(unsigned) (width - 1);

	return simt_shfl(mask, value, base + ((unsigned) lane & (width - 1)));
}
template <typename T>
static inline T
__shfl_xor_sync(simt::mask_t mask, T value, int xor_mask, int width = SIMT_WARP_SIZE)
{
	unsigned	from = simt::current->lane ^ (unsigned) xor_mask;

	if (from / width > simt::current->lane / width)
		from = simt::current->lane;
	return simt_shfl(mask, value, from);
}
template <typename T>
static inline T
__shfl_up_sync(simt::mask_t mask, T value, unsigned delta, int width = SIMT_WARP_SIZE)
{
	unsigned	lane = simt::current->lane;

	return simt_shfl(mask, value, lane % width < delta ? lane : lane - delta);
}
template <typename T>
static inline T
__shfl_down_sync(simt::mask_t mask, T value, unsigned delta, int width = SIMT_WARP_SIZE)
{
	unsigned	lane = simt::current->lane;

	return simt_shfl(mask, value, lane % width + delta >= (unsigned) width ? lane : lane + delta);
}
template <typename T>
static inline simt::mask_t
__match_any_sync(simt::mask_t mask, T value)
{
	auto		values = simt::meet_with(__func__, mask, value);
	simt::mask_t result = 0;

	for (unsigned i = 0; i < SIMT_WARP_SIZE; i++)
		if ((mask >> i & 1) && simt::value_of<T>(values, i) == value)
			result |= (simt::mask_t) 1 << i;
	return result;
}
#define SIMT_REDUCE(name, type, expr) \
static inline type \
name(simt::mask_t mask, type value) \
{ \
	auto		values = simt::meet_with(__func__, mask, value); \
	bool		first = true; \
	type		a = 0; \
	for (unsigned i = 0; i < SIMT_WARP_SIZE; i++) \
		if (mask >> i & 1) \
		{ \
			type		b = simt::value_of<type>(values, i); \
			a = first ? b : (expr); \
			first = false; \
		} \
	return a; \
}
SIMT_REDUCE(__reduce_add_sync, unsigned, a + b)
SIMT_REDUCE(__reduce_min_sync, unsigned, std::min(a, b))
SIMT_REDUCE(__reduce_max_sync, unsigned, std::max(a, b))
SIMT_REDUCE(__reduce_or_sync, unsigned, a | b)
#undef SIMT_REDUCE

/* ---------- memory ---------- */

/*
 * A load by PTX, of global memory: its address has been made one of that, and is none if it was one of
 * shared memory.  It is also a place where others may come in between.
 */
template <typename T>
static inline T
simt_load(const T *p)
{
	simt::must_be_global(p);
	simt::maybe_yield();
	return *p;
}
#define SIMT_ATOMIC(name, expr) \
template <typename T> static inline T \
name(T *p, typename std::common_type<T>::type value) \
{ \
	simt::maybe_yield(); \
	T			old = *p; \
	*p = (T) (expr); \
	return old; \
}
SIMT_ATOMIC(atomicAdd, old + value)
SIMT_ATOMIC(atomicSub, old - value)
SIMT_ATOMIC(atomicExch, value)
SIMT_ATOMIC(atomicMin, std::min<T>(old, value))
SIMT_ATOMIC(atomicMax, std::max<T>(old, value))
SIMT_ATOMIC(atomicAnd, old &value)
SIMT_ATOMIC(atomicOr, old | value)
SIMT_ATOMIC(atomicXor, old ^ value)
#undef SIMT_ATOMIC
template <typename T>
static inline T
atomicCAS(T *p, typename std::common_type<T>::type expected, typename std::common_type<T>::type desired)
{
	simt::maybe_yield();
	T			old = *p;

	if (old == expected)
		*p = desired;
	return old;
}
static inline void
__threadfence()
{
}
static inline void
__threadfence_block()
{
}
static inline void
__nanosleep(unsigned)
{
	simt::yield();
}
[[noreturn]] static inline void
__trap()
{
	simt::die("__trap");
}
template <typename T>
static inline T
__ldg(const T *p)
{
	return *p;
}

/* ---------- arithmetic ---------- */

static inline int
__popc(unsigned x)
{
	return __builtin_popcount(x);
}
static inline int
__popcll(unsigned long long x)
{
	return __builtin_popcountll(x);
}
static inline int
__ffs(int x)
{
	return __builtin_ffs(x);
}
static inline int
__ffsll(long long x)
{
	return __builtin_ffsll(x);
}
static inline int
__clz(int x)
{
	return x ? __builtin_clz((unsigned) x) : 32;
}
static inline int
__clzll(long long x)
{
	return x ? __builtin_clzll((unsigned long long) x) : 64;
}
static inline unsigned
__umulhi(unsigned a, unsigned b)
{
	return (uint64_t) a * b >> 32;
}
static inline unsigned long long
__umul64hi(unsigned long long a, unsigned long long b)
{
	return (unsigned long long) ((unsigned __int128) a * b >> 64);
}
template <typename T>
static inline T
min(T a, T b)
{
	return b < a ? b : a;
}
template <typename T>
static inline T
max(T a, T b)
{
	return a < b ? b : a;
}

/* ---------- the runtime, as far as it is used ---------- */

typedef int cudaError_t;
enum
{
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorNoDevice = 100,
	cudaErrorNotReady = 600,
	cudaErrorNotSupported = 801
};
typedef struct simt_stream *cudaStream_t;
typedef struct simt_event *cudaEvent_t;
enum cudaMemcpyKind
{
	cudaMemcpyHostToHost,
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice,
	cudaMemcpyDefault
};
enum cudaDeviceAttr
{
	cudaDevAttrMultiProcessorCount,
	cudaDevAttrMaxSharedMemoryPerBlockOptin,
	cudaDevAttrL2CacheSize,
	cudaDevAttrComputeCapabilityMajor,
	cudaDevAttrComputeMode,
	cudaDevAttrCanUseHostPointerForRegisteredMem
};
struct cudaDeviceProp
{
	char		name[256];
	size_t		totalGlobalMem;
	int			multiProcessorCount, l2CacheSize, major, minor, clockRate;
	size_t		sharedMemPerBlockOptin;
};

/* Device memory: apart from the host's only in that it starts as rubbish. */
template <typename T>
static inline cudaError_t
cudaMalloc(T **p, size_t bytes)
{
	*p = (T *) aligned_alloc(256, (bytes + 255) / 256 * 256);
	if (!*p)
		return cudaErrorMemoryAllocation;
	memset((void *) *p, 0xA5, bytes);
	return cudaSuccess;
}
static inline cudaError_t
cudaFree(void *p)
{
	simt_finish_all();
	free(p);
	return cudaSuccess;
}
template <typename T>
static inline cudaError_t
cudaMallocManaged(T **p, size_t bytes)
{
	return cudaMalloc(p, bytes);
}
template <typename T>
static inline cudaError_t
cudaMallocHost(T **p, size_t bytes)
{
	return cudaMalloc(p, bytes);
}
static inline cudaError_t
cudaFreeHost(void *p)
{
	simt_finish_all();
	free(p);
	return cudaSuccess;
}
static inline cudaError_t
cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
	memcpy(to, from, bytes);
	return cudaSuccess;
}
static inline cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s = nullptr)
{
	if (kind == cudaMemcpyHostToDevice && s != nullptr)
	{
		s->copies.push_back({to, from, bytes});
		return cudaSuccess;
	}
	simt_finish(s);
	memcpy(to, from, bytes);
	return cudaSuccess;
}
static inline cudaError_t
cudaMemset(void *p, int value, size_t bytes)
{
	memset(p, value, bytes);
	return cudaSuccess;
}
static inline cudaError_t
cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s = nullptr)
{
	simt_finish(s);
	memset(p, value, bytes);
	return cudaSuccess;
}
static inline cudaError_t
cudaStreamCreate(cudaStream_t *s)
{
	*s = new simt_stream;
	simt_streams.insert(*s);
	return cudaSuccess;
}
static inline cudaError_t
cudaStreamDestroy(cudaStream_t s)
{
	simt_finish(s);
	simt_streams.erase(s);
	delete s;
	return cudaSuccess;
}
static inline cudaError_t
cudaStreamSynchronize(cudaStream_t s)
{
	simt_finish(s);
	return cudaSuccess;
}
static inline cudaError_t
cudaDeviceSynchronize()
{
	simt_finish_all();
	return cudaSuccess;
}
static inline cudaError_t
cudaGetLastError()
{
	return cudaSuccess;
}
static inline cudaError_t
cudaPeekAtLastError()
{
	return cudaSuccess;
}
static inline const char *
cudaGetErrorString(cudaError_t e)
{
	return e ? "an error" : "no error";
}
static inline const char *
cudaGetErrorName(cudaError_t e)
{
	return e ? "simtError" : "cudaSuccess";
}
static inline cudaError_t
cudaSetDevice(int)
{
	return cudaSuccess;
}
static inline cudaError_t
cudaGetDevice(int *d)
{
	*d = 0;
	return cudaSuccess;
}
static inline cudaError_t
cudaGetDeviceCount(int *n)
{
	*n = 1;
	return cudaSuccess;
}
static inline cudaError_t
cudaDriverGetVersion(int *version)
{
	*version = 1;
	return cudaSuccess;
}
static inline cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	*free_bytes = *total = (size_t) 1 << 30;
	return cudaSuccess;
}
static inline cudaError_t
cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
	memset(p, 0, sizeof *p);
	strcpy(p->name, "simt (no GPU)");
	p->totalGlobalMem = (size_t) 1 << 30;
	p->multiProcessorCount = 2;
	p->l2CacheSize = 1 << 20;
	p->sharedMemPerBlockOptin = 99 << 10;
	p->major = 9;
	return cudaSuccess;
}
static inline cudaError_t
cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int)
{
	cudaDeviceProp p;

	cudaGetDeviceProperties(&p, 0);
	*value = attr == cudaDevAttrComputeMode ? 0
		: attr == cudaDevAttrCanUseHostPointerForRegisteredMem ? 1
		: attr == cudaDevAttrMultiProcessorCount ? p.multiProcessorCount
		: attr == cudaDevAttrMaxSharedMemoryPerBlockOptin ? (int) p.sharedMemPerBlockOptin
		: attr == cudaDevAttrL2CacheSize ? p.l2CacheSize : p.major;
	return cudaSuccess;
}
enum cudaFuncAttribute
{
	cudaFuncAttributeMaxDynamicSharedMemorySize,
	cudaFuncAttributePreferredSharedMemoryCarveout
};
enum cudaSharedCarveout
{
	cudaSharedmemCarveoutDefault = -1,
	cudaSharedmemCarveoutMaxShared = 100
};
template <typename F>
static inline cudaError_t
cudaFuncSetAttribute(F, cudaFuncAttribute, int)
{
	return cudaSuccess;
}
template <typename F>
static inline cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, F, int, size_t)
{
	*n = 2;
	return cudaSuccess;
}
static inline cudaError_t
cudaEventCreate(cudaEvent_t *e)
{
	*e = new simt_event;
	return cudaSuccess;
}
static inline cudaError_t
cudaEventDestroy(cudaEvent_t e)
{
	delete e;
	return cudaSuccess;
}
static inline cudaError_t
cudaEventRecord(cudaEvent_t e, cudaStream_t s = nullptr)
{
	e->at = std::chrono::steady_clock::now();
	e->stream = s;
	e->n_copies = s != nullptr ? s->n_done + s->copies.size() : 0;
	return cudaSuccess;
}
static inline cudaError_t
cudaEventSynchronize(cudaEvent_t e)
{
	simt_finish(e->stream, e->n_copies);
	return cudaSuccess;
}
static inline cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
	*ms = std::chrono::duration<float, std::milli>(b->at - a->at).count();
	return cudaSuccess;
}

/* What the CUDA device of gpu/cuda/rhh_cuda.cu needs besides. */
#define CUDART_CB
#define __CUDA_ARCH_LIST__ 900
enum
{
	cudaStreamNonBlocking,
	cudaEventDisableTiming,
	cudaHostAllocDefault,
	cudaHostRegisterPortable,
	cudaHostRegisterMapped,
	cudaComputeModeDefault,
	cudaComputeModeProhibited = 2
};
enum cudaMemoryType
{
	cudaMemoryTypeUnregistered
};
struct cudaPointerAttributes
{
	cudaMemoryType type;
};
struct cudaFuncAttributes
{
	int			ptxVersion,
				binaryVersion,
				numRegs;
	size_t		sharedSizeBytes,
				localSizeBytes;
};
typedef void (*cudaStreamCallback_t)(cudaStream_t, cudaError_t, void *);

static inline cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
	return cudaStreamCreate(s);
}

static inline cudaError_t
cudaStreamCreateWithPriority(cudaStream_t *s, unsigned, int)
{
	return cudaStreamCreate(s);
}
static inline cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
	return cudaEventCreate(e);
}
static inline cudaError_t
cudaEventQuery(cudaEvent_t e)
{
	return cudaEventSynchronize(e);
}
static inline cudaError_t
cudaStreamWaitEvent(cudaStream_t, cudaEvent_t e, unsigned)
{
	return cudaEventSynchronize(e);
}
static inline cudaError_t
cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t callback, void *data, unsigned)
{
	simt_finish(s);
	callback(s, cudaSuccess, data);
	return cudaSuccess;
}
static inline cudaError_t
cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
				  size_t height, cudaMemcpyKind, cudaStream_t s)
{
	simt_finish(s);
	for (size_t row = 0; row < height; row++)
		memcpy((char *) to + row * to_pitch, (const char *) from + row * from_pitch, width);
	return cudaSuccess;
}
template <typename T>
static inline cudaError_t
cudaHostAlloc(T **p, size_t bytes, unsigned)
{
	return cudaMalloc(p, bytes);
}
static inline cudaError_t
cudaHostRegister(void *memory, size_t bytes, unsigned)
{
	const uintptr_t begin = (uintptr_t) memory / 4096 * 4096;

	/* it must be mapped */
	return msync((void *) begin, (uintptr_t) memory + bytes - begin, MS_ASYNC) == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
static inline cudaError_t
cudaHostUnregister(void *)
{
	return cudaSuccess;
}
static inline cudaError_t
cudaPointerGetAttributes(cudaPointerAttributes *a, const void *)
{
	a->type = cudaMemoryTypeUnregistered;
	return cudaSuccess;
}
template <typename F>
static inline cudaError_t
cudaFuncGetAttributes(cudaFuncAttributes *a, F)
{
	*a = cudaFuncAttributes{90, 90, 32, 0, 0};
	return cudaSuccess;
}

#endif							/* SIMT_H */
