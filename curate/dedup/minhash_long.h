/* curate/dedup/minhash_long.h -- the set of shingle hashes of a long text, through disk.
 *
 * The text is cut into pieces of some MiB between words, and its hashes are put aside as they come; those that came before are
 * left out then.  So it takes some 20 MiB whatever the text's length, while shingler_run takes up to eleven times that.
 * A text without a space behind which an ASCII letter stands is one piece.
 */
#ifndef CURATE_MINHASH_LONG_H
#define CURATE_MINHASH_LONG_H

#include "base/spill.h"
#include "curate/dedup/minhash_text.h"

enum { SHINGLER_LONG = 4 << 20 }; /* bytes of a text for which that is worth it */

/* The set of a text: in memory, valid until the shingler's next call, or packed (curate/dedup/dedup_sets.h). */
struct shingle_set {
    const uint64_t *hash; /* NULL: */
    size_t count;
    struct spill_part file; /*   in the file, */
    const void *packed;     /*   or here if there is none */
    size_t bytes;           /* of a packed hash */
};

/* What shingler_run gives, of a long text behind what is in file, which is opened if it is not yet ({.fd = -1}).  dir: as for
 * spill_open.  ERR_LIMIT, ERR_NOMEM, ERR_IO. */
int shingle_set_of(struct shingle_set *set, struct shingler *s, struct span text, struct spill *file, const char *dir,
                   struct err *e);
/* Copies n of its hashes from number `at` on. */
int shingle_set_copy(const struct shingle_set *set, size_t at, uint64_t *to, size_t n, struct err *e);
/* Copies all of one that shingle_set_of gave, packed. */
int shingle_set_pack(const struct shingle_set *set, void *to, struct err *e);
#endif
