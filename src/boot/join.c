/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joining asks the launcher's process manager for two things: this rank and the number of ranks,
 * and the exchange of one card from each rank to all. A card says which process its rank is, which
 * machine it is on, at which sockets it listens in case it is the lowest rank there (as leader, and
 * for its link), and whether there is a fabric. After that the manager is not needed: links notice
 * who dies.
 *
 * The manager is closed at once, so that a rank may end as it likes afterwards, if it is ours
 * alone. PMIx counts who has it open, and ends jobs, so it is closed with the endpoint, and at once
 * if it was open before. The others can be closed once for the whole process: where there is MPI,
 * they are left to it, or, if it never comes, closed when the process returns from main().
 * Launchers call it an improper end if a process leaves them open.
 *
 * A program may exchange the cards by itself: then no manager is asked.
 */
#include "boot/join.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/error.h"
#include "base/file.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "boot/leader.h"
#include "boot/link/link.h"
#include "boot/pmi/mpi.h"

/* -- Which machine this is ------------------------------------------------------------------ */

/*
 * A number that the kernel makes when it starts, so it differs between machines and between boots.
 */
static int boot_id_read(char *text, size_t room)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	if (!file_text(path, text, room))
		return error_set(-ENOTSUP,
				 "%s cannot be read: mount /proc, or start the job with `tern run`",
				 path);
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

static unsigned long long namespace_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (unsigned long long)st.st_ino : 0;
}

int machine_id_read(struct machine_id *m)
{
	char boot[48];
	const char *said = setting_text(SETTING_MACHINE);
	*m = (struct machine_id){ .id = "" }; /* to the last byte: it is compared and sent */
	int rc = boot_id_read(boot, sizeof boot);
	if (rc)
		return rc;
	snprintf(m->id, sizeof m->id, "%s %llx %llx", boot, namespace_of("/proc/self/ns/pid"),
		 namespace_of("/proc/self/ns/net"));
	if (*said)
		snprintf(m->id, sizeof m->id, "said %s", said);
	gethostname(m->host, sizeof m->host - 1);
	return 0;
}

bool machine_id_same(const struct machine_id *a, const struct machine_id *b)
{
	return strncmp(a->id, b->id, sizeof a->id) == 0;
}

/* -- Cards ---------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct card) <= PMI_CARD_MAX,
	       "a card must fit a value of the launcher's table");

/* A job that is being joined. */
struct joining {
	const struct pmi_ops *pmi;   /* by which cards are exchanged, */
	const tern_options *options; /* or else by a function of the program's */
	struct process_name launcher;
	struct joiners all;
	int socket, listener;
	struct error_kept deaf; /* why there is no listener */
	struct job *job;
};

/* Of one machine it is closed unused. If it cannot be had, that is an error only with several. */
static void listener_open(struct joining *j, struct card *c)
{
	if (link_listen(&j->listener, &c->link) == 0)
		return;
	error_keep(&j->deaf);
	c->link = (struct sockaddr_in6){ 0 };
	j->listener = -1;
}

static int card_make(struct joining *j, struct card *c, bool fabric)
{
	*c = (struct card){ .process = { .pid = getpid(), .born = process_born(getpid()) },
			    .fabric = fabric };
	int rc = machine_id_read(&c->machine);
	if (!rc)
		rc = leader_listen(&j->socket, c->door);
	if (!rc)
		rc = job_identity_make(&c->id, c->key);
	listener_open(j, c);
	return rc;
}

/* The lowest rank on the machine of `rank`. */
static uint32_t leader_of(const struct joiners *all, uint32_t rank)
{
	uint32_t leader = 0;
	while (!machine_id_same(&all->card[leader].machine, &all->card[rank].machine))
		leader++;
	return leader;
}

static void machines_count(struct joiners *all)
{
	for (uint32_t r = 0; r < all->size; r++) {
		uint32_t leader = leader_of(all, r);
		all->machine[r] = leader < r ? all->machine[leader] : all->machines++;
	}
}

/* Whether each machine's link can be called: its lowest rank opened that socket. */
static int link_check(const struct joining *j)
{
	const struct joiners *all = &j->all;
	if (all->machines > 1 && j->listener < 0) {
		error_restore(&j->deaf);
		return j->deaf.rc;
	}
	for (uint32_t r = 0; all->machines > 1 && r < all->size; r++)
		if (leader_of(all, r) == r && !all->card[r].link.sin6_family)
			return error_set(
				-ENOTSUP,
				"rank %u on %.63s cannot reach other machines, and says why", r,
				all->card[r].machine.host);
	return 0;
}

