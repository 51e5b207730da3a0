/* Tasks of evaluation: what lm-evaluation-harness makes of the same (tests/record/tasks.py), for any packing; and what is wrong
 * with a task's file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/log.h"
#include "base/node.h"
#include "base/rng.h"
#include "tests/temp_folder.h"
#include "tokenize/tasks/task.h"
#include "train/evaluate.h"
#include "train/generate.h"
#include "train/hf.h"
#include "train/likelihood.h"

#define DATA "tests/data/tasks/"
enum { MAX_LENGTH = 96 };

static struct device *dev;
static struct tokenizer *tokenizer;
static struct err e;

static void ok(int rc)
{
    if (rc < 0)
        fail_msg("%s", e.msg);
}

static int start(void **state)
{
    log_init("tasks_test", LOG_ERROR);
    if (make_dir(state) < 0 || device_open(&dev, "cpu", 2, &e) < 0)
        return -1;
    return tokenizer_open(&tokenizer, DATA "model/tokenizer.json", NULL, &e);
}

static int end(void **state)
{
    tokenizer_close(tokenizer);
    device_close(dev);
    return remove_dir(state);
}

static struct task *opened(const char *name)
{
    const struct task_settings s = {.shots = -1, .seed = 1234, .length = MAX_LENGTH};
    struct task *t;
    char path[128];

    snprintf(path, sizeof path, DATA "%s.yaml", name);
    ok(task_open(&t, path, tokenizer, &s, &e));
    return t;
}

static int ends(void *arg, const struct generate_request *r, struct err *err) { return task_ends(arg, r->out, r->made, err); }

/* The texts that the recorded model writes, b at a time; written becomes theirs. */
static struct task_answer *texts_of(struct task *t, const struct checkpoint *ck, int64_t b, int32_t *written)
{
    const struct sampling likeliest = {.top_p = 1, .penalty = 1, .eod = tokenizer_eod(tokenizer)};
    const struct model_run run = {.use = MODEL_GENERATE, .b = b, .t = MAX_LENGTH};
    const struct task_request *q;
    int64_t n = task_requests(t, &q), most = task_writes(t);
    struct generate_request *r = calloc((size_t)n, sizeof *r);
    struct task_answer *a = calloc((size_t)n, sizeof *a);
    struct model *m;

    for (int64_t i = 0; i < n; i++)
        r[i] = (struct generate_request){q[i].ids, q[i].n, most, written + i * most, 0};
    ok(model_restore(&m, ck, dev, &run, &e));
    ok(generate_all(m, &likeliest, r, n, ends, NULL, t, &e));
    model_close(m);
    for (int64_t i = 0; i < n; i++)
        a[i] = (struct task_answer){.ids = r[i].out, .n = r[i].made};
    free(r);
    return a;
}

/* The answers of the recorded model, in sequences of so many tokens, b at a time; packed: several requests in one. */
static struct task_answer *answers_of(const struct task *t, const struct checkpoint *ck, int64_t b, int64_t length, bool packed)
{
    const struct model_run run = {.use = MODEL_EVAL, .b = b, .t = length, .reset_positions = packed, .reset_attention = packed};
    const struct task_request *q;
    int64_t n = task_requests(t, &q);
    struct likelihood *r = calloc((size_t)n, sizeof *r);
    struct task_answer *a = calloc((size_t)n, sizeof *a);
    struct train_part whole = {0};
    struct passes p;

    for (int64_t i = 0; i < n; i++)
        r[i] = (struct likelihood){.ids = q[i].ids, .n = q[i].n, .from = q[i].from};
    ok(model_restore(&whole.model, ck, dev, &run, &e));
    ok(passes_open(&p, NULL, &whole, 1, NULL, &e));
    ok(likelihoods(&p, r, n, true, &e));
    passes_close(&p);
    model_close(whole.model);
    for (int64_t i = 0; i < n; i++)
        a[i] = (struct task_answer){.likelihood = r[i].sum, .greedy = r[i].greedy};
    free(r);
    return a;
}

/* The lines of a file, as objects; how many. */
static int64_t read_lines(const char *path, struct arena *a, struct node **line, int64_t room)
{
    struct buf file = {0};
    int64_t n = 0;

    ok(file_read_all(path, 1 << 24, &file, &e));
    for (char *p = file.p, *stop; p < file.p + file.n; p = stop + 1) {
        stop = memchr(p, '\n', (size_t)(file.p + file.n - p));
        assert_true(n < room);
        ok(node_parse_json(a, (struct span){p, (size_t)(stop - p)}, &line[n++], &e));
    }
    buf_free(&file);
    return n;
}

