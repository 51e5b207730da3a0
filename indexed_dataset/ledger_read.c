#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/node.h"
#include "indexed_dataset/ledger_format.h"

struct ledger {
    char path[IDX_PATH_MAX + 8];
    struct file_map map; /* p NULL over the caller's memory */
    const uint8_t *records, *entries; /* in the file, unaligned */
    struct ledger_foot foot;
};

/* Holds head and foot against the size and finds what lies between. */
static int read_ends(struct ledger *l, const uint8_t *p, size_t n, struct err *e)
{
    static const char magic[LEDGER_HEAD] = LEDGER_MAGIC;
    uint64_t left;

    if (n < LEDGER_HEAD + LEDGER_FOOT || memcmp(p, magic, 8) != 0)
        return err_set(e, ERR_FORMAT, "'%s' at byte 0: no ledger (no QLEDGER)", l->path);
    if (memcmp(p, magic, LEDGER_HEAD) != 0)
        return err_set(e, ERR_UNSUPPORTED, "'%s' at byte 8: a version that is not known here", l->path);
    memcpy(&l->foot, p + n - LEDGER_FOOT, LEDGER_FOOT);
    if (l->foot.check != ledger_foot_check(&l->foot) || l->foot.zero)
        return err_set(e, ERR_FORMAT, "'%s' at byte %zu: its last %d bytes are damaged (checksum)", l->path, n - LEDGER_FOOT,
                       LEDGER_FOOT);
    left = n - LEDGER_HEAD - LEDGER_FOOT;
    if (l->foot.documents > left / LEDGER_ENTRY || l->foot.bytes != left - l->foot.documents * LEDGER_ENTRY)
        return err_set(e, ERR_FORMAT, "'%s': %" PRIu64 " documents and %" PRIu64 " bytes of records do not fit %zu bytes",
                       l->path, l->foot.documents, l->foot.bytes, n);
    l->records = p + LEDGER_HEAD;
    l->entries = l->records + l->foot.bytes;
    return 0;
}

int ledger_open_mem(struct ledger **out, const uint8_t *p, size_t n, struct err *e)
{
    struct ledger *l = calloc(1, sizeof *l);
    int rc;

    *out = NULL;
    if (!l)
        return err_set(e, ERR_NOMEM, "out of memory");
    snprintf(l->path, sizeof l->path, "memory");
    rc = read_ends(l, p, n, e);
    if (rc < 0)
        free(l);
    else
        *out = l;
    return rc;
}

int ledger_open(struct ledger **out, const char *prefix, struct err *e)
{
    int n = idx_prefix_length(prefix), rc;
    struct ledger *l;

    *out = NULL;
    if (n >= IDX_PATH_MAX)
        return err_set(e, ERR_ARG, "the prefix is too long: '%.80s...'", prefix);
    l = calloc(1, sizeof *l);
    if (!l)
        return err_set(e, ERR_NOMEM, "out of memory");
    snprintf(l->path, sizeof l->path, "%.*s.ledger", n, prefix);
    if (access(l->path, F_OK) != 0) {
        free(l);
        return 0;
    }
    rc = file_map_open(&l->map, l->path, e);
    if (rc == 0)
        rc = read_ends(l, l->map.p, l->map.n, e);
    if (rc < 0)
        ledger_close(l);
    else
        *out = l;
    return rc;
}

void ledger_close(struct ledger *l)
{
    if (!l)
        return;
    if (l->map.p)
        file_map_close(&l->map);
    free(l);
}

uint64_t ledger_n_documents(const struct ledger *l)
{
    return l->foot.documents;
}

const uint8_t *ledger_root(const struct ledger *l)
{
    return l->foot.root;
}

static struct ledger_entry entry_at(const struct ledger *l, uint64_t d)
{
    struct ledger_entry x;

    memcpy(&x, l->entries + d * LEDGER_ENTRY, sizeof x);
    return x;
}

int ledger_document(const struct ledger *l, uint64_t d, struct ledger_document *out, struct err *e)
{
    struct ledger_entry before = {0}, x = entry_at(l, d);
    uint32_t n[2] = {0, 0};
    uint64_t size;

    if (d)
        before = entry_at(l, d - 1);
    size = x.record_end - before.record_end;
    if (x.record_end < before.record_end || x.record_end > l->foot.bytes || x.token_end < before.token_end || size < sizeof n ||
        size > UINT32_MAX)
        return err_set(e, ERR_FORMAT, "'%s': the entry of document %" PRIu64 " does not fit its neighbours", l->path, d);
    out->record = (struct span){(const char *)l->records + before.record_end, size};
    memcpy(n, out->record.p, sizeof n);
    if ((uint64_t)n[0] + n[1] > size - sizeof n)
        return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": the record of document %" PRIu64 " is too short", l->path,
                       LEDGER_HEAD + before.record_end, d);
    out->id = (struct span){out->record.p + sizeof n, n[0]};
    out->url = (struct span){out->id.p + n[0], n[1]};
    out->source = (struct span){out->url.p + n[1], size - sizeof n - n[0] - n[1]};
    out->first = before.token_end;
    out->end = x.token_end;
    out->leaf = l->entries + d * LEDGER_ENTRY + offsetof(struct ledger_entry, leaf);
    return 0;
}

