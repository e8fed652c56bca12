/*-------------------------------------------------------------------------
 *
 * refused_strings.c
 *		Strings to choose from that a full dictionary does not take.
 *
 * A row whose string may be its group's least or greatest is in its block when
 * the dictionary is asked for that string (candidates.c).  If that takes no more,
 * the row goes on without, and the string by itself: as a group of the first
 * level that no row is in, but which has the string for a key.  The second level
 * keeps strings then (string_words.c), so it needs no number.
 *
 * In a parallel plan another participant may have the second level, so groups are
 * written to a file that all share, and read when the input is closed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "compat.h"
#include "exec/agg_state.h"

/*
 * The group of a row of the feed's block, of spec and with strings at those
 * words, in words.  Of the keys from n_shown_keys on all are NULL but the one that
 * the column feeds, which is the string, made in context (odd: see
 * CandidateRefused).  Strings are given by their addresses.
 */
void
gpurhh_choice_group(const rhh_table_spec *spec, const StringWords *strings,
					int n_shown_keys, const Feed *feed, uint32 row,
					int column, const char *data, uint32 length, bool odd,
					MemoryContext context, uint64 *words)
{
	rhh_batch	batch;
	int			word = 1;

	gpurhh_feed_describe(feed, &batch);
	batch.base = (uint8_t *) feed->base;
	gpurhh_host_load_group(spec, &batch, row, words);
	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		int			n = rhh_key_words(spec, k);

		if (k >= (uint32) n_shown_keys)
		{
			words[0] |= UINT64CONST(1) << k;
			memset(&words[word], 0, n * sizeof(uint64));
		}
		word += n;
	}
	gpurhh_strings_resolve(strings, feed->strings.dictionary, words);

	word = 1;
	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		if (k >= (uint32) n_shown_keys && spec->key_column[k] == column)
		{
			words[0] &= ~(UINT64CONST(1) << k);
			gpurhh_string_make_key(context, data, length, odd,
								   &words[word]);
		}
		word += rhh_key_words(spec, k);
	}
}

/*
 * Writes a group to the participant's file, *file, which is made if it is NULL.
 * To be closed by gpurhh_choices_close() before the participant detaches.
 */
void
gpurhh_choices_save(GpuAggShared *shared, BufFile **file,
					const StringWords *strings, const uint64 *words,
					int n_words)
{
	char		more = 1;

	if (*file == NULL)
		*file = gpurhh_parallel_create_choices(shared);
	BufFileWrite(*file, &more, sizeof(more));
	BufFileWrite(*file, unconstify(uint64 *, words), n_words * sizeof(uint64));
	gpurhh_strings_write(strings, *file, words);
}

void
gpurhh_choices_close(BufFile **file)
{
	char		more = 0;

	gpurhh_parallel_close_file(file, &more, sizeof(more));
}

/* Gives the second level the groups that participants saved. */
void
gpurhh_choices_read(GpuAggShared *shared, const StringWords *strings,
					int n_words, Regroup *regroup)
{
	uint64	   *words = palloc(n_words * sizeof(uint64));
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "GpuHashAgg choices",
												  ALLOCSET_DEFAULT_SIZES);
	BufFile    *file;

	for (int i = 0; (file = gpurhh_parallel_open_choices(shared, i)) != NULL; i++)
	{
		for (;;)
		{
			char		more;

			CHECK_FOR_INTERRUPTS();
			gpurhh_buffile_read(file, &more, sizeof(more));
			if (more == 0)
				break;
			gpurhh_buffile_read(file, words, n_words * sizeof(uint64));
			gpurhh_strings_read(strings, file, words, context);
			(void) gpurhh_regroup_add(regroup, NULL, words, 1, 1);
			MemoryContextReset(context);
		}
		BufFileClose(file);
	}
	MemoryContextDelete(context);
	pfree(words);
}
