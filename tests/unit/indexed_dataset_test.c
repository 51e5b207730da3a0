/* .bin and .idx: byte for byte Megatron's, read by a reader of the test's own, damaged
 * in many ways; and GPT samples against what megatron-core drew (tests/record/). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "indexed_dataset/gpt_dataset.h"
#include "indexed_dataset/idx_copy.h"
#include "indexed_dataset/idx_read.h"
#include "indexed_dataset/idx_write.h"
#include "indexed_dataset/md5.h"
#include "indexed_dataset/sft_dataset.h"
#include "tests/temp_folder.h"

static struct buf recorded; /* tests/data/indexed_dataset/megatron.txt */

static struct buf slurp(const char *path)
{
    struct buf b = {0};
    FILE *f = fopen(path, "rb");
    char piece[65536];
    size_t n;

    if (!f)
        fail_msg("no file '%s'", path);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        buf_put(&b, piece, n);
    buf_reserve(&b, 1);
    fclose(f);
    return b;
}

static void assert_md5(const char *path, const char *want)
{
    struct buf b = slurp(path);
    char got[33];

    md5_hex(buf_span(&b), got);
    buf_free(&b);
    if (strcmp(got, want) != 0)
        fail_msg("'%s' has MD5 %s, not %s", path, got, want);
}

/* Splits a line at tabs, in place; returns the number of fields. */
static int fields(char *line, char *field[8])
{
    int n = 0;

    for (char *p = strtok(line, "\t\n"); p && n < 8; p = strtok(NULL, "\t\n"))
        field[n++] = p;
    return n;
}

/* Knuth's MMIX generator, as in tests/record/megatron_dataset.py. */
static uint32_t below(uint64_t *x, uint32_t n)
{
    *x = *x * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)((*x >> 33) % n);
}

static void make(const char *name, uint64_t seed, int docs, uint32_t longest, int dtype)
{
    static uint32_t ids[4096];
    uint32_t top = dtype == IDX_U16 ? 60000 : 200000;
    struct idx_writer *w;
    struct err e;

    assert_int_equal(idx_create(&w, name, (enum idx_dtype)dtype, &e), 0);
    for (int d = 0; d < docs; d++) {
        uint32_t n = below(&seed, longest + 1);
        for (uint32_t i = 0; i < n; i++)
            ids[i] = below(&seed, top);
        if (d % 5 == 4 && n >= 3) { /* two sequences */
            static uint16_t narrow[4096];
            int32_t lengths[2] = {(int32_t)(n / 3), (int32_t)(n - n / 3)};
            uint64_t end = 2;
            for (uint32_t i = 0; i < n; i++)
                narrow[i] = (uint16_t)ids[i];
            assert_int_equal(idx_add_block(w, dtype == IDX_U16 ? (void *)narrow : (void *)ids, lengths, 2,
                                           &end, 1, &e), 0);
        } else {
            assert_int_equal(idx_add_document(w, ids, n, &e), 0);
        }
    }
    assert_int_equal(idx_totals(w).documents, docs);
    assert_int_equal(idx_commit(w, (struct span){0}, &e), 0);
}

/* The datasets of the recording, made anew: same bytes as Megatron's builder wrote. */
static void writes_the_bytes_that_megatron_writes(void **s)
{
    struct buf text = {0};
    int n = 0;

    (void)s;
    buf_put_span(&text, buf_span(&recorded));
    for (char *line = text.p, *next; line && *line; line = next) {
        char *f[8], path[64];
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (strncmp(line, "dataset\t", 8) != 0)
            continue;
        assert_int_equal(fields(line, f), 8);
        make(f[1], strtoull(f[2], NULL, 10), atoi(f[3]), (uint32_t)atoi(f[4]), atoi(f[5]));
        snprintf(path, sizeof path, "%s.bin", f[1]);
        assert_md5(path, f[6]);
        snprintf(path, sizeof path, "%s.idx", f[1]);
        assert_md5(path, f[7]);
        n++;
    }
    assert_int_equal(n, 4);
    buf_free(&text);
}

/* ---- what megatron-core drew ---- */

static int words(char *text, const char **word)
{
    int n = 0;
    char *save;

    for (char *p = strtok_r(text, " ", &save); p; p = strtok_r(NULL, " ", &save))
        word[n++] = p;
    return n;
}

