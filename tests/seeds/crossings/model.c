/* SPDX-License-Identifier: BSD-3-Clause */
/* What calls must give: plain loops over what each member has given. See program.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/chance.h"
#include "lib/type_size.h"
#include "program.h"

enum { UNTOUCHED = 0xee };

/* -- Bytes ------------------------------------------------------------------------------------ */

uint64_t content_of(uint64_t number, uint64_t i)
{
	struct chance c = { number + i * UINT64_C(0xd1342543de82ef95) };
	return chance_next(&c);
}

void content_fill(void *to, size_t at, size_t len, uint64_t number)
{
	for (size_t i = 0; i < len;) {
		uint64_t word = content_of(number, (at + i) / 8);
		for (unsigned k = (at + i) % 8; k < 8 && i < len; k++, i++)
			((unsigned char *)to)[i] = (unsigned char)(word >> 8 * k);
	}
}

size_t content_check(const void *from, size_t at, size_t len, uint64_t number)
{
	for (size_t i = 0; i < len;) {
		uint64_t word = content_of(number, (at + i) / 8);
		for (unsigned k = (at + i) % 8; k < 8 && i < len; k++, i++)
			if (((const unsigned char *)from)[i] != (unsigned char)(word >> 8 * k))
				return i;
	}
	return len;
}

static uint64_t number_of(const struct step *s, uint32_t rank)
{
	return content_of(s->value, 1000 + rank);
}

/* -- Elements of reductions ----------------------------------------------------------------- */

static double real_of(const struct step *s, uint64_t x)
{
	static const double special[] = { NAN, -NAN, 0.0, -0.0, 1, -1, INFINITY, -INFINITY, 2, 3 };
	unsigned how = s->how & ~(unsigned)TERN_REDUCE_EXACT;
	if (s->values == SPECIAL)
		return special[x >> 8 & 7 ? 2 + x % 8 : x % 10]; /* few are NaN */
	if (s->values == FRACTION)
		return ((double)(x % 2000001) - 1e6) / 999983.0 * (double)(1 + (x >> 40) % 1000);
	return how == TERN_REDUCE_PRODUCT ? 1 + (double)(x % 8 == 0) : (double)(x % 7);
}

static void element_make(const struct step *s, uint32_t rank, size_t i, void *at)
{
	uint64_t x = content_of(number_of(s, rank), i);
	double real = real_of(s, x);
	size_t size = type_size(s->type);
	if (s->type == TERN_TYPE_FLOAT)
		memcpy(at, &(float){ (float)real }, size);
	else if (s->type == TERN_TYPE_DOUBLE)
		memcpy(at, &real, size);
	else if (s->type == TERN_TYPE_COMPLEX_FLOAT)
		memcpy(at, &(float[2]){ (float)real, (float)(x >> 32 & 1) }, size);
	else if (s->type == TERN_TYPE_COMPLEX_DOUBLE)
		memcpy(at, &(double[2]){ real, (double)(x >> 32 & 1) }, size);
	else if (s->type == TERN_TYPE_DOUBLE_AT)
		memcpy(at, &(tern_double_at){ real, x >> 50 }, size);
	else if (s->type == TERN_TYPE_INT64_AT)
		memcpy(at, &(tern_int64_at){ (int64_t)(x % 5) - 2, x >> 50 }, size);
	else if (s->type == TERN_TYPE_UINT64_AT)
		memcpy(at, &(tern_uint64_at){ x % 5, x >> 50 }, size);
	else
		memcpy(at, &x, size); /* as little-endian machines have it */
}

void model_compose(void *left, const void *right, size_t n, void *arg)
{
	uint64_t *l = left;
	const uint64_t *r = right;
	(void)arg;
	for (size_t i = 0; i < n; i++) {
		uint32_t a = (uint32_t)l[i], b = (uint32_t)(l[i] >> 32);
		uint32_t c = (uint32_t)r[i], d = (uint32_t)(r[i] >> 32);
		l[i] = (uint64_t)(uint32_t)(b * c + d) << 32 | (uint32_t)(a * c);
	}
}

/* -- Combining ------------------------------------------------------------------------------ */

/* NaN wins; of zeros, that with the sign is less. */
static double real_end(double a, double b, bool least)
{
	if (isnan(a) || isnan(b))
		return NAN;
	if (a == b)
		return (signbit(a) != 0) == least ? a : b;
	return (a < b) == least ? a : b;
}

