/* The index of near-duplicates: its tree of keys against a list, its files against what was put in, every byte changed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"
#include "curate/dedup/dedup_index.h"
#include "curate/dedup/dedup_members.h"
#include "curate/dedup/index_shingles.h"

enum { BANDS = 3, ROWS = 2, DOCS = 200 };
static const char KIND[] = "dedup fuzzy preset=quern2 bands=3 rows=2";

static const char *path(const char *name)
{
    static char p[3][128];
    static int i;

    i = (i + 1) % 3;
    snprintf(p[i], sizeof p[i], "/dev/shm/dedup-index-test-%ld-%s", (long)getpid(), name);
    return p[i];
}

/* ---- the tree ---- */

struct list {
    struct index_entry *x;
    size_t n, at;
};

static int up(const void *x, const void *y)
{
    const struct index_entry *a = x, *b = y;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

/* Entries come in the order of the list. */
static int is_next(void *to, struct index_entry x, struct err *e)
{
    struct list *l = to;

    (void)e;
    assert_true(l->at < l->n);
    assert_true(up(&x, &l->x[l->at]) == 0);
    l->at++;
    return 0;
}

/* n keys of which many are near one another or equal, as `kind` has it; values below 2 n. */
static struct list make_list(size_t n, int kind, struct rng_mt *r)
{
    struct list l = {calloc(n + 1, sizeof *l.x), n, 0};

    for (size_t i = 0; i < n; i++) {
        uint64_t random = hash_mix64(rng_mt_interval(r, UINT32_MAX) + 1);

        l.x[i].key = kind == 0 ? random : kind == 1 ? random % 50 : kind == 2 ? 7 : kind == 3 ? UINT64_MAX - random % 3
                                                                                          : random >> 40;
        l.x[i].value = 2 * i + random % 2;
    }
    qsort(l.x, n, sizeof *l.x, up);
    return l;
}

static struct index_tree write_tree(const struct list *l, const char *name)
{
    struct index_pages_out p;
    struct index_tree t = {.name = name, .values = 2 * l->n, .entries = l->n};
    struct file_out *out;
    struct err e;

    assert_int_equal(file_create(&out, name, 0, &e), 0);
    assert_int_equal(index_pages_begin(&p, out, t.values, NULL, &e), 0);
    for (size_t i = 0; i < l->n; i++)
        assert_int_equal(index_pages_put(&p, l->x[i], &e), 0);
    assert_int_equal(index_pages_end(&p, &e), 0);
    t.leaves = p.leaves;
    assert_int_equal(p.entries, l->n);
    assert_int_equal(file_out_tell(out), index_pages_count(p.leaves) * INDEX_PAGE);
    index_pages_free(&p);
    assert_int_equal(file_commit(out, &e), 0);
    return t;
}

/* Every key that is there is found with all its values, and between keys there is none. */
static void look_up(const struct list *l, const struct index_tree *t, bool falling)
{
    struct index_cursor *c;
    struct err e;

    assert_int_equal(index_cursor_new(&c, t, &e), 0);
    for (size_t k = 0, i, end; k < l->n; k++) {
        struct list want = *l;

        i = falling ? l->n - 1 - k : k;
        want.at = end = i;
        while (want.at > 0 && l->x[want.at - 1].key == l->x[i].key)
            want.at--;
        while (end < l->n && l->x[end].key == l->x[i].key)
            end++;
        want.n = end;
        assert_int_equal(index_cursor_find(c, l->x[i].key, is_next, &want, &e), 0);
        assert_int_equal(want.at, end);
        want.n = want.at;
        if (end == l->n || l->x[end].key != l->x[i].key + 1)
            assert_int_equal(l->x[i].key == UINT64_MAX ? 0 : index_cursor_find(c, l->x[i].key + 1, is_next, &want, &e), 0);
        if (end - want.at > 1000)
            k += 997; /* equal keys are long to look through */
    }
    index_cursor_free(c);
}

static void the_tree_has_what_was_put_in(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 99, 1000, 8000};
    struct rng_mt r;

    (void)state;
    rng_mt_seed(&r, 1);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int kind = 0; kind < 5; kind++) {
            struct list l = make_list(kind == 2 && sizes[s] > 1000 ? 600 : sizes[s], kind, &r);
            const char *name = path("tree");
            struct index_tree t = write_tree(&l, name);
            struct index_cursor *c;
            struct err e;

            t.fd = open(name, O_RDONLY);
            assert_true(t.fd >= 0);
            assert_int_equal(index_cursor_new(&c, &t, &e), 0);
            assert_int_equal(index_cursor_all(c, is_next, &l, &e), 0);
            assert_int_equal(l.at, l.n);
            index_cursor_free(c);
            look_up(&l, &t, false);
            look_up(&l, &t, true);
            close(t.fd);
            unlink(name);
            free(l.x);
        }
}

