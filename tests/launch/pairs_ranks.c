/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rank says a few words to every other and hears the answers. Then rank 0 prints what the job
 * takes: the memory file, and of all processes together private pages, page tables and mappings.
 * Started by `tern run`. Arguments: messages for each pair, payload bytes of each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/kernel.h"
#include "endpoint/endpoint.h"

enum { ASK, TELL, PID };

static tern_flag told, known;
static long pids[TERN_RANKS_MAX];
static char bytes[TERN_PAYLOAD_MAX];

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "pairs_ranks: %s\n", tern_strerror(rc));
	exit(1);
}

static void on_ask(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	if (data)
		must(tern_reply_data(t, m, TELL, data, len, tern_msg_word(m, 0), 2));
	else
		must(tern_reply(t, m, TELL, tern_msg_word(m, 0), 2));
}

static void on_tell(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &told, 1);
}

static void on_pid(tern *t, const tern_msg *m)
{
	pids[tern_msg_src(m)] = (long)tern_msg_word(m, 0);
	tern_signal(t, &known, 1);
}

static long field(const char *path, const char *name)
{
	char line[256], format[64];
	long value = 0;
	FILE *f = fopen(path, "re");
	snprintf(format, sizeof format, "%s: %%ld", name);
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, format, &value) == 1)
			break;
	if (f)
		fclose(f);
	return value;
}

static long lines(const char *path)
{
	long n = 0;
	FILE *f = fopen(path, "re");
	for (int c; f && (c = getc(f)) != EOF;)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

/* KiB of all, beside the memory file. */
struct sum {
	long private, tables, maps, threads;
};

static struct sum sum_all(uint32_t size)
{
	struct sum s = { 0 };
	char path[64];
	for (uint32_t r = 0; r < size; r++) {
		snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", pids[r]);
		s.private += field(path, "Pss_Anon");
		snprintf(path, sizeof path, "/proc/%ld/status", pids[r]);
		s.tables += field(path, "VmPTE");
		s.threads += field(path, "Threads");
		snprintf(path, sizeof path, "/proc/%ld/maps", pids[r]);
		s.maps += lines(path);
	}
	return s;
}

static void print(tern *t)
{
	struct stat st;
	struct sum s = sum_all(tern_size(t));
	must(fstat(t->own->group->job.fd, &st));
	printf("file %lld KiB\n", (long long)st.st_blocks / 2);
	printf("private %ld KiB\n", s.private);
	printf("tables %ld KiB\n", s.tables);
	printf("mappings %ld\n", s.maps);
	printf("threads %ld\n", s.threads);
	printf("available %ld KiB\n", field("/proc/meminfo", "MemAvailable"));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	tern *t;
	uint64_t words = argc > 1 ? strtoull(argv[1], NULL, 10) : 3;
	size_t len = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	must(tern_open(&t, NULL));
	must(tern_on(t, ASK, on_ask));
	must(tern_on(t, TELL, on_tell));
	must(tern_on(t, PID, on_pid));
	uint32_t size = tern_size(t), me = tern_rank(t);
	must(tern_barrier(t));
	for (uint64_t i = 0; i < words; i++)
		for (uint32_t r = 1; r < size; r++)
			must(len ? tern_request_data(t, (me + r) % size, ASK, bytes, len, i, r)
				 : tern_request(t, (me + r) % size, ASK, i, r));
	must(tern_wait(t, &told, words * (size - 1)));
	must(tern_request(t, 0, PID, (uint64_t)getpid()));
	if (me == 0) {
		must(tern_wait(t, &known, size));
		print(t);
	}
	must(tern_barrier(t));
	must(tern_close(t));
	return 0;
}
