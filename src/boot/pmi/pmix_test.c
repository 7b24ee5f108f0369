/* SPDX-License-Identifier: BSD-3-Clause */
/* The library of PMIx, which this program plays: its functions are found here. */
#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>

#include <tern/tern.h>

#include "boot/pmi/pmi.h"
#include "lib/check.h"

enum { SIZE = 6, ME = 4 };

static struct {
	pmix_status_t init, put, commit, fence, get, abort; /* what each call returns */
	unsigned inits, finals, commits;
	char key[64], value[64]; /* of the last put */
	bool collects;           /* the fence was told to */
	int open;
	int aborted;
	bool as_number; /* answers have another type */
	bool lacking, empty;
} library;

/* The library's own dlopen() is this one. */
void *dlopen(const char *name, int flags)
{
	void *(*real)(const char *, int);
	void *found = dlsym(RTLD_NEXT, "dlopen");
	memcpy(&real, &found, sizeof real);
	if (name && strncmp(name, "libpmix", 7) == 0)
		name = library.lacking ? "libpmix-of-nobody" : library.empty ? "libm.so.6" : NULL;
	return real(name, flags);
}

pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t n)
{
	(void)info, (void)n;
	library.inits++;
	snprintf(proc->nspace, sizeof proc->nspace, "job");
	proc->rank = ME;
	return library.init;
}

int PMIx_Initialized(void)
{
	return library.open;
}

pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t n)
{
	(void)info, (void)n;
	library.finals++;
	return PMIX_SUCCESS;
}

pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *v)
{
	CHECK_IS(scope, PMIX_GLOBAL);
	CHECK_IS(v->type, PMIX_STRING);
	snprintf(library.key, sizeof library.key, "%s", key);
	snprintf(library.value, sizeof library.value, "%s", v->data.string);
	return library.put;
}

pmix_status_t PMIx_Commit(void)
{
	library.commits++;
	return library.commit;
}

pmix_status_t PMIx_Fence(const pmix_proc_t procs[], size_t many, const pmix_info_t info[], size_t n)
{
	CHECK(!procs && !many && n == 1);
	library.collects = strcmp(info[0].key, PMIX_COLLECT_DATA) == 0 && info[0].value.data.flag;
	return library.fence;
}

pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
		       size_t n, pmix_value_t **out)
{
	char text[100];
	CHECK(strcmp(proc->nspace, "job") == 0);
	if (library.get != PMIX_SUCCESS)
		return library.get;
	pmix_value_t *v = calloc(1, sizeof *v);
	REQUIRE(v);
	*out = v;
	if (strcmp(key, PMIX_JOB_SIZE) == 0) {
		CHECK_IS(proc->rank, PMIX_RANK_WILDCARD);
		v->type = library.as_number ? PMIX_UINT16 : PMIX_UINT32;
		v->data.uint32 = SIZE;
		return PMIX_SUCCESS;
	}
	bool all = proc->rank == PMIX_RANK_WILDCARD;
	CHECK(all ||
	      (n == 1 && strcmp(info[0].key, PMIX_IMMEDIATE) == 0 && info[0].value.data.flag));
	snprintf(text, sizeof text, "of %u", proc->rank);
	v->type = library.as_number ? PMIX_UINT32 : PMIX_STRING;
	if (!library.as_number)
		v->data.string = strdup(all ? "0,1,4" : text);
	return PMIX_SUCCESS;
}

pmix_status_t PMIx_Abort(int status, const char message[], pmix_proc_t procs[], size_t n)
{
	CHECK(strstr(message, "tern_exit()") && !procs && !n);
	library.aborted = status;
	return library.abort;
}

const char *PMIx_Error_string(pmix_status_t status)
{
	static char text[32];
	snprintf(text, sizeof text, "trouble %d", status);
	return text;
}

static bool says(int rc, const char *words)
{
	bool good = strstr(tern_strerror(rc), words);
	if (!good)
		printf("    %s\n", tern_strerror(rc));
	return good;
}

static int begin(uint32_t *rank, uint32_t *size)
{
	int rc = pmix_ops.load();
	return rc ? rc : pmix_ops.open(rank, size);
}

static void open_it(void)
{
	uint32_t rank = 99, size = 99;
	REQUIRE(begin(&rank, &size) == 0);
	CHECK(rank == ME && size == SIZE);
}

TEST(a_rank_joins_through_the_library_of_pmix)
{
	char text[100] = "";
	open_it();
	CHECK_IS(pmix_ops.put("key", "word"), 0);
	CHECK(strcmp(library.key, "key") == 0 && strcmp(library.value, "word") == 0);
	CHECK_IS(library.commits, 1);
	CHECK_IS(pmix_ops.fence(), 0);
	CHECK(library.collects);
	CHECK_IS(pmix_ops.get(3, "key", text, sizeof text), 0);
	CHECK(strcmp(text, "of 3") == 0);
	CHECK(pmix_ops.neighbours(text, sizeof text));
	CHECK(strcmp(text, "0,1,4") == 0);
	CHECK_IS(library.finals, 0);
	pmix_ops.close();
	CHECK_IS(library.finals, 1);
}

