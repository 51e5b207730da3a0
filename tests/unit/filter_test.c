/* Presets of the filter, held against what the originals said (tests/record/filter.py,
 * tests/record/filter_dialects.py). */
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
#include <zlib.h>

#include "base/file.h"
#include "base/node.h"
#include "curate/filter/filter.h"
#include "curate/text/grams.h"

static char *load(const char *path)
{
    struct file_in *f;
    struct buf all = {0};
    struct err e;
    char chunk[4096];
    ssize_t n;

    assert_int_equal(file_open(&f, path, &e), 0);
    while ((n = file_read(f, chunk, sizeof chunk, &e)) > 0)
        assert_int_equal(buf_put(&all, chunk, (size_t)n), 0);
    file_close(f);
    return all.p;
}

/* Runs one stage over a text. */
static struct doc run(const struct filter_conf *conf, struct arena *a, struct span text, struct verdict *v)
{
    struct stage st;
    struct doc d;
    struct err e;
    void *thread;
    struct span note = {0};

    memset(v, 0, sizeof *v);
    doc_init(&d, a);
    assert_int_equal(doc_set_string(&d, "text", text), 0);
    assert_int_equal(filter_stage_open(&st, conf, &e), 0);
    assert_int_equal(st.ops->thread_open(st.state, &thread, &e), 0);
    assert_int_equal(st.ops->work(st.state, thread, &d, v, &note, &e), 0);
    st.ops->thread_close(st.state, thread);
    st.ops->close(st.state);
    return d;
}