/* Opens the case that the fields describe. */
static void open_case(char **f, const char *cache, struct gpt_dataset *d[GPT_SPLITS], int64_t *seq)
{
    static const char *word[GPT_SPLITS][64];
    struct gpt_conf c = {0};
    struct err e;
    long a, b, t;

    assert_int_equal(sscanf(f[4], "%ld,%ld,%ld", &a, &b, &t), 3);
    c.seq_length = *seq = atoi(f[2]);
    c.seed = (uint32_t)strtoul(f[3], NULL, 10);
    c.samples[0] = a;
    c.samples[1] = b;
    c.samples[2] = t;
    c.cache = cache;
    c.tokenizer = f[6];
    if (strcmp(f[5], "-") != 0) {
        c.split = f[5];
        c.paths = (struct gpt_paths){word[0], words(f[7], word[0])};
    } else {
        char *p = f[7];
        for (int i = 0; i < GPT_SPLITS; i++) {
            char *bar = strchr(p, '|');
            if (bar)
                *bar = '\0';
            c.split_paths[i] = (struct gpt_paths){word[i], words(p, word[i])};
            p = bar ? bar + 1 : p + strlen(p);
        }
    }
    if (gpt_dataset_open(d, &c, &e) < 0)
        fail_msg("case %s: %s", f[1], e.msg);
}

static void assert_drawn(const struct gpt_dataset *d, int64_t seq, const char *n, const char *want)
{
    struct buf all = {0};
    struct err e;
    char got[33];

    assert_non_null(d);
    assert_int_equal(gpt_dataset_samples(d), atol(n));
    for (int64_t i = 0; i < gpt_dataset_samples(d) && i < 200; i++) {
        size_t bytes = (size_t)(seq + 1) * sizeof(int32_t);
        assert_int_equal(buf_reserve(&all, bytes), 0);
        if (gpt_dataset_get(d, i, (int32_t *)(void *)(all.p + all.n), &e) < 0)
            fail_msg("%s", e.msg);
        all.n += bytes;
    }
    md5_hex(buf_span(&all), got);
    assert_string_equal(got, want);
    buf_free(&all);
}

