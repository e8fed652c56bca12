/*-------------------------------------------------------------------------
 *
 * heap_walk.c
 *		The next page of a sequential scan, and which of its tuples are visible, unless a device finds that out.
 *
 * That is what core's scans do in page-at-a-time mode, without the tuples.
 *
 * To find a page's buffer core looks into a hash table, whose memory is rarely in the CPU's caches:
 * half of what a page of few needed bytes costs.  But a page that was read before is likely to be
 * where it was.  So with the library preloaded the sessions remember, in shared memory, where
 * they have found pages: *hints*, by the block's number, for 64 blocks together.  Core's
 * ReadRecentBuffer(), or for a page that is only pinned find_page(), then looks whether the page is in that buffer and
 * pins it; if it is not, it is read as ever.  So hints may be wrong, and are: they are written and read without a lock, and chunks of
 * blocks that fall on the same place overwrite each other.
 *
 * A hint also tells where the next page is, which is prefetched while this one is looked at.
 *
 * From 16 on there are none.  17's scans read streams, which look up buffers by themselves.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/syncscan.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/predicate.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "rhh_pages.h"
#include "scan/cached_pages.h"
#include "scan/scan.h"

#ifdef GPURHH_BUFFER_HINTS

/* ---------- hints ---------- */

#define HINT_BLOCKS	64

/* Where pages are only pinned, the header of a buffer is prefetched so many blocks ahead. */
#define UNSEEN_AHEAD 4

/* Where the blocks of a table are, from one on whose number is a multiple of HINT_BLOCKS. */
typedef struct HintChunk
{
	RelFileNode node;
	BlockNumber first;
	Buffer		buffers[HINT_BLOCKS];	/* 0: nobody knows */
} HintChunk;

static HintChunk *hints = NULL; /* NULL: the library is not preloaded */
static uint32 n_hints;			/* a power of two */
static shmem_request_hook_type prev_shmem_request_hook;
static shmem_startup_hook_type prev_shmem_startup_hook;

static void
request_hints(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	/* twice as many as are full if all buffers have pages of tables that were scanned */
	n_hints = 64;
	while (n_hints < (uint32) NBuffers / HINT_BLOCKS * 2)
		n_hints *= 2;
	RequestAddinShmemSpace(n_hints * sizeof(HintChunk));
}

static void
startup_hints(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	hints = ShmemInitStruct("gpurhh buffer hints", n_hints * sizeof(HintChunk), &found);
	if (!found)
		memset(hints, 0, n_hints * sizeof(HintChunk));
	LWLockRelease(AddinShmemInitLock);
}

static bool
is_of(const HintChunk *chunk, Relation rel, BlockNumber block)
{
	return RelFileNodeEquals(chunk->node, rel->rd_node) &&
		chunk->first == block - block % HINT_BLOCKS;
}

/*
 * The chunk that a block's hint is in, or, if it is not *known, may be put into.  NULL: there are none.
 *
 * A table's chunks lie one behind the other, so those of one that fits into the buffers do not fall on each other.  Those of two
 * tables may: so each has the choice of two places.
 */
static HintChunk *
hint_chunk(Relation rel, BlockNumber block, bool *known)
{
	const RelFileNode *node = &rel->rd_node;
	uint64		start;
	HintChunk  *set;

	*known = false;
	if (hints == NULL || RelationUsesLocalBuffers(rel))
		return NULL;
	start = (((uint64) node->dbNode << 32 | node->relNode) * UINT64CONST(0x9E3779B97F4A7C15)) >> 32;
	set = &hints[2 * ((start + block / HINT_BLOCKS) & (n_hints / 2 - 1))];
	for (int i = 0; i < 2; i++)
		if (is_of(&set[i], rel, block))
		{
			*known = true;
			return &set[i];
		}
	for (int i = 0; i < 2; i++)
		if (!OidIsValid(set[i].node.relNode))
			return &set[i];
	return &set[node->relNode % 2];
}

