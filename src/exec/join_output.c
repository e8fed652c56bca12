/*-------------------------------------------------------------------------
 *
 * join_output.c
 *		Rows that have come out of a device's joins, until GpuHashJoin has returned them.
 *
 * They come as columns, a block of the pool at a time, and are copied, as a session that may sleep
 * between two rows keeps no block.  They leave as groups of which all columns are keys, in windows
 * (agg_emit.c), in the order in which they came.
 *
 * The caller sees to it that there are not many of them.  A batch of rows whose output is more than
 * can be kept waits, and is joined on later.  A batch of pages does not wait, as it would keep its pages pinned:
 * what is too much of its output goes to a temporary file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

#include "compat.h"
#include "exec/emit.h"
#include "exec/join_output.h"

/* If so many blocks are in memory, there are enough. */
#define MOST_BLOCKS	16

/* The rows of a block, as columns. */
typedef struct OutputBlock
{
	struct OutputBlock *next;
	uint32		n_rows;
	uint32		at;				/* the next one to return */
	char		room[FLEXIBLE_ARRAY_MEMBER];	/* the columns, each of them the values and then the bitmap */
} OutputBlock;

struct JoinOutput
{
	MemoryContext context;
	const rhh_map_spec *group;	/* of which a row is a group */
	Size		block_bytes;
	OutputBlock *first;			/* in the order in which they came */
	OutputBlock *last;
	int			n_blocks;
	OutputBlock *unused;		/* memory for more */
	BufFile    *file;			/* of those that came after the last one; NULL: none have */
	uint64		n_file;			/* blocks that it has, ... */
	uint64		n_read;			/* ... and those of them that have been read */
	uint64	   *words;			/* of the window */
};

/*
 * group says of what columns a row has, all keys; it stays as long as the result, which is in
 * context.  block_bytes: no block has more.
 */
JoinOutput *
gpurhh_join_output_create(const rhh_map_spec *group, Size block_bytes, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	JoinOutput *output = palloc0(sizeof(JoinOutput));

	output->context = context;
	output->group = group;
	output->block_bytes = block_bytes;
	output->words = palloc(sizeof(uint64) * rhh_result_words(group) * GPURHH_EMIT_WINDOW);
	MemoryContextSwitchTo(old);
	return output;
}

/* Its file, if there is one, would else stay until the resource owner goes. */
void
gpurhh_join_output_end(JoinOutput *output)
{
	if (output->file != NULL)
		BufFileClose(output->file);
	output->file = NULL;
}

/* ---------- blocks ---------- */

/* The bytes of a column's values, and of its bitmap, in a block of n rows. */
static Size
values_bytes(const JoinOutput *output, uint32 c, uint32 n)
{
	return MAXALIGN((Size) n * output->group->column_bytes[c]);
}

static Size
nulls_bytes(uint32 n)
{
	return MAXALIGN(((Size) n + 7) / 8);
}

static OutputBlock *
get_block(JoinOutput *output)
{
	OutputBlock *block = output->unused;

	if (block != NULL)
		output->unused = block->next;
	else
		block = MemoryContextAllocHuge(output->context, offsetof(OutputBlock, room) + output->block_bytes);
	block->next = NULL;
	block->at = 0;
	return block;
}

static void
push(JoinOutput *output, OutputBlock *block)
{
	if (output->last != NULL)
		output->last->next = block;
	else
		output->first = block;
	output->last = block;
	output->n_blocks++;
}

static void
pop(JoinOutput *output)
{
	OutputBlock *block = output->first;

	output->first = block->next;
	if (output->first == NULL)
		output->last = NULL;
	output->n_blocks--;
	block->next = output->unused;
	output->unused = block;
}

/* Puts a block at the end of the file. */
static void
write_block(JoinOutput *output, OutputBlock *block, Size bytes)
{
	if (output->file == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(output->context);

		PrepareTempTablespaces();
		output->file = BufFileCreateTemp(false);
		MemoryContextSwitchTo(old);
	}
	BufFileWrite(output->file, &block->n_rows, sizeof(uint32));
	BufFileWrite(output->file, block->room, bytes);
	output->n_file++;
}