static void few_keys_read_few_pages(void **state)
{
    struct rng_mt r;
    struct list l;
    struct index_tree t;
    struct index_cursor *c;
    const char *name = path("tree");
    struct err e;

    (void)state;
    rng_mt_seed(&r, 2);
    l = make_list(10000, 0, &r);
    t = write_tree(&l, name);
    t.fd = open(name, O_RDONLY);
    assert_int_equal(index_cursor_new(&c, &t, &e), 0);
    for (size_t i = 0; i < l.n; i += 1000) {
        struct list want = {l.x, i + 1, i};
        assert_int_equal(index_cursor_find(c, l.x[i].key, is_next, &want, &e), 0);
        assert_int_equal(want.at, i + 1);
    }
    assert_in_range(index_cursor_bytes(c), 10 * INDEX_PAGE, 25 * INDEX_PAGE); /* of some 100 */
    index_cursor_free(c);
    close(t.fd);
    unlink(name);
    free(l.x);
}

/* ---- pairs that are sorted ---- */

static void pairs_are_sorted(void **state)
{
    static const uint64_t some[] = {0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX};
    struct members m;
    struct err e;
    size_t i = 0;

    (void)state;
    assert_int_equal(members_open(&m, 5, NULL, &e), 0);
    for (int a = 5; a >= 0; a--)
        for (int b = 0; b < 6; b++) {
            struct member x = member_of_pair(some[a], some[(b + a) % 6]);
            assert_int_equal(members_add(&m, &x, &e), 0);
        }
    assert_int_equal(members_sort(&m, &e), 0);
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 6; b++) {
            struct member x;
            assert_int_equal(members_get(&m, i++, 1, &x, &e), 0);
            assert_true(member_first(&x) == some[a] && member_second(&x) == some[b]);
        }
    members_close(&m);
}

static void mixing_has_a_way_back(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t x = hash_mix64(i) + i;
        assert_true(hash_unmix64(hash_mix64(x)) == x);
        assert_true(hash_unmix64(hash_mix64(UINT64_MAX - i)) == UINT64_MAX - i);
    }
}

/* ---- the file ---- */

struct doc_made {
    char id[32];
    size_t count;
    uint64_t hash[20], key[BANDS];
    uint8_t sketch[64];
};

static void make_doc(struct doc_made *d, uint64_t n)
{
    snprintf(d->id, sizeof d->id, "document %llu", (unsigned long long)n);
    d->count = n % 20;
    for (size_t i = 0; i < d->count; i++)
        d->hash[i] = hash_mix64(n * 100 + i);
    for (int k = 0; k < BANDS; k++)
        d->key[k] = hash_mix64(n / (uint64_t)(k + 2) + (uint64_t)k);
    memset(d->sketch, 0, sizeof d->sketch);
    for (int k = 0; k < BANDS * ROWS; k++)
        d->sketch[k] = (uint8_t)hash_mix64(n + (uint64_t)k);
}