/* ---- verify ---- */

/* The tokens of document d of x as they lie in .bin; they follow one another. */
static int tokens_of(const struct idx *x, uint64_t d, struct span *tokens, struct err *e)
{
    size_t size = idx_dtype_size(idx_dtype(x));
    uint64_t s, end;

    *tokens = (struct span){"", 0};
    TRY(idx_document(x, d, &s, &end, e));
    for (bool first = true; s < end; s++, first = false) {
        const void *p = NULL;
        int32_t n = 0;
        TRY(idx_check_sequence(x, s, e));
        TRY(idx_sequence(x, s, &p, &n, e));
        tokens->p = first ? p : tokens->p;
        tokens->n += (size_t)n * size;
    }
    return 0;
}

/* Document d and what the ledger says of it, which must hold; its tokens begin at *at, which becomes their end. */
static int verify_document(const struct ledger *l, const struct idx *x, uint64_t d, struct ledger_document *doc, uint64_t *at,
                           struct err *e)
{
    uint8_t leaf[SHA256_SUM];
    struct span tokens;

    TRY(ledger_document(l, d, doc, e));
    TRY(tokens_of(x, d, &tokens, e));
    *at += tokens.n / idx_dtype_size(idx_dtype(x));
    ledger_leaf(idx_dtype(x), doc->record, tokens, leaf);
    if (doc->end != *at)
        return err_set(e, ERR_FORMAT, "'%s': document %" PRIu64 " ends at token %" PRIu64 ", in the dataset at %" PRIu64, l->path,
                       d, doc->end, *at);
    if (memcmp(leaf, doc->leaf, sizeof leaf) != 0)
        return err_set(e, ERR_FORMAT, "'%s': the tokens or the record of document %" PRIu64 " are not those that were written"
                       " (SHA-256)", l->path, d);
    return 0;
}

/* Whether PREFIX.sum.json, if it speaks of a ledger, has this root. */
static int verify_sums(const struct ledger *l, const struct idx *x, struct err *e)
{
    char path[IDX_PATH_MAX + 16], hex[2 * SHA256_SUM + 1];
    struct arena a = {0};
    struct node *sums;
    const char *stated;
    int rc;

    snprintf(path, sizeof path, "%s.sum.json", idx_prefix(x));
    if (!l->map.p || access(path, F_OK) != 0)
        return 0;
    sha256_hex(l->foot.root, hex);
    rc = node_load_json(&a, path, &sums, e);
    if (rc == 0) {
        stated = node_str(node_get(sums, "ledger"), "sha256");
        if (!stated || strcmp(stated, hex) != 0)
            rc = err_set(e, ERR_FORMAT, "'%s' has the root %s, '%s' %s", l->path, hex, path, stated ? stated : "none");
    }
    arena_free(&a);
    return rc;
}

int ledger_verify(const struct ledger *l, const struct idx *x, struct err *e)
{
    struct ledger_tree tree = {.n = 0};
    uint8_t root[SHA256_SUM];
    struct ledger_document doc;
    uint64_t at = 0;

    if (!sha256_is_built())
        return err_set(e, ERR_UNSUPPORTED, "'%s': this build has no SHA-256 (nettle-dev)", l->path);
    if (l->foot.documents != idx_n_documents(x))
        return err_set(e, ERR_FORMAT, "'%s' has %" PRIu64 " documents, the dataset %" PRIu64, l->path, l->foot.documents,
                       idx_n_documents(x));
    for (uint64_t d = 0; d < l->foot.documents; d++) {
        TRY(verify_document(l, x, d, &doc, &at, e));
        ledger_tree_add(&tree, doc.leaf);
    }
    if (l->foot.documents ? doc.record.p + doc.record.n != (const char *)l->entries : l->foot.bytes != 0)
        return err_set(e, ERR_FORMAT, "'%s': bytes behind the last record", l->path);
    ledger_tree_root(&tree, root);
    if (memcmp(root, l->foot.root, sizeof root) != 0)
        return err_set(e, ERR_FORMAT, "'%s': its root is not that of its documents", l->path);
    return verify_sums(l, x, e);
}
