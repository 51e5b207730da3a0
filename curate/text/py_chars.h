/* curate/text/py_chars.h -- classes of code points as Python's str and re have them. */
#ifndef CURATE_PY_CHARS_H
#define CURATE_PY_CHARS_H

#include <stdint.h>

enum {
    PY_WORD = 1,    /* \w in re: isalnum() or the underscore */
    PY_SPACE = 2,   /* isspace() */
    PY_UPPER = 4,   /* isupper() of the character alone */
    PY_LOWER = 8,   /* islower() or title case: no word with it is in capitals */
    PY_NUMERIC = 16,
    PY_END = 32,    /* . ! ? */
    PY_ALPHA = 64,  /* [a-zA-Z] */
    PY_PUNCT = 128  /* string.punctuation, ASCII */
};

/* The classes of every code point; NULL when memory is out.  Made once, kept to the
 * end of the process; thread-safe. */
const uint8_t *py_chars(void);
#endif
