/* SPDX-License-Identifier: BSD-3-Clause */
/* For `tern info`: whether a setting is understood by what reads it. */
#ifndef TERN_TOOLS_INFO_SETTING_H
#define TERN_TOOLS_INFO_SETTING_H

#include "base/setting.h"

/* What is wrong with the value, in a sentence that lasts until the next call; NULL if nothing is. */
const char *info_setting_problem(enum setting s);

#endif
