/*
 * page_rows.h
 *		Tuples, pages of them, and layouts for them.
 */
#ifndef PAGE_ROWS_H
#define PAGE_ROWS_H

#include "device_test.h"

#define HEADER_BYTES 24			/* of a page, and of a tuple */

/* A tuple that is being made. */
typedef struct tuple
{
	uint8_t		data[RHH_PAGE_BYTES];
	uint32_t	n;				/* bytes */
	uint8_t		present[32];
	uint32_t	n_attributes;
	bool		any_null;
} tuple;

extern void tuple_clear(tuple *t);
extern void put_attribute(tuple *t, const void *value, uint32_t bytes, uint32_t align);
extern void put_null(tuple *t);
extern void put_varlena(tuple *t, const void *value, uint32_t bytes, bool short_header);
extern void put_2_bytes(uint8_t *p, uint32_t value);
extern void page_clear(uint8_t *page);
extern bool page_add_item(uint8_t *page, uint32_t offset, uint32_t length);
extern uint32_t page_tuple(const uint8_t *page, uint32_t item);
extern void page_set_all_visible(uint8_t *page);
extern bool page_add(uint8_t *page, const tuple *t);
extern uint8_t add_op(rhh_program *program, uint8_t code, uint32_t a, uint32_t b, uint32_t c);
extern uint8_t add_constant(rhh_program *program, int64_t value);

#endif
