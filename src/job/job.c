/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making and mapping a job's memory, where each part of it lies, bells, the states of its ranks,
 * and the names of handlers. Where no order is named here, operations are seq_cst: a rank comes
 * here when it opens, wakes another, or is told of another's end, and not for each message.
 */
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/file.h"
#include "base/setting.h"
#include "base/stamp.h"
#include "base/world.h"
#include "base/wrap.h"
#include "job/commit.h"
#include "net/talk.h"

enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

#define HEAP_MOST (UINT64_C(1) << 47) /* bytes: an address has 47 bits for what lies in a heap */

static size_t round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* The next part of the front. Before the memory is mapped, it is no address yet. */
static void *front_take(const struct job *j, size_t *at, size_t bytes)
{
	uintptr_t part = (uintptr_t)j->base + *at;
	*at += round_up(bytes, 64);
	return (void *)part;
}

/* Returns where it ends. */
static size_t front_lay_out(struct job *j)
{
	size_t members = (size_t)j->size + j->seats, at = 0;
	j->heed_row = round_up(members, 64);
	j->knocker_row = round_up((members + 63) / 64, 8); /* a line, or whole lines */
	j->head = front_take(j, &at, sizeof *j->head);
	j->rank = front_take(j, &at, j->size * sizeof *j->rank);
	j->heed = front_take(j, &at, members * j->heed_row);
	j->begun = front_take(j, &at, members * j->heed_row);
	j->knocker = front_take(j, &at, members * j->knocker_row * sizeof *j->knocker);
	j->owner = front_take(j, &at, j->seats * sizeof *j->owner);
	j->spanned = front_take(j, &at, members);
	j->pulse = front_take(j, &at, j->size * sizeof *j->pulse);
	j->card = front_take(j, &at, j->size * sizeof *j->card);
	j->name = front_take(j, &at, TERN_HANDLER_SLOTS * sizeof *j->name);
	return round_up(at, PAGE);
}

/* So many pieces, each of whole pages. Returns where they end. */
static size_t part_lay_out(struct job_part *p, size_t at, size_t pieces, size_t bytes)
{
	*p = (struct job_part){ at, round_up(bytes, PAGE) };
	return job_part_at(p, pieces);
}

/* Where each part lies, from the numbers of ranks and seats and the bytes of a heap alone. */
static void job_lay_out(struct job *j, uint64_t heap)
{
	size_t size = j->size, members = size + j->seats;
	size_t at = front_lay_out(j);
	at = part_lay_out(&j->pool, at, members, sizeof(struct pool));
	at = part_lay_out(&j->seat, at, j->seats, sizeof(struct job_seat));
	at = part_lay_out(&j->large, at, members * TERN_POOL_BLOCKS, sizeof(struct large_block));
	at = part_lay_out(&j->stats, at, size, stats_bytes(j->size));
	at = part_lay_out(&j->spare, at, members, (members + SPARES) * sizeof(struct block));
	at = part_lay_out(&j->span, at, members, size * sizeof(struct job_span));
	at = part_lay_out(&j->outbox, at, size, JOB_OUTBOX);
	at = part_lay_out(&j->region, at, size, JOB_REGION_BYTES);
	j->heap_bytes = round_up(heap, HUGE_PAGE);
	j->pair_at = round_up(at, HUGE_PAGE);
	j->talk_at = j->pair_at + pair_area((uint32_t)members);
	j->heap_at = j->talk_at + talk_area((uint32_t)members);
	j->bytes = j->heap_at + size * j->heap_bytes;
}

/* Half of what is free, so that a job never starves the machine it runs on. */
static uint64_t budget_by_default(const struct cgroup *c)
{
	char text[512] = "";
	unsigned long long free_kib = UINT64_C(4) << 20; /* where nobody says */
	uint64_t room = cgroup_room(c);
	file_text("/proc/meminfo", text, sizeof text);
	const char *line = strstr(text, "MemAvailable:");
	if (line)
		sscanf(line, "MemAvailable: %llu", &free_kib);
	return (free_kib << 10 < room ? free_kib << 10 : room) / 2;
}

/*
 * Addresses for the mapping that begin at a multiple of HUGE_PAGE, in every process: an offset
 * that is aligned is an address that is, up to that. MAP_FAILED if there are none.
 */