static double real_combine(double a, double b, unsigned how)
{
	return how == TERN_REDUCE_SUM       ? a + b
	       : how == TERN_REDUCE_PRODUCT ? a * b
					    : real_end(a, b, how == TERN_REDUCE_MIN);
}

static uint64_t extend(uint64_t x, size_t size, bool is_signed)
{
	unsigned shift = 64 - 8 * (unsigned)size;
	return is_signed ? (uint64_t)((int64_t)(x << shift) >> shift) : x << shift >> shift;
}

static uint64_t integer_combine(uint64_t a, uint64_t b, unsigned how, bool is_signed)
{
	bool less = is_signed ? (int64_t)b < (int64_t)a : b < a;
	switch (how) {
	case TERN_REDUCE_SUM:
		return a + b;
	case TERN_REDUCE_PRODUCT:
		return a * b;
	case TERN_REDUCE_MIN:
		return less ? b : a;
	case TERN_REDUCE_MAX:
		return less ? a : b;
	case TERN_REDUCE_AND:
		return a & b;
	case TERN_REDUCE_OR:
		return a | b;
	case TERN_REDUCE_XOR:
		return a ^ b;
	case TERN_REDUCE_ALL:
		return a && b;
	default:
		return a || b;
	}
}

/* Of values with their location; all fit into a double here. */
static void located_combine(void *left, const void *right, enum tern_type type, unsigned how)
{
	tern_int64_at l, r;
	memcpy(&l, left, sizeof l);
	memcpy(&r, right, sizeof r);
	double a = (double)l.value, b = (double)r.value;
	if (type == TERN_TYPE_DOUBLE_AT) {
		memcpy(&a, left, sizeof a);
		memcpy(&b, right, sizeof b);
	}
	bool better = how == TERN_REDUCE_MIN ? b < a : b > a;
	if (better || (a == b && r.at < l.at))
		memcpy(left, right, sizeof l);
}

static void complex_combine(double l[2], const double r[2], unsigned how)
{
	double re = how == TERN_REDUCE_SUM ? l[0] + r[0] : l[0] * r[0] - l[1] * r[1];
	l[1] = how == TERN_REDUCE_SUM ? l[1] + r[1] : l[0] * r[1] + l[1] * r[0];
	l[0] = re;
}

static void element_combine(const struct step *s, void *left, const void *right)
{
	unsigned how = s->how & ~(unsigned)TERN_REDUCE_EXACT;
	size_t size = type_size(s->type);
	if (how == HOW_COMPOSE) {
		model_compose(left, right, 1, NULL);
	} else if (s->type == TERN_TYPE_FLOAT) {
		float a, b;
		memcpy(&a, left, size);
		memcpy(&b, right, size);
		memcpy(left, &(float){ (float)real_combine(a, b, how) }, size);
	} else if (s->type == TERN_TYPE_DOUBLE) {
		double a, b;
		memcpy(&a, left, size);
		memcpy(&b, right, size);
		memcpy(left, &(double){ real_combine(a, b, how) }, size);
	} else if (s->type == TERN_TYPE_COMPLEX_DOUBLE) {
		complex_combine(left, right, how);
	} else if (s->type == TERN_TYPE_COMPLEX_FLOAT) {
		float *l = left;
		const float *r = right;
		double a[2] = { l[0], l[1] }, b[2] = { r[0], r[1] };
		complex_combine(a, b, how);
		l[0] = (float)a[0], l[1] = (float)a[1];
	} else if (s->type >= TERN_TYPE_INT64_AT) {
		located_combine(left, right, s->type, how);
	} else {
		bool is_signed = s->type <= TERN_TYPE_INT64;
		uint64_t a = 0, b = 0;
		memcpy(&a, left, size);
		memcpy(&b, right, size);
		a = integer_combine(extend(a, size, is_signed), extend(b, size, is_signed), how,
				    is_signed);
		memcpy(left, &a, size);
	}
}

/* Elements `first` to `last` - 1 of members 0 to `end` - 1. */
static void reduce(const struct step *s, const struct group *g, uint32_t end, size_t first,
		   size_t last, char *out)
{
	size_t size = type_size(s->type);
	_Alignas(16) char next[16], sum[16];
	for (size_t i = first; i < last && end; i++) {
		element_make(s, g->rank[0], i, sum);
		for (uint32_t k = 1; k < end; k++) {
			element_make(s, g->rank[k], i, next);
			element_combine(s, sum, next);
		}
		memcpy(out + (i - first) * size, sum, size);
	}
}

