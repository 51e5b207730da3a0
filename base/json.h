/* base/json.h -- JSON lines at speed (simdjson), and writing JSON.
 *
 * Reading gives the top-level fields of one object with each value's own bytes, so
 * that fields nobody touched pass through as they came.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Readable bytes that must follow the text of a line (their values do not matter). */
enum { JSON_PADDING = 64 };

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_field {
    struct span key; /* unescaped; in the reader's memory or in the line */
    struct span raw; /* the value's bytes in the line, quotes and all */
    enum json_type type;
};

/* Items of one form, as they are in the text, which has been scanned: "key": NUMBER of an object; or "string",
 * ["string", NUMBER], ["string", "string"] or {"key": NUMBER, "key": "string", "key": "string" or a word} of a list.  What stands
 * within the strings, the numbers and the words nobody has looked at, and a key may occur twice. */
struct json_rows {
    const char *text;
    const uint32_t *at; /* where each token begins: `width` of them an item, a comma or the last bracket at the end */
    size_t n, width;    /* items */
    const char *plain, *plain_end; /* the text between has no backslash, as far as it was looked at */
};
/* A token without the blanks behind it. */
static inline struct span json_rows_token(const struct json_rows *r, size_t token)
{
    const char *p = r->text + r->at[token], *end = r->text + r->at[token + 1];

    while (end > p + 1 && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\r' || end[-1] == '\t'))
        end--;
    return (struct span){p, (size_t)(end - p)};
}
/* A token that is a number, as written; ERR_FORMAT. */
int json_rows_number(const struct json_rows *r, size_t token, struct span *s, struct err *e);
/* What a token that is a string stands for: bytes of the text, or of room if it has escapes.  ERR_FORMAT, ERR_NOMEM. */
int json_rows_string_slowly(struct json_rows *r, size_t token, struct buf *room, struct span *s, struct err *e);
static inline int json_rows_string(struct json_rows *r, size_t token, struct buf *room, struct span *s, struct err *e)
{
    struct span raw = json_rows_token(r, token);

    *s = (struct span){raw.p + 1, raw.n - 2};
    if (raw.n > 1 && raw.p[raw.n - 1] == '"' && raw.p >= r->plain && raw.p + raw.n <= r->plain_end)
        return 0;
    return json_rows_string_slowly(r, token, room, s, e);
}

/* One a thread.  NULL when memory is out. */
struct json_reader;
struct json_reader *json_reader_new(void);
void json_reader_free(struct json_reader *r);

/* The fields of the object that line holds; the array and the keys stay valid until
 * the next call.  The whole line is validated (syntax, numbers, UTF-8, nothing after
 * the object); a key that occurs twice is an error.  Returns their number, or
 * ERR_FORMAT with the reason and the byte where known, or ERR_NOMEM. */
int json_read_object(struct json_reader *r, struct span line,
                     const struct json_field **fields, struct err *e);
/* Appends the text that the string value raw (quotes included, validated before)
 * stands for, as UTF-8.  A lone surrogate is ERR_FORMAT. */
int json_unescape(struct span raw, struct buf *out, struct err *e);
/* The strings under n different keys of the object that line holds, unescaped into dst, which has room for line.n bytes:
 * json_read_object and json_unescape in one pass over the bytes.  false: the line is no such object, or has more keys, odder
 * ones or deeper levels than most; then those functions say what it is. */
bool json_read_texts(struct span line, const char *const *keys, int n, char *dst, struct span *texts);

/* ERR_FORMAT of an object of n fields that has nothing under key: says so, names the strings that it has, and ends with hint
 * ("; --json-key names another").  A chat ("messages") is called one. */
int json_lacks_text(const struct json_field *f, int n, const char *key, const char *hint, struct err *e);

/* ---- writing: append to b; errors of buf_put ---- */

/* "..." with the least escaping: quote, backslash, controls below 0x20 (\n \t \r \b
 * \f, else \u00XX).  s must be valid UTF-8. */
int json_put_string(struct buf *b, struct span s);
/* The same of text that may be any bytes, such as the name of a file or a message: what is no UTF-8 becomes U+FFFD. */
int json_put_name(struct buf *b, const char *name);
int json_put_int(struct buf *b, int64_t v);
/* The shortest text that reads back as the same double; inf and nan become null. */
int json_put_num(struct buf *b, double v);
/* "key": (with a comma before it unless the last byte is '{') */
int json_put_key(struct buf *b, const char *key);
/* A key, as above, and a number. */
int json_put_count(struct buf *b, const char *key, uint64_t n);
int json_put_real(struct buf *b, const char *key, double v);

#ifdef __cplusplus
}
#endif
#endif
