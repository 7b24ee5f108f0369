/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/quiesce.h"

#include "core/wait.h"

void quiesce_begin(struct endpoint *e)
{
	e->quiescing = true;
	e->inner++; /* as in a layer's turn: light threads have none */
}

int quiesce_end(struct endpoint *e, int rc)
{
	if (!rc)
		rc = tern_barrier(e->t);
	if (!rc)
		rc = wait_silent_barrier(e);
	e->inner--;
	e->quiescing = false;
	return rc;
}
