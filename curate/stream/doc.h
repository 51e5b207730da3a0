/* curate/stream/doc.h -- a document on its way through the stages.
 *
 * A document is a JSON object: id, url, text and whatever else came with it.  Fields
 * keep their order and, unless a stage sets them, their bytes.  Everything a document
 * holds lives in its arena (or in the block of input it was parsed from).
 */
#ifndef CURATE_DOC_H
#define CURATE_DOC_H

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/spill.h"

/* raw is the value's JSON; p NULL: a string that was set and is not yet escaped, as
 * most are set again before they are written. */
struct doc_field {
    struct span key, raw, value;
};

struct doc {
    struct arena *arena;
    const char *file;  /* where it came from: name and, for messages, */
    uint64_t offset;   /*   byte offset in the decompressed input */
    struct span id;    /* decoded "id"; FILE:OFFSET when there is none, or null */
    struct span text;  /* decoded "text"; empty when there is none */
    struct span compared; /* of it, what near-duplicates are looked for by; p NULL: all.  Not written; may lie where text did,
                             of which then only the length is left */
    struct spill_part *note_rest; /* where the stage that works on it may leave the rest of a long note (stage.h, commit_long);
                                     NULL: the note is to be whole */
    struct doc_field *field;
    int n_fields, cap_fields;
    struct span line; /* the input as read while nothing was set; else p == NULL */
};

/* Parses one line (JSON_PADDING readable bytes behind it, which must outlive d).
 * ERR_FORMAT: not an object, no text, text or id of another type.  d->arena must be
 * set; file and offset are the caller's. */
int doc_parse(struct doc *d, struct json_reader *r, struct span line, struct err *e);
/* The same of a line that has its text under another key (NULL: "text"), which becomes "text". */
int doc_parse_key(struct doc *d, struct json_reader *r, struct span line, const char *text_key, struct err *e);
/* An empty document in arena. */
void doc_init(struct doc *d, struct arena *arena);

/* The raw JSON of a field; p is NULL if there is none (or memory is out). */
struct span doc_raw(struct doc *d, const char *key);
/* The decoded text of a string field, in the arena; p is NULL if there is none or
 * it is no string. */
struct span doc_string(struct doc *d, const char *key);
/* The decoded text of a string, or a number as it stands, in the object `source`, which says where a document came from; of
 * a document without that object, or that has it not there, of the field itself, as quern wrote it before.  p NULL: none.
 * ERR_NOMEM. */
int doc_source(struct doc *d, const char *key, struct span *text);
/* Sets a field: in place if it is there, else behind the others.  The bytes are
 * copied.  Setting "text" or "id" also sets d->text or d->id.  ERR_NOMEM. */
int doc_set_string(struct doc *d, const char *key, struct span value);
int doc_set_raw(struct doc *d, const char *key, struct span json);
int doc_set_num(struct doc *d, const char *key, double value);
/* The bytes of the text, which the caller may write over: no copy is made but of those that are part of the input.  NULL:
 * ERR_NOMEM.  doc_shorten_text: the first n of them are the text now. */
char *doc_text_bytes(struct doc *d);
int doc_shorten_text(struct doc *d, size_t n);
/* Appends the document as one line with its newline. */
int doc_write(const struct doc *d, struct buf *out);
/* Appends what stands before the value of a field of a document that was changed. */
int doc_write_key(const struct doc *d, int field, struct buf *out);
#endif
