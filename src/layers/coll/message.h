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
/* A failure of a team that is not made here yet, and taking it when it is; see fail.c. */
void early_keep_failure(struct coll *c, const tern_msg *m, const struct failure *why);
bool early_take_failure(tern_team *team, uint64_t *call, struct failure *why);
void early_forget(struct coll *c, uint64_t team); /* whatever has come for it */
/* A view of a team that is not made here yet, and taking it when it is; see survivors.c. */
void early_keep_view(struct coll *c, const tern_msg *m, const void *view, size_t len);
bool early_take_view(tern_team *team, uint64_t *leader, void *view, size_t len);

#endif
