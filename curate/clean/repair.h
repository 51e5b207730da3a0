/* curate/clean/repair.h -- text that was damaged on its way: mojibake, HTML entities, terminal
 * escapes; by choice curly quotes, ligatures and character width.
 *
 * The rules are those of ftfy 6.3.1 (fix_text without its line breaks, control
 * characters and normalisation, which curate/clean/clean.h has).  A text is taken in segments:
 * lines, or 1,000,000 code points of one.  A segment that needs nothing stays as it is,
 * byte for byte, and costs a scan.
 */
#ifndef CURATE_REPAIR_H
#define CURATE_REPAIR_H

#include "curate/clean/mojibake.h"

enum repair_unescape { UNESCAPE_AUTO, UNESCAPE_ON, UNESCAPE_OFF };

struct repair_conf {
    bool mojibake;         /* undo it; C1 controls become what windows-1252 has there */
    int unescape;          /* enum repair_unescape: HTML entities.  AUTO: up to the first
                              segment that has a '<', which says that it is HTML */
    bool terminal_escapes; /* remove ESC [ ... letter */
    int quotes;            /* 1: curly quotes become straight */
    bool ligatures;        /* Latin ligatures become their letters */
    bool width;            /* full- and half-width forms become the usual ones */
};

/* Scratch memory for one thread; start with zeroes. */
struct repair {
    struct mojibake mojibake;
    struct cps text, orig, next;
    struct buf out;
};
void repair_free(struct repair *r);

/* The repaired text: text itself if there is nothing to do, else bytes in r that are
 * valid until the next call.  text must be well-formed UTF-8.  A segment that was made to
 * take very many rounds stays as it is.  ERR_NOMEM. */
int repair_text(struct repair *r, const struct repair_conf *conf, struct span text, struct span *out);
#endif
