/*-------------------------------------------------------------------------
 *
 * explain.c
 *		What EXPLAIN shows of our nodes.
 *
 * In the text format related figures are on one line, as core's Hash and HashAggregate
 * show them, and lines without a figure are left out.  In all other formats each figure
 * is a property of its own, with the same name in every run.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "commands/explain.h"
#include "nodes/nodeFuncs.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "exec/agg_state.h"
#include "plan/plan.h"
#include "settings.h"

/*
 * The texts of expressions of the scan tuple: of its first columns, up to from
 * (exclusive), or of the aggregates among those that follow.
 */
static List *
deparse_range(CustomScanState *node, List *ancestors, ExplainState *es,
			  int from, bool aggregates)
{
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt,
												   &cscan->scan.plan, ancestors);
	bool		prefix = gpurhh_several_tables(es->rtable) || es->verbose;
	List	   *result = NIL;
	int			i = 0;
	ListCell   *lc;

	foreach(lc, cscan->custom_scan_tlist)
	{
		Node	   *expr = (Node *) lfirst_node(TargetEntry, lc)->expr;

		if (aggregates ? i >= from && IsA(expr, Aggref) : i < from)
			result = lappend(result, deparse_expression(expr, context, prefix,
														false));
		i++;
	}
	return result;
}

/* Begins a line of the text format. */
static void
indent(ExplainState *es)
{
	appendStringInfoSpaces(es->str, es->indent * 2);
}

static double
megabytes(uint64 bytes)
{
	return (double) bytes / (1024.0 * 1024.0);
}

/* How many participants read a part of a run's input, on average. */
static double
participants(const GpuNodeCounts *counts)
{
	return (double) Max(counts->feeders, 1) / Max(counts->runs, 1);
}

/* Shows where a level above the first was made, and the map if a device made it. */
static void
show_level(ExplainState *es, const char *name, const GpuLevelStats *level)
{
	const rhh_map_stats *map = &level->map;

	if (level->place == GPU_LEVEL_NONE)
		return;
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyText(name, level->place == GPU_LEVEL_DEVICE ? "device" : "host",
							es);
		if (level->place == GPU_LEVEL_HOST)
			return;
		ExplainPropertyUInteger(psprintf("%s Groups", name), NULL,
								map->groups, es);
		ExplainPropertyUInteger(psprintf("%s Slots", name), NULL,
								map->capacity_slots, es);
		ExplainPropertyUInteger(psprintf("%s Memory", name), "B",
								map->peak_bytes, es);
		return;
	}
	indent(es);
	if (level->place == GPU_LEVEL_HOST)
		appendStringInfo(es->str, "%s: host\n", name);
	else
		appendStringInfo(es->str, "%s: " UINT64_FORMAT " groups, " UINT64_FORMAT " slots, load %.2f, %.1f MB\n",
						 name, map->groups, map->capacity_slots,
						 (double) map->groups / Max(map->capacity_slots, 1),
						 megabytes(map->peak_bytes));
}

/*
 * How long the device uploaded, computed and extracted, for all levels that it made, and for
 * the build sides of joins.
 */
typedef struct DeviceTimes
{
	double		upload_ms;
	double		kernel_ms;
	double		extract_ms;
} DeviceTimes;

static DeviceTimes
device_times(const GpuNodeStats *stats)
{
	DeviceTimes sum = {0};

	for (int i = 0; i < lengthof(stats->levels); i++)
	{
		const rhh_map_stats *map = &stats->levels[i].map;

		sum.upload_ms += map->upload_ns / 1.0e6;
		sum.kernel_ms += map->kernel_ns / 1.0e6;
		sum.extract_ms += map->extract_ns / 1.0e6;
	}
	for (int j = 0; j < stats->n_joins && stats->joins_done; j++)
	{
		sum.upload_ms += stats->joins[j].upload_ns / 1.0e6;
		sum.kernel_ms += stats->joins[j].kernel_ns / 1.0e6;
	}
	return sum;
}

/* Ends a line that says what was fed. */
static void
show_participants(ExplainState *es, const GpuNodeStats *stats)
{
	double		n = rint(participants(&stats->counts));

	if (stats->parallel)
		appendStringInfo(es->str, ", %.0f %s", n,
						 n == 1 ? "participant" : "participants");
	appendStringInfoChar(es->str, '\n');
}

