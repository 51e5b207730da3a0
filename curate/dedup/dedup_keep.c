#include "curate/dedup/dedup_keep.h"

#include <string.h>

#include "base/node.h"

/* Numbers in an order that unsigned integers have, all above 0. */
static uint64_t order(double x)
{
    uint64_t bits;

    x += 0.0; /* no minus zero */
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* The number in d at a path such as "signals.x"; without it 0, the last. */
static int rank_by(struct doc *d, const char *path, uint64_t *rank, struct err *e)
{
    size_t n = strcspn(path, ".");
    struct span key = arena_dup(d->arena, (struct span){path, n}), raw;
    const struct node *at;
    struct node *root;

    *rank = 0;
    if (!key.p)
        return err_set(e, ERR_NOMEM, "out of memory for a field");
    raw = doc_raw(d, key.p);
    if (!raw.p)
        return 0;
    TRY(node_parse_json(d->arena, raw, &root, e));
    for (at = root; at && path[n]; n += 1 + strcspn(path + n + 1, ".")) {
        key = arena_dup(d->arena, (struct span){path + n + 1, strcspn(path + n + 1, ".")});
        if (!key.p)
            return err_set(e, ERR_NOMEM, "out of memory for a field");
        at = node_get(at, key.p);
    }
    if (at && (at->type == NODE_INT || at->type == NODE_NUM))
        *rank = order(at->num);
    return 0;
}

int dedup_keep_rank(int keep, const char *by, struct doc *d, uint64_t *rank, struct err *e)
{
    *rank = 0;
    if (keep == KEEP_LONGEST)
        *rank = d->text.n;
    return keep == KEEP_BEST ? rank_by(d, by, rank, e) : 0;
}

int dedup_keep_check(int keep, const char *by, struct err *e)
{
    if (keep == KEEP_BEST && !by)
        return err_set(e, ERR_ARG, "to keep the best: by which field?");
    if (by && keep != KEEP_BEST)
        return err_set(e, ERR_ARG, "a field to go by is for keeping the best");
    return 0;
}
