/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory cgroups: files as the kernel writes them, and others. */
#include "base/cgroup.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/check.h"

static char folder[] = "/tmp/cgroup_test.XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "w");
	REQUIRE(f != NULL);
	fputs(text, f);
	fclose(f);
}

static void make_folder(const char *name)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	REQUIRE(mkdir(path, 0700) == 0);
}

static void find(struct cgroup *c)
{
	char file[300];
	snprintf(file, sizeof file, "%s/self", folder);
	cgroup_find_in(c, file, folder);
}

static void tidy(void)
{
	char command[300];
	snprintf(command, sizeof command, "rm -r %s", folder);
	CHECK_IS(system(command), 0);
}

TEST(the_least_room_of_all_levels_counts_and_what_can_be_given_back_is_room)
{
	struct cgroup c;
	REQUIRE(mkdtemp(folder) != NULL);
	make_folder("a");
	make_folder("a/b");
	write_file("self", "0::/a/b\n");
	write_file("a/memory.max", "1000000\n");
	write_file("a/memory.current", "300000\n");
	write_file("a/memory.stat", "anon 5\ninactive_file 1000\nactive_file 2000\nshmem 7\n");
	write_file("a/b/memory.max", "max\n");
	find(&c);
	CHECK_IS(c.levels, 1);
	CHECK_IS(cgroup_room(&c), 1000000 - 300000 + 3000);
	write_file("a/b/memory.max", "500000\n");
	write_file("a/b/memory.current", "600000\n");
	find(&c);
	CHECK_IS(c.levels, 2);
	CHECK_IS(cgroup_room(&c), 0);
	char text[CGROUP_TEXT];
	cgroup_tell(&c, text);
	CHECK(strstr(text, folder) && strstr(text, "/a/b, whose limit (memory.max) is 488 KiB, "
						   "has 0 KiB left"));
	tidy();
}

TEST(the_first_version_is_read_too_and_its_way_to_say_that_there_is_no_limit)
{
	struct cgroup c;
	REQUIRE(mkdtemp(folder) != NULL);
	make_folder("memory");
	make_folder("memory/x");
	write_file("self", "5:devices:/\n4:memory:/x\n0::/\n");
	write_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
	write_file("memory/x/memory.limit_in_bytes", "4096\n");
	write_file("memory/x/memory.usage_in_bytes", "96\n");
	find(&c);
	CHECK_IS(c.levels, 1);
	CHECK_IS(c.version, 1);
	CHECK_IS(cgroup_room(&c), 4000);
	tidy();
}

TEST(without_a_limit_or_a_cgroup_there_is_room_without_end)
{
	struct cgroup c;
	REQUIRE(mkdtemp(folder) != NULL);
	find(&c);
	CHECK_IS(c.levels, 0);
	CHECK_IS(cgroup_room(&c), UINT64_MAX);
	write_file("self", "0::/\n");
	find(&c);
	tidy();
}

TEST(where_the_path_is_one_of_the_host_the_root_counts)
{
	struct cgroup c;
	REQUIRE(mkdtemp(folder) != NULL);
	write_file("self", "0::/docker/0123\n");
	write_file("memory.max", "77\n");
	find(&c);
	tidy();
}
