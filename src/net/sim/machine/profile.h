/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a simulated machine is like: lines `key = value`, from a file or one of those that are built
 * in. One table has every key, its unit, its limits and its meaning; the man page, --help and the
 * sentences of errors are made from it.
 */
#ifndef TERN_NET_SIM_MACHINE_PROFILE_H
#define TERN_NET_SIM_MACHINE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROFILE_NAME = 32 };

/* Times are in ps. */
struct profile {
	char name[PROFILE_NAME];
	char network[PROFILE_NAME], controller[PROFILE_NAME];
	/* The processor. */
	uint64_t cycle;                          /* of its clock */
	uint64_t send_request, send_reply;       /* overhead of sending one packet, */
	uint64_t receive;                        /* of receiving one, */
	uint64_t send_word, receive_word;        /* and of each word of it */
	uint64_t poll;                           /* of looking in vain */
	uint64_t integer, floating, load, store; /* prices of tern_sim_work() */
	uint64_t cpu;           /* percent of measured CPU time that passes; 0: none is measured */
	uint64_t contexts;      /* threads that it has registers for; 0: as TERN_CONTEXTS says */
	uint64_t quantum;       /* after which another thread has its turn; 0: when one waits */
	uint64_t thread_switch; /* what going on with another thread takes */
	uint64_t memory;        /* bytes of a node; 0: as TERN_HEAP says */
	/* Its communication processor: then send_*, receive are what that takes, */
	uint64_t command, command_block; /* and these what handing over takes the processor, */
	uint64_t interrupt;              /* and a message for the program's handler */
	uint64_t prepare;                /* before the first line of a block */
	uint64_t line, line_bytes;       /* of each line of it */
	uint64_t queue;                  /* flits that a transmission queue has room for */
	uint64_t thread_queues, descriptors;
	/* The network. */
	uint64_t latency;                 /* of a packet, without its hops */
	uint64_t hop;                     /* of each node or switch between the ends */
	uint64_t gap;                     /* between two packets of a node, at either end */
	uint64_t gap_byte;                /* for each byte of it */
	uint64_t flit, flit_bytes;        /* of a mesh: a cycle, and what a link carries in it */
	uint64_t channels, channel_flits; /* virtual channels of a link, and the room of each */
	uint64_t channel_types;           /* 1: each type of message has some of its own */
	uint64_t wrap;                    /* its rows and columns are circles */
	uint64_t whole;                   /* a worm that meets nobody moves as one */
	uint64_t width;                   /* nodes in a row; 0: as square as can be */
	uint64_t header;                  /* bytes of a packet besides its arguments and data */
	uint64_t jitter;                  /* a packet waits so long at most before it enters */
	uint64_t drop;                    /* packets of a million that vanish */
	uint64_t corrupt;                 /* packets of a million that arrive damaged */
	uint64_t crash_node, crash_at;    /* this node ends at that time; 0: none does so */
	uint64_t crash_mean;              /* when nodes end, in the mean; 0: never */
	uint64_t order, room; /* whether it keeps order, and has room for every packet, */
	uint64_t tolerant;    /* and sends again what it would lose */
	uint64_t seed;        /* of all that is random */
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
