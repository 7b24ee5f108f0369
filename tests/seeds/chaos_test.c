/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 300 LABELS slow */
/*
 * Jobs in which everything is drawn from a seed (chaos.h): launcher, network, faults, delivery,
 * deaths, stops, cuts, forks and limits. Ranks (chaos_ranks.c) check every message and what every
 * call says; this driver starts the jobs, kills and stops launchers, cuts the network, and checks
 * that jobs end, with which status, and that nothing is left.
 *
 * Job j of seed S is drawn from S + j. CHAOS_JOBS=1 chaos_test --seed=N repeats one. CHAOS_JOBS=n
 * and CHAOS_SECONDS=s say when to stop: with the first of them, and no job fails because of the
 * second. Without CHAOS_SECONDS the seed is always the same, so that `make test` repeats known
 * jobs; `make soak` draws new ones.
 */
#define CHECK_SECONDS 360000
#include "chaos.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/wrap.h"
#include "lib/net_traffic.h"

enum {
	LOOK_US = 3000,
	OUTPUT_MAX = 200000,
};

static char bin[300], folder[64], mark[96], output[OUTPUT_MAX];
static bool private_net, private_shm;
static uint64_t *beat;
static uint64_t
	still_ns; /* a job in which nothing happens for this long hangs: CHAOS_STILL, in seconds */

static const char *in_folder(const char *name)
{
	static char path[2][128];
	static unsigned turn;
	snprintf(path[++turn % 2], sizeof path[0], "%s/%s", folder, name);
	return path[turn % 2];
}

/* -- What is said of a job ------------------------------------------------------------- */

static const char *const launcher_names[] = { "tern run", "tern run --hosts", "mpirun", "mpiexec" };
static const char *const end_names[] = { "lives",
					 "dies before it opens",
					 "is killed running",
					 "is killed anywhere",
					 "exits with status 3",
					 "is killed in tern_close",
					 "closes and leaves",
					 "returns without closing" };
static const char *const limit_names[] = { "", "little heap", "little memory", "few descriptors",
					   "few addresses" };
static const char *const fork_names[] = { "", "a child that ends", "a child that execs",
					  "a child that uses the endpoint" };

static void job_say_deaths(const struct chaos *d)
{
	for (unsigned i = 0; i < d->deaths; i++)
		printf("; rank %u %s (session %u, at %u, %u us)", d->death[i].rank,
		       end_names[d->death[i].how], d->death[i].session, d->death[i].at,
		       d->death[i].us);
	if (d->stop_ms)
		printf("; rank %u stops at %u for %u ms", d->stop_rank, d->stop_at, d->stop_ms);
	if (d->fork)
		printf("; rank %u forks at %u: %s", d->fork_rank, d->fork_at, fork_names[d->fork]);
	if (d->reset_at != UINT32_MAX)
		printf("; connections of rank %u are reset at %u", d->reset_rank, d->reset_at);
}

static void job_say(const struct chaos *d)
{
	printf("    --seed=%llu: %s, %u ranks, %u machines, %u sessions of %u, %s",
	       (unsigned long long)d->seed, launcher_names[d->launcher], d->ranks, d->machines,
	       d->sessions, d->messages, d->net);
	if (strcmp(d->net, "shm") != 0)
		printf(", flow %s, protect %s%s%s", d->flow, d->protect, *d->fault ? ", " : "",
		       d->fault);
	printf(", delivery ");
	for (uint32_t r = 0; r < d->ranks; r++)
		putchar("pti"[d->delivery[r]]);
	printf("%s%s%s", d->survive ? ", survive" : "", d->barriers ? ", barriers" : "",
	       d->wrap ? ", wrap" : "");
	if (d->posts)
		printf(", posts, limit %u", d->post_limit);
	job_say_deaths(d);
	if (d->kill_at)
		printf("; launcher %u is killed at %u", d->kill_which, d->kill_at);
	if (d->pause_at)
		printf("; launcher %u stops at %u for %u ms", d->pause_which, d->pause_at,
		       d->pause_ms);
	if (d->cut_at)
		printf("; the network is cut at %u for %u ms", d->cut_at, d->cut_ms);
	if (d->limit)
		printf("; %s (%u)", limit_names[d->limit], d->limit_size);
	putchar('\n');
	fflush(stdout);
}

