/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netns_ranks FILE: every rank sends to every other, numbered and with payloads of many lengths,
 * until FILE exists; each message is answered with its number. Whatever is lost, doubled, out of
 * order or changed on the way is told. What tests/net/netns_test.sh starts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tern/tern.h>

enum { ASK, TELL, LAST, RANKS = 16 };

static uint64_t asked[RANKS], told[RANKS], sent[RANKS], wrong;
static _Atomic uint64_t lasts;

/* Of message `i`, in which every byte says so. */
static size_t length_of(uint64_t i)
{
	return i % 3 ? i * 37 % 64 : i * 7919 % (TERN_PAYLOAD_MAX + 1);
}

static void serve(tern *t, const tern_msg *m)
{
	size_t len;
	const unsigned char *data = tern_msg_data(m, &len);
	uint32_t from = tern_msg_src(m);
	uint64_t i = tern_msg_word(m, 0);
	wrong += i != asked[from] || len != length_of(i);
	for (size_t k = 0; k < len; k++)
		wrong += data[k] != (unsigned char)i;
	asked[from]++;
	(void)!tern_reply(t, m, TELL, i);
}

static void take(tern *t, const tern_msg *m)
{
	(void)t;
	uint32_t from = tern_msg_src(m);
	wrong += tern_msg_word(m, 0) != told[from];
	told[from]++;
}

/* How many the sender has sent. */
static void last(tern *t, const tern_msg *m)
{
	wrong += tern_msg_word(m, 0) != asked[tern_msg_src(m)];
	tern_signal(t, &lasts, 1);
}

static int talk(tern *t, const char *file)
{
	static unsigned char bytes[TERN_PAYLOAD_MAX];
	int rc = 0;
	while (!rc && access(file, F_OK) != 0)
		for (uint32_t r = 0; r < tern_size(t) && !rc; r++)
			if (r != tern_rank(t)) {
				size_t len = length_of(sent[r]);
				memset(bytes, (int)(unsigned char)sent[r], len);
				rc = tern_request_data(t, r, ASK, bytes, len, sent[r]++);
			}
	for (uint32_t r = 0; r < tern_size(t) && !rc; r++)
		if (r != tern_rank(t))
			rc = tern_request(t, r, LAST, sent[r]);
	return rc ? rc : tern_wait(t, &lasts, tern_size(t) - 1);
}

int main(int argc, char **argv)
{
	tern *t;
	if (argc != 2 || tern_open(&t, NULL) != 0)
		return 2;
	uint64_t all = 0;
	int rc = tern_on(t, ASK, serve);
	if (!rc)
		rc = tern_on(t, TELL, take);
	if (!rc)
		rc = tern_on(t, LAST, last);
	if (!rc)
		rc = tern_barrier(t);
	if (!rc)
		rc = talk(t, argv[1]);
	for (uint32_t r = 0; r < tern_size(t) && !rc; r++) {
		while (told[r] < sent[r] && (rc = tern_poll(t)) >= 0)
			rc = 0;
		all += told[r];
	}
	if (!rc)
		rc = tern_barrier(t);
	printf("rank %u: %llu messages, %llu wrong: %s\n", tern_rank(t), (unsigned long long)all,
	       (unsigned long long)wrong, rc ? tern_strerror(rc) : "fine");
	tern_close(t);
	return rc || wrong;
}
