/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cable NAMESPACE DEVICE NAMESPACE DEVICE [rate=MBIT] [delay=MS] [queue=MS] [loss=PERCENT] [seed=N]
 *
 * A cable between two network namespaces that is slower, longer and worse than those of the kernel:
 * a TUN device in each, and this program between them. Each way has a queue of its own: a packet
 * takes its time at the rate, is dropped if it would wait longer than the queue has room for, and
 * arrives the delay later; some are lost by chance. SIGUSR1: tells what each flow has had since the
 * last time, a line a flow, and for how long. SIGTERM: ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 1 << 15, BYTES = 2048, FLOWS = 32, ROUND = 64 };

struct setting {
	double rate, delay, queue, loss, seed; /* Mbit/s, ms, ms, percent */
};

struct flow {
	unsigned protocol, from, to;
	uint64_t bytes, packets, dropped, lost, waited;
};

struct packet {
	uint64_t due;
	size_t len;
	char bytes[BYTES];
};

struct way {
	int in, out;
	uint64_t idle; /* when all that waits will have been sent, ns */
	size_t first, next;
	struct flow flow[FLOWS];
	struct packet packet[SLOTS];
};

static struct way way[2];
static uint64_t since; /* when it was told last, ns */
static volatile sig_atomic_t asked, ended;

static void on_signal(int number)
{
	*(number == SIGUSR1 ? &asked : &ended) = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void fail(const char *what, const char *name)
{
	fprintf(stderr, "cable: %s %s: %s\n", what, name, strerror(errno));
	exit(1);
}

/* One end: a device that lives as long as this program. */
static int end_open(const char *space, const char *device)
{
	char path[256];
	struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	snprintf(path, sizeof path, "/run/netns/%s", space);
	int there = open(path, O_RDONLY | O_CLOEXEC);
	if (there < 0 || setns(there, CLONE_NEWNET) != 0)
		fail("entering the namespace", space);
	close(there);
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	snprintf(r.ifr_name, sizeof r.ifr_name, "%s", device);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &r) != 0)
		fail("making the device", device);
	return fd;
}

