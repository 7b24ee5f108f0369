/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a trace file holds: a head, then records in the order of their times. The
 * library writes it (trace.c), `tern trace` reads it.
 *
 * Nothing on the wire says which send a delivery belongs to, and nothing needs to:
 * the n-th request from a to b is the n-th that b handles, and replies likewise. Both
 * sides count, also what they could not record.
 */
#ifndef TERN_ENDPOINT_RECORD_H
#define TERN_ENDPOINT_RECORD_H

#include <stdint.h>

#define TRACE_MAGIC "TERNTRC1"

enum record_kind {
	RECORD_REQUEST,   /* a request is sent to `peer` */
	RECORD_REPLY,     /* a reply */
	RECORD_HANDLE,    /* a request from `peer` has arrived: its handler begins */
	RECORD_HANDLE_RE, /* a reply */
	RECORD_RETURN,    /* the handler that began last is over */
	/*
	 * A wait begins; `handler` is an enum wait_what, `bytes` the number of the call's name plus
	 * 1, and `peer` the light thread that waits; 0: the program.
	 */
	RECORD_WAIT,
	RECORD_WAITED,
	RECORD_BARRIER, /* `sequence` counts this rank's barriers */
	RECORD_PASSED,
	RECORD_DROPPED, /* `sequence` records before this one had no room */
	RECORD_CLOSE,   /* the last one of a rank that ended well */
	/* `handler` has a name of `bytes` bytes, which lies in the place of the records that
	   follow. Numbers from TERN_HANDLER_SLOTS on are those of calls. */
	RECORD_NAME,
	RECORD_CALL, /* a call on a team begins; `bytes` and `peer` as of a wait */
	RECORD_CALLED,
	RECORD_THREAD, /* the light thread `peer` begins */
	RECORD_ENDED,
	RECORD_KINDS
};

enum wait_what { WAIT_OPERATION, WAIT_FLAG, WAIT_ROOM, WAIT_BLOCK, WAIT_KINDS };

struct trace_record {
	uint64_t time;     /* ns, of the machine's monotonic clock */
	uint32_t sequence; /* of a message: counted per peer, and requests apart from replies */
	uint32_t bytes;    /* of a message: its words and its payload */
	uint16_t peer;
	uint16_t handler;
	uint8_t kind;
	uint8_t unused_[3];
};

/* How many records' places a name takes, the longest there is, and names of calls. */
enum { RECORD_NAME_MOST = 48, RECORD_CALLS = 64 };
static inline unsigned record_name_places(uint32_t bytes)
{
	return (bytes + (uint32_t)sizeof(struct trace_record) - 1) /
	       (uint32_t)sizeof(struct trace_record);
}

struct trace_head {
	char magic[8];
	uint32_t record_bytes;
	uint32_t rank, size;
	uint32_t pid;
	uint64_t job;     /* the same for all ranks of a job, and for no others on this machine */
	uint64_t time;    /* when the rank opened, of the clock that records have */
	char program[88]; /* its name, for people */
};

_Static_assert(sizeof(struct trace_record) == 24, "a record is 24 bytes in every build");
_Static_assert(sizeof(struct trace_head) == 128, "the head is 128 bytes in every build");

#endif
