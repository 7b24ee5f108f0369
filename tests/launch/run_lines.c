/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_lines COUNT LENGTH: writes numbered lines to both outputs, in pieces that
 * know nothing of lines. What tests/launch/run_test.sh starts as ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned chance(unsigned below)
{
	static unsigned long long state;
	if (!state)
		state = (unsigned)getpid() * 2654435761u + 1;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % below;
}

static void write_in_pieces(int fd, const char *text, size_t len)
{
	while (len) {
		size_t piece = 1 + chance(3000);
		ssize_t n = write(fd, text, piece < len ? piece : len);
		if (n < 0)
			exit(1);
		text += n;
		len -= (size_t)n;
	}
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1000, length = argc > 2 ? atoi(argv[2]) : 200;
	const char *rank = getenv("TERN_RANK");
	char *text = malloc((size_t)count * ((size_t)length + 64)), *at = text;
	char *filler = malloc((size_t)length + 1);
	if (!text || !filler)
		return 1;
	memset(filler, 'a' + atoi(rank ? rank : "0") % 26, (size_t)length);
	filler[length] = '\0';
	for (int i = 0; i < count; i++)
		at += sprintf(at, "rank %s line %d %s\n", rank ? rank : "0", i, filler);
	write_in_pieces(STDOUT_FILENO, text, (size_t)(at - text));
	write_in_pieces(STDERR_FILENO, text, (size_t)(at - text));
	free(filler);
	free(text);
	return 0;
}
