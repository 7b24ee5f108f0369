/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a profile: one table has every key. */
#include "net/sim/machine/profile.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/sim/machine/controller.h"
#include "net/sim/machine/network.h"

const struct profile_key profile_key[] = {
#define KEY(name, kind, least, most, fallback, meaning) \
	{ #name, kind, offsetof(struct profile, name), least, most, fallback, meaning },
	PROFILE_KEYS(KEY)
#undef KEY
		{ 0 },
};

const struct sim_network *const network_table[] = { &logp_network,
						    &crossbar_network,
						    &torus_network,
						    &hypercube_network,
						    &fattree_network,
						    &mesh_network,
						    NULL };

const struct sim_network *network_named(const char *name)
{
	for (unsigned i = 0; network_table[i]; i++)
		if (strcmp(network_table[i]->name, name) == 0)
			return network_table[i];
	return NULL;
}

/* -- Values ----------------------------------------------------------------------------------- */

/* Picoseconds in a unit; 0: there is none of that name. `cycle`: of the profile, so far. */
static double unit_ps(const char *unit, uint64_t cycle)
{
	static const struct {
		const char *name;
		double ps;
	} table[] = { { "ps", 1 }, { "ns", 1e3 }, { "us", 1e6 }, { "ms", 1e9 }, { "s", 1e12 } };
	if (strcmp(unit, "cycles") == 0)
		return (double)cycle;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (strcmp(unit, table[i].name) == 0)
			return table[i].ps;
	return 0;
}

static int value_refuse(const struct profile_key *k, const char *text, const char *where)
{
	if (k->unit == UNIT_TIME)
		return error_set(
			-EINVAL,
			"%s: %s is '%s'; it must be a time, a number and ps, ns, us, ms, s "
			"or cycles, as in 1.6us",
			where, k->name, text);
	return error_set(-EINVAL, "%s: %s is '%s'; it must be a whole number from %llu to %llu",
			 where, k->name, text, (unsigned long long)k->least,
			 (unsigned long long)k->most);
}

static uint64_t *value_at(struct profile *p, const struct profile_key *k)
{
	return (uint64_t *)(void *)((char *)p + k->offset);
}

static int value_set(struct profile *p, const struct profile_key *k, const char *text,
		     const char *where)
{
	char *end;
	double number = strtod(text, &end), unit = 1;
	if (end == text || !(number >= 0))
		return value_refuse(k, text, where);
	if (k->unit == UNIT_TIME)
		unit = *end ? unit_ps(end, p->cycle) : number == 0;
	else if (*end)
		unit = 0;
	double value = number * unit;
	if (unit == 0 || value > 1e18 || (uint64_t)(value + 0.5) < k->least ||
	    (uint64_t)(value + 0.5) > k->most)
		return value_refuse(k, text, where);
	*value_at(p, k) = (uint64_t)(value + 0.5);
	return 0;
}

/* Keys that are in cycles unless said stay so when the cycle changes. */
static int cycle_set(struct profile *p, const struct profile_key *cycle, const char *text,
		     const char *where)
{
	struct profile before = *p;
	int rc = value_set(p, cycle, text, where);
	for (const struct profile_key *k = profile_key; !rc && k->name; k++) {
		struct profile usual = before;
		if (!strstr(k->fallback, "cycles") || value_set(&usual, k, k->fallback, where))
			continue;
		if (*value_at(p, k) == *value_at(&usual, k))
			rc = value_set(p, k, k->fallback, where);
	}
	return rc;
}

/* A module by its name: `name_at` gives the names, in their order, and then NULL. */
static int module_set(char *to, const char *key, const char *text, const char *where,
		      const char *(*name_at)(unsigned i))
{
	char names[200] = "";
	for (unsigned i = 0; name_at(i); i++) {
		if (strcmp(name_at(i), text) == 0) {
			snprintf(to, PROFILE_NAME, "%s", text);
			return 0;
		}
		strncat(names, i ? ", " : "", sizeof names - strlen(names) - 1);
		strncat(names, name_at(i), sizeof names - strlen(names) - 1);
	}
	return error_set(-EINVAL, "%s: %s is '%s'; it can be %s", where, key, text, names);
}

static const char *network_name(unsigned i)
{
	return network_table[i] ? network_table[i]->name : NULL;
}

static const char *controller_name(unsigned i)
{
	return controller_table[i] ? controller_table[i]->name : NULL;
}

/* -- Lines ------------------------------------------------------------------------------------ */

static char *trimmed(char *text)
{
	text += strspn(text, " \t\r\n");
	size_t len = strlen(text);
	while (len && strchr(" \t\r\n", text[len - 1]))
		text[--len] = 0;
	return text;
}

int profile_set(struct profile *p, const char *line, const char *where)
{
	char copy[256];
	if (snprintf(copy, sizeof copy, "%s", line) >= (int)sizeof copy)
		return error_set(-EINVAL, "%s: the line is longer than %zu bytes", where,
				 sizeof copy - 1);
	copy[strcspn(copy, "#")] = 0;
	char *equals = strchr(copy, '='), *key = trimmed(copy);
	if (!*key)
		return 0;
	if (!equals)
		return error_set(-EINVAL, "%s: '%s' is no line 'key = value'", where, key);
	*equals = 0;
	key = trimmed(copy);
	const char *value = trimmed(equals + 1);
	if (strcmp(key, "network") == 0)
		return module_set(p->network, key, value, where, network_name);
	if (strcmp(key, "controller") == 0)
		return module_set(p->controller, key, value, where, controller_name);
	for (const struct profile_key *k = profile_key; k->name; k++)
		if (strcmp(key, k->name) == 0)
			return (k == profile_key ? cycle_set : value_set)(p, k, value, where);
	return error_set(-EINVAL, "%s: there is no key '%s'; `tern sim --keys` lists them", where,
			 key);
}

static int profile_defaults(struct profile *p, const char *name)
{
	*p = (struct profile){ 0 };
	snprintf(p->name, sizeof p->name, "%s", name);
	snprintf(p->network, sizeof p->network, "logp");
	snprintf(p->controller, sizeof p->controller, "none");
	for (const struct profile_key *k = profile_key; k->name; k++) {
		int rc = value_set(p, k, k->fallback, "the built-in value");
		if (rc)
			return rc;
	}
	return 0;
}

static int profile_read(struct profile *p, FILE *f, const char *name)
{
	char line[300], where[160];
	int rc = 0;
	for (unsigned number = 1; !rc && fgets(line, sizeof line, f); number++) {
		snprintf(where, sizeof where, "%s:%u", name, number);
		rc = profile_set(p, line, where);
	}
	fclose(f);
	return rc;
}

static int profile_named(struct profile *p, const char *name)
{
	const struct profile_text *t = profile_text;
	int rc = profile_defaults(p, name);
	if (rc)
		return rc;
	while (t->name && strcmp(t->name, name) != 0)
		t++;
	FILE *f = t->name ? fmemopen((char *)(uintptr_t)t->text, strlen(t->text), "r")
			  : fopen(name, "r");
	if (f)
		return profile_read(p, f, name);
	return error_set(-errno,
			 "the profile '%s' is none of those that are built in, and no "
			 "file that can be read: %s; `tern sim --profiles` lists the first",
			 name, strerror(errno));
}

int profile_load(struct profile *p, const char *text)
{
	char copy[1280], *rest = copy;
	if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
		return error_set(-EINVAL, "the profile '%.40s...' has too many settings", text);
	int rc = profile_named(p, strsep(&rest, ","));
	for (const char *line; !rc && (line = strsep(&rest, ","));)
		rc = profile_set(p, line, line);
	return rc;
}
