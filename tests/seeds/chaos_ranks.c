/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chaos_ranks SEED FILE: a rank of a job that chaos_test.c has drawn from the seed. Every rank
 * sends every rank messages whose contents follow from the seed, and checks each that arrives;
 * where the seed says so, it posts as many gathered items, which have an order of their own. It
 * dies, leaves, stops, forks and resets connections where the seed says so. Every call must succeed
 * or name a rank that the seed lets die. FILE holds a counter for each rank: the driver sees
 * progress there.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tern/post.h>

#include "chaos.h"
#include "chaos_message.h"
#include "lib/handed.h"

static const char *const way_names[] = { "message", "item" };

static struct chaos draw;
static uint32_t me, session;
static uint64_t *beat; /* [rank] what the driver takes for progress */
static struct chance chance;

static struct {
	/* `answered` counts messages, those that asked nothing too. */
	uint32_t got[WAYS][CHAOS_RANKS], answered[WAYS][CHAOS_RANKS];
	bool dead[CHAOS_RANKS], left[CHAOS_RANKS]; /* what this rank was told */
	bool deaf[CHAOS_RANKS]; /* a request was refused: nothing more is sent there */
	const tern_msg *kept;
	_Atomic uint64_t event; /* something arrived, or a rank was lost */
} s;

__attribute__((noreturn, format(printf, 1, 2))) static void broken(const char *format, ...)
{
	char text[600];
	int n = snprintf(text, sizeof text, "BROKEN: rank %u, session %u: ", me, session);
	va_list list;
	va_start(list, format);
	n += vsnprintf(text + n, sizeof text - 1 - (size_t)n, format, list);
	va_end(list);
	if (n > (int)sizeof text - 2)
		n = (int)sizeof text - 2;
	text[n++] = '\n';
	(void)!write(STDOUT_FILENO, text, (size_t)n); /* at once, and from a signal handler too */
	_exit(CHAOS_BROKEN);
}

/* -- What a call may say ----------------------------------------------------------- */

__attribute__((noreturn)) static void end(const char *how, const char *call, int rc, int status)
{
	printf("rank %u %s: %s: %s\n", me, how, call, tern_strerror(rc));
	fflush(stdout);
	_exit(status);
}

static bool limit_said(int rc)
{
	return rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS || rc == -ENOSPC ||
	       rc == -EAGAIN;
}

/* The rank that a sentence names, or the first of several: "ranks 1, 2 ended before joining". */
static uint32_t named(const char *call, int rc)
{
	const char *sentence = tern_strerror(rc),
		   *at = strstr(sentence, rc == -EHOSTUNREACH ? "reach rank " : "rank");
	unsigned rank = CHAOS_RANKS;
	if (at && rc == -EHOSTUNREACH)
		at += strlen("reach "); /* "rank 4 cannot reach rank 5": the second is meant */
	if (!at || (sscanf(at, "rank %u", &rank) != 1 && sscanf(at, "ranks %u", &rank) != 1) ||
	    rank >= draw.ranks)
		broken("%s names no rank: %s", call, sentence);
	return rank;
}

/*
 * Success, or an error that the seed explains; then it says which rank was named, else CHAOS_RANKS.
 */
static uint32_t allowed(const char *call, int rc)
{
	int said = rc;
	beat[me]++;
	if (rc == 0)
		return CHAOS_RANKS;
	if (draw.limit && limit_said(rc))
		end("is limited", call, rc, CHAOS_LIMITED);
	if (rc == -EHOSTUNREACH && chaos_breaks_ofi(&draw) && named(call, rc) < draw.ranks)
		end("cannot go on", call, rc, CHAOS_GAVE_UP);
	if (rc == -EHOSTUNREACH && strstr(draw.net, "ofi"))
		rc = -EOWNERDEAD; /* its connections ended before anybody knew that it has */
	if (rc != -EOWNERDEAD && rc != -ESHUTDOWN)
		broken("%s: %d: %s", call, rc, tern_strerror(rc));
	uint32_t rank = named(call, said);
	if (rc == -EOWNERDEAD ? !chaos_may_die(&draw, rank)
			      : !chaos_may_leave(&draw, rank) && !draw.deaths)
		broken("%s blames rank %u, which lives: %s", call, rank, tern_strerror(rc));
	return rank;
}

