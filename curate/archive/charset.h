/* curate/archive/charset.h -- bytes of a page in, UTF-8 out.
 *
 * Which charset: a byte order mark; the HTTP header; the page's own <meta> or XML
 * declaration; UTF-8 if the bytes are that, but for few; else detection on a piece of
 * 16 KiB: letter frequencies (curate/archive/charset_guess.h), and ICU for what has more than a
 * byte a character.
 * Labels mean what browsers take them for ("latin1" is windows-1252).  Against a label
 * the bytes win in two cases: bytes that are UTF-8 beyond ASCII are not of a one-byte
 * charset, nor, if they are eight characters or more, of one of several bytes a character,
 * and bytes mostly ill-formed as UTF-8 are not UTF-8.  Sources: WHATWG Encoding and HTML
 * (prescan).
 */
#ifndef CURATE_CHARSET_H
#define CURATE_CHARSET_H

#include "base/err.h"
#include "base/mem.h"

/* One a thread: converters stay open, memory is kept. */
struct charset;
int charset_new(struct charset **c, struct err *e);
void charset_free(struct charset *c);

/* The label that a page gives itself near its start; p NULL: none. */
struct span charset_prescan(struct span page);

/* Decodes.  label: the HTTP header's, may be empty; markup: whether the page may have
 * a <meta>.  *utf8 is valid, has no NUL and no BOM; what could not be decoded is
 * U+FFFD.  It is in page or in c, until the next call.  *name is the encoding's.  Only
 * ERR_NOMEM. */
int charset_decode(struct charset *c, struct span page, struct span label, bool markup,
                   struct span *utf8, const char **name, struct err *e);
#endif
