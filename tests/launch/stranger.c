/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stranger SECONDS ADDRESS:PORT...: fills the accept queues of whoever listens there, saying
 * nothing. What launch_frame.sh starts.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4000, MANY = 1000, AT_ONCE = 24, LATER = 5, NAP_NS = 50000000 };

static int held[MOST];
static unsigned long calls;

static void call(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)(const void *)to, sizeof *to) != 0 &&
	    errno != EINPROGRESS) {
		close(fd);
		return;
	}
	int *place = &held[calls++ % MOST];
	if (*place)
		close(*place);
	*place = fd;
}

static int address_read(char *text, struct sockaddr_in *a)
{
	char *port = strchr(text, ':');
	*a = (struct sockaddr_in){ .sin_family = AF_INET };
	if (!port)
		return 0;
	*port++ = '\0';
	a->sin_port = htons((uint16_t)atoi(port));
	return inet_pton(AF_INET, text, &a->sin_addr);
}

int main(int argc, char **argv)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	struct sockaddr_in to[64];
	int n = 0;
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);
	for (int i = 2; i < argc && n < 64; i++)
		n += address_read(argv[i], &to[n]);
	while (n && time(NULL) < end) {
		for (int i = 0; i < n; i++)
			for (int k = 0; k < (calls < MANY ? AT_ONCE : LATER); k++)
				call(&to[i]);
		nanosleep(&nap, NULL);
	}
	printf("strangers %lu\n", calls);
	return n && calls ? 0 : 1;
}