static char *job_reserve(size_t bytes)
{
	char *some = mmap(NULL, bytes + HUGE_PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (some == MAP_FAILED)
		return some;
	char *base = (char *)round_up((uintptr_t)some, HUGE_PAGE);
	size_t before = (size_t)(base - some);
	if (before)
		munmap(some, before);
	munmap(base + bytes, HUGE_PAGE - before);
	return base;
}

static int job_map_bytes(struct job *j, int protection)
{
	char *base = job_reserve(j->bytes);
	if (base != MAP_FAILED)
		j->base = mmap(base, j->bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
			       j->fd, 0);
	if (base != MAP_FAILED && j->base != MAP_FAILED)
		return 0;
	int rc = error_set(
		-errno,
		"mapping a job of %u ranks takes %zu MiB of addresses and the kernel said: %s; "
		"make the heaps smaller (TERN_HEAP=64M), use fewer ranks or raise `ulimit -v`",
		j->size, j->bytes >> 20, strerror(errno));
	if (base != MAP_FAILED)
		munmap(base, j->bytes);
	j->base = NULL;
	return rc;
}

/* The pools begin behind the front. */
static int job_attach(struct job *j, int protection)
{
	bool all;
	int rc = commit_core(&all);
	if (!rc)
		rc = job_map_bytes(j, protection);
	if (rc)
		return rc;
	commit_dump(j, j->pool.at, all);
	job_lay_out(j, j->heap_bytes);
	return 0;
}

int job_identity_make(uint64_t *id, uint8_t key[JOB_KEY])
{
	if (getrandom(id, sizeof *id, 0) == sizeof *id && getrandom(key, JOB_KEY, 0) == JOB_KEY)
		return 0;
	return error_set(-ENOTSUP, "the kernel has no random bytes for the key of a job");
}

/* The kernel would end this process by SIGXFSZ. Pages within the size are not limited. */
static int job_size(const struct job *j)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < j->bytes)
		return error_set(
			-EFBIG,
			"the memory of a job of %u ranks is a file of %zu MiB, most of it empty, "
			"and files may have %llu KiB here: raise `ulimit -f`, or set it in the "
			"program",
			j->size, j->bytes >> 20, (unsigned long long)limit.rlim_cur >> 10);
	if (ftruncate(j->fd, (off_t)j->bytes) != 0)
		return error_system("sizing the memory of a job of %u ranks", j->size);
	return 0;
}

static int job_make(struct job *j, uint64_t budget, uint64_t heap, bool grant)
{
	job_lay_out(j, heap);
	size_t front = j->pool.at;
	if (budget && budget < front)
		return error_set(
			-ENOMEM,
			"a job of %u ranks needs %zu KiB of memory to begin with and TERN_MEMORY "
			"allows %llu: raise it",
			j->size, front >> 10, (unsigned long long)budget >> 10);
	int rc = job_size(j);
	if (rc)
		return rc;
	char full[CGROUP_TEXT];
	if (!commit_fits(j, front)) {
		cgroup_tell(&j->cgroup, full);
		return error_set(-ENOMEM,
				 "a job of %u ranks needs %zu KiB to begin with, and %s: raise the "
				 "limit or use fewer ranks",
				 j->size, front >> 10, full);
	}
	if (fallocate(j->fd, 0, 0, (off_t)front) != 0)
		return error_set(-ENOMEM, "reserving %zu KiB for a job of %u ranks: %s",
				 front >> 10, j->size, strerror(errno));
	rc = job_attach(j, PROT_READ | PROT_WRITE);
	if (rc)
		return rc;
	*j->head = (struct job_head){
		.magic = JOB_MAGIC, .stamp = build_stamp, .size = j->size, .seats = j->seats
	};
	j->head->here = j->size;
	j->head->machines = 1;
	job_session_begin(j, wrap_first(32, 1)); /* past 32 bits, sessions and serials go on */
	for (uint32_t r = 0; r < j->size && wrap_distance(); r++)
		atomic_store(&j->rank[r].serial, wrap_first(32, 0));
	j->head->heap = heap;
	j->head->grant = grant;
	j->head->cores = cpu_count();
	j->head->budget = budget ? budget : budget_by_default(&j->cgroup);
	atomic_store(&j->head->committed, front);
	return job_identity_make(&j->head->id, j->head->key);
}

static int seats_wanted(uint32_t *seats)
{
	uint64_t wanted;
	int rc = setting_number(SETTING_WORKERS, &wanted);
	if (!rc && wanted > JOB_SEATS_MAX)
		rc = error_set(-EINVAL, "TERN_WORKERS is '%s'; a machine has at most %d workers",
			       setting_text(SETTING_WORKERS), JOB_SEATS_MAX);
	if (!rc)
		*seats = (uint32_t)wanted;
	return rc;
}

