/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the file of one rank's trace. */
#include "tools/trace/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tern/tern.h>

#include "base/error.h"
#include "job/job.h"

enum { READ_AT_ONCE = 1 << 16 }; /* records */

#define TIME_MOST \
	(UINT64_C(1) << 58) /* ns: nine years, and far from where sums of times overflow */

static int head_check(const char *path, const struct trace_head *h, size_t bytes)
{
	if (!bytes)
		return error_set(-EBADMSG, "%s is empty: its rank never came to write", path);
	if (bytes < sizeof h->magic || memcmp(h->magic, TRACE_MAGIC, sizeof h->magic) != 0)
		return error_set(
			-EBADMSG,
			"%s is not a trace: TERN_TRACE=FILE makes them, as FILE.0, FILE.1 ...",
			path);
	if (bytes < sizeof *h)
		return error_set(-EBADMSG, "%s is truncated: it has %zu bytes of a head of %zu",
				 path, bytes, sizeof *h);
	if (h->record_bytes != sizeof(struct trace_record))
		return error_set(-EPROTO,
				 "%s has records of %u bytes and this command knows those of %zu: "
				 "use the command of the library that wrote it",
				 path, h->record_bytes, sizeof(struct trace_record));
	if (!h->size || h->size > TERN_RANKS_MAX || h->rank >= h->size)
		return error_set(-EBADMSG, "%s is damaged: it says that it is rank %u of %u", path,
				 h->rank, h->size);
	return 0;
}

static int record_check(const struct track *t, size_t i)
{
	const struct trace_record *r = &t->record[i];
	const char *what = NULL;
	if (r->kind >= RECORD_KINDS)
		what = "is of no known kind";
	else if (r->kind <= RECORD_RETURN &&
		 (r->peer >= t->head.size || r->handler >= TERN_HANDLER_SLOTS))
		what = "names a rank or a handler that there is not";
	else if (i && r->time < t->record[i - 1].time)
		what = "is older than the one before";
	else if (r->time > TIME_MOST)
		what = "has a time that no clock has reached";
	return what ? error_set(-EBADMSG, "%s is damaged: record %zu %s", t->path, i, what) : 0;
}

static bool is_text(const char *name)
{
	while (*name >= ' ' && *name <= '~')
		name++;
	return !*name;
}

/* Takes the name at `i` out; how many records' places it takes, or 0 if the file ends within it. */
static size_t name_take(struct track *t, size_t i)
{
	const struct trace_record *r = &t->record[i];
	uint32_t bytes = r->bytes;
	size_t places = 1 + record_name_places(bytes);
	if (i + places > t->records)
		return 0;
	memcpy(t->name[r->handler], r + 1, bytes);
	t->name[r->handler][bytes] = '\0';
	if (r->handler < TERN_HANDLER_SLOTS ? !job_name_in(t->name[r->handler])
					    : !is_text(t->name[r->handler]))
		t->name[r->handler][0] = '\0';
	return places;
}

static int names_take(struct track *t)
{
	size_t kept = 0;
	t->name = calloc(TERN_HANDLER_SLOTS + RECORD_CALLS, sizeof *t->name);
	if (!t->name)
		return error_set(-ENOMEM, "%s: no memory for the names of handlers", t->path);
	for (size_t i = 0, places; i < t->records; i += places) {
		const struct trace_record *r = &t->record[i];
		places = 1;
		if (r->kind != RECORD_NAME) {
			t->record[kept++] = *r;
			continue;
		}
		if (r->handler >= TERN_HANDLER_SLOTS + RECORD_CALLS || r->bytes > RECORD_NAME_MOST)
			return error_set(-EBADMSG, "%s is damaged: record %zu names no handler",
					 t->path, i);
		places = name_take(t, i);
		if (!places) {
			t->cut = true;
			break;
		}
	}
	t->records = kept;
	return 0;
}

static int records_grow(struct track *t)
{
	struct trace_record *more = realloc(t->record, (t->records + READ_AT_ONCE) * sizeof *more);
	if (!more)
		return error_set(-ENOMEM, "%s: no memory for more than %zu records", t->path,
				 t->records);
	t->record = more;
	return 0;
}

static int records_read(struct track *t, FILE *from)
{
	size_t bytes = 0;
	int rc;
	do {
		rc = records_grow(t);
		if (rc)
			return rc;
		bytes = fread(t->record + t->records, 1, READ_AT_ONCE * sizeof *t->record, from);
		t->records += bytes / sizeof *t->record;
	} while (bytes == READ_AT_ONCE * sizeof *t->record);
	t->cut = bytes % sizeof *t->record != 0;
	if (ferror(from))
		return error_set(-EIO, "%s cannot be read: %s", t->path, strerror(errno));
	rc = names_take(t);
	for (size_t i = 0; i < t->records && !rc; i++)
		rc = record_check(t, i);
	return rc;
}

int track_read(struct track *t, const char *path)
{
	*t = (struct track){ .path = path };
	FILE *from = fopen(path, "rb");
	if (!from)
		return error_set(-errno, "%s cannot be read: %s", path, strerror(errno));
	size_t bytes = fread(&t->head, 1, sizeof t->head, from);
	int rc = ferror(from) ? error_set(-EIO, "%s cannot be read: %s", path, strerror(errno))
			      : head_check(path, &t->head, bytes);
	t->head.program[sizeof t->head.program - 1] = '\0';
	if (!rc)
		rc = records_read(t, from);
	fclose(from);
	return rc;
}

bool track_closed(const struct track *t)
{
	return t->records && t->record[t->records - 1].kind == RECORD_CLOSE;
}