static int count_files(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *x;
    int n = 0;

    while (d && (x = readdir(d)))
        n += x->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* Runs all cases; with a cache its files are compared too. */
static void run_cases(const char *cache_name)
{
    struct gpt_dataset *d[GPT_SPLITS] = {0};
    struct buf text = {0};
    char cache[64] = "", path[512];
    int cases = 0, files = 0;
    int64_t seq = 0;

    buf_put_span(&text, buf_span(&recorded));
    for (char *line = text.p, *next; line && *line; line = next) {
        char *f[8] = {0};
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        fields(line, f);
        if (strcmp(f[0], "case") == 0) {
            for (int i = 0; i < GPT_SPLITS; i++)
                gpt_dataset_close(d[i]);
            if (cache_name && cases)
                assert_int_equal(count_files(cache), files);
            snprintf(cache, sizeof cache, "%s/%s", cache_name ? cache_name : "", f[1]);
            open_case(f, cache_name ? cache : NULL, d, &seq);
            cases++;
            files = 0;
        } else if (strcmp(f[0], "file") == 0 && cache_name) {
            snprintf(path, sizeof path, "%s/%s", cache, f[2]);
            assert_md5(path, f[3]);
            files++;
        } else if (strcmp(f[0], "drawn") == 0) {
            int i = strcmp(f[2], "train") == 0 ? 0 : strcmp(f[2], "valid") == 0 ? 1 : 2;
            assert_drawn(d[i], seq, f[3], f[4]);
        }
    }
    for (int i = 0; i < GPT_SPLITS; i++)
        gpt_dataset_close(d[i]);
    assert_true(cases >= 20);
    buf_free(&text);
}

static void draws_the_samples_that_megatron_draws(void **s)
{
    (void)s;
    run_cases(NULL);
}

static void caches_the_files_that_megatron_caches(void **s)
{
    (void)s;
    run_cases("cache/deep"); /* built and written */
    run_cases("cache/deep"); /* read back */
}

static struct gpt_conf one_conf(const char *const *path, const char *cache)
{
    struct gpt_conf c = {.paths = {path, 1}, .split = "1", .seq_length = 16, .samples = {50, 0, 0},
                         .seed = 1, .cache = cache};
    return c;
}

static void a_stale_or_damaged_cache_is_built_anew(void **s)
{
    static const char *const path[] = {"d0"};
    struct gpt_conf c = one_conf(path, "stale");
    struct gpt_dataset *d[GPT_SPLITS];
    int32_t first[17], again[17];
    char victim[4][300];
    struct dirent *x;
    struct err e;
    int n = 0;

    (void)s;
    assert_int_equal(gpt_dataset_open(d, &c, &e), 0);
    assert_null(d[1]);
    assert_int_equal(gpt_dataset_get(d[0], 3, first, &e), 0);
    assert_int_equal(gpt_dataset_get(d[0], gpt_dataset_samples(d[0]), first, &e), ERR_ARG);
    assert_int_equal(gpt_dataset_get(d[0], -1, first, &e), ERR_ARG);
    gpt_dataset_close(d[0]);
    DIR *folder = opendir("stale");
    while ((x = readdir(folder)))
        if (strstr(x->d_name, ".npy"))
            snprintf(victim[n++], sizeof victim[0], "stale/%s", x->d_name);
    closedir(folder);
    assert_int_equal(n, 3);
    for (int i = 0; i < 6; i++) {
        struct buf b = slurp(victim[i % 3]);
        struct span cut = {b.p, i < 3 ? b.n / 2 : b.n};
        if (i >= 3)
            b.p[20] = '9'; /* another dtype */
        spew(victim[i % 3], cut.p, cut.n);
        assert_int_equal(gpt_dataset_open(d, &c, &e), 0);
        assert_int_equal(gpt_dataset_get(d[0], 3, again, &e), 0);
        assert_memory_equal(first, again, sizeof first);
        gpt_dataset_close(d[0]);
        buf_free(&b);
    }
    for (int i = 0; i < 3; i++) { /* right shape, wrong values: an error or tokens, no fault */
        struct buf b = slurp(victim[i]);
        memset(b.p + 128, 0x7f, b.n - 128);
        spew(victim[i], b.p, b.n);
        assert_int_equal(gpt_dataset_open(d, &c, &e), 0);
        assert_int_equal(gpt_dataset_get(d[0], 3, again, &e), ERR_FORMAT);
        assert_non_null(strstr(e.msg, "remove the cached indices"));
        gpt_dataset_close(d[0]);
        unlink(victim[i]);
        assert_int_equal(gpt_dataset_open(d, &c, &e), 0);
        gpt_dataset_close(d[0]);
        buf_free(&b);
    }
    /* the dataset changes: what was cached before does not count */
    struct timespec tick = {0, 20000000};
    nanosleep(&tick, NULL);
    make("d0", 1, 57, 90, IDX_U16);
    spew(victim[0], "garbage that must not be looked at", 34);
    assert_int_equal(gpt_dataset_open(d, &c, &e), 0);
    assert_int_equal(gpt_dataset_get(d[0], 3, again, &e), 0);
    assert_memory_equal(first, again, sizeof first);
    gpt_dataset_close(d[0]);
}

static void many_processes_share_a_cache(void **s)
{
    static const char *const path[] = {"1", "d0", "2", "d3"};
    struct gpt_conf c = {.paths = {path, 4}, .split = "1", .seq_length = 16, .samples = {900, 0, 0}, .seed = 3};
    struct gpt_dataset *d[GPT_SPLITS];
    int32_t want[17], got[17];
    pid_t pid[6];
    struct err e;

    (void)s;
    assert_int_equal(gpt_dataset_open(d, &c, &e), 0);
    assert_int_equal(gpt_dataset_get(d[0], 800, want, &e), 0);
    gpt_dataset_close(d[0]);
    c.cache = "shared";
    for (int i = 0; i < 6; i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            bool same = freopen("/dev/null", "w", stderr) && gpt_dataset_open(d, &c, &e) == 0 &&
                        gpt_dataset_get(d[0], 800, got, &e) == 0 && memcmp(want, got, sizeof want) == 0;
            _exit(same ? 0 : 1);
        }
    }
    for (int i = 0; i < 6; i++) {
        int status = -1;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_files("shared"), 11); /* two parts, one blend */
    assert_int_equal(system("test -z \"$(ls -A shared | grep '^[.]')\""), 0); /* and no locks or half files */
}