/* A question's record with what the harness says of it: likelihoods, what is greedy where that is asked for, metrics. */
static void compare(const struct node *got, const struct node *want, bool greedy)
{
    const struct node *x = node_get(got, "likelihoods"), *y = node_get(want, "likelihoods"), *g = node_get(got, "greedy"),
                      *h = node_get(want, "greedy");
    bool rolling = h && h->child->type == NODE_NULL;
    double sum = 0;

    assert_string_equal(node_str(got, "task"), node_str(want, "task"));
    assert_int_equal(node_int(got, "question", -1), node_int(want, "question", -2));
    assert_int_equal(g != NULL, greedy);
    if (node_get(want, "text")) {
        const struct node *f = node_get(got, "filtered")->child;

        assert_string_equal(node_str(got, "text"), node_str(want, "text"));
        for (const struct node *w = node_get(want, "filtered")->child; w; w = w->next, f = f->next)
            assert_string_equal(f->str.p, w->str.p);
    }
    x = x ? x->child : NULL;
    y = y ? y->child : NULL;
    g = g ? g->child : NULL;
    h = h ? h->child : NULL;
    for (; x; x = x->next) {
        sum = rolling ? sum + x->num : x->num;
        if (rolling && x->next)
            continue;
        assert_non_null(y);
        if (fabs(sum - y->num) > 1e-5 * fmax(1, fabs(y->num)))
            fail_msg("%s, question %lld: %.8f, not %.8f", node_str(got, "task"), (long long)node_int(got, "question", -1), sum,
                     y->num);
        if (greedy) {
            assert_int_equal(g->integer, h->integer);
            g = g->next;
        }
        y = y->next;
        h = h->next;
    }
    assert_null(y);
    for (const struct node *m = node_get(want, "metrics")->child; m; m = m->next)
        if (!span_is(m->key, "perplexity")) /* the likelihood again */
            assert_true(node_num(got, m->key.p, -1) == m->num);
}

static void scores_are_the_harness(void **state)
{
    static const char *const names[] = {"write", "write_filtered", "write_several", "stories", "stories_shots", "science",
                                        "blanks", "truths", "lore", "many", "last", "pages", "bare"};
    static const int64_t shapes[][2] = {{4, MAX_LENGTH}, {1, MAX_LENGTH}, {3, 2 * MAX_LENGTH + 7}};
    static struct node *want[400], *got[400];
    struct arena arena = {0};
    struct node *all;
    struct checkpoint *ck;
    char folder[80], path[80];
    int64_t lines = read_lines(DATA "expected.jsonl", &arena, want, 400);

    (void)state;
    snprintf(folder, sizeof folder, "%s/model", dir);
    snprintf(path, sizeof path, "%s/records.jsonl", dir);
    ok(node_load_json(&arena, DATA "scores.json", &all, &e));
    ok(hf_import(DATA "model", folder, 0, 1, &e));
    ok(checkpoint_open(&ck, folder, 0, &e));
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
        int64_t at = 0;

        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            struct task *t = opened(names[k]);
            static int32_t written[16 * 16];
            struct task_answer *a = task_writes(t) ? texts_of(t, ck, shapes[shape][0], written)
                                                   : answers_of(t, ck, shapes[shape][0], shapes[shape][1], shape != 1);
            struct task_score s[TASK_SCORES];
            const struct node *scores = node_get(all, names[k]);
            struct file_out *records;
            int n;

            ok(file_create(&records, path, 0, &e));
            ok(n = task_score(t, a, s, records, &e));
            ok(file_commit(records, &e));
            assert_int_equal(n, scores->count);
            for (int i = 0; i < n; i++)
                if (fabs(s[i].value - node_num(scores, s[i].metric, -1)) > 2e-6 * fmax(1, s[i].value))
                    fail_msg("%s: %s %.8f, not %.8f", names[k], s[i].metric, s[i].value, node_num(scores, s[i].metric, -1));
            assert_true(s[0].error > 0);
            n = (int)read_lines(path, &arena, got, 400);
            assert_int_equal(n, task_questions(t));
            assert_true(at + n <= lines);
            for (int i = 0; i < n; i++)
                compare(got[i], want[at++], task_asks_greedy(t));
            free(a);
            task_close(t);
        }
        assert_int_equal(at, lines);
    }
    checkpoint_close(ck);
    arena_free(&arena);
}

/* Sampled by Python's Random(1234): the first of 100, 60 and 5,000. */
static void samples_are_pythons(void **state)
{
    static const uint32_t want[] = {99, 56, 14, 0, 11, 58, 51, 37, 2, 42, 44, 5, 6, 49, 22, 1939, 142, 252, 129, 2835, 3966, 3797,
                                    1216, 747, 1499};
    uint32_t got[25];
    struct rng_mt r;

    (void)state;
    rng_mt_seed_python(&r, 1234);
    assert_int_equal(rng_mt_sample(&r, 100, 5, got), 0);
    assert_int_equal(rng_mt_sample(&r, 60, 10, got + 5), 0);
    assert_int_equal(rng_mt_sample(&r, 5000, 10, got + 15), 0);
    assert_memory_equal(got, want, sizeof want);
    rng_mt_seed_python(&r, 1ull << 40 | 7); /* random.Random(2 ** 40 + 7).sample(range(100), 3) */
    assert_int_equal(rng_mt_sample(&r, 100, 3, got), 0);
    assert_int_equal(got[0], 78);
    assert_int_equal(got[1], 95);
    assert_int_equal(got[2], 81);
}