/* Why pages came back, in the text format and in the others. */
static const struct
{
	const char *text;
	const char *label;			/* behind "Device Pages" and "Build Pages" */
}			back_reasons[N_BACK_REASONS] = {
	[BACK_VALUES] = {"values", "Back for Values"},
	[BACK_NOT_FOUND] = {"rows not found", "Back with Rows Not Found"},
	[BACK_REFUSED] = {"rows refused", "Back with Rows Refused"},
	[BACK_UNREAD] = {"not read", "Back Not Read"},
};

static uint64
pages_back(const PageCounts *pages)
{
	uint64		n = 0;

	for (int r = 0; r < N_BACK_REASONS; r++)
		n += pages->back[r];
	return n;
}

/* Says behind a number of pages how many of them were read from the cache, and how many came back, and why. */
static void
show_page_counts(ExplainState *es, const PageCounts *pages)
{
	const char *before = " (";

	if (pages->cached > 0)
		appendStringInfo(es->str, ", " UINT64_FORMAT " cached", pages->cached);
	if (pages_back(pages) == 0)
		return;
	appendStringInfo(es->str, ", " UINT64_FORMAT " sent back", pages_back(pages));
	for (int r = 0; r < N_BACK_REASONS; r++)
	{
		if (pages->back[r] == 0)
			continue;
		appendStringInfo(es->str, "%s%s: " UINT64_FORMAT, before, back_reasons[r].text, pages->back[r]);
		before = ", ";
	}
	appendStringInfoChar(es->str, ')');
}

/* Begins a line that says what was fed. */
static void
show_input(ExplainState *es, const GpuNodeCounts *counts)
{
	indent(es);
	appendStringInfo(es->str, "Input: " UINT64_FORMAT " rows, " UINT64_FORMAT " %s, %.1f MB",
					 counts->rows_fed, counts->batches,
					 counts->batches == 1 ? "batch" : "batches",
					 megabytes(counts->bytes_fed));
	if (counts->pages.all > 0)
		appendStringInfo(es->str, ", " UINT64_FORMAT " pages", counts->pages.all);
	show_page_counts(es, &counts->pages);
}

/* The same of a side's pages, in other formats: "Device" or "Build". */
static void
explain_pages(ExplainState *es, const char *side, const PageCounts *pages)
{
	if (pages->all == 0)
		return;
	ExplainPropertyUInteger(psprintf("%s Pages", side), NULL, pages->all, es);
	ExplainPropertyUInteger(psprintf("%s Pages Cached", side), NULL, pages->cached, es);
	ExplainPropertyUInteger(psprintf("%s Pages Sent Back", side), NULL, pages_back(pages), es);
	for (int r = 0; r < N_BACK_REASONS; r++)
		ExplainPropertyUInteger(psprintf("%s Pages %s", side, back_reasons[r].label), NULL, pages->back[r], es);
}

