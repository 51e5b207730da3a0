/* Index files of deduplication.  The first byte says how: any bytes as a file; an index with one change, which must be seen;
 * any notes under right checksums, which both kinds of deduplication take or refuse; or an index of near-duplicates whose
 * parts are any bytes under right checksums. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "curate/dedup/dedup_exact.h"
#include "curate/dedup/dedup_fuzzy.h"
#include "curate/dedup/dedup_fuzzy_note.h"
#include "curate/dedup/index_format.h"
#include "curate/stream/note_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char KIND[] = "dedup exact normalize=none";

static void check(bool holds)
{
    if (!holds)
        abort();
}

static const char *path(void)
{
    static char p[64];

    if (!p[0])
        snprintf(p, sizeof p, "/dev/shm/dedup-index-fuzz-%ld", (long)getpid());
    return p;
}

static void put_file(const void *p, size_t n)
{
    FILE *f = fopen(path(), "wb");

    check(f && fwrite(p, 1, n, f) == n && fclose(f) == 0);
}

struct heard {
    uint64_t notes, hash;
};

static int hear(void *to, struct span note, struct err *e)
{
    struct heard *h = to;

    (void)e;
    h->notes++;
    h->hash = hash_mix64(h->hash ^ hash_xxh3_64(note));
    return 0;
}

static int read_index(struct heard *h, struct err *e)
{
    struct dedup_exact_conf conf;
    struct stage st;
    int rc;

    *h = (struct heard){0};
    *e = (struct err){0};
    dedup_exact_conf_init(&conf);
    check(dedup_exact_stage_open(&st, &conf, e) == 0);
    rc = notes_of(path(), &st, KIND, 1, hear, h, e);
    st.ops->close(st.state);
    return rc;
}

/* Notes of the lengths and bytes that the input has: a byte of length each. */
static void seal(const char *kind, const uint8_t *p, size_t n)
{
    struct file_group files = {0};
    struct note_index *x;
    struct err e;

    check(note_index_create(&x, path(), kind, &e) == 0);
    while (n) {
        size_t len = p[0] < n ? p[0] : n - 1;
        check(note_index_put(x, (struct span){(const char *)p + 1, len}, &e) == 0);
        p += 1 + len;
        n -= 1 + len;
    }
    check(note_index_finish(x, &files, &e) == 0 && file_group_commit(&files, &e) == 0);
}

static size_t get_file(uint8_t **p)
{
    FILE *f = fopen(path(), "rb");
    long n = 0;

    check(f && fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0);
    *p = malloc((size_t)n + 1);
    check(*p && fread(*p, 1, (size_t)n, f) == (size_t)n && fclose(f) == 0);
    return (size_t)n;
}

/* Cut, changed or longer: refused, with its name.  (A change of the first line makes it a file of documents.) */
static void damaged(const uint8_t *data, size_t size)
{
    size_t at, n, first = strlen("quern-index 1\n");
    struct heard whole, now;
    uint8_t *p;
    struct err e;

    if (size < 5)
        return;
    seal(KIND, data + 4, size - 4);
    check(read_index(&whole, &e) == 0);
    n = get_file(&p);
    at = first + (size_t)(data[1] | data[2] << 8) % (n - first);
    if (data[0] & 4) {
        put_file(p, at);
    } else if (data[3]) {
        p[at] ^= data[3];
        put_file(p, n);
    } else {
        p[n] = data[1];
        put_file(p, n + 1);
    }
    free(p);
    check(read_index(&now, &e) == ERR_FORMAT && strstr(e.msg, path()));
}

