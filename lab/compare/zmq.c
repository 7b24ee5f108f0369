/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end for ZeroMQ: a pair of sockets over ipc. It has a thread of its own at each rank. */
#include <stdio.h>
#include <zmq.h>

#include "pair.h"
#include "peer.h"

static void *context, *line;

static void must(int rc, const char *call)
{
	if (rc < 0)
		pair_fail(call, zmq_strerror(zmq_errno()));
}

const bool pair_threads = true;

void pair_open(void)
{
	char name[128];
	int none = 0;
	snprintf(name, sizeof name, "ipc://%s", pair_address());
	context = zmq_ctx_new();
	line = zmq_socket(context, ZMQ_PAIR);
	must(zmq_setsockopt(line, ZMQ_LINGER, &none, sizeof none), "zmq_setsockopt");
	if (peer_rank() == 0)
		must(zmq_bind(line, name), "zmq_bind");
	peer_barrier();
	if (peer_rank() == 1)
		must(zmq_connect(line, name), "zmq_connect");
}

void pair_close(void)
{
	zmq_close(line);
	zmq_ctx_term(context);
}

void pair_progress(void)
{
}

void pair_send(const void *data, size_t len)
{
	must(zmq_send(line, data, len, 0), "zmq_send");
}

void pair_receive(void *data, size_t len)
{
	must(zmq_recv(line, data, len, 0), "zmq_recv");
}
