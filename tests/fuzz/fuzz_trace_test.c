/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that `tern trace` reads. */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include <tern/tern.h>

#include "lib/tools_free.h"
#include "tools/trace/show.h"

enum { TRACKS = 3 };

/* A file of these bytes, which has a path. */
static int file_make(const uint8_t *bytes, size_t len, char path[32])
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	REQUIRE(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static void merged_show(struct track *track, uint32_t tracks)
{
	struct merged m;
	FILE *nowhere = fopen("/dev/null", "w");
	int rc = merge(&m, track, tracks);
	REQUIRE(nowhere && rc <= 0);
	if (!rc) {
		show_json(&m, nowhere);
		show_html(&m, nowhere);
		show_summary(&m, nowhere);
	}
	merge_free(&m);
	fclose(nowhere);
}

/* The lengths of the first files come before them, in two bytes each. */
static void tracks_take(const uint8_t *bytes, size_t len, unsigned count)
{
	struct track track[TRACKS];
	char path[TRACKS][32];
	int fd[TRACKS], rc = 0;
	for (unsigned i = 0; i < count; i++) {
		size_t part = fuzz_byte(&bytes, &len);
		part |= (size_t)fuzz_byte(&bytes, &len) << 8;
		part = part < len && i + 1 < count ? part : len;
		fd[i] = file_make(bytes, part, path[i]);
		int read = track_read(&track[i], path[i]);
		rc = read ? read : rc;
		bytes += part;
		len -= part;
	}
	REQUIRE(rc <= 0 && (rc == 0 || *tern_strerror(rc)));
	if (!rc)
		merged_show(track, count);
	for (unsigned i = 0; i < count; i++) {
		track_free(&track[i]);
		close(fd[i]);
	}
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	unsigned what = fuzz_byte(&bytes, &len);
	tracks_take(bytes, len, what % TRACKS + 1);
}

FUZZ_TARGET(trace, 500)