static void
explain_run_text(ExplainState *es, const GpuNodeStats *stats)
{
	const GpuNodeCounts *counts = &stats->counts;
	const rhh_map_stats *map = &stats->levels[0].map;
	DeviceTimes times = device_times(stats);

	if (stats->feed_groups)
	{
		indent(es);
		appendStringInfo(es->str, "Input: " UINT64_FORMAT " groups", counts->rows_fed);
	}
	else
		show_input(es, counts);
	show_participants(es, stats);
	if (map->capacity_slots > 0)
	{
		indent(es);
		appendStringInfo(es->str, "Table: " UINT64_FORMAT " groups, " UINT64_FORMAT " slots, load %.2f, %.1f MB\n",
						 map->groups, map->capacity_slots,
						 (double) map->groups / map->capacity_slots,
						 megabytes(map->peak_bytes));
		indent(es);
		appendStringInfo(es->str, "Probe Length: %.2f average, %u longest\n",
						 map->groups > 0 ?
						 (double) map->probe_buckets_sum / map->groups : 0.0,
						 map->probe_buckets_max);
		indent(es);
		appendStringInfo(es->str, "Failed Slots: " UINT64_FORMAT "  Rehashes: " UINT64_FORMAT "\n",
						 map->failed_slots, map->rehashes);
	}
	show_level(es, "Second Level", &stats->levels[1]);
	show_level(es, "Third Level", &stats->levels[2]);
	indent(es);
	appendStringInfo(es->str, "Host Rows: " UINT64_FORMAT, counts->host_rows);
	if (counts->host_spilled > 0)
		appendStringInfo(es->str, "  Spilled Records: " UINT64_FORMAT,
						 counts->host_spilled);
	if (counts->late_batches > 0)
		appendStringInfo(es->str, "  Late Batches: " UINT64_FORMAT " (no block of the pool became free)",
						 counts->late_batches);
	appendStringInfoChar(es->str, '\n');
	if (counts->dictionary_strings > 0)
	{
		indent(es);
		appendStringInfo(es->str, "Dictionary: " UINT64_FORMAT " strings, " UINT64_FORMAT " kB",
						 counts->dictionary_strings,
						 (counts->dictionary_bytes + 1023) / 1024);
		if (counts->passes > 0)
			appendStringInfo(es->str, "  Deferred Rows: " UINT64_FORMAT "  Passes: " UINT64_FORMAT,
							 counts->deferred_rows, counts->passes);
		appendStringInfoChar(es->str, '\n');
	}
	if (counts->odd_values > 0)
	{
		indent(es);
		appendStringInfo(es->str, "Nonconforming Values: " UINT64_FORMAT, counts->odd_values);
		if (counts->odd_compared > 0)
			appendStringInfo(es->str, "  Values Compared: " UINT64_FORMAT,
							 counts->odd_compared);
		appendStringInfo(es->str, "  Memory: " UINT64_FORMAT " kB\n",
						 (counts->odd_bytes + 1023) / 1024);
	}
	if (es->summary)
	{
		indent(es);
		appendStringInfo(es->str, "Feed Time: %.3f ms  Pool Wait: %.3f ms  Emit Time: %.3f ms\n",
						 counts->feed_ms / participants(counts),
						 counts->pool_wait_ms / participants(counts),
						 (counts->fetch_ms + counts->form_ms) / participants(counts));
		indent(es);
		appendStringInfo(es->str, "Upload Time: %.3f ms  Kernel Time: %.3f ms  Extract Time: %.3f ms\n",
						 times.upload_ms, times.kernel_ms, times.extract_ms);
	}
}