static void threads_change_nothing(void **s)
{
    static const char *const path[] = {"many"};
    struct gpt_dataset *d[2][GPT_SPLITS];
    struct err e;

    (void)s;
    make("many", 11, 70000, 9, IDX_U16);
    for (int i = 0; i < 2; i++) {
        struct gpt_conf c = {.paths = {path, 1}, .split = "1", .seq_length = 7, .samples = {100000, 0, 0}, .seed = 5,
                             .jobs = i ? 4 : 1};
        assert_int_equal(gpt_dataset_open(d[i], &c, &e), 0);
    }
    assert_int_equal(gpt_dataset_samples(d[0][0]), gpt_dataset_samples(d[1][0]));
    for (int64_t i = 0; i < gpt_dataset_samples(d[0][0]); i += 97) {
        int32_t a[8], b[8];
        assert_int_equal(gpt_dataset_get(d[0][0], i, a, &e), 0);
        assert_int_equal(gpt_dataset_get(d[1][0], i, b, &e), 0);
        assert_memory_equal(a, b, sizeof a);
    }
    gpt_dataset_close(d[0][0]);
    gpt_dataset_close(d[1][0]);
}

static void what_makes_no_sense_is_refused(void **s)
{
    static const char *const one[] = {"d0"}, *const mixed[] = {"1", "d0", "x", "d1"},
                      *const zero[] = {"0", "d0", "1", "d1"}, *const nowhere[] = {"nowhere"},
                      *const heavy[] = {"0.999", "d0", "0.001", "d1"};
    struct gpt_dataset *d[GPT_SPLITS];
    struct gpt_conf c;
    struct err e;

    (void)s;
    c = one_conf(one, NULL);
    c.split = "0,0";
    assert_int_equal(gpt_dataset_open(d, &c, &e), ERR_ARG);
    c.split = "1,2,3,4";
    assert_int_equal(gpt_dataset_open(d, &c, &e), ERR_ARG);
    c.split = "1.2.3";
    assert_int_equal(gpt_dataset_open(d, &c, &e), ERR_ARG);
    c.split = "1";
    c.seq_length = 0;
    assert_int_equal(gpt_dataset_open(d, &c, &e), ERR_ARG);
    c.seq_length = 16;
    c.samples[0] = INT64_MAX / 4;
    assert_int_equal(gpt_dataset_open(d, &c, &e), ERR_ARG);
    c = one_conf(nowhere, NULL);
    assert_int_equal(gpt_dataset_open(d, &c, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "nowhere.idx"));
    c.paths = (struct gpt_paths){mixed, 4};
    assert_int_equal(gpt_dataset_open(d, &c, &e), ERR_ARG);
    c.paths = (struct gpt_paths){zero, 4};
    assert_int_equal(gpt_dataset_open(d, &c, &e), ERR_ARG);
    c = one_conf(one, NULL);
    c.tokenizer = "{\"a\":";
    assert_int_equal(gpt_dataset_open(d, &c, &e), ERR_FORMAT);
    c = one_conf(heavy, NULL);
    c.paths.n = 4;
    assert_int_equal(gpt_dataset_open(d, &c, &e), 0);
    gpt_dataset_close(d[0]);
    gpt_dataset_close(NULL);
    for (int i = 0; i < GPT_SPLITS; i++) {
        double lo[3], hi[3];
        assert_int_equal(gpt_split_parse("969, 30, 1", lo, hi, &e), 0);
        assert_true(lo[0] == 0 && hi[0] == 0.969 && lo[1] == hi[0] && lo[2] == hi[1]);
    }
}

/* ---- an independent reader, from the format table ---- */

static uint64_t le(const struct buf *b, size_t at, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes; i-- > 0;)
        v = v << 8 | (uint8_t)b->p[at + (size_t)i];
    return v;
}

