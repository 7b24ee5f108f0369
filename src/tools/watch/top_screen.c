/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern top` on a terminal, with ncurses where there was one when Tern was built. */
#include "tools/watch/top.h"

#ifdef TERN_CURSES
#include <curses.h>
#include <unistd.h>

#include "base/clock.h"

struct view {
	int top;     /* the first row shown */
	int line;    /* where the next line goes */
	int room;    /* lines for ranks, which leave some to handlers */
	bool frozen; /* with p: the figures stay */
};

static void line_draw(struct view *v, const char *text, int attributes)
{
	if (v->line >= LINES)
		return;
	attrset(attributes);
	mvaddnstr(v->line, 0, text, COLS);
	attrset(A_NORMAL);
	v->line++;
}

static void line_take(void *to, enum top_line line, const char *text)
{
	static const int attributes[] = { [TOP_LINE_COLUMNS] = A_REVERSE,
					  [TOP_LINE_WAITING] = A_DIM,
					  [TOP_LINE_NAMES] = A_BOLD,
					  [TOP_LINE_HANDLER] = A_NORMAL };
	struct view *v = to;
	if ((line == TOP_LINE_ROW || line == TOP_LINE_WAITING) && v->line >= v->room)
		return;
	if (line == TOP_LINE_NAMES) /* behind an empty line, or not at all */
		v->line = v->line + 2 >= LINES ? LINES : v->line + 1;
	line_draw(v, text, attributes[line]);
}

static void screen_draw(struct view *v, const struct top *t)
{
	erase();
	v->line = 0;
	v->room = t->handlers ? LINES * 2 / 3 : LINES - 1;
	top_show(t, (uint32_t)v->top, line_take, v);
	v->line = LINES - 1;
	line_draw(v, "q quit   left, right: sort by   up, down: scroll   p pause", A_DIM);
	refresh();
}

/* False when it is time to go. */
static bool key_take(struct view *v, struct top *t, int key)
{
	int size = (int)t->watch.job.size;
	if (key == 'q')
		return false;
	if (key == 'p')
		v->frozen = !v->frozen;
	else if (key == KEY_RIGHT)
		t->sort = (t->sort + 1) % TOP_COLUMNS;
	else if (key == KEY_LEFT)
		t->sort = (t->sort + TOP_COLUMNS - 1) % TOP_COLUMNS;
	else if (key == KEY_DOWN && v->top + 1 < size)
		v->top++;
	else if (key == KEY_UP && v->top)
		v->top--;
	top_order(t);
	return true;
}

/* Keys until the next look is due; false when one of them ends it. */
static bool screen_wait(struct view *v, struct top *t, double interval)
{
	uint64_t due = clock_ns() + (uint64_t)(interval * 1e9);
	for (uint64_t now; (now = clock_ns()) < due;) {
		timeout((int)((due - now) / 1000000) + 1);
		int key = getch();
		if (key == ERR)
			continue;
		if (!key_take(v, t, key))
			return false;
		screen_draw(v, t);
	}
	return true;
}

bool top_screen(struct top *t, double interval)
{
	struct view v = { 0 };
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return false;
	SCREEN *screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return false; /* a terminal that ncurses does not know */
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	do {
		if (!v.frozen)
			top_look(t);
		screen_draw(&v, t);
	} while (!top_over(t) && screen_wait(&v, t, interval));
	endwin();
	delscreen(screen);
	return true;
}
#else
bool top_screen(struct top *t, double interval)
{
	(void)t, (void)interval;
	return false;
}
#endif