/* Notes where a block is. */
static void
remember(HintChunk *chunk, Relation rel, BlockNumber block, Buffer buffer)
{
	if (!is_of(chunk, rel, block))
	{
		memset(chunk->buffers, 0, sizeof(chunk->buffers));
		chunk->node = rel->rd_node;
		chunk->first = block - block % HINT_BLOCKS;
	}
	chunk->buffers[block % HINT_BLOCKS] = buffer;
}

#endif							/* GPURHH_BUFFER_HINTS */

void
gpurhh_init_buffer_hints(void)
{
#ifdef GPURHH_BUFFER_HINTS
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_hints;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_hints;
#endif
}

/* ---------- pages ---------- */

/* Was the page that was looked at last all visible?  The next one is likely to be like it. */
static bool last_all_visible = true;

/* Asks for all of a page that is mostly not in the CPU's caches. */
static inline void
prefetch_page(Page page)
{
	for (int i = 0; i < BLCKSZ; i += 64)
		__builtin_prefetch((char *) page + i);
}

#ifndef GPURHH_SCANS_STREAM

/* How much of a page is likely to be read by this process. */
typedef enum PageUse
{
	PAGE_UNSEEN,				/* nothing */
	PAGE_LINES,
	PAGE_DENSE					/* most of its bytes */
} PageUse;

#ifdef GPURHH_BUFFER_HINTS

/* The buffer whose page is prefetched, as it is likely to be read next, and the line pointers of the page that was looked at last. */
static Buffer prefetched = InvalidBuffer;
static int	last_lines = 0;

/*
 * What of that page is still to be asked for.  A processor waits for few lines of memory at a time, so if it asks for a page at once, what
 * it does next waits for most of them.  So that is done in steps while the page before is worked on, which has about as many as the
 * one before that had.
 */
static char *unasked = NULL;
static char *unasked_end = NULL;
static int	n_steps = 0;		/* of the page at hand, so far, ... */
static Size step_bytes = BLCKSZ;	/* ... each of so much of the next one */

/* Of pages that were read since a scan of this process has ended, how many there are, and how many of them were found by hints. */
static uint32 n_read = 0;
static uint32 n_found = 0;

/* Where read_page() has found one that is not looked at. */
static Buffer found = InvalidBuffer;

static inline void
ask_for(const char *end)
{
	for (; unasked < end; unasked += 64)
		__builtin_prefetch(unasked);
}

/* The page of this buffer has been read; InvalidBuffer: one that no hint has found.  Was it prefetched?  Then all of it has been asked for. */
static bool
end_prefetch(Buffer buffer)
{
	const bool	was = buffer == prefetched;

	if (was)
		ask_for(unasked_end);
	prefetched = InvalidBuffer;
	unasked = unasked_end;
	step_bytes = BLCKSZ / Max(n_steps, 1);
	n_steps = 0;
	return was;
}

/* The next block of the chunk is likely to be in this buffer, and to be asked for next. */
static void
prefetch_next(Buffer next, PageUse use)
{
	char	   *page;

	if (next <= 0 || next > NBuffers)
		return;
	__builtin_prefetch(GetBufferDescriptor(next - 1));
	if (use == PAGE_UNSEEN)
		return;
	prefetched = next;
	page = (char *) BufferGetPage(next);
	if (use == PAGE_DENSE)
	{
		unasked = page;
		unasked_end = page + BLCKSZ;
	}
	else
	{
		/* header and line pointers */
		for (int i = 0; i < (int) (SizeOfPageHeaderData + last_lines * sizeof(ItemIdData)); i += 64)
			__builtin_prefetch(page + i);
	}
}

/*
 * Counts a use of the buffer, as core does when it pins one that it has looked up, and does not when
 * it is told where to look: else pages that are found by hints would seem to be those that nobody needs.
 */
static inline void
count_use(Buffer buffer, BufferAccessStrategy strategy)
{
	BufferDesc *desc = GetBufferDescriptor(buffer - 1);
	uint32		state = pg_atomic_read_u32(&desc->state);
	const uint32 most = strategy != NULL ? 1 : BM_MAX_USAGE_COUNT;

	/* where others change the state at the same time, one use less counts */
	if (BUF_STATE_GET_USAGECOUNT(state) < most && (state & BM_LOCKED) == 0)
		(void) pg_atomic_compare_exchange_u32(&desc->state, &state, state + BUF_USAGECOUNT_ONE);
}

