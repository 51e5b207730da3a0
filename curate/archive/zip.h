/* curate/archive/zip.h -- members of a zip archive that lies in memory.
 *
 * The central directory says what is there; members are stored or deflated.  ZIP64 is read: more than 65,535 members, and
 * sizes and places in 64 bits.  No encryption, no volumes.
 *
 * Source: PKWARE, APPNOTE.TXT 6.3. */
#ifndef CURATE_ZIP_H
#define CURATE_ZIP_H

#include "base/err.h"
#include "base/mem.h"

struct zip_member {
    struct span name;
    uint32_t method, crc;
    uint64_t packed, offset; /* offset: of its local header in bytes */
};

struct zip {
    struct span bytes; /* borrowed */
    struct zip_member *member;
    size_t n, cap;
    const struct zip_member **by_name; /* sorted; of equal names the first in the directory comes first */
    size_t cap_by_name;
};

/* Reads the directory; keeps memory from an archive before.  Zero for a new one.  ERR_FORMAT: there is none, or it is damaged;
 * ERR_NOMEM. */
int zip_open(struct zip *z, struct span bytes, struct err *e);
void zip_close(struct zip *z);
/* The first member of this name; NULL: none. */
const struct zip_member *zip_find(const struct zip *z, struct span name);
/* Unpacks a member into out, which is emptied.  ERR_FORMAT: it is damaged or packed in another way; ERR_LIMIT: it has more
 * than max bytes; ERR_NOMEM. */
int zip_read(const struct zip *z, const struct zip_member *m, size_t max, struct buf *out, struct err *e);
#endif
