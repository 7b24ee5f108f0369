/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of handlers in the job's memory, for whoever looks at it from outside. */
#include <string.h>

#include "job/job.h"

enum { NAME_NONE, NAME_BEING_WRITTEN, NAME_WRITTEN };

static bool is_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

const char *job_name_in(const char *text)
{
	const char *name = text && *text == '&' ? text + 1 : text;
	if (!name || !*name || (*name >= '0' && *name <= '9'))
		return NULL;
	for (const char *c = name; *c; c++)
		if (!is_of_name(*c))
			return NULL;
	return name;
}

void job_name_set(struct job *j, unsigned id, const char *name)
{
	struct job_name *n = &j->name[id];
	uint32_t none = NAME_NONE;
	if (!atomic_compare_exchange_strong(&n->state, &none, NAME_BEING_WRITTEN))
		return;
	memcpy(n->text, name, strnlen(name, sizeof n->text - 1));
	/* name.R10, release; acquired in job_name_get(): whoever sees the state sees the text. */
	atomic_store_explicit(&n->state, NAME_WRITTEN, memory_order_release);
}

bool job_name_get(const struct job *j, unsigned id, char text[JOB_NAME])
{
	const struct job_name *n = &j->name[id];
	if (atomic_load_explicit(&n->state, memory_order_acquire) != NAME_WRITTEN) /* name.R10 */
		return false;
	memcpy(text, n->text, JOB_NAME);
	text[JOB_NAME - 1] = '\0';
	return job_name_in(text) == text; /* the memory may have been written over */
}

/* cost: base setup */
