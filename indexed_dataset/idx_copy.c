#include "indexed_dataset/idx_copy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "indexed_dataset/loss_mask.h"
#include "indexed_dataset/page_list.h"

enum { BLOCK = 8192, RECORDS = 1 << 20 }; /* sequences and documents appended at a time; bytes of their records */

/* What is copied. */
struct part {
    struct idx *x;
    struct ledger *ledger; /* or NULL */
};

/* One output, and what is to be appended next. */
struct copy {
    struct idx_writer *w;
    const char *bytes, *end; /* the sequences lie one after another in a part's .bin */
    int32_t length[BLOCK];
    uint64_t doc[BLOCK]; /* the sequences of the block before its end */
    size_t n_seqs, n_docs;
    bool ledger;
    struct buf records;      /* of the documents of the block */
    struct ledger_item item[BLOCK];
};

static int flush(struct copy *c, struct err *e)
{
    int rc = idx_add_block(c->w, c->bytes, c->length, c->n_seqs, c->doc, c->n_docs, e);

    if (rc == 0 && c->ledger && c->n_docs)
        rc = idx_add_ledger(c->w, buf_span(&c->records), c->item, c->n_docs, e);
    buf_clear(&c->records);
    c->n_seqs = c->n_docs = 0;
    return rc;
}

/* What the part's ledger says of document d, of so many tokens, for the block. */
static int add_origin(struct copy *c, const struct part *p, uint64_t d, uint64_t tokens, struct err *e)
{
    struct ledger_document doc;
    struct ledger_item *item = &c->item[c->n_docs];

    TRY(ledger_document(p->ledger, d, &doc, e));
    if (doc.end - doc.first != tokens)
        return err_set(e, ERR_FORMAT, "'%s.ledger': document %" PRIu64 " has %" PRIu64 " tokens, not %" PRIu64, idx_prefix(p->x),
                       d, doc.end - doc.first, tokens);
    *item = (struct ledger_item){.record = (uint32_t)doc.record.n, .tokens = tokens};
    memcpy(item->leaf, doc.leaf, sizeof item->leaf);
    return buf_put_span(&c->records, doc.record) < 0 ? err_set(e, ERR_NOMEM, "out of memory for records") : 0;
}

/* Sequences [first, end) as a document: number d of the part. */
static int add_document(struct copy *c, const struct part *part, uint64_t d, uint64_t first, uint64_t end, struct err *e)
{
    const struct idx *x = part->x;
    size_t size = idx_dtype_size(idx_dtype(x));
    uint64_t tokens = 0;

    for (; first < end; first++) {
        const void *p = NULL;
        int32_t n = 0;
        TRY(idx_sequence(x, first, &p, &n, e));
        if (n == 0)
            return err_set(e, ERR_FORMAT, "'%s.idx': sequence %" PRIu64 " is empty", idx_prefix(x), first);
        if (c->n_seqs == BLOCK || (c->n_seqs && p != c->end))
            TRY(flush(c, e));
        if (c->n_seqs == 0)
            c->bytes = p;
        c->end = (const char *)p + (size_t)n * size;
        c->length[c->n_seqs++] = n;
        tokens += (uint64_t)n;
    }
    if (c->ledger)
        TRY(add_origin(c, part, d, tokens, e));
    c->doc[c->n_docs++] = c->n_seqs;
    return c->n_docs == BLOCK || c->records.n > RECORDS ? flush(c, e) : 0;
}

/* Document d, which must begin where its predecessor ended. */
static int next_document(const struct idx *x, uint64_t d, uint64_t *first, uint64_t *end, struct err *e)
{
    uint64_t at = d ? *end : 0;

    TRY(idx_document(x, d, first, end, e));
    if (*first != at)
        return err_set(e, ERR_FORMAT, "'%s.idx': document %" PRIu64 " begins with sequence %" PRIu64
                       ", not %" PRIu64, idx_prefix(x), d, *first, at);
    if (d + 1 == idx_n_documents(x) && *end != idx_n_sequences(x))
        return err_set(e, ERR_FORMAT, "'%s.idx': its documents end at sequence %" PRIu64 " of %" PRIu64,
                       idx_prefix(x), *end, idx_n_sequences(x));
    return 0;
}