static void reads_back_through_an_independent_reader(void **s)
{
    static const int dtypes[] = {IDX_U16, IDX_I32};
    struct err e;

    (void)s;
    for (int k = 0; k < 2; k++) {
        int size = dtypes[k] == IDX_U16 ? 2 : 4;
        struct idx_writer *w;
        struct idx *x;
        uint32_t ids[50];
        uint64_t r = 9, check = 9;

        assert_int_equal(idx_create(&w, "own", (enum idx_dtype)dtypes[k], &e), 0);
        for (uint32_t d = 0; d < 300; d++) {
            uint32_t n = d % 7 == 3 ? 0 : d % 50;
            for (uint32_t i = 0; i < n; i++)
                ids[i] = below(&r, 65000);
            assert_int_equal(idx_add_document(w, ids, n, &e), 0);
        }
        assert_int_equal(idx_commit(w, span_of("\"made_by\":\"test\""), &e), 0);
        struct buf idx = slurp("own.idx"), bin = slurp("own.bin"), sum = slurp("own.sum.json");
        assert_memory_equal(idx.p, "MMIDIDX\0\0", 9);
        assert_int_equal(le(&idx, 9, 8), 1);
        assert_int_equal(le(&idx, 17, 1), dtypes[k]);
        uint64_t S = le(&idx, 18, 8), D = le(&idx, 26, 8), at = 0, seq = 0;
        assert_int_equal(D, 301);
        assert_int_equal(idx.n, 34 + S * 12 + D * 8);
        assert_int_equal(idx_open(&x, "own.bin", &e), 0);
        assert_int_equal(idx_n_documents(x), 300);
        assert_int_equal(idx_n_sequences(x), S);
        for (uint32_t d = 0; d < 300; d++) {
            uint32_t n = d % 7 == 3 ? 0 : d % 50;
            uint64_t a, b;
            assert_int_equal(le(&idx, 34 + S * 12 + d * 8, 8), seq);
            assert_int_equal(idx_document(x, d, &a, &b, &e), 0);
            assert_int_equal(a, seq);
            assert_int_equal(b, seq + (n > 0));
            if (n == 0)
                continue;
            int32_t out[50];
            assert_int_equal(le(&idx, 34 + seq * 4, 4), n);
            assert_int_equal(le(&idx, 34 + S * 4 + seq * 8, 8), at);
            assert_int_equal(idx_tokens_i32(x, seq, 0, n, out, &e), 0);
            for (uint32_t i = 0; i < n; i++) {
                uint32_t id = below(&check, 65000);
                assert_int_equal(le(&bin, at + i * (unsigned)size, size), id);
                assert_int_equal(out[i], id);
            }
            at += n * (unsigned)size;
            seq++;
        }
        assert_int_equal(le(&idx, 34 + S * 12 + 300 * 8, 8), S);
        assert_int_equal(bin.n, at);
        assert_non_null(strstr(sum.p, "\"made_by\":\"test\""));
        idx_close(x);
        buf_free(&idx);
        buf_free(&bin);
        buf_free(&sum);
    }
}

static void the_writer_refuses_what_does_not_fit(void **s)
{
    static const uint32_t ids[] = {1, 65536, 3};
    int32_t lengths[2] = {2, -1};
    uint64_t ends[2] = {2, 1};
    struct idx_writer *w;
    struct stat st;
    struct err e;

    (void)s;
    assert_int_equal(idx_dtype_for_vocab(65499), IDX_U16);
    assert_int_equal(idx_dtype_for_vocab(65500), IDX_I32);
    assert_int_equal(idx_create(&w, "refused", IDX_U16, &e), 0);
    assert_int_equal(idx_add_document(w, ids, 3, &e), ERR_ARG);
    assert_non_null(strstr(e.msg, "65536 does not fit uint16"));
    idx_abort(w);
    assert_int_equal(idx_create(&w, "refused", IDX_I32, &e), 0);
    assert_int_equal(idx_add_block(w, ids, lengths, 2, NULL, 0, &e), ERR_ARG);
    idx_abort(w);
    assert_int_equal(idx_create(&w, "refused", IDX_I32, &e), 0);
    lengths[1] = 1;
    assert_int_equal(idx_add_block(w, ids, lengths, 2, ends, 2, &e), ERR_ARG);
    idx_abort(w);
    assert_int_equal(idx_create(&w, "no/folder/here", IDX_I32, &e), ERR_IO);
    assert_true(stat("refused.bin", &st) < 0);
    assert_true(stat("refused.idx", &st) < 0);
    assert_true(stat(".refused.bin.part", &st) < 0);
    idx_abort(NULL);
}

