/* Long texts in lines and in one line: what becomes of them, and in how much memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "curate/dedup/dedup_lines.h"
#include "curate/dedup/dedup_note.h"
#include "curate/dedup/dedup_templates.h"
#include "curate/dedup/dedup_text.h"
#include "curate/stream/doc_out.h"
#include "curate/stream/driver.h"
#include "pipelines/curate.h"
#include "tests/sanitized.h"
#include "tests/temp_folder.h"

/* ---- parts ---- */

/* What long units are made of: words, marks, white space and digits of several scripts. */
static const char *const some[] = {
    " ", " ", "the ", "Sea", "ΣΑΣ", "σ ", "İ", "1,000", " 2", ".", ", ", "« ", " »",
    "don't ", "e\u0301", " \u0301a", "漢字", "हिन्दी",
    "\u00a0", "\u3000", "١٢", " z", "\t", "q", "\u2026", "\x01",
};

static char *make_text(uint32_t seed, size_t least, size_t *n)
{
    char *text = malloc(least + 64);
    struct rng_mt r;

    assert_non_null(text);
    rng_mt_seed(&r, seed);
    for (*n = 0; *n < least;) {
        const char *s = some[rng_mt_u64(&r) % (sizeof some / sizeof *some)];

        memcpy(text + *n, s, strlen(s));
        *n += strlen(s);
    }
    return text;
}

static int take_key(void *to, const struct hash128 *key, struct span form, struct err *e)
{
    (void)form, (void)e;
    *(struct hash128 *)to = *key;
    return 0;
}

static struct hash128 key_of(struct dedup_text *t, struct span text, int form, int64_t min, bool whole)
{
    struct hash128 key;
    struct dedup_keys keys = {DEDUP_LINE, (enum dedup_form)form, 1, min, whole, take_key, &key};
    struct err e;

    assert_int_equal(dedup_text_keys(t, text, &keys, &e), 0);
    return key;
}

/* Its form is made in pieces, or whole where all forms are wanted. */
static void a_long_unit_has_the_key_of_the_whole(void **state)
{
    struct dedup_text t;
    struct err e;

    (void)state;
    assert_int_equal(dedup_text_open(&t, &e), 0);
    for (int form = DEDUP_RAW; form <= DEDUP_SIMPLE; form++) {
        int64_t chars = 0; /* that its form has: the greatest bound at which it counts */
        struct span text;
        char *made = make_text((uint32_t)form + 1, 4 << 20, &text.n);
        struct hash128 want, got;

        text.p = made;
        want = key_of(&t, text, form, 0, true);
        assert_true(want.hi);
        for (int64_t step = 4 << 20; step; step /= 2)
            chars += key_of(&t, text, form, chars + step, true).hi ? step : 0;
        assert_true(chars > 1 << 20);
        for (int k = 0; k < 4; k++) {
            got = key_of(&t, text, form, (int64_t[]){0, 1, chars, chars + 1}[k], false);
            assert_int_equal(got.hi, k < 3 ? want.hi : 0);
            assert_int_equal(got.lo, k < 3 ? want.lo : 0);
        }
        free(made);
    }
    dedup_text_close(&t);
}