static void lost(tern *t, uint32_t rank, int why, void *arg)
{
	(void)arg;
	if (why == -EOWNERDEAD && !chaos_may_die(&draw, rank))
		broken("it was told that rank %u has died, which lives", rank);
	if (why == -EHOSTUNREACH && chaos_breaks_ofi(&draw))
		end("cannot go on", "tern_lost_on", why, CHAOS_GAVE_UP);
	if (why == -EOWNERDEAD)
		s.dead[rank] = true;
	else
		s.left[rank] = true;
	beat[me]++;
	tern_forgive(t, rank);
	tern_signal(t, &s.event, 1);
}

/* -- Messages ----------------------------------------------------------------------- */

static struct message message_of(enum way way, uint32_t from, uint32_t to, uint32_t i)
{
	return message_drawn(draw.seed, session, way, from, to, i);
}

static int message_answer(tern *t, const tern_msg *m, const struct message *l, uint32_t i)
{
	static unsigned char bytes[TERN_PAYLOAD_MAX];
	uint64_t w[TERN_WORDS_MAX];
	for (unsigned k = 0; k < l->answer_n; k++)
		w[k] = answer_word(l, i, k);
	unsigned id = handler_id(l->way, ANSWER);
	if (!l->answer_payload)
		return tern_reply_array(t, m, id, l->answer_n, w);
	chance_fill(bytes, l->answer_len, l->number + 1);
	return tern_reply_data_array(t, m, id, bytes, l->answer_len, l->answer_n, w);
}

static void message_check(const struct message *l, const tern_msg *m, bool asks)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	bool good = l->asks == asks && tern_msg_count(m) == l->n && (data != NULL) == l->payload &&
		    len == (l->payload ? l->len : 0);
	for (unsigned k = 0; good && k < l->n; k++)
		good = tern_msg_word(m, k) == l->word[k];
	if (!good || (data && !chance_filled(data, len, l->number)))
		broken("%s %u from rank %u is not what was sent: lost, doubled, out of order "
		       "or changed",
		       way_names[l->way], s.got[l->way][tern_msg_src(m)], tern_msg_src(m));
}

static void keep(tern *t, const tern_msg *m)
{
	if (s.kept ||
	    draw.delivery[me] == 2) /* tern_msg_keep() allocates, and a signal handler must not */
		return;
	s.kept = handed_keep(t, m);
	if (!s.kept)
		broken("tern_msg_keep: %s", tern_strerror(-errno));
}

static void take(tern *t, const tern_msg *m)
{
	unsigned handler = tern_msg_handler(m);
	enum way way = handler / HANDLERS;
	bool exact, asks = handler % HANDLERS == ASK;
	uint32_t from = tern_msg_src(m), i = s.got[way][from];
	struct message l = message_of(way, from, me, i);
	if (i >= chaos_sends(&draw, from, session, &exact))
		broken("rank %u sent more than there are: %s %u", from, way_names[way], i);
	message_check(&l, m, asks);
	s.got[way][from] = i + 1;
	beat[me]++;
	if (asks) {
		int rc = message_answer(t, m, &l, i);
		if (rc)
			allowed("tern_reply", rc);
	} else if (i % 16 == 0) {
		keep(t, m);
	}
	tern_signal(t, &s.event, 1);
}

static void skip_untold(enum way way, uint32_t from)
{
	uint32_t *answered = &s.answered[way][from];
	while (*answered < draw.messages && !message_of(way, me, from, *answered).asks)
		++*answered;
}