/*
 * Pins of pages that are not looked at.  Core notes a pin in a hash table of the process, and with its resource owner.  Where
 * thousands are held, that is most of what they cost.  A page that a device reads needs only that others know of its pin.
 * So this counts one there, as core does for a process's first pin, and whoever has it keeps the buffer's number,
 * and releases it, also after an error (page_batches.c).  Core does not know then whose the pin is, which matters to
 * it on a standby, where such pages are looked at, and to a process that waits for its own pin, which none does that scans the
 * table.
 *
 * Adds a pin; strategy as for count_use(), NULL: the use has been counted.  False: the page may not be there, or somebody is just
 * changing what is known of the buffer.
 */
static bool
add_pin(BufferDesc *desc, const BufferAccessStrategy *strategy)
{
	uint32		state = pg_atomic_read_u32(&desc->state);

	for (;;)
	{
		uint32		pinned = state + BUF_REFCOUNT_ONE;

		if ((state & BM_LOCKED) != 0 || (state & BM_VALID) == 0)
			return false;
		if (strategy != NULL &&
			BUF_STATE_GET_USAGECOUNT(state) < (*strategy != NULL ? 1 : BM_MAX_USAGE_COUNT))
			pinned += BUF_USAGECOUNT_ONE;
		if (pg_atomic_compare_exchange_u32(&desc->state, &state, pinned))
			return true;
	}
}

/* Adds a pin if the block is in this buffer. */
static bool
find_page(Relation rel, BlockNumber block, Buffer buffer, BufferAccessStrategy strategy)
{
	BufferDesc *desc = GetBufferDescriptor(buffer - 1);
	const volatile BufferTag *tag = &desc->tag;

	if (tag->blockNum != block || !add_pin(desc, &strategy))
		return false;
	/* what is pinned stays what it is */
	if (tag->blockNum == block && tag->forkNum == MAIN_FORKNUM && tag->rnode.relNode == rel->rd_node.relNode &&
		tag->rnode.dbNode == rel->rd_node.dbNode && tag->rnode.spcNode == rel->rd_node.spcNode)
		return true;
	(void) gpurhh_heap_unpin(buffer);
	return false;
}

#endif

/* Pins a page; or only finds it, by a pin of another kind (add_pin()): InvalidBuffer, and `found` is its buffer. */
static Buffer
read_page(Relation rel, BlockNumber block, BufferAccessStrategy strategy, PageUse use)
{
	Buffer		buffer;

#ifdef GPURHH_BUFFER_HINTS
	bool		known;
	HintChunk  *chunk = hint_chunk(rel, block, &known);

	n_read += chunk != NULL;
	if (known)
	{
		const volatile Buffer *hint = &chunk->buffers[block % HINT_BLOCKS];
		/* there is little to do with a page that is only pinned */
		const uint32 ahead = use == PAGE_UNSEEN ? UNSEEN_AHEAD : 1;

		buffer = *hint;
		if (buffer > 0 && buffer <= NBuffers &&
			(use == PAGE_UNSEEN ? find_page(rel, block, buffer, strategy) :
			 ReadRecentBuffer(rel->rd_node, MAIN_FORKNUM, block, buffer)))
		{
			n_found++;
			pgstat_count_buffer_read(rel);
			pgstat_count_buffer_hit(rel);
			if (use == PAGE_UNSEEN)
				pgBufferUsage.shared_blks_hit++;
			else
				count_use(buffer, strategy);
			if (!end_prefetch(buffer) && use == PAGE_DENSE)
				prefetch_page(BufferGetPage(buffer));
			if (block % HINT_BLOCKS + ahead < HINT_BLOCKS)
				prefetch_next(hint[ahead], use);
			if (use != PAGE_UNSEEN)
				return buffer;
			found = buffer;
			return InvalidBuffer;
		}
	}
#endif
	buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
	if (use == PAGE_DENSE)
		prefetch_page(BufferGetPage(buffer));
#ifdef GPURHH_BUFFER_HINTS
	(void) end_prefetch(InvalidBuffer);
	if (chunk != NULL)
		remember(chunk, rel, block, buffer);
#endif
	return buffer;
}

