/* SPDX-License-Identifier: BSD-3-Clause */
/* What others measured: the LogP parameters in von Eicken's thesis, table 4-12. */
#ifndef TERN_TOOLS_LOGP_THESIS_H
#define TERN_TOOLS_LOGP_THESIS_H

enum { THESIS_COLUMNS = 4 };

/* Times in microseconds. */
extern const struct thesis_column {
	const char *machine, *layer, *message;
	double latency, overhead, gap;
	unsigned processors;
} thesis[THESIS_COLUMNS];

extern const char thesis_note[];

#endif
