/* curate/archive/page.h -- from an archive's record to the UTF-8 of a page. */
#ifndef CURATE_PAGE_H
#define CURATE_PAGE_H

#include "curate/archive/charset.h"
#include "curate/archive/http.h"
#include "curate/archive/warc.h"

/* What a record is to an extractor; all but the first three are passed over. */
enum page_kind {
    PAGE_HTML,
    PAGE_TEXT,
    PAGE_UNSURE, /* of no stated type: HTML if it looks like it */
    PAGE_INFO,   /* warcinfo, filedesc */
    PAGE_REQUEST,
    PAGE_METADATA, /* and resources that are a crawler's own log */
    PAGE_REVISIT,
    PAGE_OTHER_RECORD,
    PAGE_STATUS, /* not 2xx */
    PAGE_MEDIA,  /* neither HTML nor plain text */
    PAGE_KINDS
};
/* "request": for statistics. */
const char *page_kind_name(enum page_kind kind);

/* Judges by the headers of the record and of HTTP in its block, and takes the latter. */
enum page_kind page_judge(const struct warc_record *r, struct http_head *head);

/* Whether bytes near the start say HTML, as a browser tells when no type is given. */
bool page_is_html(struct span bytes);

/* One a thread. */
struct page_reader {
    struct http_decoder *http;
    struct charset *charset;
};
/* A thread's own.  ERR_NOMEM; p can be closed all the same. */
int page_reader_open(struct page_reader *p, struct err *e);
void page_reader_close(struct page_reader *p);

struct page {
    struct span entity; /* the bytes behind transfer and content codings */
    struct span utf8;
    const char *charset;
    struct span declared; /* the charset that the markup names, if HTTP's header names none; p NULL: none */
    const char *fault;  /* what was wrong with the codings; NULL: nothing */
};

/* Decodes a block (mime: the record's own type, used when there is no HTTP head).  The
 * page lives in block and in p, until the next call.  ERR_LIMIT: the entity is longer
 * than max bytes; ERR_NOMEM. */
int page_decode(struct page_reader *p, struct span block, const struct http_head *head, struct span mime,
                bool markup, size_t max, struct page *out, struct err *e);

/* Whether a page is no text, whatever type it was sent with: it begins like a format known (base/file_kind.h); or, unless
 * it begins like HTML, the crawler found it to be one (identified: WARC-Identified-Payload-Type, may be empty), or it has
 * binary data bytes where a browser looks for them (WHATWG, MIME sniffing: 1,445 bytes) and is not in UTF-16. */
bool page_is_binary(const struct page *page, struct span identified);
#endif