#endif							/* GPURHH_SCANS_STREAM */

/*
 * Releases a pin that was added by add_pin(), as core releases the last one of a process.  Returns which block's page it
 * was.
 */
BlockNumber
gpurhh_heap_unpin(Buffer buffer)
{
#ifdef GPURHH_BUFFER_HINTS
	BufferDesc *desc = GetBufferDescriptor(buffer - 1);
	const BlockNumber block = desc->tag.blockNum;
	uint32		state = pg_atomic_read_u32(&desc->state);

	do
	{
		/* for as long as that takes it is locked, and then it is not as it was read */
		if ((state & BM_LOCKED) != 0)
		{
			state = LockBufHdr(desc) & ~BM_LOCKED;
			UnlockBufHdr(desc, state);
		}
	} while (!pg_atomic_compare_exchange_u32(&desc->state, &state, state - BUF_REFCOUNT_ONE));
	if ((state & BM_PIN_COUNT_WAITER) != 0)
	{
		/* somebody waits until only he has a pin */
		state = LockBufHdr(desc);
		if ((state & BM_PIN_COUNT_WAITER) != 0 && BUF_STATE_GET_REFCOUNT(state) == 1)
		{
			const int	waiter = desc->wait_backend_pgprocno;

			UnlockBufHdr(desc, state & ~BM_PIN_COUNT_WAITER);
			ProcSendSignal(waiter);
		}
		else
			UnlockBufHdr(desc, state);
	}
	return block;
#else
	elog(ERROR, "there are no such pins in this version");
	return InvalidBlockNumber;
#endif
}

/* A step of the work on a page. */
static inline void
step(void)
{
#ifdef GPURHH_BUFFER_HINTS
	n_steps++;
	ask_for((Size) (unasked_end - unasked) > step_bytes ? unasked + step_bytes : unasked_end);
#endif
}

/* Are most bytes of a scan's next page likely to be read, as those of headers of tuples are where a page is not all visible? */
static inline bool
is_dense(bool dense)
{
	return dense || !last_all_visible;
}

/* Have all line pointers of a page a tuple? */
static bool
all_normal(Page page, int lines)
{
	const ItemId items = PageGetItemId(page, FirstOffsetNumber);
	unsigned	others = 0;

	for (int i = 0; i < lines; i++)
		others |= items[i].lp_flags ^ LP_NORMAL;
	return others == 0;
}

/* Numbers of line pointers in their order, as many as a page may have. */
static const OffsetNumber *
all_offsets(void)
{
	static OffsetNumber offsets[MaxHeapTuplesPerPage];

	if (offsets[0] == InvalidOffsetNumber)
		for (int i = 0; i < MaxHeapTuplesPerPage; i++)
			offsets[i] = FirstOffsetNumber + i;
	return offsets;
}

/*
 * Is a tuple visible by the marks in its header alone?  Whoever inserted it has committed, before all transactions that were running when
 * the snapshot was taken, and nobody has deleted it.  True only where core's HeapTupleSatisfiesMVCC() says so, too; if false, core has to
 * be asked.
 */
static inline bool
is_plainly_visible(const HeapTupleHeaderData *tuple, Snapshot snapshot)
{
	const uint16 marks = HEAP_XMIN_COMMITTED | HEAP_XMAX_INVALID;
	const TransactionId xmin = HeapTupleHeaderGetRawXmin(tuple);

	return (tuple->t_infomask & marks) == marks &&
		((tuple->t_infomask & HEAP_XMIN_FROZEN) == HEAP_XMIN_FROZEN || !TransactionIdIsNormal(xmin) ||
		 (int32) (xmin - snapshot->xmin) < 0);
}

/* To look at a tuple takes less than a step. */
#define TUPLES_OF_STEP 4