static void
explain_run_properties(ExplainState *es, const GpuNodeStats *stats)
{
	const GpuNodeCounts *counts = &stats->counts;
	const rhh_map_stats *map = &stats->levels[0].map;
	DeviceTimes times = device_times(stats);

	ExplainPropertyUInteger("Rows Fed", NULL, counts->rows_fed, es);
	ExplainPropertyUInteger("Batches", NULL, counts->batches, es);
	ExplainPropertyUInteger("Bytes Fed", NULL, counts->bytes_fed, es);
	explain_pages(es, "Device", &counts->pages);
	ExplainPropertyFloat("Participants", NULL, rint(participants(counts)), 0,
						 es);
	ExplainPropertyUInteger("Bytes Uploaded", NULL, map->uploaded_bytes, es);
	ExplainPropertyUInteger("Groups", NULL, map->groups, es);
	ExplainPropertyUInteger("Slots", NULL, map->capacity_slots, es);
	ExplainPropertyFloat("Load", NULL,
						 map->capacity_slots > 0 ?
						 (double) map->groups / map->capacity_slots : 0.0,
						 4, es);
	ExplainPropertyUInteger("Device Memory", "B", map->peak_bytes, es);
	ExplainPropertyFloat("Average Probe Length", NULL,
						 map->groups > 0 ?
						 (double) map->probe_buckets_sum / map->groups : 0.0,
						 4, es);
	ExplainPropertyUInteger("Longest Probe Length", NULL,
							map->probe_buckets_max, es);
	ExplainPropertyUInteger("Failed Slots", NULL, map->failed_slots, es);
	ExplainPropertyUInteger("Rehashes", NULL, map->rehashes, es);
	ExplainPropertyUInteger("Merged Duplicates", NULL,
							map->merged_duplicates, es);
	show_level(es, "Second Level", &stats->levels[1]);
	show_level(es, "Third Level", &stats->levels[2]);
	ExplainPropertyUInteger("Host Rows", NULL, counts->host_rows, es);
	ExplainPropertyUInteger("Spilled Records", NULL, counts->host_spilled, es);
	ExplainPropertyUInteger("Late Batches", NULL, counts->late_batches, es);
	if (stats->strings)
	{
		ExplainPropertyUInteger("Dictionary Strings", NULL,
								counts->dictionary_strings, es);
		ExplainPropertyUInteger("Dictionary Memory", "kB",
								(counts->dictionary_bytes + 1023) / 1024, es);
		ExplainPropertyUInteger("Deferred Rows", NULL, counts->deferred_rows,
								es);
		ExplainPropertyUInteger("Passes", NULL, counts->passes, es);
	}
	if (stats->numerics)
	{
		ExplainPropertyUInteger("Nonconforming Values", NULL,
								counts->odd_values, es);
		ExplainPropertyUInteger("Values Compared", NULL, counts->odd_compared,
								es);
		ExplainPropertyUInteger("Nonconforming Memory", "kB",
								(counts->odd_bytes + 1023) / 1024, es);
	}
	if (es->summary)
	{
		ExplainPropertyFloat("Feed Time", "ms",
							 counts->feed_ms / participants(counts), 3, es);
		ExplainPropertyFloat("Pool Wait Time", "ms",
							 counts->pool_wait_ms / participants(counts), 3, es);
		ExplainPropertyFloat("Emit Time", "ms",
							 (counts->fetch_ms + counts->form_ms) / participants(counts),
							 3, es);
		ExplainPropertyFloat("Upload Time", "ms", times.upload_ms, 3, es);
		ExplainPropertyFloat("Kernel Time", "ms", times.kernel_ms, 3, es);
		ExplainPropertyFloat("Extract Time", "ms", times.extract_ms, 3, es);
	}
}

/* Shows which joins have a filter of their build sides' keys, before they have run. */
static void
explain_key_filters(ExplainState *es, const GpuNodeStats *stats)
{
	List	   *joins = NIL;

	for (int j = 0; j < stats->n_joins; j++)
	{
		if (stats->key_filter[j])
			joins = lappend(joins, psprintf("Join %d", j + 1));
	}
	if (joins != NIL)
		ExplainPropertyList("Key Filter", joins, es);
}

/* Has a build side come in parts?  Then no join of a parallel plan has a filter. */
static bool
has_passes(const GpuNodeStats *stats)
{
	for (int j = 0; j < stats->n_joins; j++)
	{
		if (stats->joins[j].passes > 1)
			return true;
	}
	return false;
}

/* What became of a join's filter. */
static void
explain_key_filter(ExplainState *es, const GpuNodeStats *stats, int j)
{
	KeyFilterForm which = stats->counts.key_filters[j];
	const char *form = gpurhh_key_filter_text(which);
	uint64		removed = stats->counts.key_filtered[j];

	if (!stats->key_filter[j])
		form = "none";
	else if (which == KEY_FILTER_UNUSED && stats->counts.pages.all > 0)
		form = "not used (the device read the pages)";
	else if (which == KEY_FILTER_UNUSED && has_passes(stats))
		form = "not used (a build side came in parts)";

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyText("Key Filter", form, es);
		ExplainPropertyUInteger("Rows Removed by Key Filter", NULL, removed, es);
	}
	else if (stats->key_filter[j])
	{
		indent(es);
		appendStringInfo(es->str, "Key Filter: %s  Rows Removed by Key Filter: " UINT64_FORMAT "\n",
						 form, removed);
	}
}

/* The rows that came into a join: what the one before it made, or what a run was fed. */
static uint64
rows_into(const GpuNodeStats *stats, int j)
{
	return j > 0 ? stats->joins[j - 1].rows :
		stats->counts.rows_fed / Max(stats->counts.runs, 1);
}

static double
ratio(uint64 a, uint64 b)
{
	return (double) a / Max(b, 1);
}