static void a_full_disk_leaves_the_old_dataset(void **s)
{
    struct rlimit old, small;
    struct idx_writer *w;
    struct idx_report r;
    struct idx *x;
    struct err e;
    int rc = 0;

    (void)s;
    make("disk", 5, 10, 20, IDX_U16);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){1 << 16, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    rc = idx_create(&w, "disk", IDX_I32, &e);
    static uint32_t ids[4000];
    for (int i = 0; i < 100 && rc == 0; i++)
        rc = idx_add_document(w, ids, 4000, &e);
    if (rc == 0)
        rc = idx_commit(w, (struct span){0}, &e);
    else
        idx_abort(w);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(rc, ERR_IO);
    assert_non_null(strstr(e.msg, "disk.bin"));
    assert_int_equal(idx_open(&x, "disk", &e), 0);
    assert_int_equal(idx_verify(x, 60000, 1, &r, &e), 0);
    assert_int_equal(idx_n_documents(x), 10);
    assert_true(r.sums);
    idx_close(x);
}

/* ---- damage ---- */

static void use_everything(struct idx *x)
{
    int32_t out[64];
    struct idx_report r;
    struct err e;

    for (uint64_t i = 0; i < idx_n_sequences(x) && i < 1000; i++) {
        const void *p;
        int32_t n;
        if (idx_sequence(x, i, &p, &n, &e) == 0 && n)
            idx_tokens_i32(x, i, n > 64 ? n - 64 : 0, n > 64 ? 64 : n, out, &e);
    }
    for (uint64_t d = 0; d < idx_n_documents(x) && d < 1000; d++) {
        uint64_t a, b;
        if (idx_document(x, d, &a, &b, &e) == 0)
            assert_true(a <= b && b <= idx_n_sequences(x));
    }
    idx_verify(x, 60000, 1, &r, &e);
}

static void flipped_bytes_are_found_and_harm_nobody(void **s)
{
    struct buf idx, bin;
    struct rng_mt r;
    struct idx_report report;
    struct idx *x;
    struct err e;

    (void)s;
    make("flip", 6, 200, 30, IDX_U16);
    idx = slurp("flip.idx");
    bin = slurp("flip.bin");
    rng_mt_seed(&r, 1);
    for (int round = 0; round < 400; round++) {
        struct buf *victim = round % 4 == 3 ? &bin : &idx;
        size_t at = (size_t)rng_mt_interval(&r, victim->n - 1);
        char was = victim->p[at];
        const char *path = victim == &bin ? "flip.bin" : "flip.idx";

        victim->p[at] ^= (char)(1 + rng_mt_interval(&r, 254));
        spew(path, victim->p, victim->n);
        int rc = idx_open(&x, "flip", &e);
        if (rc == 0) {
            use_everything(x);
            rc = idx_verify(x, 0, 1, &report, &e);
            idx_close(x);
        }
        assert_true(rc == ERR_FORMAT || rc == ERR_UNSUPPORTED);
        assert_non_null(strstr(e.msg, path));
        assert_non_null(strstr(e.msg, "at byte"));
        victim->p[at] = was;
        spew(path, victim->p, victim->n);
    }
    assert_int_equal(idx_open(&x, "flip", &e), 0);
    assert_int_equal(idx_verify(x, 60000, 2, &report, &e), 0);
    assert_true(report.max_id < 60000 && report.max_id > 1000);
    assert_int_equal(idx_verify(x, report.max_id, 2, &report, &e), ERR_FORMAT);
    assert_non_null(strstr(e.msg, "flip.bin' at byte"));
    idx_close(x);

    /* without checksums, in memory: many bytes at once, cut files */
    for (int round = 0; round < 2000; round++) {
        struct buf a = {0};
        buf_put_span(&a, buf_span(&idx));
        for (uint64_t k = rng_mt_interval(&r, 20) + 1; k > 0; k--)
            a.p[rng_mt_interval(&r, k % 2 ? 33 : a.n - 1)] = (char)rng_mt_u32(&r);
        size_t n = round % 3 ? a.n : (size_t)rng_mt_interval(&r, a.n);
        if (idx_open_mem(&x, (uint8_t *)a.p, n, (uint8_t *)bin.p, bin.n, &e) == 0) {
            use_everything(x);
            idx_close(x);
        }
        buf_free(&a);
    }
    buf_free(&idx);
    buf_free(&bin);
}

/* ---- merge ---- */