static void write_file(const char *name, const char *text) { spew(at(name), text, strlen(text)); }

/* Opens a task that has data {"q":"a b","c":["x","y"],"g":1} and {"q":"d","c":["z"],"g":0}, of these lines and the usual ones. */
static int opens(const char *lines, int64_t shots, const char *bos)
{
    const struct task_settings s = {.shots = shots, .seed = 1, .length = MAX_LENGTH, .bos = bos};
    char yaml[2000], path[128];
    struct task *t = NULL;
    int rc;

    write_file("data.jsonl", "{\"q\":\"a b\",\"c\":[\"x\",\"y\"],\"g\":1}\n\n{\"q\":\"d\",\"c\":[\"z\"],\"g\":0}\n");
    snprintf(yaml, sizeof yaml, "dataset_path: json\ndataset_kwargs: {data_files: {test: %s/data.jsonl, bad: %s/bad.jsonl}}\n%s",
             dir, dir, lines);
    write_file("task.yaml", yaml);
    snprintf(path, sizeof path, "%s/task.yaml", dir);
    rc = task_open(&t, path, tokenizer, &s, &e);
    task_close(t);
    return rc;
}

#define CHOICE "output_type: multiple_choice\ndoc_to_text: q\ndoc_to_choice: c\ndoc_to_target: g\n"
#define BARE "output_type: multiple_choice\ntest_split: test\n"
#define WRITE "output_type: generate_until\ndoc_to_text: q\ndoc_to_target: q\ntest_split: test\n"
#define PLAIN CHOICE "test_split: test\n"

static void refused(const char *lines, int64_t shots, const char *why)
{
    int rc = opens(lines, shots, NULL);

    if (rc == 0 || !strstr(e.msg, why))
        fail_msg("%s\n%s: not '%s'", lines, rc ? e.msg : "opens", why);
}

static void wrong_tasks_are_named(void **state)
{
    (void)state;
    ok(opens(PLAIN, -1, NULL));
    ok(opens(PLAIN, -1, "<|endoftext|>"));
    write_file("bad.jsonl", "{\"q\":1}\n{\"q\":\n");
    refused(PLAIN "process_docs: f\n", -1, "line 8: 'process_docs' is not known here");
    refused(PLAIN "process_docs: !function f\n", -1, "line 8: tags");
    refused("test_split: test\n", -1, "output_type has to be");
    refused(PLAIN "test_split: test\n", -1, "occurs twice");
    refused(CHOICE, -1, "a test_split or validation_split is needed");
    refused(CHOICE "test_split: other\n", -1, "data_files has no 'other'");
    refused(CHOICE "test_split: bad\n", -1, "bad.jsonl': line 2");
    refused(PLAIN "metric_list: [{metric: f1}]\n", -1, "line 8: there is no metric 'f1'");
    refused(PLAIN "metric_list: [{metric: acc, aggregation: median}]\n", -1, "aggregated by mean");
    refused(PLAIN "fewshot_config: {sampler: odd}\n", 1, "there is no sampler 'odd'");
    refused(PLAIN "fewshot_config: {colour: red}\n", 1, "'colour' is not known");
    refused(PLAIN "fewshot_config: {sampler: first_n}\n", 3, "question 1: there are only 2 examples");
    refused(PLAIN "fewshot_split: test\n", 2, "question 1: 3 examples are more than the 2");
    refused(PLAIN "generation_kwargs: {}\n", -1, "line 8: generation_kwargs is of generate_until alone");
    refused(WRITE "generation_kwargs: {do_sample: true}\n", -1, "line 7: texts are written without chance");
    refused(WRITE "generation_kwargs: {max_gen_toks: 96}\n", -1, "question 1: 96 tokens to be written");
    refused(WRITE "generation_kwargs: {until: [1]}\n", -1, "line 7: until");
    refused(WRITE "filter_list: [{name: x, filter: [{function: odd}]}]\n", -1, "there is no filter 'odd'");
    refused(PLAIN "num_fewshot: many\n", -1, "line 8: num_fewshot");
    refused(PLAIN "include: none.yaml\n", -1, "none.yaml");
    refused(PLAIN "include: task.yaml\n", -1, "files that include one another");
    refused(BARE "doc_to_text: \"{{nothing}}\"\ndoc_to_choice: c\ndoc_to_target: g\n", -1,
            "'nothing' is undefined");
    refused(BARE "doc_to_text: \"{{q\"\ndoc_to_choice: c\ndoc_to_target: g\n", -1,
            "line 5: line 1 of the template");
    refused(BARE "doc_to_text: q\ndoc_to_choice: \"{{q}}\"\ndoc_to_target: g\n", -1,
            "'a b' is no literal");
    refused(BARE "doc_to_text: q\ndoc_to_choice: q\ndoc_to_target: g\n", -1,
            "doc_to_choice gives no list");
    assert_int_equal(opens(PLAIN, -1, "<none>"), ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_the_harness),
        cmocka_unit_test(samples_are_pythons),
        cmocka_unit_test(wrong_tasks_are_named),
    };

    return cmocka_run_group_tests_name("tasks", tests, start, end);
}
