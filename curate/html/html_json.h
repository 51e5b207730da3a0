/* curate/html/html_json.h -- pieces of JSON as pages have it, for readers that go forward and believe little. */
#ifndef CURATE_HTML_JSON_H
#define CURATE_HTML_JSON_H

#include "base/mem.h"

/* The string that begins at p ('"'), unescaped, into out; line ends become blanks unless lines.  *rc: ERR_NOMEM.  Returns
 * where its closing quote stands, or end. */
const char *html_json_string(const char *p, const char *end, bool lines, struct buf *out, int *rc);
/* What lies behind blanks and colons. */
const char *html_json_behind_blanks(const char *p, const char *end);
/* What lies behind the string at p. */
const char *html_json_behind_string(const char *p, const char *end);
#endif
