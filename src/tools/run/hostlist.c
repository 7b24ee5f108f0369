/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of a job's hosts, the ranks that each gets, and the command that reaches it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/setting.h"
#include "boot/link/program.h"
#include "tools/run/hosts.h"

/* -- The list --------------------------------------------------------------------------- */

/*
 * Cuts the number off `name:4` and `[name]:4`. An address with several colons and no brackets is a
 * name. False if there is no number of ranks where one should be.
 */
static bool host_slots(struct host *h)
{
	char *end, *sign = strchr(h->name, ':');
	if (*h->name == '[' && (end = strchr(h->name, ']'))) {
		sign = end[1] ? end + 1 : NULL;
		*end = '\0';
		h->name++;
	} else if (sign && strchr(sign + 1, ':')) {
		sign = NULL;
	}
	if (!sign)
		return true;
	bool number = *sign == ':' && sign[1] >= '0' && sign[1] <= '9';
	unsigned long n = number ? strtoul(sign + 1, &end, 10) : 0;
	if (!n || *end || n > TERN_RANKS_MAX)
		return false;
	*sign = '\0';
	h->slots = (uint32_t)n;
	return true;
}

/* A name that begins like an option would be one to the remote shell. */
static int host_check(const struct hosts *h, const struct host *new)
{
	const char *name = new->name;
	if (!*name || *name == '-' || strpbrk(name, " \t\n"))
		return error_set(
			-EINVAL,
			"--hosts: '%s' is no host; the names follow each other with commas "
			"between, "
			"as in --hosts a,b,c",
			name);
	for (const struct host *old = h->host; old < new; old++)
		if (strcmp(name, old->name) == 0)
			return error_set(-EINVAL, "--hosts: %s is named twice", name);
	if (!new->slots != !h->host[0].slots)
		return error_set(
			-EINVAL,
			"--hosts: %s has a number of ranks and %s has none; give one to each, or "
			"to none",
			h->host[new->slots ? h->count - 1 : 0].name,
			h->host[new->slots ? 0 : h->count - 1].name);
	return 0;
}

static int host_add(struct hosts *h, char *name)
{
	struct host *more = realloc(h->host, (h->count + 1) * sizeof *more);
	if (!more)
		return error_set(-ENOMEM, "--hosts: no memory");
	h->host = more;
	struct host *new = &more[h->count++];
	*new = (struct host){ .name = name, .wire = { .from = -1, .to = -1 } };
	if (host_slots(new))
		return host_check(h, new);
	return error_set(-EINVAL,
			 "--hosts: '%s' has no number of ranks behind its colon, 1 to %d, as in "
			 "--hosts a:4,b:8",
			 name, TERN_RANKS_MAX);
}

/* How many ranks the job has: as was asked for, or as there are places. */
static int hosts_total(const struct hosts *h, struct run_options *o)
{
	uint64_t places = 0;
	for (uint32_t i = 0; i < h->count; i++)
		places += h->host[i].slots;
	if (!o->total && !places)
		return error_set(
			-EINVAL,
			"how many ranks? Say it with -n, or for each host, as in --hosts a:4,b:8");
	if (!o->total && places > TERN_RANKS_MAX)
		return error_set(
			-EINVAL,
			"the hosts have %llu places, and a job has %d ranks at most: say how many "
			"with -n",
			(unsigned long long)places, TERN_RANKS_MAX);
	if (places && o->total > places)
		return error_set(
			-EINVAL,
			"-n %u: the hosts have %llu places; name more hosts, or give them more",
			o->total, (unsigned long long)places);
	if (!o->total)
		o->total = o->ranks = (uint32_t)places;
	return 0;
}

static void hosts_divide(struct hosts *h, struct run_options *o)
{
	uint32_t next = 0;
	if (h->count > o->total)
		h->count = o->total;
	for (uint32_t i = 0; i < h->count; i++) {
		uint32_t left = o->total - next, slots = h->host[i].slots;
		uint32_t equal = (uint32_t)((uint64_t)o->total * (i + 1) / h->count) - next;
		h->host[i].first = next;
		h->host[i].ranks = !slots ? equal : slots < left ? slots : left;
		o->order.share[i] = (uint16_t)h->host[i].ranks;
		next += h->host[i].ranks;
		if (next == o->total)
			h->count = i + 1;
	}
	o->order.host_count = h->count;
}

/* In quotes, for the shell of the other host, which takes its command apart. */
static int link_quote(struct hosts *h)
{
	char path[PATH_MAX];
	int rc = program_find(path);
	if (rc)
		return rc;
	if (strchr(path, '\''))
		return error_set(-EINVAL, "--hosts: the path of tern-link has a quote in it: %s",
				 path);
	if (asprintf(&h->quoted, "'%s'", path) >= 0)
		return 0;
	h->quoted = NULL;
	return error_set(-ENOMEM, "--hosts: no memory");
}

static int hosts_read(struct hosts *h, struct run_options *o)
{
	char *rest = h->text = strdup(o->hosts);
	int rc = rest ? 0 : error_set(-ENOMEM, "--hosts: no memory");
	for (char *name; !rc && (name = strsep(&rest, ","));)
		rc = host_add(h, name);
	return rc ? rc : hosts_total(h, o);
}

/*
 * Cuts a copy of --ssh into words. Without one the host's name would be taken for the command.
 */
static int shell_split(struct hosts *h, const char *text)
{
	char *rest = h->shell_text = strdup(text);
	h->shell = calloc(strlen(text) + 1, sizeof *h->shell);
	if (!rest || !h->shell)
		return error_set(-ENOMEM, "--ssh: no memory");
	for (char *word; (word = strsep(&rest, " "));)
		if (*word)
			h->shell[h->shell_words++] = word;
	if (h->shell_words)
		return 0;
	return error_set(-EINVAL,
			 "--ssh: the command that reaches a host is empty; it is a command such as "
			 "'ssh -p 2222', and ssh if neither --ssh nor TERN_SSH is given");
}

int hosts_open(struct hosts *h, struct run_options *o, struct output *output)
{
	*h = (struct hosts){ .output = output };
	int rc = hosts_read(h, o);
	if (!rc)
		rc = link_quote(h);
	if (!rc)
		rc = setting_number(SETTING_KEEPALIVE, &h->keepalive);
	if (!rc)
		rc = shell_split(h, o->shell);
	/* The same on all hosts; the key goes there through the input of tern-link alone. */
	if (!rc)
		rc = job_identity_make(&o->order.id, o->order.key);
	if (rc)
		return rc;
	hosts_divide(h, o);
	return 0;
}

/* -- The command ------------------------------------------------------------------------ */

char **hosts_command(const struct hosts *h, uint32_t i)
{
	char **words = calloc(h->shell_words + 3, sizeof *words);
	if (!words)
		return NULL;
	memcpy(words, h->shell, h->shell_words * sizeof *words);
	words[h->shell_words] = h->host[i].name;
	words[h->shell_words + 1] = h->quoted;
	return words;
}
