/* tokenize/line_text.h -- the texts of lines (base/lines.h): of JSON those under given keys, or the string that a line is.
 */
#ifndef TOKENIZE_LINE_TEXT_H
#define TOKENIZE_LINE_TEXT_H

#include "base/err.h"
#include "base/json.h"
#include "base/lines.h"
#include "base/mem.h"
#include "tokenize/chat.h"

enum { LINE_KEYS_MAX = 16, LINE_BYTES_MAX = 1 << 30, LINE_BLOCK_BYTES = 128 << 10 };

/* Files as tokens are made of them: small blocks, lines of up to LINE_BYTES_MAX; no path: standard input. */
#define LINES_OF_TEXTS(form_, paths_, n_) \
    (struct lines_in){.paths = (paths_), .n_paths = (n_), .form = (form_), .block_bytes = LINE_BLOCK_BYTES, \
                      .max_line = LINE_BYTES_MAX}

/* Cuts "a,b" at its commas, in place, into keys; 0 when one is empty, given twice, or there are too many. */
int line_cut_keys(char *list, const char *keys[LINE_KEYS_MAX]);

/* What a thread needs to make texts of lines. */
struct line_reader {
    struct json_reader *json;
    struct buf object, text;
    struct chat_text chat; /* of a conversation, */
    struct arena chat_room;
    struct buf id, url, source; /* of a document that a ledger is to know (tokenize/origin.h) */
};
int line_reader_init(struct line_reader *r, struct err *e);
void line_reader_free(struct line_reader *r);
/* A line's text, which lies in the block or in r until the next call.  ERR_FORMAT: it has none, with the reason
 * (without the file's name). */
int line_text(const struct line *x, const char *key, struct line_reader *r, struct span *text, struct err *e);
/* The texts under several keys of a document, all different, at most LINE_KEYS_MAX; a line lacks one: it has none. */
int line_texts(const struct line *x, const char *const *keys, int n, struct line_reader *r, struct span *texts, struct err *e);
/* The line itself, which is JSON.  ERR_FORMAT: it is none. */
int line_json(const struct line *x, struct span *json, struct err *e);

#endif
