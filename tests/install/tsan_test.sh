#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 1800 LABELS slow once
# What tern-debug(7) says of thread sanitizer: it finds races in a program with workers that are
# none, unless Tern is compiled with it, by the commands of the page.
set -uo pipefail

root=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
ln -s "$root" tern
cat >program.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <tern/tern.h>

enum { WORKERS = 2, TIMES = 100, TAKE, TAKEN };

static struct worker {
	tern *t;
	tern_flag taken;
	uint64_t value; /* plain: a message orders its writer and its reader */
} workers[WORKERS];
static uint64_t sum;

static void on_take(tern *t, const tern_msg *m)
{
	sum += workers[tern_msg_word(m, 0)].value;
	tern_reply(t, m, TAKEN, tern_msg_word(m, 0));
}

static void on_taken(tern *t, const tern_msg *m)
{
	tern_signal(t, &workers[tern_msg_word(m, 0)].taken, 1);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	for (int i = 0; i < TIMES; i++) {
		w->value = 1;
		if (tern_request(w->t, tern_rank(w->t), TAKE, w - workers) ||
		    tern_wait(w->t, &w->taken, 1))
			break;
	}
	return NULL;
}

static int all_taken(tern *t, void *arg)
{
	(void)t, (void)arg;
	return sum == WORKERS * TIMES;
}

int main(void)
{
	tern *t;
	pthread_t thread[WORKERS];
	if (tern_open(&t, NULL) || tern_on(t, TAKE, on_take) || tern_on(t, TAKEN, on_taken))
		return 1;
	for (int i = 0; i < WORKERS; i++)
		if (tern_worker_open(t, &workers[i].t) ||
		    pthread_create(&thread[i], NULL, work, &workers[i]))
			return 1;
	int rc = tern_wait_until(t, all_taken, NULL);
	for (int i = 0; i < WORKERS; i++)
		if (pthread_join(thread[i], NULL) || tern_close(workers[i].t))
			return 1;
	printf("%d taken\n", (int)sum);
	return rc || tern_close(t);
}
END

cc -g -fsanitize=thread program.c -o program -Itern/include -L"$TERN_BIN/../lib" -ltern \
	-Wl,-rpath,"$TERN_BIN/../lib" 2>said || { echo "skipped: no thread sanitizer here"; exit 77; }
setarch -R ./program >said 2>&1
if grep -q 'FATAL: ThreadSanitizer\|setarch:' said; then
	echo "skipped: thread sanitizer does not run here: $(head -1 said)"
	exit 77
fi
if nm -D "$TERN_BIN/../lib/libtern.so" | grep -q __tsan_read; then
	echo "this library was compiled with thread sanitizer itself"
else
	echo "with a library that was not compiled with it, there are reports"
	grep -q 'ThreadSanitizer: data race' said || { cat said; exit 1; }
fi

echo "by the commands of the page there are none"
awk '/^\.Ss/ { there = /Thread sanitizer/ } /^\.Ed/ { inside = 0 } there && inside
	/^\.Bd/ { inside = 1 }' "$root/man/tern-debug.7" | sed -e 's/^\$ //' -e 's/\\e$/\\/' >commands
[[ $(wc -l <commands) -ge 4 ]] || { echo "    the page has no such commands"; exit 1; }
bash -e commands >said 2>&1 && grep -qx '200 taken' said && ! grep -q ThreadSanitizer said || {
	tail -30 said
	exit 1
}