/* Shows a join in the text format, and the map of its build side. */
static void
explain_join_text(ExplainState *es, const GpuNodeStats *stats, int j)
{
	const GpuNodeCounts *counts = &stats->counts;
	const GpuJoinStats *join = &stats->joins[j];

	indent(es);
	appendStringInfo(es->str, "Join %d: " UINT64_FORMAT " build rows, " UINT64_FORMAT " keys, %.1f MB, " UINT64_FORMAT " rows in, " UINT64_FORMAT " rows joined",
					 j + 1, join->build_rows, join->keys, megabytes(join->bytes),
					 rows_into(stats, j), join->rows);
	if (join->passes > 1)
		appendStringInfo(es->str, ", " UINT64_FORMAT " passes", join->passes);
	appendStringInfoChar(es->str, '\n');
	es->indent++;
	if (join->slots > 0)
	{
		indent(es);
		appendStringInfo(es->str, "Build Table: " UINT64_FORMAT " slots, load %.2f  Probe Length: %.2f average, " UINT64_FORMAT " longest\n",
						 join->slots, ratio(join->keys, join->slots * join->passes),
						 ratio(join->probe_sum, join->keys), join->probe_max);
	}
	if (counts->build_pages[j].all > 0)
	{
		indent(es);
		appendStringInfo(es->str, "Build Pages: " UINT64_FORMAT, counts->build_pages[j].all);
		show_page_counts(es, &counts->build_pages[j]);
		appendStringInfoChar(es->str, '\n');
	}
	explain_key_filter(es, stats, j);
	if (es->summary)
	{
		indent(es);
		appendStringInfo(es->str, "Build Time: %.3f ms  Build Kernel Time: %.3f ms\n",
						 counts->build_ms[j] / participants(counts), join->kernel_ns / 1.0e6);
	}
	es->indent--;
}

/* The same in the other formats. */
static void
explain_join_properties(ExplainState *es, const GpuNodeStats *stats, int j)
{
	const GpuNodeCounts *counts = &stats->counts;
	const GpuJoinStats *join = &stats->joins[j];

	ExplainOpenGroup("Join", NULL, true, es);
	ExplainPropertyUInteger("Build Rows", NULL, join->build_rows, es);
	ExplainPropertyUInteger("Build Batches", NULL, counts->build_batches[j], es);
	ExplainPropertyUInteger("Build Bytes Fed", NULL, counts->build_bytes[j], es);
	explain_pages(es, "Build", &counts->build_pages[j]);
	ExplainPropertyUInteger("Build Keys", NULL, join->keys, es);
	ExplainPropertyUInteger("Build Slots", NULL, join->slots, es);
	ExplainPropertyFloat("Build Load", NULL, ratio(join->keys, join->slots * join->passes), 4, es);
	ExplainPropertyFloat("Average Build Probe Length", NULL, ratio(join->probe_sum, join->keys), 4,
						 es);
	ExplainPropertyUInteger("Longest Build Probe Length", NULL, join->probe_max, es);
	ExplainPropertyUInteger("Build Memory", "B", join->bytes, es);
	ExplainPropertyUInteger("Rows In", NULL, rows_into(stats, j), es);
	ExplainPropertyUInteger("Rows Joined", NULL, join->rows, es);
	ExplainPropertyUInteger("Passes", NULL, join->passes, es);
	explain_key_filter(es, stats, j);
	if (es->summary)
	{
		ExplainPropertyFloat("Build Time", "ms", counts->build_ms[j] / participants(counts), 3, es);
		ExplainPropertyFloat("Build Upload Time", "ms", join->upload_ns / 1.0e6, 3, es);
		ExplainPropertyFloat("Build Kernel Time", "ms", join->kernel_ns / 1.0e6, 3, es);
	}
	ExplainCloseGroup("Join", NULL, true, es);
}

