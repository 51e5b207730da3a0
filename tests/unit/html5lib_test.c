/* The text of pages held against html5lib's tests: tree construction (.dat) and tokenizer
 * (.test).  Compared is text alone, without white space, NUL and U+FFFD.
 *
 *   html5lib_test               a few cases of its own
 *   html5lib_test [-v] FILE...  prints "KIND cases equal moved wrong"; -v: the wrong ones too
 *
 * moved: the same text, but stray text of a table stands where it was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/node.h"
#include "curate/html/html_tree.h"
#include "curate/text/html_entity.h"

enum { EQUAL, MOVED, WRONG, N_RESULTS };

struct tally {
    int n[N_RESULTS];
    bool verbose;
};

static struct html_names names;

/* Appends s without white space, NUL and U+FFFD. */
static void put_bare(struct buf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.n - i >= 3 && memcmp(s.p + i, "\xEF\xBF\xBD", 3) == 0)
            i += 2;
        else if (s.p[i] && !strchr(" \t\n\r\f", s.p[i]))
            assert_int_equal(buf_putc(out, s.p[i]), 0);
    }
}

/* The text of html, but for scripts that say formulas or JSON. */
static void text_of(struct span html, struct buf *out)
{
    struct html_tree t = {0};
    struct buf raw = {0};

    assert_int_equal(html_tree_parse(&t, &names, html, 1 << 20, 0, NULL), 0);
    for (uint32_t i = 0; i < t.n_nodes; i++) {
        if (t.node[i].tag != HTML_text || t.node[t.node[i].parent].tag == HTML_script)
            continue;
        buf_clear(&raw);
        if (t.node[i].flags & HTML_ESCAPED)
            assert_int_equal(html_decode(html_text(&t, i), false, &raw), 0);
        else
            assert_int_equal(buf_put_span(&raw, html_text(&t, i)), 0);
        put_bare(out, buf_span(&raw));
    }
    buf_free(&raw);
    html_tree_free(&t);
}

static int compare_bytes(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }

static void judge(struct tally *t, struct span html, struct buf *got, struct buf *want)
{
    int r = EQUAL;

    if (!span_eq(buf_span(got), buf_span(want))) {
        if (t->verbose)
            printf("---- %.*s\nwant %.*s\ngot  %.*s\n", (int)html.n, html.p, (int)want->n, want->p ? want->p : "",
                   (int)got->n, got->p ? got->p : "");
        if (got->n)
            qsort(got->p, got->n, 1, compare_bytes);
        if (want->n)
            qsort(want->p, want->n, 1, compare_bytes);
        r = span_eq(buf_span(got), buf_span(want)) ? MOVED : WRONG;
    }
    t->n[r]++;
}

/* ---- tree construction ---- */

static struct span next_line(const char **p, const char *end)
{
    const char *q = memchr(*p, '\n', (size_t)(end - *p));
    struct span line = {*p, (size_t)((q ? q : end) - *p)};

    *p = q ? q + 1 : end;
    return line;
}

static bool starts(struct span s, const char *with)
{
    size_t n = strlen(with);

    return s.n >= n && memcmp(s.p, with, n) == 0;
}

/* An element whose content this parser leaves out. */
static bool is_silent(struct span name)
{
    static const char *const silent[] = {"<script>", "<style>", "<noscript>", "<iframe>", "<noembed>", "<noframes>"};

    for (unsigned i = 0; i < sizeof silent / sizeof *silent; i++)
        if (span_is(name, silent[i]))
            return true;
    return false;
}

/* The text of an expected tree, the lines up to an empty one; where scripts are off <noscript> has some. */
static void read_tree(const char **p, const char *end, bool scripts_off, struct buf *want)
{
    size_t silent = SIZE_MAX; /* the indentation of a silent element around */
    bool in_text = false;

    while (*p < end) {
        const char *from = *p;
        struct span line = next_line(p, end);
        size_t indent = 2;
        if (starts(line, "#data") || (!in_text && !line.n)) {
            *p = line.n ? from : *p;
            return;
        }
        if (starts(line, "| ") && !in_text) {
            while (indent < line.n && line.p[indent] == ' ')
                indent++;
            line.p += indent, line.n -= indent;
            if (indent <= silent)
                silent = is_silent(line) && !(scripts_off && span_is(line, "<noscript>")) ? indent : SIZE_MAX;
            if (!starts(line, "\""))
                continue;
            in_text = true;
            line.p++, line.n--;
        }
        if (!in_text)
            continue;
        /* It ends at a quote before the end of a line that the next item follows. */
        bool ends = line.n && line.p[line.n - 1] == '"' && (*p == end || **p == '\n' || **p == '|');
        line.n -= ends;
        if (silent == SIZE_MAX)
            put_bare(want, line);
        in_text = !ends;
    }
}

