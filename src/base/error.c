/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread's last sentence, and what a code means without one. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tern/tern.h>

/* Per thread, so that two jobs of one process do not write over each other. */
static _Thread_local struct error_kept last;

int error_set(int rc, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(last.text, sizeof last.text, format, args);
	va_end(args);
	last.rc = rc;
	return rc;
}

int error_system(const char *format, ...)
{
	int error = errno;
	char done[400];
	va_list args;
	va_start(args, format);
	vsnprintf(done, sizeof done, format, args);
	va_end(args);
	return error_set(-error, "%s: %s", done, strerror(error));
}

void error_keep(struct error_kept *kept)
{
	*kept = last;
}

void error_restore(const struct error_kept *kept)
{
	last = *kept;
}

void error_warn(const char *format, ...)
{
	char line[512] = "tern: ";
	size_t begun = strlen(line), room = sizeof line - begun - 1;
	va_list args;
	va_start(args, format);
	vsnprintf(line + begun, room, format, args);
	va_end(args);
	size_t len = strlen(line);
	line[len] = '\n';
	/*
	 * One call, so that lines of several ranks do not mix; and not stdio, which an interrupt
	 * may find in use.
	 */
	while (write(STDERR_FILENO, line, len + 1) < 0 && errno == EINTR)
		;
}

static const struct {
	int rc;
	const char *sentence;
} general[] = {
	{ 0, "success" },
	{ -EAGAIN, "there is no room now and nothing was taken: make progress and try again" },
	{ -EPERM, "the rules of the model forbid this call here (tern(7) has the table)" },
	{ -EALREADY, "this request has been answered already: a handler replies at most once" },
	{ -EDEADLK, "waiting under a hold would never end: release it first" },
	{ -ENXIO, "no handler is registered under this number" },
	{ -ERANGE, "the rank or handler number is out of range" },
	{ -E2BIG, "a message carries at most 8 words" },
	{ -EMSGSIZE, "the payload is longer than a message carries" },
	{ -ENODATA, "the message ends here: tern_chan_next() goes on to the next one" },
	{ -ENOMSG,
	  "something else waits in the channel: a procedure, which tern_chan_run() runs, or data" },
	{ -EPIPE, "the other end of the channel is closed" },
	{ -EOWNERDEAD, "a rank of the job has died" },
	{ -ESHUTDOWN, "the rank has closed its endpoint" },
	{ -EHOSTUNREACH,
	  "a rank of the job cannot be reached, though it is not known to have ended" },
	{ -ENOMEM, "there is not enough memory" },
	{ -EINVAL, "an argument is not what this call takes" },
	{ -EBUSY, "it is too late for that: the endpoint is in use" },
	{ -EBADMSG, "something arrived that is not a message of this job; it was dropped" },
	{ -EPROTO, "the program and the library come from different versions of Tern" },
	{ -ENOTSUP, "this is not supported here" },
	{ -ENOBUFS, "every block or slot of this endpoint is in use: give one back" },
};

const char *tern_strerror(int rc)
{
	if (rc && rc == last.rc)
		return last.text;
	for (size_t i = 0; i < sizeof general / sizeof *general; i++)
		if (general[i].rc == rc)
			return general[i].sentence;
	return rc > 0 ? "success" : strerror(-rc);
}