/* Shows whether the device does the joins below, and what came of each of them. */
static void
explain_joins(ExplainState *es, const GpuNodeStats *stats)
{
	const GpuNodeCounts *counts = &stats->counts;
	bool		done = !es->analyze || !stats->valid || stats->joins_done;
	bool		some_declined = es->analyze && stats->valid && counts->declined > 0;
	uint64		filtered = stats->levels[0].map.filtered_rows;

	if (stats->n_joins == 0)
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		indent(es);
		if (done && some_declined)
			appendStringInfo(es->str, "Device Joins: %d (not in " UINT64_FORMAT " of " UINT64_FORMAT " runs: %s)\n",
							 stats->n_joins, counts->declined, counts->feeders,
							 stats->joins_why);
		else if (done)
			appendStringInfo(es->str, "Device Joins: %d\n", stats->n_joins);
		else
			appendStringInfo(es->str, "Device Joins: 0 (%s)\n",
							 stats->joins_why ? stats->joins_why : "no participant read rows");
		if (es->analyze && counts->rests > 0)
		{
			indent(es);
			appendStringInfo(es->str, "Rest Joined by PostgreSQL: in " UINT64_FORMAT " of " UINT64_FORMAT " runs (%s)\n",
							 counts->rests, counts->feeders, stats->rest_why);
		}
	}
	else
	{
		ExplainPropertyInteger("Device Joins", NULL, done ? stats->n_joins : 0, es);
		if ((!done || some_declined) && stats->joins_why != NULL)
			ExplainPropertyText("Device Joins Declined", stats->joins_why, es);
		if (es->analyze && counts->rests > 0)
			ExplainPropertyText("Rest Joined by PostgreSQL", stats->rest_why, es);
	}
	if (!es->analyze || !stats->valid)
		explain_key_filters(es, stats);
	if (!es->analyze || !stats->valid || !stats->joins_done)
		return;
	if (es->format != EXPLAIN_FORMAT_TEXT)
		ExplainOpenGroup("Joins", "Joins", false, es);
	for (int j = 0; j < stats->n_joins; j++)
	{
		if (es->format == EXPLAIN_FORMAT_TEXT)
			explain_join_text(es, stats, j);
		else
			explain_join_properties(es, stats, j);
	}
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainCloseGroup("Joins", "Joins", false, es);
		ExplainPropertyUInteger("Rows Removed by Join Filter", NULL, filtered, es);
		ExplainPropertyUInteger("Rows Left to the Host", NULL, stats->counts.left_over,
								es);
		ExplainPropertyUInteger("Joined Rows on Disk", "kB",
								(stats->counts.output_bytes + 1023) / 1024, es);
	}
	else
	{
		if (filtered > 0)
		{
			indent(es);
			appendStringInfo(es->str, "Rows Removed by Join Filter: " UINT64_FORMAT "\n", filtered);
		}
		if (stats->counts.left_over > 0)
		{
			indent(es);
			appendStringInfo(es->str, "Rows Left to the Host: " UINT64_FORMAT "\n",
							 stats->counts.left_over);
		}
		if (stats->counts.output_bytes > 0)
		{
			indent(es);
			appendStringInfo(es->str, "Joined Rows on Disk: " UINT64_FORMAT " kB\n",
							 (stats->counts.output_bytes + 1023) / 1024);
		}
	}
}

/* Shows whether the child's pages are read, or its rows, and why. */
static void
explain_feed(ExplainState *es, const GpuNodeStats *stats)
{
	const char *feed = stats->feed_groups ? "groups" :
		!stats->feed_rows ? "pages" :
		stats->feed_pages ? "pages and rows" : "rows";
	bool		say_why = es->verbose && stats->feed_rows && !stats->feed_groups &&
		stats->feed_why != NULL;

	if (say_why && es->format == EXPLAIN_FORMAT_TEXT)
	{
		indent(es);
		appendStringInfo(es->str, "Feed: %s (%s)\n", feed, stats->feed_why);
		return;
	}
	ExplainPropertyText("Feed", feed, es);
	if (say_why)
		ExplainPropertyText("Feed Reason", stats->feed_why, es);
}

/* Shows which device it is, and once it has run, why it is not the one asked for. */
static void
explain_device(ExplainState *es, const GpuNodeStats *stats)
{
	const GpuLevelStats *level = &stats->levels[0];

	if (!es->analyze || !stats->valid)
		ExplainPropertyText("Device", gpurhh_device, es);
	else if (level->declined[0] == '\0')
		ExplainPropertyText("Device", level->device, es);
	else if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		indent(es);
		appendStringInfo(es->str, "Device: %s (%s)\n", level->device, level->declined);
	}
	else
	{
		ExplainPropertyText("Device", level->device, es);
		ExplainPropertyText("Device Declined", level->declined, es);
	}
}