static void on_answer(tern *t, const tern_msg *m)
{
	enum way way = tern_msg_handler(m) / HANDLERS;
	uint32_t from = tern_msg_src(m), *answered = &s.answered[way][from];
	skip_untold(way, from);
	if (*answered >= draw.messages)
		broken("rank %u has answered more than it was asked", from);
	struct message l = message_of(way, me, from, *answered);
	size_t len;
	const void *data = tern_msg_data(m, &len);
	bool good = tern_msg_count(m) == l.answer_n && (data != NULL) == l.answer_payload &&
		    len == (l.answer_payload ? l.answer_len : 0);
	for (unsigned k = 0; good && k < l.answer_n; k++)
		good = tern_msg_word(m, k) == answer_word(&l, *answered, k);
	if (!good || (data && !chance_filled(data, len, l.number + 1)))
		broken("the answer of rank %u to %s %u is not what was sent", from, way_names[way],
		       *answered);
	++*answered;
	beat[me]++;
	tern_signal(t, &s.event, 1);
}

static int message_send(tern *t, uint32_t to, const struct message *l)
{
	unsigned char bytes[TERN_REQUEST_MAX];
	unsigned id = handler_id(l->way, l->asks ? ASK : TELL);
	const uint64_t *w = l->word;
	if (l->way == POSTED)
		return tern_post_array(t, to, id, l->n, w);
	if (!l->payload)
		return tern_request_array(t, to, id, l->n, w);
	if (!l->claimed) {
		chance_fill(bytes, l->len, l->number);
		return tern_request_data_array(t, to, id, bytes, l->len, l->n, w);
	}
	void *claim = handed_claim(t, to, l->len);
	if (!claim)
		return -errno;
	chance_fill(claim, l->len, l->number);
	return tern_commit_array(t, claim, id, l->n, w);
}

/* -- What a rank does to itself ----------------------------------------------------- */

static void nap(uint32_t us)
{
	struct timespec length = { us / 1000000, (long)(us % 1000000) * 1000 };
	while (nanosleep(&length, &length) != 0 && errno == EINTR)
		;
}

/* A child that waits until its parent is stopped, then some time, and lets it go on. */
static void stop_for(uint32_t ms)
{
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		char path[40], text[400] = "";
		snprintf(path, sizeof path, "/proc/%d/stat", parent);
		while (getppid() == parent && !strstr(text, ") T ")) {
			int fd = open(path, O_RDONLY);
			(void)!read(fd, text, sizeof text - 1);
			close(fd);
			nap(1000);
		}
		nap(ms * 1000);
		kill(getppid() == parent ? parent : getpid(), SIGCONT);
		_exit(0);
	}
	if (child > 0)
		raise(SIGSTOP);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static void kill_after(uint32_t us)
{
	pid_t parent = getpid(), child = fork();
	if (child != 0)
		return;
	nap(us);
	if (getppid() == parent)
		kill(parent, SIGKILL);
	_exit(0);
}

static void child_uses(tern *t)
{
	int rc[] = { tern_request(t, 0, TELL), tern_poll(t), tern_barrier(t), tern_close(t) };
	for (unsigned i = 0; i < sizeof rc / sizeof *rc; i++)
		if (rc[i] != -EPERM)
			broken("call %u of a child of fork() returns %d", i, rc[i]);
}

static void fork_child(tern *t)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		if (draw.fork == FORK_EXECS)
			execl("/bin/true", "true", (char *)NULL);
		if (draw.fork == FORK_USES)
			child_uses(t);
		_exit(0);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child > 0 && status != 0)
		broken("a child of fork() ended with status %d", status);
}

/* As if the network had reset every connection of this rank with others. */
static void reset_connections(void)
{
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof peer, type_len = sizeof(int);
		int type = 0;
		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 &&
		    type == SOCK_STREAM && getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
		    peer.ss_family == AF_INET)
			shutdown(fd, SHUT_RDWR);
	}
}

/* What the seed has for this rank before its i-th messages. Whether it goes on. */
static bool meet_fate(tern *t, uint32_t i)
{
	const struct chaos_death *death = chaos_death_of(&draw, me);
	if (me == draw.stop_rank && draw.stop_ms && session == 0 && i == draw.stop_at)
		stop_for(draw.stop_ms);
	if (me == draw.fork_rank && draw.fork && session == 0 && i == draw.fork_at)
		fork_child(t);
	if (me == draw.reset_rank && session == 0 && i == draw.reset_at)
		reset_connections();
	if (!death || death->session != session || i != death->at)
		return true;
	switch (death->how) {
	case DIES_RUNNING:
		raise(SIGKILL);
		break;
	case DIES_ANYWHERE:
		kill_after(death->us);
		break;
	case EXITS:
		_exit(CHAOS_EXITED);
	case RETURNS:
		_exit(0);
	case LEAVES:
		return false;
	default:
		break;
	}
	return true;
}

