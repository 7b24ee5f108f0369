/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tern-link, one on each machine of a job: what comes first over its wire, standard input and
 * output, says whether it starts the machine's ranks or watches them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "boot/link/link.h"
#include "boot/link/program.h"
#include "tools/run/run.h"

static int refuse(const char *why)
{
	fprintf(stderr,
		"tern-link: %s: `tern run --hosts` starts this program, or a rank under another "
		"launcher, and its input is theirs\n",
		why);
	return 1;
}

int main(int argc, char **argv)
{
	static struct wire wire; /* it lives as long as the process */
	struct frame first;
	if (isatty(STDIN_FILENO))
		return refuse("this is a terminal");
	wire_open(&wire, fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, PROGRAM_END),
		  fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, PROGRAM_END));
	if (!wire_wait(&wire, &first))
		return refuse(wire.error
				      ? "what comes in is no order"
				      : "whoever started this has gone before it said what to do");
	if (first.type == FRAME_WATCH)
		return link_watch(&wire);
	if (first.type == FRAME_ORDER)
		return order_run(&wire, &first, argc, argv);
	return refuse("what comes in is no order");
}
