/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runs. Each is a child, `tern run`, `tern sim` or another subcommand, whose standard output
 * is JSON. It is kept as {"command": ..., "machine": ..., "data": OUTPUT}, under a name that it
 * gets when the run has ended well: so an interrupted report leaves no half file. A file is used
 * again if it is of the same command, of this machine or a simulated one, and newer than the
 * programs.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "boot/link/program.h"
#include "lab/report/report.h"
#include "tools/common/json.h"
#include "tools/common/option.h"
#include "tools/common/table.h"

/* -- The plan ----------------------------------------------------------------------------- */

const char *run_lacks(const struct run *run)
{
#ifdef COST_LACKS
	if (run->tool && strcmp(run->program, "cost") == 0)
		return "this build has no tern cost, without " COST_LACKS;
#endif
	(void)run;
	return NULL;
}

static bool run_wanted(const struct report_options *o, const struct run *run)
{
	if (run_lacks(run))
		return false;
	for (size_t i = 0; i < figure_count; i++)
		if (o->chosen[i] && figure_run(&figure_table[i]) == run)
			return true;
	return false;
}

static void job_add(struct jobs *s, const struct run *run, const char *machine, uint32_t ranks)
{
	struct job *j = &s->job[s->n];
	char count[32] = "";
	if (s->n == JOBS_MOST)
		return;
	*j = (struct job){ .run = run, .ranks = ranks };
	snprintf(j->machine, sizeof j->machine, "%s", machine);
	if (ranks)
		snprintf(count, sizeof count, ", %u rank%s", ranks, ranks == 1 ? "" : "s");
	snprintf(j->what, sizeof j->what, "%s%s%s%s", run->name, count, *machine ? " of " : "",
		 machine);
	snprintf(j->file, sizeof j->file, "%s/%s%s%s-%u.json", s->o->data, run->name,
		 *machine ? "-" : "", machine, ranks);
	s->n++;
}

static bool power_of_2(uint32_t n)
{
	return n && !(n & (n - 1));
}

/* The numbers of ranks of a program, among those that were asked for. */
static void counts_add(struct jobs *s, const struct run *run, const char *machine,
		       const struct counts *c)
{
	uint32_t largest = 0;
	for (unsigned i = 0; i < c->n; i++) {
		if (power_of_2(c->at[i]) && c->at[i] > largest)
			largest = c->at[i];
		if (run->counts == RUN_EVERY)
			job_add(s, run, machine, c->at[i]);
	}
	if (run->counts == RUN_LARGEST && largest)
		job_add(s, run, machine, largest);
	if (run->counts == RUN_PAIR && c->n)
		job_add(s, run, machine, 2);
}

/* The parameters of a machine, unless they are among the runs. */
static void logp_add(struct jobs *s, const char *machine)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->job[i].run == &run_table[RUN_LOGP] &&
		    strcmp(s->job[i].machine, machine) == 0)
			return;
	job_add(s, &run_table[RUN_LOGP], machine, 0);
}

/* A run here and on simulated machines, with --quick on the first alone; or their parameters. */
static void run_add(struct jobs *s, const struct run *run, bool logp)
{
	char names[128], *at = names, *name;
	if (logp && s->o->ranks.n)
		logp_add(s, "");
	else if (!logp && run->tool)
		job_add(s, run, "", 0);
	else if (!logp)
		counts_add(s, run, "", &s->o->ranks);
	snprintf(names, sizeof names, "%s", run->machines ? run->machines : "");
	while (s->o->sim.n && (name = strsep(&at, ",")) && *name) {
		if (logp)
			logp_add(s, name);
		else
			counts_add(s, run, name, &s->o->sim);
		if (s->o->quick)
			return;
	}
}

void jobs_plan(struct jobs *s, const struct report_options *o)
{
	*s = (struct jobs){ .o = o };
	if (run_wanted(o, &run_table[RUN_LOGP]))
		logp_add(s, "");
	for (size_t i = 0; i < run_count; i++)
		if (run_table[i].logp && run_wanted(o, &run_table[i]))
			run_add(s, &run_table[i], true);
	for (size_t i = RUN_LOGP + 1; i < run_count; i++)
		if (run_wanted(o, &run_table[i]))
			run_add(s, &run_table[i], false);
}

static void program_path(const struct jobs *s, const struct run *run, char *path, size_t len)
{
	char name[64], tool[PATH_MAX] = "";
	snprintf(name, sizeof name, "tern-%s", run->program);
	if (!run->tool)
		snprintf(path, len, "%s/%s", s->o->apps, run->program);
	else
		snprintf(path, len, "%s", program_locate(name, tool) ? tool : name);
}

bool jobs_check(const struct jobs *s)
{
	char path[COMMAND];
	for (unsigned i = 0; i < s->n; i++) {
		if (s->job[i].run->tool)
			continue;
		program_path(s, s->job[i].run, path, sizeof path);
		if (access(path, X_OK))
			return option_refuse("there is no program %s: `make apps` builds the "
					     "programs, and --apps names their folder",
					     path);
	}
	return true;
}

