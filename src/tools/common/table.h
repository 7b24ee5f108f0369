/* SPDX-License-Identifier: BSD-3-Clause */
/* Cells and headings of the tables that subcommands print. */
#ifndef TERN_TOOLS_COMMON_TABLE_H
#define TERN_TOOLS_COMMON_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { CELL = 48 };

/* --plain: nothing is set off, and there is no line of progress, on a terminal too. */
extern bool table_plain;
/* Whether headings are set off on standard output. */
bool table_bold(void);
/* A line that is set off. */
__attribute__((format(printf, 1, 2))) void table_heading(const char *format, ...);

/*
 * A number with as many decimals as leave `digits` digits that count, and what follows it; a dash
 * for NaN.
 */
const char *cell_figure(char cell[CELL], double value, int digits, const char *after);
/* 1234567 as 1.23M. */
const char *cell_short(char cell[CELL], double v);
/* A value and its unit, or NULL; times in the unit that has few digits. */
const char *cell_unit(char cell[CELL], double v, const char *unit);

/* The i-th of n measurements runs, on a terminal; and none does any more. */
__attribute__((format(printf, 3, 4))) void progress(size_t i, size_t n, const char *format, ...);
void progress_end(void);

#endif
