/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings that are words: networks, services, flow, protection, the address of UDP; and what ssh
 * says of the connection. Each is taken or refused in words that name the setting.
 */
#include "fuzz.h"

#include <tern/tern.h>

#include "base/address.h"
#include "base/setting.h"
#include "net/packet/terms.h"
#include "open/nets.h"
#include "service/service.h"

static int address_take(void)
{
	struct sockaddr_in6 address;
	char text[INET6_ADDRSTRLEN];
	int rc = address_choose(&address, true);
	REQUIRE(rc || address_text(&address, text));
	return rc;
}

static int protection_take(void)
{
	enum guard_mode mode;
	return guard_mode_read(&mode);
}

static const struct {
	const char *name;
	int (*take)(void);
} words[] = {
	{ "TERN_NET", nets_judge },        { "TERN_SERVICE", service_judge },
	{ "TERN_FLOW", service_judge },    { "TERN_PROTECT", protection_take },
	{ "TERN_UDP_BIND", address_take }, { "SSH_CONNECTION", address_take },
};

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	unsigned which = fuzz_byte(&bytes, &len) % (sizeof words / sizeof *words);
	char *text = malloc(len + 1);
	REQUIRE(text != NULL);
	memcpy(text, bytes, len);
	text[len] = '\0';
	setenv(words[which].name, text, 1);
	int rc = words[which].take();
	REQUIRE(rc <= 0 && (rc == 0 || strstr(tern_strerror(rc), words[which].name)));
	unsetenv(words[which].name);
	free(text);
}

FUZZ_TARGET(words, 2000)
