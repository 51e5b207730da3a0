/* curate/extract/extract_xml.h -- what the formats in XML share.  Inside of extract_xml.c, extract_posts.c,
 * extract_wiki.c and extract_zip.c only. */
#ifndef CURATE_EXTRACT_XML_H
#define CURATE_EXTRACT_XML_H

#include "curate/extract/extract_format.h"
#include "curate/xml/xml_cut.h"
#include "curate/xml/xml_text.h"

/* A thread's state. */
struct xml_maker {
    const struct extract_conf *conf;
    struct extract_counts *counts;
    struct xml_text *text;
    struct charset *charset;
};
/* Makes a state that begins with one, of so many bytes; where it fails, too, extract_xml_close frees what there is. */
int extract_xml_open(size_t bytes, const struct extract_conf *c, struct extract_counts *n, void **maker, struct err *e);
void extract_xml_close(void *maker);

/* The start of an open file; in *narrow, which is to be freed, where that is UTF-16 or UTF-32. */
struct span extract_xml_start(const struct extract_input *in, struct buf *narrow);
/* Whether bytes begin with a tag, but for a byte order mark and white space. */
bool extract_xml_begins(struct span start);
/* The bytes of an open file, and its records. */
struct xml_input extract_xml_input(struct extract_input *in);
int extract_xml_cut(struct extract_input *in, const char *const *records, struct xml_cut **cut, struct err *e);
/* The label of a record's encoding; empty: it says it itself. */
struct span extract_xml_label(const struct xml_piece *piece);
/* Makes bytes UTF-8, until the next call. */
int extract_xml_decode(struct xml_maker *m, struct span bytes, struct span label, bool markup, struct span *utf8, struct err *e);
/* Sets a document's fields and counts what was wrong with it. */
int extract_xml_fields(struct xml_maker *m, const struct extract_item *it, const struct xml_doc *x, struct doc *d, struct err *e);
#endif