/* Documents [from, to) with a set file. */
static void write_index(const char *name, uint64_t from, uint64_t to)
{
    struct index_out *x;
    struct index_out_conf c = {.path = name, .kind = KIND, .bands = BANDS, .rows = ROWS, .sets = true, .memory = 1 << 16};
    struct file_group files = {0};
    struct err e;

    assert_int_equal(index_out_create(&x, &c, &e), 0);
    for (uint64_t n = from; n < to; n++) {
        struct doc_made d;
        make_doc(&d, n);
        assert_int_equal(index_out_put(x, span_of(d.id), (struct span){0}, d.hash, d.count,
                                       d.count ? &(struct band_record){d.key, d.sketch} : NULL, &e), 0);
    }
    assert_int_equal(index_out_end(x, 0, &files, &e), 0);
    assert_int_equal(file_group_commit(&files, &e), 0);
}

static int count_entry(void *to, struct index_entry x, struct err *e)
{
    uint64_t *n = to;

    (void)x, (void)e;
    ++*n;
    return 0;
}

/* Reads all there is but the set file.  1: it is no index. */
static int read_all(const char *name, struct err *e)
{
    struct dedup_index *x;
    struct index_cursor *c = NULL;
    struct index_doc d;
    struct buf b = {0};
    uint64_t entries = 0;
    int rc = dedup_index_open(&x, name, e);

    if (rc != 1)
        return rc < 0 ? rc : 1;
    rc = 0;
    for (uint64_t n = 0; n < x->docs && rc == 0; n++)
        rc = dedup_index_doc(x, n, &d, &b, e);
    if (rc == 0)
        rc = index_cursor_new(&c, &x->tree, e);
    if (rc == 0)
        rc = index_cursor_all(c, count_entry, &entries, e);
    index_cursor_free(c);
    buf_free(&b);
    dedup_index_close(x);
    return rc;
}

static void holds(const char *name, uint64_t from, uint64_t to)
{
    struct dedup_index *x;
    struct index_shingles *s;
    struct index_cursor *c;
    struct index_doc d;
    struct buf b = {0};
    struct err e;

    assert_int_equal(dedup_index_open(&x, name, &e), 1);
    assert_string_equal(x->kind, KIND);
    assert_int_equal(x->docs, to - from);
    assert_int_equal(index_sources_check(x, &e), 0);
    assert_int_equal(index_shingles_new(&s, NULL, &e), 0);
    assert_int_equal(index_cursor_new(&c, &x->tree, &e), 0);
    for (uint64_t n = 0; n < x->docs; n++) {
        struct doc_made want;
        const uint64_t *hash;

        make_doc(&want, from + n);
        assert_int_equal(dedup_index_doc(x, n, &d, &b, &e), 0);
        assert_true(span_is(d.id, want.id) && d.count == want.count);
        if (!d.count)
            continue;
        assert_memory_equal(d.sketch, want.sketch, BANDS * ROWS);
        assert_int_equal(index_shingles_of(s, x, &d, &hash, &e), 0);
        assert_memory_equal(hash, want.hash, want.count * sizeof *hash);
        for (int k = 0; k < BANDS; k++) {
            uint64_t found = 0, same = 0;

            for (uint64_t o = from; o < to; o++) {
                struct doc_made other;
                make_doc(&other, o);
                same += other.count && other.key[k] == want.key[k];
            }
            assert_int_equal(index_cursor_find(c, dedup_band_mix(want.key[k], k), count_entry, &found, &e), 0);
            assert_int_equal(found, same);
        }
    }
    index_cursor_free(c);
    index_shingles_free(s);
    buf_free(&b);
    dedup_index_close(x);
}

static void remove_index(const char *name)
{
    char sets[160];

    snprintf(sets, sizeof sets, "%s.sets", name);
    unlink(name);
    unlink(sets);
}