/* Notes which tuples of the page in rs_cbuf, which is locked, are visible. */
static int
test_tuples(HeapScanDesc scan, Page dp, int lines)
{
	Snapshot	snapshot = scan->rs_base.rs_snapshot;
	const bool	mvcc = snapshot->snapshot_type == SNAPSHOT_MVCC;
	int			n = 0;

	for (OffsetNumber offset = FirstOffsetNumber; offset <= lines; offset++)
	{
		ItemId		item = PageGetItemId(dp, offset);
		HeapTupleHeader header;

		if (offset % TUPLES_OF_STEP == 0)
			step();
		if (!ItemIdIsNormal(item))
			continue;
		header = (HeapTupleHeader) PageGetItem(dp, item);
		if (!mvcc || !is_plainly_visible(header, snapshot))
		{
			HeapTupleData tuple;

			tuple.t_tableOid = RelationGetRelid(scan->rs_base.rs_rd);
			tuple.t_data = header;
			tuple.t_len = ItemIdGetLength(item);
			ItemPointerSet(&tuple.t_self, scan->rs_cblock, offset);
			if (!HeapTupleSatisfiesVisibility(&tuple, snapshot, scan->rs_cbuf))
				continue;
		}
		scan->rs_vistuples[n++] = offset;
	}
	return n;
}

/*
 * Finds the visible tuples of the page in rs_cbuf, as core's heap_prepare_pagescan() does from 17 on, and without a call for most
 * tuples of a page that is not all visible.  Returns whether it is.
 */
static bool
find_visible(HeapScanDesc scan)
{
	Relation	rel = scan->rs_base.rs_rd;
	Snapshot	snapshot = scan->rs_base.rs_snapshot;
	Buffer		buffer = scan->rs_cbuf;
	Page		dp = BufferGetPage(buffer);
	int			lines;
	int			n = 0;
	bool		all_visible;

	heap_page_prune_opt(rel, buffer);

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	gpurhh_test_for_old_snapshot(snapshot, rel, dp);
	lines = PageGetMaxOffsetNumber(dp);
	all_visible = PageIsAllVisible(dp) && !snapshot->takenDuringRecovery;
	if (all_visible && lines <= MaxHeapTuplesPerPage && all_normal(dp, lines))
	{
		memcpy(scan->rs_vistuples, all_offsets(), lines * sizeof(OffsetNumber));
		n = lines;
	}
	else if (all_visible)
	{
		for (OffsetNumber offset = FirstOffsetNumber; offset <= lines; offset++)
		{
			scan->rs_vistuples[n] = offset;
			n += ItemIdIsNormal(PageGetItemId(dp, offset)) ? 1 : 0;
		}
	}
	else
		n = test_tuples(scan, dp, lines);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	scan->rs_ntuples = n;
	last_all_visible = all_visible;
#ifdef GPURHH_BUFFER_HINTS
	last_lines = lines;
#endif
	return all_visible;
}

static void
release_page(HeapScanDesc scan)
{
	if (BufferIsValid(scan->rs_cbuf))
		ReleaseBuffer(scan->rs_cbuf);
	scan->rs_cbuf = InvalidBuffer;
}

#ifndef GPURHH_SCANS_STREAM
/* The scan goes on to a page. */
static void
pin_page(HeapScanDesc scan, BlockNumber page, PageUse use)
{
	release_page(scan);
	CHECK_FOR_INTERRUPTS();
	scan->rs_cbuf = read_page(scan->rs_base.rs_rd, page, scan->rs_strategy, use);
	scan->rs_cblock = page;
}

/*
 * The same of a page that need not be looked at (cached->buffer).  If it has a pin that only gpurhh_heap_unpin() releases,
 * rs_cbuf is invalid, and nothing that may raise an error is done before the caller knows it (core's scan has
 * counted itself, so counting raises none).
 */
static void
pin_unseen(HeapScanDesc scan, BlockNumber page, CachedPages *cached)
{
	pin_page(scan, page, PAGE_UNSEEN);
	cached->buffer = scan->rs_cbuf;
#ifdef GPURHH_BUFFER_HINTS
	if (!BufferIsValid(scan->rs_cbuf))
		cached->buffer = found;
	else if (add_pin(GetBufferDescriptor(cached->buffer - 1), NULL))
		release_page(scan);
#endif
}

