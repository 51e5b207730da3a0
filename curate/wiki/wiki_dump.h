/* curate/wiki/wiki_dump.h -- the pages of a MediaWiki XML export, one after another.
 *
 * Reading only cuts the stream at <page> and </page>, in bounded memory; what stands between is
 * parsed by wiki_page_parse, in any thread.  Nothing in the bytes is fatal: damage is
 * reported with file, offset and reason, and reading goes on with the next <page>.  xml_cut does not serve: of a
 * dump whatever belongs to no page is reported too.
 *
 * Why no libxml2: its SAX interface reads 440 MB/s, which would be the speed of the one
 * thread that reads (this finds pages at over 5 GB/s), and it stops for good at the first
 * fault.
 *
 * Source: mediawiki.org, Help:Export and export-0.11.xsd; older versions differ in what a
 * page lacks.
 */
#ifndef CURATE_WIKI_DUMP_H
#define CURATE_WIKI_DUMP_H

#include "base/err.h"
#include "base/mem.h"
#include "curate/xml/xml_stream.h"

struct wiki_dump;

/* Bytes of the header at most; a longer one is reported and not used. */
enum { WIKI_HEAD_MAX = 64 << 10 };

/* Spans live until the next call. */
struct wiki_piece {
    uint64_t offset;  /* of the page, in the decompressed stream */
    struct span head; /* the <mediawiki> tag and <siteinfo>, for wiki_site_parse; maybe empty */
    struct span page; /* from <page> to </page> */
};

/* Whether a file that starts like this is an export, or the inner part of one. */
bool wiki_dump_is(struct span start);

/* A reader over in, which is copied; pages longer than max_page bytes of XML are faults.  ERR_NOMEM. */
int wiki_dump_open(struct wiki_dump **d, const struct xml_input *in, size_t max_page, struct err *e);
void wiki_dump_close(struct wiki_dump *d);
/* The next page: 1, or 0 at the end.  ERR_FORMAT: file, offset and reason; the next call goes
 * on behind it.  Others end it. */
int wiki_dump_next(struct wiki_dump *d, struct wiki_piece *p, struct err *e);

/* A page, decoded; what it does not say is empty. */
struct wiki_page {
    struct span id, title, timestamp, model, redirect, text;
    int64_t ns;
    bool has_ns; /* exports before 0.5 do not say */
};

/* Of several revisions the last counts.  The spans lie in bytes, whose own are lost.  ERR_FORMAT: the reason, with the offset in
 * the page; ERR_NOMEM. */
int wiki_page_parse(struct wiki_page *p, struct span xml, struct buf *bytes, struct err *e);
#endif
