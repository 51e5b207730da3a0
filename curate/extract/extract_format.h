/* curate/extract/extract_format.h -- a format that `extract` reads: how its files are told, taken
 * apart and made into documents.  For extract.c and the formats only; the table of all
 * formats is in extract.c.
 *
 * Reading goes in order, one thread at a time, and should do little; making goes on in
 * any thread.
 */
#ifndef CURATE_EXTRACT_FORMAT_H
#define CURATE_EXTRACT_FORMAT_H

#include "curate/extract/extract.h"
#include "curate/archive/page.h"

enum { EXTRACT_FORMATS = 9 };
enum { EXTRACT_HEAD_ROOM = 64 << 10 }; /* of a block beyond the page itself: the HTTP head */

/* What is counted for --stats.  The first two are the readers'; the others are counted by
 * all threads, with extract_count. */
struct extract_counts {
    uint64_t records; /* of archives */
    uint64_t kind[PAGE_KINDS];
    uint64_t of_format[EXTRACT_FORMATS], unread; /* files and members of archives; those of no format */
    struct record_fetch_counts fetched; /* of lists of records */
    uint64_t entity_bytes, html_bytes, faults, data_faults, from_data, truncated, latex_bytes, wiki_bytes, xml_bytes,
             xml_faults;
};
/* Adds n to a count, from any thread. */
void extract_count(uint64_t *to, uint64_t n);

/* A file that is being read. */
struct extract_input {
    const struct extract_conf *conf;
    struct extract_counts *counts;
    const char *path;
    bool named;        /* on the command line, not found in a folder */
    struct span start; /* the first 64 KiB, decompressed, unless there is less */
    struct warc *stream; /* of all its bytes: warc_read, warc_read_whole, or records */
    int depth;         /* archives that it lies in: path is ARCHIVE/MEMBER then */
    size_t outer;      /* bytes of path that name the archive, with the slash */
};

/* What a reader gives: one block of malloc, freed by free, and maybe one more.  A format puts what else
 * it needs behind this, in a struct that begins with it. */
struct extract_item {
    void *also; /* the other block, or NULL */
    char *within; /* of a file in an archive its path, owned; set by extract_item_within */
    const struct extract_format *format; /* set by extract.c, as is file */
    const char *file;
    uint64_t offset; /* in the decompressed file, for messages and for an id */
    size_t size;     /* its weight in bytes */
    struct span id;  /* empty: FILE:OFFSET, of a record of an archive by its place as stored */
    bool record;     /* it is one: */
    uint64_t member, behind; /* its member's offset in the file, and how far behind the member's beginning it begins */
};

/* Why pages are dropped: rows of extract_rules (extract.h). */
enum extract_rule {
    EXTRACT_EMPTY, EXTRACT_NOT_HTML, EXTRACT_BINARY, EXTRACT_WITHDRAWN, EXTRACT_NAMESPACE, EXTRACT_REDIRECT,
    EXTRACT_MODEL
};

enum extract_match { EXTRACT_NO, EXTRACT_LOOKS, EXTRACT_SURE };

struct extract_format {
    const char *stat; /* the count of its files in --stats: "html_files" */
    /* Whether a file is of this format, by its name and first bytes.  The surest is taken;
     * of several the first in the table. */
    enum extract_match (*probe)(const struct extract_input *in);

    /* The open file.  Only one is open at a time, so a format may do without state. */
    int (*open)(struct extract_input *in, void **reader, struct err *e);
    /* The next item: 1, or 0 at the end.  ERR_FORMAT: a bad record, the reason with file and
     * offset in e; reading goes on behind it.  Others end the run. */
    int (*next)(struct extract_input *in, void *reader, struct extract_item **item, struct err *e);
    void (*close)(struct extract_input *in, void *reader);

