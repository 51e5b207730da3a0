/* tokenize/ucd.h -- the classes of characters that pre-tokenizer patterns ask for.
 *
 * One version of Unicode, pinned: ids must not change with the system's libraries.
 */
#ifndef TOKENIZE_UCD_H
#define TOKENIZE_UCD_H

#include <stdint.h>

enum ucd_class {
    UCD_UPPER = 1,   /* Lu, Lt */
    UCD_LOWER = 2,   /* Ll */
    UCD_CASELESS = 4, /* Lm, Lo */
    UCD_MARK = 8,    /* M */
    UCD_NUMBER = 16, /* N */
    UCD_SPACE = 32,  /* White_Space, whatever the category */
    UCD_PUNCT = 64,  /* P */
    UCD_SYMBOL = 128, /* S */
    UCD_LETTER = UCD_UPPER | UCD_LOWER | UCD_CASELESS
};

extern const char ucd_version[]; /* "16.0.0" */
extern const uint8_t ucd_index[0x110000 / 128];
extern const uint8_t ucd_blocks[][128];

/* Characters that Unicode 14.0 does not have (or has in another category), in order. */
struct ucd_late {
    uint32_t first, last;
    char category[3]; /* "Lu" */
};
extern const struct ucd_late ucd_late[];
extern const uint32_t ucd_n_late;

/* The bits of enum ucd_class of a code point below 0x110000. */
static inline unsigned ucd_class(uint32_t cp)
{
    return ucd_blocks[ucd_index[cp >> 7]][cp & 127];
}

#endif
