/* Documents and the stage driver: fields, order, threads, rejects, bad records. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/file.h"
#include "curate/stream/driver.h"
#include "tests/temp_folder.h"

static const char *path(char *buf, const char *name)
{
    sprintf(buf, "%s/%s", dir, name);
    return buf;
}

static struct doc parse(const char *json, struct arena *a, char *line, int *rc, struct err *e)
{
    struct json_reader *r = json_reader_new();
    struct doc d;

    memset(line, 0, 1024);
    strcpy(line, json);
    doc_init(&d, a);
    d.file = "in";
    d.offset = 7;
    *rc = doc_parse(&d, r, span_of(line), e);
    json_reader_free(r);
    return d;
}

static void a_document_keeps_what_nobody_set(void **s)
{
    static const char json[] =
        "{\"a\": [1, {\"x\":\"\\u00e9\"}],\"text\":\"l\\u00ed\\nne\", \"n\":1.50e3 ,\"id\":\"k\"}";
    struct arena a = {0};
    struct buf out = {0};
    char line[1024];
    struct err e;
    int rc;
    struct doc d = parse(json, &a, line, &rc, &e);

    (void)s;
    assert_int_equal(rc, 0);
    assert_true(span_is(d.text, "l\xC3\xAD\nne"));
    assert_true(span_is(d.id, "k"));
    assert_int_equal(doc_write(&d, &out), 0);
    assert_memory_equal(out.p, json, sizeof json - 1);
    assert_int_equal(doc_set_string(&d, "text", span_of("t\"\n")), 0);
    assert_int_equal(doc_set_num(&d, "score", 0.5), 0);
    assert_true(span_is(doc_raw(&d, "text"), "\"t\\\"\\n\""));
    assert_true(span_is(doc_string(&d, "text"), "t\"\n"));
    assert_null(doc_string(&d, "n").p);
    buf_clear(&out);
    assert_int_equal(doc_write(&d, &out), 0);
    assert_string_equal(out.p, "{\"a\":[1, {\"x\":\"\\u00e9\"}],\"text\":\"t\\\"\\n\",\"n\":1.50e3,"
                               "\"id\":\"k\",\"score\":0.5}\n");
    buf_free(&out);
    arena_free(&a);
}

static void a_document_without_id_is_called_by_its_place(void **s)
{
    struct arena a = {0};
    char line[1024];
    struct err e;
    int rc;
    struct doc d = parse("{\"text\":\"x\"}", &a, line, &rc, &e);

    (void)s;
    assert_int_equal(rc, 0);
    assert_true(span_is(d.id, "in:7"));
    d = parse("{\"text\":\"x\",\"id\":12}", &a, line, &rc, &e);
    assert_true(span_is(d.id, "12"));
    arena_free(&a);
}

static void what_is_no_document_is_refused(void **s)
{
    static const char *const bad[] = {"{\"id\":\"x\"}", "{\"text\":1}", "[1]", "{\"text\":\"x\"",
                                      "{\"text\":\"x\",\"id\":[]}", "{\"text\":\"x\"} y", "nonsense"};
    struct arena a = {0};
    char line[1024];
    struct err e;
    int rc;

    (void)s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        parse(bad[i], &a, line, &rc, &e);
        assert_int_equal(rc, ERR_FORMAT);
    }
    arena_free(&a);
}

/* ---- toy stages ---- */

/* Remembers the length and the id. */
static int length_work(void *st, void *th, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    uint64_t *n = arena_alloc(d->arena, sizeof *n + d->id.n);
    (void)st, (void)th, (void)v, (void)e;
    assert_non_null(n);
    *n = d->text.n;
    memcpy(n + 1, d->id.p, d->id.n);
    *note = (struct span){(char *)n, sizeof *n + d->id.n};
    return 0;
}

static int mark_work(void *st, void *th, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    (void)st, (void)th, (void)note, (void)e;
    if (d->text.n % 7 == 0)
        return verdict_drop(v, &(struct stage_rule){.name = "seven"}, (double)d->text.n, 7);
    return doc_set_num(d, "mark", (double)d->text.n);
}
static const struct stage_ops mark_ops = {.name = "mark", .work = mark_work};

