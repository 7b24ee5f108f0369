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
#include "tools/run/run.h"

/* -- Writing ---------------------------------------------------------------------------- */

static void put(FILE *f, const char *word)
{
	fwrite(word, 1, strlen(word) + 1, f);
}

extern char **environ;

/* What programs are found with, and what Tern reads; the rest is the other host's own. */
static bool travels(const char *variable)
{
	return strncmp(variable, "TERN_", 5) == 0 || strncmp(variable, "PATH=", 5) == 0 ||
	       strncmp(variable, "LD_LIBRARY_PATH=", 16) == 0;
}

/* After those: what was asked for wins. */
static void put_env(FILE *f, const struct run_options *o)
{
	for (uint32_t i = 0; i < o->env_count; i++) {
		const char *value = strchr(o->env[i], '=') ? NULL : getenv(o->env[i]);
		fprintf(f, "%s%s", o->env[i], value ? "=" : "");
		put(f, value ? value : "");
	}
}

char *order_write(const struct run_options *o, uint32_t host, size_t *len)
{
	char *text = NULL, folder[4096];
	struct order order = o->order;
	FILE *f = open_memstream(&text, len);
	if (!f)
		return NULL;
	strncpy(order.version, TERN_VERSION, sizeof order.version - 1);
	order.stamp = build_stamp;
	order.host = host;
	fwrite(&order, sizeof order, 1, f);
	put(f, getcwd(folder, sizeof folder) ? folder : "");
	for (char **e = environ; *e; e++)
		if (travels(*e))
			put(f, *e);
	put_env(f, o);
	put(f, "");
	for (char **word = o->program; *word; word++)
		put(f, *word);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/* -- Reading ---------------------------------------------------------------------------- */

static int misread(const char *what)
{
	return error_set(-EPROTO, "the launcher's order has %s that this host does not understand",
			 what);
}

static int read_head(struct order *order, const char *text, size_t len)
{
	if (len >= sizeof order->version && strncmp(text, TERN_VERSION, sizeof order->version) != 0)
		return error_set(
			-EPROTO,
			"the launcher is Tern %.15s and this host has %s: install the same version",
			text, TERN_VERSION);
	if (len <= sizeof *order || text[len - 1] != '\0')
		return misread("a length");
	memcpy(order, text, sizeof *order);
	if (order->stamp != build_stamp)
		return error_set(
			-EPROTO,
			"the launcher was built from other sources (%08x) than Tern on this host "
			"(%08x): install the same build",
			order->stamp, build_stamp);
	if (order->binding > BINDING_CORE || order->survive > SURVIVE_ANY || order->signal < 1 ||
	    order->signal > SIGRTMAX)
		return misread("an option");
	return 0;
}

/*
 * Its ranks are those behind the ones of the hosts before it. False if they are none, or too many
 * in all.
 */
static bool ranks_find(struct run_options *o)
{
	const struct order *order = &o->order;
	if (order->host >= order->host_count || order->host_count > TERN_RANKS_MAX)
		return false;
	for (uint32_t i = 0; i < order->host_count; i++) {
		if (!order->share[i])
			return false;
		o->first += i < order->host ? order->share[i] : 0;
		o->total += order->share[i];
	}
	o->ranks = order->share[order->host];
	return o->total <= TERN_RANKS_MAX;
}

static int read_folder(const char *folder)
{
	if (!*folder || chdir(folder) == 0)
		return 0;
	return error_set(-errno, "the folder %s cannot be entered on this host: %s", folder,
			 strerror(errno));
}

static int read_variable(char *value)
{
	char *sign = strchr(value, '=');
	if (!sign || sign == value)
		return misread("a variable");
	*sign = '\0';
	return setenv(value, sign + 1, 1) == 0 ? 0 : error_system("setting %s", value);
}

int order_read(struct run_options *o, char *text, size_t len)
{
	size_t words = 0, at = sizeof o->order, next;
	*o = (struct run_options){ 0 };
	int rc = read_head(&o->order, text, len);
	if (rc)
		return rc;
	o->program =
		calloc(len - sizeof o->order + 1, sizeof *o->program); /* a byte each, or more */
	if (!o->program)
		return error_set(-ENOMEM, "reading the launcher's order: no memory");
	if (!ranks_find(o))
		return misread("ranks");
	rc = read_folder(text + at);
	for (at += strlen(text + at) + 1; !rc && at < len && text[at]; at = next) {
		next = at + strlen(text + at) + 1; /* before its sign is cut out */
		rc = read_variable(text + at);
	}
	for (at++; !rc && at < len; at += strlen(text + at) + 1)
		o->program[words++] = text + at;
	return rc || words ? rc : misread("no program");
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