static void taken(const uint8_t *data, size_t size)
{
    struct dedup_exact_conf exact;
    struct dedup_fuzzy_conf fuzzy;
    struct opt_list against = {0};
    struct stage st;
    struct err e = {0};
    bool is_exact = data[0] & 4;

    check(opt_list_add(&against, path(), &e) == 0);
    dedup_exact_conf_init(&exact);
    dedup_fuzzy_conf_init(&fuzzy);
    exact.against = fuzzy.against = against;
    exact.memory = 64 << 20;
    fuzzy.bands = fuzzy.rows = 2;
    fuzzy.verify = data[0] & 8;
    fuzzy.report_over = 0;
    exact.dir = fuzzy.dir = "/dev/shm";
    seal(is_exact ? KIND : "dedup fuzzy preset=quern bands=2 rows=2", data + 1, size - 1);
    check((is_exact ? dedup_exact_stage_open(&st, &exact, &e) : dedup_fuzzy_stage_open(&st, &fuzzy, &e)) == 0);
    if (st.ops->resolve(st.state, 1, &e) < 0)
        check(e.msg[0] != '\0');
    st.ops->close(st.state);
    free(against.v);
}

static int hear_entry(void *to, struct index_entry x, struct err *e)
{
    uint64_t *n = to;

    (void)x, (void)e;
    ++*n;
    return 0;
}

/* All of what is an index of near-duplicates, or is not. */
static void read_bands(void)
{
    struct dedup_index *x;
    struct index_cursor *c;
    struct index_doc d;
    struct buf b = {0};
    uint64_t n = 0;
    struct err e = {0};

    if (dedup_index_open(&x, path(), &e) != 1) {
        check(!x);
        return;
    }
    for (uint64_t i = 0; i < x->docs && i < 1000; i++)
        if (dedup_index_doc(x, i, &d, &b, &e) < 0)
            check(strstr(e.msg, path()) != NULL);
    check(index_cursor_new(&c, &x->tree, &e) == 0);
    for (uint64_t i = 0; i < 100; i++)
        if (index_cursor_find(c, hash_mix64(i) >> i % 64, hear_entry, &n, &e) < 0)
            check(strstr(e.msg, path()) != NULL);
    index_cursor_all(c, hear_entry, &n, &e);
    index_cursor_free(c);
    buf_free(&b);
    dedup_index_close(x);
}

/* Documents of the input, two bands of two rows; then its records, pages and trailer get the bytes of the input here and
 * there, and right checksums. */
static void bands(const uint8_t *data, size_t size)
{
    static const char kind[] = "dedup fuzzy preset=quern bands=2 rows=2";
    struct index_out_conf conf = {.path = path(), .kind = kind, .bands = 2, .rows = 2, .dir = "/dev/shm", .memory = 1 << 16};
    struct file_group files = {0};
    struct index_out *x;
    struct index_trailer t;
    uint32_t source;
    uint8_t *p;
    size_t n, lines;
    struct err e;

    check(index_out_create(&x, &conf, &e) == 0 && index_out_add_source(x, INDEX_SETS, "/dev/shm/none", &source, &e) == 0);
    for (size_t i = 0; i < size && i < 400; i++) {
        struct index_doc d = {.id = {(const char *)data, data[i] % 8 < size ? data[i] % 8 : 0}, .count = data[i],
                              .sketch = (const uint8_t *)"abcd"};
        check(index_out_add_doc(x, &d, &e) == 0);
        check(index_out_add_key(x, (struct index_entry){data[i] % 4 ? hash_mix64(data[i]) : 1, 2 * i}, &e) == 0);
    }
    check(index_out_end(x, 0, &files, &e) == 0 && file_group_commit(&files, &e) == 0);
    n = get_file(&p);
    memcpy(&t, p + n - sizeof t, sizeof t);
    for (size_t i = 0; i + 3 < size; i += 4) {
        size_t at = (size_t)(data[i] | data[i + 1] << 8) % n;
        p[at] ^= data[i + 2];
    }
    for (uint64_t i = 0; i < t.docs; i++) { /* checksums of records with their ids as they say */
        struct index_record r;
        uint8_t both[1 << 9];
        uint8_t *record = p + t.docs_at + i * (sizeof r + 4);

        memcpy(&r, record, sizeof r);
        if (r.id_n > 100 || r.id_at > n - 100)
            continue;
        memcpy(both, record, sizeof r + 4);
        memcpy(both + sizeof r + 4, p + r.id_at, r.id_n);
        r.sum = hash_xxh3_64((struct span){(char *)both + 8, sizeof r + 4 - 8 + r.id_n});
        memcpy(record, &r, sizeof r.sum);
    }
    for (size_t at = t.pages_at; at + INDEX_PAGE <= n - sizeof t; at += INDEX_PAGE) {
        uint64_t sum = hash_xxh3_64((struct span){(char *)p + at + 8, INDEX_PAGE - 8});
        memcpy(p + at, &sum, sizeof sum);
    }
    memcpy(&t, p + n - sizeof t, sizeof t);
    lines = strlen(INDEX_MAGIC) + strlen(kind) + 1;
    memcpy(p, INDEX_MAGIC, strlen(INDEX_MAGIC));
    if (memchr(p, '\n', lines) && t.sources_at < n && t.sources_n < n - t.sources_at)
        t.sources_sum = hash_xxh3_64((struct span){(char *)p + t.sources_at, t.sources_n});
    {
        struct buf b = {0};
        check(buf_put(&b, p, lines) == 0 && buf_put(&b, &t, sizeof t - sizeof t.sum) == 0);
        t.sum = hash_xxh3_64(buf_span(&b));
        buf_free(&b);
    }
    memcpy(p + n - sizeof t, &t, sizeof t);
    put_file(p, n);
    free(p);
    read_bands();
}