static int first_commit(void *st, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                        struct err *e)
{
    uint64_t *seen = st; /* drops each third that it sees: depends on the order */
    (void)reply, (void)e;
    if (++*seen % 3)
        return 0;
    v->survivor = arena_dup(a, (struct span){note.p + 8, note.n - 8});
    return verdict_drop(v, &(struct stage_rule){.name = "third"}, (double)*seen, 3);
}
static const struct stage_ops first_ops = {.name = "first", .work = length_work, .commit = first_commit};

struct late {
    uint64_t n, longest, at;
    int resolved;
};
static int late_commit(void *st, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                       struct err *e)
{
    struct late *l = st;
    uint64_t n;
    (void)v, (void)reply, (void)a, (void)e;
    memcpy(&n, note.p, sizeof n);
    if (n > l->longest) {
        l->longest = n;
        l->at = l->n;
    }
    l->n++;
    return 0;
}
static int late_resolve(void *st, int jobs, struct err *e)
{
    struct late *l = st;
    (void)jobs, (void)e;
    l->resolved++;
    return 0;
}
/* Drops the longest; tells each seventh how many there are. */
static int late_judge(void *st, uint64_t n, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    struct late *l = st;
    (void)e;
    if (n % 7 == 0) {
        *reply = arena_dup(a, (struct span){(char *)&l->n, sizeof l->n});
        assert_non_null(reply->p);
    }
    return n == l->at ? verdict_drop(v, &(struct stage_rule){.name = "longest"}, (double)l->longest, NAN) : 0;
}
static int late_apply(void *st, void *th, struct doc *d, struct span reply, struct verdict *v, struct err *e)
{
    uint64_t n;
    (void)st, (void)th, (void)e;
    memcpy(&n, reply.p, sizeof n);
    if (d->text.n % 5 == 0)
        return verdict_drop(v, &(struct stage_rule){.name = "fifth"}, (double)d->text.n, 5);
    return doc_set_num(d, "of", (double)n);
}
static const struct stage_ops late_ops = {.name = "late", .work = length_work, .commit = late_commit,
                                          .resolve = late_resolve, .judge = late_judge, .apply = late_apply};

static void write_input(const char *name, int n, unsigned seed)
{
    struct buf b = {0};
    char p[128];
    struct err e;

    for (int i = 0; i < n; i++) {
        seed = seed * 1103515245u + 12345u;
        buf_printf(&b, "{\"id\":\"%s-%d\",\"text\":\"", name, i);
        for (unsigned k = 0; k < (seed >> 16 & 1023); k++)
            buf_putc(&b, (char)('a' + (k + (unsigned)i) % 26));
        buf_puts(&b, i % 100 == 50 ? "\n" : "\",\"extra\":[1,2]}\n");
    }
    b.n--; /* the last line has no newline */
    assert_int_equal(file_write_all(path(p, name), buf_span(&b), &e), 0);
    buf_free(&b);
}

static struct driver_result run(int jobs, const char *out, const char *rej, const char *stats)
{
    char in1[128], in2[128], o[128], r[128], st[128];
    char *inputs[2] = {in1, in2};
    uint64_t seen = 0;
    struct late late = {0};
    struct stage stages[] = {{&mark_ops, NULL}, {&first_ops, &seen}, {&late_ops, &late}, {&first_ops, &seen}};
    struct driver_conf c = {.inputs = inputs, .n_inputs = 2, .stages = stages, .n_stages = 4,
                            .jobs = jobs, .output = path(o, out), .rejects = path(r, rej),
                            .stats = path(st, stats)};
    struct driver_result res;
    struct err e = {0};

