/* Index files of deduplication.  The first byte says how: any bytes as a file; an index with one change, which
 * must be seen; or any notes under right checksums, which both kinds of deduplication take or refuse. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "curate/dedup/dedup_exact.h"
#include "curate/dedup/dedup_fuzzy.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heard h;
    struct err e;

    if (!size)
        return 0;
    if (data[0] % 4 == 0)
        taken(data, size);
    else if (data[0] % 4 == 1)
        damaged(data, size);
    else {
        put_file(data + 1, size - 1);
        read_index(&h, &e);
    }
    unlink(path());
    return 0;
}