/* -- A session ---------------------------------------------------------------------- */

static void drop_kept(tern *t)
{
	tern_hold(t);
	const tern_msg *kept = s.kept;
	s.kept = NULL;
	tern_release(t);
	if (kept)
		allowed("tern_msg_drop", tern_msg_drop(t, kept));
}

static void send_one(tern *t, enum way way, uint32_t to, uint32_t i)
{
	if (s.deaf[to])
		return;
	struct message l = message_of(way, me, to, i);
	int rc = message_send(t, to, &l);
	uint32_t rank = allowed(way == POSTED ? "a post" : "a request", rc);
	if (rank == CHAOS_RANKS)
		return;
	if (rank != to || (rc == -ESHUTDOWN && !chaos_may_leave(&draw, to)))
		broken("a %s to rank %u says: %s", way_names[way], to, tern_strerror(rc));
	s.deaf[to] = true;
}

/* Of requests and items to each rank, the i-th. */
static void send_each(tern *t, uint32_t i)
{
	for (uint32_t to = 0; to < draw.ranks; to++)
		send_one(t, REQUESTED, to, i);
	for (uint32_t to = 0; draw.posts && to < draw.ranks; to++)
		send_one(t, POSTED, to, i);
	if (draw.posts && chance_one_in(&chance, 16))
		allowed("tern_post_flush", tern_post_flush(t));
}

/* Sends everything, unless the seed has this rank leave before; whether it stayed. */
static bool send_all(tern *t)
{
	for (uint32_t i = 0; i < draw.messages; i++) {
		if (!meet_fate(t, i))
			return false;
		send_each(t, i);
		if (chance_one_in(&chance, 8))
			nap(chance_below(&chance, 300));
		if (chance_one_in(&chance, 4)) {
			int rc = tern_poll(t);
			allowed("tern_poll", rc < 0 ? rc : 0);
		}
		drop_kept(t);
	}
	return true;
}

/* Whether all that a rank sends, and all its answers, are there. */
static bool there_from(enum way way, uint32_t r, uint32_t sends)
{
	skip_untold(way, r);
	return s.got[way][r] == sends &&
	       (s.answered[way][r] == draw.messages || (s.left[r] && chaos_may_leave(&draw, r)));
}

/* Whether nothing more is to come from a rank. */
static bool complete_from(uint32_t r)
{
	bool exact, leaves = chaos_may_leave(&draw, r);
	uint32_t sends = chaos_sends(&draw, r, session, &exact);
	if (s.dead[r] || (s.left[r] && leaves && !exact) ||
	    (s.left[r] && (draw.kill_at || draw.limit)))
		return true;
	if (!exact)
		return false; /* it will be lost, and that is to be told */
	return there_from(REQUESTED, r, sends) && (!draw.posts || there_from(POSTED, r, sends));
}

static bool complete(tern *t)
{
	bool good = true;
	tern_hold(t);
	for (uint32_t r = 0; r < draw.ranks; r++)
		good &= complete_from(r);
	tern_release(t);
	return good;
}

static void missing(tern *t, int rc)
{
	tern_hold(t);
	for (uint32_t r = 0; r < draw.ranks; r++)
		if (!complete_from(r))
			broken("%u of %u messages, %u answers, %u items and %u answers to items of "
			       "rank %u came, which %s; the wait ended: %s",
			       s.got[REQUESTED][r], draw.messages, s.answered[REQUESTED][r],
			       s.got[POSTED][r], s.answered[POSTED][r], r,
			       s.left[r] ? "has left" : "is there", tern_strerror(rc));
	tern_release(t);
}