/* The texts of GROUPING SETS, such as "(a, b)", "(a)" and "()". */
static List *
sets_text(List *sets, List *keys)
{
	List	   *result = NIL;
	ListCell   *lc,
			   *lc_key;

	foreach(lc, sets)
	{
		StringInfoData text;

		initStringInfo(&text);
		foreach(lc_key, (List *) lfirst(lc))
			appendStringInfo(&text, "%s%s",
							 foreach_current_index(lc_key) > 0 ? ", " : "",
							 (char *) list_nth(keys, lfirst_int(lc_key)));
		result = lappend(result, psprintf("(%s)", text.data));
	}
	return result;
}

/*
 * Shows the node's keys and aggregates, and what it did if it has run.  The groups that
 * are counted are those in the device's maps; the result has those of the host, too.
 */
void
gpurhh_explain_agg(CustomScanState *node, List *ancestors, ExplainState *es,
				   const GpuNodeStats *stats)
{
	const GpuAggPlan *plan = gpurhh_plan_of((CustomScan *) node->ss.ps.plan);
	int			n_keys = plan->n_shown_keys;
	List	   *keys = deparse_range(node, ancestors, es, n_keys, false);
	List	   *aggregates = deparse_range(node, ancestors, es, n_keys, true);

	if (keys != NIL)
		ExplainPropertyList("Group Key", keys, es);
	if (list_length(plan->sets) > 1)
		ExplainPropertyList("Grouping Sets", sets_text(plan->sets, keys), es);
	if (aggregates != NIL)
		ExplainPropertyList("Aggregates", aggregates, es);
	explain_joins(es, stats);
	explain_feed(es, stats);
	explain_device(es, stats);
	if (!es->analyze || !stats->valid)
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
		explain_run_text(es, stats);
	else
		explain_run_properties(es, stats);
}

/*
 * Shows what GpuHashJoin did, if it has run.  In a parallel plan it is what all participants
 * did that were at their end before the leader was; times are averages.
 */
void
gpurhh_explain_join(ExplainState *es, const GpuNodeStats *stats)
{
	const GpuNodeCounts *counts = &stats->counts;
	DeviceTimes times = device_times(stats);
	double		n = participants(counts);

	explain_joins(es, stats);
	explain_feed(es, stats);
	if (es->analyze && stats->valid && stats->kept)
		ExplainPropertyText("Rows", "kept on the device for the node above", es);
	if (!es->analyze || !stats->valid || stats->joins_done)
		explain_device(es, stats);
	if (!es->analyze || !stats->valid || !stats->joins_done)
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		show_input(es, counts);
		show_participants(es, stats);
		if (es->summary)
		{
			indent(es);
			appendStringInfo(es->str, "Feed Time: %.3f ms  Pool Wait: %.3f ms  Fetch Time: %.3f ms\n",
							 counts->feed_ms / n, counts->pool_wait_ms / n, counts->fetch_ms / n);
			indent(es);
			appendStringInfo(es->str, "Upload Time: %.3f ms  Kernel Time: %.3f ms\n",
							 times.upload_ms, times.kernel_ms);
		}
		return;
	}
	ExplainPropertyUInteger("Rows Fed", NULL, counts->rows_fed, es);
	ExplainPropertyUInteger("Batches", NULL, counts->batches, es);
	ExplainPropertyUInteger("Bytes Fed", NULL, counts->bytes_fed, es);
	explain_pages(es, "Device", &counts->pages);
	ExplainPropertyFloat("Participants", NULL, rint(n), 0, es);
	if (es->summary)
	{
		ExplainPropertyFloat("Feed Time", "ms", counts->feed_ms / n, 3, es);
		ExplainPropertyFloat("Pool Wait Time", "ms", counts->pool_wait_ms / n, 3, es);
		ExplainPropertyFloat("Fetch Time", "ms", counts->fetch_ms / n, 3, es);
		ExplainPropertyFloat("Upload Time", "ms", times.upload_ms, 3, es);
		ExplainPropertyFloat("Kernel Time", "ms", times.kernel_ms, 3, es);
	}
}