static void an_index_has_what_was_put_in(void **state)
{
    char a[128], b[128], m[128], *both[] = {a, b};
    struct err e;

    (void)state;
    snprintf(a, sizeof a, "%s", path("a"));
    snprintf(b, sizeof b, "%s", path("b"));
    snprintf(m, sizeof m, "%s", path("merged"));
    write_index(a, 0, 120);
    write_index(b, 120, DOCS);
    holds(a, 0, 120);
    holds(b, 120, DOCS);
    assert_int_equal(dedup_index_merge(m, both, 2, NULL, 1 << 16, &e), 0);
    holds(m, 0, DOCS);
    write_index(b, 5, 5);
    holds(b, 5, 5);
    assert_int_equal(dedup_index_merge(m, both, 2, NULL, 1 << 16, &e), 0);
    holds(m, 0, 120);
    remove_index(a);
    remove_index(b);
    remove_index(m);
}

static void put_file(const char *name, const char *p, size_t n)
{
    FILE *f = fopen(name, "wb");

    assert_true(f && fwrite(p, 1, n, f) == n && fclose(f) == 0);
}

/* Of a whole reading nothing escapes but zeros before the pages. */
static void every_byte_counts(void **state)
{
    const char *name = path("bytes");
    struct buf b = {0};
    size_t unseen = 0;
    struct err e;

    (void)state;
    write_index(name, 0, 20);
    assert_int_equal(file_read_all(name, 1 << 20, &b, &e), 0);
    for (size_t i = 0; i < b.n; i++) {
        char was = b.p[i];
        int rc;

        b.p[i] ^= 0x11;
        put_file(name, b.p, b.n);
        rc = read_all(name, &e);
        if (rc == 0) {
            assert_int_equal(was, 0);
            unseen++;
        } else if (rc < 0) {
            assert_non_null(strstr(e.msg, name));
        } else {
            assert_true(i < 14); /* the first line: some other file */
        }
        b.p[i] = was;
    }
    assert_true(unseen < INDEX_PAGE);
    for (size_t n = 20; n < b.n; n += 7) {
        put_file(name, b.p, n);
        assert_true(read_all(name, &e) < 0);
    }
    put_file(name, b.p, b.n);
    assert_int_equal(read_all(name, &e), 0);
    buf_free(&b);
    remove_index(name);
}

static void other_shingles_are_refused(void **state)
{
    char name[128], sets[160];
    struct dedup_index *x;
    struct index_shingles *s;
    struct index_doc d;
    struct buf b = {0}, bytes = {0};
    const uint64_t *hash;
    struct err e;

    (void)state;
    snprintf(name, sizeof name, "%s", path("other"));
    snprintf(sets, sizeof sets, "%s.sets", name);
    write_index(name, 0, 20);
    assert_int_equal(file_read_all(sets, 1 << 20, &bytes, &e), 0);
    bytes.p[16 + 8 + 3] ^= 1; /* of document 2, after one hash of document 1 */
    put_file(sets, bytes.p, bytes.n - 8);
    assert_int_equal(dedup_index_open(&x, name, &e), 1);
    assert_int_equal(index_shingles_new(&s, NULL, &e), 0);
    for (uint64_t n = 1; n < 20; n++) {
        assert_int_equal(dedup_index_doc(x, n, &d, &b, &e), 0);
        if (n != 2 && n != 19) {
            assert_int_equal(index_shingles_of(s, x, &d, &hash, &e), 0);
            continue;
        }
        assert_int_equal(index_shingles_of(s, x, &d, &hash, &e), ERR_FORMAT);
        assert_non_null(strstr(e.msg, n == 2 ? ".sets' does not have at byte 24" : "the file ends before"));
    }
    index_shingles_free(s);
    dedup_index_close(x);
    unlink(sets);
    assert_int_equal(dedup_index_open(&x, name, &e), 1);
    assert_int_equal(index_sources_check(x, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "--no-verify"));
    dedup_index_close(x);
    buf_free(&b);
    buf_free(&bytes);
    remove_index(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_has_what_was_put_in),
        cmocka_unit_test(few_keys_read_few_pages),
        cmocka_unit_test(pairs_are_sorted),
        cmocka_unit_test(mixing_has_a_way_back),
        cmocka_unit_test(an_index_has_what_was_put_in),
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(other_shingles_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
