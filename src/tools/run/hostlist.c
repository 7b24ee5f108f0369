/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of a job's hosts, from --hosts or from a file, the ranks that each gets, and the command
 * that reaches it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "base/setting.h"
#include "boot/link/program.h"
#include "tools/run/hosts.h"

enum { FILE_MOST = 1 << 20 }; /* bytes: a thousand hosts take a tenth of it */

/* -- The list --------------------------------------------------------------------------- */

/*
 * Cuts the number off `name:4` and `[name]:4`, unless `slots` is it already. An address with
 * several colons and no brackets is a name. False if there is no number of ranks where one should
 * be.
 */
static bool host_slots(struct host *h, const char *slots)
{
	char *end, *sign = slots ? NULL : strchr(h->name, ':');
	if (*h->name == '[' && (end = strchr(h->name, ']'))) {
		sign = end[1] ? end + 1 : NULL;
		*end = '\0';
		h->name++;
	} else if (sign && strchr(sign + 1, ':')) {
		sign = NULL;
	}
	if (sign)
		slots = *sign == ':' ? sign + 1 : "";
	if (!slots)
		return true;
	unsigned long n = *slots >= '0' && *slots <= '9' ? strtoul(slots, &end, 10) : 0;
	if (!n || *end || n > TERN_RANKS_MAX)
		return false;
	if (sign)
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

/* `slots` is the number of its ranks, or NULL: the name may have it. */
static int host_add(struct hosts *h, char *name, const char *slots)
{
	struct host *more = realloc(h->host, (h->count + 1) * sizeof *more);
	if (!more)
		return error_set(-ENOMEM, "--hosts: no memory");
	h->host = more;
	struct host *new = &more[h->count++];
	*new = (struct host){ .name = name, .wire = { .from = -1, .to = -1 } };
	if (host_slots(new, slots))
		return host_check(h, new);
	return error_set(-EINVAL,
			 "--hosts: '%s' has no number of ranks behind its colon, 1 to %d, as in "
			 "--hosts a:4,b:8",
			 name, TERN_RANKS_MAX);
}

/* One line of a file: a name and, if there is one, `slots=N`. */
static int line_take(struct hosts *h, const char *file, unsigned line, char *text)
{
	static const char space[] = " \t\r";
	text[strcspn(text, "#")] = '\0';
	char *rest, *name = strtok_r(text, space, &rest),
		    *slots = name ? strtok_r(NULL, space, &rest) : NULL;
	if (!name)
		return 0;
	if (strchr(name, ',') || (slots && strncmp(slots, "slots=", 6) != 0) ||
	    (slots && strtok_r(NULL, space, &rest)))
		return error_set(
			-EINVAL,
			"%s, line %u: a host stands here by itself, as NAME, NAME:4 or NAME "
			"slots=4",
			file, line);
	return host_add(h, name, slots ? slots + 6 : NULL);
}

int hosts_take(struct hosts *h, const char *file, char *text)
{
	unsigned line = 1;
	int rc = 0;
	h->text = text;
	for (char *at; !rc && (at = strsep(&text, file ? "\n" : ",")); line++)
		rc = file ? line_take(h, file, line, at) : host_add(h, at, NULL);
	return rc || h->count ? rc : error_set(-EINVAL, "%s: no host is in it", file);
}

static int file_text(const char *path, char **text)
{
	FILE *f = fopen(path, "re");
	const char *wrong = f ? NULL : strerror(errno);
	*text = calloc(1, FILE_MOST + 1);
	size_t len = f && *text ? fread(*text, 1, FILE_MOST, f) : 0;
	if (!*text)
		wrong = "no memory";
	else if (f && ferror(f))
		wrong = "it cannot be read";
	else if (len == FILE_MOST)
		wrong = "it is too long for a list of hosts";
	else if (strlen(*text) != len)
		wrong = "this is no text";
	if (f)
		fclose(f);
	return wrong ? error_set(-EINVAL, "--hostfile %s: %s", path, wrong) : 0;
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

/* For the shell of the other host, which takes its command apart: in quotes, whatever is in it. */
static char *quoted(const char *text)
{
	size_t quotes = 0;
	for (const char *c = text; *c; c++)
		quotes += *c == '\'';
	char *copy = malloc(strlen(text) + 3 * quotes + 3), *to = copy;
	if (!copy)
		return NULL;
	*to++ = '\'';
	for (const char *c = text; *c; c++) {
		if (*c == '\'')
			to = stpcpy(to, "'\\'");
		*to++ = *c;
	}
	strcpy(to, "'");
	return copy;
}

static int hosts_read(struct hosts *h, struct run_options *o)
{
	char *text = NULL;
	int rc = o->hostfile ? file_text(o->hostfile, &text) : 0;
	if (!o->hostfile && !(text = strdup(o->hosts)))
		rc = error_set(-ENOMEM, "--hosts: no memory");
	h->text = text;
	if (!rc)
		rc = hosts_take(h, o->hostfile, text);
	return rc ? rc : hosts_total(h, o);
}

/* The same on all hosts; the key goes there through the input of tern-link and nowhere else. */
static int job_name(struct run_options *o)
{
	if (getrandom(&o->order.id, sizeof o->order.id, 0) == sizeof o->order.id &&
	    getrandom(o->order.key, sizeof o->order.key, 0) == sizeof o->order.key)
		return 0;
	return error_set(-ENOTSUP, "the kernel has no random bytes for the key of a job");
}

const char *hosts_shell(const struct hosts *h)
{
	for (uint32_t w = 0; w < h->shell_words; w++)
		if (*h->shell[w])
			return h->shell[w];
	return "";
}

/* Without a word of its own the host's name would be taken for the command. */
static int shell_check(const struct hosts *h)
{
	if (*hosts_shell(h))
		return 0;
	return error_set(-EINVAL,
			 "--ssh: the command that reaches a host is empty; it is a command such as "
			 "'ssh -p 2222', and ssh if neither --ssh nor TERN_SSH is given");
}

/*
 * Cuts a copy of the command `text` into words; how many there are. The first one is the copy's
 * memory.
 */
static uint32_t split(const char *text, char ***words)
{
	uint32_t n = 0;
	char *copy = strdup(text);
	*words = copy ? calloc(strlen(text) + 2, sizeof **words) : NULL;
	for (char *word; *words && (word = strsep(&copy, " "));)
		(*words)[n++] = word;
	return n;
}

int hosts_open(struct hosts *h, struct run_options *o, struct output *output)
{
	char path[PATH_MAX];
	*h = (struct hosts){ .output = output };
	h->shell_words = split(o->shell, &h->shell);
	int rc = hosts_read(h, o);
	if (!rc)
		rc = program_find(path);
	if (!rc)
		h->quoted = quoted(path);
	if (!rc)
		rc = setting_number(SETTING_KEEPALIVE, &h->keepalive);
	if (!rc && (!h->quoted || !h->shell))
		rc = error_set(-ENOMEM, "--hosts: no memory");
	if (!rc)
		rc = shell_check(h);
	if (!rc)
		rc = job_name(o);
	if (rc)
		return rc;
	hosts_divide(h, o);
	return 0;
}

void hosts_close(struct hosts *h)
{
	for (uint32_t i = 0; h->host && i < h->count; i++)
		wire_close(&h->host[i].wire);
	if (h->shell)
		free(h->shell[0]);
	free(h->text);
	free(h->host);
	free(h->shell);
	free(h->quoted);
}

/* -- The command ------------------------------------------------------------------------ */

char **hosts_command(const struct hosts *h, uint32_t i)
{
	char **words = calloc(h->shell_words + 3, sizeof *words), **next = words;
	if (!words)
		return NULL;
	for (uint32_t w = 0; w < h->shell_words; w++)
		if (*h->shell[w])
			*next++ = h->shell[w];
	*next++ = h->host[i].name;
	*next++ = h->quoted;
	return words;
}
