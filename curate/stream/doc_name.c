#include "curate/stream/doc_name.h"

#include <inttypes.h>

int doc_name(struct doc *d, bool place, struct span *name)
{
    struct buf b = {0};
    int rc;

    *name = d->id;
    if (!place || !d->file)
        return 0;
    rc = buf_put_span(&b, d->id);
    if (rc == 0)
        rc = buf_putc(&b, (char)DOC_NAME_PLACE);
    if (rc == 0)
        rc = buf_printf(&b, "%s:%" PRIu64, d->file, d->offset);
    if (rc == 0)
        *name = arena_dup(d->arena, buf_span(&b));
    buf_free(&b);
    return rc == 0 && name->p ? 0 : ERR_NOMEM;
}

struct span doc_name_id(struct span name)
{
    const char *at = name.n ? memchr(name.p, DOC_NAME_PLACE, name.n) : NULL;

    return at ? (struct span){name.p, (size_t)(at - name.p)} : name;
}

struct span doc_name_place(struct span name)
{
    struct span id = doc_name_id(name);

    return id.n < name.n ? (struct span){name.p + id.n + 1, name.n - id.n - 1} : (struct span){0};
}