/* The first block is the next one of the file, which goes when all of it has been read. */
static void
read_block(JoinOutput *output)
{
	OutputBlock *block = get_block(output);
	Size		bytes = 0;

	/* nothing is written any more */
	if (output->n_read == 0 && BufFileSeek(output->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind a temporary file of joined rows")));
	gpurhh_buffile_read(output->file, &block->n_rows, sizeof(uint32));
	for (uint32 c = 0; c < output->group->n_columns; c++)
		bytes += values_bytes(output, c, block->n_rows) + nulls_bytes(block->n_rows);
	gpurhh_buffile_read(output->file, block->room, bytes);
	push(output, block);
	if (++output->n_read == output->n_file)
	{
		gpurhh_join_output_end(output);
		output->n_file = output->n_read = 0;
	}
}

/*
 * Copies the rows that have come back with a batch: all that it says there are.  Returns how many bytes had to go to a file.
 * No rows are added between windows, unless there is none left.
 */
uint64
gpurhh_join_output_add(JoinOutput *output, const rhh_batch *batch)
{
	const rhh_map_spec *group = output->group;
	OutputBlock *block = get_block(output);
	char	   *to = block->room;

	block->n_rows = batch->n_rows;
	for (uint32 c = 0; c < group->n_columns; c++)
	{
		memcpy(to, batch->base + batch->values_offset[c], (Size) batch->n_rows * group->column_bytes[c]);
		to += values_bytes(output, c, batch->n_rows);
		memcpy(to, batch->base + batch->nulls_offset[c], (batch->n_rows + 7) / 8);
		to += nulls_bytes(batch->n_rows);
	}
	Assert(to <= block->room + output->block_bytes);
	if (!gpurhh_join_output_is_full(output))
	{
		push(output, block);
		return 0;
	}
	Assert(output->n_read == 0);
	write_block(output, block, to - block->room);
	block->next = output->unused;
	output->unused = block;
	return to - block->room;
}

/* Are there so many blocks that no more are wanted?  What is added all the same goes to a file. */
bool
gpurhh_join_output_is_full(const JoinOutput *output)
{
	return output->n_blocks >= MOST_BLOCKS || output->file != NULL;
}

/* Are there rows that have not been returned? */
bool
gpurhh_join_output_any(const JoinOutput *output)
{
	return output->file != NULL ||
		(output->first != NULL && (output->first->next != NULL || output->first->at < output->first->n_rows));
}

/* ---------- windows ---------- */

/* Writes n values of a column, from row at on, into the words of groups. */
static void
write_words(const char *values, int bytes, uint32 at, uint32 n, uint64 *words)
{
	switch (bytes)
	{
		case 1:
			for (uint32 i = 0; i < n; i++)
				words[i] = ((const uint8 *) values)[at + i];
			break;
		case 2:
			for (uint32 i = 0; i < n; i++)
				words[i] = ((const uint16 *) values)[at + i];
			break;
		case 4:
			for (uint32 i = 0; i < n; i++)
				words[i] = ((const uint32 *) values)[at + i];
			break;
		case 8:
			memcpy(words, values + (Size) at * 8, (Size) n * 8);
			break;
		default:
			for (uint32 i = 0; i < n; i++)
			{
				const uint64 *value = (const uint64 *) values + 2 * (Size) (at + i);

				words[i] = value[0];
				words[GPURHH_EMIT_WINDOW + i] = value[1];
			}
			break;
	}
}

/*
 * Marks the NULLs of a column in word 0 of the groups.  The column's words, which may be
 * anything where it is NULL, become 0 there.
 */
static void
write_nulls(const uint8 *nulls, int column, int n_words, uint32 at, uint32 n,
			uint64 *null_bits, uint64 *words)
{
	for (uint32 i = 0; i < n; i++)
	{
		uint8		byte = nulls[(at + i) / 8];

		/* windows begin at multiples of 8 */
		if (byte == 0)
			i |= 7;
		else if (byte >> (i % 8) & 1)
		{
			null_bits[i] |= UINT64CONST(1) << column;
			for (int w = 0; w < n_words; w++)
				words[w * GPURHH_EMIT_WINDOW + i] = 0;
		}
	}
}

/*
 * The next rows as words of groups, each word GPURHH_EMIT_WINDOW times; they stay until the next call.  *n becomes the number of
 * rows.  NULL: there are none.
 */
uint64 *
gpurhh_join_output_window(JoinOutput *output, uint32 *n)
{
	const rhh_map_spec *group = output->group;
	OutputBlock *block;
	const char *from;

	while (output->first != NULL && output->first->at == output->first->n_rows)
		pop(output);
	if (output->first == NULL && output->file != NULL)
		read_block(output);
	block = output->first;
	if (block == NULL)
		return NULL;
	from = block->room;
	*n = Min(block->n_rows - block->at, GPURHH_EMIT_WINDOW);
	memset(output->words, 0, sizeof(uint64) * *n);
	for (uint32 c = 0; c < group->n_columns; c++)
	{
		const int	bytes = group->column_bytes[c];
		const char *nulls = from + values_bytes(output, c, block->n_rows);
		uint64	   *words = output->words + rhh_key_word(group, c) * GPURHH_EMIT_WINDOW;

		write_words(from, bytes, block->at, *n, words);
		write_nulls((const uint8 *) nulls, c, bytes > 8 ? 2 : 1, block->at, *n, output->words, words);
		from = nulls + nulls_bytes(block->n_rows);
	}
	block->at += *n;
	return output->words;
}
