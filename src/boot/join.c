/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joining asks the launcher's process manager for two things: this rank and the number of ranks,
 * and the exchange of one card from each rank to all. A card says which process its rank is, which
 * machine it is on, at which sockets it listens in case it is the lowest rank there (as leader, and
 * for its link), and whether there is a fabric. After that the manager is not needed: links notice
 * who dies.
 *
 * The manager is closed at once, so that a rank may end as it likes afterwards. PMIx is closed with
 * the endpoint, because MPI in the same process shares it, and Open MPI's mpirun lets nobody in
 * again who has left. mpirun also calls it an improper end if a process leaves
 * PMIx open, so one that returns without tern_close() closes it on its way out.
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
#include "base/kernel.h"
#include "base/setting.h"
#include "boot/leader.h"
#include "boot/link/link.h"

/* -- Which machine this is ------------------------------------------------------------------ */

/*
 * A number that the kernel makes when it starts, so it differs between machines and between boots.
 */
static int boot_id_read(char *text, size_t room)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	FILE *f = fopen(path, "re");
	bool good = f && fgets(text, (int)room, f);
	if (f)
		fclose(f);
	if (!good)
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

struct card {
	struct machine_id machine;
	struct leader_address leader; /* its socket, in case it is the lowest rank of its machine */
	struct process_name process;
	struct sockaddr_in6 link; /* family 0: no socket could be had */
	uint32_t fabric;          /* whether its machine has one */
	uint64_t id;              /* rank 0's is the job's, */
	uint8_t key[JOB_KEY];
};
_Static_assert(sizeof(struct card) <= PMI_CARD_MAX,
	       "a card must fit a value of the launcher's table");

/* A job that is being joined. */
struct joining {
	const struct pmi_ops *pmi;
	uint32_t rank, size;
	struct card *card; /* one a rank */
	/* One a rank: the number of its machine, in the order of their lowest ranks. */
	uint32_t *machine;
	uint32_t machines;
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
		rc = leader_listen(&j->socket, &c->leader);
	if (!rc)
		rc = job_identity_make(&c->id, c->key);
	listener_open(j, c);
	return rc;
}

/* The lowest rank on the machine of `rank`. */
static uint32_t leader_of(const struct joining *j, uint32_t rank)
{
	uint32_t leader = 0;
	while (!machine_id_same(&j->card[leader].machine, &j->card[rank].machine))
		leader++;
	return leader;
}

static void machines_count(struct joining *j)
{
	for (uint32_t r = 0; r < j->size; r++) {
		uint32_t leader = leader_of(j, r);
		j->machine[r] = leader < r ? j->machine[leader] : j->machines++;
	}
}

/* Where each machine's link can be called: its lowest rank opened that socket. */
static int link_addresses(const struct joining *j, struct sockaddr_in6 *address)
{
	if (j->machines > 1 && j->listener < 0) {
		error_restore(&j->deaf);
		return j->deaf.rc;
	}
	for (uint32_t r = 0; r < j->size; r++) {
		if (leader_of(j, r) != r)
			continue;
		address[j->machine[r]] = j->card[r].link;
		if (j->machines > 1 && !j->card[r].link.sin6_family)
			return error_set(
				-ENOTSUP,
				"rank %u on %.63s cannot reach other machines, and says why", r,
				j->card[r].machine.host);
	}
	return 0;
}

/* The machine's link begins before anybody else has the memory: from then on deaths are noticed. */
static int link_start_first(struct job *job, void *arg)
{
	const struct joining *j = arg;
	struct sockaddr_in6 *address = calloc(j->machines, sizeof *address);
	struct link_plan plan = { .job = job,
				  .launcher = process_launcher(j->pmi->sign),
				  .listener = j->machines > 1 ? j->listener : -1,
				  .address = address };
	bool fabric = true;
	for (uint32_t r = 0; r < j->size; r++)
		fabric &= j->card[r].fabric != 0;
	job_fabric_agreed(job, fabric);
	int rc = address ? link_addresses(j, address)
			 : error_set(-ENOMEM, "joining %u ranks: no memory", j->size);
	if (!rc)
		rc = link_begin(&plan);
	free(address);
	return rc;
}

