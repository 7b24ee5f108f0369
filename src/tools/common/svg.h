/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the pictures of --plot as SVG, legible on a light and on a dark ground. */
#ifndef TERN_TOOLS_COMMON_SVG_H
#define TERN_TOOLS_COMMON_SVG_H

#include <stdio.h>

/*
 * Begins a picture whose ground is painted. Its style has the classes title, faint, middle, end,
 * rule, ideal, dashed, hollow and c0 to c7, and the variables --paper, --ink, --faint, --rule and
 * --c0 to --c7; `more` are further rules.
 */
void svg_begin(FILE *to, int width, int height, const char *label, const char *more);
/* Begins one within a page, which has a style of its own for the same classes. */
void svg_open(FILE *to, int width, int height, const char *label);
/* Ends it; 0, or -EIO if the file did not take all of it. */
int svg_end(FILE *to);

/* Text, with what XML gives a meaning to written out. */
void xml_write(FILE *to, const char *text);
/* A text of some classes, "" for none, that begins, ends or has its middle at x. */
__attribute__((format(printf, 5, 6))) void svg_text(FILE *to, const char *classes, double x,
						    double y, const char *format, ...);
/* A bar, and the text that shows when somebody points at it; its colour is a value of CSS. */
__attribute__((format(printf, 7, 8))) void svg_bar(FILE *to, const char *colour, double x, double y,
						   double wide, double high, const char *format,
						   ...);
/* A dot of a class, likewise. */
__attribute__((format(printf, 6, 7))) void
svg_dot(FILE *to, const char *classes, double x, double y, double radius, const char *format, ...);

/* Writes a file by `write`; nothing for a name that is NULL. 0, or a code with its sentence. */
int file_write(const char *name, int (*write)(const void *what, FILE *to), const void *what);

#endif
