#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LABELS slow once
# What tern-debug(7) says of thread sanitizer: in a program with workers it finds a race that is
# one, and none that is none, though the library was not compiled with it; and likewise with a
# library that was, by the commands of the page.
set -uo pipefail

root=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
ln -s "$root" tern
cat >program.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tern/mem.h>

enum { WORKERS = 2, TIMES = 100, BYTES = 200, TAKE, TAKEN, ECHO, CLAIM, BACK };

static struct worker {
	tern *t;
	tern_flag taken;
	uint64_t value; /* plain: a message orders its writer and its reader */
	unsigned char out[BYTES], in[BYTES];
} workers[WORKERS];
static uint64_t sum;
static int racing, raced, echoed;

static void on_take(tern *t, const tern_msg *m)
{
	sum += workers[tern_msg_word(m, 0)].value;
	tern_reply(t, m, TAKEN, tern_msg_word(m, 0));
}

static void on_taken(tern *t, const tern_msg *m)
{
	tern_signal(t, &workers[tern_msg_word(m, 0)].taken, 1);
}

static void on_echo(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	tern_reply_data(t, m, BACK, data, len, tern_msg_word(m, 0));
	echoed++;
}

static void on_claim(tern *t, const tern_msg *m)
{
	void *data;
	size_t len;
	const void *from = tern_msg_data(m, &len);
	if (tern_reply_claim(t, m, len, TERN_CLAIM_FRESH, &data))
		return;
	memcpy(data, from, len);
	tern_reply_commit(t, m, data, BACK, tern_msg_word(m, 0));
	echoed++;
}

static void on_back(tern *t, const tern_msg *m)
{
	size_t len;
	struct worker *w = &workers[tern_msg_word(m, 0)];
	const unsigned char *data = tern_msg_data(m, &len);
	for (size_t i = 0; i < len; i++)
		w->in[i] = data[i];
	tern_signal(t, &w->taken, 1);
}

static int ask(struct worker *w, int i)
{
	uint32_t me = tern_rank(w->t);
	w->value = 1;
	memset(w->out, i, BYTES);
	int rc = tern_request(w->t, me, TAKE, w - workers);
	if (!rc)
		rc = tern_request_data(w->t, me, ECHO + i % 2, w->out, BYTES, w - workers);
	return rc ? rc : tern_wait(w->t, &w->taken, 2);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	for (int i = 0; i < TIMES; i++)
		if (ask(w, i) || w->in[BYTES - 1] != i)
			return NULL;
	if (racing) /* no call of Tern's follows */
		raced++;
	return NULL;
}

/* Behind it the main thread polls no more. */
static int all_answered(tern *t, void *arg)
{
	(void)t, (void)arg;
	return sum == WORKERS * TIMES && echoed == WORKERS * TIMES;
}

int main(int argc, char **argv)
{
	tern *t;
	pthread_t thread[WORKERS];
	racing = argc > 1 && !strcmp(argv[1], "racing");
	if (tern_open(&t, NULL) || tern_on(t, TAKE, on_take) || tern_on(t, TAKEN, on_taken) ||
	    tern_on(t, ECHO, on_echo) || tern_on(t, CLAIM, on_claim) || tern_on(t, BACK, on_back))
		return 1;
	for (int i = 0; i < WORKERS; i++)
		if (tern_worker_open(t, &workers[i].t) ||
		    pthread_create(&thread[i], NULL, work, &workers[i]))
			return 1;
	int rc = argc > 1 ? tern_detach(t) : tern_wait_until(t, all_answered, NULL);
	for (int i = 0; i < WORKERS; i++)
		if (pthread_join(thread[i], NULL))
			return 1;
	for (int i = 0; i < WORKERS; i++) /* behind all joins: a call would order the threads */
		if (tern_close(workers[i].t))
			return 1;
	printf("%d taken\n", (int)sum);
	return rc || tern_close(t);
}
END

# has COMPILER: whether its thread sanitizer works here
has() {
	echo 'int main(void) { return 0; }' >empty.c
	command -v "$1" >/dev/null && "$1" -fsanitize=thread empty.c -o empty 2>said &&
		setarch -R ./empty >said 2>&1
}

# quiet HOW ARGUMENT...: the program, whose messages are delivered so
quiet() {
	TERN_DELIVERY=$1 setarch -R timeout 100 ./program "${@:2}" >said 2>&1 && grep -qx '200 taken' said &&
		! grep -q ThreadSanitizer said && return
	echo "    $*"
	head -30 said
	exit 1
}

for compiler in gcc clang; do
	has $compiler || { echo "not $compiler: $(head -1 said)"; continue; }
	ran=1
	$compiler -g -fsanitize=thread program.c -o program -Itern/include -L"$TERN_BIN/../lib" \
		-ltern -Wl,-rpath,"$TERN_BIN/../lib" || exit 1
	for times in 1 2 3; do
		echo "with $compiler and a library that was not compiled with it there is no report"
		quiet poll
		quiet poll lent
		quiet thread
	done
	echo "and a race is found"
	setarch -R timeout 100 ./program racing >said 2>&1
	grep -q 'ThreadSanitizer: data race' said || { cat said; exit 1; }
done
[[ ${ran-} ]] || { echo "skipped: no thread sanitizer here"; exit 77; }

echo "by the commands of the page there are none"
awk '/^\.Ss/ { there = /Thread sanitizer/ } /^\.Ed/ { inside = 0 } there && inside
	/^\.Bd/ { inside = 1 }' "$root/man/tern-debug.7" | sed -e 's/^\$ //' -e 's/\\e$/\\/' >commands
[[ $(wc -l <commands) -ge 4 ]] || { echo "    the page has no such commands"; exit 1; }
bash -e commands >said 2>&1 && grep -qx '200 taken' said && ! grep -q ThreadSanitizer said || {
	tail -30 said
	exit 1
}