/* Notes of all lengths, some of them in the file at the same time, some in memory because they are to be whole. */
static void notes_come_back(void **state)
{
    static const size_t length[] = {0, 1, 3000, 70000, 300000, 65536};
    enum { NOTES = sizeof length / sizeof *length };
    struct dedup_note w = {.file.fd = -1};
    struct arena a = {0};
    struct spill_part rest[NOTES];
    struct span note[NOTES];
    struct doc d;
    struct err e;

    (void)state;
    doc_init(&d, &a);
    for (int round = 0; round < 3; round++) {
        for (size_t k = 0; k < NOTES; k++) {
            rest[k] = (struct spill_part){0};
            d.note_rest = round < 2 ? &rest[k] : NULL;
            dedup_note_begin(&w, &d);
            for (uint64_t i = 0; i < length[k]; i++) {
                struct hash128 x = {i, k};
                assert_int_equal(dedup_note_put(&w, &x, sizeof x, &e), 0);
            }
            assert_int_equal(dedup_note_end(&w, &a, &note[k], &e), 0);
            assert_true(rest[k].s ? note[k].n == NOTE_HEAD : note[k].n == NOTE_HEAD + 16 * length[k]);
            assert_int_equal(rest[k].s != NULL, d.note_rest && length[k] > NOTE_LONG / 16);
        }
        for (size_t k = 0; k < NOTES; k++) {
            struct dedup_note_reader r;
            struct hash128 x;
            size_t got;

            assert_int_equal(dedup_note_open(&r, note[k], rest[k].s ? &rest[k] : NULL, &e), 0);
            for (uint64_t i = 0; i < length[k]; i++) {
                assert_int_equal(dedup_note_next(&r, &x, sizeof x, &got, &e), 0);
                assert_true(got == sizeof x && x.lo == i && x.hi == k);
            }
            assert_int_equal(dedup_note_next(&r, &x, sizeof x, &got, &e), 0);
            assert_int_equal(got, 0);
            dedup_note_reader_close(&r);
            assert_int_equal(spill_part_done(&rest[k], &e), 0);
        }
        assert_int_equal(w.file.size, 0); /* nothing of what was read stays on disk */
        arena_reset(&a);
    }
    dedup_note_close(&w);
    arena_free(&a);
}

static int append(void *to, struct span bytes, struct err *e)
{
    (void)e;
    return buf_put_span(to, bytes);
}

/* Lines that came, long fields of others, a text that was set; among short documents. */
static void long_documents_are_written_as_short_ones(void **state)
{
    struct buf line = {0}, want = {0}, got = {0};
    struct json_reader *json = json_reader_new();
    struct doc_out o = {0};
    struct arena a = {0};
    struct err e;

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < 12; k++) {
            struct span text;
            char *made = make_text((uint32_t)k, k & 1 ? 3 << 19 : 100, &text.n);
            struct doc d;

            text.p = made;
            buf_clear(&line);
            assert_int_equal(buf_puts(&line, "{\"text\":"), 0);
            assert_int_equal(json_put_string(&line, text), 0);
            assert_int_equal(buf_puts(&line, ",\"n\":1}"), 0);
            assert_int_equal(buf_reserve(&line, JSON_PADDING), 0);
            doc_init(&d, &a);
            d.file = "in";
            assert_int_equal(doc_parse(&d, json, arena_dup(&a, buf_span(&line)), &e), 0);
            if (k % 3 == 1)
                assert_int_equal(doc_set_num(&d, "n", 2), 0);
            if (k % 3 == 2) {
                assert_non_null(doc_text_bytes(&d));
                assert_int_equal(doc_shorten_text(&d, d.text.n - d.text.n % 7), 0);
            }
            assert_int_equal(doc_write(&d, &want), 0);
            assert_int_equal(doc_out_put(&o, &d), 0);
            free(made);
        }
        assert_true(o.b.n < 1 << 20);
        assert_int_equal(doc_out_size(&o), want.n);
        if (round)
            assert_int_equal(doc_out_join(&o), 0);
        buf_clear(&got);
        assert_int_equal(round ? buf_put_span(&got, buf_span(&o.b)) : doc_out_give(&o, append, &got, &e), 0);
        assert_int_equal(got.n, want.n);
        assert_memory_equal(got.p, want.p, want.n);
        doc_out_clear(&o, 0);
        buf_clear(&want);
        arena_reset(&a);
    }
    doc_out_free(&o);
    json_reader_free(json);
    arena_free(&a);
    buf_free(&line);
    buf_free(&want);
    buf_free(&got);
}

/* ---- whole runs ---- */

enum { LINES = 2000000, MB = 1000000 };

/* Line i of document d: each tenth is that of an earlier one, and documents have the first half in common. */
static int line_of(int d, int i)
{
    int k = i % 10 == 9 ? i / 10 : i;

    return k < LINES / 2 ? k : k + d * LINES;
}

static void put_line(FILE *f, int k, bool first)
{
    char name[10]; /* letters alone, for digits make no difference */

    for (int i = 0; i < 9; i++, k /= 10)
        name[i] = (char)('a' + k % 10);
    fprintf(f, "%s%.9s", first ? "" : "\\n", name);
}

