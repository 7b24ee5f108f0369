/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that its owner registered with its file. A rank of the same machine maps it at first use
 * and then loads and stores as in a heap. It takes a copy of the owner's descriptor, which the
 * kernel allows where it allows to copy the memory; so the owner need not poll. Where it does not,
 * the memory is moved as other registered memory is.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "mem/mem.h"

/* What is mapped of one region. */
struct file_map {
	uint64_t first; /* of the region, as in job_region; 0: nothing */
	char *at;       /* NULL: it cannot be mapped */
	size_t bytes;
};

/* Of one rank's. */
struct files {
	uint32_t count;                  /* places that have been looked at */
	struct file_map of[JOB_REGIONS]; /* by place; pages that are not looked at take no memory */
};

static void map_drop(struct file_map *one)
{
	if (one->at)
		munmap(one->at, one->bytes);
	*one = (struct file_map){ 0 };
}

/* Unmaps what was unregistered. Nobody here is in a transfer with it: those do not poll. */
static void maps_sweep(struct mem *m, uint32_t rank)
{
	struct files *f = m->peer[rank].files;
	const struct job_region *g = places_of(m, rank);
	for (uint32_t i = 0; i < f->count; i++)
		if (f->of[i].at && (!atomic_load(&g[i].base) || g[i].first != f->of[i].first))
			map_drop(&f->of[i]);
}

/* The entry for a place; NULL if there is no memory for it. */
static struct file_map *map_of(struct mem *m, uint32_t rank, uint32_t place)
{
	struct files *f = m->peer[rank].files;
	if (!f)
		f = m->peer[rank].files = memory_new(1, sizeof *f);
	if (!f)
		return NULL;
	f->count = place < f->count ? f->count : place + 1;
	return &f->of[place];
}

/* Maps what the owner has as descriptor `theirs`; NULL if it cannot, or that is another file. */
static char *map_make(const struct mem *m, uint32_t rank, const struct job_region *g)
{
	/* The pid is written at open, and the kernel is asked next: its order costs nothing. */
	int fd = process_descriptor(atomic_load(&m->job->rank[rank].pid), (int)g->fd - 1);
	struct stat s;
	void *at = MAP_FAILED;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &s) == 0 && s.st_ino == g->inode)
		at = mmap(NULL, g->bytes, m->guarded ? PROT_READ : PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, (off_t)g->file_at);
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* While the region is held, its owner closes no descriptor. */
static void map_begin(struct mem *m, const struct job_region *g, tern_addr a, struct file_map *one)
{
	uint32_t rank = tern_addr_rank(a);
	map_drop(one);
	maps_sweep(m, rank);
	if (!m->single_copy || !region_enter(m, a))
		return;
	*one = (struct file_map){ g->first, map_make(m, rank, g), g->bytes };
	if (m->guarded && one->at)
		grants_apply(m, g);
	region_leave(m, a);
}

char *file_reach(struct mem *m, const struct job_region *g, tern_addr a)
{
	uint32_t rank = tern_addr_rank(a);
	uint64_t first = atomic_load(&g->first);
	if (!atomic_load(&g->fd) || mem_dead(m, rank))
		return NULL;
	struct file_map *one = map_of(m, rank, (uint32_t)(g - places_of(m, rank)));
	if (one && one->first != first)
		map_begin(m, g, a, one);
	return one && one->at ? one->at + (addr_offset(a) - first) : NULL;
}

char *file_mapped(const struct mem *m, tern_addr a)
{
	uint32_t rank = tern_addr_rank(a);
	const struct files *f = m->peer[rank].files;
	const struct job_region *g = region_find(m, a, 1);
	const struct file_map *one = f && g ? &f->of[g - places_of(m, rank)] : NULL;
	return one && one->at && one->first == g->first ? one->at + (addr_offset(a) - g->first)
							: NULL;
}

void files_close(struct mem *m)
{
	for (uint32_t r = 0; r < m->size; r++) {
		struct files *f = m->peer[r].files;
		for (uint32_t i = 0; f && i < f->count; i++)
			map_drop(&f->of[i]);
		memory_free(f);
	}
}
