/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 hands out tasks, which land in buffers that the others have set aside; it waits while the
 * next one has none free. Who has done a task hands its result over to the communication processor,
 * which writes it to rank 0's board and counts it there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/async.h>
#include <tern/buf.h>

enum { TASK = 1, TASKS = 200, BUFFERS = 4 };

struct task {
	uint64_t number; /* TASKS: there are no more */
	uint64_t from, to;
};

/* In the heap, at the same place on every rank; that of rank 0 is used. */
struct board {
	tern_flag done;
	uint64_t sum[TASKS];
};

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "crew: %s\n", tern_strerror(rc));
	exit(1);
}

/* Takes a task and does it; 0 when there are no more. */
static int work(tern *t, struct board *board, tern_op *op)
{
	tern_buf got;
	struct task task;
	must(tern_buf_recv(t, TASK, 0, &got));
	memcpy(&task, got.data, sizeof task);
	must(tern_buf_free(t, got.data));
	if (task.number == TASKS)
		return 0;
	uint64_t sum = 0;
	for (uint64_t i = task.from; i < task.to; i++)
		sum += i;
	/* 8 bytes are copied by the call. */
	must(tern_async_put_start(t, tern_addr_at(t, 0, &board->sum[task.number]), &sum, sizeof sum,
				  tern_addr_at(t, 0, &board->done), op));
	return 1;
}

static void hand_out(tern *t, struct board *board, tern_op *op)
{
	uint32_t others = tern_size(t) - 1;
	for (uint64_t i = 0; i < TASKS + others; i++) {
		struct task task = { i, i * i, i * i + 2 * i + 1 };
		if (i > TASKS)
			task.number = TASKS; /* to each */
		must(tern_buf_send(t, others ? 1 + (uint32_t)(i % others) : 0, TASK, &task,
				   sizeof task));
		if (!others) /* alone it does them itself */
			work(t, board, op);
	}
}

int main(void)
{
	tern *t;
	tern_op op = TERN_OP;
	void *memory;
	must(tern_open(&t, NULL));
	must(tern_buf_alloc(t, TASK, sizeof(struct task), BUFFERS, TERN_BUF_WAIT));
	must(tern_alloc_all(t, sizeof(struct board), &memory)); /* and all have their buffers */
	struct board *board = memory;
	if (tern_rank(t) == 0) {
		uint64_t sum = 0, n = (uint64_t)TASKS * TASKS;
		hand_out(t, board, &op);
		must(tern_wait(t, &board->done, TASKS));
		for (int i = 0; i < TASKS; i++)
			sum += board->sum[i];
		printf("the numbers below %u: %s\n", (unsigned)n,
		       sum == n * (n - 1) / 2 ? "right" : "wrong");
	} else {
		while (work(t, board, &op))
			;
	}
	must(tern_op_wait(t, &op));
	must(tern_buf_close(t, TASK));
	must(tern_free_all(t, memory));
	must(tern_close(t));
	return 0;
}