/* -- This machine ------------------------------------------------------------------------ */

static bool loopback_set(bool up)
{
	struct ifreq r = { .ifr_flags = (short)(up ? IFF_UP | IFF_RUNNING : 0) };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memcpy(r.ifr_name, "lo", 3);
	bool good = s >= 0 && ioctl(s, SIOCSIFFLAGS, &r) == 0;
	close(s);
	return good;
}

/* An address that is no loopback's, as machines have; everything goes through lo all the same. */
static bool loopback_name(void)
{
	struct ifreq r = { .ifr_flags = 0 };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a4d0001) };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memcpy(r.ifr_name, "lo:1", 5);
	memcpy(&r.ifr_addr, &a, sizeof a);
	bool good = s >= 0 && ioctl(s, SIOCSIFADDR, &r) == 0;
	close(s);
	return good;
}

/*
 * A network that can be cut, and a /dev/shm in which nobody else has anything; both where the
 * kernel allows it.
 */
static void machine_begin(void)
{
	private_net = unshare(CLONE_NEWNET) == 0;
	if (private_net)
		REQUIRE(loopback_set(true) && loopback_name());
	else
		printf("    no cuts are drawn: unshare(CLONE_NEWNET): %s\n", strerror(errno));
	private_shm = unshare(CLONE_NEWNS) == 0 &&
		      mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		      mount("none", "/dev/shm", "tmpfs", 0, "size=512m") == 0;
	if (!private_shm)
		printf("    /dev/shm is not looked at: it cannot be made private: %s\n",
		       strerror(errno));
}

static bool shm_empty(void)
{
	DIR *d = opendir("/dev/shm");
	bool empty = true;
	for (const struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.') {
			printf("    /dev/shm/%s is left\n", e->d_name);
			char path[300];
			snprintf(path, sizeof path, "/dev/shm/%s", e->d_name);
			unlink(path);
			empty = false;
		}
	if (d)
		closedir(d);
	return empty;
}

static bool found(const char *program)
{
	char command[128];
	snprintf(command, sizeof command, "command -v %s >/dev/null", program);
	return system(command) == 0;
}

/*
 * Whether this build lets numbers start near their wrap; asked in a process of its own, which reads
 * the setting.
 */
