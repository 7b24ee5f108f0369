/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conformance suite of networks, as programs see them: ranks send each other messages of every
 * kind, whose contents follow from a seed and a number, so that the receiver knows what must come
 * next. Nothing may be lost, doubled, out of order or changed, whatever the network does with
 * packets.
 */
#ifndef TERN_TESTS_NET_TRAFFIC_H
#define TERN_TESTS_NET_TRAFFIC_H

#include "chance.h"
#include "open/nets.h"
#include "ranks.h"

enum { TRAFFIC_MOST = 64 };
enum { TRAFFIC_TELL, TRAFFIC_ASK, TRAFFIC_ANSWER };

static struct {
	uint64_t seed;
	unsigned messages; /* from each rank to each, itself included */
	uint64_t got[TRAFFIC_MOST], answered[TRAFFIC_MOST]; /* by rank */
	uint64_t wrong;
	_Atomic uint64_t all_got, all_answered;
} traffic;

/* What the i-th message from one rank to another is. */
struct message {
	uint64_t number;
	bool asks;
	unsigned n, answer_n;
	bool payload, answer_payload;
	size_t len, answer_len;
	uint64_t word[TERN_WORDS_MAX];
};

static inline struct message message_of(uint32_t from, uint32_t to, uint64_t i)
{
	struct chance c = { chance_of(traffic.seed,
				      (uint64_t)from << 48 | (uint64_t)to << 32 | i) };
	struct message l = { .number = chance_next(&c) };
	l.asks = chance_one_in(&c, 2);
	l.n = chance_one_in(&c, 2) ? chance_below(&c, 2) : chance_below(&c, TERN_WORDS_MAX + 1);
	l.payload = chance_one_in(&c, 4);
	l.answer_payload = chance_one_in(&c, 8);
	l.len = chance_one_in(&c, 3) ? chance_below(&c, TERN_PAYLOAD_MAX + 1)
				     : chance_below(&c, 100);
	l.answer_len = l.len;
	if (chance_one_in(&c, 8)) /* what only a request carries */
		l.len += chance_below(&c, TERN_REQUEST_MAX - (uint32_t)l.len + 1);
	for (unsigned k = 0; k < l.n; k++)
		l.word[k] = chance_next(&c);
	l.answer_n = 2 + chance_below(&c, TERN_WORDS_MAX - 1);
	return l;
}

/* The k-th word of the answer to the i-th message. */
static inline uint64_t answer_word(const struct message *l, uint64_t i, unsigned k)
{
	return k ? l->number + k : i;
}

static inline int message_answer(tern *t, const tern_msg *m, const struct message *l, uint64_t i)
{
	static unsigned char bytes[TERN_PAYLOAD_MAX];
	uint64_t w[TERN_WORDS_MAX];
	for (unsigned k = 0; k < l->answer_n; k++)
		w[k] = answer_word(l, i, k);
	if (!l->answer_payload)
		return tern_reply_array(t, m, TRAFFIC_ANSWER, l->answer_n, w);
	chance_fill(bytes, l->answer_len, l->number + 1);
	return tern_reply_data_array(t, m, TRAFFIC_ANSWER, bytes, l->answer_len, l->answer_n, w);
}

static inline bool message_is(const struct message *l, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	bool good = tern_msg_count(m) == l->n && (data != NULL) == l->payload &&
		    len == (l->payload ? l->len : 0);
	for (unsigned k = 0; good && k < l->n; k++)
		good = tern_msg_word(m, k) == l->word[k];
	return good && (!data || chance_filled(data, len, l->number));
}

static inline void traffic_take(tern *t, const tern_msg *m, bool asks)
{
	uint32_t from = tern_msg_src(m);
	uint64_t i = traffic.got[from]++;
	struct message l = message_of(from, tern_rank(t), i);
	if (!CHECK(l.asks == asks && message_is(&l, m)))
		traffic.wrong++;
	if (traffic.got[from] == traffic.messages)
		tern_signal(t, &traffic.all_got, 1);
	if (!asks)
		return;
	CHECK_IS(message_answer(t, m, &l, i), 0);
}

static inline void traffic_tell(tern *t, const tern_msg *m)
{
	traffic_take(t, m, false);
}

static inline void traffic_ask(tern *t, const tern_msg *m)
{
	traffic_take(t, m, true);
}

