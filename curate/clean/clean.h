/* curate/clean/clean.h -- text made well: repaired, Unicode normalised, the invisible removed,
 * white space and newlines in order.
 *
 * Cleaning is idempotent, and a text that is clean stays as it is, byte for byte.
 */
#ifndef CURATE_CLEAN_H
#define CURATE_CLEAN_H

#include "base/opt.h"
#include "curate/clean/pii.h"
#include "curate/clean/repair.h"
#include "curate/stream/stage.h"

enum clean_form { CLEAN_NFC, CLEAN_NFKC, CLEAN_ANY };

struct clean_conf {
    struct repair_conf repair;
    int form;              /* enum clean_form; CLEAN_ANY: leave it as it is */
    bool controls;         /* remove C0, DEL, C1 but \t and \n; non-characters; U+FFF9..FFFB */
    bool zero_width;       /* remove what has no width, but where it means something */
    bool soft_hyphens;     /* remove U+00AD */
    bool bidi;             /* remove U+200E, 200F, 061C, 202A..202E, 2066..2069 */
    bool spaces;           /* spaces to U+0020, one at a time, none at line ends */
    bool newlines;         /* every kind to \n; no blank lines at either end */
    int64_t blank_lines;   /* at most so many in a row (with newlines) */
    struct pii_conf pii;   /* what the stage replaces in the clean text */
};
/* Mojibake, entities (auto) and terminal escapes repaired; all below but bidi, NFC, at most
 * 2 blank lines; no personal data replaced. */
void clean_conf_init(struct clean_conf *c);
#define CLEAN_OPTS(c)                                                                                  \
    OPT_FLAG(0, "repair", &(c).repair.mojibake, "undo mojibake, as ftfy does"),                        \
    OPT_ENUM(0, "unescape", &(c).repair.unescape, "auto|on|off", "decode HTML entities; auto: up to the first <"), \
    OPT_FLAG(0, "terminal-escapes", &(c).repair.terminal_escapes, "remove terminal escapes such as colours"), \
    OPT_ENUM(0, "quotes", &(c).repair.quotes, "keep|ascii", "curly quotes: keep, or make straight"),   \
    OPT_FLAG(0, "ligatures", &(c).repair.ligatures, "take Latin ligatures apart"),                     \
    OPT_FLAG(0, "width", &(c).repair.width, "give full- and half-width characters their usual width"), \
    OPT_ENUM(0, "form", &(c).form, "nfc|nfkc|any", "Unicode normalisation form"),                      \
    OPT_FLAG(0, "controls", &(c).controls, "remove control characters but tab and newline"),           \
    OPT_FLAG(0, "zero-width", &(c).zero_width, "remove zero-width characters where they mean nothing"), \
    OPT_FLAG(0, "soft-hyphens", &(c).soft_hyphens, "remove soft hyphens"),                             \
    OPT_FLAG(0, "bidi", &(c).bidi, "remove marks of writing direction"),                               \
    OPT_FLAG(0, "spaces", &(c).spaces, "fold spaces within lines, drop those at line ends"),           \
    OPT_FLAG(0, "newlines", &(c).newlines, "make every newline \\n, drop blank lines at both ends"),   \
    OPT_INT(0, "blank-lines", &(c).blank_lines, 0, 1000, "blank lines that may stand together"), \
    OPT_STR(0, "pii", &(c).pii.kinds, "KINDS",                                                         \
            "replace personal data: email,ip,ipv6,phone,card,iban or all"),                            \
    OPT_ENUM(0, "pii-preset", &(c).pii.preset, "none|datatrove",                                       \
             "replace e-mail and IP addresses as datatrove does"),                                     \
    OPT_STR(0, "pii-tag", &(c).pii.tag, "TEXT", "tag for personal data; KIND in it becomes the kind")

/* Scratch memory for one thread; start with zeroes. */
struct clean {
    struct repair repair;
    struct buf a, b;
    uint16_t *u16, *norm;
    size_t cap_u16, cap_norm;
};
void clean_free(struct clean *c);

/* The clean text: text itself if there is nothing to do, else bytes in c that are valid
 * until the next call.  Ill-formed UTF-8 becomes U+FFFD.  ERR_NOMEM; ERR_LIMIT beyond
 * 2^30 bytes. */
int clean_text(struct clean *c, const struct clean_conf *conf, struct span text, struct span *out,
               struct err *e);

/* Opens the stage "clean". */
int clean_stage_open(struct stage *s, const struct clean_conf *conf, struct err *e);
#endif
