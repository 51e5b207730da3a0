/* base/ascii.h -- characters of ASCII, whatever the locale.
 *
 * c is a code point or a byte as char has it: bytes from 0x80 on are in no class.  White space is what JSON, XML
 * and HTTP call so: space, tab, line feed, carriage return; HTML has the form feed too.  Formats with another set
 * keep their own function, named after them.
 */
#ifndef BASE_ASCII_H
#define BASE_ASCII_H

#include <strings.h>

#include "base/mem.h"

static inline bool ascii_is_digit(uint32_t c) { return c - '0' < 10; }
static inline bool ascii_is_lower(uint32_t c) { return c - 'a' < 26; }
static inline bool ascii_is_upper(uint32_t c) { return c - 'A' < 26; }
static inline bool ascii_is_letter(uint32_t c) { return ascii_is_lower(c | 0x20); }
static inline bool ascii_is_alnum(uint32_t c) { return ascii_is_letter(c) || ascii_is_digit(c); }
static inline bool ascii_is_hex(uint32_t c) { return ascii_is_digit(c) || (c | 0x20) - 'a' < 6; }
/* The value of a hexadecimal digit, or -1. */
static inline int ascii_hex(uint32_t c)
{
    return ascii_is_digit(c) ? (int)(c - '0') : ascii_is_hex(c) ? (int)((c | 0x20) - 'a' + 10) : -1;
}
static inline bool ascii_is_space(uint32_t c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
static inline bool ascii_is_html_space(uint32_t c) { return ascii_is_space(c) || c == '\f'; }

/* Whether s is the text, or begins with it, small and capital letters being the same. */
static inline bool span_is_nocase(struct span s, const char *text)
{
    return s.n == strlen(text) && strncasecmp(s.p, text, s.n) == 0;
}
static inline bool span_starts_nocase(struct span s, const char *text)
{
    size_t n = strlen(text);

    return s.n >= n && strncasecmp(s.p, text, n) == 0;
}
#endif
