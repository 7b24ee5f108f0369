/* SPDX-License-Identifier: BSD-3-Clause */
/* Where Tern's programs are looked for. */
#include "boot/link/program.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "lib/check.h"

static bool folder_is(int behind, const char *name)
{
	char folder[PATH_MAX] = "none";
	bool is = program_folder(PROGRAM_FOLDERS + behind, folder) && strcmp(folder, name) == 0;
	if (!is)
		printf("    folder %d of PATH: %s\n", behind, folder);
	return is;
}

TEST(the_folders_of_PATH_come_last_and_in_their_order)
{
	char folder[PATH_MAX];
	setenv("PATH", "/first:/second folder::/last", 1);
	for (int i = 0; i < PROGRAM_FOLDERS; i++)
		CHECK(program_folder(i, folder) && *folder == '/' && strcmp(folder, "/first") != 0);
	CHECK(folder_is(0, "/first") && folder_is(1, "/second folder"));
	CHECK(folder_is(2, "") && folder_is(3, "/last"));
	CHECK(!program_folder(PROGRAM_FOLDERS + 4, folder));
	CHECK(!program_folder(PROGRAM_FOLDERS + 5, folder));
	setenv("PATH", "", 1);
	CHECK(!program_folder(PROGRAM_FOLDERS, folder));
	unsetenv("PATH");
	CHECK(!program_folder(PROGRAM_FOLDERS, folder));
}

TEST(the_first_program_of_the_name_on_PATH_is_found_if_it_can_be_executed)
{
	static const char name[] = "tern-that-nobody-has";
	char folder[] = "/tmp/tern-program-XXXXXX", path[PATH_MAX], file[64], list[100];
	REQUIRE(mkdtemp(folder));
	snprintf(file, sizeof file, "%s/%s", folder, name);
	snprintf(list, sizeof list, "/nowhere::%s:/bin", folder);
	setenv("PATH", list, 1);
	int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	REQUIRE(fd >= 0);
	close(fd);
	CHECK(!program_locate(name, path));
	REQUIRE(chmod(file, 0700) == 0);
	CHECK(program_locate(name, path) && strcmp(path, file) == 0);
	unlink(file);
	rmdir(folder);
	CHECK(!program_locate(name, path));
}
