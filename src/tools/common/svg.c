/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a picture: the frame with its style, texts, bars and dots. */
#include "tools/common/svg.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"

void xml_write(FILE *to, const char *text)
{
	static const char special[] = "<>&\"";
	static const char *const written[] = { "&lt;", "&gt;", "&amp;", "&quot;" };
	for (; *text; text++) {
		const char *place = strchr(special, *text);
		if (place)
			fputs(written[place - special], to);
		else
			fputc(*text, to);
	}
}

void svg_open(FILE *to, int width, int height, const char *label)
{
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" role=\"img\" aria-label=\"",
		width, height, width, height);
	xml_write(to, label);
	fputs("\">\n<title>", to);
	xml_write(to, label);
	fputs("</title>\n", to);
}

static const char style[] =
	"<style>\n"
	"  svg { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --faint: #667080;\n"
	"    --rule: #e4e7eb; --c0: #2563eb; --c1: #b45309; --c2: #15803d; --c3: #be185d;\n"
	"    --c4: #6d28d9; --c5: #0e7490; --c6: #c026d3; --c7: #64748b }\n"
	"  @media (prefers-color-scheme: dark) { svg { --paper: #14171b; --ink: #e6e8eb;\n"
	"    --faint: #9aa1ab; --rule: #292e35; --c0: #7aa7ff; --c1: #fbbf24; --c2: #4ade80;\n"
	"    --c3: #fb7185; --c4: #c4b5fd; --c5: #67e8f9; --c6: #f0abfc; --c7: #94a3b8 } }\n"
	"  text { font: 12px system-ui, sans-serif; fill: var(--ink) }\n"
	"  .title { font-size: 14px; font-weight: 600 } .faint { fill: var(--faint) }\n"
	"  .middle { text-anchor: middle } .end { text-anchor: end }\n"
	"  .rule { stroke: var(--rule) } .ideal { stroke: var(--faint); stroke-dasharray: 2 4 }\n"
	"  polyline { fill: none; stroke-width: 2 } .dashed { stroke-dasharray: 5 4 }\n"
	"  circle { fill: var(--c) } .hollow { fill: var(--paper); stroke-width: 2 }\n";

void svg_begin(FILE *to, int width, int height, const char *label, const char *more)
{
	svg_open(to, width, height, label);
	fputs(style, to);
	for (int i = 0; i < 8; i++)
		fprintf(to, "  .c%d { stroke: var(--c%d); --c: var(--c%d) }\n", i, i, i);
	fprintf(to,
		"%s</style>\n<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"var(--paper)\"/>\n",
		more, width, height);
}

int svg_end(FILE *to)
{
	fputs("</svg>\n", to);
	return fflush(to) || ferror(to) ? -EIO : 0;
}

static void text_end(FILE *to, const char *format, va_list args, const char *after)
{
	char text[512];
	vsnprintf(text, sizeof text, format, args);
	xml_write(to, text);
	fputs(after, to);
}

void svg_text(FILE *to, const char *classes, double x, double y, const char *format, ...)
{
	va_list args;
	fprintf(to, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", classes, x, y);
	va_start(args, format);
	text_end(to, format, args, "</text>\n");
	va_end(args);
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
	text_end(to, format, args, "</title></rect>\n");
	va_end(args);
}

void svg_dot(FILE *to, const char *classes, double x, double y, double radius, const char *format,
	     ...)
{
	va_list args;
	fprintf(to, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"><title>", classes, x, y,
		radius);
	va_start(args, format);
	text_end(to, format, args, "</title></circle>\n");
	va_end(args);
}

int file_write(const char *name, int (*write)(const void *what, FILE *to), const void *what)
{
	if (!name)
		return 0;
	FILE *to = file_private_stream(name);
	if (!to)
		return error_set(-errno, "writing %s: %s", name, file_why(errno));
	int rc = write(what, to);
	if (fclose(to) || rc)
		return error_set(-EIO, "writing %s: %s", name, strerror(errno));
	return 0;
}
