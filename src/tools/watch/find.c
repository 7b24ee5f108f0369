/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the job to look at. A job has no name; but its memory is a descriptor of its processes,
 * which /proc shows to the user they belong to.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/file.h"
#include "base/process.h"
#include "tools/common/option.h"
#include "tools/watch/watch.h"

enum { JOBS_MOST = 64 };

/* A job that was found, by the inode of its memory. */
struct find {
	ino_t inode;
	int fd;
	pid_t launcher; /* the first process that has the memory, or its parent if that is a `tern
			   run` */
	bool asked;     /* for by a pid */
};

struct finds {
	struct find find[JOBS_MOST];
	unsigned count;
	pid_t wanted;
};

static bool program_name(pid_t pid, char name[32])
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	if (!file_text(path, name, 32))
		return false;
	name[strcspn(name, "\n")] = '\0';
	return true;
}

static bool is_command(pid_t pid)
{
	char name[32];
	return program_name(pid, name) && strcmp(name, "tern") == 0;
}

static struct find *finds_at(struct finds *all, ino_t inode)
{
	for (unsigned i = 0; i < all->count; i++)
		if (all->find[i].inode == inode)
			return &all->find[i];
	return NULL;
}

/* `path` is a descriptor of `pid` that is called as a job's memory is. */
static void finds_add(struct finds *all, pid_t pid, const char *path)
{
	struct job_head head;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &st) != 0 || pread(fd, &head, sizeof head, 0) != sizeof head ||
	    head.magic != JOB_MAGIC) {
		close(fd);
		return;
	}
	struct find *f = finds_at(all, st.st_ino);
	pid_t parent = process_parent(pid);
	if (f || all->count == JOBS_MOST)
		close(fd);
	else
		f = &all->find[all->count++], *f = (struct find){ st.st_ino, fd, pid, false };
	if (f && is_command(parent))
		f->launcher = parent;
	if (f && (all->wanted == pid || all->wanted == parent))
		f->asked = true;
}

static void process_search(struct finds *all, pid_t pid)
{
	char path[300], target[64];
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	if (!dir)
		return; /* another user's, or it has ended */
	for (struct dirent *d; (d = readdir(dir));) {
		ssize_t n = readlinkat(dirfd(dir), d->d_name, target, sizeof target - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		if (strcmp(target, "/memfd:tern (deleted)") != 0)
			continue;
		snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, d->d_name);
		finds_add(all, pid, path);
	}
	closedir(dir);
}

static void finds_search(struct finds *all)
{
	DIR *proc = opendir("/proc");
	if (!proc)
		return;
	for (struct dirent *d; (d = readdir(proc));) {
		pid_t pid = atoi(d->d_name);
		if (pid > 0 && pid != getpid())
			process_search(all, pid);
	}
	closedir(proc);
}

static void finds_close(struct finds *all)
{
	for (unsigned i = 0; i < all->count; i++)
		close(all->find[i].fd);
}

/* " 4711 (heat)": its launcher, and the program that its first rank runs. */
static void find_print(const struct find *f, const char *before)
{
	struct job job;
	char name[32];
	fprintf(stderr, "%s %d", before, (int)f->launcher);
	if (job_view(&job, f->fd) != 0)
		return;
	for (uint32_t r = 0; r < job.size; r++) {
		pid_t pid = atomic_load(&job.rank[r].pid);
		if (pid <= 0 || !job_here(&job, r) || !program_name(pid, name))
			continue;
		fprintf(stderr, " (%s)", name);
		break;
	}
	job_unmap(&job);
}

/* The one that is meant; NULL, with a sentence, if that is none or not clear. */
static struct find *finds_choose(struct finds *all, const char *command)
{
	struct find *asked = NULL;
	for (unsigned i = 0; i < all->count; i++)
		if (all->find[i].asked || (!all->wanted && all->count == 1))
			asked = &all->find[i];
	if (asked)
		return asked;
	if (all->wanted)
		fprintf(stderr,
			"%s: process %d is neither the launcher nor a rank of a job of this user; "
			"`pgrep -a tern` shows launchers\n",
			command, (int)all->wanted);
	else if (!all->count)
		fprintf(stderr, "%s: no job of this user is running; `tern run` starts one\n",
			command);
	else {
		fprintf(stderr,
			"%s: %u jobs are running; say which, by its launcher's pid:", command,
			all->count);
		for (unsigned i = 0; i < all->count; i++)
			find_print(&all->find[i], i ? "," : "");
		fputc('\n', stderr);
	}
	return NULL;
}

bool watch_open(struct watch *w, pid_t pid, const char *command)
{
	struct finds all = { .wanted = pid };
	finds_search(&all);
	struct find *f = finds_choose(&all, command);
	int rc = f ? job_view(&w->job, f->fd) : 0;
	if (rc)
		fprintf(stderr, "%s: %s\n", command, tern_strerror(rc));
	if (f)
		w->launcher = f->launcher;
	finds_close(&all);
	return f && !rc;
}

void watch_close(struct watch *w)
{
	job_unmap(&w->job);
}

static bool read_job(struct watch_options *o, const char *word)
{
	char *end;
	long pid = strtol(word, &end, 10);
	if (end == word || *end || pid < 1 || pid > 0x7fffffff || o->job)
		return option_refuse(
			"'%s' is not one process: a job is named by the pid of its launcher or of "
			"a rank",
			word);
	o->job = (pid_t)pid;
	return true;
}

bool watch_options_read(struct watch_options *o, const struct options *options, int argc,
			char **argv, int *status)
{
	if (!options_read(options, argc, argv, status))
		return false;
	for (int i = optind; i < argc; i++)
		if (!read_job(o, argv[i]))
			return false;
	return true;
}
