/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of the model, each with its code and with what whoever breaks it is advised to do
 * instead. advice_test.c breaks each of them and follows the advice.
 */
#ifndef TERN_CORE_RULES_H
#define TERN_CORE_RULES_H

enum rule {
	RULE_HANDLER,  /* a handler sends no request, does not poll and does not wait */
	RULE_PROGRAM,  /* a handler, a deferred function and a turn do not close their endpoint */
	RULE_DELIVERY, /* nor changes a deferred function how messages are delivered, nor a hold */
	RULE_REPLY_OUTSIDE, /* only handlers reply, */
	RULE_REPLY_REPLY,   /* and not to replies, */
	RULE_REPLY_OTHER,   /* but to their own request, */
	RULE_REPLY_TWICE,   /* once */
	RULE_HANDLING,      /* a message is kept, or its payload reused, by its handler */
	RULE_THREAD,        /* one thread has an endpoint */
	RULE_FORKED,        /* in one process */
	RULE_TURN,          /* nothing waits in a turn, */
	RULE_HOLD,          /* nor under a hold */
	RULE_WORDS,
	RULE_PAYLOAD,
	RULE_NUMBER,
	RULE_REGISTERED,
	RULE_RANK,
	RULES
};

struct rule_text {
	int code;
	/* The end of every sentence about this rule; "" if it gives the range that is allowed. */
	const char *advice;
};
extern const struct rule_text rule_table[RULES];

/* Returns the rule's code; its sentence is what `format` says was done, and the advice. */
int rule_broken(enum rule r, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