/* Whether PREFIX.bin is the part's: it would be read while it is replaced. */
static bool same_file(const char *prefix, const struct idx *x)
{
    char a[IDX_PATH_MAX + 8], b[IDX_PATH_MAX + 8];
    struct stat s, t;

    snprintf(a, sizeof a, "%.*s.bin", IDX_PATH_MAX, prefix);
    snprintf(b, sizeof b, "%s.bin", idx_prefix(x));
    return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

/* Whether the part can be copied to PREFIX whole. */
static int check_part(const char *prefix, const struct idx *x, struct err *e)
{
    if (same_file(prefix, x))
        return err_set(e, ERR_ARG, "'%s' is both a part and the result", prefix);
    if (idx_has_modes(x))
        return err_set(e, ERR_UNSUPPORTED, "'%s.idx' has a mode for each sequence, which would be lost", idx_prefix(x));
    if (idx_n_documents(x) == 0 && idx_n_sequences(x))
        return err_set(e, ERR_FORMAT, "'%s.idx': its sequences belong to no document", idx_prefix(x));
    return 0;
}

static int part_open(struct part *p, const char *prefix, struct err *e)
{
    int rc;

    *p = (struct part){.x = NULL};
    TRY(idx_open(&p->x, prefix, e));
    rc = ledger_open(&p->ledger, prefix, e);
    if (rc == 0 && p->ledger && ledger_n_documents(p->ledger) != idx_n_documents(p->x))
        rc = err_set(e, ERR_FORMAT, "'%s.ledger' has %" PRIu64 " documents, the dataset %" PRIu64, idx_prefix(p->x),
                     ledger_n_documents(p->ledger), idx_n_documents(p->x));
    return rc;
}

static void part_close(struct part *p)
{
    ledger_close(p->ledger);
    idx_close(p->x);
}

/* ---- loss masks ---- */

enum { MASK_PATH_MAX = IDX_PATH_MAX + sizeof LOSS_MASK_SUFFIX };

/* The loss mask beside a dataset; "": it has none. */
static int mask_of(const char *part, char mask[MASK_PATH_MAX], struct err *e)
{
    struct idx *x, *m = NULL;
    int rc;

    mask[0] = '\0';
    TRY(idx_open(&x, part, e));
    rc = loss_mask_open(&m, x, e);
    if (rc == 0)
        snprintf(mask, MASK_PATH_MAX, "%s%s", m ? idx_prefix(x) : "", m ? LOSS_MASK_SUFFIX : "");
    idx_close(m);
    idx_close(x);
    return rc;
}

/* The one that PREFIX is to have. */
static int name_mask(const char *prefix, char mask[MASK_PATH_MAX], struct err *e)
{
    if (snprintf(mask, MASK_PATH_MAX, "%s" LOSS_MASK_SUFFIX, prefix) >= IDX_PATH_MAX)
        return err_set(e, ERR_ARG, "the prefix is too long: '%.80s...'", prefix);
    return 0;
}

/* ---- the copy ---- */

static int copy_new(struct copy **c, const char *prefix, const struct part *p, struct err *e)
{
    char mask[MASK_PATH_MAX];
    int rc;

    TRY(check_part(prefix, p->x, e));
    TRY(mask_of(idx_prefix(p->x), mask, e));
    *c = calloc(1, sizeof **c);
    if (!*c)
        return err_set(e, ERR_NOMEM, "out of memory");
    (*c)->bytes = "";
    (*c)->ledger = p->ledger != NULL;
    rc = idx_create(&(*c)->w, prefix, idx_dtype(p->x), e);
    if (rc == 0 && *mask)
        idx_has_mask((*c)->w);
    if (rc == 0 && p->ledger && (rc = idx_keep_ledger((*c)->w, e)) < 0)
        idx_abort((*c)->w);
    if (rc < 0) {
        free(*c);
        *c = NULL;
    }
    return rc;
}

/* Finishes if rc is 0, with what else PREFIX.sum.json is to say, or gives up; frees; returns rc or what went wrong now. */
static int copy_end(struct copy *c, int rc, struct span sums, struct err *e)
{
    if (!c)
        return rc;
    if (rc == 0)
        rc = flush(c, e);
    if (rc == 0)
        rc = idx_commit(c->w, sums, e);
    else
        idx_abort(c->w);
    buf_free(&c->records);
    free(c);
    return rc;
}

/* ---- merge ---- */

static int add_part(struct copy *c, const struct part *p, struct err *e)
{
    const struct idx *x = p->x;
    uint64_t first = 0, end = 0;

    for (uint64_t d = 0; d < idx_n_documents(x); d++) {
        TRY(next_document(x, d, &first, &end, e));
        TRY(add_document(c, p, d, first, end, e));
    }
    return flush(c, e);
}

/* Every part is looked at before any work, and opened again in its turn: the number of parts is not
 * bounded by that of maps. */
static int check_parts(const char *prefix, const char *const *part, int n, struct err *e)
{
    enum idx_dtype first = IDX_U16;
    bool ledger = false;

    for (int i = 0; i < n; i++) {
        struct part p;
        int rc = part_open(&p, part[i], e);
        if (rc == 0) {
            first = i ? first : idx_dtype(p.x);
            ledger = i ? ledger : p.ledger != NULL;
            rc = check_part(prefix, p.x, e);
        }
        if (rc == 0 && idx_dtype(p.x) != first)
            rc = err_set(e, ERR_ARG, "'%s' holds %s, '%s' %s", part[0], idx_dtype_name(first), part[i],
                         idx_dtype_name(idx_dtype(p.x)));
        if (rc == 0 && ledger != (p.ledger != NULL))
            rc = err_set(e, ERR_ARG, "'%s' has a ledger and '%s' has none: together they cannot be accounted for",
                         ledger ? part[0] : part[i], ledger ? part[i] : part[0]);
        part_close(&p);
        TRY(rc);
    }
    return 0;
}

static int merge_parts(const char *prefix, const char *const *part, int n, struct err *e)
{
    struct copy *c = NULL;
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        struct part p;
        rc = part_open(&p, part[i], e);
        if (rc == 0 && i == 0)
            rc = copy_new(&c, prefix, &p, e);
        if (rc == 0)
            rc = add_part(c, &p, e);
        part_close(&p);
    }
    return copy_end(c, rc, (struct span){0}, e);
}