static int join_as_leader(struct joining *j)
{
	struct process_name *process = calloc(j->size, sizeof *process);
	struct leader_plan plan = { .size = j->size,
				    .machine = j->machine,
				    .machines = j->machines,
				    .id = j->card[0].id,
				    .process = process,
				    .begin = link_start_first,
				    .arg = j };
	if (!process)
		return error_set(-ENOMEM, "joining %u ranks: no memory", j->size);
	memcpy(plan.key, j->card[0].key, sizeof plan.key);
	for (uint32_t r = 0; r < j->size; r++)
		process[r] = j->card[r].process;
	int rc = leader_share(j->socket, &j->card[j->rank].leader, j->rank, &plan, j->job);
	free(process);
	return rc;
}

static int memory_get(struct joining *j)
{
	const struct card *lowest = &j->card[leader_of(j, j->rank)];
	const struct leader_name leader = { .rank = (uint32_t)(lowest - j->card),
					    .address = lowest->leader,
					    .process = lowest->process };
	return leader.rank == j->rank ? join_as_leader(j) : leader_join(&leader, j->rank, j->job);
}

static int cards_exchange(struct joining *j, bool fabric)
{
	struct card mine;
	int rc = card_make(j, &mine, fabric);
	if (!rc)
		rc = pmi_gather(j->pmi, j->rank, j->size, "card", &mine, sizeof mine, j->card);
	return rc;
}

static void joining_close(const struct joining *j)
{
	if (j->socket >= 0)
		close(j->socket);
	if (j->listener >= 0)
		close(j->listener);
	free(j->machine);
	free(j->card);
}

static int join_others(const struct pmi_ops *pmi, uint32_t rank, uint32_t size, bool fabric,
		       struct job *job)
{
	struct joining j = {
		.pmi = pmi, .rank = rank, .size = size, .socket = -1, .listener = -1, .job = job
	};
	j.card = calloc(size, sizeof *j.card);
	j.machine = calloc(size, sizeof *j.machine);
	int rc = j.card && j.machine ? cards_exchange(&j, fabric)
				     : error_set(-ENOMEM, "joining %u ranks: no memory", size);
	if (!rc) {
		machines_count(&j);
		rc = memory_get(&j);
	}
	joining_close(&j);
	return rc;
}

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
	struct job *job;
	uint32_t rank;
	pid_t pid;
} kept;

void join_leave(void)
{
	if (kept.pid != getpid())
		return;
	if (kept.job)
		link_settle(kept.job, kept.rank);
	if (kept.manager)
		kept.manager->close();
	kept.manager = NULL;
}

void join_abort(int status)
{
	if (kept.pid == getpid() && kept.manager)
		pmi_abort(status);
}

static void manager_keep(const struct pmi_ops *manager)
{
	kept.manager = manager;
	pmi_abort_prepare(manager);
	atexit(join_leave);
}

static int join_once(struct joined *j, bool (*fabric)(void))
{
	struct boot *b = &j->boot;
	barrier_register(); /* cheap only before the manager's library starts threads */
	int rc = pmi_open(j->through, &b->rank, &b->size);
	if (rc)
		return rc;
	b->fd = -1;
	if (b->size > TERN_RANKS_MAX)
		rc = error_set(-ERANGE, "a job of %u ranks was started; it may have %d", b->size,
			       TERN_RANKS_MAX);
	else if (b->rank >= b->size)
		rc = error_set(-EPROTO, "%s says that this is rank %u of %u, which there cannot be",
			       j->through->name, b->rank, b->size);
	else if (b->size > 1)
		rc = join_others(j->through, b->rank, b->size, fabric && fabric(), &j->job);
	kept.pid = getpid();
	if (j->through->shared && !pmi_waits())
		manager_keep(j->through);
	else if (!pmi_waits())
		j->through->close();
	if (rc || b->size == 1)
		return rc;
	b->fd = j->job.fd;
	kept.job = &j->job;
	kept.rank = b->rank;
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