    path(in1, "in1");
    path(in2, "in2");
    if (driver_run(&c, &res, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(late.resolved, 1);
    return res;
}

static void assert_same(const char *a, const char *b, size_t least)
{
    char pa[128], pb[128];
    struct buf x = {0}, y = {0};
    struct err e;

    assert_int_equal(file_read_all(path(pa, a), 1 << 30, &x, &e), 0);
    assert_int_equal(file_read_all(path(pb, b), 1 << 30, &y, &e), 0);
    assert_true(x.n >= least);
    assert_int_equal(x.n, y.n);
    assert_memory_equal(x.p, y.p, x.n);
    buf_free(&x);
    buf_free(&y);
}

static void same_bytes_for_any_number_of_threads(void **s)
{
    struct driver_result a, b, c;
    char p[128];
    struct buf st = {0};
    struct err e;

    (void)s;
    write_input("in1", 5000, 1);
    write_input("in2", 777, 2);
    a = run(1, "o1", "r1", "s1");
    b = run(2, "o2", "r2", "s2");
    c = run(8, "o8.gz", "r8", "s8");
    assert_int_equal(a.bad, 58);
    assert_int_equal(a.docs_in, 5777 - 58);
    assert_int_equal(a.docs_in, a.docs_out + a.dropped);
    assert_true(a.dropped > 1000 && a.docs_out > 1000);
    assert_memory_equal(&a, &b, offsetof(struct driver_result, seconds));
    assert_memory_equal(&a, &c, offsetof(struct driver_result, seconds));
    assert_same("o1", "o2", 1000000);
    assert_same("o1", "o8.gz", 1000000);
    assert_same("r1", "r2", 10000);
    assert_same("r1", "r8", 10000);
    assert_int_equal(file_read_all(path(p, "s1"), 1 << 20, &st, &e), 0);
    assert_non_null(strstr(st.p, "\"stage\":\"late\""));
    assert_non_null(strstr(st.p, "\"longest\":1"));
    buf_free(&st);
}

static void rejects_say_stage_rule_value_and_threshold(void **s)
{
    char p[128];
    struct buf r = {0};
    struct err e;

    (void)s;
    assert_int_equal(file_read_all(path(p, "r1"), 1 << 30, &r, &e), 0);
    assert_non_null(strstr(r.p, "\"stage\":\"mark\",\"rule\":\"seven\",\"value\":"));
    assert_non_null(strstr(r.p, "\"threshold\":7,\"file\":\""));
    assert_non_null(strstr(r.p, "\"stage\":\"first\",\"rule\":\"third\",\"value\":3,\"threshold\":3,\"survivor\":\"in1-"));
    assert_non_null(strstr(r.p, "\"stage\":\"late\",\"rule\":\"longest\",\"value\":1023,\"threshold\":null,\"file\":\""));
    assert_non_null(strstr(r.p, "\"stage\":\"late\",\"rule\":\"fifth\","));
    buf_free(&r);
}

/* Of a thread: how many documents it has worked on and not yet ended; the sum of their lengths, which their notes point to. */
struct ends {
    uint64_t open, sum;
};
static int ends_open(void *st, void **th, struct err *e)
{
    (void)st, (void)e;
    *th = calloc(1, sizeof(struct ends));
    return *th ? 0 : ERR_NOMEM;
}
static void ends_close(void *st, void *th)
{
    (void)st;
    free(th);
}
static int ends_work(void *st, void *th, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    struct ends *t = th, **to = arena_alloc(d->arena, sizeof *to);
    (void)st, (void)v, (void)e;
    assert_non_null(to);
    t->open++;
    *to = t;
    *note = (struct span){(char *)to, sizeof *to};
    return 0;
}
static int ends_end(void *st, void *th, struct err *e)
{
    struct ends *t = th;
    (void)st, (void)e;
    t->sum += t->open;
    t->open = 0;
    return 0;
}
/* Every document that is committed was worked on and ended by a thread that has no other block in hand. */
static int ends_commit(void *st, struct span note, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    uint64_t *n = st;
    struct ends *t;
    (void)v, (void)reply, (void)a, (void)e;
    memcpy(&t, note.p, sizeof t);
    assert_int_equal(t->open, 0);
    assert_true(t->sum > 0);
    ++*n;
    return 0;
}
static const struct stage_ops ends_ops = {.name = "ends", .thread_open = ends_open, .thread_close = ends_close,
                                          .work = ends_work, .work_end = ends_end, .commit = ends_commit};

static void work_ends_before_a_block_is_committed(void **s)
{
    char in1[128], o[128], st[128];
    char *inputs[1] = {in1};
    uint64_t n = 0;
    struct stage stages[] = {{&ends_ops, &n}};
    struct driver_conf c = {.inputs = inputs, .n_inputs = 1, .stages = stages, .n_stages = 1,
                            .jobs = 4, .output = path(o, "ends"), .stats = path(st, "ends.st")};
    struct driver_result res;
    struct buf b = {0};
    struct err e;

    (void)s;
    path(in1, "in1");
    assert_int_equal(driver_run(&c, &res, &e), 0);
    assert_int_equal(n, 4950);
    assert_int_equal(file_read_all(st, 1 << 20, &b, &e), 0);
    assert_non_null(strstr(b.p, ",\"time\":{\"reading\":"));
    assert_non_null(strstr(b.p, ",\"decisions\":0,\"later_passes\":0}"));
    buf_free(&b);
}

static int refuse_work(void *st, void *th, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    (void)st, (void)th, (void)v, (void)note;
    return span_is(d->id, "in1-3000") ? err_set(e, ERR_IO, "no more") : 0;
}
static const struct stage_ops refuse_ops = {.name = "refuse", .work = refuse_work};

static void a_failed_run_leaves_nothing(void **s)
{
    char in1[128], o[128], missing[128];
    char *inputs[2] = {in1, missing};
    struct stage stages[] = {{&refuse_ops, NULL}};
    struct driver_conf c = {.inputs = inputs, .n_inputs = 1, .stages = stages, .n_stages = 1,
                            .jobs = 4, .output = path(o, "never")};
    struct driver_result res;
    struct err e;

    (void)s;
    path(in1, "in1");
    path(missing, "missing");
    assert_int_equal(driver_run(&c, &res, &e), ERR_IO);
    assert_string_equal(e.msg, "no more");
    assert_int_equal(access(o, F_OK), -1);
    c.n_stages = 0;
    c.n_inputs = 2;
    assert_int_equal(driver_run(&c, &res, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "missing"));
    assert_int_equal(access(o, F_OK), -1);
}

static void an_endless_line_is_skipped_not_kept(void **s)
{
    char in[128], o[128];
    char *inputs[1] = {in};
    struct driver_conf c = {.inputs = inputs, .n_inputs = 1, .jobs = 2, .output = path(o, "short"),
                            .max_line = 100000};
    struct driver_result res;
    struct buf b = {0};
    struct err e;

    (void)s;
    buf_puts(&b, "{\"text\":\"one\"}\n{\"text\":\"");
    for (int i = 0; i < 3000000; i++)
        buf_putc(&b, 'x');
    buf_puts(&b, "\"}\n\r\n{\"text\":\"two\"}\r\n");
    assert_int_equal(file_write_all(path(in, "long"), buf_span(&b), &e), 0);
    assert_int_equal(driver_run(&c, &res, &e), 0);
    assert_int_equal(res.docs_out, 2);
    assert_int_equal(res.bad, 1);
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_keeps_what_nobody_set),
        cmocka_unit_test(a_document_without_id_is_called_by_its_place),
        cmocka_unit_test(what_is_no_document_is_refused),
        cmocka_unit_test(same_bytes_for_any_number_of_threads),
        cmocka_unit_test(rejects_say_stage_rule_value_and_threshold),
        cmocka_unit_test(work_ends_before_a_block_is_committed),
        cmocka_unit_test(a_failed_run_leaves_nothing),
        cmocka_unit_test(an_endless_line_is_skipped_not_kept),
    };
    log_init(NULL, LOG_ERROR); /* the bad records are meant */
    return cmocka_run_group_tests_name("driver", tests, make_dir, remove_dir);
}