/* The machine's link begins before anybody else has the memory: from then on deaths are noticed. */
static int link_start_first(struct job *job, void *arg)
{
	const struct joining *j = arg;
	bool fabric = true;
	for (uint32_t r = 0; r < j->all.size; r++)
		fabric &= j->all.card[r].fabric != 0;
	job_fabric_agreed(job, fabric);
	job->head->launcher = j->launcher;
	int rc = link_check(j);
	return rc ? rc
		  : link_begin(job, j->all.machines > 1 ? j->listener : -1, j->options != NULL);
}

static int memory_get(struct joining *j)
{
	uint32_t leader = leader_of(&j->all, j->all.rank);
	return leader == j->all.rank ? leader_share(j->socket, &j->all, link_start_first, j, j->job)
				     : leader_join(&j->all, leader, j->job);
}

static int cards_gather(struct joining *j, const struct card *mine)
{
	const tern_options *o = j->options;
	if (j->pmi)
		return pmi_gather(j->pmi, j->all.rank, j->all.size, "card", mine, sizeof *mine,
				  j->all.card);
	int rc = o->allgather(o->allgather_arg, mine, j->all.card, sizeof *mine);
	return !rc ? 0
		   : error_set(
			     rc < 0 ? rc : -EPROTO,
			     "tern_options.allgather, by which %u ranks were to join, returned %d",
			     j->all.size, rc);
}

/* A rank that cannot join says so with an empty card: the others would wait for it. */
static int cards_exchange(struct joining *j, bool fabric)
{
	struct card mine;
	struct error_kept said;
	int rc = card_make(j, &mine, fabric);
	if (rc) {
		error_keep(&said);
		mine = (struct card){ .fabric = 0 };
	}
	int gathered = cards_gather(j, &mine);
	if (rc) {
		error_restore(&said);
		return rc;
	}
	for (uint32_t r = 0; !gathered && r < j->all.size; r++)
		if (!j->all.card[r].process.pid)
			return error_set(-ENOTSUP, "rank %u cannot join, and says why", r);
	return gathered;
}

static void joining_close(const struct joining *j)
{
	if (j->socket >= 0)
		close(j->socket);
	if (j->listener >= 0)
		close(j->listener);
	free(j->all.machine);
	free(j->all.card);
}

static int join_others(struct joining *j, bool fabric)
{
	j->socket = j->listener = -1;
	struct joiners *all = &j->all;
	all->card = calloc(all->size, sizeof *all->card);
	all->machine = calloc(all->size, sizeof *all->machine);
	int rc = all->card && all->machine
			 ? cards_exchange(j, fabric)
			 : error_set(-ENOMEM, "joining %u ranks: no memory", all->size);
	if (!rc) {
		machines_count(all);
		rc = memory_get(j);
	}
	joining_close(j);
	return rc;
}

static int ranks_check(uint32_t rank, uint32_t size, const char *who)
{
	if (size > TERN_RANKS_MAX)
		return error_set(-ERANGE, "a job of %u ranks was started; it may have %d", size,
				 TERN_RANKS_MAX);
	if (rank >= size)
		return error_set(-EPROTO,
				 "%s says that this is rank %u of %u, which there cannot be", who,
				 rank, size);
	return 0;
}

/* -- Through a process manager -------------------------------------------------------------- */

/* What came of joining, through each process manager that was tried. */
struct joined {
	const struct pmi_ops *through;
	struct boot boot;
	struct job job;
	int rc;
	struct error_kept said;
};

/*
 * A manager to be closed later, the job, and the process that has to: a child that it forks has
 * not.
 */
static struct {
	const struct pmi_ops *manager;
	bool open; /* by us */
	struct job *job;
	pid_t pid;
} kept;

/* Whether the manager can be closed without taking it from MPI. */
static bool manager_free(bool returning)
{
	enum mpi_use use = mpi_use();
	if (kept.manager->counts)
		return returning || use != MPI_USE_NOT_YET;
	return use == MPI_USE_NONE || (returning && use != MPI_USE_ACTIVE);
}

static void manager_leave(bool returning)
{
	if (kept.pid != getpid())
		return;
	if (kept.job)
		link_settle(kept.job);
	if (!kept.manager || !manager_free(returning))
		return;
	if (kept.open)
		kept.manager->close();
	kept.manager = NULL;
}

void boot_left(void)
{
	manager_leave(false);
}

