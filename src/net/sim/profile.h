/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a simulated machine is like: lines `key = value`, from a file or one of those that are built
 * in. One table has every key, its unit, its limits and its meaning; the man page, --help and the
 * sentences of errors are made from it.
 */
#ifndef TERN_NET_SIM_PROFILE_H
#define TERN_NET_SIM_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROFILE_NAME = 32 };

/* Times are in ps. */
struct profile {
	char name[PROFILE_NAME];
	char network[PROFILE_NAME];
	/* The processor. */
	uint64_t cycle;                          /* of its clock */
	uint64_t send_request, send_reply;       /* overhead of sending one packet, */
	uint64_t receive;                        /* of receiving one, */
	uint64_t send_word, receive_word;        /* and of each word of it */
	uint64_t poll;                           /* of looking in vain */
	uint64_t integer, floating, load, store; /* prices of tern_sim_work() */
	/* The network. */
	uint64_t latency;                 /* of a packet, without its hops */
	uint64_t hop;                     /* of each node or switch between the ends */
	uint64_t gap;                     /* between two packets of a node, at either end */
	uint64_t gap_byte;                /* for each byte of it */
	uint64_t flit, flit_bytes;        /* of a mesh: a cycle, and what a link carries in it */
	uint64_t channels, channel_flits; /* virtual channels of a link, and the room of each */
	uint64_t wrap;                    /* its rows and columns are circles */
	uint64_t whole;                   /* a worm that meets nobody moves as one */
	uint64_t width;                   /* nodes in a row; 0: as square as can be */
	uint64_t header;                  /* bytes of a packet besides its arguments and data */
	uint64_t jitter;                  /* a packet waits so long at most before it enters */
	uint64_t drop;                    /* packets of a million that vanish */
	uint64_t seed;                    /* of both */
};

enum profile_unit { UNIT_NUMBER, UNIT_TIME };

struct profile_key {
	const char *name;
	enum profile_unit unit;
	size_t offset; /* of a uint64_t in struct profile */
	uint64_t least, most;
	const char *fallback, *meaning;
};
extern const struct profile_key profile_key[]; /* ends with a name of NULL */

/* Those that are built in. */
struct profile_text {
	const char *name, *meaning, *text;
};
extern const struct profile_text profile_text[]; /* ends with a name of NULL */

/*
 * A built-in name or the path of a file, and other values for its keys behind commas, as in
 * "cm5,latency=2us". -EINVAL, -ENOENT with a sentence.
 */
int profile_load(struct profile *p, const char *name);
/* One line, `where` being what sentences call it. -EINVAL with a sentence. */
int profile_set(struct profile *p, const char *line, const char *where);

#endif
