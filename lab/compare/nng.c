/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end for nng: a pair of sockets over ipc. It has threads of its own at each rank. */
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <stdio.h>

#include "pair.h"
#include "peer.h"

static nng_socket line;

static void must(int rc, const char *call)
{
	if (rc)
		pair_fail(call, nng_strerror(rc));
}

const bool pair_threads = true;

void pair_open(void)
{
	char name[128];
	snprintf(name, sizeof name, "ipc://%s", pair_address());
	must(nng_pair0_open(&line), "nng_pair0_open");
	must(nng_socket_set_size(line, NNG_OPT_RECVMAXSZ, 0), "nng_socket_set_size");
	must(nng_socket_set_int(line, NNG_OPT_SENDBUF, PEER_BURST), "nng_socket_set_int");
	must(nng_socket_set_int(line, NNG_OPT_RECVBUF, PEER_BURST), "nng_socket_set_int");
	if (peer_rank() == 0)
		must(nng_listen(line, name, NULL, 0), "nng_listen");
	peer_barrier();
	if (peer_rank() == 1)
		must(nng_dial(line, name, NULL, 0), "nng_dial");
}

void pair_close(void)
{
	nng_close(line);
}

void pair_progress(void)
{
}

void pair_send(const void *data, size_t len)
{
	must(nng_send(line, (void *)(uintptr_t)data, len, 0), "nng_send");
}

void pair_receive(void *data, size_t len)
{
	must(nng_recv(line, data, &len, 0), "nng_recv");
}
