/*-------------------------------------------------------------------------
 *
 * heap_state.h
 *		What heap_feed.c has of a scan, and page_layout.c looks at.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_SCAN_HEAP_STATE_H
#define GPURHH_SCAN_HEAP_STATE_H

#include "scan/scan.h"

/* An attribute of the table, up to the last needed one. */
typedef struct HeapAttribute
{
	int16		length;
	char		align;			/* typalign */
	int			offset;			/* in a tuple without NULLs; -1: it depends.
								 * The first of no fixed width is there, or
								 * at the next multiple of its alignment */
	int			first_load;		/* in the set; -1: not needed */
	bool		missing_null;	/* what it is in tuples that are too short */
	Datum		missing;
	bool		by_value;
} HeapAttribute;

/* One attribute to be loaded into one place. */
typedef struct HeapLoad
{
	int			attribute;		/* from 0 */
	int			bytes;			/* 0: only whether it is NULL */
	GpuDerivation string;		/* to be made its key; DERIVED_NOT: it is none */
	int			parameter;		/* of that, see GpuColumn */
	bool		pointer;		/* to where it is in the page, for expressions */
	int			scale;			/* >= 0: a numeric, loaded as an integer */
	int			next;			/* load of the same attribute; -1: none */
	char	   *to;
	uint8	   *nulls;			/* a byte for each row */
	bool		any_null;
} HeapLoad;

/* What is loaded together. */
typedef struct LoadSet
{
	int			n_loads;
	HeapLoad   *loads;
	int			n_attributes;	/* up to the last needed one */
	HeapAttribute *attributes;
	int			first_varying;	/* of the attributes, the first after which
								 * offsets depend; n_attributes: none */
	StringEncoder *strings;
	Vector	   *vectors;		/* of the loads, for expressions */
	bool		odd;			/* a numeric that was loaded has not its scale */
} LoadSet;

/* Where a fed column comes from. */
typedef struct HeapColumn
{
	GpuEncoding encoding;
	const GpuEncodingInfo *info;	/* the row of the encoding */
	int			load;			/* from this one, if >= 0: straight, */
	bool		encode;			/* or by gpurhh_encode_reference(), */
	bool		hash;			/* or by gpurhh_key_filter_string() */
	VectorExpr *expr;
	int			attribute;		/* of the table, from 0, that it is; -1: it is none */
	int			scale;			/* it is that numeric, of this scale; -1: it is none */
	bool		computed;		/* it is more than a column of the table */
	bool		is_constant;	/* it is this integer: */
	int			constant;
	int			limb_of;		/* the column whose result it is a limb of */
	int			n_limbs;		/* of several: those above are 0 in all rows of its result */
	bool		later;			/* not from here */
	Vector		result;
} HeapColumn;

/* Columns that are made of rows together. */
typedef struct HeapColumns
{
	int			n;
	HeapColumn *columns;
	LoadSet		set;
} HeapColumns;

struct HeapFeed
{
	SeqScanState *scan;
	TableScanDesc plan_scan;	/* that of a parallel plan, while another one gives out the pages; or NULL */
	ResultState *above;			/* computes columns of the scan's; or NULL */
	List	   *exprs;			/* what the columns are made of, and ... */
	const GpuColumn *given;		/* ... how */
	int			max_rows;		/* of a page */

	int			n_quals;
	VectorExpr **quals;
	LoadSet		filter_set;

	HeapColumns fed;

	/* keys that rows are tested by, before they are fed; see gpurhh_heap_feed_add_keys() */
	HeapColumns keys;
	Feed		key_feed;
	char	   *key_base;		/* its block */
	uint8	   *untested;		/* rows of which a key is not known; NULL: none has strings */
	KeyTests   *tests;			/* of this execution; NULL: there are none */

	/* rows of the current page that passed WHERE and are not yet fed */
	Buffer		buffer;			/* which has that page */
	int			n_rows;
	int			next_row;
	OffsetNumber *offsets;
	const char **data;			/* where the tuples' attributes start */
	const char **at;			/* in them, while they are walked through */
	bool		dense;			/* most cache lines of a page are needed */
	bool		any_null;		/* some of the page's tuples have NULLs */
	int			least_natts;	/* the fewest attributes stored in one */
	uint8	   *active;
	bool		ended;
	CachedPages *cached;		/* the blocks that a device has copies of; NULL: none is left out */
	BufferAccessStrategy ring;	/* of a scan whose pages a device holds; else NULL */
};

extern Form_pg_attribute gpurhh_heap_attribute(const HeapFeed *heap, Node *expr);

#endif							/* GPURHH_SCAN_HEAP_STATE_H */
