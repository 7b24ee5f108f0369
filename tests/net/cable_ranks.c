/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cable_ranks tern FILE [BYTES]: rank 0 sends payloads of BYTES to rank 1, one way, until FILE
 * exists; rank 1 tells what came wrong. cable_ranks tcp FILE ADDRESS: the same over one TCP
 * connection to rank 1, which has that address; with CUBIC, as most have. What
 * tests/net/cable_test.sh lets share a cable.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tern/tern.h>

enum { NEXT, LAST, PORT = 7011, TRIES = 200, TRY_US = 20000 };

static unsigned char bytes[64 << 10];

/* -- Tern --------------------------------------------------------------------------------- */

static uint64_t came, wrong;
static _Atomic uint64_t lasts;

static void next(tern *t, const tern_msg *m)
{
	size_t len;
	const unsigned char *data = tern_msg_data(m, &len);
	(void)t;
	wrong += tern_msg_word(m, 0) != came;
	for (size_t i = 0; i < len; i++)
		wrong += data[i] != (unsigned char)came;
	came++;
}

static void last(tern *t, const tern_msg *m)
{
	wrong += tern_msg_word(m, 0) != came;
	tern_signal(t, &lasts, 1);
}

static int stream(tern *t, const char *file, size_t len)
{
	uint64_t sent = 0;
	int rc = 0;
	while (!rc && access(file, F_OK) != 0) {
		memset(bytes, (int)(unsigned char)sent, len);
		rc = tern_request_data(t, 1, NEXT, bytes, len, sent++);
	}
	return rc ? rc : tern_request(t, 1, LAST, sent);
}

static int over_tern(const char *file, size_t len)
{
	tern *t;
	if (len > TERN_PAYLOAD_MAX || tern_open(&t, NULL) != 0)
		return 2;
	int rc = tern_on(t, NEXT, next);
	if (!rc)
		rc = tern_on(t, LAST, last);
	if (!rc)
		rc = tern_barrier(t);
	if (!rc)
		rc = tern_rank(t) ? tern_wait(t, &lasts, 1) : stream(t, file, len);
	if (!rc)
		rc = tern_barrier(t);
	printf("rank %u: %llu messages, %llu wrong: %s\n", tern_rank(t), (unsigned long long)came,
	       (unsigned long long)wrong, rc ? tern_strerror(rc) : "fine");
	tern_close(t);
	return rc || wrong;
}

/* -- TCP ---------------------------------------------------------------------------------- */

static int tcp_take(int s)
{
	int on = 1;
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(s, (const struct sockaddr *)(const void *)&any, sizeof any) != 0 ||
	    listen(s, 1) != 0)
		return 1;
	int c = accept(s, NULL, NULL);
	while (c >= 0 && read(c, bytes, sizeof bytes) > 0)
		;
	return c < 0;
}

static int tcp_give(int s, const char *file, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	inet_pton(AF_INET, address, &to.sin_addr);
	setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "cubic", strlen("cubic"));
	for (int tries = 0; connect(s, (const struct sockaddr *)(const void *)&to, sizeof to) != 0;
	     tries++)
		if (tries == TRIES || usleep(TRY_US) != 0)
			return 1;
	while (access(file, F_OK) != 0) {
		struct pollfd p = { .fd = s, .events = POLLOUT };
		if (poll(&p, 1, 100) == 1 &&
		    send(s, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return 1;
	}
	return 0;
}

static int over_tcp(const char *file, const char *address)
{
	const char *rank = getenv("TERN_RANK");
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return s < 0 || (rank && *rank == '1' ? tcp_take(s) : tcp_give(s, file, address));
}

int main(int argc, char **argv)
{
	if (argc >= 3 && strcmp(argv[1], "tern") == 0)
		return over_tern(argv[2], argc > 3 ? strtoul(argv[3], NULL, 10) : TERN_PAYLOAD_MAX);
	if (argc == 4 && strcmp(argv[1], "tcp") == 0)
		return over_tcp(argv[2], argv[3]);
	return 2;
}