static void write_yaml(char *path, const char *text)
{
    int fd;

    strcpy(path, "/tmp/quern-filter-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

/* The next of tab-separated values. */
static const char *field(char **p)
{
    char *q = *p;

    *p += strcspn(q, "\t");
    if (**p)
        *(*p)++ = '\0';
    return q;
}

static int check_signals(struct doc *d, struct arena *a, char *values, const char *names, const char *id)
{
    struct span json = doc_raw(d, "signals");
    struct node *root;
    struct err e;
    int seen = 0;

    assert_int_equal(node_parse_json(a, json, &root, &e), 0);
    while (*values && *names) {
        size_t n = strcspn(names, "\t");
        char name[64];
        const char *value = field(&values);

        snprintf(name, sizeof name, "%.*s", (int)n, names);
        names += n + (names[n] != '\0');
        assert_non_null(node_get(root, name));
        if (!*value)
            continue;
        seen++;
        if (strcmp(value, "nan") == 0)
            assert_int_equal(node_get(root, name)->type, NODE_NULL);
        else if (!(fabs(node_num(root, name, NAN) - atof(value)) <= 1e-6))
            fail_msg("%s: %s is %g, not %s", id, name, node_num(root, name, NAN), value);
    }
    return seen;
}

static void decisions_and_signals_as_recorded(void **s)
{
    static const char *const presets[] = {"gopher-quality", "gopher-repetition", "c4", "fineweb"};
    struct filter_conf all = {.presets = "gopher-quality,gopher-repetition,c4", .annotate = true};
    char *docs = load("tests/data/filter/own.jsonl"), *table = load("tests/data/filter/own.tsv"), *row = table;
    const char *names = table;
    int n = 0;

    (void)s;
    for (int i = 0; i < 6; i++)
        names = strchr(names, '\t') + 1;
    row = strchr(row, '\n');
    *row++ = '\0';
    for (char *p = docs, *q; *p; p = q + 1, n++) {
        struct arena a = {0};
        struct filter_conf f = {.presets = "fineweb", .annotate = true};
        struct verdict v;
        struct node *root;
        struct err e;
        struct span text;
        struct doc d;
        char after[16], both[8192], *line = row;
        const char *reason[4], *want;

        q = strchr(p, '\n');
        row = strchr(row, '\n');
        *row++ = '\0';
        assert_int_equal(node_parse_json(&a, (struct span){p, (size_t)(q - p)}, &root, &e), 0);
        assert_string_equal(field(&line), node_str(root, "id"));
        text = node_get(root, "text")->str;
        for (int i = 0; i < 4; i++)
            reason[i] = field(&line);
        want = field(&line);
        for (int i = 0; i < 4; i++) {
            struct filter_conf one = {.presets = presets[i]};
            d = run(&one, &a, text, &v);
            if (strcmp(v.drop ? v.rule : "-", reason[i]) != 0)
                fail_msg("%s: %s, not %s", node_str(root, "id"), v.drop ? v.rule : "-", reason[i]);
            if (i == 2 && !v.drop) {
                snprintf(after, sizeof after, "%08lx", crc32(0, (const Bytef *)d.text.p, (uInt)d.text.n));
                assert_string_equal(after, want);
            }
        }
        /* fineweb by itself: behind c4 it sees another text */
        d = run(&all, &a, text, &v);
        struct doc g = run(&f, &a, text, &v);
        struct span x = doc_raw(&d, "signals"), y = doc_raw(&g, "signals");
        snprintf(both, sizeof both, "%.*s,%.*s", (int)x.n - 1, x.p, (int)y.n - 1, y.p + 1);
        assert_int_equal(doc_set_raw(&d, "signals", span_of(both)), 0);
        assert_true(check_signals(&d, &a, line, names, node_str(root, "id")) > 5);
        arena_free(&a);
    }
    assert_true(n >= 40);
    free(docs);
    free(table);
}

/* One document against its row: name, reason, CRC-32 of the text that is left, signals. */
static int check_document(const char *preset, const char *stripping, struct node *doc, char *row, const char *names)
{
    struct filter_conf decide = {.presets = preset}, strip = {.presets = preset, .config = stripping};
    struct filter_conf annotate = {.presets = preset, .annotate = true};
    const char *id = node_str(doc, "id"), *reason, *after;
    struct span text = node_get(doc, "text")->str;
    struct arena a = {0};
    struct verdict v;
    struct doc d;
    char crc[16];
    int seen;

    assert_string_equal(field(&row), id);
    reason = field(&row);
    after = field(&row);
    run(&decide, &a, text, &v);
    if (strcmp(v.drop ? v.rule : "-", reason) != 0)
        fail_msg("%s: %s, not %s", id, v.drop ? v.rule : "-", reason);
    d = run(&strip, &a, text, &v);
    snprintf(crc, sizeof crc, "%08lx", crc32(0, (const Bytef *)d.text.p, (uInt)d.text.n));
    if (!v.drop && strcmp(after, "-") != 0 && strcmp(crc, after) != 0)
        fail_msg("%s: another text is left: %.*s", id, (int)d.text.n, d.text.p);
    d = run(&annotate, &a, text, &v);
    assert_false(v.drop);
    seen = check_signals(&d, &a, row, names, id);
    arena_free(&a);
    return seen;
}

/* A configuration under which the text that is left can be seen. */
static void write_stripping(char *path, const char *preset, const char *yaml, const char *names)
{
    struct buf b = {0};

    if (!yaml) {
        buf_printf(&b, "%s:\n", preset);
        for (size_t n; *names; names += n + (names[n] != '\0')) {
            n = strcspn(names, "\t");
            buf_printf(&b, "  %.*s: off\n", (int)n, names);
        }
    }
    write_yaml(path, yaml ? yaml : b.p);
    buf_free(&b);
}

static void dialects_as_recorded(void **s)
{
    static const struct {
        const char *name, *yaml; /* yaml: for the text that is left */
    } presets[] = {
        {"nemo", "nemo: {}\n"},
        {"dolma", "dolma:\n  lines_with_no_ending_punctuation: on\n  lines_with_too_few_words: {action: strip}\n"
                  "  word_count: off\n  fraction_of_duplicate_lines: off\n  median_word_length: off\n"},
        {"dclm", NULL}, /* NULL: every signal's rule is off */
    };
    static const char *const sets[] = {"tests/data/filter/own.jsonl", "tests/data/filter/dialects.jsonl"};

    (void)s;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        char path[64], yaml[64], *table, *row;
        const char *names;
        int n = 0, seen = 0;

        snprintf(path, sizeof path, "tests/data/filter/%s.tsv", presets[i].name);
        names = table = load(path);
        for (int k = 0; k < 3; k++)
            names = strchr(names, '\t') + 1;
        row = strchr(table, '\n');
        *row++ = '\0';
        write_stripping(yaml, presets[i].name, presets[i].yaml, names);
        for (size_t k = 0; k < 2; k++) {
            char *docs = load(sets[k]);

            for (char *p = docs, *q; *p; p = q + 1, n++) {
                struct arena a = {0};
                struct node *doc;
                struct err e;
                char *line = row;

                q = strchr(p, '\n');
                row = strchr(row, '\n');
                *row++ = '\0';
                assert_int_equal(node_parse_json(&a, (struct span){p, (size_t)(q - p)}, &doc, &e), 0);
                seen += check_document(presets[i].name, yaml, doc, line, names);
                arena_free(&a);
            }
            free(docs);
        }
        unlink(yaml);
        assert_true(n >= 160 && seen > 15 * n && *row == '\0');
        free(table);
    }
}

static void presets_run_in_order_on_what_c4_left(void **s)
{
    struct arena a = {0};
    struct filter_conf f = {.presets = "c4,fineweb"};
    struct verdict v;
    struct doc d = run(&f, &a, span_of("Home\nAbout\n  A line of text stands here. It has two. \nMore of it is here! "
                                       "Is it?\nAnd so it goes on. That is all.\n"), &v);

    (void)s;
    assert_false(v.drop);
    assert_true(span_is(d.text, "A line of text stands here. It has two.\nMore of it is here! Is it?\n"
                                "And so it goes on. That is all."));
    f.presets = "fineweb,c4";
    run(&f, &a, span_of("x\n- a\n- b\n- c\n- d\n- e\nOne two three. Four. Five. Six. Seven.\n"), &v);
    assert_true(v.drop);
    assert_string_equal(v.rule, "short_line_ratio");
    assert_true(v.value > 0.857 && v.value < 0.858 && v.threshold == 0.67);
    arena_free(&a);
}

static void configuration_changes_thresholds(void **s)
{
    struct arena a = {0};
    char path[64];
    struct filter_conf f = {.presets = "gopher-quality", .config = path};
    struct verdict v;

    (void)s;
    write_yaml(path, "gopher-quality:\n  gopher_short_doc: 3\n  gopher_enough_stop_words: off\n");
    run(&f, &a, span_of("Green birds sing loudly today"), &v);
    assert_false(v.drop);
    run(&f, &a, span_of("Green birds"), &v);
    assert_true(v.drop && v.value == 2 && v.threshold == 3);
    unlink(path);
    write_yaml(path, "c4:\n  line_no_terminal_punct: off\n  too_few_sentences: 1\n  curly_bracket: off\n"
                     "  remove_citations: off\n");
    f.presets = "c4";
    struct doc d = run(&f, &a, span_of("this { line has no mark[1]\nand\nnor has that one"), &v);
    assert_false(v.drop);
    assert_true(span_is(d.text, "this { line has no mark[1]\nnor has that one"));
    unlink(path);
    arena_free(&a);
}

/* What a rule does is configured: drop, annotate, strip. */
static void actions_change_what_a_rule_does(void **s)
{
    static const char text[] = "One line stands here. It is long enough.\nA { opens here and is not closed.\n"
                               "Another line without a mark\nA third one. Yes. And so on. Good.\n";
    static const struct {
        const char *yaml, *rule, *left, *signals;
    } cases[] = {
        {"c4: {}\n", "curly_bracket", NULL, NULL},
        {"c4:\n  curly_bracket: {action: strip}\n", NULL,
         "One line stands here. It is long enough.\nA third one. Yes. And so on. Good.", NULL},
        {"c4:\n  curly_bracket: {action: annotate}\n", NULL,
         "One line stands here. It is long enough.\nA { opens here and is not closed.\nA third one. Yes. And so on. Good.",
         "{\"curly_bracket\":1}"},
        {"c4:\n  curly_bracket: off\n  line_no_terminal_punct: {action: annotate, threshold: on}\n"
         "  too_few_sentences: {action: annotate, threshold: 2}\n", NULL, text,
         "{\"line_no_terminal_punct\":1,\"too_few_sentences\":8}"},
        {"c4:\n  curly_bracket: off\n  line_no_terminal_punct: {action: drop}\n", "line_no_terminal_punct", NULL, NULL},
        {"c4:\n  curly_bracket: {action: strip}\n  too_few_sentences: {threshold: 7}\n", "too_few_sentences", NULL, NULL},
    };

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena a = {0};
        char path[64];
        struct filter_conf f = {.presets = "c4", .config = path};
        struct verdict v;

        write_yaml(path, cases[i].yaml);
        struct doc d = run(&f, &a, span_of(text), &v);
        unlink(path);
        assert_int_equal(v.drop, cases[i].rule != NULL);
        if (v.drop) {
            assert_string_equal(v.rule, cases[i].rule);
        } else {
            struct span signals = doc_raw(&d, "signals");

            assert_true(span_eq(d.text, chars_strip(span_of(cases[i].left))));
            assert_true(cases[i].signals ? span_is(signals, cases[i].signals) : !signals.p);
        }
        arena_free(&a);
    }
}

