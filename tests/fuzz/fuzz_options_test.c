/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of `tern run`, its list of hosts, and the numbers and words of settings. */
#include "fuzz.h"

#include <unistd.h>

#include <tern/tern.h>

#include "base/setting.h"
#include "lib/tools_free.h"

enum { WORDS = 40 };

static void hosts_try(struct run_options *o)
{
	struct hosts h;
	uint32_t next = 0;
	int rc = hosts_open(&h, o, NULL);
	REQUIRE(rc <= 0 && (rc == 0 || *tern_strerror(rc)));
	for (uint32_t i = 0; !rc && i < h.count; i++) {
		char **words = hosts_command(&h, i);
		REQUIRE(words && *h.host[i].name && h.host[i].name[0] != '-' && h.host[i].ranks);
		REQUIRE(h.host[i].first == next && o->order.share[i] == h.host[i].ranks);
		next += h.host[i].ranks;
		free(words);
	}
	REQUIRE(rc || next == o->total);
	hosts_close(&h);
}

/* Words end with a 0. */
static void line_take(char *text, size_t len)
{
	static char name[] = "run";
	char *argv[WORDS + 1] = { name };
	int argc = 1, status;
	struct run_options o;
	for (char *word = text; word < text + len && argc < WORDS; word += strlen(word) + 1)
		argv[argc++] = word;
	if (!run_options_read(&o, argc, argv, &status))
		REQUIRE(status == 0 || status == 2);
	else if (o.hosts)
		hosts_try(&o);
	free(o.env);
}

static void setting_take(unsigned which, const char *text)
{
	enum setting s = (enum setting)(which % SETTING_COUNT);
	uint64_t value;
	setenv(setting_table[s].name, text, 1);
	int rc = setting_number(s, &value);
	REQUIRE(rc == 0 || strstr(tern_strerror(rc), setting_table[s].name));
	unsetenv(setting_table[s].name);
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	unsigned which = fuzz_byte(&bytes, &len);
	char *text = malloc(len + 1);
	memcpy(text, bytes, len);
	text[len] = '\0';
	if (which < 128)
		line_take(text, len);
	else
		setting_take(which, text);
	free(text);
}

FUZZ_TARGET(options, 2000)
