/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private memory that other ranks may use. A region is followed by its virtual
 * address: a page that its owner remaps is found by the kernel at each access, and
 * one that is gone makes the access fail. Unregistering waits for transfers that
 * are under way (hold-off).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/wrap.h"
#include "core/wait.h"
#include "mem/mem.h"

/*
 * The offsets of a rank's regions, which have no heap bit, are divided into places: each has
 * `span` offsets and at most one region, so an offset says which one. A region begins in its place
 * where the last one ended; a place without room behind that is used again when all others of its
 * class have been. So an address of memory that was unregistered is refused for long.
 *
 * A sorted table instead of places would have no lengths of its own. But others search it while its
 * owner inserts: that takes a lock, with which the owner can die, or readers that try again.
 */
enum { PAGE_PLACES = 4096 / sizeof(struct job_region), GRAIN = 4096 };

static const struct region_class {
	uint64_t begin; /* the offset of its first place */
	unsigned shift; /* log2 of a place's span */
	unsigned first, count;
} class_of[JOB_REGION_CLASSES] = {
	{ 0, 31, 0, 16384 },
	{ UINT64_C(1) << 45, 36, 16384, 1024 },
	{ UINT64_C(3) << 45, 40, 16384 + 1024, 32 },
};
_Static_assert(JOB_REGIONS_OWN == 16384, "a program can have so many whatever layers lend");

struct regions {
	unsigned registered;             /* by the program */
	bool used[JOB_REGIONS];          /* places, until nobody touches their memory */
	unsigned at[JOB_REGION_CLASSES]; /* where a place was last taken */
};

struct job_region *places_of(const struct mem *m, uint32_t rank)
{
	return job_part_in(m->job, &m->job->region, rank);
}

static unsigned class_at(uint64_t offset)
{
	return offset < class_of[1].begin ? 0 : offset < class_of[2].begin ? 1 : 2;
}

/* The place that `a` is in; NULL if no region has ever been there. */
static struct job_region *region_place(const struct mem *m, tern_addr a)
{
	uint32_t rank = tern_addr_rank(a);
	unsigned class = class_at(addr_offset(a));
	const struct region_class *c = &class_of[class];
	uint64_t i = (addr_offset(a) - c->begin) >> c->shift;
	if (addr_in_heap(a) || rank >= m->size ||
	    i >= atomic_load(&m->job->rank[rank].regions[class]))
		return NULL;
	return places_of(m, rank) + c->first + i;
}

/* Loads of a region are sequentially consistent: see region_enter(). */
struct job_region *region_find(const struct mem *m, tern_addr a, size_t len)
{
	struct job_region *g = region_place(m, a);
	if (!g || !atomic_load(&g->base))
		return NULL;
	uint64_t at = addr_offset(a) - atomic_load(&g->first), bytes = atomic_load(&g->bytes);
	return at <= bytes && len <= bytes - at ? g : NULL;
}

static char *region_pointer(const struct job_region *g, tern_addr a)
{
	uint64_t at = addr_offset(a) - atomic_load(&g->first);
	return (char *)(uintptr_t)(atomic_load(&g->base) + at);
}

char *region_reach(struct mem *m, tern_addr a, size_t len)
{
	uint32_t rank = tern_addr_rank(a);
	/* A forked child has a copy of the process, which is no rank's. */
	if (rank >= m->size || m->e->forked || !mem_near(m, rank))
		return NULL;
	const struct job_region *g = region_find(m, a, len);
	if (!g || (!layer_maps(m->e, rank) && !grant_covers(m, a, len)))
		return NULL;
	return mem_same_process(m, rank) ? region_pointer(g, a) : file_reach(m, g, a);
}

/* -- By pointer ------------------------------------------------------------------------------ */

/* The address of `p` in the region, if that has so many bytes from there on. */
static tern_addr place_addr(const struct mem *m, const struct job_region *g, uint64_t p, size_t len)
{
	uint64_t base = atomic_load(&g->base), bytes = atomic_load(&g->bytes), at = p - base;
	if (!base || atomic_load(&g->lent) || at > bytes || len > bytes - at)
		return TERN_ADDR_NONE;
	return ((uint64_t)m->rank << ADDR_RANK_SHIFT) + atomic_load(&g->first) + at;
}

