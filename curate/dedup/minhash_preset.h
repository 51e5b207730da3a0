/* curate/dedup/minhash_preset.h -- what a document's signature is made of, by name.
 *
 * A preset fixes how text becomes shingles and shingles become a signature, and how
 * the signature is cut into bands; docs/dedup.md has the table with sources.
 */
#ifndef CURATE_MINHASH_PRESET_H
#define CURATE_MINHASH_PRESET_H

#include <stdbool.h>

#include "base/err.h"
#include "kernels/minhash.h"

enum shingle_kind {
    SHINGLE_PLAIN_WORDS, /* runs of letters and digits, lower case */
    SHINGLE_TROVE_WORDS, /* datatrove: simplified text, words of spaCy's English tokenizer */
    SHINGLE_CHARS,       /* code points of the text as it is */
    SHINGLE_UNITS,       /* words; of scripts without spaces characters (curate/dedup/minhash_units.h) */
    SHINGLE_SPLIT_WORDS, /* text-dedup: between characters that are not \w */
    SHINGLE_RPV2_WORDS   /* RedPajama-Data v2: of its normalised text */
};

struct minhash_preset {
    const char *name;
    enum shingle_kind kind;
    int width;        /* words or characters in a shingle */
    bool short_whole; /* a text shorter than that is one shingle; else it has none */
    enum minhash_family family;
    uint32_t seed;
    int bands, rows;  /* 0: chosen by the threshold */
    int hashes;       /* so many are drawn, and minhash_optimal chooses; 0: as many as needed,
                         and minhash_choose does, of MINHASH_OWN_HASHES */
    bool verify;      /* candidate pairs must have the Jaccard similarity */
};

/* Bytes of a shingle's hash. */
static inline size_t minhash_hash_bytes(const struct minhash_preset *p)
{
    return p->family == MINHASH_M61 ? sizeof(uint64_t) : sizeof(uint32_t);
}

/* Upper bounds of what the functions below give or take. */
enum { MINHASH_MAX_BANDS = 256, MINHASH_OWN_HASHES = 128 };

/* The preset of that name; NULL if there is none. */
const struct minhash_preset *minhash_preset_find(const char *name);
/* The names as "a|b|c" and the number i of them, 0 the default; NULL beyond the last. */
#define MINHASH_PRESETS "quern2|quern|datatrove|nemo|text-dedup|rpv2"
const struct minhash_preset *minhash_preset_at(int i);

/* Two documents of similarity s meet in a band with probability 1 - (1 - s^rows)^bands. */
double minhash_meet(double s, int bands, int rows);
/* Bands and rows for a threshold in (0, 1]: the most rows, thus the fewest chance
 * candidates, with which bands * rows <= hashes and pairs just at the threshold meet
 * with probability 0.995 or more; one row if none do. */
void minhash_choose(double threshold, int hashes, int *bands, int *rows);
/* datasketch's choice, as text-dedup and RedPajama-Data v2 have it: the least sum of the areas of false
 * positives below the threshold and false negatives above it. */
void minhash_optimal(double threshold, int hashes, int *bands, int *rows);
#endif
