/* curate/clean/mojibake.h -- text that was decoded with the wrong character set.
 *
 * UTF-8 that something read as windows-1252 or the like is mojibake; done twice, it is
 * mojibake of mojibake.  Which characters and neighbours give it away, and how to undo
 * it, is ftfy's knowledge (version 6.3.1, Robyn Speer); curate/clean/repair_data.inc has its
 * tables.  Text here is an array of code points, a line or so.
 */
#ifndef CURATE_MOJIBAKE_H
#define CURATE_MOJIBAKE_H

#include "base/err.h"
#include "base/mem.h"

/* What a character does in mojibake (curate/clean/repair_data.inc has the bits in this order). */
enum role {
    ROLE_C1 = 1 << 0,
    ROLE_BAD = 1 << 1, /* hardly ever meant */
    ROLE_UPPER_ACCENTED = 1 << 2,
    ROLE_LOWER_ACCENTED = 1 << 3,
    ROLE_BOX = 1 << 4,
    ROLE_START_PUNCT = 1 << 5,
    ROLE_END_PUNCT = 1 << 6,
    ROLE_CURRENCY = 1 << 7,
    ROLE_NUMERIC = 1 << 8,
    ROLE_LAW = 1 << 9,
    ROLE_UPPER_COMMON = 1 << 10, /* Greek and Cyrillic letters, thorn */
    ROLE_LOWER_COMMON = 1 << 11,
    ROLE_KAOMOJI = 1 << 12, /* letters that make faces */
    ROLE_COMMON = 1 << 13,  /* dashes and the like */
    ROLE_FIRST_OF_2 = 1 << 14, /* stands for a UTF-8 lead byte */
    ROLE_FIRST_OF_3 = 1 << 15,
    ROLE_FIRST_OF_4 = 1 << 16,
    ROLE_CONT = 1 << 17,       /* stands for a continuation byte */
    ROLE_CONT_STRICT = 1 << 18 /* the same, and hardly for itself */
};

/* The character sets that text is mistaken for, in the order in which they are tried. */
enum { MOJIBAKE_LATIN1, MOJIBAKE_WINDOWS_1252, MOJIBAKE_MACROMAN = 8, MOJIBAKE_CHARSETS = 10 };
struct mojibake_charset {
    const char *name;
    bool sloppy; /* unassigned bytes are themselves; 0x1A stands for U+FFFD */
    uint16_t high[128]; /* bytes 0x80..0xFF */
};
extern const struct mojibake_charset mojibake_charsets[MOJIBAKE_CHARSETS];

struct mojibake_char {
    uint32_t roles;    /* enum role; 0: none */
    uint16_t charsets; /* by bits: those that have it */
    uint8_t byte[MOJIBAKE_CHARSETS];
};
/* Makes the tables; before anything else here.  Thread-safe, cheap when done. */
void mojibake_init(void);
/* Pages of 256 code points; page 0 of the chars is empty. */
enum { MOJIBAKE_PAGES = 24 };
extern uint8_t mojibake_page[256];
extern struct mojibake_char mojibake_chars[MOJIBAKE_PAGES][256];
static inline const struct mojibake_char *mojibake_char(uint32_t cp)
{
    return &mojibake_chars[cp < 0x10000 ? mojibake_page[cp >> 8] : 0][cp & 0xFF];
}
static inline uint32_t mojibake_roles(uint32_t cp) { return mojibake_char(cp)->roles; }

/* True if some neighbours in t[0..n) are much more likely to be mojibake than meant. */
bool mojibake_is_bad(const uint32_t *t, size_t n);

/* Code points that grow.  Zero-initialise; free(p). */
struct cps {
    uint32_t *p;
    size_t n, cap;
};
int cps_reserve(struct cps *c, size_t n); /* room for n in all; ERR_NOMEM */
int cps_put(struct cps *c, const uint32_t *p, size_t n);

/* Scratch memory of mojibake_undo.  Start with zeroes. */
enum { MOJIBAKE_DEPTH = 24 };
struct mojibake {
    struct cps level[MOJIBAKE_DEPTH][3];
    unsigned char *bytes, *bytes2;
    size_t cap;
    int64_t budget; /* code points that may still be looked at; set before each text */
};
void mojibake_free(struct mojibake *m);

/* Undoes mojibake in t until nothing more is found.  A text that is not bad stays as it
 * is.  ERR_NOMEM; ERR_LIMIT when the budget is used up: t then has any state. */
int mojibake_undo(struct mojibake *m, struct cps *t);

/* U+0080..9F become what windows-1252 has there. */
void mojibake_fix_c1(struct cps *t);
#endif
