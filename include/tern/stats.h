/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank has done so far. tern_stats(3) says what each figure means.
 *
 * Some figures are there always, because they cost nothing or are counted on slow paths. Those
 * marked * need TERN_STATS=1 and are 0 without. All calls may be made anywhere, in handlers
 * too, by the thread that has the endpoint; none waits, none serves messages.
 */
#ifndef TERN_STATS_H
#define TERN_STATS_H

#include <tern/tern.h>

TERN_BEGIN_

typedef struct tern_stats_data {
	uint64_t sent, handled;          /* messages, Tern's own included */
	uint64_t bytes;                  /* * handled: words and payloads */
	uint64_t timed, handler_ns;      /* * handlers whose time was taken, and that time */
	uint64_t waits;                  /* that outlasted looking at the rings */
	uint64_t yields, naps, sleeps;   /* what those waits did */
	uint64_t slept_ns;               /* how long the sleeps took */
	uint64_t bells, knocks;          /* wake-ups: by others here, by this rank elsewhere */
	uint64_t room_stalls, room_ns;   /* requests that found their ring full; * how long */
	uint64_t block_stalls, block_ns; /* payloads that found no free block; * how long */
	uint64_t gates; /* times that requests here waited for room for their replies */
	uint64_t interrupts,
		claims; /* interrupts that served; times that the progress thread took over */
	uint64_t deferred_most, queue_most; /* the most that waited at once: deferred functions, *
					       messages of a peer */
	int counting; /* 1 if TERN_STATS is on, so that what is marked * counts */
} tern_stats_data;

typedef struct tern_stats_peer_data {
	uint64_t sent;       /* requests and replies to it */
	uint64_t sent_bytes; /* * of those that it has handled; it must count, too */
	uint64_t handled, requests, replies; /* from it; the sum, and * each */
	uint64_t bytes;                      /* * from it */
	uint64_t queue_most;                 /* * messages handled at a stretch */
} tern_stats_peer_data;

typedef struct tern_stats_handler_data {
	uint64_t count, bytes;
	uint64_t timed, ns,
		longest_ns; /* of the first 4096 messages one in 16 is timed, then one in 256 */
	const char *name;   /* its function, as tern_on() was told, or NULL; or the layer */
} tern_stats_handler_data;

/*
 * Packets of this rank, on a network of packets; on shared memory alone all are 0. Later versions
 * may append figures: `size` says how many the program knows of.
 */
typedef struct tern_stats_net_data {
	size_t size;             /* sizeof(tern_stats_net_data), set by the caller */
	uint64_t sent, received; /* to and from ranks of the job */
	uint64_t again;          /* sent once more, because no word came that they had arrived */
	uint64_t doubled;        /* received though they had been before: sent again for nothing */
	uint64_t early;          /* kept until those before them had come */
	uint64_t refused;        /* for want of room; their sender sends them again */
	/* Dropped: */
	uint64_t malformed; /* nothing that a rank writes */
	uint64_t foreign;   /* of nobody in this job, or with other services or protection */
	uint64_t old;       /* of another session, or a copy of one that had come */
	uint64_t forged;    /* not written by the rank that it names, or changed on the way */
} tern_stats_net_data;

/*
 * Numbers of handlers: below TERN_HANDLER_MAX the program's, then Tern's own. From TERN_STATS_LAYER
 * on, the sums of the program's ("user"), and of each layer of this build, such as "mem".
 */
enum { TERN_STATS_LAYER = 1024, TERN_STATS_LAYERS = 17 };

/* Each writes *out and returns 0, or -ERANGE if there is no such rank, handler or layer. */
int tern_stats(tern *t, tern_stats_data *out);
int tern_stats_peer(tern *t, uint32_t rank, tern_stats_peer_data *out);
int tern_stats_handler(tern *t, unsigned id, tern_stats_handler_data *out); /* * */
/* -EINVAL instead, if out->size was not set. */
int tern_stats_net(tern *t, tern_stats_net_data *out);

TERN_END_

#endif
