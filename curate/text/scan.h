/* curate/text/scan.h -- one pass over the bytes of a text: classes counted, white space found.
 *
 * 64 bytes at a time for ASCII; what is beyond ASCII is looked at one by one.
 */
#ifndef CURATE_SCAN_H
#define CURATE_SCAN_H

#include "base/err.h"
#include "base/mem.h"
#include "curate/text/words.h"

/* Start with zeroes; memory is used again for the next text. */
struct scan {
    size_t chars;    /* code points */
    size_t plain;    /* a-z A-Z 0-9 ? ! , . and newline */
    size_t digits;   /* 0-9 */
    size_t white;    /* tab, newline, carriage return, backspace, space */
    size_t brackets; /* { } ( ) [ ] and U+27E8, U+27E9 */
    bool ascii;
    uint64_t *space; /* a bit a byte: it belongs to white space (Python's isspace) */
    size_t cap;
};

/* Scans text (valid UTF-8).  ERR_NOMEM. */
int scan_text(struct scan *s, struct span text);
/* After scan_text of the same text (below 2^30 bytes, else ERR_LIMIT with the message):
 * the words as Python's str.split() cuts into ws->w[0..n).  ERR_NOMEM. */
int scan_split(const struct scan *s, struct span text, struct words *ws, struct err *e);
void scan_free(struct scan *s);
#endif
