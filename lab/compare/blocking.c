/* SPDX-License-Identifier: BSD-3-Clause */
/* For libraries of pair.h whose send and receive block: the calls of peer.h by these two alone. */
#include "pair.h"
#include "peer.h"

uint64_t peer_trips(uint64_t count)
{
	uint64_t sum = 0, word;
	for (uint64_t i = 0; i < count; i++) {
		if (peer_rank() == 0)
			pair_send(&i, sizeof i);
		pair_receive(&word, sizeof word);
		sum += word++;
		if (peer_rank() == 1)
			pair_send(&word, sizeof word);
	}
	return sum;
}

void peer_words_send(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		pair_send(&i, sizeof i);
}

uint64_t peer_words_take(uint64_t count)
{
	uint64_t sum = 0, word;
	for (uint64_t i = 0; i < count; i++) {
		pair_receive(&word, sizeof word);
		sum += word;
	}
	return sum;
}

void peer_stream(double *data, size_t n, size_t apart, size_t places, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		double *at = data + i % places * apart;
		if (peer_rank() == 0)
			pair_send(at, n * sizeof *at);
		else
			pair_receive(at, n * sizeof *at);
	}
}
