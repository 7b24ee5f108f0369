/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/check.h"

static char folder[] = "/tmp/tern-file-XXXXXX";
static char path[80], other[80];

/* Two names; `other` is a file that has "kept". */
static void folder_make(void)
{
	REQUIRE(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/path", folder);
	snprintf(other, sizeof other, "%s/other", folder);
	FILE *f = fopen(other, "w");
	REQUIRE(f && fputs("kept", f) > 0 && fclose(f) == 0 && chmod(other, 0644) == 0);
}

static void folder_remove(void)
{
	unlink(path);
	unlink(other);
	rmdir(folder);
}

static bool kept(void)
{
	char text[8] = "";
	FILE *f = fopen(other, "r");
	bool same = f && fgets(text, sizeof text, f) && strcmp(text, "kept") == 0;
	if (f)
		fclose(f);
	return same;
}

static unsigned mode_of(const char *name)
{
	struct stat st;
	return stat(name, &st) == 0 ? st.st_mode & 07777 : 0;
}

TEST(a_private_file_is_new_or_emptied_and_its_users_alone)
{
	folder_make();
	umask(0);
	int fd = file_private(path, O_TRUNC);
	CHECK(fd >= 0 && mode_of(path) == 0600);
	close(fd);
	fd = file_private(other, O_TRUNC);
	CHECK(fd >= 0 && mode_of(other) == 0600 && !kept());
	close(fd);
	folder_remove();
}

TEST(a_private_file_follows_no_link_and_has_no_other_name)
{
	folder_make();
	REQUIRE(symlink(other, path) == 0);
	CHECK(file_private(path, O_TRUNC) < 0 && errno == ELOOP && kept());
	unlink(path);
	REQUIRE(link(other, path) == 0);
	CHECK(file_private(path, O_TRUNC) < 0 && errno == EPERM && kept());
	CHECK_IS(mode_of(other), 0644);
	folder_remove();
}

/* Then the file gets the number 0. */
TEST(so_it_is_where_standard_input_is_closed)
{
	folder_make();
	REQUIRE(link(other, path) == 0);
	close(STDIN_FILENO);
	CHECK(file_private(path, O_TRUNC) < 0 && errno == EPERM && kept());
	folder_remove();
}

TEST(a_file_that_another_user_has_put_there_is_refused)
{
	if (geteuid() != 0)
		check_skip("only root can give a file to another user");
	folder_make();
	REQUIRE(chown(other, 65534, 65534) == 0);
	CHECK(file_private(other, O_TRUNC) < 0 && errno == EPERM && kept());
	REQUIRE(symlink(other, path) == 0 && lchown(path, 65534, 65534) == 0);
	CHECK(file_private(path, 0) < 0 && errno == ELOOP && kept());
	CHECK(!file_private_stream(path) && errno == ELOOP && kept());
	folder_remove();
}

TEST(a_file_that_a_tool_makes_is_its_users_alone_and_no_link_either)
{
	folder_make();
	umask(0);
	FILE *f = file_private_stream(path);
	CHECK(f && mode_of(path) == 0600);
	if (f)
		fclose(f);
	int fd = file_private(other, 0);
	CHECK(fd >= 0 && mode_of(other) == 0600 && kept());
	close(fd);
	unlink(path);
	REQUIRE(symlink(other, path) == 0);
	CHECK(file_private(path, 0) < 0 && errno == ELOOP && kept());
	CHECK(!file_private_stream(path) && errno == ELOOP && kept());
	CHECK(strcmp(file_why(ELOOP), "it is a symbolic link; remove it") == 0);
	f = file_private_stream("/dev/null");
	CHECK(f);
	if (f)
		fclose(f);
	folder_remove();
}

static volatile sig_atomic_t signals;

static void on_limit(int number)
{
	(void)number;
	signals++;
}

/* Its default would end this process. */
static void append_beyond(const char *name)
{
	int fd = file_private(name, O_TRUNC);
	sigset_t now;
	CHECK_IS(file_append(fd, "0123456789", 10), 8); /* as much as there is room for */
	CHECK_IS(file_append(fd, "0", 1), -1);
	CHECK_IS(errno, EFBIG);
	REQUIRE(pthread_sigmask(SIG_BLOCK, NULL, &now) == 0);
	CHECK_IS(sigismember(&now, SIGXFSZ), 0);
	REQUIRE(sigpending(&now) == 0);
	CHECK_IS(sigismember(&now, SIGXFSZ), 0);
	close(fd);
}

TEST(a_limit_of_file_size_is_an_error_and_no_signal)
{
	struct rlimit few = { 8, 8 };
	folder_make();
	REQUIRE(setrlimit(RLIMIT_FSIZE, &few) == 0);
	append_beyond(path);
	REQUIRE(signal(SIGXFSZ, on_limit) != SIG_ERR);
	append_beyond(path);
	CHECK_IS(signals, 0);
	REQUIRE(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	append_beyond(path);
	folder_remove();
}

TEST(a_signal_that_the_program_holds_back_stays)
{
	struct rlimit few = { 8, 8 };
	sigset_t limit, now;
	folder_make();
	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	REQUIRE(setrlimit(RLIMIT_FSIZE, &few) == 0 && sigprocmask(SIG_BLOCK, &limit, NULL) == 0);
	raise(SIGXFSZ);
	int fd = file_private(path, O_TRUNC);
	CHECK_IS(file_append(fd, "012345678", 9), 8);
	CHECK_IS(file_append(fd, "0", 1), -1);
	REQUIRE(sigpending(&now) == 0);
	CHECK_IS(sigismember(&now, SIGXFSZ), 1);
	close(fd);
	folder_remove();
}