/* The parts' loss masks, to be freed one by one; NULL: no part has one. */
static int masks_of(const char *const *part, int n, char **mask, struct err *e)
{
    char first[MASK_PATH_MAX] = "", name[MASK_PATH_MAX];

    for (int i = 0; i < n; i++) {
        TRY(mask_of(part[i], name, e));
        if (i == 0)
            memcpy(first, name, sizeof first);
        if (!*name != !*first)
            return err_set(e, ERR_ARG, "'%s' has a loss mask and '%s' has none", *first ? part[0] : part[i],
                           *first ? part[i] : part[0]);
        mask[i] = *name ? strdup(name) : NULL;
        if (*name && !mask[i])
            return err_set(e, ERR_NOMEM, "out of memory for names");
    }
    return 0;
}

/* Of the masks, if there are any. */
static int merge_masks(const char *prefix, const char *const *part, int n, struct err *e)
{
    char to[MASK_PATH_MAX], **mask = calloc((size_t)n, sizeof(*mask));
    int rc = mask ? masks_of(part, n, mask, e) : err_set(e, ERR_NOMEM, "out of memory for names");

    if (rc == 0 && mask[0])
        rc = name_mask(prefix, to, e);
    if (rc == 0 && mask[0])
        rc = check_parts(to, (const char *const *)mask, n, e);
    if (rc == 0 && mask[0])
        rc = merge_parts(to, (const char *const *)mask, n, e);
    for (int i = 0; mask && i < n; i++)
        free(mask[i]);
    free(mask);
    return rc;
}

