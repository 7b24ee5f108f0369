/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a picture: the frame with its style, texts, bars and dots. */
#include "tools/common/svg.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"

void svg_open(FILE *to, int width, int height, const char *label)
{
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" "
		"role=\"img\" aria-label=\"%s\">\n<title>%s</title>\n",
		width, height, width, height, label, label);
}

void svg_begin(FILE *to, int width, int height, const char *label, const char *light,
	       const char *dark, const char *more)
{
	svg_open(to, width, height, label);
	fprintf(to,
		"<style>\n"
		"  svg { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --faint: "
		"#667080; --rule: #e4e7eb;\n"
		"    %s }\n"
		"  @media (prefers-color-scheme: dark) { svg { --paper: #14171b; --ink: #e6e8eb; "
		"--faint: #9aa1ab;\n"
		"    --rule: #292e35; %s } }\n",
		light, dark);
	fprintf(to,
		"  text { font: 12px system-ui, sans-serif; fill: var(--ink) }\n"
		"  .title { font-size: 14px; font-weight: 600 } .faint { fill: var(--faint) }\n"
		"  .middle { text-anchor: middle } .end { text-anchor: end } .rule { stroke: "
		"var(--rule) }\n"
		"%s</style>\n<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"var(--paper)\"/>\n",
		more, width, height);
}

int svg_end(FILE *to)
{
	fputs("</svg>\n", to);
	return fflush(to) || ferror(to) ? -EIO : 0;
}

void svg_text(FILE *to, const char *classes, double x, double y, const char *format, ...)
{
	va_list args;
	fprintf(to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", classes, x, y);
	va_start(args, format);
	vfprintf(to, format, args);
	va_end(args);
	fputs("</text>\n", to);
}

void svg_bar(FILE *to, const char *colour, double x, double y, double wide, double high,
	     const char *format, ...)
{
	va_list args;
	fprintf(to,
		"<rect x=\"%.1f\" y=\"%.2f\" width=\"%.1f\" height=\"%.2f\" rx=\"2\" "
		"fill=\"%s\"><title>",
		x, y, wide, high, colour);
	va_start(args, format);
	vfprintf(to, format, args);
	va_end(args);
	fputs("</title></rect>\n", to);
}

void svg_dot(FILE *to, const char *classes, double x, double y, double radius, const char *format,
	     ...)
{
	va_list args;
	fprintf(to, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"><title>", classes, x, y,
		radius);
	va_start(args, format);
	vfprintf(to, format, args);
	va_end(args);
	fputs("</title></circle>\n", to);
}

int file_write(const char *name, int (*write)(const void *what, FILE *to), const void *what)
{
	if (!name)
		return 0;
	FILE *to = file_named_empty(name);
	if (!to)
		return error_set(-errno, "writing %s: %s", name, strerror(errno));
	int rc = write(what, to);
	if (fclose(to) || rc)
		return error_set(-EIO, "writing %s: %s", name, strerror(errno));
	return 0;
}
