/*-------------------------------------------------------------------------
 *
 * node_stats.c
 *		Adds up what the participants of a parallel plan did, for EXPLAIN.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec/node_stats.h"

static void
add_pages(PageCounts *sum, const PageCounts *counts)
{
	sum->all += counts->all;
	sum->cached += counts->cached;
	for (int r = 0; r < N_BACK_REASONS; r++)
		sum->back[r] += counts->back[r];
}

/* Adds what a participant has counted to the sums, and sets its counts to 0. */
void
gpurhh_add_counts(GpuNodeCounts *sum, GpuNodeCounts *counts)
{
	sum->runs += counts->runs;
	sum->feeders += counts->feeders;
	sum->declined += counts->declined;
	sum->rests += counts->rests;
	sum->rows_fed += counts->rows_fed;
	sum->bytes_fed += counts->bytes_fed;
	sum->batches += counts->batches;
	add_pages(&sum->pages, &counts->pages);
	sum->host_rows += counts->host_rows;
	sum->host_spilled += counts->host_spilled;
	sum->late_batches += counts->late_batches;
	sum->groups_returned += counts->groups_returned;
	sum->dictionary_strings += counts->dictionary_strings;
	sum->dictionary_bytes = Max(sum->dictionary_bytes,
								counts->dictionary_bytes);
	sum->deferred_rows += counts->deferred_rows;
	sum->passes += counts->passes;
	sum->left_over += counts->left_over;
	sum->output_bytes += counts->output_bytes;
	for (int j = 0; j < RHH_MAX_JOINS; j++)
	{
		sum->build_bytes[j] += counts->build_bytes[j];
		sum->build_batches[j] += counts->build_batches[j];
		add_pages(&sum->build_pages[j], &counts->build_pages[j]);
		sum->build_ms[j] += counts->build_ms[j];
		sum->key_filtered[j] += counts->key_filtered[j];
		sum->key_filters[j] = Max(sum->key_filters[j], counts->key_filters[j]);
	}
	sum->odd_values += counts->odd_values;
	sum->odd_compared += counts->odd_compared;
	sum->odd_bytes = Max(sum->odd_bytes, counts->odd_bytes);
	sum->feed_ms += counts->feed_ms;
	sum->pool_wait_ms += counts->pool_wait_ms;
	sum->fetch_ms += counts->fetch_ms;
	sum->form_ms += counts->form_ms;
	memset(counts, 0, sizeof(GpuNodeCounts));
}

/* Adds what a participant did to what others did, whose joins have the same build sides. */
void
gpurhh_add_joins(GpuJoinStats *sums, const GpuJoinStats *joins, int n_joins)
{
	for (int j = 0; j < n_joins; j++)
	{
		sums[j].build_rows = Max(sums[j].build_rows, joins[j].build_rows);
		sums[j].keys = Max(sums[j].keys, joins[j].keys);
		sums[j].slots = Max(sums[j].slots, joins[j].slots);
		sums[j].bytes = Max(sums[j].bytes, joins[j].bytes);
		sums[j].probe_sum = Max(sums[j].probe_sum, joins[j].probe_sum);
		sums[j].probe_max = Max(sums[j].probe_max, joins[j].probe_max);
		sums[j].upload_ns = Max(sums[j].upload_ns, joins[j].upload_ns);
		sums[j].kernel_ns = Max(sums[j].kernel_ns, joins[j].kernel_ns);
		sums[j].rows += joins[j].rows;
		sums[j].passes = Max(sums[j].passes, joins[j].passes);
	}
}

/* The same of the map that returns the joins' output. */
void
gpurhh_add_level(GpuLevelStats *sum, const GpuLevelStats *level)
{
	rhh_map_stats before = sum->map;

	*sum = *level;
	sum->map.filtered_rows += before.filtered_rows;
	sum->map.upload_ns += before.upload_ns;
	sum->map.kernel_ns += before.kernel_ns;
}