TEST(a_library_of_pmix_that_is_missing_or_old_is_named_with_what_to_install)
{
	uint32_t rank, size;
	library.lacking = true;
	CHECK_IS(begin(&rank, &size), -ENOTSUP);
	CHECK(says(-ENOTSUP, "cannot be loaded") && says(-ENOTSUP, "libpmix2"));
	CHECK(!pmix_ops.open_already());
	library.lacking = false;
	library.empty = true;
	CHECK_IS(begin(&rank, &size), -ENOTSUP);
	CHECK(says(-ENOTSUP, "lacks PMIx_Init") && says(-ENOTSUP, "PMIx 3 or newer"));
	CHECK_IS(library.inits, 0);
}

TEST(each_error_of_pmix_is_told_and_what_was_begun_is_ended)
{
	uint32_t rank = 99, size = 99;
	char text[100];
	library.init = PMIX_ERR_UNREACH;
	CHECK_IS(begin(&rank, &size), -EPROTO);
	CHECK(says(-EPROTO, "trouble") && says(-EPROTO, "directly from the launcher"));
	CHECK_IS(library.finals, 0);
	library.init = PMIX_SUCCESS;
	library.get = PMIX_ERR_TIMEOUT;
	CHECK_IS(begin(&rank, &size), -EPROTO);
	CHECK(says(-EPROTO, "asking how many ranks the job has"));
	CHECK_IS(library.finals, 1);
	library.get = PMIX_SUCCESS;
	library.as_number = true;
	CHECK_IS(begin(&rank, &size), -EPROTO);
	CHECK(says(-EPROTO, "32 bits"));
	CHECK_IS(library.finals, 2);
	CHECK_IS(size, 99);
	library.as_number = false;
	open_it();
	library.put = PMIX_ERR_BAD_PARAM;
	CHECK_IS(pmix_ops.put("key", "word"), -EPROTO);
	CHECK(says(-EPROTO, "telling the other ranks"));
	CHECK_IS(library.commits, 0);
	library.put = PMIX_SUCCESS;
	library.commit = PMIX_ERR_BAD_PARAM;
	CHECK_IS(pmix_ops.put("key", "word"), -EPROTO);
	library.fence = PMIX_ERR_TIMEOUT;
	CHECK_IS(pmix_ops.fence(), -EPROTO);
	CHECK(says(-EPROTO, "waiting for the other ranks"));
	library.fence =
		PMIX_ERR_PARTIAL_SUCCESS; /* one has died, and is named by who lacks a card */
	CHECK_IS(pmix_ops.fence(), 0);
	library.get = PMIX_ERR_TIMEOUT;
	CHECK_IS(pmix_ops.get(3, "key", text, sizeof text), -EPROTO);
	CHECK(says(-EPROTO, "asking where rank 3 is"));
	CHECK(!pmix_ops.neighbours(text, sizeof text));
	library.get = PMIX_ERR_NOT_FOUND;
	CHECK_IS(pmix_ops.get(3, "key", text, sizeof text), -ENODATA);
}

TEST(an_answer_of_another_type_or_without_room_is_refused)
{
	char text[6] = "as is";
	open_it();
	CHECK_IS(pmix_ops.get(3, "key", text, 4), -EPROTO);
	CHECK(says(-EPROTO, "answered something else"));
	CHECK(!pmix_ops.neighbours(text, 5));
	CHECK(strcmp(text, "as is") == 0);
	CHECK_IS(pmix_ops.get(3, "key", text, 5), 0);
	CHECK(pmix_ops.neighbours(text, 6));
	library.as_number = true;
	CHECK_IS(pmix_ops.get(3, "key", text, sizeof text), -EPROTO);
	CHECK(!pmix_ops.neighbours(text, sizeof text));
}

TEST(ranks_of_one_node_are_known_before_the_library_is_opened_if_all_are_there)
{
	char text[8];
	unsetenv("OMPI_COMM_WORLD_SIZE");
	unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	CHECK(!pmix_ops.started(text, sizeof text));
	setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
	CHECK(!pmix_ops.started(text, sizeof text));
	setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
	CHECK(!pmix_ops.started(text, sizeof text));
	setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
	CHECK(pmix_ops.started(text, sizeof text));
	CHECK(strcmp(text, "0,1,2,3") == 0);
	CHECK(!pmix_ops.started(text, sizeof text - 1)); /* there is no room */
}

TEST(a_job_is_ended_through_pmix_while_that_is_open)
{
	open_it();
	CHECK_IS(pmix_ops.abort(3), 0);
	CHECK_IS(library.aborted, 0); /* it is not open */
	library.open = 1;
	CHECK(pmix_ops.open_already());
	CHECK_IS(pmix_ops.abort(3), 0);
	CHECK_IS(library.aborted, 3);
	CHECK_IS(pmix_ops.abort(0), 0);
	CHECK_IS(library.aborted, 0);
	library.abort = PMIX_ERR_TIMEOUT;
	CHECK_IS(pmix_ops.abort(4), -EPROTO);
	CHECK(says(-EPROTO, "ending the job"));
}
