/*-------------------------------------------------------------------------
 *
 * guc.c
 *		Every setting.  docs/settings.md says the same in prose, and a test
 *		compares the two.
 *
 * A switch of the planner has two names.  The short one, like core's, is known
 * only where the library has been loaded, which is too late for the server's
 * files and for what a role, a database or a client sets at the start of a
 * session.  The one with a prefix is kept by PostgreSQL until the library has
 * been loaded, so it can be set everywhere.
 *
 * Both names stand for one switch, and PostgreSQL's rule for one variable
 * decides between them: what is set nearer to the session counts (SET before
 * PGOPTIONS, that before a role's, a database's and the files' settings), and of
 * two set in the same place the later one.  Core keeps each name's value, and
 * with it our note of where and when that was set; it brings back both together
 * when a transaction, a SET LOCAL or a function with a SET clause ends.  So the
 * switch needs no memory of its own: it follows from the two current values
 * and notes.  SHOW tells the switch, under either name.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "access/parallel.h"
#include "utils/guc.h"

#include "channel/area.h"
#include "compat.h"
#include "settings.h"

/* What a name of a switch was last set to, where and when. */
typedef struct NamedSetting
{
	bool		value;
	GucSource	source;
	uint64		serial;			/* grows with time; 0: unknown */
} NamedSetting;

typedef struct Switch
{
	bool	   *on;
	NamedSetting prefixed;
	NamedSetting short_name;
} Switch;

bool		enable_gpu_hashagg = false;
bool		enable_gpu_hashjoin = false;
static Switch hashagg = {&enable_gpu_hashagg};
static Switch hashjoin = {&enable_gpu_hashjoin};

/* Core's storage for the values of the names. */
static bool prefixed_hashagg = false;
static bool short_hashagg = false;
static bool prefixed_hashjoin = false;
static bool short_hashjoin = false;

bool		gpurhh_enable_eager_aggregate = true;
bool		gpurhh_enable_key_filter = true;
char	   *gpurhh_device = NULL;
int			gpurhh_device_memory_mb = 0;
int			gpurhh_pool_size_kb = 32 * 1024;
int			gpurhh_batch_rows = 65536;
double		gpurhh_load_factor = 0.8;
int			gpurhh_max_probe_buckets = 8;
int			gpurhh_cpu_threads = 0;
int			gpurhh_service_idle_timeout_s = 60;
int			gpurhh_service_start = SWITCH_AUTO;
int			gpurhh_read_pages = SWITCH_AUTO;
int			gpurhh_cache_size_mb = -1;
int			gpurhh_partial_copies = SWITCH_AUTO;
double		gpurhh_setup_cost = 1000.0;
double		gpurhh_row_cost = 0.005;
double		gpurhh_group_cost = 0.015;

/* ---------- switches of the planner ---------- */

/* Makes the note that goes with a new value. */
static bool
note_setting(bool value, void **extra, GucSource source)
{
	static uint64 last_serial = 0;
	NamedSetting *note = gpurhh_guc_malloc(sizeof(NamedSetting));

	if (note == NULL)
		return false;
	note->value = value;
	note->source = source;
	/* a parallel worker is told the values and where they were set, not when */
	note->serial = InitializingParallelWorker ? 0 : ++last_serial;
	*extra = note;
	return true;
}

static bool
check_prefixed(bool *newval, void **extra, GucSource source)
{
	return note_setting(*newval, extra, source);
}

/* In a file, where the server would fail to start, the short name is refused. */
static bool
check_short(bool *newval, void **extra, GucSource source,
			const char *short_name, const char *prefixed)
{
	if (source == PGC_S_FILE)
	{
		GUC_check_errcode(ERRCODE_CANT_CHANGE_RUNTIME_PARAM);
		GUC_check_errmsg("parameter \"%s\" cannot be set in configuration files",
						 short_name);
		GUC_check_errdetail("The server reads its files before it loads libraries, and does not start with a name in them that it does not know and that has no prefix.");
		GUC_check_errhint("Set %s instead.", prefixed);
		return false;
	}
	return note_setting(*newval, extra, source);
}

static void
decide(Switch *s)
{
	const NamedSetting *a = &s->prefixed;
	const NamedSetting *b = &s->short_name;

	if (a->source != b->source)
		*s->on = a->source > b->source ? a->value : b->value;
	else if (a->serial != b->serial)
		*s->on = a->serial > b->serial ? a->value : b->value;
	else
		*s->on = a->value && b->value;	/* where in doubt, core's way */
}

/* ---------- the names of each switch ---------- */

static bool
check_enable_gpu_hashagg(bool *newval, void **extra, GucSource source)
{
	return check_short(newval, extra, source, "enable_gpu_hashagg",
					   "gpurhh.enable_hashagg");
}

static void
assign_prefixed_hashagg(bool newval, void *extra)
{
	hashagg.prefixed = *(NamedSetting *) extra;
	decide(&hashagg);
}

