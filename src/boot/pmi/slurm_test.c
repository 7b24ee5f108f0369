/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's PMI-1 library, which this program plays: its functions are found here. */
#include <dlfcn.h>
#include <errno.h>

#include <tern/tern.h>

#include "boot/pmi/pmi.h"
#include "lib/check.h"

enum { INIT, RANK, SIZE, NAME, PUT, COMMIT, BARRIER, GET, CALLS };

static struct {
	int code[CALLS];        /* what each call returns, */
	unsigned called[CALLS]; /* and how often it was called */
	char put[100];          /* "table key value" */
	bool open;
	unsigned finalized;
	bool lacking; /* the library is not there, */
	bool empty;   /* or has none of its functions */
} library;

/* The library's own dlopen() is this one. */
void *dlopen(const char *name, int flags)
{
	void *(*real)(const char *, int);
	void *found = dlsym(RTLD_NEXT, "dlopen");
	memcpy(&real, &found, sizeof real);
	if (name && strcmp(name, "libpmi.so.0") == 0)
		name = library.lacking ? "libpmi-of-nobody.so.0"
		       : library.empty ? "libm.so.6"
				       : NULL;
	return real(name, flags);
}

static int called(int call)
{
	library.called[call]++;
	return library.code[call];
}

int PMI_Init(int *spawned);
int PMI_Init(int *spawned)
{
	*spawned = 0;
	library.open = true;
	return called(INIT);
}

int PMI_Initialized(int *flag);
int PMI_Initialized(int *flag)
{
	*flag = library.open;
	return 0;
}

int PMI_Finalize(void);
int PMI_Finalize(void)
{
	library.finalized++;
	return 0;
}

int PMI_Get_rank(int *rank);
int PMI_Get_rank(int *rank)
{
	*rank = 3;
	return called(RANK);
}

int PMI_Get_size(int *size);
int PMI_Get_size(int *size)
{
	*size = 8;
	return called(SIZE);
}

int PMI_KVS_Get_my_name(char *table, int len);
int PMI_KVS_Get_my_name(char *table, int len)
{
	snprintf(table, (size_t)len, "table7");
	return called(NAME);
}

int PMI_KVS_Put(const char *table, const char *key, const char *value);
int PMI_KVS_Put(const char *table, const char *key, const char *value)
{
	snprintf(library.put, sizeof library.put, "%s %s %s", table, key, value);
	return called(PUT);
}

int PMI_KVS_Commit(const char *table);
int PMI_KVS_Commit(const char *table)
{
	CHECK(strcmp(table, "table7") == 0);
	return called(COMMIT);
}

int PMI_Barrier(void);
int PMI_Barrier(void)
{
	return called(BARRIER);
}

int PMI_KVS_Get(const char *table, const char *key, char *value, int len);
int PMI_KVS_Get(const char *table, const char *key, char *value, int len)
{
	snprintf(value, (size_t)len, "%s of %s", key, table);
	return called(GET);
}

static bool says(int rc, const char *words)
{
	bool good = strstr(tern_strerror(rc), words);
	if (!good)
		printf("    %s\n", tern_strerror(rc));
	return good;
}

static const struct pmi_ops *const slurm = &pmi_slurm_ops;

static int begin(uint32_t *rank, uint32_t *size)
{
	int rc = slurm->load();
	return rc ? rc : slurm->open(rank, size);
}

TEST(a_task_of_srun_joins_through_slurms_library)
{
	uint32_t rank = 99, size = 99;
	char value[100];
	CHECK_IS(begin(&rank, &size), 0);
	CHECK(rank == 3 && size == 8);
	CHECK_IS(slurm->put("key", "word"), 0);
	CHECK(strcmp(library.put, "table7 key word") == 0);
	CHECK_IS(library.called[COMMIT], 1);
	CHECK_IS(slurm->fence(), 0);
	CHECK_IS(library.called[BARRIER], 1);
	CHECK_IS(slurm->get(5, "key", value, sizeof value), 0);
	CHECK(strcmp(value, "key of table7") == 0);
	CHECK_IS(library.finalized, 0);
	slurm->close();
	CHECK_IS(library.finalized, 1);
	library.open = false; /* MPI has closed it */
	slurm->close();
	CHECK_IS(library.finalized, 1);
}

TEST(each_error_of_slurms_library_is_told_with_its_code_and_ends_joining)
{
	static const char *const asked[CALLS] = {
		[INIT] = "joining the job of srun",
		[RANK] = "asking for the rank",
		[SIZE] = "the number of ranks",
		[NAME] = "asking for the job's table",
		[PUT] = "telling the other ranks",
		[COMMIT] = "telling the other ranks",
		[BARRIER] = "waiting for the other ranks",
		[GET] = "asking where rank 5 is",
	};
	for (int fails = 0; fails < CALLS; fails++) {
		uint32_t rank = 99, size = 99;
		char value[100];
		memset(&library, 0, sizeof library);
		library.code[fails] = 14;
		int rc = begin(&rank, &size);
		CHECK(!rc || (rank == 99 && size == 99));
		if (!rc)
			rc = slurm->put("key", "word");
		if (!rc)
			rc = slurm->fence();
		if (!rc)
			rc = slurm->get(5, "key", value, sizeof value);
		CHECK_IS(rc, -EPROTO);
		CHECK(says(rc, asked[fails]) && says(rc, "failed with 14"));
		for (int call = 0; call < CALLS; call++)
			CHECK_IS(library.called[call], call <= fails);
	}
}

TEST(a_missing_library_of_slurms_is_named_with_what_to_install)
{
	uint32_t rank, size;
	library.lacking = true;
	CHECK_IS(begin(&rank, &size), -ENOTSUP);
	CHECK(says(-ENOTSUP, "cannot be loaded") && says(-ENOTSUP, "libpmi0"));
	library.lacking = false;
	library.empty = true;
	CHECK_IS(begin(&rank, &size), -ENOTSUP);
	CHECK(says(-ENOTSUP, "libpmi.so.0 lacks PMI_Init") && says(-ENOTSUP, "libpmi0"));
}