static void wait_all(tern *t)
{
	while (!complete(t)) {
		int rc = tern_wait(t, &s.event, 1);
		uint32_t rank = allowed("tern_wait", rc);
		if (rank == CHAOS_RANKS)
			continue;
		if (rc == -ESHUTDOWN && !draw.kill_at && !draw.limit)
			missing(t, rc); /* nobody else is left, and what was sent has not come */
		tern_hold(t);
		s.dead[rank] = true;
		tern_release(t);
		allowed("tern_forgive", tern_forgive(t, rank));
	}
}

/* A barrier is passed by all, and what was sent before has been handled then. */
static void barrier_all(tern *t)
{
	int rc = tern_barrier(t);
	allowed("tern_barrier", rc);
	if (rc)
		return;
	tern_hold(t);
	for (uint32_t r = 0; r < draw.ranks; r++)
		for (unsigned way = 0; way < (draw.posts ? WAYS : POSTED); way++)
			if (s.got[way][r] != draw.messages)
				broken("behind a barrier, %u of %u %ss of rank %u are there",
				       s.got[way][r], draw.messages, way_names[way], r);
	tern_release(t);
}

static void close_all(tern *t)
{
	const struct chaos_death *death = chaos_death_of(&draw, me);
	bool dies = death && death->session == session && death->how == DIES_CLOSING;
	if (dies)
		setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = death->us }, NULL);
	drop_kept(t);
	allowed("tern_close", tern_close(t));
	while (dies || (death && death->session == session && death->how == DIES_ANYWHERE))
		pause(); /* it comes */
}

static tern *open_all(void)
{
	tern *t = NULL;
	tern_options options = { .delivery = (enum tern_delivery)(TERN_DELIVERY_POLL +
								  draw.delivery[me]),
				 .signal = 40 };
	int rc = tern_open(&t, &options);
	for (; rc == -ENETDOWN && draw.cut_at; rc = tern_open(&t, &options))
		nap(20000); /* it says so, and the cut ends */
	if (rc && allowed("tern_open", rc) < CHAOS_RANKS)
		end("cannot go on", "tern_open", rc, CHAOS_GAVE_UP);
	if (tern_size(t) != draw.ranks || tern_rank(t) != me)
		broken("this is rank %u of %u", tern_rank(t), tern_size(t));
	for (unsigned way = 0; way < WAYS; way++) {
		allowed("tern_on", tern_on(t, handler_id(way, TELL), take));
		allowed("tern_on", tern_on(t, handler_id(way, ASK), take));
		allowed("tern_on", tern_on(t, handler_id(way, ANSWER), on_answer));
	}
	if (draw.posts)
		allowed("tern_post_limit", tern_post_limit(t, draw.post_limit));
	allowed("tern_lost_on", tern_lost_on(t, lost, NULL));
	return t;
}

/* Whether there is another one. */
static bool session_run(void)
{
	memset(&s, 0, sizeof s);
	chance.state = chance_of(draw.seed, UINT64_C(1) << 63 | (uint64_t)session << 8 | me);
	tern *t = open_all();
	bool stays = send_all(t);
	if (stays && draw.barriers)
		barrier_all(t);
	if (stays)
		wait_all(t);
	close_all(t);
	return stays;
}

/* -- The program --------------------------------------------------------------------- */

static uint32_t rank_told(void)
{
	static const char *const names[] = { "TERN_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID" };
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (getenv(names[i]))
			return (uint32_t)atoi(getenv(names[i]));
	return 0;
}

static void file_map(const char *name)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		perror(name);
		exit(2);
	}
	beat = p;
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	draw = chaos_draw(strtoull(argv[1], NULL, 0));
	me = rank_told();
	file_map(argv[2]);
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	if (draw.launcher >= BY_MPIRUN) {
		char name[16];
		snprintf(name, sizeof name, "m%u", me % draw.machines);
		setenv("TERN_MACHINE", name, 1);
	}
	const struct chaos_death *death = chaos_death_of(&draw, me);
	if (death && death->how == DIES_EARLY)
		raise(SIGKILL);
	bool more = true;
	for (; more && session < draw.sessions; session++)
		more = session_run();
	printf("rank %u is done\n", me);
	return 0;
}
