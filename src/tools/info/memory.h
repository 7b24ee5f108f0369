/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern info` says about the memory layer. */
#ifndef TERN_TOOLS_INFO_MEMORY_H
#define TERN_TOOLS_INFO_MEMORY_H

#include "tools/common/json.h"

void info_memory_text(void);
void info_memory_json(struct json *j);

#endif