/* heapgetpage() in page-at-a-time mode.  Returns whether the page is all visible, as far as is known. */
static bool
heap_get_page(HeapScanDesc scan, BlockNumber page, bool dense)
{
	Relation	rel = scan->rs_base.rs_rd;

	if (CheckForSerializableConflictOutNeeded(rel, scan->rs_base.rs_snapshot))
	{
		heapgetpage((TableScanDesc) scan, page);
		return false;
	}
	pin_page(scan, page, is_dense(dense) ? PAGE_DENSE : PAGE_LINES);
	return find_visible(scan);
}
#endif

/*
 * Pins the page of any block, and finds its visible tuples as gpurhh_heap_next_page() does; the scan stays where
 * it is.  The caller releases the pin.
 */
Buffer
gpurhh_heap_read_block(HeapScanDesc scan, BlockNumber block)
{
	const Buffer at_buffer = scan->rs_cbuf;
	const BlockNumber at_block = scan->rs_cblock;
	Buffer		buffer;

	CHECK_FOR_INTERRUPTS();
	buffer = scan->rs_cbuf = ReadBufferExtended(scan->rs_base.rs_rd, MAIN_FORKNUM, block, RBM_NORMAL,
												scan->rs_strategy);
	scan->rs_cblock = block;
	(void) find_visible(scan);
	scan->rs_cbuf = at_buffer;
	scan->rs_cblock = at_block;
	return buffer;
}

/*
 * Is a device likely to be able to find the rows of this page, and of others that were written when it was?  It needs
 * marks that a tuple's inserter has committed, which are not there after a crash, or on what was a standby, where pages have
 * only been changed by replaying WAL.
 */
bool
gpurhh_heap_is_settled(Buffer buffer)
{
	const uint8 *page = (const uint8 *) BufferGetPage(buffer);
	const uint64 header = rhh_page_header(page);

	/* one that somebody has just changed says nothing of the others */
	return !rhh_page_is_all_visible(header) || rhh_page_header_lines(header) == 0 ||
		!rhh_page_has_tuple(page, 0) || rhh_page_is_settled(page, 0, header);
}

/* Has a device found the rows of this page, which it was to find, as far as one of them tells? */
bool
gpurhh_heap_is_found(Buffer buffer)
{
	return rhh_page_is_all_visible(rhh_page_header((const uint8_t *) BufferGetPage(buffer))) && gpurhh_heap_is_settled(buffer);
}

/*
 * The number of a scan's next block, after *at, which becomes that; InvalidBlockNumber, once: there is none.
 * That is what heapgettup_pagemode() does.
 */