static void wrong_configurations_are_named(void **s)
{
    static const struct {
        const char *presets, *yaml, *says;
        int code;
    } cases[] = {
        {"gopher", NULL, "no preset 'gopher'", ERR_ARG},
        {"fineweb2", NULL, "fineweb2-icu", ERR_ARG},
        {"c4,c4", NULL, "twice", ERR_ARG},
        {"", NULL, "no preset", ERR_ARG},
        {"c4", "c4:\n  too_few_sentences: 3\n  too_few: 3\n", "line 3: preset c4 has no rule 'too_few'", ERR_FORMAT},
        {"c4", "fineweb2:\n  x: 1\n", "no preset 'fineweb2'", ERR_FORMAT},
        {"c4", "c4:\n  too_few_sentences: many\n", "line 2: too_few_sentences needs a number", ERR_FORMAT},
        {"c4", "c4:\n  too_few_sentences: -1\n", "line 2", ERR_FORMAT},
        {"c4", "c4:\n  too_few_sentences: .nan\n", "line 2", ERR_FORMAT},
        {"c4", "c4: 5\n", "needs a map", ERR_FORMAT},
        {"c4", "- c4\n", "not a map", ERR_FORMAT},
        {"c4", "c4:\n  too_few_sentences: [1]\n", "line 2", ERR_FORMAT},
        {"c4", "c4:\n  curly_bracket: 3\n", "line 2: curly_bracket is on or off", ERR_FORMAT},
        {"c4", "c4:\n  too_few_sentences:\n    threshold: 3\n    acton: drop\n", "line 4: too_few_sentences has no 'acton'",
         ERR_FORMAT},
        {"c4", "c4:\n  too_few_sentences: {action: keep}\n", "line 2: the action of too_few_sentences", ERR_FORMAT},
        {"c4", "c4:\n  too_few_sentences: {action: strip}\n", "line 2: too_few_sentences does not judge lines", ERR_FORMAT},
        {"c4", "c4:\n  remove_citations: {action: drop}\n", "line 2: remove_citations is a setting", ERR_FORMAT},
    };

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[64];
        struct filter_conf f = {.presets = cases[i].presets, .config = cases[i].yaml ? path : NULL};
        struct stage st;
        struct err e;

        if (cases[i].yaml)
            write_yaml(path, cases[i].yaml);
        assert_int_equal(filter_stage_open(&st, &f, &e), cases[i].code);
        if (!strstr(e.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", e.msg, cases[i].says);
        if (cases[i].yaml)
            unlink(path);
    }
}

/* The slow and plain way to count repeated n-grams. */
static size_t count_plainly(const struct words *ws, struct span text, size_t n)
{
    char **seen = calloc(ws->n + 1, sizeof *seen);
    size_t n_seen = 0, chars = 0;

    for (size_t i = 0; i + n <= ws->n;) {
        struct buf b = {0};
        size_t k = 0;

        for (size_t j = i; j < i + n; j++)
            buf_put(&b, text.p + ws->w[j].off, ws->w[j].len);
        buf_putc(&b, '\0');
        while (k < n_seen && strcmp(seen[k], b.p) != 0)
            k++;
        if (k < n_seen) {
            chars += chars_count((struct span){b.p, b.n - 1});
            buf_free(&b);
            i += n;
        } else {
            seen[n_seen++] = b.p;
            i++;
        }
    }
    while (n_seen)
        free(seen[--n_seen]);
    free(seen);
    return chars;
}

static void repeated_grams_equal_the_plain_count(void **s)
{
    static const char *const bits[] = {"a", "b", "ab", "ba ", " ", " ", "aab", "é", ".", "longerword"};
    struct words ws = {0};
    struct grams g = {0};
    uint32_t x = 12345;

    (void)s;
    for (int round = 0; round < 60; round++) {
        struct buf b = {0};
        struct span text;
        struct err e;
        size_t chars[6];

        for (int i = 0; i < 20 + round * 8; i++) {
            x = x * 1664525 + 1013904223;
            buf_puts(&b, bits[(x >> 16) % 10]);
        }
        text = buf_span(&b);
        assert_int_equal(words_split(&ws, text, &e), 0);
        assert_int_equal(grams_number_words(&g, &ws, text, false), 0);
        assert_int_equal(grams_find_duplicates(&g, &ws, text, chars), 0);
        for (size_t n = 5; n <= 10; n++)
            assert_int_equal(chars[n - 5], count_plainly(&ws, text, n));
        buf_free(&b);
    }
    words_free(&ws);
    grams_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions_and_signals_as_recorded),
        cmocka_unit_test(dialects_as_recorded),
        cmocka_unit_test(presets_run_in_order_on_what_c4_left),
        cmocka_unit_test(configuration_changes_thresholds),
        cmocka_unit_test(actions_change_what_a_rule_does),
        cmocka_unit_test(wrong_configurations_are_named),
        cmocka_unit_test(repeated_grams_equal_the_plain_count),
    };
    return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