static void
assign_short_hashagg(bool newval, void *extra)
{
	hashagg.short_name = *(NamedSetting *) extra;
	decide(&hashagg);
}

static const char *
show_hashagg(void)
{
	return enable_gpu_hashagg ? "on" : "off";
}

static bool
check_enable_gpu_hashjoin(bool *newval, void **extra, GucSource source)
{
	return check_short(newval, extra, source, "enable_gpu_hashjoin",
					   "gpurhh.enable_hashjoin");
}

static void
assign_prefixed_hashjoin(bool newval, void *extra)
{
	hashjoin.prefixed = *(NamedSetting *) extra;
	decide(&hashjoin);
}

static void
assign_short_hashjoin(bool newval, void *extra)
{
	hashjoin.short_name = *(NamedSetting *) extra;
	decide(&hashjoin);
}

static const char *
show_hashjoin(void)
{
	return enable_gpu_hashjoin ? "on" : "off";
}

/* ---------- other settings ---------- */

/* As of a boolean, and "auto". */
static const struct config_enum_entry auto_switch_options[] = {
	{"auto", SWITCH_AUTO, false},
	{"on", SWITCH_ON, false},
	{"off", SWITCH_OFF, false},
	{"true", SWITCH_ON, true},
	{"false", SWITCH_OFF, true},
	{"yes", SWITCH_ON, true},
	{"no", SWITCH_OFF, true},
	{"1", SWITCH_ON, true},
	{"0", SWITCH_OFF, true},
	{NULL, 0, false}
};

/* "auto", "cpu", "cuda" or "cuda:N", in any case of letters */
static bool
check_device(char **newval, void **extra, GucSource source)
{
	char	   *name = *newval;

	for (char *c = name; *c != '\0'; c++)
		*c = pg_ascii_tolower((unsigned char) *c);
	if (strcmp(name, "auto") == 0 || strcmp(name, "cpu") == 0 ||
		strcmp(name, "cuda") == 0)
		return true;
	if (strncmp(name, "cuda:", 5) == 0)
	{
		size_t		digits = strspn(name + 5, "0123456789");

		if (digits > 0 && digits <= 3 && name[5 + digits] == '\0' &&
			(name[5] != '0' || digits == 1))
			return true;
	}
	GUC_check_errdetail("Valid values are \"auto\", \"cpu\", \"cuda\" and \"cuda:N\", where N is a device number.");
	return false;
}

/*
 * A session without preload makes its pool once, and then cannot have another.
 * Core does not ask here when RESET or a transaction's end brings a value back.
 */
static bool
check_pool_size(int *newval, void **extra, GucSource source)
{
	int			made_kb = gpurhh_private_pool_kb();

	if (source != PGC_S_SESSION || made_kb == 0 || made_kb == *newval)
		return true;
	GUC_check_errcode(ERRCODE_CANT_CHANGE_RUNTIME_PARAM);
	GUC_check_errmsg("parameter \"gpurhh.pool_size\" cannot be changed now");
	GUC_check_errdetail("The session has used a device and has its pool already.");
	GUC_check_errhint("Set it in a new session, before the first query that uses a device.");
	return false;
}

/*
 * What a session sets for itself may cost it much, and others little: what takes
 * of what all share, memory in /dev/shm and threads, is for superusers.
 */
