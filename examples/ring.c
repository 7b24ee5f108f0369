/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A letter goes round the ring of ranks and everybody signs it. A handler must not
 * send a request, so it keeps the letter and defers the sending; and the next
 * letter is composed where it will travel from, so nothing is copied twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/tern.h>

enum { LETTER };
enum { LAPS = 2 };

static tern_flag home; /* laps that the letter has come home from */

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "ring: %s\n", tern_strerror(rc));
	exit(1);
}

static void print(const uint16_t *signatures, size_t n)
{
	printf("signed by");
	for (size_t i = 0; i < n; i++)
		printf(" %u", signatures[i]);
	printf("\n");
}

/*
 * Sends `signatures`, n of them, to the next rank, with ours below. Where all are there it is read
 * out, and what was composed does not travel.
 */
static void sign_and_send(tern *t, const uint16_t *signatures, size_t n)
{
	uint32_t next = (tern_rank(t) + 1) % tern_size(t);
	void *claimed;
	must(tern_claim(t, next, (n + 1) * sizeof(uint16_t), &claimed));
	uint16_t *names = claimed;
	if (n)
		memcpy(names, signatures, n * sizeof *names);
	if (n == (size_t)LAPS * tern_size(t)) {
		print(names, n);
		must(tern_abandon(t, names));
		return;
	}
	names[n] = (uint16_t)tern_rank(t);
	must(tern_commit(t, names, LETTER));
}

static void pass(tern *t, void *arg)
{
	const tern_msg *kept = arg;
	size_t len;
	const uint16_t *signatures = tern_msg_data(kept, &len);
	sign_and_send(t, signatures, len / sizeof *signatures);
	if (tern_rank(t) == 0)
		tern_signal(t, &home, 1);
	must(tern_msg_drop(t, kept));
}

static void on_letter(tern *t, const tern_msg *m)
{
	const tern_msg *kept;
	must(tern_msg_keep(t, m, &kept));
	must(tern_defer(t, pass, (void *)(uintptr_t)kept));
}

int main(void)
{
	tern *t;
	must(tern_open(&t, NULL));
	must(tern_on(t, LETTER, on_letter));
	if (tern_rank(t) == 0) {
		sign_and_send(t, NULL, 0);
		must(tern_wait(t, &home, LAPS));
	}
	must(tern_barrier(t)); /* the others pass the letter on while they wait here */
	must(tern_close(t));
	return 0;
}
