/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and reads the order that tells a host what to start. */
#include "tools/run/order.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/error.h"
#include "base/stamp.h"
#include "base/text.h"
#include "tools/run/run.h"

/* -- Writing ---------------------------------------------------------------------------- */

static void put(FILE *f, const char *name, const char *value)
{
	fprintf(f, "%s=%s", name, value);
	fputc('\0', f);
}

static void put_number(FILE *f, const char *name, uint32_t value)
{
	char text[16];
	snprintf(text, sizeof text, "%u", value);
	put(f, name, text);
}

extern char **environ;

/* What programs are found with, and what Tern reads; the rest is the other host's own. */
static bool travels(const char *variable)
{
	return strncmp(variable, "TERN_", 5) == 0 || strncmp(variable, "PATH=", 5) == 0 ||
	       strncmp(variable, "LD_LIBRARY_PATH=", 16) == 0;
}

static void put_bytes(FILE *f, const char *name, const void *bytes, size_t len)
{
	char text[2 * JOB_KEY + 1];
	hex_write(text, bytes, len);
	put(f, name, text);
}

/* After those: what was asked for wins. */
static void put_env(FILE *f, const struct run_options *o)
{
	for (uint32_t i = 0; i < o->env_count; i++) {
		const char *value = strchr(o->env[i], '=') ? NULL : getenv(o->env[i]);
		fprintf(f, "variable=%s%s%s", o->env[i], value ? "=" : "", value ? value : "");
		fputc('\0', f);
	}
}

char *order_write(const struct run_options *o, uint32_t host, size_t *len)
{
	char *text = NULL, folder[4096];
	FILE *f = open_memstream(&text, len);
	if (!f)
		return NULL;
	put(f, "version", TERN_VERSION);
	put_bytes(f, "build", &build_stamp, sizeof build_stamp);
	put_number(f, "host", host);
	for (uint32_t i = 0; i < o->host_count; i++)
		put_number(f, "share", o->share[i]);
	put_bytes(f, "id", &o->id, sizeof o->id);
	put_bytes(f, "key", o->key, sizeof o->key);
	put_number(f, "bind", o->binding);
	put_number(f, "tag", o->tag);
	put_number(f, "survive", o->survive);
	if (o->signal)
		put_number(f, "signal", (uint32_t)o->signal);
	if (getcwd(folder, sizeof folder))
		put(f, "folder", folder);
	for (char **e = environ; *e; e++)
		if (travels(*e))
			put(f, "variable", *e);
	put_env(f, o);
	for (char **word = o->program; *word; word++)
		put(f, "word", *word);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/* -- Reading ---------------------------------------------------------------------------- */

static int misread(const char *word)
{
	return error_set(
		-EPROTO,
		"the launcher's order has a word '%.40s' that this host does not understand", word);
}

static int read_version(const char *version)
{
	if (strcmp(version, TERN_VERSION) == 0)
		return 0;
	return error_set(
		-EPROTO,
		"the launcher is Tern %.20s and this host has %s: install the same version",
		version, TERN_VERSION);
}

static int read_build(const char *text)
{
	uint32_t stamp;
	if (!hex_read(text, &stamp, sizeof stamp))
		return misread("build");
	if (stamp == build_stamp)
		return 0;
	return error_set(-EPROTO,
			 "the launcher was built from other sources (%08x) than Tern on this host "
			 "(%08x): install the same build",
			 stamp, build_stamp);
}

static int read_folder(const char *folder)
{
	if (chdir(folder) == 0)
		return 0;
	return error_set(-errno, "the folder %s cannot be entered on this host: %s", folder,
			 strerror(errno));
}

static int read_variable(char *value)
{
	char *sign = strchr(value, '=');
	if (!sign || sign == value)
		return misread(value);
	*sign = '\0';
	return setenv(value, sign + 1, 1) == 0 ? 0 : error_system("setting %s", value);
}

static int read_number(struct run_options *o, const char *name, const char *value)
{
	char *end;
	unsigned long number = strtoul(value, &end, 10);
	if (end == value || *end || number > TERN_RANKS_MAX)
		return misread(name);
	if (strcmp(name, "host") == 0)
		o->host = (uint32_t)number;
	else if (strcmp(name, "share") == 0 && number && o->host_count < TERN_RANKS_MAX)
		o->share[o->host_count++] = (uint16_t)number;
	else if (strcmp(name, "bind") == 0 && number <= BINDING_CORE)
		o->binding = (enum binding)number;
	else if (strcmp(name, "tag") == 0)
		o->tag = number;
	else if (strcmp(name, "survive") == 0 && number <= SURVIVE_ANY)
		o->survive = (enum survive)number;
	else if (strcmp(name, "signal") == 0 && number && number <= (unsigned long)SIGRTMAX)
		o->signal = (int)number;
	else
		return misread(name);
	return 0;
}

static int read_word(struct run_options *o, char *word, size_t *words)
{
	char *sign = strchr(word, '=');
	if (!sign)
		return misread(word);
	*sign = '\0';
	if (strcmp(word, "word") == 0) {
		o->program[(*words)++] = sign + 1;
		return 0;
	}
	if (strcmp(word, "version") == 0)
		return read_version(sign + 1);
	if (strcmp(word, "build") == 0)
		return read_build(sign + 1);
	if (strcmp(word, "folder") == 0)
		return read_folder(sign + 1);
	if (strcmp(word, "variable") == 0)
		return read_variable(sign + 1);
	if (strcmp(word, "id") == 0)
		return hex_read(sign + 1, &o->id, sizeof o->id) ? 0 : misread(word);
	if (strcmp(word, "key") == 0)
		return hex_read(sign + 1, o->key, sizeof o->key) ? 0 : misread(word);
	return read_number(o, word, sign + 1);
}

/*
 * Its ranks are those behind the ones of the hosts before it. False if they are none, or too many
 * in all.
 */
static bool ranks_find(struct run_options *o)
{
	if (o->host >= o->host_count)
		return false;
	for (uint32_t i = 0; i < o->host_count; i++) {
		o->first += i < o->host ? o->share[i] : 0;
		o->total += o->share[i];
	}
	o->ranks = o->share[o->host];
	return o->total <= TERN_RANKS_MAX;
}

int order_read(struct run_options *o, char *text, size_t len)
{
	size_t words = 0, most = 1;
	for (size_t i = 0; i < len; i++)
		most += text[i] == '\0';
	*o = (struct run_options){ .program = calloc(most, sizeof *o->program), .signal = SIGTERM };
	if (!o->program)
		return error_set(-ENOMEM, "reading the launcher's order: no memory");
	if (!len || text[len - 1] != '\0' || strncmp(text, "version=", 8) != 0)
		return misread("without its version");
	for (char *word = text, *next; word < text + len; word = next) {
		next = word + strlen(word) + 1; /* before its sign is cut out */
		int rc = read_word(o, word, &words);
		if (rc)
			return rc;
	}
	if (!words || !ranks_find(o))
		return misread("ranks");
	return 0;
}

int order_run(struct wire *wire, const struct frame *order, int argc, char **argv)
{
	static struct up up; /* and what the options point to, until the process ends */
	static struct run_options o;
	char *text = malloc(order->len + 1);
	if (text)
		memcpy(text, order->data, order->len);
	int rc = text ? order_read(&o, text, order->len)
		      : error_set(-ENOMEM, "reading the launcher's order: no memory");
	up.wire = *wire;
	if (!rc)
		return front_run(&o, &up, argc, argv);
	fprintf(stderr, "tern-link: %s\n", tern_strerror(rc));
	return 1;
}