static void join_return(void)
{
	manager_leave(true);
}

void boot_abort(int status)
{
	if (kept.pid == getpid() && kept.manager)
		pmi_abort(status);
}

static void manager_keep(const struct pmi_ops *manager, bool theirs)
{
	kept.manager = manager;
	kept.open = !theirs;
	if (theirs)
		manager->close(); /* we were counted: what is left is as it was */
	pmi_abort_prepare(manager);
	atexit(join_return);
}

static int join_finalized(void)
{
	return error_set(-ESHUTDOWN,
			 "MPI_Finalize() was called in this process, and with it MPI has left the "
			 "launcher: call tern_open() before it");
}

static int join_once(struct joined *j, bool (*fabric)(void))
{
	struct boot *b = &j->boot;
	const struct pmi_ops *pmi = j->through;
	enum mpi_use use = mpi_use();
	if (use == MPI_USE_OVER)
		return join_finalized();
	barrier_register(); /* cheap only before the manager's library starts threads */
	bool theirs = pmi->open_already && pmi->open_already();
	int rc = pmi_open(pmi, &b->rank, &b->size);
	if (rc)
		return rc;
	b->fd = -1;
	struct joining joining = { .pmi = pmi,
				   .all = { .rank = b->rank, .size = b->size },
				   .job = &j->job };
	rc = ranks_check(b->rank, b->size, pmi->name);
	joining.launcher = process_launcher(pmi->sign);
	if (!rc && b->size > 1)
		rc = join_others(&joining, fabric && fabric());
	kept.pid = getpid();
	if (!pmi_waits() && (pmi->counts || use != MPI_USE_NONE))
		manager_keep(pmi, theirs);
	else if (!pmi_waits())
		pmi->close();
	if (rc || b->size == 1)
		return rc;
	b->fd = j->job.fd;
	kept.job = &j->job;
	return 0;
}

/*
 * Once: the others come once, and to try again alone would be to wait for ever. So a
 * later session finds what the first one found, be it an error.
 */
int join_through(const struct pmi_ops *pmi, struct boot *b, bool (*fabric)(void))
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct joined tried[PMI_PROTOCOLS];
	struct joined *j = tried;
	pthread_mutex_lock(&lock);
	while (j->through && j->through != pmi)
		j++;
	if (!j->through) {
		j->through = pmi;
		j->rc = join_once(j, fabric);
		error_keep(&j->said);
	}
	pthread_mutex_unlock(&lock);
	*b = j->boot;
	if (j->rc)
		error_restore(&j->said);
	return j->rc;
}

/* -- Through the program -------------------------------------------------------------------- */

static int gathered_check(const tern_options *o)
{
	if (!o->allgather)
		return error_set(-EINVAL,
				 "tern_options.rank and size are those of tern_options.allgather, "
				 "which is NULL");
	if (o->rank >= o->size)
		return error_set(
			-EINVAL,
			"tern_options has rank %u and size %u, and ranks are 0 to size - 1",
			o->rank, o->size);
	return ranks_check(o->rank, o->size, "tern_options");
}

/* Whose end is that of the ranks, if another launcher or `tern run` has started them. */
static struct process_name launcher_find(void)
{
	const char *sign =
		setting_given(SETTING_JOB_FD) ? setting_table[SETTING_JOB_FD].name : NULL;
	for (int i = 0; !sign && i < PMI_PROTOCOLS; i++)
		if (getenv(pmi_table[i]->sign))
			sign = pmi_table[i]->sign;
	return sign ? process_launcher(sign) : (struct process_name){ .pid = 0 };
}

int join_gathered(const tern_options *o, struct boot *b, bool (*fabric)(void))
{
	struct job job;
	struct joining j = { .options = o,
			     .all = { .rank = o->rank, .size = o->size },
			     .job = &job };
	*b = (struct boot){ .rank = o->rank, .size = o->size, .fd = -1 };
	int rc = gathered_check(o);
	if (rc || o->size == 1)
		return rc;
	barrier_register();
	j.launcher = launcher_find();
	rc = join_others(&j, fabric && fabric());
	if (rc)
		return rc;
	b->fd = job.fd;
	b->gathered = true;
	job_unmap(&job); /* whoever opens the endpoint maps it */
	return 0;
}

/* Nobody opens this job again: its link need not wait for the end of this process. */
void boot_left_gathered(struct job *job, uint32_t rank)
{
	job_rank_ended(job, rank, 0);
	link_settle(job);
}