/* Two documents of 20 MB in lines, what is to be left of them, and between them one of 20 MB in a line. */
static void make_input(const char *in, const char *want)
{
    FILE *f[2] = {fopen(in, "w"), fopen(want, "w")};
    bool *seen = calloc(3 * LINES, sizeof *seen);

    assert_true(f[0] && f[1] && seen);
    for (int d = 0; d < 2; d++) {
        bool first = true;

        for (int k = 0; k < 2; k++)
            fprintf(f[k], "{\"id\":\"%d\",\"text\":\"", d);
        for (int i = 0; i < LINES; i++) {
            int line = line_of(d, i);

            put_line(f[0], line, i == 0);
            if (!seen[line])
                put_line(f[1], line, first);
            first &= seen[line];
            seen[line] = true;
        }
        for (int k = 0; k < 2; k++) {
            fprintf(f[k], "\",\"n\":%d}\n", d);
            fprintf(f[k], d ? "" : "{\"text\":\"");
            for (int i = 0; i < 2 * LINES && !d; i++)
                fprintf(f[k], "w%c%c%c%c ", 'a' + i % 23, 'b' + i % 11, 'c' + i % 7, 'd' + i % 19);
            fprintf(f[k], d ? "" : "\"}\n");
        }
    }
    free(seen);
    assert_true(fclose(f[0]) == 0 && fclose(f[1]) == 0);
}

static int run_lines(struct driver_conf *c, struct err *e)
{
    struct dedup_lines_conf conf;
    struct driver_result res;
    struct stage st;
    int rc;

    dedup_lines_conf_init(&conf);
    conf.memory = 16 << 20;
    conf.min_length = 1;
    TRY(dedup_lines_stage_open(&st, &conf, e));
    c->stages = &st;
    c->n_stages = 1;
    rc = driver_run(c, &res, e);
    st.ops->close(st.state);
    return rc;
}

static int run_templates(struct driver_conf *c, struct err *e)
{
    struct dedup_fuzzy_conf conf;
    struct driver_result res;
    struct stage st[2];
    int rc;

    dedup_fuzzy_conf_init(&conf);
    conf.memory = 128 << 20;
    conf.strip_template = 2;
    conf.own_notes = true;
    TRY(dedup_templates_stage_open(&st[0], &conf, e));
    TRY(dedup_fuzzy_stage_open(&st[1], &conf, e));
    c->stages = st;
    c->n_stages = 2;
    rc = driver_run(c, &res, e);
    st[0].ops->close(st[0].state);
    st[1].ops->close(st[1].state);
    return rc;
}

/* A plan of one stage, in the folder. */
static const char *plan_stage;
static int run_plan(struct driver_conf *c, struct err *e)
{
    struct curate_result res;
    struct curate_conf conf;
    struct plan plan;
    FILE *f = fopen(at("plan.yaml"), "w");
    int rc;

    if (!f || fprintf(f, "stages:\n  - %s\noutput: %s\nwork: %s.work\n", plan_stage, c->output, c->output) < 0 || fclose(f))
        return err_set(e, ERR_IO, "cannot write a plan");
    curate_conf_init(&conf);
    conf.jobs = c->jobs;
    conf.plan = &plan;
    conf.again = true;
    TRY(plan_load(&plan, at("plan.yaml"), c->inputs, 1, e));
    rc = plan_settle(&plan, e);
    if (rc == 0)
        rc = curate_run(&conf, &res, e);
    plan_free(&plan);
    return rc;
}

/* Runs it in a process of its own; the most memory that this had, in bytes. */
static uint64_t run(int (*fn)(struct driver_conf *, struct err *), const char *in, const char *out, int jobs)
{
    char *inputs[] = {strdup(in)};
    struct driver_conf c = {.inputs = inputs, .n_inputs = 1, .jobs = jobs, .output = out};
    struct rusage used;
    int status = 0;
    pid_t p = fork();

    assert_non_null(inputs[0]);
    assert_true(p >= 0);
    if (p == 0) {
        struct err e;
        _exit(fn(&c, &e) < 0);
    }
    assert_int_equal(wait4(p, &status, 0, &used), p);
    assert_int_equal(status, 0);
    free(inputs[0]);
    return (uint64_t)used.ru_maxrss << 10;
}