tern_addr region_addr(const struct mem *m, const void *pointer, size_t len)
{
	tern_addr found = TERN_ADDR_NONE;
	for (unsigned i = 0; i < JOB_REGION_CLASSES; i++) {
		const struct job_region *g = places_of(m, m->rank) + class_of[i].first;
		uint32_t n = atomic_load(&m->job->rank[m->rank].regions[i]);
		for (uint32_t k = 0; k < n && !found; k++)
			found = place_addr(m, &g[k], (uint64_t)(uintptr_t)pointer, len);
	}
	return found;
}

/*
 * What others read of a region has the default order everywhere in mem. Dekker's pattern with
 * tern_unregister(): we raise `users` and then look at `base`; the owner clears `base` and then
 * looks at `users`. All are sequentially consistent, so either we see that the region is closed or
 * the owner sees us. The region may also be another one by now, which does not have the address.
 */
uint64_t region_enter(const struct mem *m, tern_addr a)
{
	struct job_region *g = region_place(m, a);
	if (!g)
		return 0;
	atomic_fetch_add(&g->users, 1);
	if (region_find(m, a, 1))
		return (uint64_t)(uintptr_t)region_pointer(g, a);
	atomic_fetch_sub(&g->users, 1);
	return 0;
}

void region_leave(const struct mem *m, tern_addr a)
{
	atomic_fetch_sub(&region_place(m, a)->users, 1);
}

/* Ranks are siblings: where Yama asks for it, the launcher's descendants may, and only they. */
void mem_let_in(struct mem *m)
{
	if (!m->let_in)
		prctl(PR_SET_PTRACER, (unsigned long)getppid(), 0, 0, 0);
	m->let_in = true;
}

/* -- Places ---------------------------------------------------------------------------------- */

static int regions_make(struct mem *m)
{
	if (!m->regions)
		m->regions = memory_new(1, sizeof *m->regions);
	return m->regions ? 0
			  : error_set(-ENOMEM, "registering memory of rank %u: no memory", m->rank);
}

static uint64_t place_begin(unsigned class, unsigned place)
{
	const struct region_class *c = &class_of[class];
	return c->begin + ((uint64_t)(place - c->first) << c->shift);
}

/* Puts the place where its next region may begin; never at 0, which is TERN_ADDR_NONE. */
static void place_rewind(struct mem *m, unsigned class, unsigned place, uint64_t at)
{
	struct job_region *g = &places_of(m, m->rank)[place];
	atomic_store(&g->first, place_begin(class, place) + at);
	atomic_store(&g->bytes, 0);
}

/* Where a region behind the last one would begin; false if the place ends before it does. */
static bool place_fits(const struct mem *m, unsigned class, unsigned place, size_t len,
		       uint64_t *first)
{
	const struct job_region *g = &places_of(m, m->rank)[place];
	uint64_t end = place_begin(class, place) + (UINT64_C(1) << class_of[class].shift);
	*first = (atomic_load(&g->first) + atomic_load(&g->bytes) + GRAIN - 1) / GRAIN * GRAIN;
	return *first < end && len <= end - *first;
}

/* The next place without a region that has room, or that is made to begin anew. */
static bool place_seek(struct mem *m, unsigned class, size_t len, bool anew, unsigned *place,
		       uint64_t *first)
{
	struct regions *r = m->regions;
	uint32_t some = atomic_load(&m->job->rank[m->rank].regions[class]);
	unsigned at = r->at[class] + anew; /* the last one is behind all others then */
	for (uint32_t n = 0; n < some; n++, at++) {
		at = at < some ? at : 0;
		*place = class_of[class].first + at;
		if (r->used[*place])
			continue;
		if (anew)
			place_rewind(m, class, *place, GRAIN);
		if (!place_fits(m, class, *place, len, first))
			continue;
		r->at[class] = at;
		return true;
	}
	return false;
}

