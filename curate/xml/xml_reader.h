/* curate/xml/xml_reader.h -- the tags and texts of an XML document, one after another, whatever its bytes are.
 *
 * Reads elements, attributes, character data, CDATA, comments, processing instructions and the entities
 * that the document itself declares.  Damage is passed over and counted: nothing in the bytes is fatal.
 * Whether elements nest is for the caller, who sees each tag.  Nothing is fetched: external entities and
 * DTDs are empty.  Time is linear in the document and XML_EXPANSION_MAX.
 *
 * Why no libxml2: 2.9 takes 9 s for one element of 50,000 attributes, its xmlTextReader stops for good at a
 * stray "<", and what it does with entities can only be bounded by replacing that part.
 *
 * Source: Extensible Markup Language (XML) 1.0, fifth edition.
 */
#ifndef CURATE_XML_READER_H
#define CURATE_XML_READER_H

#include "base/err.h"
#include "base/mem.h"

enum {
    XML_ENTITIES_MAX = 512,      /* declared; what is declared behind them is unknown */
    XML_ENTITY_DEPTH = 8,        /* entities in entities */
    XML_EXPANSION_MAX = 1 << 20  /* bytes that entities may add to a document, in all */
};

enum xml_event { XML_EV_END, XML_EV_START, XML_EV_CLOSE, XML_EV_TEXT };

struct xml_reader {
    const char *start, *p, *end;
    /* of a tag */
    struct span prefix, name; /* "mml" and "math" of <mml:math>; prefix is empty without a colon */
    struct span attrs;        /* raw */
    bool empty;               /* <br/>: a start without a close */
    /* of a text */
    struct span text;
    bool literal; /* CDATA */
    /* where reading is, beside p: entities being read */
    struct {
        const char *p, *end, *text_end;
    } outer[XML_ENTITY_DEPTH];
    const char *text_end; /* where markup ends the text that an entity has interrupted; of no meaning before p */
    int depth;
    size_t expanded;
    bool too_much; /* XML_EXPANSION_MAX was reached: no entity is read any longer */
    struct {
        struct span name, value;
    } *entity; /* in order of length and name */
    size_t n_entities, cap_entities;
    uint64_t faults;   /* places that are not well-formed */
    bool nomem;        /* an entity was not kept for want of memory */
};

/* Begins at the start of xml (UTF-8), which is borrowed; keeps memory from a document before.  Zero for a new one. */
void xml_reader_begin(struct xml_reader *r, struct span xml);
void xml_reader_free(struct xml_reader *r);
/* The next tag or text; comments, instructions and the DTD are passed over. */
enum xml_event xml_next(struct xml_reader *r);
/* Where the last event ended, in bytes of the document. */
size_t xml_offset(const struct xml_reader *r);

/* The raw value of the tag's attribute of this local name, whatever its prefix; p NULL: there is none. */
struct span xml_attr(const struct xml_reader *r, const char *name);
/* The same, decoded, appended to out; 1, or 0 without one.  ERR_NOMEM. */
int xml_attr_text(const struct xml_reader *r, const char *name, struct buf *out);
bool xml_attr_is(const struct xml_reader *r, const char *name, const char *value);

/* Appends raw, decoded: as text, or as HTML (with < and & written as references).  Characters that XML forbids go, as do
 * entities that neither XML nor HTML know; a bare & stays.  The number of such places, or ERR_NOMEM, ERR_LIMIT. */
int xml_put_text(struct span raw, bool literal, struct buf *out);
int xml_put_html(struct span raw, bool literal, struct buf *out);
#endif