/* A note of near-duplicates is taken apart alike, whether it is in memory or all but its head in a file. */
static void parsed(const uint8_t *data, size_t size)
{
    struct fuzzy_parts whole = {0}, parts = {0};
    struct spill file = {.fd = -1};
    struct fuzzy_note *h[2];
    struct dedup_bands shape;
    struct arena a = {0};
    struct err e;
    struct span note = arena_dup(&a, (struct span){(const char *)data, size}); /* aligned */
    size_t n = size < NOTE_HEAD ? 0 : size - NOTE_HEAD;
    struct spill_part rest = {&file, 8, n};
    int rc[2];

    check(note.p && dedup_bands_init(&shape, 2, 2, &e) == 0);
    shape.hash_bytes = data[0] & 32 ? 4 : 8;
    if (n && data[0] & 16) { /* mostly one that is whole */
        union { const char *in; struct fuzzy_note *h; } u = {note.p};

        u.h->count %= 8;
        u.h->id_n %= 16;
        u.h->text_n = n - fuzzy_note_hashes(&shape, u.h->count) - u.h->id_n;
    }
    check(spill_open(&file, "/dev/shm", 64, &e) == 0);
    check(spill_put(&file, "12345678", 8, &e) == 0 && spill_put(&file, note.p + (size - n), n, &e) == 0 &&
          spill_write_out(&file, &e) == 0);
    rc[0] = fuzzy_note_parse(&shape, note, &h[0], &whole, &e);
    rc[1] = fuzzy_note_parse_long(&shape, (struct span){note.p, size - n}, &rest, &a, &h[1], &parts, &e);
    check(rc[0] == rc[1]);
    if (rc[0] == 0) {
        size_t others = (size_t)((const char *)note.p + size - (const char *)whole.record.key);

        check(memcmp(h[0], h[1], sizeof **h) == 0 && whole.has_record == parts.has_record);
        check(parts.hashes.at == rest.at && parts.hashes.n == h[0]->count * shape.hash_bytes);
        check(memcmp(whole.record.key, parts.record.key, others) == 0);
        check(whole.id - (char *)whole.record.key == parts.id - (char *)parts.record.key);
    }
    spill_close(&file);
    dedup_bands_free(&shape);
    arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heard h;
    struct err e;

    if (!size)
        return 0;
    if (data[0] % 8 == 7)
        bands(data + 1, size - 1);
    else if (data[0] % 4 == 0)
        taken(data, size);
    else if (data[0] % 4 == 1)
        damaged(data, size);
    else if (data[0] & 32)
        parsed(data, size);
    else {
        put_file(data + 1, size - 1);
        read_index(&h, &e);
        read_bands();
    }
    unlink(path());
    return 0;
}