/* -- Calls ------------------------------------------------------------------------------------ */

uint32_t model_root(const struct step *s, const struct group *g)
{
	return (uint32_t)((s->value >> 20) % g->n);
}

size_t model_piece(const struct step *s, const struct group *g, uint32_t from, uint32_t to)
{
	uint32_t a = g->rank[from], b = s->call == C_ALLGATHERV ? 0 : g->rank[to];
	return s->len / 4 * ((a * 3 + b * 5 + s->value) % 4) + (a + b) % 2;
}

size_t model_first(const struct step *s, const struct group *g, uint32_t who)
{
	return s->len / type_size(s->type) * who * who / ((size_t)g->n * g->n);
}

/* The next one, the one before, the next one again, and nobody. */
uint32_t model_neighbour(const struct group *g, uint32_t who, unsigned i, bool to)
{
	return i == 3 ? TERN_RANK_NONE : (who + ((i == 1) == to ? g->n - 1 : 1)) % g->n;
}

size_t model_neighbour_len(const struct step *s, const struct group *g, uint32_t from, uint32_t to,
			   unsigned i)
{
	return from < g->n && to < g->n ? (model_piece(s, g, from, to) + i * 8) % (s->len + 1) : 0;
}

/* A matrix for transpositions. */
struct shape {
	size_t rows, cols, element;
};

static struct shape shape_of(const struct step *s)
{
	size_t element = s->len / 64 < 2048 ? s->len / 64 + 1 : 2048;
	return (struct shape){ 1 + s->value % 13, 1 + (s->value >> 8) % 11, element };
}

static size_t rows_from(size_t rows, const struct group *g, uint32_t who)
{
	return rows * who / g->n;
}

static size_t shape_bytes(const struct group *g, size_t rows, size_t cols, size_t element)
{
	return (rows_from(rows, g, g->me + 1) - rows_from(rows, g, g->me)) * cols * element;
}

static size_t parts_bytes(const struct step *s, const struct group *g, bool in)
{
	size_t sum = 0;
	for (uint32_t i = 0; i < g->n; i++)
		sum += in ? model_piece(s, g, g->me, i) : model_piece(s, g, i, g->me);
	return sum;
}

static size_t neighbours_bytes(const struct step *s, const struct group *g, uint32_t who, bool in,
			       unsigned entries)
{
	size_t sum = 0;
	for (unsigned i = 0; i < entries; i++) {
		uint32_t other = model_neighbour(g, who, i, in);
		sum += in ? model_neighbour_len(s, g, who, other, i)
			  : model_neighbour_len(s, g, other, who, i);
	}
	return sum;
}

size_t model_in_bytes(const struct step *s, const struct group *g)
{
	struct shape m = shape_of(s);
	switch (s->call) {
	case C_REDUCE:
	case C_ALLREDUCE:
	case C_SCAN:
	case C_EXSCAN:
	case C_REDUCE_SCATTER:
		return s->len - s->len % type_size(s->type);
	case C_SCATTER:
	case C_ALLTOALL:
		return s->len * g->n;
	case C_ALLTOALLV:
		return parts_bytes(s, g, true);
	case C_ALLGATHERV:
	case C_GATHERV:
		return model_piece(s, g, g->me, model_root(s, g));
	case C_SCATTERV:
		return model_root(s, g) == g->me ? parts_bytes(s, g, true) : 0;
	case C_EXCHANGE:
		return neighbours_bytes(s, g, g->me, true, NEIGHBOURS);
	case C_TRANSPOSE:
		return shape_bytes(g, m.rows, m.cols, m.element);
	case C_BROADCAST:
	case C_GATHER:
	case C_ALLGATHER:
		return s->len;
	default:
		return 0;
	}
}

size_t model_out_bytes(const struct step *s, const struct group *g)
{
	struct shape m = shape_of(s);
	switch (s->call) {
	case C_GATHER:
	case C_ALLGATHER:
		return s->len * g->n;
	case C_SCATTER:
		return s->len;
	case C_ALLTOALLV:
	case C_ALLGATHERV:
		return parts_bytes(s, g, false);
	case C_GATHERV:
		return model_root(s, g) == g->me ? parts_bytes(s, g, false) : 0;
	case C_SCATTERV:
		return model_piece(s, g, model_root(s, g), g->me);
	case C_EXCHANGE:
		return neighbours_bytes(s, g, g->me, false, NEIGHBOURS);
	case C_REDUCE_SCATTER:
		return (model_first(s, g, g->me + 1) - model_first(s, g, g->me)) *
		       type_size(s->type);
	case C_TRANSPOSE:
		return shape_bytes(g, m.cols, m.rows, m.element);
	default:
		return model_in_bytes(s, g);
	}
}

