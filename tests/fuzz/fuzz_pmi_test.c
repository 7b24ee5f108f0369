/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whatever a process manager answers on its descriptor, joining ends with cards or with a sentence.
 */
#include "fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

#include <tern/tern.h>

#include "boot/pmi/pmi.h"

enum { CARD = 12, RANKS = 2 };

static int cards_gather(uint8_t all[RANKS][CARD])
{
	uint8_t mine[CARD] = "of rank 0";
	uint32_t rank, size;
	int rc = pmi_open(&pmi1_ops, &rank, &size);
	if (rc)
		return rc;
	rc = pmi_gather(&pmi1_ops, rank, size, "card", mine, sizeof mine, all);
	pmi1_ops.close();
	return rc;
}

/* The input is all that the manager ever says. */
static void fuzz_one(const uint8_t *bytes, size_t len)
{
	uint8_t all[RANKS][CARD];
	int fd[2];
	char number[16];
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	REQUIRE(write(fd[1], bytes, len) == (ssize_t)len && shutdown(fd[1], SHUT_WR) == 0);
	snprintf(number, sizeof number, "%d",
		 dup(fd[0])); /* the conversation may close it, or not */
	setenv("PMI_FD", number, 1);
	setenv("PMI_RANK", "0", 1);
	setenv("PMI_SIZE", "2", 1);
	int rc = cards_gather(all);
	REQUIRE(rc <= 0 && (rc == 0 || *tern_strerror(rc)));
	close(atoi(number));
	close(fd[0]);
	close(fd[1]);
}

FUZZ_TARGET(pmi, 200)
