/*-------------------------------------------------------------------------
 *
 * unnumbered_strings.c
 *		Candidates for min() and max() of strings that got no number, because the
 *		dictionary was full.
 *
 * When candidates.c asks the dictionary for a number of such a string, the row is in
 * its block already.  If the dictionary is full, the row is fed with NULL in place of
 * the string, and the string goes its own way: it becomes a group of the first level
 * that no row is in, with the string as one of its keys.  The second level, which
 * chooses the least or greatest of its keys, then keeps the strings themselves
 * (string_words.c), so the string needs no number.
 *
 * In a parallel plan another participant may make the second level.  So these groups
 * are written to a file that all participants share, and are read when the input is
 * closed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "compat.h"
#include "exec/agg_state.h"

/*
 * Makes the group of a row in the feed's block, and stores it in words.  spec says what
 * its keys and states are, strings which of its words are strings; these are given by
 * their addresses.  The hidden keys, from n_shown_keys on, are NULL but for the one that
 * column feeds: it is the string, which is copied into context.  For odd see
 * CandidateUnnumbered.
 */
void
gpurhh_unnumbered_group(const rhh_map_spec *spec, const StringWords *strings,
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
 * Writes a group to this participant's file, *file, which is made if it is NULL.  The
 * participant has to call gpurhh_unnumbered_close() before it detaches.
 */
void
gpurhh_unnumbered_save(GpuAggShared *shared, BufFile **file,
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

/* Ends the file, so that others can read it.  *file becomes NULL. */
void
gpurhh_unnumbered_close(BufFile **file)
{
	char		more = 0;

	gpurhh_parallel_close_file(file, &more, sizeof(more));
}

/* Gives the second level the groups that all participants have saved. */
void
gpurhh_unnumbered_read(GpuAggShared *shared, const StringWords *strings,
					   int n_words, Level *level)
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
			(void) gpurhh_level_add(level, NULL, words, 1, 1);
			MemoryContextReset(context);
		}
		BufFileClose(file);
	}
	MemoryContextDelete(context);
	pfree(words);
}