/* Makes a place that has never been used, its memory committed: 0, or a code with a sentence. */
static int place_make(struct mem *m, unsigned class)
{
	const struct region_class *c = &class_of[class];
	_Atomic uint32_t *some = &m->job->rank[m->rank].regions[class];
	uint32_t n = atomic_load(some);
	size_t at =
		job_part_at(&m->job->region, m->rank) + (c->first + n) * sizeof(struct job_region);
	int rc = n % PAGE_PLACES ? 0 : job_commit(m->job, at, 4096, "regions of private memory");
	if (rc)
		return rc;
	uint64_t before_wrap = wrap_distance() * GRAIN; /* far less than a place spans */
	place_rewind(m, class, c->first + n,
		     before_wrap ? (UINT64_C(1) << c->shift) - before_wrap : GRAIN);
	m->regions->at[class] = n - 1; /* it comes next */
	atomic_store(some, n + 1);
	return 0;
}

/*
 * A place of that class for `len` bytes: 0, a code with a sentence, or -ENOBUFS without one. Tests
 * begin with little room in it, so that even a new one has to begin anew.
 */
static int place_take(struct mem *m, unsigned class, size_t len, unsigned *place, uint64_t *first)
{
	uint32_t some = atomic_load(&m->job->rank[m->rank].regions[class]);
	if (place_seek(m, class, len, false, place, first))
		return 0;
	int rc = some < class_of[class].count ? place_make(m, class) : 0;
	if (rc)
		return rc;
	return place_seek(m, class, len, false, place, first) ||
			       place_seek(m, class, len, true, place, first)
		       ? 0
		       : -ENOBUFS;
}

/* -- Opening and closing ----------------------------------------------------------------------- */

/* What a region is mapped from. */
struct source {
	int fd; /* -1: it is not known */
	uint64_t at, inode;
};

static const struct source unknown = { .fd = -1 };

static int region_open(struct mem *m, void *p, size_t len, bool lent, const struct source *from,
		       tern_addr *a)
{
	int rc = regions_make(m);
	unsigned class = 0, place;
	uint64_t first;
	if (rc)
		return rc;
	while (len > (UINT64_C(1) << class_of[class].shift) - GRAIN)
		class ++;
	do
		rc = place_take(m, class, len, &place, &first);
	while (rc == -ENOBUFS && ++class < JOB_REGION_CLASSES);
	if (rc)
		return rc;
	mem_let_in(m);
	struct job_region *g = &places_of(m, m->rank)[place];
	atomic_store(&g->first, first);
	atomic_store(&g->bytes, len);
	atomic_store(&g->lent, lent);
	atomic_store(&g->fd, (uint32_t)(from->fd + 1));
	atomic_store(&g->file_at, from->at);
	atomic_store(&g->inode, from->inode);
	m->regions->used[place] = true;
	m->regions->registered += !lent;
	atomic_store(&g->base, (uint64_t)(uintptr_t)p);
	*a = ((uint64_t)m->rank << ADDR_RANK_SHIFT) + first;
	return 0;
}

/* Nobody uses it any more, and its `base` is 0. */
static void region_give(struct mem *m, struct job_region *g)
{
	m->regions->used[g - places_of(m, m->rank)] = false;
}

/* Whether a region can have so many bytes: the largest place has that. */
static bool region_fits(const void *p, size_t len)
{
	return p && len && len <= (UINT64_C(1) << class_of[JOB_REGION_CLASSES - 1].shift) - GRAIN;
}

static int register_check(struct mem *m, const void *p, size_t len, const char *call)
{
	int rc = rules_rank(m->e, call);
	if (!rc && !region_fits(p, len))
		rc = error_set(-EINVAL, "%zu bytes at %p cannot be registered", len, p);
	if (!rc && m->regions && m->regions->registered == JOB_REGIONS_OWN)
		rc = error_set(-ENOBUFS,
			       "rank %u has registered %d regions already: unregister one", m->rank,
			       JOB_REGIONS_OWN);
	return rc;
}

static int region_register(struct mem *m, void *p, size_t len, const struct source *from,
			   tern_addr *a)
{
	int rc = region_open(m, p, len, false, from, a);
	return rc != -ENOBUFS ? rc
			      : error_set(rc,
					  "rank %u has registered %u regions already, as many as "
					  "it can of that length: unregister one",
					  m->rank, m->regions->registered);
}

int tern_register(tern *t, void *p, size_t len, tern_addr *a)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = register_check(mem_of(t), p, len, "tern_register()");
	return rc ? rc : region_register(mem_of(t), p, len, &unknown, a);
}