void model_in(const struct step *s, const struct group *g, uint32_t who, void *in)
{
	size_t len = model_in_bytes(s, g), size = type_size(s->type);
	struct shape m = shape_of(s);
	if (s->call >= C_REDUCE && s->call <= C_REDUCE_SCATTER)
		for (size_t i = 0; i < len / size; i++)
			element_make(s, g->rank[who], i, (char *)in + i * size);
	else if (s->call == C_TRANSPOSE)
		content_fill(in, rows_from(m.rows, g, who) * m.cols * m.element, len, s->value);
	else
		content_fill(in, 0, len, number_of(s, g->rank[who]));
}

static void model_transpose(const struct step *s, const struct group *g, char *out)
{
	struct shape m = shape_of(s);
	for (size_t c = rows_from(m.cols, g, g->me); c < rows_from(m.cols, g, g->me + 1); c++)
		for (size_t r = 0; r < m.rows; r++, out += m.element)
			content_fill(out, (r * m.cols + c) * m.element, m.element, s->value);
}

/* What a member has for this one. */
static size_t model_piece_fill(const struct step *s, const struct group *g, uint32_t from,
			       char *out)
{
	size_t at = 0, len = model_piece(s, g, from, g->me);
	for (uint32_t i = 0; i < g->me && (s->call == C_ALLTOALLV || s->call == C_SCATTERV); i++)
		at += model_piece(s, g, from, i);
	content_fill(out, at, len, number_of(s, g->rank[from]));
	return len;
}

static void model_pieces(const struct step *s, const struct group *g, char *out)
{
	for (uint32_t k = 0; k < g->n; k++)
		out += model_piece_fill(s, g, k, out);
}

static void model_neighbours(const struct step *s, const struct group *g, char *out)
{
	for (unsigned i = 0; i < NEIGHBOURS; i++) {
		uint32_t from = model_neighbour(g, g->me, i, false);
		size_t len = model_neighbour_len(s, g, from, g->me, i);
		if (from == TERN_RANK_NONE)
			continue;
		content_fill(out, neighbours_bytes(s, g, from, true, i), len,
			     number_of(s, g->rank[from]));
		out += len;
	}
}

/* Of each member, what it has for this one. */
static void model_exchange(const struct step *s, const struct group *g, char *out)
{
	for (uint32_t k = 0; k < g->n; k++) {
		size_t at = 0, len = s->len;
		if (s->call == C_ALLTOALL)
			at = s->len * g->me;
		content_fill(out, at, len, number_of(s, g->rank[k]));
		out += len;
	}
}

void model_out(const struct step *s, const struct group *g, void *out)
{
	uint32_t root = model_root(s, g);
	size_t len = model_out_bytes(s, g), n = s->len / type_size(s->type);
	memset(out, UNTOUCHED, len);
	switch (s->call) {
	case C_BROADCAST:
		content_fill(out, 0, len, number_of(s, g->rank[root]));
		break;
	case C_REDUCE:
		if (root == g->me)
			reduce(s, g, g->n, 0, n, out);
		break;
	case C_ALLREDUCE:
		reduce(s, g, g->n, 0, n, out);
		break;
	case C_SCAN:
		reduce(s, g, g->me + 1, 0, n, out);
		break;
	case C_EXSCAN:
		reduce(s, g, g->me, 0, n, out);
		break;
	case C_REDUCE_SCATTER:
		reduce(s, g, g->n, model_first(s, g, g->me), model_first(s, g, g->me + 1), out);
		break;
	case C_GATHER:
		if (root == g->me)
			model_exchange(s, g, out);
		break;
	case C_SCATTER:
		content_fill(out, s->len * g->me, len, number_of(s, g->rank[root]));
		break;
	case C_ALLGATHER:
	case C_ALLTOALL:
		model_exchange(s, g, out);
		break;
	case C_ALLTOALLV:
	case C_ALLGATHERV:
		model_pieces(s, g, out);
		break;
	case C_GATHERV:
		if (root == g->me)
			model_pieces(s, g, out);
		break;
	case C_SCATTERV:
		model_piece_fill(s, g, root, out);
		break;
	case C_EXCHANGE:
		model_neighbours(s, g, out);
		break;
	case C_TRANSPOSE:
		model_transpose(s, g, out);
		break;
	default:
		break;
	}
}