static bool wrap_usable(void)
{
	int status = 1;
	pid_t child = fork();
	if (child == 0) {
		setenv("TERN_WRAP", "50", 1);
		_exit(wrap_judge() != 0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/*
 * What this machine or this build lacks is replaced, so a seed gives the same job on the same
 * machine.
 */
static void job_fit(struct chaos *d)
{
	char net[32];
	const char *comma = strchr(d->net, ',');
	snprintf(net, sizeof net, "%s", comma ? comma + 1 : d->net);
	if (d->launcher == BY_MPIRUN && !found("mpirun.openmpi"))
		d->launcher = BY_HOSTS;
	if (d->launcher == BY_MPIEXEC && !found("mpiexec.hydra"))
		d->launcher = BY_HOSTS;
	if (!traffic_usable(net)) {
		d->net = d->machines > 1 ? "shm,udp" : "shm";
		d->fault[0] = 0;
	}
	if (d->machines > 1 && !traffic_usable("udp"))
		d->machines = 1, d->launcher = BY_RUN, d->net = "shm";
	if (!private_net)
		d->cut_at = 0;
	d->wrap = d->wrap && wrap_usable();
	if (d->launcher >= BY_MPIRUN)
		d->limit = NO_LIMIT; /* what those of other projects do with too little is theirs */
}

/* -- Processes of a job -------------------------------------------------------------------- */

static bool process_marked(pid_t pid)
{
	static char text[65536];
	char path[40];
	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
	if (fd >= 0)
		close(fd);
	return n > 0 && memmem(text, (size_t)n, mark, strlen(mark)) != NULL;
}

static bool process_launches(pid_t pid)
{
	char path[40], exe[400] = "";
	snprintf(path, sizeof path, "/proc/%d/exe", pid);
	return readlink(path, exe, sizeof exe - 1) > 0 && !strstr(exe, "/chaos_ranks") &&
	       !strstr(exe, "/true");
}

/* Fills in those of the job, launchers only or all; how many there are. */
static unsigned processes(pid_t *pid, unsigned most, bool launchers)
{
	DIR *d = opendir("/proc");
	unsigned n = 0;
	for (const struct dirent *e; d && n < most && (e = readdir(d));) {
		pid_t p = (pid_t)atoi(e->d_name);
		if (p > 0 && p != getpid() && process_marked(p) &&
		    (!launchers || process_launches(p)))
			pid[n++] = p;
	}
	if (d)
		closedir(d);
	return n;
}

static void signal_all(int signal)
{
	pid_t pid[256];
	unsigned n = processes(pid, 256, false);
	for (unsigned i = 0; i < n; i++)
		kill(pid[i], signal);
}

static void nap(unsigned us)
{
	nanosleep(&(struct timespec){ us / 1000000, (long)(us % 1000000) * 1000 }, NULL);
}

static bool nothing_left(void)
{
	pid_t pid[256];
	uint64_t end = clock_ns() + still_ns;
	while (processes(pid, 256, false)) {
		if (clock_ns() > end)
			return false;
		nap(LOOK_US);
	}
	return true;
}

/* -- Starting ------------------------------------------------------------------------------- */

static void limits_set(const struct chaos *d)
{
	rlim_t files = 8 + d->limit_size, addresses = ((rlim_t)16 + (rlim_t)d->limit_size * 64)
						      << 20;
	char text[32];
	snprintf(text, sizeof text, "%uK", 64 + d->limit_size * 64);
	if (d->limit == LITTLE_HEAP)
		setenv("TERN_HEAP", text, 1);
	if (d->limit == LITTLE_MEMORY)
		setenv("TERN_MEMORY", text, 1);
	if (d->limit == FEW_DESCRIPTORS)
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ files, files });
	if (d->limit == FEW_ADDRESSES)
		setrlimit(RLIMIT_AS, &(struct rlimit){ addresses, addresses });
}

static void environment_set(const struct chaos *d)
{
	setenv("CHAOS_MARK", strchr(mark, '=') + 1, 1);
	setenv("TERN_NET", d->net, 1);
	setenv("TERN_KEEPALIVE", "100", 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	if (strcmp(d->net, "shm") != 0) {
		setenv("TERN_FLOW", d->flow, 1);
		setenv("TERN_PROTECT", d->protect, 1);
	}
	if (*d->fault)
		setenv("TERN_FAULT", d->fault, 1);
	if (d->wrap)
		setenv("TERN_WRAP", "50", 1);
}

__attribute__((noreturn)) static void job_exec(const struct chaos *d)
{
	char ranks[8], seed[24], hosts[64] = "h0", program[340];
	const char *word[20];
	unsigned n = 0;
	snprintf(ranks, sizeof ranks, "%u", d->ranks);
	snprintf(seed, sizeof seed, "%llu", (unsigned long long)d->seed);
	snprintf(program, sizeof program, "%s/tern", bin);
	for (uint32_t m = 1; m < d->machines; m++)
		snprintf(hosts + strlen(hosts), sizeof hosts - strlen(hosts), ",h%u", m);
	word[n++] = d->launcher == BY_MPIRUN    ? "mpirun.openmpi"
		    : d->launcher == BY_MPIEXEC ? "mpiexec.hydra"
						: program;
	if (d->launcher == BY_MPIRUN)
		word[n++] = "--oversubscribe", word[n++] = "--mca",
		word[n++] = "oob_tcp_if_include", word[n++] = "lo";
	if (d->launcher == BY_MPIRUN && d->survive)
		word[n++] = "--enable-recovery";
	if (d->launcher <= BY_HOSTS)
		word[n++] = "run";
	if (d->launcher <= BY_HOSTS && d->survive)
		word[n++] = "--survive";
	if (d->launcher == BY_HOSTS) {
		word[n++] = "--hosts", word[n++] = hosts;
		word[n++] = "--ssh", word[n++] = in_folder("shell");
	}
	word[n++] = "-n", word[n++] = ranks;
	char *rank_program = NULL;
	if (asprintf(&rank_program, "%s/chaos_ranks", bin) < 0)
		_exit(2);
	word[n++] = rank_program, word[n++] = seed, word[n++] = in_folder("beat");
	word[n] = NULL;
	execvp(word[0], (char *const *)(void *)word);
	_exit(127);
}

static pid_t job_start(const struct chaos *d)
{
	memset(beat, 0, 4096);
	fflush(NULL);
	pid_t front = fork();
	REQUIRE(front >= 0);
	if (front)
		return front;
	int fd = open(in_folder("out"), O_CREAT | O_TRUNC | O_RDWR | O_APPEND, 0600),
	    null = open("/dev/null", O_RDWR);
	setpgid(0, 0);
	dup2(null, 0), dup2(fd, 1), dup2(fd, 2);
	environment_set(d);
	limits_set(d);
	job_exec(d);
}

/* -- While it runs ---------------------------------------------------------------------------- */

static uint64_t beats(void)
{
	uint64_t sum = 0;
	for (uint32_t r = 0; r < CHAOS_RANKS; r++)
		sum += ((volatile uint64_t *)beat)[r];
	return sum;
}

/* One of the launcher's processes, for which the seed has a number. */
static pid_t launcher_process(uint32_t which)
{
	pid_t pid[64];
	unsigned n = processes(pid, 64, true);
	return n ? pid[which % n] : 0;
}

struct run {
	bool killed, paused, cut, hung;
	int status;
};

static void job_trouble(const struct chaos *d, struct run *r, uint64_t now)
{
	pid_t pid;
	if (d->kill_at && !r->killed && now >= d->kill_at &&
	    (pid = launcher_process(d->kill_which)) > 0)
		r->killed = kill(pid, SIGKILL) == 0;
	if (d->pause_at && !r->paused && now >= d->pause_at &&
	    (pid = launcher_process(d->pause_which)) > 0) {
		r->paused = true;
		kill(pid, SIGSTOP);
		nap(d->pause_ms * 1000);
		kill(pid, SIGCONT);
	}
	if (d->cut_at && !r->cut && now >= d->cut_at) {
		r->cut = loopback_set(false);
		nap(d->cut_ms * 1000);
		CHECK(loopback_set(true));
	}
}

static void job_why(pid_t front)
{
	char command[600];
	snprintf(command, sizeof command, "timeout 20 %s/tern why %d 2>&1 | sed 's/^/    why: /'",
		 bin, front);
	(void)!system(command);
}

static struct run job_watch(const struct chaos *d, pid_t front)
{
	struct run r = { .status = 0 };
	uint64_t last = 0, since = clock_ns();
	while (waitpid(front, &r.status, WNOHANG) == 0) {
		uint64_t now = beats();
		job_trouble(d, &r, now);
		if (now != last)
			last = now, since = clock_ns();
		else if (clock_ns() - since > still_ns) {
			r.hung = true;
			job_why(front);
			signal_all(SIGKILL);
			kill(front, SIGKILL);
			waitpid(front, &r.status, 0);
			break;
		}
		nap(LOOK_US);
	}
	r.status = WIFSIGNALED(r.status) ? 128 + WTERMSIG(r.status) : WEXITSTATUS(r.status);
	return r;
}

/* -- What came of it --------------------------------------------------------------------------- */

static void output_read(void)
{
	int fd = open(in_folder("out"), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, output, sizeof output - 1);
	output[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
}

static unsigned output_count(const char *text)
{
	unsigned n = 0;
	for (const char *at = output; (at = strstr(at, text)); at++)
		n++;
	return n;
}

/* A rank that crashes, in whatever words the launcher says so. */
static bool output_crash(void)
{
	static const int crash[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE };
	for (unsigned i = 0; i < sizeof crash / sizeof *crash; i++) {
		char text[40];
		snprintf(text, sizeof text, "signal %d ", crash[i]);
		if (strstr(output, text))
			return true;
	}
	return strstr(output, "AddressSanitizer") || strstr(output, "ThreadSanitizer");
}

static int status_of(enum chaos_end how)
{
	return how == EXITS                      ? CHAOS_EXITED
	       : how == DIES_CLOSING             ? 128 + SIGALRM
	       : how == LEAVES || how == RETURNS ? 0
						 : 137;
}

/* Which status the job may have, and how many ranks say that they are done. */
static const char *result_wrong(const struct chaos *d, const struct run *r)
{
	unsigned done = output_count(" is done"), living = d->ranks;
	bool deadly = false, known = r->status == 0;
	for (unsigned i = 0; i < d->deaths; i++) {
		deadly |= status_of(d->death[i].how) != 0;
		living -= d->death[i].how != LEAVES;
	}
	for (unsigned i = 0; deadly && i < d->deaths; i++)
		known = (known && i) ||
			(status_of(d->death[i].how) && r->status == status_of(d->death[i].how));
	if (r->killed)
		return r->status == 0 && done != d->ranks
			       ? "a launcher was killed, and the status is 0"
			       : NULL;
	if (d->limit || chaos_breaks_ofi(d) || d->launcher >= BY_MPIRUN)
		return d->limit || chaos_breaks_ofi(d) || d->deaths ||
				       (r->status == 0 && done == living)
			       ? NULL
			       : "not all ranks are done";
	if (!known)
		return "the status is none that the seed explains";
	return (d->survive || !deadly) && done != living ? "not all who live are done" : NULL;
}

static const char *job_wrong(const struct chaos *d, const struct run *r, bool left)
{
	if (r->hung)
		return "the job hangs";
	if (strstr(output, "BROKEN"))
		return "a rank says so";
	if (output_crash())
		return "a rank crashed";
	if (left)
		return "processes are left";
	if (private_shm && !shm_empty())
		return "files are left in /dev/shm";
	return result_wrong(d, r);
}

static void job_run(uint64_t seed)
{
	struct chaos d = chaos_draw(seed);
	job_fit(&d);
	job_say(&d);
	struct run r = job_watch(&d, job_start(&d));
	bool left = !nothing_left();
	output_read();
	const char *wrong = job_wrong(&d, &r, left);
	signal_all(SIGKILL);
	if (CHECK(!wrong))
		return;
	printf("    BROKEN: %s; status %d%s\n", wrong, r.status,
	       r.killed ? ", after a launcher was killed" : "");
	printf("    again: CHAOS_JOBS=1 %s/chaos_test --seed=%llu\n    output:\n%.6000s\n", bin,
	       (unsigned long long)seed, output);
	fflush(stdout);
}

/* -- The test ------------------------------------------------------------------------------ */

static void folder_make(void)
{
	ssize_t n = readlink("/proc/self/exe", bin, sizeof bin - 1);
	REQUIRE(n > 0);
	*strrchr(bin, '/') = 0;
	snprintf(folder, sizeof folder, "/tmp/chaos.XXXXXX");
	REQUIRE(mkdtemp(folder));
	snprintf(mark, sizeof mark, "CHAOS_MARK=%s", folder);
	int fd = open(in_folder("beat"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	REQUIRE(fd >= 0 && ftruncate(fd, 4096) == 0);
	beat = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(beat != MAP_FAILED);
	close(fd);
	/* What stands for ssh: HOST COMMAND. */
	static const char shell[] = "#!/bin/sh\nshift\nexec sh -c \"$*\"\n";
	fd = open(in_folder("shell"), O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	REQUIRE(fd >= 0 && write(fd, shell, sizeof shell - 1) == (ssize_t)sizeof shell - 1);
	close(fd);
}

static void folder_remove(void)
{
	static const char *const names[] = { "beat", "shell", "out" };
	for (unsigned i = 0; i < 3; i++)
		unlink(in_folder(names[i]));
	rmdir(folder);
}

#define SAME_SEED "812314658748"

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	return getenv(name) ? strtoull(getenv(name), NULL, 0) : otherwise;
}

TEST(jobs_that_a_seed_draws_keep_every_promise)
{
	if (!getenv("CHAOS_SECONDS"))
		setenv("TEST_SEED", SAME_SEED, false); /* --seed goes before it */
	uint64_t seed = check_seed(), jobs = number_of("CHAOS_JOBS", 70), began = clock_ns();
	uint64_t seconds = number_of("CHAOS_SECONDS", 100);
	still_ns = number_of("CHAOS_STILL", 200) * 1000000000;
	folder_make();
	machine_begin();
	uint64_t j = 0;
	while (j < jobs && clock_ns() - began < seconds * 1000000000 &&
	       !atomic_load(&check_failures))
		job_run(seed + j++);
	printf("    %llu jobs\n", (unsigned long long)j);
	folder_remove();
}
