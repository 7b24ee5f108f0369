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

/* -- The list --------------------------------------------------------------------------- */

/*
 * Cuts a copy of `text` at `between` into words; how many there are. The first one is the copy's
 * memory.
 */
static uint32_t split(const char *text, const char *between, char ***words)
{
	uint32_t n = 0;
	char *copy = strdup(text);
	*words = copy ? calloc(strlen(text) + 2, sizeof **words) : NULL;
	for (char *word; *words && (word = strsep(&copy, between));)
		(*words)[n++] = word;
	return n;
}

/*
 * Cuts the number off `name:4` and `[name]:4`. An address with several colons and no brackets is
 * a name. False if what follows the colon is no number of ranks.
 */
static bool host_slots(struct host *h)
{
	char *end, *sign = strchr(h->name, ':');
	if (*h->name == '[' && (end = strchr(h->name, ']'))) {
		sign = end[1] ? end + 1 : NULL;
		*end = '\0';
		memmove(h->name, h->name + 1,
			(size_t)(end - h->name)); /* the start is what is freed */
	} else if (sign && strchr(sign + 1, ':')) {
		sign = NULL;
	}
	if (!sign)
		return true;
	bool digits = *sign == ':' && sign[1] >= '0' && sign[1] <= '9';
	unsigned long slots = digits ? strtoul(sign + 1, &end, 10) : 0;
	if (!slots || *end || slots > TERN_RANKS_MAX)
		return false;
	*sign = '\0';
	h->slots = (uint32_t)slots;
	return true;
}

/* A name that begins like an option would be one to the remote shell. */
static int host_check(const struct hosts *h, uint32_t i)
{
	const char *name = h->host[i].name;
	if (!host_slots(&h->host[i]))
		return error_set(
			-EINVAL,
			"--hosts: '%s' has no number of ranks behind its colon, 1 to %d, as in "
			"--hosts a:4,b:8",
			name, TERN_RANKS_MAX);
	if (!*name || *name == '-' || strpbrk(name, " \t\n"))
		return error_set(
			-EINVAL,
			"--hosts: '%s' is no host; the names follow each other with commas "
			"between, "
			"as in --hosts a,b,c",
			name);
	for (uint32_t before = 0; before < i; before++)
		if (strcmp(name, h->host[before].name) == 0)
			return error_set(-EINVAL, "--hosts: %s is named twice", name);
	if (!h->host[i].slots != !h->host[0].slots)
		return error_set(
			-EINVAL,
			"--hosts: %s has a number of ranks and %s has none; give one to each, or "
			"to none",
			h->host[h->host[i].slots ? i : 0].name,
			h->host[h->host[i].slots ? 0 : i].name);
	return 0;
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
		o->share[i] = (uint16_t)h->host[i].ranks;
		next += h->host[i].ranks;
		if (next == o->total)
			h->count = i + 1;
	}
	o->host_count = h->count;
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

static int hosts_cut(struct hosts *h, const char *list)
{
	char **names;
	h->count = split(list, ",", &names);
	h->host = names ? calloc(h->count, sizeof *h->host) : NULL;
	for (uint32_t i = 0; h->host && i < h->count; i++)
		h->host[i] = (struct host){ .name = names[i], .wire = { .from = -1, .to = -1 } };
	free(names);
	if (!h->host)
		return error_set(-ENOMEM, "--hosts: no memory");
	for (uint32_t i = 0; i < h->count; i++) {
		int rc = host_check(h, i);
		if (rc)
			return rc;
	}
	return 0;
}

static int hosts_read(struct hosts *h, struct run_options *o)
{
	char *list = NULL;
	int rc = o->hostfile ? hostfile_read(o->hostfile, &list) : 0;
	if (!rc)
		rc = hosts_cut(h, list ? list : o->hosts);
	free(list);
	return rc ? rc : hosts_total(h, o);
}

/* The same on all hosts; the key goes there through the input of tern-link and nowhere else. */
static int job_name(struct run_options *o)
{
	if (getrandom(&o->id, sizeof o->id, 0) == sizeof o->id &&
	    getrandom(o->key, sizeof o->key, 0) == sizeof o->key)
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

int hosts_open(struct hosts *h, struct run_options *o, struct output *output)
{
	char path[PATH_MAX];
	*h = (struct hosts){ .output = output };
	h->shell_words = split(o->shell, " ", &h->shell);
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
	if (h->host)
		free(h->host[0].name);
	if (h->shell)
		free(h->shell[0]);
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

/* -- A file of hosts -------------------------------------------------------------------- */

enum { FILE_MOST = 1 << 20 }; /* bytes: a thousand hosts take a tenth of it */

/*
 * One line, cut apart: `name` and, if there is one, `slots=N`, which is written behind the name
 * as --hosts has it.
 */
static int line_take(FILE *to, const char *path, unsigned line, char *text)
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
			path, line);
	if (ftell(to) > 0)
		fputc(',', to);
	if (slots && strchr(name, ':') && *name != '[')
		fprintf(to, "[%s]:%s", name, slots + 6);
	else
		fprintf(to, "%s%s%s", name, slots ? ":" : "", slots ? slots + 6 : "");
	return 0;
}

int hostfile_take(const char *path, char *text, size_t len, char **list)
{
	size_t room;
	unsigned line = 1;
	int rc = 0;
	char *made = NULL;
	FILE *to = open_memstream(&made, &room);
	if (!to)
		return error_set(-ENOMEM, "%s: no memory", path);
	if (strlen(text) != len)
		rc = error_set(-EINVAL, "%s: this is no text", path);
	for (char *at; !rc && (at = strsep(&text, "\n")); line++)
		rc = line_take(to, path, line, at);
	if (!rc && ftell(to) <= 0)
		rc = error_set(-EINVAL, "%s: no host is in it", path);
	if (fclose(to) != 0 && !rc)
		rc = error_set(-ENOMEM, "%s: no memory", path);
	if (rc)
		free(made);
	else
		*list = made;
	return rc;
}

int hostfile_read(const char *path, char **list)
{
	FILE *f = fopen(path, "r");
	char *text = f ? malloc(FILE_MOST + 1) : NULL;
	size_t len = text ? fread(text, 1, FILE_MOST, f) : 0;
	int rc = 0;
	if (!f)
		rc = error_set(-EINVAL, "--hostfile %s: %s", path, strerror(errno));
	else if (!text)
		rc = error_set(-ENOMEM, "--hostfile %s: no memory", path);
	else if (ferror(f))
		rc = error_set(-EINVAL, "--hostfile %s: it cannot be read", path);
	else if (len == FILE_MOST)
		rc = error_set(-EINVAL, "--hostfile %s: it is too long for a list of hosts", path);
	if (!rc) {
		text[len] = '\0';
		rc = hostfile_take(path, text, len, list);
	}
	free(text);
	if (f)
		fclose(f);
	return rc;
}
