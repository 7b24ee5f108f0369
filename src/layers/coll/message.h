/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between members, also those that come before their receive: see message.c. */
#ifndef TERN_COLL_MESSAGE_H
#define TERN_COLL_MESSAGE_H

#include "coll/run.h"

void message_handlers(struct endpoint *e);
/* Both: whether it is over. */
bool send_turn(struct run *r, struct step *s);
bool recv_turn(struct run *r, struct step *s);
void early_close(struct coll *c);
/* Of a team that is not there: whether it was once, so that nobody waits for the message. */
bool team_over(const struct coll *c, uint64_t id);
void early_forget(struct coll *c, uint64_t team); /* whatever has come for it */
/*
 * What has come for a team, call or step that is not here yet: data, that a receiver is ready, a
 * view of survivors.c, a failure of fail.c. The next of a kind for a team, and its second word.
 */
enum early_kind { EARLY_DATA, EARLY_READY, EARLY_VIEW, EARLY_FAILURE };
void early_keep(struct coll *c, const tern_msg *m, enum early_kind kind, const void *data,
		size_t len);
bool early_take(tern_team *team, enum early_kind kind, uint64_t *word, void *data, size_t len);

#endif