int idx_merge(const char *prefix, const char *const *part, int n, struct err *e)
{
    if (n < 1)
        return err_set(e, ERR_ARG, "nothing to merge");
    TRY(check_parts(prefix, part, n, e));
    TRY(merge_masks(prefix, part, n, e));
    return merge_parts(prefix, part, n, e);
}

/* ---- filter ---- */

/* Sets the bits of the documents that the file names. */
static int read_list(const char *path, uint64_t documents, uint8_t *bits, struct err *e)
{
    char block[65536];
    struct file_in *f;
    uint64_t v = 0, line = 1;
    bool digits = false, fault = false;
    ssize_t n = 1;

    TRY(file_open(&f, path, e));
    while (n > 0 && !fault) {
        n = file_read(f, block, sizeof block, e);
        for (ssize_t i = 0; i < (n ? n : 1) && n >= 0 && !fault; i++) {
            char c = n ? block[i] : '\n'; /* the last line may have no end */
            if (c >= '0' && c <= '9' && v < documents) {
                v = 10 * v + (uint64_t)(c - '0');
                digits = true;
            } else if (c == '\n' && (!digits || v < documents)) {
                if (digits)
                    bits[v / 8] |= (uint8_t)(1 << v % 8);
                v = 0;
                digits = false;
                line++;
            } else {
                fault = c != '\r';
            }
        }
    }
    file_close(f);
    if (n < 0)
        return (int)n;
    return fault ? err_set(e, ERR_FORMAT, "'%s', line %" PRIu64 ": no number of one of %" PRIu64 " documents", path, line,
                           documents) : 0;
}

static int load_list(uint8_t **bits, const char *path, uint64_t documents, struct err *e)
{
    if (!path)
        return 0;
    *bits = calloc(documents / 8 + 1, 1);
    return *bits ? read_list(path, documents, *bits, e) : err_set(e, ERR_NOMEM, "out of memory");
}

static int filter_documents(struct copy *c, const struct part *part, const struct idx_wanted *want, const uint8_t *keep,
                            const uint8_t *drop, uint64_t *kept, struct err *e)
{
    const struct idx *x = part->x;
    uint64_t first = 0, end = 0;

    for (uint64_t d = 0; d < idx_n_documents(x); d++) {
        int64_t tokens = 0;
        TRY(next_document(x, d, &first, &end, e));
        for (uint64_t s = first; s < end; s++) {
            const void *p = NULL;
            int32_t n = 0;
            TRY(idx_sequence(x, s, &p, &n, e));
            tokens += n;
        }
        if (tokens < want->min_tokens || (want->max_tokens >= 0 && tokens > want->max_tokens) ||
            (keep && !(keep[d / 8] >> d % 8 & 1)) || (drop && drop[d / 8] >> d % 8 & 1))
            continue;
        TRY(add_document(c, part, d, first, end, e));
        ++*kept;
    }
    return 0;
}

static int filter_part(const char *prefix, const char *part, const struct idx_wanted *want, uint64_t *kept, struct err *e)
{
    uint8_t *keep = NULL, *drop = NULL;
    struct copy *c = NULL;
    struct part p;
    int rc = part_open(&p, part, e);

    *kept = 0;
    if (rc == 0)
        rc = load_list(&keep, want->keep, idx_n_documents(p.x), e);
    if (rc == 0)
        rc = load_list(&drop, want->drop, idx_n_documents(p.x), e);
    if (rc == 0)
        rc = copy_new(&c, prefix, &p, e);
    if (rc == 0)
        rc = filter_documents(c, &p, want, keep, drop, kept, e);
    rc = copy_end(c, rc, (struct span){0}, e);
    free(keep);
    free(drop);
    part_close(&p);
    return rc;
}

