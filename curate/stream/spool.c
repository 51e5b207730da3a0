#include "curate/stream/spool.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/spill.h"

enum { FILES = 4 };

struct spool {
    struct spill file[FILES];
    uint64_t used[FILES]; /* bytes that pieces have of each */
    struct spool_piece *piece;
    size_t n, cap, at; /* at: that is read next */
    uint64_t size;
};

int spool_open(struct spool **out, const char *dir, struct err *e)
{
    struct spool *s = calloc(1, sizeof *s);
    int rc = s ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    for (int i = 0; s && i < FILES; i++)
        s->file[i].fd = -1;
    for (int i = 0; i < FILES && rc == 0; i++)
        rc = spill_open(&s->file[i], dir, 1, e);
    *out = s;
    if (rc < 0) {
        spool_close(s);
        *out = NULL;
    }
    return rc;
}

void spool_close(struct spool *s)
{
    for (int i = 0; s && i < FILES; i++)
        spill_close(&s->file[i]);
    if (s)
        free(s->piece);
    free(s);
}

int spool_reserve(struct spool *s, size_t n, struct spool_piece *p, struct err *e)
{
    size_t file = s->n % FILES;

    if (mem_grow(&s->piece, &s->cap, s->n + 1, sizeof *s->piece) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for what is put aside");
    *p = s->piece[s->n++] = (struct spool_piece){.file = file, .n = n, .at = s->used[file]};
    s->used[file] += n;
    s->size += n;
    return 0;
}

int spool_write(const struct spool *s, const struct spool_piece *p, const void *bytes, struct err *e)
{
    return spill_write(&s->file[p->file], p->at, bytes, p->n, e);
}

uint64_t spool_size(const struct spool *s)
{
    return s->size;
}

bool spool_next(struct spool *s, struct spool_piece *p)
{
    if (s->at == s->n)
        return false;
    *p = s->piece[s->at++];
    return true;
}

int spool_read(const struct spool *s, const struct spool_piece *p, void *bytes, struct err *e)
{
    return spill_read(&s->file[p->file], p->at, bytes, p->n, e);
}
