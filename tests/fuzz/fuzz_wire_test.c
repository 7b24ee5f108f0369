/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames between a launcher and its agents, and the order in one of them. */
#include "fuzz.h"

#include <unistd.h>

#include <tern/tern.h>

#include "base/stamp.h"
#include "boot/link/wire.h"
#include "tools/run/order.h"

static void order_take(const struct frame *f)
{
	struct run_options o;
	const struct order *head = &(struct order){ .version = TERN_VERSION, .stamp = build_stamp };
	char *text = malloc(f->len ? f->len : 1);
	memcpy(text, f->data, f->len);
	if (f->len >= sizeof *head) /* of this build: the rest would not be read */
		memcpy(text, head, offsetof(struct order, host));
	int rc = order_read(&o, text, f->len);
	REQUIRE(rc <= 0 && (rc == 0 || *tern_strerror(rc)));
	if (!rc)
		REQUIRE(o.program[0] && o.ranks && o.first + o.ranks <= o.total &&
			o.total <= TERN_RANKS_MAX);
	free(o.program);
	free(text);
}

static void frame_take(const struct frame *f)
{
	int32_t number;
	REQUIRE(f->type < FRAME_TYPES && f->len <= FRAME_MOST);
	if (f->type == FRAME_ORDER)
		order_take(f);
	else if (frame_number(f, &number))
		REQUIRE(f->len == sizeof number);
}

/* What an order sets is gone again, and the folder is the one that it was. */
static void surroundings_mend(void)
{
	static char path[4096], folder[4096];
	if (!*folder) {
		snprintf(path, sizeof path, "%s", getenv("PATH"));
		REQUIRE(getcwd(folder, sizeof folder) != NULL);
	}
	clearenv();
	setenv("PATH", path, 1);
	REQUIRE(chdir(folder) == 0);
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	struct wire w;
	struct frame f;
	int fd[2];
	surroundings_mend();
	REQUIRE(pipe(fd) == 0 && write(fd[1], bytes, len) == (ssize_t)len);
	close(fd[1]);
	wire_open(&w, fd[0], fd[0]);
	while (wire_read(&w))
		while (wire_next(&w, &f))
			frame_take(&f);
	wire_close(&w);
	surroundings_mend();
}

FUZZ_TARGET(wire, 4000)
