/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-1 as it is spoken on a descriptor: lines of `name=value` words, one line for each
 * question and one for its answer. MPICH's mpiexec offers it, and so do Intel's, Flux, and
 * Slurm's service for PMI-2, which understands the older protocol on the same
 * descriptor. So this page does for all of them, and nothing has to be installed.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "boot/pmi/mpi.h"
#include "boot/pmi/pmi.h"

enum { LINE_MAX_BYTES = 4096, TABLE_MAX = 256 };

static struct {
	int fd;
	struct stat socket;    /* what that is */
	char table[TABLE_MAX]; /* the name of the job's table of keys and values */
	char line[LINE_MAX_BYTES];
} pmi1 = { .fd = -1 };

static int pmi1_broken(const char *what)
{
	return error_set(-EPROTO, "PMI_FD=%s: %s; the launcher does not speak PMI-1 there",
			 getenv("PMI_FD"), what);
}

static int pmi1_write(const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(pmi1.fd, text, len, MSG_NOSIGNAL);
		if (n < 0 && errno == ENOTSOCK)
			n = write(pmi1.fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return pmi1_broken(strerror(errno));
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/*
 * Byte by byte: nothing of what follows the line may be taken, and joining is all that this is for.
 */
static int pmi1_read(void)
{
	size_t len = 0;
	while (len < sizeof pmi1.line - 1) {
		ssize_t n = read(pmi1.fd, pmi1.line + len, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return pmi1_broken(n ? strerror(errno) : "the other end was closed");
		if (pmi1.line[len++] == '\n') {
			pmi1.line[len - 1] = '\0';
			return 0;
		}
	}
	return pmi1_broken("a line does not end");
}

/* The value of `name` in the answer, copied; false if it is not there or too long. */
static bool pmi1_word(const char *name, char *value, size_t room)
{
	size_t len = strlen(name);
	for (const char *word = pmi1.line; *word;
	     word += strcspn(word, " "), word += strspn(word, " ")) {
		if (strncmp(word, name, len) != 0 || word[len] != '=')
			continue;
		const char *from = word + len + 1;
		size_t n = strcspn(from, " ");
		if (n >= room)
			return false;
		memcpy(value, from, n);
		value[n] = '\0';
		return true;
	}
	return false;
}

/*
 * Asks and takes the answer, which has to be the one called `answer` and, if it has an rc, a good
 * one.
 */
static int pmi1_ask(const char *answer, const char *format, ...)
{
	char text[LINE_MAX_BYTES], value[64];
	va_list args;
	va_start(args, format);
	int len = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	int rc = pmi1_write(text, (size_t)len);
	if (!rc)
		rc = pmi1_read();
	if (rc)
		return rc;
	if (!pmi1_word("cmd", value, sizeof value) || strcmp(value, answer) != 0 ||
	    (pmi1_word("rc", value, sizeof value) && strcmp(value, "0") != 0))
		return error_set(-EPROTO, "the launcher was asked '%.60s' and answered '%.200s'",
				 text, pmi1.line);
	return 0;
}

static int variable_number(const char *variable, uint32_t *number)
{
	char *end;
	const char *text = getenv(variable);
	unsigned long n = text ? strtoul(text, &end, 10) : 0;
	if (!text || end == text || *end || n > UINT32_MAX)
		return error_set(-EPROTO, "PMI_FD is set, but %s=%s is no number", variable,
				 text ? text : "");
	*number = (uint32_t)n;
	return 0;
}

static int pmi1_open(uint32_t *rank, uint32_t *size)
{
	uint32_t fd;
	int rc = variable_number("PMI_FD", &fd);
	if (!rc)
		rc = variable_number("PMI_RANK", rank);
	if (!rc)
		rc = variable_number("PMI_SIZE", size);
	if (rc)
		return rc;
	pmi1.fd = (int)fd;
	fstat(pmi1.fd, &pmi1.socket);
	if (!mpi_speaks_pmi1()) /* Slurm does not answer who begins twice */
		rc = pmi1_ask("response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n");
	if (!rc)
		rc = pmi1_ask("my_kvsname", "cmd=get_my_kvsname\n");
	if (!rc && !pmi1_word("kvsname", pmi1.table, sizeof pmi1.table))
		rc = pmi1_broken("the job has no table");
	return rc;
}

static int pmi1_put(const char *key, const char *value)
{
	return pmi1_ask("put_result", "cmd=put kvsname=%s key=%s value=%s\n", pmi1.table, key,
			value);
}

static int pmi1_fence(void)
{
	return pmi1_ask("barrier_out", "cmd=barrier_in\n");
}

static int pmi1_get(uint32_t rank, const char *key, char *value, size_t len)
{
	char answered[32];
	int rc = pmi1_ask("get_result", "cmd=get kvsname=%s key=%s\n", pmi1.table, key);
	if (rc && pmi1_word("cmd", answered, sizeof answered) &&
	    strcmp(answered, "get_result") == 0)
		return -ENODATA; /* an rc that is not 0: there is no such key */
	if (!rc && !pmi1_word("value", value, len))
		rc = error_set(-EPROTO, "the launcher has nothing of rank %u", rank);
	return rc;
}

/* MPI may have closed it, and the number be another file's. */
static bool pmi1_there(void)
{
	struct stat now;
	return fstat(pmi1.fd, &now) == 0 && now.st_dev == pmi1.socket.st_dev &&
	       now.st_ino == pmi1.socket.st_ino;
}

static void pmi1_close(void)
{
	if (pmi1_there()) {
		pmi1_ask("finalize_ack", "cmd=finalize\n");
		close(pmi1.fd);
	}
	pmi1.fd = -1;
}

const struct pmi_ops pmi1_ops = {
	.name = "PMI-1",
	.starters = "an mpiexec or srun --mpi=pmi2",
	.sign = "PMI_FD",
	.count = "PMI_SIZE",
	.open = pmi1_open,
	.put = pmi1_put,
	.fence = pmi1_fence,
	.get = pmi1_get,
	.close = pmi1_close,
	.mark = { "SLURM_JOB_ID", "SLURM_STEP_ID" },
	.number = "SLURM_PROCID",
	.neighbours = pmi_slurm_neighbours,
	.started = pmi_slurm_neighbours,
};