static void merged_parts_are_one_dataset(void **s)
{
    static const char *const parts[] = {"d0", "d2", "d0"}, *const odd[] = {"d0", "d1"};
    struct idx *m, *p;
    struct idx_report r;
    struct err e;
    uint64_t doc = 0, seq = 0;

    (void)s;
    assert_int_equal(idx_merge("merged", parts, 3, &e), 0);
    assert_int_equal(idx_open(&m, "merged", &e), 0);
    assert_int_equal(idx_verify(m, 60000, 2, &r, &e), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(idx_open(&p, parts[i], &e), 0);
        for (uint64_t d = 0; d < idx_n_documents(p); d++, doc++) {
            uint64_t a, b, c, z;
            assert_int_equal(idx_document(p, d, &a, &b, &e), 0);
            assert_int_equal(idx_document(m, doc, &c, &z, &e), 0);
            assert_int_equal(b - a, z - c);
            for (; a < b; a++, seq++) {
                const void *x, *y;
                int32_t n, k;
                assert_int_equal(idx_sequence(p, a, &x, &n, &e), 0);
                assert_int_equal(idx_sequence(m, seq, &y, &k, &e), 0);
                assert_int_equal(n, k);
                assert_memory_equal(x, y, (size_t)n * 2);
            }
        }
        idx_close(p);
    }
    assert_int_equal(doc, idx_n_documents(m));
    assert_int_equal(seq, idx_n_sequences(m));
    idx_close(m);
    assert_int_equal(idx_merge("merged2", odd, 2, &e), ERR_ARG);
    assert_non_null(strstr(e.msg, "int32"));
    assert_int_equal(idx_merge("d0", parts, 3, &e), ERR_ARG);
    assert_int_equal(access("merged2.bin", F_OK), -1);
}

static void md5_is_md5(void **s)
{
    char h[33];
    char a[200];

    (void)s;
    md5_hex(span_of(""), h);
    assert_string_equal(h, "d41d8cd98f00b204e9800998ecf8427e");
    md5_hex(span_of("abcdefghijklmnopqrstuvwxyz"), h);
    assert_string_equal(h, "c3fcd3d76192e4007dfb496cca67e13b");
    memset(a, 'a', sizeof a);
    md5_hex((struct span){a, 56}, h);
    assert_string_equal(h, "3b0c8ac703f828b04c6c197006d17218");
    md5_hex((struct span){a, 64}, h);
    assert_string_equal(h, "014842d480b571495a4a0363793f7367");
}

static int set_up(void **s)
{
    recorded = slurp("tests/data/indexed_dataset/megatron.txt");
    buf_putc(&recorded, '\0');
    recorded.n--;
    return make_dir(s) == 0 && chdir(dir) == 0 ? 0 : -1;
}
static int tear_down(void **s)
{
    buf_free(&recorded);
    return remove_dir(s);
}

/* TRL's own example of its packing, and one in which equal rooms are filled oldest first. */
static void documents_are_packed_by_best_fit(void **state)
{
    static const struct {
        int32_t length[8], room;
        int64_t n, order[8], first[8], bins;
    } cases[] = {
        {{4, 2, 3, 1}, 4, 4, {0, 2, 3, 1}, {0, 1, 3, 4}, 3},
        {{6, 6, 2, 2, 3, 1}, 8, 6, {0, 2, 1, 3, 4, 5}, {0, 2, 4, 6}, 3},
        {{0}, 4, 0, {0}, {0}, 0},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t order[8], first[8], bins;

        assert_int_equal(sft_pack(cases[c].length, cases[c].n, cases[c].room, order, first, &bins, NULL), 0);
        assert_int_equal(bins, cases[c].bins);
        assert_memory_equal(order, cases[c].order, (size_t)cases[c].n * sizeof *order);
        assert_memory_equal(first, cases[c].first, (size_t)(bins + 1) * sizeof *first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_the_bytes_that_megatron_writes),
        cmocka_unit_test(draws_the_samples_that_megatron_draws),
        cmocka_unit_test(caches_the_files_that_megatron_caches),
        cmocka_unit_test(a_stale_or_damaged_cache_is_built_anew),
        cmocka_unit_test(many_processes_share_a_cache),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(reads_back_through_an_independent_reader),
        cmocka_unit_test(the_writer_refuses_what_does_not_fit),
        cmocka_unit_test(a_full_disk_leaves_the_old_dataset),
        cmocka_unit_test(flipped_bytes_are_found_and_harm_nobody),
        cmocka_unit_test(merged_parts_are_one_dataset),
        cmocka_unit_test(documents_are_packed_by_best_fit),
        cmocka_unit_test(md5_is_md5),
    };
    return cmocka_run_group_tests_name("indexed_dataset", tests, set_up, tear_down);
}
