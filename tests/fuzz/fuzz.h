/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzz target is a function, fuzz_one(), that survives any bytes; FUZZ_TARGET(name, rounds)
 * follows it.
 *
 * With FUZZ defined it becomes a target of libFuzzer (tests/fuzz/fuzz.sh). Otherwise it becomes a
 * test, in every build: of the target's kept corpus, and of `rounds` inputs made from that by
 * chance.
 */
#ifndef TERN_TESTS_FUZZ_H
#define TERN_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fuzz_one(const uint8_t *bytes, size_t len);

/* The next byte of an input that is taken apart; 0 at its end. */
static inline unsigned fuzz_byte(const uint8_t **bytes, size_t *len)
{
	return *len ? (--*len, *(*bytes)++) : 0;
}

/* A part of it that has its length before it, in one byte. */
static inline const uint8_t *fuzz_part(const uint8_t **bytes, size_t *len, size_t *part)
{
	const uint8_t *at = *bytes + (*len > 0);
	*part = fuzz_byte(bytes, len);
	*part = *part < *len ? *part : *len;
	*bytes += *part;
	*len -= *part;
	return at;
}

#ifdef FUZZ

#define REQUIRE(condition)        \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

#define FUZZ_TARGET(name, rounds)                                     \
	int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len); \
	int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)  \
	{                                                             \
		fuzz_one(bytes, len);                                 \
		return 0;                                             \
	}

#else

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/chance.h"
#include "lib/check.h"

#define FUZZ_TARGET(name, rounds)                                \
	TEST(the_kept_corpus_does_no_harm)                       \
	{                                                        \
		fuzz_replay("tests/fuzz/corpus/" #name, 0);      \
	}                                                        \
	TEST(bytes_made_from_the_corpus_do_no_harm)              \
	{                                                        \
		fuzz_replay("tests/fuzz/corpus/" #name, rounds); \
	}

enum { FUZZ_FILES = 400, FUZZ_BYTES = 4096 };

struct fuzz_file {
	uint8_t bytes[FUZZ_BYTES];
	size_t len;
};

static inline size_t fuzz_files(const char *folder, struct fuzz_file *file)
{
	size_t n = 0;
	DIR *dir = opendir(folder);
	REQUIRE(dir != NULL); /* tests run in the folder of the sources */
	for (struct dirent *d; n < FUZZ_FILES && (d = readdir(dir));) {
		char path[400];
		snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
		FILE *f = d->d_name[0] == '.' ? NULL : fopen(path, "rb");
		if (!f)
			continue;
		file[n].len = fread(file[n].bytes, 1, FUZZ_BYTES, f);
		fclose(f);
		n++;
	}
	closedir(dir);
	return n;
}

/* In memory of exactly that length, so that sanitizers see every byte too far. */
static inline void fuzz_exactly(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	REQUIRE(copy != NULL);
	memcpy(copy, bytes, len);
	fuzz_one(copy, len);
	free(copy);
}

static inline void fuzz_change(struct chance *c, struct fuzz_file *f)
{
	for (unsigned i = chance_below(c, 6); f->len && i; i--) {
		uint8_t *at = &f->bytes[chance_below(c, (uint32_t)f->len)];
		*at = chance_one_in(c, 2) ? (uint8_t)chance_next(c)
					  : *at ^ 1u << chance_below(c, 8);
	}
	if (chance_one_in(c, 4))
		f->len = chance_below(c, (uint32_t)f->len + 1);
}

static inline void fuzz_rounds(const char *folder, unsigned rounds)
{
	static struct fuzz_file file[FUZZ_FILES];
	size_t n = fuzz_files(folder, file);
	REQUIRE(n > 0);
	for (size_t i = 0; !rounds && i < n; i++)
		fuzz_exactly(file[i].bytes, file[i].len);
	if (!rounds)
		return;
	struct chance c = { check_seed() };
	for (unsigned i = check_scaled(rounds); i; i--) {
		struct fuzz_file f = file[chance_below(&c, (uint32_t)n)];
		fuzz_change(&c, &f);
		fuzz_exactly(f.bytes, f.len);
	}
}

/*
 * rounds 0: the files as they are. In a child: an input that makes the target exit, with status 0
 * too, would end the test before its time.
 */
static inline void fuzz_replay(const char *folder, unsigned rounds)
{
	enum { DONE = 99 };
	int status;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		fuzz_rounds(folder, rounds);
		exit(DONE);
	}
	REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == DONE);
}

#endif
#endif
