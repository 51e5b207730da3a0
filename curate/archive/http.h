/* curate/archive/http.h -- an HTTP response as an archive keeps it: head, transfer and content
 * codings.
 *
 * Archives hold what servers sent and what crawlers made of it, so headers lie: a body
 * that is not what its head says is taken as it is, one that is cut short gives what
 * came before the cut.  Sources: RFC 9110, RFC 9112, RFC 7932 (br), RFC 8878 (zstd).
 */
#ifndef CURATE_HTTP_H
#define CURATE_HTTP_H

#include "base/err.h"
#include "base/mem.h"

enum { HTTP_CODINGS = 8 };

/* Spans point into the block. */
struct http_head {
    size_t start;                      /* of its lines, behind interim responses */
    size_t length;                     /* of the head: the body begins there */
    int status;                        /* 0: the block has no head, all of it is body */
    struct span mime;                  /* Content-Type as written; p NULL: none */
    struct span coding[HTTP_CODINGS];  /* in the order they were applied, chunked aside */
    int n_codings;
    bool chunked;
};

/* Takes the head off a block; an interim one (1xx) before it is passed over. */
void http_parse_head(struct span block, struct http_head *h);
/* The same head for a copy of its block: its spans point into the bytes at to. */
void http_move_head(struct http_head *h, struct span block, const char *to);

/* The next field of this name in the head of a block: true, and its value as written, without blanks around it (a folded
 * one with its line ends).  *at is 0 at first.  Fields that are sent several times come one by one. */
bool http_field(struct span block, const struct http_head *h, const char *name, size_t *at, struct span *value);

/* The target of a field Link's first link that has this relation ("canonical"; RFC 8288); p NULL: there is none. */
struct span http_link(struct span value, const char *rel);

/* "text/html" of "Text/HTML; charset=x", lower case, into out; "" when there is none
 * that makes sense. */
void http_media_type(struct span mime, char *out, size_t size);
/* The value of a parameter ("charset") without quotes; p NULL: there is none. */
struct span http_parameter(struct span mime, const char *name);

/* Undoes codings; keeps its memory from body to body.  One a thread. */
struct http_decoder;
int http_decoder_new(struct http_decoder **d, struct err *e);
void http_decoder_free(struct http_decoder *d);

/* The entity that body stands for.  It points into body or into the decoder, until the
 * next call.  *fault, if not NULL, is set to what was wrong with the body and did not
 * prevent reading it, or to NULL.  ERR_LIMIT: it is longer than max bytes. */
int http_decode(struct http_decoder *d, const struct http_head *h, struct span body, size_t max,
                struct span *entity, const char **fault, struct err *e);
#endif