void
gpurhh_init_guc(void)
{
	/* with preload the pool is made once, when the server starts */
	GucContext	pool_context = process_shared_preload_libraries_in_progress ?
		PGC_POSTMASTER : PGC_SUSET;
	GucContext	cache_context = process_shared_preload_libraries_in_progress ?
		PGC_POSTMASTER : PGC_SIGHUP;

	DefineCustomBoolVariable("enable_gpu_hashagg",
							 "Enables the planner's use of GpuHashAgg plans.",
							 "The short name of gpurhh.enable_hashagg, for sessions.",
							 &short_hashagg, false,
							 PGC_USERSET, GUC_EXPLAIN,
							 check_enable_gpu_hashagg, assign_short_hashagg,
							 show_hashagg);

	DefineCustomBoolVariable("gpurhh.enable_hashagg",
							 "Enables the planner's use of GpuHashAgg plans.",
							 NULL,
							 &prefixed_hashagg, false,
							 PGC_USERSET, GUC_EXPLAIN,
							 check_prefixed, assign_prefixed_hashagg,
							 show_hashagg);

	DefineCustomBoolVariable("enable_gpu_hashjoin",
							 "Enables the planner's use of joins on the device.",
							 "The short name of gpurhh.enable_hashjoin, for sessions.",
							 &short_hashjoin, false,
							 PGC_USERSET, GUC_EXPLAIN,
							 check_enable_gpu_hashjoin, assign_short_hashjoin,
							 show_hashjoin);

	DefineCustomBoolVariable("gpurhh.enable_hashjoin",
							 "Enables the planner's use of joins on the device.",
							 NULL,
							 &prefixed_hashjoin, false,
							 PGC_USERSET, GUC_EXPLAIN,
							 check_prefixed, assign_prefixed_hashjoin,
							 show_hashjoin);

	DefineCustomBoolVariable("gpurhh.enable_eager_aggregate",
							 "Enables the planner to group a table before it is joined.",
							 "It needs gpurhh.enable_hashagg and gpurhh.enable_hashjoin.",
							 &gpurhh_enable_eager_aggregate, true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomStringVariable("gpurhh.device",
							   "Chooses the device that groups rows.",
							   "\"auto\" is the first usable GPU, or the CPU device where there is none.",
							   &gpurhh_device, "auto",
							   PGC_USERSET, GUC_EXPLAIN,
							   check_device, NULL, NULL);

	DefineCustomIntVariable("gpurhh.device_memory",
							"Limits the device memory of a query, and of a device service.",
							"A service takes its limit from the configuration files, or a private one from its session. Zero leaves the choice to the device.",
							&gpurhh_device_memory_mb, 0, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MB | GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpurhh.pool_size",
							"Sets the memory for batches between sessions and the device service.",
							"Read when the server starts with the library preloaded, otherwise when a session first uses a device.",
							&gpurhh_pool_size_kb, 32 * 1024, 256, 2 * 1024 * 1024,
							pool_context, GUC_UNIT_KB | GUC_EXPLAIN,
							check_pool_size, NULL, NULL);

	DefineCustomIntVariable("gpurhh.batch_rows",
							"Sets the most rows that a batch holds.",
							"A batch also has to fit a block of the pool.",
							&gpurhh_batch_rows, 65536, 64, 1024 * 1024,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomRealVariable("gpurhh.load_factor",
							 "Sets how full a device's hash table may get before it grows.",
							 NULL,
							 &gpurhh_load_factor, 0.8, 0.5, 0.95,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	/*
	 * The device works for all sessions: how long it may be busy with one row is
	 * bounded, whoever asks.
	 */
	DefineCustomIntVariable("gpurhh.max_probe_buckets",
							"Sets how many buckets a row's probe may visit before the device refuses it.",
							NULL,
							&gpurhh_max_probe_buckets, 8, 1, 64,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpurhh.cpu_threads",
							"Sets how many threads the CPU device uses.",
							"Read when the device is opened. Zero is one for each processor that the server may use.",
							&gpurhh_cpu_threads, 0, 0, 256,
							PGC_SUSET, GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpurhh.service_idle_timeout",
							"Sets how long a device service with nothing to do keeps running.",
							"Zero keeps it running, and so does gpurhh.service_start.",
							&gpurhh_service_idle_timeout_s, 60, 0, INT_MAX / 1000,
							PGC_USERSET, GUC_UNIT_S,
							NULL, NULL, NULL);

	DefineCustomEnumVariable("gpurhh.service_start",
							 "Starts the shared device service with the server, and keeps it running.",
							 "\"auto\" does where there is a GPU that gpurhh.device allows.",
							 &gpurhh_service_start, SWITCH_AUTO,
							 auto_switch_options,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);

	DefineCustomBoolVariable("gpurhh.enable_key_filter",
							 "Enables filters of the keys of joins' build sides.",
							 "Rows of the probe side that cannot have a match are dropped where they are read.",
							 &gpurhh_enable_key_filter, true,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("gpurhh.read_pages",
							 "Lets devices read pages of tables in shared buffers by themselves.",
							 "\"auto\" lets GPUs. It needs gpurhh in shared_preload_libraries.",
							 &gpurhh_read_pages, SWITCH_AUTO,
							 auto_switch_options,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("gpurhh.partial_copies",
							 "Lets devices keep copies of pages that have the first columns alone.",
							 "\"auto\" lets GPUs where rows are so wide that this takes less time.",
							 &gpurhh_partial_copies, SWITCH_AUTO,
							 auto_switch_options,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("gpurhh.cache_size",
							"Limits the device memory that has copies of tables' pages.",
							"-1 is half of a GPU's memory, and nothing on the CPU device; zero keeps none. It needs gpurhh in shared_preload_libraries.",
							&gpurhh_cache_size_mb, -1, -1, 512 * 1024,
							cache_context, GUC_UNIT_MB | GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomRealVariable("gpurhh.setup_cost",
							 "Sets the planner's estimate of the cost of starting to use a device.",
							 NULL,
							 &gpurhh_setup_cost, 1000.0, 0.0, 1.0e10,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomRealVariable("gpurhh.row_cost",
							 "Sets the planner's estimate of the cost of feeding a row to a device.",
							 NULL,
							 &gpurhh_row_cost, 0.005, 0.0, 1.0e10,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomRealVariable("gpurhh.group_cost",
							 "Sets the planner's estimate of the cost of returning a group from a device.",
							 NULL,
							 &gpurhh_group_cost, 0.015, 0.0, 1.0e10,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	MarkGUCPrefixReserved("gpurhh");
}