static void run_trees(struct tally *t, struct span file)
{
    const char *p = file.p, *end = p + file.n;

    while (p < end) {
        struct buf got = {0}, want = {0};
        struct span line = next_line(&p, end), html;
        bool fragment = false, scripts_off = false;

        if (!span_is(line, "#data"))
            continue;
        html.p = p;
        while (p < end && !starts(line = next_line(&p, end), "#errors"))
            ;
        html.n = (size_t)(line.p - html.p);
        html.n -= html.n > 0;
        while (p < end && !span_is(line, "#document")) {
            line = next_line(&p, end);
            fragment |= starts(line, "#document-fragment");
            scripts_off |= span_is(line, "#script-off");
        }
        read_tree(&p, end, scripts_off, &want);
        if (!fragment) {
            text_of(html, &got);
            judge(t, html, &got, &want);
        }
        buf_free(&got);
        buf_free(&want);
    }
}

/* ---- tokenizer ---- */

static bool has_data_state(const struct node *test)
{
    const struct node *states = node_get(test, "initialStates");

    if (!states)
        return true;
    for (const struct node *s = states->child; s; s = s->next)
        if (span_is(s->str, "Data state"))
            return true;
    return false;
}

static void run_tokens(struct tally *t, struct span file)
{
    struct arena a = {0};
    struct node *root;
    struct err e;

    if (node_parse_json(&a, file, &root, &e) < 0)
        fail_msg("%s", e.msg);
    const struct node *tests = node_get(root, "tests");
    for (const struct node *test = tests ? tests->child : NULL; test; test = test->next) {
        struct buf got = {0}, want = {0};
        struct span html = node_get(test, "input")->str;
        bool raw = false; /* the tree builder makes the tokenizer read these otherwise */

        for (const struct node *token = node_get(test, "output")->child; token; token = token->next) {
            if (span_is(token->child->str, "Character"))
                put_bare(&want, token->child->next->str);
            else if (span_is(token->child->str, "StartTag")) {
                char name[20];
                snprintf(name, sizeof name, "<%.*s>", (int)token->child->next->str.n, token->child->next->str.p);
                raw |= is_silent(span_of(name)) || span_is(span_of(name), "<select>");
            }
        }
        if (!raw && has_data_state(test) && !node_get(test, "doubleEscaped")) {
            text_of(html, &got);
            judge(t, html, &got, &want);
        }
        buf_free(&got);
        buf_free(&want);
    }
    arena_free(&a);
}

static int run_files(int n, char **path, bool verbose)
{
    struct tally tally[2] = {{.verbose = verbose}, {.verbose = verbose}};
    static const char *const kinds[2] = {"tree", "tokenizer"};

    for (int i = 0; i < n; i++) {
        struct buf file = {0};
        struct err e;
        bool tokens = strlen(path[i]) > 5 && strcmp(path[i] + strlen(path[i]) - 5, ".test") == 0;
        if (file_read_all(path[i], 1 << 24, &file, &e) < 0) {
            fprintf(stderr, "%s\n", e.msg);
            return 1;
        }
        if (tokens)
            run_tokens(&tally[1], buf_span(&file));
        else
            run_trees(&tally[0], buf_span(&file));
        buf_free(&file);
    }
    for (int k = 0; k < 2; k++)
        printf("%s %d %d %d %d\n", kinds[k], tally[k].n[0] + tally[k].n[1] + tally[k].n[2], tally[k].n[EQUAL],
               tally[k].n[MOVED], tally[k].n[WRONG]);
    return 0;
}

/* ---- of its own ---- */

static void test_reader(void **state)
{
    static const char trees[] =
        "#data\n<p>a\nb<script>c</script>\n#errors\n#document\n| <html>\n|   <head>\n|   <body>\n|     <p>\n|       \"a\nb\"\n"
        "|       <script>\n|         \"c\"\n\n"
        "#data\n<table>x<td>y\n#errors\n(1)\n#document\n| <html>\n|   <body>\n|     \"x\"\n|     <table>\n|       \"y\"\n\n"
        "#data\n<td>z\n#errors\n#document-fragment\ntr\n#document\n| \"z\"\n\n"
        "#data\n&lt;\n#errors\n#document\n| <html>\n|   <body>\n|     \"other\"\n";
    static const char tokens[] =
        "{\"tests\":[{\"input\":\"a&lt;<b>\",\"output\":[[\"Character\",\"a<\"],[\"StartTag\",\"b\",{}]]},"
        "{\"input\":\"x\",\"initialStates\":[\"RCDATA state\"],\"output\":[[\"Character\",\"y\"]]},"
        "{\"input\":\"x\",\"output\":[[\"Character\",\"y\"]]}]}";
    struct tally t = {.verbose = false};

    (void)state;
    run_trees(&t, span_of(trees));
    assert_int_equal(t.n[EQUAL], 2);
    assert_int_equal(t.n[WRONG], 1);
    t = (struct tally){.verbose = false};
    run_tokens(&t, span_of(tokens));
    assert_int_equal(t.n[EQUAL], 1);
    assert_int_equal(t.n[WRONG], 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reader)};
    bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;

    html_names_init(&names);
    if (argc > 1)
        return run_files(argc - 1 - verbose, argv + 1 + verbose, verbose);
    return cmocka_run_group_tests_name("html5lib", tests, NULL, NULL);
}
