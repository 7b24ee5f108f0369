/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/logp/thesis.h"

/* Words of those machines have 32 bits. Where the table has "8 bytes" it means 8 words (see table 4-2). */
const struct thesis_column thesis[THESIS_COLUMNS] = {
	{ "nCUBE/2", "Active Messages", "32 bytes", 25, 14, 14, 1024 },
	{ "nCUBE/2", "Active Messages", "1 KiB", 471, 14, 236, 1024 },
	{ "nCUBE/2", "send&receive", "1 KiB", 471, 80, 236, 1024 },
	{ "CM-5", "CMAM", "16 bytes", 6, 1.6, 4, 1024 },
};

const char thesis_note[] = "CM-5: the thesis gives L = 6 us, and says that it is 1.7 + 6.6 us";