int job_create(struct job *j, uint32_t size, uint64_t budget)
{
	if (size < 1 || size > TERN_RANKS_MAX)
		return error_set(-ERANGE, "a job of %u ranks was asked for; it may have 1 to %d",
				 size, TERN_RANKS_MAX);
	uint64_t heap, grant;
	uint32_t seats;
	int rc = setting_number(SETTING_HEAP, &heap);
	if (!rc)
		rc = setting_number(SETTING_GRANT, &grant);
	if (!rc)
		rc = seats_wanted(&seats);
	if (!rc && heap > HEAP_MOST)
		rc = error_set(-EINVAL, "TERN_HEAP is '%s'; a rank's heap has at most 131072G",
			       setting_text(SETTING_HEAP));
	if (rc)
		return rc;
	*j = (struct job){ .size = size, .seats = seats, .fd = memfd_create("tern", MFD_CLOEXEC) };
	if (j->fd < 0)
		return error_system("making the memory of a job of %u ranks", size);
	cgroup_find(&j->cgroup);
	rc = job_make(j, budget, heap, grant != 0);
	if (rc)
		close(j->fd);
	return rc;
}

void job_spread(struct job *j, const uint32_t *machine, uint32_t mine, uint32_t machines)
{
	j->head->machine = mine;
	j->head->machines = machines;
	j->head->here = 0;
	for (uint32_t r = 0; r < j->size; r++) {
		j->rank[r].machine = machine[r];
		j->head->here += machine[r] == mine;
	}
}

void job_identify(struct job *j, uint64_t id, const uint8_t key[JOB_KEY])
{
	j->head->id = id;
	memcpy(j->head->key, key, JOB_KEY);
}

/* Lays it out from a copy: what the memory says may change when it has been checked. */
static int job_check(struct job *j, int fd)
{
	struct job_head head;
	struct stat st;
	if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || head.magic != JOB_MAGIC)
		return error_set(-EINVAL,
				 "TERN_JOB_FD names descriptor %d, which is not a job's memory; "
				 "start the program with `tern run`",
				 fd);
	if (head.stamp != build_stamp)
		return error_set(
			-EPROTO,
			"the job's memory was made by another build of Tern (%08x) than this "
			"program has (%08x): build tern and all programs from the same sources",
			head.stamp, build_stamp);
	if (head.size < 1 || head.size > TERN_RANKS_MAX || head.heap > HEAP_MOST ||
	    head.seats > JOB_SEATS_MAX)
		return error_set(
			-EINVAL,
			"the job's memory is damaged: it says %u ranks with heaps of %llu bytes",
			head.size, (unsigned long long)head.heap);
	j->size = head.size;
	j->seats = head.seats;
	job_lay_out(j, head.heap);
	/* A network may keep something of its own behind it. */
	if (fstat(fd, &st) != 0 || (size_t)st.st_size < j->bytes)
		return error_set(-EINVAL, "the job's memory has %lld bytes instead of %zu",
				 (long long)st.st_size, j->bytes);
	return 0;
}

static int job_map_as(struct job *j, int fd, int protection)
{
	*j = (struct job){ .fd = fd };
	cgroup_find(&j->cgroup);
	int rc = job_check(j, fd);
	return rc ? rc : job_attach(j, protection);
}

int job_map(struct job *j, int fd)
{
	return job_map_as(j, fd, PROT_READ | PROT_WRITE);
}

int job_view(struct job *j, int fd)
{
	return job_map_as(j, fd, PROT_READ);
}

void job_unmap(struct job *j)
{
	munmap(j->base, j->bytes);
	j->base = NULL;
}

void job_disown(struct job *j)
{
	const int protection = PROT_READ | PROT_WRITE,
		  how = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
	/* It fails where the descriptor is closed. */
	if (mmap(j->base, j->bytes, protection, how, j->fd, 0) == MAP_FAILED)
		mmap(j->base, j->bytes, protection, how | MAP_ANONYMOUS, -1, 0);
}

void job_forget(struct job *j)
{
	close(j->fd);
	j->fd = -1;
}

void job_needs(uint32_t size, struct job_needs *needs)
{
	struct job j = { .size = size };
	seats_wanted(&j.seats); /* where it is wrong, opening says so */
	job_lay_out(&j, 0);
	uint64_t pairs = (uint64_t)size * (size - 1);
	uint64_t neighbours = size < 3 ? pairs : (uint64_t)size * 2;
	needs->start = j.pool.at;
	uint64_t open = j.pool.at + size * round_up(SPARES * sizeof(struct block), PAGE),
		 pools = size * j.pool.bytes;
	needs->few_words = open + pairs / 2 * PAGE;
	needs->neighbours =
		open + pools + neighbours / 2 * PAGE + neighbours * sizeof(struct large_talk);
	needs->all_pairs = needs->few_words + pools + pairs * sizeof(struct large_talk);
}

size_t job_heap_at(const struct job *j, uint32_t rank)
{
	return j->heap_at + rank * j->heap_bytes;
}

struct stats *job_stats(const struct job *j, uint32_t rank)
{
	return job_part_in(j, &j->stats, rank);
}