    /* What a thread needs to make documents; opened with the first item of the format. */
    int (*maker_open)(const struct extract_conf *c, struct extract_counts *n, void **maker, struct err *e);
    void (*maker_close)(void *maker);
    /* Makes the document of an item, with extract_set_fields or by doc_set_*; may drop it, or
     * call it bad (ERR_FORMAT, ERR_LIMIT).  d->file and d->offset are set. */
    int (*make)(void *maker, const struct extract_item *item, struct doc *d, struct verdict *v, struct err *e);
};

extern const struct extract_format extract_warc, extract_html, extract_latex, extract_wiki, extract_tar, extract_xml,
    extract_posts, extract_zip, extract_records;

/* The item of an archive's record that was judged, with its bytes, for extract_warc; head: what HTTP head its block begins
 * with. */
int extract_record_item(const struct warc_record *r, enum page_kind kind, const struct http_head *head, struct span dump,
                        struct extract_item **item, struct err *e);
/* The dump that the block of a warcinfo record says its archive is a part of, "isPartOf: CC-MAIN-2024-10"; empty: none. */
struct span extract_dump(struct span block);

/* For formats whose file is one document: a reader that gives all of it, once.  Next: 1, or 0 after the first call; ERR_FORMAT:
 * it is longer than max, or damaged. */
int extract_whole_open(struct extract_input *in, void **reader, struct err *e);
int extract_whole_next(struct extract_input *in, void *reader, size_t max, struct span *all, struct err *e);
void extract_whole_close(struct extract_input *in, void *reader);

/* Which format the input is of, by its name and first bytes; NULL: none.  Sets in->start. */
int extract_recognise(struct extract_input *in, const struct extract_format **format, struct err *e);
void extract_count_file(struct extract_counts *n, const struct extract_format *format);
/* Whether bytes that begin like this are something else than text of no known form: a format known, binary data, JSON. */
bool extract_is_other(struct span start);
/* ERR_FORMAT: says what an input of no format is. */
int extract_refuse(const struct extract_input *in, struct err *e);
/* Says of an item that it comes from the file at path in an archive, unless another archive within said so: 1. */
int extract_item_within(struct extract_item *it, const struct extract_format *format, const char *path, struct err *e);

/* Whether a list of numbers, "0,14", has this one. */
bool extract_has_namespace(const char *list, int64_t ns);

/* Where a document came from and what may be done with it: its field `source`.  What is empty is left out. */
struct extract_source {
    struct span file;        /* set by extract_set_fields */
    bool record;             /* of an archive: */
    uint64_t offset, length; /*   its place in the file as stored; length 0: not known */
    uint64_t within;         /* bytes that these decompress to before it */
    const char *charset;     /* by which it was read; NULL: none was looked for */
    struct span dump, digest, content_type, charset_declared, date, license, robots, tdm_reservation, tdm_policy;
};
/* Appends it as JSON.  ERR_NOMEM. */
int extract_put_source(struct buf *b, const struct extract_source *s);

/* A field that few formats have. */
struct extract_more {
    const char *key;
    struct span value;
};

/* A document's fields.  Bytes that are not UTF-8 are repaired.  id, url, title, date, lang and
 * text are always written, the others unless p is NULL or n is 0. */
struct extract_fields {
    struct span url, title, date, lang, author, canonical, text;
    struct extract_source source; /* without `record` its place is the item's */
    const struct extract_more *more; /* set where they are not empty */
    int n_more;
    const char *page_kind; /* NULL: not known */
    double page_kind_score;
    const char *extractor; /* NULL: not a page */
};
/* Sets id, the fields, source and, last, text.  ERR_NOMEM. */
int extract_set_fields(struct doc *d, const struct extract_item *it, const struct extract_fields *f, struct err *e);

/* Whether a file's name ends in one of these (NULL at the end), maybe with a compressor's
 * (.gz, .zst, .bz2, .xz, .lz4) behind it. */
bool extract_named(const char *path, const char *const *endings);

/* Copies s to *at, moves *at behind it: for items that own what they hold. */
struct span extract_pack(char **at, struct span s);
#endif