static unsigned port_at(const unsigned char *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* Whose packet it is; those that come when the table is full share its last line. */
static struct flow *flow_of(struct way *w, const struct packet *l)
{
	const unsigned char *p = (const unsigned char *)l->bytes;
	bool six = p[0] >> 4 == 6;
	size_t head = six ? 40 : (size_t)(p[0] & 15) * 4;
	struct flow is = { .protocol = p[six ? 6 : 9] }, *f = w->flow;
	if (l->len >= head + 4 && (is.protocol == IPPROTO_TCP || is.protocol == IPPROTO_UDP)) {
		is.from = port_at(p + head);
		is.to = port_at(p + head + 2);
	}
	for (; f < w->flow + FLOWS - 1 && f->protocol; f++)
		if (f->protocol == is.protocol && f->from == is.from && f->to == is.to)
			return f;
	f->protocol = is.protocol;
	f->from = is.from;
	f->to = is.to;
	return f;
}

static void packet_take(struct way *w, struct packet *l, const struct setting *s, uint64_t now)
{
	struct flow *f = flow_of(w, l);
	uint64_t wait = w->idle > now ? w->idle - now : 0;
	uint64_t takes = (uint64_t)((double)l->len * 8e3 / s->rate);
	if (drand48() * 100 < s->loss) {
		f->lost++;
		return;
	}
	if ((double)wait > s->queue * 1e6 || w->next - w->first == SLOTS - 1) {
		f->dropped++;
		return;
	}
	w->idle = now + wait + takes;
	l->due = w->idle + (uint64_t)(s->delay * 1e6);
	f->bytes += l->len;
	f->packets++;
	f->waited += wait;
	w->next++;
}

static void way_take(struct way *w, const struct setting *s)
{
	for (int i = 0; i < ROUND; i++) {
		struct packet *l = &w->packet[w->next % SLOTS];
		ssize_t len = read(w->in, l->bytes, BYTES);
		if (len <= 0)
			return;
		l->len = (size_t)len;
		packet_take(w, l, s, now_ns());
	}
}

/* When it wants to be called again. */
static uint64_t way_give(struct way *w)
{
	uint64_t now = now_ns();
	for (; w->first != w->next && w->packet[w->first % SLOTS].due <= now; w->first++) {
		struct packet *l = &w->packet[w->first % SLOTS];
		(void)!write(w->out, l->bytes, l->len); /* a device that is down takes none */
	}
	return w->first == w->next ? UINT64_MAX : w->packet[w->first % SLOTS].due;
}

static void flows_tell(void)
{
	for (unsigned i = 0; i < 2; i++)
		for (struct flow *f = way[i].flow; f < way[i].flow + FLOWS; f++) {
			const char *name = f->protocol == IPPROTO_TCP   ? "tcp"
					   : f->protocol == IPPROTO_UDP ? "udp"
									: "other";
			if (f->packets + f->dropped + f->lost)
				printf("way %u %s %u to %u: %llu bytes, %llu packets, %llu "
				       "dropped, %llu lost, %.2f ms queued\n",
				       i, name, f->from, f->to, (unsigned long long)f->bytes,
				       (unsigned long long)f->packets,
				       (unsigned long long)f->dropped, (unsigned long long)f->lost,
				       f->packets ? (double)f->waited / 1e6 / (double)f->packets
						  : 0);
			*f = (struct flow){ 0 };
		}
	printf("- %llu ms\n", (unsigned long long)((now_ns() - since) / 1000000));
	since = now_ns();
	fflush(stdout);
}

static void wait_until(uint64_t due, const sigset_t *while_asleep)
{
	struct pollfd p[2] = { { .fd = way[0].in, .events = POLLIN },
			       { .fd = way[1].in, .events = POLLIN } };
	uint64_t now = now_ns(), ns = due > now ? due - now : 0;
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	(void)!ppoll(p, 2, due == UINT64_MAX ? NULL : &t, while_asleep);
}

static void settings_read(struct setting *s, char **word)
{
	for (; *word; word++)
		if (sscanf(*word, "rate=%lf", &s->rate) + sscanf(*word, "delay=%lf", &s->delay) +
			    sscanf(*word, "queue=%lf", &s->queue) +
			    sscanf(*word, "loss=%lf", &s->loss) +
			    sscanf(*word, "seed=%lf", &s->seed) <=
		    0) {
			fprintf(stderr, "cable: '%s' is no setting\n", *word);
			exit(2);
		}
}

/* Whatever else runs, packets should be late by the cable's delay and not by the scheduler's. */
static void be_quick(void)
{
	const struct sched_param first = { .sched_priority = 2 };
	prctl(PR_SET_TIMERSLACK, 1);
	sched_setscheduler(0, SCHED_RR, &first);
}

int main(int argc, char **argv)
{
	struct setting s = { .rate = 100, .delay = 0, .queue = 10, .loss = 0, .seed = 1 };
	struct sigaction act = { .sa_handler = on_signal };
	sigset_t blocked, before;
	if (argc < 5)
		return 2;
	settings_read(&s, argv + 5);
	srand48((long)s.seed);
	way[0].in = way[1].out = end_open(argv[1], argv[2]);
	way[1].in = way[0].out = end_open(argv[3], argv[4]);
	be_quick();
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	since = now_ns();
	puts("ready");
	fflush(stdout);
	while (!ended) {
		uint64_t due[2];
		for (unsigned i = 0; i < 2; i++)
			way_take(&way[i], &s);
		for (unsigned i = 0; i < 2; i++)
			due[i] = way_give(&way[i]);
		if (asked)
			flows_tell();
		asked = 0;
		wait_until(due[0] < due[1] ? due[0] : due[1], &before);
	}
	return 0;
}
