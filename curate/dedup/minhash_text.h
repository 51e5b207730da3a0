/* curate/dedup/minhash_text.h -- from a text to its set of shingle hashes.
 *
 * A shingle is some consecutive words joined by one space, or some consecutive
 * characters.  Words are hashed with XXH64 (seed 0), text-dedup's with the low 32 bits of XXH3-64,
 * RedPajama-Data v2's with the first four bytes of SHA-1 (little-endian); characters with
 * MurmurHash3_x86_32 (seed: the preset's first coefficient a, and never 0, as cuDF does).
 */
#ifndef CURATE_MINHASH_TEXT_H
#define CURATE_MINHASH_TEXT_H

#include "base/mem.h"
#include "curate/dedup/minhash_preset.h"

/* One a thread: tables and buffers that grow to the longest text. */
struct shingler;
/* p must outlive it; seed is for SHINGLE_CHARS.  ERR_NOMEM. */
int shingler_new(struct shingler **s, const struct minhash_preset *p, uint32_t seed,
                 struct err *e);
void shingler_free(struct shingler *s);
/* Gives back what texts took so far; what runs returned is not valid any more. */
void shingler_give_back(struct shingler *s);

/* The hashes of text's shingles, each once, in the order of first occurrence; valid
 * until the next call.  text must be valid UTF-8 of less than 256 MiB (ERR_LIMIT).
 * *count may be 0.  ERR_NOMEM. */
int shingler_run(struct shingler *s, struct span text, const uint64_t **hash, size_t *count,
                 struct err *e);
/* A long text in pieces (minhash_long.h): the hashes of the next one's shingles, and of those that it shares with the one
 * before, each as often as it comes.  shingler_cut: where the next piece of what is left of it ends, behind `least` bytes (1 or
 * more), and the one after it begins; the end of the text is that of the last piece. */
int shingler_piece(struct shingler *s, struct span piece, bool first, bool last, const uint64_t **hash, size_t *count,
                   struct err *e);
size_t shingler_cut(const struct shingler *s, struct span text, size_t least, size_t *next);
/* Bytes that hold one of its hashes: 4 or 8. */
size_t shingler_hash_bytes(const struct shingler *s);
/* The simplified text itself, words between single spaces: datatrove's for a preset of
 * SHINGLE_TROVE_WORDS.  Valid until the next call. */
int shingler_simplify(struct shingler *s, struct span text, struct span *simple, struct err *e);
/* The words after shingler_run, joined by single spaces (kinds of words only). */
struct span shingler_words(const struct shingler *s);

/* Is it a mark beyond ASCII that cc_net, and datatrove after it, takes out of a text? */
bool minhash_is_ccnet_mark(uint32_t c);
#endif