int idx_filter(const char *prefix, const char *part, const struct idx_wanted *want, uint64_t *kept, struct err *e)
{
    char mask[MASK_PATH_MAX], to[MASK_PATH_MAX];

    TRY(mask_of(part, mask, e));
    if (*mask) {
        TRY(name_mask(prefix, to, e));
        TRY(filter_part(to, mask, want, kept, e));
    }
    return filter_part(prefix, part, want, kept, e);
}

/* ---- forget ---- */

/* What PREFIX.sum.json is to say of tokens that are the part's but for the documents that went: how they were made.  What it
 * says of the text that they were made of is not known of what is left. */
static int put_sums(struct buf *b, const struct part *p, const struct idx_totals *left, uint64_t gone, struct err *e)
{
    static const char *const keys[] = {"tokenizer", "quern", "key", "eod", "append_eod", "allow_special"};
    char path[IDX_PATH_MAX + 16], root[2 * SHA256_SUM + 1];
    struct arena a = {0};
    struct node *sums = NULL;
    int rc;

    snprintf(path, sizeof path, "%s.sum.json", idx_prefix(p->x));
    rc = access(path, F_OK) == 0 ? node_load_json(&a, path, &sums, e) : 0;
    for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof *keys; i++) {
        const struct node *n = node_get(sums, keys[i]);

        if (n) {
            buf_printf(b, "%s\"%s\":", b->n ? "," : "", keys[i]);
            node_put_json(b, n, "");
        }
    }
    arena_free(&a);
    TRY(rc);
    buf_printf(b, "%s\"documents\":%" PRIu64 ",\"tokens\":%" PRIu64 ",\"forgotten\":{\"documents\":%" PRIu64, b->n ? "," : "",
               left->documents, left->tokens, gone);
    if (p->ledger) {
        sha256_hex(ledger_root(p->ledger), root);
        buf_printf(b, ",\"of\":\"%s\"", root);
    }
    return buf_putc(b, '}') < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}

/* Writes PREFIX from the documents of p that are not among drop's bits. */
static int copy_without(const char *prefix, const struct part *p, const uint8_t *drop, uint64_t *kept, struct err *e)
{
    const struct idx_wanted all = {.max_tokens = -1};
    struct copy *c = NULL;
    struct buf sums = {0};
    int rc = copy_new(&c, prefix, p, e);

    *kept = 0;
    if (rc == 0)
        rc = filter_documents(c, p, &all, NULL, drop, kept, e);
    if (rc == 0)
        rc = flush(c, e);
    if (rc == 0) {
        const struct idx_totals left = idx_totals(c->w);

        rc = put_sums(&sums, p, &left, idx_n_documents(p->x) - *kept, e);
    }
    rc = copy_end(c, rc, buf_span(&sums), e);
    buf_free(&sums);
    return rc;
}

/* The same of the loss mask beside it, if there is one. */
static int forget_mask(const char *prefix, const struct part *p, const uint8_t *drop, struct err *e)
{
    char to[MASK_PATH_MAX], of[MASK_PATH_MAX];
    struct part m;
    uint64_t kept;
    int rc;

    TRY(mask_of(idx_prefix(p->x), of, e));
    if (!*of)
        return 0;
    TRY(name_mask(prefix, to, e));
    rc = part_open(&m, of, e);
    if (rc == 0)
        rc = copy_without(to, &m, drop, &kept, e);
    part_close(&m);
    return rc;
}

int idx_forget(const char *prefix, const char *part, struct page_list *pages, uint64_t *kept, uint64_t *gone, struct err *e)
{
    uint8_t *drop = NULL;
    struct part p;
    int rc = part_open(&p, part, e);

    *kept = *gone = 0;
    if (rc == 0 && !p.ledger)
        rc = err_set(e, ERR_ARG, "'%s' has no ledger, so its pages have no names", idx_prefix(p.x));
    if (rc == 0)
        rc = page_list_bits(pages, p.ledger, &drop, gone, e);
    if (rc == 0)
        rc = check_part(prefix, p.x, e);
    if (rc == 0)
        rc = forget_mask(prefix, &p, drop, e);
    if (rc == 0)
        rc = copy_without(prefix, &p, drop, kept, e);
    free(drop);
    part_close(&p);
    return rc;
}