static BlockNumber
next_block(HeapScanDesc scan, BlockNumber *at)
{
	Relation	rel = scan->rs_base.rs_rd;
	ParallelBlockTableScanDesc parallel =
		(ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;

	if (!scan->rs_inited)
	{
		if (scan->rs_nblocks == 0 || scan->rs_numblocks == 0)
			return InvalidBlockNumber;
		if (parallel != NULL)
			table_block_parallelscan_startblock_init(rel, scan->rs_parallelworkerdata, parallel);
		else
			*at = scan->rs_startblock;
		scan->rs_inited = true;
		if (parallel == NULL)
			return *at;
	}
	if (parallel != NULL)
		*at = table_block_parallelscan_nextpage(rel, scan->rs_parallelworkerdata, parallel);
	else
	{
		bool		ended;

		(*at)++;
		if (*at >= scan->rs_nblocks)
			*at = 0;
		ended = *at == scan->rs_startblock ||
			(scan->rs_numblocks != InvalidBlockNumber &&
			 --scan->rs_numblocks == 0);
		/* also at the end, so that the next scan starts where this one did */
		if (scan->rs_base.rs_flags & SO_ALLOW_SYNC)
			ss_report_location(rel, *at);
		if (ended)
			*at = InvalidBlockNumber;
	}
	return *at;
}

/* The cache has had the block *at: leaves out those behind it that it has, too, as next_block() would give them. */
static void
leave_out_more(HeapScanDesc scan, BlockNumber *at, CachedPages *cached)
{
	const BlockNumber end = scan->rs_startblock > *at ? scan->rs_startblock : scan->rs_nblocks;

	/* other processes get blocks in between, and a part of the table has its own count of them */
	if (scan->rs_base.rs_parallel == NULL && scan->rs_numblocks == InvalidBlockNumber)
		*at += gpurhh_cached_pages_take_more(cached, *at, end - 1 - *at);
}

/* The scan has ended, and may begin again. */
static HeapNext
end_scan(HeapScanDesc scan)
{
	release_page(scan);
	scan->rs_cblock = InvalidBlockNumber;
	scan->rs_ctup.t_data = NULL;
	scan->rs_inited = false;
#ifdef GPURHH_SCANS_STREAM
	scan->rs_prefetch_block = InvalidBlockNumber;
#endif
#ifdef GPURHH_BUFFER_HINTS
	if (n_read > 0)
		ereport(DEBUG2,
				(errmsg_internal("%u of %u pages were in the buffers that hints named", n_found, n_read)));
	n_read = n_found = 0;
#endif
	return HEAP_ENDED;
}

#ifdef GPURHH_SCANS_STREAM

/* The next block for the stream of a scan that leaves out blocks. */
static BlockNumber
next_of_stream(ReadStream *stream, void *arg, void *per_buffer_data)
{
	CachedPages *cached = arg;

	while (!cached->ended && !gpurhh_cached_pages_are_enough(cached))
	{
		BlockNumber block = next_block(cached->scan, &cached->scan->rs_prefetch_block);

		cached->ended = block == InvalidBlockNumber;
		if (!cached->ended && !gpurhh_cached_pages_take(cached, block))
			return block;
		if (!cached->ended)
			leave_out_more(cached->scan, &cached->scan->rs_prefetch_block, cached);
	}
	return InvalidBlockNumber;
}

/* gpurhh_heap_next_page() by a stream of its own, as core's does not leave out blocks. */
static HeapNext
next_uncached(HeapScanDesc scan, bool dense, CachedPages *cached)
{
	if (cached->stream == NULL)
		cached->stream = read_stream_begin_relation(READ_STREAM_SEQUENTIAL, scan->rs_strategy,
													scan->rs_base.rs_rd, MAIN_FORKNUM, next_of_stream,
													cached, 0);
	for (;;)
	{
		scan->rs_cbuf = read_stream_next_buffer(cached->stream, NULL);
		if (BufferIsValid(scan->rs_cbuf))
			break;
		if (cached->ended)
		{
			read_stream_end(cached->stream);
			cached->stream = NULL;
			return end_scan(scan);
		}
		/* it has ended for as long as there were enough */
		read_stream_reset(cached->stream);
		if (gpurhh_cached_pages_are_enough(cached))
			return HEAP_CACHED;
	}
	scan->rs_cblock = BufferGetBlockNumber(scan->rs_cbuf);
	if (gpurhh_cached_pages_trust(cached, scan->rs_cblock))
	{
		cached->buffer = scan->rs_cbuf;
		return HEAP_PAGE;
	}
	if (is_dense(dense))
		prefetch_page(BufferGetPage(scan->rs_cbuf));
	cached->all_visible = find_visible(scan);
	return HEAP_PAGE;
}

#endif							/* GPURHH_SCANS_STREAM */

/*
 * Reads the next page of a sequential scan and finds its visible tuples
 * (rs_vistuples, of which there are rs_ntuples); HEAP_ENDED, once, when all pages
 * have been read.  That is what heapgettup_pagemode() does, without the tuples.
 * dense: most of the page's bytes are likely to be read.
 *
 * cached, if not NULL, from the scan's beginning on, gets the blocks that are in the cache, which are left out.
 * HEAP_CACHED says, instead of a page, that there are enough of them.  A page that need not be looked at is only pinned
 * (cached->unseen); cached->buffer has it then, and rs_cbuf, too, or is invalid.
 */
HeapNext
gpurhh_heap_next_page(HeapScanDesc scan, bool dense, CachedPages *cached)
{
#ifdef GPURHH_SCANS_STREAM
	release_page(scan);
	CHECK_FOR_INTERRUPTS();
	scan->rs_dir = ForwardScanDirection;
	if (cached != NULL)
		return next_uncached(scan, dense, cached);
	scan->rs_cbuf = read_stream_next_buffer(scan->rs_read_stream, NULL);
	if (!BufferIsValid(scan->rs_cbuf))
		return end_scan(scan);
	scan->rs_cblock = BufferGetBlockNumber(scan->rs_cbuf);
	if (is_dense(dense))
		prefetch_page(BufferGetPage(scan->rs_cbuf));
	if (CheckForSerializableConflictOutNeeded(scan->rs_base.rs_rd, scan->rs_base.rs_snapshot))
		heap_prepare_pagescan((TableScanDesc) scan);
	else
		(void) find_visible(scan);
	return HEAP_PAGE;
#else
	for (;;)
	{
		BlockNumber block;
		bool		all_visible;

		if (cached != NULL && gpurhh_cached_pages_are_enough(cached))
		{
			CHECK_FOR_INTERRUPTS();
			return HEAP_CACHED;
		}
		block = next_block(scan, &scan->rs_cblock);
		if (block == InvalidBlockNumber)
			return end_scan(scan);
		if (cached != NULL && gpurhh_cached_pages_take(cached, block))
		{
			leave_out_more(scan, &scan->rs_cblock, cached);
			continue;
		}
		if (cached != NULL && gpurhh_cached_pages_trust(cached, block))
		{
			pin_unseen(scan, block, cached);
			return HEAP_PAGE;
		}
		all_visible = heap_get_page(scan, block, dense);
		if (cached != NULL)
			cached->all_visible = all_visible;
		return HEAP_PAGE;
	}
#endif
}

/* ---------- while a page is worked on ---------- */

void
gpurhh_heap_step(void)
{
	step();
}

/* ---------- for the planner ---------- */

/* Of so many pages is looked whether they are all visible, or in shared buffers: that, of small tables, of one in SAMPLE_OF. */
#define SAMPLE_PAGES 32
#define SAMPLE_OF 64

/* Page i of a sample of n. */
static BlockNumber
sample(int i, int n, BlockNumber n_pages)
{
	return (BlockNumber) ((i + 0.5) * n_pages / n);
}

/*
 * What share of a table's pages is in shared buffers, by a sample, and what share is there where hints say.  Others are read by
 * processes, each page by one that waits for it, so it matters how many of these there are.
 */
double
gpurhh_buffered_share(Relation rel, BlockNumber n_pages, double *hinted)
{
	const int	n = Min(n_pages / SAMPLE_OF + 1, SAMPLE_PAGES);
	int			n_buffered = 0;
	int			n_hinted = 0;

	for (int i = 0; i < n && n_pages > 0; i++)
	{
		const BlockNumber block = sample(i, n, n_pages);
		BufferTag	tag;
		uint32		hash;
		int			at;
#ifdef GPURHH_BUFFER_HINTS
		bool		known;
		const HintChunk *chunk = hint_chunk(rel, block, &known);
#endif

		gpurhh_init_buffer_tag(&tag, rel, block);
		hash = BufTableHashCode(&tag);
		LWLockAcquire(BufMappingPartitionLock(hash), LW_SHARED);
		at = BufTableLookup(&tag, hash);
		LWLockRelease(BufMappingPartitionLock(hash));
		n_buffered += at >= 0;
#ifdef GPURHH_BUFFER_HINTS
		n_hinted += at >= 0 && known && chunk->buffers[block % HINT_BLOCKS] == at + 1;
#endif
	}
	*hinted = (double) n_hinted / n;
	return (double) n_buffered / n;
}

/*
 * What share of a table's pages is all visible, by a sample: what VACUUM has found (pg_class.relallvisible) may have changed since
 * then, as all of it has if a part of the rows has been deleted.
 */
double
gpurhh_all_visible_share(Relation rel, BlockNumber n_pages)
{
	const int	n = Min(n_pages, SAMPLE_PAGES);
	Buffer		map = InvalidBuffer;
	int			n_visible = 0;

	for (int i = 0; i < n; i++)
		n_visible += VM_ALL_VISIBLE(rel, sample(i, n, n_pages), &map);
	if (BufferIsValid(map))
		ReleaseBuffer(map);
	return n > 0 ? (double) n_visible / n : 0;
}
