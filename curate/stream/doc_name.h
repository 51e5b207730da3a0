/* curate/stream/doc_name.h -- by what one document speaks of another: its id, and perhaps where it came from.
 *
 * A name is the id alone, or the id, the byte FF, which no id has, and FILE:OFFSET.  So documents of equal ids are told apart
 * without a second string in notes, answers and indexes.
 */
#ifndef CURATE_DOC_NAME_H
#define CURATE_DOC_NAME_H

#include "curate/stream/doc.h"

enum { DOC_NAME_PLACE = 0xFF };

/* The name of d, with its place or without; in its arena.  ERR_NOMEM. */
int doc_name(struct doc *d, bool place, struct span *name);
/* The id in a name. */
struct span doc_name_id(struct span name);
/* FILE:OFFSET in a name; p NULL: it has none. */
struct span doc_name_place(struct span name);
#endif
