/* curate/dedup/minhash_units.h -- the units of a text in any script, of which some in a row are a shingle.
 *
 * The text is looked at in Unicode's NFKC_Casefold: composed, without case, without what is not seen (joiners,
 * variation selectors), compatible forms as what they stand for.  A unit is a word: letters, marks and numbers in a row.
 * In scripts that are written without spaces (CLDR's "breaks between letters": Han, Kana, Bopomofo, Yi, Thai, Lao, Khmer,
 * Burmese, the Tai scripts and some more) each letter with its marks is a unit.  A mark goes with what it stands
 * behind.  Everything else separates.  (Of more than 32 characters that could combine with one another the first 33 are
 * normalised together, and so on.)
 */
#ifndef CURATE_MINHASH_UNITS_H
#define CURATE_MINHASH_UNITS_H

#include "curate/dedup/minhash_row.h"

struct unit_glyph;
/* Zero-initialise to start. */
struct minhash_units {
    struct unit_glyph *page[0x1100]; /* of 256 code points, made when first met */
    const void *fold;                /* ICU's NFKC_Casefold */
    struct minhash_row *row;
    bool alone; /* the unit that has not ended is a letter by itself */
    int failed;
};

/* The units of text (valid UTF-8 below 2^28 bytes), into *row.  Linear.  ERR_NOMEM. */
int minhash_units(struct minhash_units *u, struct span text, struct minhash_row *row);
void minhash_units_free(struct minhash_units *u);
#endif