/* Answers come in the order of the questions. */
static inline void traffic_answer(tern *t, const tern_msg *m)
{
	uint32_t from = tern_msg_src(m);
	struct message l = message_of(tern_rank(t), from, traffic.answered[from]);
	while (!l.asks && traffic.answered[from] < traffic.messages)
		l = message_of(tern_rank(t), from, ++traffic.answered[from]);
	if (!CHECK(traffic.answered[from] < traffic.messages))
		return;
	size_t len;
	const void *data = tern_msg_data(m, &len);
	bool good = tern_msg_count(m) == l.answer_n && (data != NULL) == l.answer_payload &&
		    len == (l.answer_payload ? l.answer_len : 0);
	for (unsigned k = 0; good && k < l.answer_n; k++)
		good = tern_msg_word(m, k) == answer_word(&l, traffic.answered[from], k);
	CHECK(good && (!data || chance_filled(data, len, l.number + 1)));
	traffic.answered[from]++;
	tern_signal(t, &traffic.all_answered, 1);
}

static inline int message_send(tern *t, uint32_t to, const struct message *l)
{
	static unsigned char bytes[TERN_REQUEST_MAX];
	unsigned id = l->asks ? TRAFFIC_ASK : TRAFFIC_TELL;
	if (!l->payload)
		return tern_request_array(t, to, id, l->n, l->word);
	chance_fill(bytes, l->len, l->number);
	return tern_request_data_array(t, to, id, bytes, l->len, l->n, l->word);
}

static inline uint64_t traffic_send(tern *t)
{
	uint64_t asked = 0;
	for (uint64_t i = 0; i < traffic.messages; i++)
		for (uint32_t to = 0; to < tern_size(t); to++) {
			struct message l = message_of(tern_rank(t), to, i);
			int rc = message_send(t, to, &l);
			if (!CHECK_IS(rc, 0))
				printf("    %s\n", tern_strerror(rc));
			asked += l.asks;
		}
	return asked;
}

static inline void traffic_wait(tern *t, _Atomic uint64_t *flag, uint64_t n)
{
	int rc = tern_wait(t, flag, n);
	if (!CHECK_IS(rc, 0))
		printf("    rank %u: %s\n", tern_rank(t), tern_strerror(rc));
}

static inline void traffic_rank(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, TRAFFIC_TELL, traffic_tell), 0);
	CHECK_IS(tern_on(t, TRAFFIC_ASK, traffic_ask), 0);
	CHECK_IS(tern_on(t, TRAFFIC_ANSWER, traffic_answer), 0);
	uint64_t asked = traffic_send(t);
	traffic_wait(t, &traffic.all_got, tern_size(t));
	traffic_wait(t, &traffic.all_answered, asked);
	CHECK_IS(tern_barrier(t), 0);
	for (uint32_t r = 0; r < tern_size(t); r++)
		CHECK_IS(traffic.got[r], traffic.messages); /* and no more */
	CHECK_IS(tern_close(t), 0);
}

/*
 * Whether this build and this machine have the network; as in TERN_NET. Asked in a process of its
 * own.
 */
static inline bool traffic_usable(const char *net)
{
	pid_t child = fork();
	int status = 1;
	if (child == 0) {
		char why[400];
		size_t len = strcspn(net, "/");
		const char *delivery = getenv("TERN_DELIVERY");
		if (delivery && strcmp(delivery, "interrupt") == 0 && strncmp(net, "ofi", len) == 0)
			_exit(1); /* which raises no signal */
		setenv("TERN_NET", net, 1);
		for (int i = 0; net_table[i]; i++)
			if (strlen(net_table[i]->name) == len &&
			    strncmp(net_table[i]->name, net, len) == 0)
				_exit(!net_table[i]->usable(why, sizeof why));
		_exit(1);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* `fault` as for TERN_FAULT, without a seed. */
static inline void traffic_run(const char *net, const char *fault, uint32_t ranks,
			       unsigned messages)
{
	char text[128] = "";
	traffic.seed = check_seed();
	traffic.messages = messages;
	if (*fault)
		snprintf(text, sizeof text, "%s,seed=%llu", fault,
			 (unsigned long long)traffic.seed);
	setenv("TERN_NET", net, 1);
	setenv("TERN_FAULT", text, 1);
	ranks_run(ranks, traffic_rank);
}

#endif