/* ---- split ---- */

/* How many documents each gets. */
static int divide(uint64_t documents, const double *share, int n, uint64_t *left, struct err *e)
{
    double sum = 0, so_far = 0;
    uint64_t given = 0;

    if (n < 1 || n > IDX_SPLITS_MAX)
        return err_set(e, ERR_ARG, "%d shares; at least 1 and at most %d", n, IDX_SPLITS_MAX);
    for (int k = 0; k < n; k++) {
        if (!(share[k] >= 0 && isfinite(share[k])))
            return err_set(e, ERR_ARG, "a share is not at least 0");
        sum += share[k];
    }
    if (!(sum > 0 && isfinite(sum)))
        return err_set(e, ERR_ARG, "the shares give nothing to anyone");
    for (int k = 0; k < n; k++) {
        so_far += share[k];
        uint64_t until = k + 1 == n ? documents : (uint64_t)rint(so_far / sum * (double)documents);
        left[k] = until - given;
        given = until;
    }
    return 0;
}

/* Every division with those numbers is as likely: each document is as if it drew one of the tickets that are
 * left. */
static int split_documents(struct copy *const *c, uint64_t *left, const struct part *p, uint64_t seed, struct err *e)
{
    const struct idx *x = p->x;
    uint64_t first = 0, end = 0, n = idx_n_documents(x);

    for (uint64_t d = 0; d < n; d++) {
        uint32_t w[4];
        int k = 0;
        TRY(next_document(x, d, &first, &end, e));
        rng_philox(seed, d, 0, w);
        uint64_t ticket = (uint64_t)((unsigned __int128)((uint64_t)w[1] << 32 | w[0]) * (n - d) >> 64);
        while (ticket >= left[k])
            ticket -= left[k++];
        left[k]--;
        TRY(add_document(c[k], p, d, first, end, e));
    }
    return 0;
}

static int split_part(const char *const *prefix, const double *share, int n, const char *part, uint64_t seed, struct err *e)
{
    struct copy *c[IDX_SPLITS_MAX] = {0};
    uint64_t left[IDX_SPLITS_MAX] = {0};
    struct part p;
    int rc = part_open(&p, part, e);

    if (rc == 0)
        rc = divide(idx_n_documents(p.x), share, n, left, e);
    for (int k = 0; k < n && rc == 0; k++)
        rc = copy_new(&c[k], prefix[k], &p, e);
    if (rc == 0)
        rc = split_documents(c, left, &p, seed, e);
    for (int k = 0; k < IDX_SPLITS_MAX; k++)
        rc = copy_end(c[k], rc, (struct span){0}, e);
    part_close(&p);
    return rc;
}

/* Of the mask, if there is one: the division looks at numbers of documents alone, so it is the same. */
static int split_mask(const char *const *prefix, const double *share, int n, const char *part, uint64_t seed, struct err *e)
{
    char mask[MASK_PATH_MAX], (*to)[MASK_PATH_MAX];
    const char *name[IDX_SPLITS_MAX];
    int rc = 0;

    TRY(mask_of(part, mask, e));
    if (!*mask || n < 1 || n > IDX_SPLITS_MAX) /* which is told later */
        return 0;
    to = malloc((size_t)n * sizeof(*to));
    if (!to)
        return err_set(e, ERR_NOMEM, "out of memory for names");
    for (int k = 0; k < n && rc == 0; k++) {
        name[k] = to[k];
        rc = name_mask(prefix[k], to[k], e);
    }
    if (rc == 0)
        rc = split_part(name, share, n, mask, seed, e);
    free(to);
    return rc;
}

int idx_split(const char *const *prefix, const double *share, int n, const char *part, uint64_t seed, struct err *e)
{
    TRY(split_mask(prefix, share, n, part, seed, e));
    return split_part(prefix, share, n, part, seed, e);
}