/* -- A command line ----------------------------------------------------------------------- */

/* The words of a command, with tabs between them. */
struct words {
	char text[2 * COMMAND];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void words_add(struct words *w, const char *format,
							    ...)
{
	va_list list;
	size_t room = sizeof w->text - w->used;
	va_start(list, format);
	int n = vsnprintf(w->text + w->used, room, format, list);
	va_end(list);
	w->used += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* Words with spaces between, in which 16P is 16 times the ranks. */
static void options_add(struct words *w, const char *options, uint32_t ranks)
{
	char *end;
	words_add(w, *options ? "\t" : "");
	for (const char *at = options; *at; at = end) {
		unsigned long n = isdigit((unsigned char)*at) ? strtoul(at, &end, 10) : 0;
		if (n && *end == 'P') {
			words_add(w, "%lu", n * ranks);
			end++;
		} else {
			words_add(w, "%c", *at == ' ' ? '\t' : *at);
			end = (char *)(uintptr_t)at + 1;
		}
	}
}

/* Those of every program: JSON, and few rounds where there is no spread or no time. */
static const char *common_options(const struct report_options *o, const struct job *j)
{
	if (j->run->tool)
		return "--json --plain";
	return *j->machine ? "--json --repeat 1" : o->quick ? "--json --repeat 3" : "--json";
}

static const char *job_options(const struct report_options *o, const struct job *j)
{
	if (*j->machine)
		return o->quick ? j->run->sim_quick : j->run->sim_options;
	return o->quick ? j->run->quick : j->run->options;
}

/* Where the parameters of the job's machine are. */
static void profile_path(const struct jobs *s, const struct job *j, char *path, size_t len)
{
	snprintf(path, len, "%s/logp%s%s.profile", s->o->data, *j->machine ? "-" : "", j->machine);
}

static struct words words_make(const struct jobs *s, const struct job *j)
{
	struct words w = { .used = 0 };
	char path[COMMAND];
	words_add(&w, "tern\t%s", j->run->tool ? j->run->program : *j->machine ? "sim" : "run");
	if (!j->run->tool) {
		words_add(&w, "\t-n\t%u", j->ranks);
		words_add(&w, *j->machine ? "\t--profile\t%s" : "%s", j->machine);
		program_path(s, j->run, path, sizeof path);
		words_add(&w, "\t%s", path);
	}
	options_add(&w, common_options(s->o, j), 0);
	options_add(&w, job_options(s->o, j), j->ranks);
	profile_path(s, j, path, sizeof path);
	if (j->run == &run_table[RUN_LOGP])
		words_add(&w, "\t--profile\t%s", path);
	else if (j->run->logp && access(path, R_OK) == 0)
		words_add(&w, "\t--logp\t%s", path);
	return w;
}

/* As one would type it. */
static void command_make(struct job *j, const struct words *w)
{
	int used = 0;
	if (j->run->tool && *j->machine)
		used = snprintf(j->command, sizeof j->command,
				"TERN_NET=sim TERN_DELIVERY=poll TERN_SIM=%s ", j->machine);
	snprintf(j->command + used, sizeof j->command - (size_t)used, "%s", w->text);
	for (char *at = j->command; (at = strchr(at, '\t'));)
		*at = ' ';
}

/* -- A run -------------------------------------------------------------------------------- */

/* Becomes the command, with its output in these files. */
static void child(const struct job *j, struct words *w, int out, int err)
{
	char *word[WORDS_MOST] = { 0 }, *at = w->text;
	for (unsigned n = 0; n + 1 < WORDS_MOST && at; n++)
		word[n] = strsep(&at, "\t");
	int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (j->run->tool && *j->machine) {
		setenv("TERN_NET", "sim", 1);
		setenv("TERN_DELIVERY", "poll", 1);
		setenv("TERN_SIM", j->machine, 1);
	}
	dup2(none, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	execv(command_path(), word);
	_exit(127);
}

/* Its exit status, 128 and the signal, or -1 if patience was at an end. */
static int child_wait(pid_t pid, uint32_t patience)
{
	struct pollfd end = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	int status, ready = 1;
	if (end.fd >= 0) {
		while ((ready = poll(&end, 1, (int)patience * 1000)) < 0 && errno == EINTR)
			;
		if (!ready)
			kill(pid, SIGTERM);
		if (!ready && poll(&end, 1, 5000) == 0)
			kill(pid, SIGKILL);
		close(end.fd);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 127;
	if (!ready)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/*
 * Why a run failed: the first line that the program itself has said, which begins with its name, or
 * else the first line of all. The launcher's line about the status says less.
 */
static void reason_read(FILE *from, const char *program, char *reason, size_t len)
{
	char line[sizeof((struct job *)0)->why];
	size_t n = strlen(program);
	*reason = '\0';
	rewind(from);
	while (fgets(line, sizeof line, from)) {
		bool own = strncmp(line, program, n) == 0 && strchr(",:", line[n]);
		line[strcspn(line, "\n")] = '\0';
		if (own || !*reason)
			snprintf(reason, len, "%s", line);
		if (own)
			return;
	}
}

/* Puts the output into its file, within an object; false, with the reason, if it cannot. */
static bool job_keep(struct job *j, FILE *output)
{
	char part[sizeof j->file + 8], text[4096];
	size_t n;
	struct data read = { 0 };
	snprintf(part, sizeof part, "%s.part", j->file);
	FILE *to = file_private_stream(part);
	if (!to) {
		snprintf(j->why, sizeof j->why, "%s: %s", part, file_why(errno));
		return false;
	}
	struct json json = { .to = to };
	json_begin(&json, NULL, '{');
	json_text(&json, "command", j->command);
	json_text(&json, "machine", j->place);
	json_real(&json, "seconds", j->seconds);
	fputs(", \"data\": ", to);
	rewind(output);
	while ((n = fread(text, 1, sizeof text, output)))
		fwrite(text, 1, n, to);
	json_end(&json, '}');
	bool good = !ferror(to);
	good = !fclose(to) && good && data_add_json(&read, part) == 0 && read.records > 1;
	if (!good)
		snprintf(j->why, sizeof j->why, "its output is no array of records");
	data_free(&read);
	if (good && rename(part, j->file) == 0)
		return true;
	unlink(part);
	return false;
}

static void job_run(const struct jobs *s, struct job *j, struct words *w)
{
	FILE *out = tmpfile(), *err = tmpfile();
	uint64_t begun = clock_ns();
	j->state = JOB_FAILED;
	pid_t pid = out && err ? fork() : -1;
	if (pid == 0)
		child(j, w, fileno(out), fileno(err));
	if (pid < 0) {
		snprintf(j->why, sizeof j->why, "it cannot be started: %s", strerror(errno));
	} else {
		int status = child_wait(pid, s->o->patience);
		j->seconds = (double)(clock_ns() - begun) / 1e9;
		reason_read(err, j->run->program, j->why, sizeof j->why);
		if (status < 0)
			snprintf(j->why, sizeof j->why, "it did not end within %u s",
				 s->o->patience);
		else if (status && !*j->why)
			snprintf(j->why, sizeof j->why, "it ended with status %d", status);
		else if (!status && job_keep(j, out))
			j->state = JOB_DONE;
	}
	if (out)
		fclose(out);
	if (err)
		fclose(err);
}

/* Whether what the file says of itself is what the job would say. */
static bool head_says(const struct data *d, const char *key, const char *should)
{
	const char *is = data_text(d, &d->record[0], key);
	return is && strcmp(is, should) == 0;
}

/* Whether a file was written after another; one that is not there is older than all. */
static bool file_newer(const char *file, const char *than)
{
	struct stat a, b;
	if (stat(file, &a))
		return false;
	return stat(than, &b) || a.st_mtim.tv_sec > b.st_mtim.tv_sec ||
	       (a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec > b.st_mtim.tv_nsec);
}

/* Whether the file is there, and of the same run. */
static bool job_kept(const struct jobs *s, struct job *j)
{
	struct data d = { 0 };
	char path[COMMAND];
	bool kept = false;
	program_path(s, j->run, path, sizeof path);
	if (s->o->fresh || !file_newer(j->file, path) || !file_newer(j->file, command_path()))
		return false;
	profile_path(s, j, path, sizeof path);
	if (j->run == &run_table[RUN_LOGP] && access(path, R_OK))
		return false;
	if (data_add_json(&d, j->file) == 0) {
		kept = head_says(&d, "command", j->command) && head_says(&d, "machine", j->place);
		j->seconds = data_number(&d, &d.record[0], "seconds");
	}
	data_free(&d);
	return kept;
}

static void job_play(const struct jobs *s, struct job *j)
{
	struct words w = words_make(s, j);
	command_make(j, &w);
	if (*j->machine)
		snprintf(j->place, sizeof j->place, "%s", j->machine);
	else
		machine_identity(j->place, sizeof j->place);
	if (job_kept(s, j))
		j->state = JOB_KEPT;
	else
		job_run(s, j, &w);
}

void jobs_play(struct jobs *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct job *j = &s->job[i];
		progress(i + 1, s->n, "%s", j->what);
		job_play(s, j);
		progress_end();
		printf("%3u/%u  %-40s %8.1f s%s%s\n", i + 1, s->n, j->what, j->seconds,
		       j->state == JOB_KEPT     ? "  kept"
		       : j->state == JOB_FAILED ? "  failed: "
						: "",
		       j->state == JOB_FAILED ? j->why : "");
		if (j->state == JOB_FAILED)
			printf("        %s\n", j->command);
		fflush(stdout);
		s->failed += j->state == JOB_FAILED;
	}
}