int job_stats_begin(struct job *j, uint32_t rank)
{
	char what[64];
	snprintf(what, sizeof what, "counting at rank %u (TERN_STATS)", rank);
	int rc = job_commit(j, job_part_at(&j->stats, rank), j->stats.bytes, what);
	if (rc)
		return rc;
	struct moment now = world_used()->ticks ? moment_now() : (struct moment){ 0 };
	stats_set(&job_stats(j, rank)->begun_tick, now.tick);
	stats_set(&job_stats(j, rank)->begun_ns, now.ns);
	/* Release: whoever sees it may read the statistics. */
	atomic_store_explicit(&j->pulse[rank].counting, 1, memory_order_release);
	return 0;
}

void job_ring(struct job *j, uint32_t rank)
{
	_Atomic uint64_t *bell = job_bell(j, rank);
	uint64_t was = atomic_fetch_or(bell, BELL_RUNG);
	/* A worker sleeps on its bell, or not at all. */
	const struct job_rank *r = rank < j->size ? &j->rank[rank] : NULL;
	uint32_t port = r ? atomic_load(&r->port) : 0;
	if (was & BELL_ASLEEP && port)
		loopback_knock((uint16_t)port);
	else if (was & BELL_ASLEEP)
		futex_wake(bell);
	if (r && was & BELL_CALL)
		thread_signal(atomic_load(&r->pid), atomic_load(&r->thread),
			      atomic_load(&r->signal));
}

void job_tell(struct job *j, uint32_t rank)
{
	atomic_fetch_add(&j->rank[rank].serial, 1);
	loopback_knock((uint16_t)atomic_load(&j->head->notice));
}

enum rank_state job_rank_state(const struct job *j, uint32_t rank)
{
	return (enum rank_state)atomic_load(&j->rank[rank].state);
}

/* In words, from a table: strsignal() may allocate, and an interrupt may be asking. */
static const char *signal_text(int number)
{
#ifdef __GLIBC__
	const char *text = sigdescr_np(number);
#else
	const char *text = NULL;
#endif
	return text ? text : "a real-time signal, or an unknown one";
}

int job_rank_check(const struct job *j, uint32_t rank)
{
	int status = atomic_load(&j->rank[rank].status);
	struct job_end end;
	if (job_rank_state(j, rank) > RANK_OPEN && job_end_read(j, &end))
		_exit(end.status);
	switch (job_rank_state(j, rank)) {
	case RANK_EXPECTED:
	case RANK_OPEN:
		return 0;
	case RANK_CLOSED:
		return error_set(-ESHUTDOWN, "rank %u has closed its endpoint", rank);
	case RANK_GONE:
		return error_set(-ESHUTDOWN, "rank %u has ended (exit status 0)", rank);
	case RANK_DEAD:
		break;
	}
	if (status == STATUS_LOST)
		return error_set(-EOWNERDEAD,
				 "rank %u is taken for dead: its machine is not heard of any more",
				 rank);
	if (WIFSIGNALED(status))
		return error_set(-EOWNERDEAD, "rank %u is dead: killed by signal %d (%s)", rank,
				 WTERMSIG(status), signal_text(WTERMSIG(status)));
	if (status == STATUS_UNKNOWN || status == 0)
		return error_set(-EOWNERDEAD,
				 "rank %u is dead: its process ended without tern_close()", rank);
	return error_set(-EOWNERDEAD, "rank %u is dead: it ended with exit status %d", rank,
			 WEXITSTATUS(status));
}

/* -- Names of handlers, for whoever looks at the memory from outside ------------------------- */

enum { NAME_NONE, NAME_BEING_WRITTEN, NAME_WRITTEN };

static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

const char *job_name_in(const char *text)
{
	const char *name = text && *text == '&' ? text + 1 : text;
	if (!name || !*name || (*name >= '0' && *name <= '9'))
		return NULL;
	for (const char *c = name; *c; c++)
		if (!is_of_name(*c))
			return NULL;
	return name;
}

void job_name_set(struct job *j, unsigned id, const char *name)
{
	struct job_name *n = &j->name[id];
	uint32_t none = NAME_NONE;
	if (!atomic_compare_exchange_strong(&n->state, &none, NAME_BEING_WRITTEN))
		return;
	memcpy(n->text, name, strnlen(name, sizeof n->text - 1));
	/* name.R10, release; acquired in job_name_get(): whoever sees the state sees the text. */
	atomic_store_explicit(&n->state, NAME_WRITTEN, memory_order_release);
}

bool job_name_get(const struct job *j, unsigned id, char text[JOB_NAME])
{
	const struct job_name *n = &j->name[id];
	if (atomic_load_explicit(&n->state, memory_order_acquire) != NAME_WRITTEN) /* name.R10 */
		return false;
	memcpy(text, n->text, JOB_NAME);
	text[JOB_NAME - 1] = '\0';
	return job_name_in(text) == text; /* the memory may have been written over */
}