bool model_needs(const struct step *s, const struct group *g, uint32_t lost)
{
	uint32_t root = model_root(s, g);
	switch (s->call) {
	case C_BARRIER:
	case C_QUIET:
		return true;
	case C_ALLREDUCE:
	case C_ALLGATHER:
	case C_ALLTOALL:
		return model_in_bytes(s, g) > 0;
	case C_REDUCE_SCATTER:
		return model_out_bytes(s, g) > 0;
	case C_ALLTOALLV:
	case C_ALLGATHERV:
		return model_piece(s, g, lost, g->me) > 0;
	case C_GATHERV:
		return g->me == root && model_piece(s, g, lost, root) > 0;
	case C_SCATTERV:
		return lost == root && model_piece(s, g, root, g->me) > 0;
	case C_EXCHANGE:
		return model_neighbour(g, g->me, 0, false) == lost &&
		       model_neighbour_len(s, g, lost, g->me, 0) > 0;
	case C_BROADCAST:
	case C_SCATTER:
		return s->len > 0 && lost == root;
	case C_REDUCE:
	case C_GATHER:
		return model_in_bytes(s, g) > 0 && g->me == root;
	case C_SCAN:
	case C_EXSCAN:
		return model_in_bytes(s, g) > 0 && lost < g->me;
	default:
		return false;
	}
}

/* -- Families --------------------------------------------------------------------------------- */

int model_color(const struct step *s, uint32_t rank, int *key)
{
	*key = (int)(content_of(s->value, 50 + rank) % 4);
	int color = (int)(content_of(s->value, 70 + rank) % 4);
	return s->form == 0 ? (int)(rank + s->value) % 2 : color == 3 ? TERN_COLOR_NONE : color / 2;
}

/* Lists that have nobody in common: one for each number, and an empty one for the last number. */
static uint32_t list_of(const struct step *s, uint32_t rank)
{
	return (uint32_t)(content_of(s->value, 30 + rank) % 3);
}

static uint32_t disjoint_list(const struct step *s, const struct group *of, uint32_t *list)
{
	uint32_t n = 0, mine = list_of(s, of->rank[of->me]);
	for (uint32_t i = of->n; i-- > 0 && mine < 2;)
		if (list_of(s, of->rank[i]) == mine)
			list[n++] = of->rank[i];
	return n;
}

/* Of the members, those with an even number or, now and then, all; the last one first. */
uint32_t model_list(const struct step *s, const struct group *of, uint32_t *list)
{
	uint32_t n = 0;
	if (s->form == 4)
		return disjoint_list(s, of, list);
	for (uint32_t i = of->n; i-- > 0;)
		if (s->value % 3 == 0 || (of->rank[i] + s->value / 3) % 3)
			list[n++] = of->rank[i];
	if (!n)
		list[n++] = of->rank[0];
	return n;
}

static void group_add(struct group *g, uint32_t rank)
{
	g->rank[g->n++] = rank;
}

static void split_model(const struct step *s, const struct group *of, struct group *out)
{
	int key, other, mine = model_color(s, of->rank[of->me], &key);
	for (int k = 0; k < 4 && mine != TERN_COLOR_NONE; k++)
		for (uint32_t i = 0; i < of->n; i++)
			if (model_color(s, of->rank[i], &other) == mine && other == k)
				group_add(out, of->rank[i]);
}

bool model_family(const struct step *s, const struct group *of, struct group *out)
{
	uint32_t list[RANKS_MOST], me = of->rank[of->me];
	memset(out, 0, sizeof *out);
	if (s->form < 2) {
		split_model(s, of, out);
	} else {
		uint32_t n = model_list(s, of, list);
		for (uint32_t i = 0; i < n; i++)
			group_add(out, list[i]);
	}
	for (uint32_t i = 0; i < out->n; i++)
		if (out->rank[i] == me)
			out->me = i;
	if (out->n && out->rank[out->me] == me)
		return true;
	out->n = 0;
	return false;
}