/* What can be said of the descriptor: 0, or a code with a sentence. */
static int source_check(int fd, uint64_t offset, size_t len, struct stat *s)
{
	long page = sysconf(_SC_PAGESIZE);
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fstat(fd, s) < 0)
		return error_set(-EBADF, "tern_register_fd() was given descriptor %d: %s", fd,
				 strerror(errno));
	if ((flags & O_ACCMODE) != O_RDWR)
		return error_set(-EACCES,
				 "tern_register_fd() was given descriptor %d, which is not open to "
				 "read and write: use tern_register()",
				 fd);
	if (offset % (uint64_t)page)
		return error_set(-EINVAL,
				 "tern_register_fd() was given offset %llu of a file, which is no "
				 "multiple of a page, %ld bytes",
				 (unsigned long long)offset, page);
	bool short_of = offset > (uint64_t)s->st_size || len > (uint64_t)s->st_size - offset;
	if (short_of && S_ISREG(s->st_mode)) /* devices have no size */
		return error_set(-ERANGE,
				 "tern_register_fd() was given %zu bytes at offset %llu of a file "
				 "that has %llu: make it longer first",
				 len, (unsigned long long)offset, (unsigned long long)s->st_size);
	return 0;
}

int tern_register_fd(tern *t, void *p, size_t len, int fd, uint64_t offset, tern_addr *a)
{
	INSIDE struct scope scope = scope_given(t);
	struct stat s;
	int rc = register_check(mem_of(t), p, len, "tern_register_fd()");
	if (!rc)
		rc = source_check(fd, offset, len, &s);
	if (rc)
		return rc;
	struct source from = { fcntl(fd, F_DUPFD_CLOEXEC, 3), offset, s.st_ino };
	if (from.fd < 0)
		return error_set(-errno, "tern_register_fd() needs a descriptor of its own: %s",
				 strerror(errno));
	rc = region_register(mem_of(t), p, len, &from, a);
	if (rc)
		close(from.fd);
	return rc;
}

tern_addr region_lend(struct mem *m, void *p, size_t len)
{
	tern_addr a;
	bool some = region_fits(p, len) && !region_open(m, p, len, true, &unknown, &a);
	return some ? a : TERN_ADDR_NONE;
}

void region_unlend(struct mem *m, tern_addr a)
{
	struct job_region *g = region_place(m, a);
	atomic_store(&g->base, 0);
	region_give(m, g);
}

static bool region_idle(struct endpoint *e, void *arg)
{
	(void)e;
	return atomic_load(&((struct job_region *)arg)->users) == 0;
}

static int region_stop(struct endpoint *e, struct wait *w)
{
	const struct job_region *g = w->arg;
	if (!lost_count(e))
		w->moved_at = 0;
	return wait_stalled(e, w, atomic_load(&g->users));
}

/*
 * Until nobody is in a transfer with the region. A rank that died in one never leaves it; so
 * when a rank has left and nothing changes for the grace time, that is whom we wait for.
 */
static void region_wait(struct mem *m, struct job_region *g)
{
	struct wait w = { .bounded = true, .call = "tern_unregister", .stop = region_stop };
	wait_until(m->e, region_idle, g, &w);
}

static void source_close(struct job_region *g)
{
	uint32_t fd = atomic_exchange(&g->fd, 0);
	if (fd)
		close((int)fd - 1);
}

int tern_unregister(tern *t, tern_addr a)
{
	INSIDE struct scope scope = scope_given(t);
	struct mem *m = mem_of(t);
	struct job_region *g = tern_addr_rank(a) == m->rank ? region_find(m, a, 1) : NULL;
	int rc = rules_rank_waits(t->own, "tern_unregister()");
	if (!rc && (!g || atomic_load(&g->lent)))
		rc = error_set(
			-EINVAL,
			"tern_unregister() was given an address that rank %u has not registered",
			m->rank);
	if (rc)
		return rc;
	m->regions->registered--;
	atomic_store(&g->base, 0);
	region_wait(m, g);
	source_close(g);
	region_give(m, g);
	return 0;
}

void regions_close(struct mem *m)
{
	for (unsigned i = 0; m->regions && i < JOB_REGIONS; i++)
		if (m->regions->used[i])
			source_close(&places_of(m, m->rank)[i]);
	memory_free(m->regions);
}
