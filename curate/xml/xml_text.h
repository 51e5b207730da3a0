/* curate/xml/xml_text.h -- XML in a format that a table describes, to text and what the document says of itself.
 *
 * A format is a table of elements and their roles: a paragraph, a heading, a cell, a field of metadata ...
 * The document is written as HTML, which curate/html/html.h makes text, so that headings, lists, tables
 * and formulas look the same wherever a document came from.  Elements that the table lacks are
 * transparent: what is in them is read as if they were not there.  Names are compared without prefixes.
 */
#ifndef CURATE_XML_TEXT_H
#define CURATE_XML_TEXT_H

#include "base/err.h"
#include "base/mem.h"
#include "curate/html/html.h"
#include "curate/xml/xml_reader.h"

enum {
    XML_DEPTH_MAX = 4096,   /* open elements; of deeper ones only the text is read */
    XML_RULES_MAX = 512,    /* in a table */
    XML_ANCESTORS_MAX = 64  /* how far up an end tag is looked for */
};

/* What a document says of itself. */
enum xml_field {
    XML_TITLE, XML_AUTHOR, XML_DATE, XML_LANG, XML_URL, XML_LICENSE, XML_ID, XML_DOI, XML_PMCID, XML_PMID, XML_ISBN,
    XML_PUBLISHER, XML_KEYWORDS,
    XML_FIELDS, /* those above become fields of documents */
    XML_GIVEN = XML_FIELDS, XML_FAMILY, XML_YEAR, XML_MONTH, XML_DAY,
    XML_ALL_FIELDS
};

enum xml_role {
    XML_TAG,     /* the HTML element `tag`, or transparent without one */
    XML_SECTION, /* a section: headings in it are one level deeper */
    XML_HEADING, /* of the section that it is in; arg: levels further down */
    XML_LIST,    /* <ul>, or <ol> if an attribute says so */
    XML_SKIP,    /* nothing of it */
    XML_HIDE,    /* nothing of it is text but for what is in XML_SHOW; fields are read */
    XML_SHOW,    /* text again, as `tag` */
    XML_META,    /* its text is field arg, and text only if there is a tag; more than one value: arg | XML_MORE */
    XML_META_ATTR, /* field arg is an attribute's value, named by unless; then as XML_TAG */
    XML_PERSON,  /* of XML_GIVEN and XML_FAMILY an author is made */
    XML_WHEN,    /* of XML_YEAR, XML_MONTH and XML_DAY a date, or of an attribute */
    XML_PART,    /* a document in the document: its fields are not this one's */
    XML_VOID,    /* the HTML element `tag`, without content */
    XML_SPACE,   /* a space at both ends */
    XML_NOTE,    /* in brackets */
    XML_MATH,    /* MathML */
    XML_TEX,     /* TeX */
    XML_HTML,    /* its text is HTML */
    XML_XHTML,   /* its elements are HTML */
    XML_HOOK     /* the format's function, with arg */
};
enum { XML_MORE = 256 };

struct xml_rule {
    const char *name, *in; /* the element's name; in: only as a child of this one (of several rules the first that fits) */
    enum xml_role role;
    const char *tag;
    int arg;
    const char *unless;    /* it is skipped if its parent has a child of this name too */
};

struct xml_frame;
struct xml_text;
struct word_styles;

struct xml_format {
    const char *name;
    const struct xml_rule *rules; /* the last has no name */
    bool soup;                    /* elements may be left open: what HTML's authors do */
    /* For XML_HOOK: what the element is to be treated as, in *rule (a copy, to be changed).  ERR_NOMEM. */
    int (*hook)(struct xml_text *x, struct xml_rule *rule);
};

/* A document: the bytes belong to the worker and last until its next. */
struct xml_doc {
    struct span text;
    struct span field[XML_FIELDS]; /* one line each; p NULL: not said */
    uint64_t faults;               /* places that were not well-formed and were read all the same */
    bool truncated;
};

/* A worker belongs to one thread; it keeps its memory.  Of c (copied) format and bounds are used.  ERR_NOMEM. */
int xml_text_new(struct xml_text **x, const struct html_conf *c, struct err *e);
void xml_text_free(struct xml_text *x);
/* One document of UTF-8.  ERR_FORMAT: it ends before its root does, or holds no element; ERR_LIMIT: its entities grow
 * beyond XML_EXPANSION_MAX, or the bounds of HTML; ERR_NOMEM. */
int xml_text_extract(struct xml_text *x, const struct xml_format *f, struct span utf8, struct xml_doc *out, struct err *e);

/* The same in steps, for documents of several files: begin, then any number of runs and of HTML, then end. */
void xml_text_begin(struct xml_text *x);
int xml_text_run(struct xml_text *x, const struct xml_format *f, struct span utf8, struct err *e);
/* Text of HTML that is read by itself: what it leaves open ends with it. */
int xml_text_html(struct xml_text *x, struct span html, struct err *e);
int xml_text_end(struct xml_text *x, struct xml_doc *out, struct err *e);

/* ---- for formats' own code ---- */

/* The reader, at the element's start. */
struct xml_reader *xml_text_reader(struct xml_text *x);
/* The document's HTML so far, to be appended to; where hidden, it is not shown. */
struct buf *xml_text_out(struct xml_text *x);
bool xml_text_hidden(const struct xml_text *x);
/* Whether the next word goes with the one before, without a space; and to say so. */
bool xml_text_joined(const struct xml_text *x);
void xml_text_join(struct xml_text *x, bool joined);
/* The next text loses the white space that it begins with. */
void xml_text_trim(struct xml_text *x);
/* Text that comes first in the element that begins.  ERR_NOMEM. */
int xml_text_label(struct xml_text *x, struct span text);
/* Styles and lists of the document that is read next (curate/xml/word_styles.h), borrowed; NULL, as at first: not known. */
void xml_text_set_styles(struct xml_text *x, struct word_styles *styles);
struct word_styles *xml_text_styles(const struct xml_text *x);
/* The next number, from 1, of two counts that go through a document. */
int xml_text_count(struct xml_text *x, bool second);
/* Sets a field unless it is there; appends to it if more.  ERR_NOMEM. */
int xml_text_field(struct xml_text *x, int field, struct span value, bool more);
/* The local name of the element around, up levels further out (0: the parent). */
struct span xml_text_around(const struct xml_text *x, int up);
/* The local name of the root of a document, of which the start is enough, and its raw attributes; empty: it has none. */
struct span xml_root(struct span utf8, struct span *attrs);

/* MathML from a <math> whose start was just read, through its end, as TeX.  ERR_NOMEM. */
int xml_math(struct xml_reader *r, struct buf *tex);

extern const struct xml_format xml_jats, xml_tei, xml_docbook, xml_feed, xml_patent, xml_law, xml_xhtml, xml_word,
    xml_odt, xml_core;
#endif