static void assert_same_files(const char *got, const char *want)
{
    FILE *f[2] = {fopen(got, "r"), fopen(want, "r")};
    static char bytes[2][1 << 16];
    size_t n;

    assert_true(f[0] && f[1]);
    do {
        n = fread(bytes[0], 1, sizeof *bytes, f[0]);
        assert_int_equal(fread(bytes[1], 1, sizeof *bytes, f[1]), n);
        assert_memory_equal(bytes[0], bytes[1], n);
    } while (n);
    fclose(f[0]);
    fclose(f[1]);
}

/* Of a document there are its line, 22 MB, and its text, 20 MB; of so short ones each thread has one. */
static void long_texts_are_not_in_memory_many_times(void **state)
{
    static const struct {
        const char *name, *stage; /* NULL: no plan */
        int (*fn)(struct driver_conf *c, struct err *e);
        bool shortens;
        uint64_t mb; /* beside those of each thread */
        int jobs;    /* at most */
    } runs[] = {
        {"lines", NULL, run_lines, true, 35, 2},
        {"texts without a template", NULL, run_templates, false, 35, 2},
        {"lines in a plan", "dedup lines: {memory: 16M, min-length: 1}", run_plan, true, 35, 2},
        {"texts without a template in a plan", "dedup fuzzy: {memory: 128M, strip-template: 2}", run_plan, false, 35, 2},
        {"many shingles in a plan", "dedup fuzzy: {memory: 128M, preset: nemo}", run_plan, false, 60, 1},
    };
    enum { RUNS = sizeof runs / sizeof *runs };
    char in[64], want[64], out[64];
    uint64_t peak[RUNS][2] = {0};

    (void)state;
    snprintf(in, sizeof in, "%s", at("in.jsonl"));
    snprintf(want, sizeof want, "%s", at("want.jsonl"));
    snprintf(out, sizeof out, "%s", at("out.jsonl"));
    make_input(in, want);
    for (int jobs = 1; jobs <= 2; jobs++)
        for (size_t k = 0; k < RUNS && jobs <= runs[k].jobs; k++) {
            plan_stage = runs[k].stage;
            peak[k][jobs - 1] = run(runs[k].fn, in, out, jobs);
            assert_same_files(out, runs[k].shortens ? want : in);
        }
    for (int k = 0; !ASAN && !TSAN && k < 2 * RUNS; k++) /* these take memory of their own */
        if (peak[k / 2][k % 2] > (runs[k / 2].mb + 45 * (1 + (uint64_t)k % 2)) * MB)
            fail_msg("%s take %.0f MB with -j %d", runs[k / 2].name, (double)peak[k / 2][k % 2] / MB, 1 + k % 2);
}

/* 30,000 documents have notes of some 100 MB together. */
static void notes_of_a_plan_are_read_one_after_the_other(void **state)
{
    char in[64], out[64];
    FILE *f = fopen(at("short.jsonl"), "w");
    uint64_t peak;

    (void)state;
    snprintf(in, sizeof in, "%s", at("short.jsonl"));
    snprintf(out, sizeof out, "%s", at("short.out.jsonl"));
    assert_non_null(f);
    for (uint32_t d = 0, x = 1; d < 30000; d++) {
        fprintf(f, "{\"text\":\"");
        for (int i = 0; i < 400; i++, x = x * 1664525u + 1013904223u)
            fprintf(f, "%s%x", i ? " " : "", x >> 16);
        fprintf(f, "\"}\n");
    }
    assert_int_equal(fclose(f), 0);
    plan_stage = "dedup fuzzy: {memory: 128M}";
    peak = run(run_plan, in, out, 1);
    assert_same_files(out, in);
    if (!ASAN && !TSAN && peak > 80 * (uint64_t)MB)
        fail_msg("a plan takes %.0f MB", (double)peak / MB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_texts_are_not_in_memory_many_times), /* first: what others leave in memory would count */
        cmocka_unit_test(notes_of_a_plan_are_read_one_after_the_other),
        cmocka_unit_test(a_long_unit_has_the_key_of_the_whole),
        cmocka_unit_test(notes_come_back),
        cmocka_unit_test(long_documents_are_written_as_short_ones),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
