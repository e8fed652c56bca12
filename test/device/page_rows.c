/*
 * page_rows.c
 *		Makes tuples, pages of them, and layouts for them.
 */
#include "page_rows.h"

/* A tuple without attributes. */
void
tuple_clear(tuple *t)
{
	t->n = 0;
	memset(t->present, 0, sizeof(t->present));
	t->n_attributes = 0;
	t->any_null = false;
}

static void
put_padding(tuple *t, uint32_t align)
{
	while (t->n % align != 0)
		t->data[t->n++] = 0;
}

void
put_attribute(tuple *t, const void *value, uint32_t bytes, uint32_t align)
{
	put_padding(t, align);
	memcpy(t->data + t->n, value, bytes);
	t->n += bytes;
	t->present[t->n_attributes / 8] |= (uint8_t) (1 << t->n_attributes % 8);
	t->n_attributes++;
}

void
put_null(tuple *t)
{
	t->n_attributes++;
	t->any_null = true;
}

/* A varlena of so many bytes, with a header of one byte, or of four. */
void
put_varlena(tuple *t, const void *value, uint32_t bytes, bool short_header)
{
	uint8_t		plain[RHH_PAGE_BYTES];
	const uint32_t header = short_header ? (bytes + 1) << 1 | 1 : (bytes + 4) << 2;

	memcpy(plain, &header, 4);
	memcpy(plain + (short_header ? 1 : 4), value, bytes);
	put_attribute(t, plain, bytes + (short_header ? 1 : 4), short_header ? 1 : 4);
}

void
put_2_bytes(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t) value;
	p[1] = (uint8_t) (value >> 8);
}

void
page_clear(uint8_t *page)
{
	memset(page, 0, RHH_PAGE_BYTES);
	put_2_bytes(page + 12, HEADER_BYTES);
	put_2_bytes(page + 14, RHH_PAGE_BYTES);
	put_2_bytes(page + 16, RHH_PAGE_BYTES);
}

/* Adds a line pointer to a page; offset 0: it has no tuple.  False: there is no room. */
bool
page_add_item(uint8_t *page, uint32_t offset, uint32_t length)
{
	const uint32_t lower = rhh_page_2_bytes(page + 12);
	const uint32_t upper = offset > 0 ? offset : rhh_page_2_bytes(page + 14);
	const uint32_t pointer = offset == 0 ? 0 : offset | 1u << 15 | length << 17;

	if (lower + 4 > upper || (lower - HEADER_BYTES) / 4 == RHH_PAGE_ITEMS)
		return false;
	memcpy(page + lower, &pointer, 4);
	put_2_bytes(page + 12, lower + 4);
	put_2_bytes(page + 14, upper);
	return true;
}

/* Where the tuple of a line pointer is. */
uint32_t
page_tuple(const uint8_t *page, uint32_t item)
{
	return rhh_page_4_bytes(page + HEADER_BYTES + 4 * item) & 0x7fff;
}

/* PD_ALL_VISIBLE */
void
page_set_all_visible(uint8_t *page)
{
	page[10] |= 4;
}

/* Adds a tuple, of somebody who has committed (HEAP_XMIN_COMMITTED).  False: there is no room. */
bool
page_add(uint8_t *page, const tuple *t)
{
	const uint32_t bits = t->any_null ? (t->n_attributes + 7) / 8 : 0;
	const uint32_t header = (23 + bits + 7) & ~7u;
	const uint32_t length = header + t->n;
	const uint32_t upper = rhh_page_2_bytes(page + 14);
	const uint32_t lower = rhh_page_2_bytes(page + 12);
	uint32_t	offset;

	if (length + 7 + lower + 4 > upper)
		return false;
	offset = (upper - length) & ~7u;
	if (!page_add_item(page, offset, length))
		return false;
	put_2_bytes(page + offset + 18, t->n_attributes);
	page[offset + 20] = t->any_null;
	page[offset + 21] = 1;
	page[offset + 22] = (uint8_t) header;
	memcpy(page + offset + 23, t->present, bits);
	memcpy(page + offset + header, t->data, t->n);
	return true;
}

/* Operation number n of a program. */
uint8_t
add_op(rhh_program *program, uint8_t code, uint32_t a, uint32_t b, uint32_t c)
{
	program->ops[program->n_ops] = (rhh_op){.code = code, .a = (uint8_t) a, .b = (uint8_t) b, .c = (uint8_t) c};
	return (uint8_t) program->n_ops++;
}

uint8_t
add_constant(rhh_program *program, int64_t value)
{
	program->constants[program->n_constants][0] = (uint64_t) value;
	return add_op(program, RHH_OP_CONSTANT, program->n_constants++, 0, 0);
}
