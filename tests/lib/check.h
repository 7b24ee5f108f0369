/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test frame. A test is a sentence that can be true or false:
 *
 *     TEST(a_reply_never_waits)
 *     {
 *             CHECK(tern_reply(t, m, 1) == 0);
 *     }
 *
 * Each runs in a process of its own, so that one that dies or hangs is one that
 * fails. `PROGRAM sentence...` runs only those, in this process, for a debugger.
 * --seed=N, or TEST_SEED=N in the environment, repeats a random test.
 */
#ifndef TERN_TESTS_CHECK_H
#define TERN_TESTS_CHECK_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define CHECK_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHECK_SANITIZED 1
#endif

#ifndef CHECK_SECONDS
/*
 * After which a test hangs, in a plain build. Nearly all take less than one, but a machine may be
 * busy.
 */
#define CHECK_SECONDS 500
#endif

enum {
	CHECK_TESTS_MAX = 200,
	CHECK_SKIPPED = 77,
#if defined(CHECK_SANITIZED) || defined(__aarch64__)
	CHECK_SLOWER = 10, /* than a plain build on real hardware */
#else
	CHECK_SLOWER = 1,
#endif
};

struct check_test {
	const char *sentence;
	void (*run)(void);
};

static struct check_test check_tests[CHECK_TESTS_MAX];
static unsigned check_count;
static const char *check_sentence = "";
static const char *check_seed_text;
static _Atomic unsigned check_failures;

static inline void check_add(const char *sentence, void (*run)(void))
{
	if (check_count < CHECK_TESTS_MAX)
		check_tests[check_count++] = (struct check_test){ sentence, run };
}

#define TEST(sentence)                                                      \
	static void sentence(void);                                         \
	__attribute__((constructor)) static void check_add_##sentence(void) \
	{                                                                   \
		check_add(#sentence, sentence);                             \
	}                                                                   \
	static void sentence(void)

static inline bool check_that(bool good, const char *file, int line, const char *what)
{
	if (good)
		return true;
	if (atomic_fetch_add(&check_failures, 1) < 10)
		printf("    %s:%d: %s: not true: %s\n", file, line, check_sentence, what);
	return false;
}

static inline bool check_is(long long got, long long want, const char *file, int line,
			    const char *what)
{
	if (got == want)
		return true;
	if (atomic_fetch_add(&check_failures, 1) < 10)
		printf("    %s:%d: %s: %s is %lld, not %lld\n", file, line, check_sentence, what,
		       got, want);
	return false;
}

/* Both say where and what, go on, and tell whether it was true. */
#define CHECK(condition) check_that(condition, __FILE__, __LINE__, #condition)
#define CHECK_IS(got, want) check_is((long long)(got), (long long)(want), __FILE__, __LINE__, #got)

/* As CHECK, for what the rest of the test stands on. */
#define REQUIRE(condition)               \
	do {                             \
		if (!CHECK(condition)) { \
			fflush(stdout);  \
			_exit(1);        \
		}                        \
	} while (0)

/* Whether the thread sanitizer looks on. */
static inline bool check_threads_watched(void)
{
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
	return true;
#endif
#endif
#if defined(__SANITIZE_THREAD__)
	return true;
#else
	return false;
#endif
}

/* Whether a sanitizer does, which keeps memory that was freed. */
static inline bool check_sanitized(void)
{
#ifdef CHECK_SANITIZED
	return true;
#else
	return false;
#endif
}

/* Ends the test: the machine lacks what it needs. */
static inline void check_skip(const char *reason)
{
	printf("    skipped: %s\n", reason);
	fflush(stdout);
	_exit(CHECK_SKIPPED);
}

/*
 * The thread sanitizer leaves 16 GiB of addresses there, and a rank maps its job twice: heaps are
 * small in jobs of eight ranks and more, whatever the suite has set, and a test of too many ends.
 */
static inline void check_skip_crowd(uint32_t ranks)
{
#ifdef __aarch64__
	if (ranks > 100 && check_threads_watched())
		check_skip("the thread sanitizer leaves too few addresses for so many ranks");
	if (ranks > 7 && check_threads_watched())
		setenv("TERN_HEAP", "64M", 1);
#endif
	(void)ranks;
}

/* How often to do something that is done n times in a plain build. */
static inline unsigned check_scaled(unsigned n)
{
	return n / CHECK_SLOWER ? n / CHECK_SLOWER : 1;
}

/* The seed of this run, printed so that it can be repeated. */
static inline uint64_t check_seed(void)
{
	const char *text = check_seed_text ? check_seed_text : getenv("TEST_SEED");
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t seed = text ? strtoull(text, NULL, 0)
			     : (uint64_t)now.tv_nsec * 1000 + (uint64_t)getpid() % 1000;
	printf("    seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

static inline int check_run_here(const struct check_test *test)
{
	check_sentence = test->sentence;
	alarm(CHECK_SECONDS * (CHECK_SLOWER > 1 ? 4 : 1));
	test->run();
	alarm(0);
	return atomic_load(&check_failures) ? 1 : 0;
}

static inline int check_run_apart(const struct check_test *test)
{
	int status = 0;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		/*
		 * Tests stop ranks with SIGSTOP. In an orphaned process group, as behind nohup, the
		 * kernel then sends SIGHUP to every process; a new group is not orphaned.
		 */
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		exit(check_run_here(test));
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	if (WIFSIGNALED(status))
		printf("    %s: %s\n", test->sentence,
		       WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static inline bool check_wanted(const char *sentence, int argc, char **argv)
{
	bool any = false;
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--seed=", 7) == 0)
			continue;
		any = true;
		if (strcmp(argv[i], sentence) == 0)
			return true;
	}
	return !any;
}

/* A test that was renamed would otherwise be left out for ever where it is asked for by name. */
static inline bool check_known(const char *sentence)
{
	for (unsigned i = 0; i < check_count; i++)
		if (strcmp(check_tests[i].sentence, sentence) == 0)
			return true;
	printf("no test is called %s\n", sentence);
	return false;
}

int main(int argc, char **argv)
{
	unsigned ran = 0, failed = 0, skipped = 0;
	bool apart = true;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--seed=", 7) == 0)
			check_seed_text = argv[i] + 7;
		else if (!check_known(argv[i]))
			return 1;
		else
			apart = false;
	for (unsigned i = 0; i < check_count; i++) {
		if (!check_wanted(check_tests[i].sentence, argc, argv))
			continue;
		int rc = apart ? check_run_apart(&check_tests[i]) : check_run_here(&check_tests[i]);
		printf("%s %s\n",
		       rc == 0               ? "ok  "
		       : rc == CHECK_SKIPPED ? "skip"
					     : "FAIL",
		       check_tests[i].sentence);
		ran++;
		failed += rc != 0 && rc != CHECK_SKIPPED;
		skipped += rc == CHECK_SKIPPED;
	}
	if (failed || !ran)
		return 1;
	return skipped == ran ? CHECK_SKIPPED : 0;
}

#endif
