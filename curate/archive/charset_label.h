/* curate/archive/charset_label.h -- the encodings and their labels.  For charset*.c and their test. */
#ifndef CURATE_CHARSET_LABEL_H
#define CURATE_CHARSET_LABEL_H

#include "base/mem.h"

enum charset_class {
    CHARSET_UTF8,
    CHARSET_UTF16,
    CHARSET_BYTE, /* a byte a character */
    CHARSET_MULTI /* two bytes or more a character, or with escapes */
};

struct charset_entry {
    const char *name;      /* as WHATWG has it */
    const char *converter; /* as ICU has it: the table that decodes as browsers do */
    enum charset_class kind;
    const char *labels;    /* lower case, a space on either side of each */
};

/* The table; entries are never freed.  NULL for an unknown label. */
const struct charset_entry *charset_entry_of(struct span label);
#endif
