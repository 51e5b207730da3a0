/* curate/clean/repair_marks.h -- repairs of single marks: entities, terminal escapes, quotes,
 * ligatures, width.  As ftfy 6.3.1's functions of these names. */
#ifndef CURATE_REPAIR_MARKS_H
#define CURATE_REPAIR_MARKS_H

#include "curate/clean/mojibake.h"

/* HTML entities that end in a semicolon; also those in capitals that are known in small
 * letters (&NTILDE;).  next is scratch.  ERR_NOMEM. */
int marks_unescape(struct cps *t, struct cps *next);
/* True if p[0..n), '&' first, looks like an entity with its semicolon. */
bool marks_is_entity(const char *p, size_t n);

/* Plain forms of ligatures, or of full- and half-width characters. */
enum { MARKS_LIGATURE, MARKS_WIDTH };
int marks_plain(struct cps *t, struct cps *next, int kind);
/* U+02BC, 2018..201B become ', U+201C..201F become ". */
void marks_quotes(struct cps *t);
/* Removes ESC [ digits and semicolons, letter. */
void marks_terminal(struct cps *t);

/* The first place in s from `from` up to `to` at which one of these may be; else to. */
size_t repair_marks_find(struct span s, size_t from, size_t to, bool quotes, bool ligatures, bool width);
#endif
