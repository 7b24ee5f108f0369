/* SPDX-License-Identifier: BSD-3-Clause */
/* One run on a simulated machine: a program that `tern run` starts, or a pattern. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/error.h"
#include "base/file.h"
#include "base/setting.h"
#include "boot/link/program.h"
#include "net/sim/machine/mesh.h"
#include "tools/common/svg.h"
#include "tools/sim/sim.h"

int sim_refuse(int rc)
{
	fprintf(stderr, "tern sim: %s\n", tern_strerror(rc));
	return rc == -EINVAL || rc == -ENOENT ? 2 : 1;
}

/* -- A program -------------------------------------------------------------------------------- */

/* Whether the machine can be, before a job is started for it. */
static int run_judge(const struct sim_run *run)
{
	struct profile p;
	int rc = profile_load(&p, run->profile);
	const struct sim_network *n = rc ? NULL : network_named(p.network);
	return !rc && n->judge ? n->judge(&p, run->nodes) : rc;
}

/* What a node has is what the library may use, unless the user says otherwise. */
static void node_set(enum setting s, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	if (value)
		setenv(setting_table[s].name, text, 0);
}

static void environment_set(const struct sim_options *o, const struct sim_run *run)
{
	struct profile p;
	setenv(setting_table[SETTING_NET].name, "sim", 1);
	setenv(setting_table[SETTING_SIM].name, run->profile, 1);
	setenv(setting_table[SETTING_DELIVERY].name, "poll", 1);
	/* Slices are of real time, so turns would differ from run to run: `quantum` is theirs. */
	setenv(setting_table[SETTING_SLICE].name, "0", 1);
	if (o->trace)
		setenv(setting_table[SETTING_TRACE].name, o->trace, 1);
	if (profile_load(&p, run->profile) == 0) {
		node_set(SETTING_CONTEXTS, p.contexts);
		node_set(SETTING_HEAP, p.memory);
	}
}

/* Becomes the `tern run` that starts the program. */
static int program_exec(const struct sim_options *o, const struct sim_run *run)
{
	static char name[] = "tern", verb[] = "run", n[] = "-n", bind[] = "--bind", none[] = "none",
		    end[] = "--", survive[] = "--survive=survivors";
	char ranks[16], path[PATH_MAX];
	int words = 0;
	while (o->program[words])
		words++;
	char **argv = calloc((size_t)words + 9, sizeof *argv);
	if (!argv)
		return 1;
	snprintf(ranks, sizeof ranks, "%u", run->nodes);
	char *const front[] = { name, verb, n, ranks, bind, none, o->survive ? survive : end, end };
	const int used = o->survive ? 8 : 7;
	memcpy(argv, front, (size_t)used * sizeof *argv);
	memcpy(argv + used, o->program, (size_t)words * sizeof *argv);
	environment_set(o, run);
	if (program_locate("tern", path))
		execv(path, argv);
	fprintf(stderr, "tern sim: starting `tern run`: %s\n", strerror(errno));
	return 1;
}

int sim_start(const struct sim_options *o, const struct sim_run *run)
{
	int rc = run_judge(run);
	return rc ? sim_refuse(rc) : program_exec(o, run);
}

/* As a child, which writes its figures to `use`. Its status. */
static int program_run(const struct sim_options *o, const struct sim_run *run, bool quiet,
		       const char *use)
{
	int status;
	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0)
		return error_set(-errno, "starting `tern run`: %s", strerror(errno));
	if (!pid) {
		int nowhere = quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
		if (nowhere >= 0)
			dup2(nowhere, STDOUT_FILENO);
		setenv(setting_table[SETTING_SIM_USE].name, use, 1);
		_exit(program_exec(o, run));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return error_set(-errno, "waiting for `tern run`: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int program_once(const struct sim_options *o, const struct sim_run *run, bool quiet,
			struct figures *f)
{
	char name[] = "/tmp/tern-sim-XXXXXX";
	const char *use = o->csv;
	int rc = run_judge(run), fd = rc ? -1 : use ? file_private(use, O_TRUNC) : mkstemp(name);
	if (rc)
		return rc;
	if (fd < 0)
		return error_set(-errno, "making a file for the figures, %s: %s", use ? use : name,
				 file_why(errno));
	close(fd);
	rc = program_run(o, run, quiet, use ? use : name);
	if (!rc)
		rc = figures_read(f, use ? use : name);
	if (!use)
		unlink(name);
	return rc;
}

/* -- A pattern -------------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pattern_speed(const struct machine *m, double took)
{
	double events = (double)m->shared->happened / 1e6;
	printf("%.2f million events in %.2f s of CPU time: %.2f million a second\n", events, took,
	       events / took);
	if (m->net != &mesh_network)
		return;
	const struct mesh *mesh = mesh_view(m).mesh;
	double one = (double)mesh->moved / 1e6, hops = one + (double)mesh->skipped / 1e6;
	printf("%.2f million flit-hops, %.2f of them flit by flit: %.2f million a second\n", hops,
	       one, hops / took);
}

static int table_write(const void *machine, FILE *to)
{
	struct machine m = *(const struct machine *)machine;
	use_write(&m, to);
	return ferror(to) ? -EIO : 0;
}

static int pattern_once(const struct sim_options *o, const struct sim_run *run, struct figures *f)
{
	struct machine m;
	int rc = pattern_open(&m, run->profile, run->nodes);
	if (rc)
		return rc;
	const struct play p = {
		o->pattern, run->nodes, m.width, o->rounds, o->bytes, m.profile.seed
	};
	double began = cpu_seconds();
	rc = pattern_play(&p, &m);
	if (!rc && o->speed)
		pattern_speed(&m, cpu_seconds() - began);
	if (!rc)
		rc = file_write(o->csv, table_write, &m);
	if (!rc)
		rc = figures_take(f, &m);
	pattern_close(&m);
	return rc;
}

int sim_once(const struct sim_options *o, const struct sim_run *run, bool quiet, struct figures *f)
{
	return o->pattern ? pattern_once(o, run, f) : program_once(o, run, quiet, f);
}
