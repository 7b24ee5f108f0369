/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json_check [KEY...] < TEXT: whether the text is one JSON value (RFC 8259), and
 * whether the value, or if it is an array each of its elements, is an object with
 * every KEY. Prints how many elements it has. Exit status 0 if all of that is so.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 64, KEYS_MOST = 64 };

struct check {
	const char *start, *at;
	char **key;
	int keys;
	int level; /* of the objects that must have the keys: 0, or 1 in an array */
	unsigned elements;
};

static void wrong(const struct check *c, const char *what)
{
	fprintf(stderr, "json_check: at byte %td: %s; here: %.40s\n", c->at - c->start, what,
		c->at);
	exit(1);
}

static void space(struct check *c)
{
	c->at += strspn(c->at, " \t\r\n");
}

static bool take(struct check *c, char wanted)
{
	space(c);
	if (*c->at != wanted)
		return false;
	c->at++;
	return true;
}

static void escape(struct check *c)
{
	if (*c->at == 'u') {
		for (int i = 1; i <= 4; i++)
			if (!isxdigit((unsigned char)c->at[i]))
				wrong(c, "\\u takes four hexadecimal digits");
		c->at += 5;
	} else if (*c->at && strchr("\"\\/bfnrt", *c->at)) {
		c->at++;
	} else {
		wrong(c, "an escape that JSON does not have");
	}
}

static void string(struct check *c)
{
	if (!take(c, '"'))
		wrong(c, "a string was expected");
	while (*c->at != '"') {
		if ((unsigned char)*c->at < 0x20)
			wrong(c, "a string with a control character or without an end");
		if (*c->at++ == '\\')
			escape(c);
	}
	c->at++;
}

static void digits(struct check *c)
{
	if (!isdigit((unsigned char)*c->at))
		wrong(c, "a digit was expected");
	while (isdigit((unsigned char)*c->at))
		c->at++;
}

static void number(struct check *c)
{
	c->at += *c->at == '-';
	if (*c->at == '0')
		c->at++;
	else
		digits(c);
	if (*c->at == '.') {
		c->at++;
		digits(c);
	}
	if (*c->at == 'e' || *c->at == 'E') {
		c->at++;
		c->at += *c->at == '+' || *c->at == '-';
		digits(c);
	}
}

static void value(struct check *c, int depth);

/* Marks in `seen` which of the keys this one is. */
static void member(struct check *c, int depth, bool *seen)
{
	space(c);
	const char *name = c->at + 1;
	string(c);
	size_t len = (size_t)(c->at - name) - 1;
	for (int i = 0; i < c->keys; i++)
		if (strlen(c->key[i]) == len && memcmp(c->key[i], name, len) == 0)
			seen[i] = true;
	if (!take(c, ':'))
		wrong(c, "a colon was expected");
	value(c, depth + 1);
}

static void object(struct check *c, int depth)
{
	bool seen[KEYS_MOST] = { false };
	if (!take(c, '}')) {
		do
			member(c, depth, seen);
		while (take(c, ','));
		if (!take(c, '}'))
			wrong(c, "a comma or a brace was expected");
	}
	for (int i = 0; i < c->keys && depth == c->level; i++)
		if (!seen[i]) {
			fprintf(stderr, "json_check: the object before byte %td has no %s\n",
				c->at - c->start, c->key[i]);
			exit(1);
		}
}

static void array(struct check *c, int depth)
{
	if (depth == 0)
		c->level = 1;
	if (take(c, ']'))
		return;
	do {
		c->elements += depth == 0;
		value(c, depth + 1);
	} while (take(c, ','));
	if (!take(c, ']'))
		wrong(c, "a comma or a bracket was expected");
}

static bool word(struct check *c, const char *text)
{
	if (strncmp(c->at, text, strlen(text)) != 0)
		return false;
	c->at += strlen(text);
	return true;
}

static void value(struct check *c, int depth)
{
	if (depth == DEPTH_MOST)
		wrong(c, "this is deeper than anything Tern prints");
	space(c);
	if (take(c, '{'))
		object(c, depth);
	else if (depth == c->level && c->keys && *c->at != '[')
		wrong(c, "an object was expected");
	else if (take(c, '['))
		array(c, depth);
	else if (*c->at == '"')
		string(c);
	else if (!word(c, "true") && !word(c, "false") && !word(c, "null"))
		number(c);
}

static char *everything(FILE *from)
{
	size_t len = 0, room = 1 << 16;
	char *text = malloc(room);
	for (size_t n; text && (n = fread(text + len, 1, room - len - 1, from)) > 0;) {
		len += n;
		if (len + 1 == room)
			text = realloc(text, room *= 2);
	}
	if (!text || memchr(text, '\0', len))
		exit(1);
	text[len] = '\0';
	return text;
}

int main(int argc, char **argv)
{
	char *text = everything(stdin);
	struct check c = { .start = text, .at = text, .key = argv + 1, .keys = argc - 1 };
	if (c.keys > KEYS_MOST)
		return 2;
	value(&c, 0);
	space(&c);
	if (*c.at)
		wrong(&c, "something follows the value");
	printf("%u\n", c.elements);
	free(text);
	return 0;
}
