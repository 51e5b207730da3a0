/* Preset rpv2 against recorded signals of RedPajama-Data v2 (tests/record/rpv2.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/file.h"
#include "base/node.h"
#include "curate/filter/filter.h"

/* CRC-32 of "start end value" of each line, values with 6 decimals, joined by spaces. */
static void line_crc(const struct node *list, char out[16])
{
    struct buf b = {0};

    for (const struct node *row = list->child; row; row = row->next) {
        const struct node *value = row->child->next->next;

        assert_int_equal(buf_printf(&b, "%s%.0f %.0f ", b.n ? " " : "", row->child->num, row->child->next->num), 0);
        assert_int_equal(value->type == NODE_NULL ? buf_puts(&b, "-") : buf_printf(&b, "%.6f", value->num), 0);
    }
    snprintf(out, 16, "%08lx", crc32(0, (const unsigned char *)(b.p ? b.p : ""), (unsigned)b.n));
    buf_free(&b);
}

static void check_value(const char *doc, const char *name, const struct node *got, const char *want)
{
    char crc[16];

    assert_non_null(got);
    if (strncmp(name, "rps_lines_", 10) == 0) {
        line_crc(got, crc);
        if (strcmp(crc, want) != 0)
            fail_msg("%s of %s is not as recorded", name, doc);
    } else if ((got->type == NODE_NULL) != (strcmp(want, "-") == 0) ||
               (got->type != NODE_NULL && !(fabs(got->num - atof(want)) <= 1e-6))) {
        fail_msg("%s of %s is %g, not %s", name, doc, got->num, want);
    }
}

/* The next field of a line of the table. */
static char *field(char **p)
{
    char *s = strsep(p, "\t");

    assert_non_null(s);
    return s;
}

/* Checks a file of documents against the rows of the table from *row on. */
static int check_file(const char *path, struct stage *st, char **row, const char *head)
{
    struct buf docs = {0};
    void *thread;
    struct err e;
    char *line, *rest;
    int n = 0;

    assert_int_equal(file_read_all(path, 1 << 20, &docs, &e), 0);
    assert_int_equal(buf_putc(&docs, '\0'), 0);
    assert_int_equal(st->ops->thread_open(st->state, &thread, &e), 0);
    for (rest = docs.p; (line = strsep(&rest, "\n")) != NULL && *line; n++) {
        char *values = strsep(row, "\n"), *names = strdup(head), *left = names;
        struct arena a = {0};
        struct verdict v = {0};
        struct span note = {0};
        struct node *root, *signals;
        struct doc d;

        assert_int_equal(node_parse_json(&a, span_of(line), &root, &e), 0);
        doc_init(&d, &a);
        assert_int_equal(doc_set_string(&d, "text", node_get(root, "text")->str), 0);
        assert_int_equal(st->ops->work(st->state, thread, &d, &v, &note, &e), 0);
        assert_int_equal(node_parse_json(&a, doc_raw(&d, "signals"), &signals, &e), 0);
        assert_true(span_is(node_get(root, "id")->str, field(&values)));
        field(&left);
        while (left) {
            const char *name = field(&left);
            check_value(line, name, node_get(signals, name), field(&values));
        }
        free(names);
        arena_free(&a);
    }
    st->ops->thread_close(st->state, thread);
    buf_free(&docs);
    return n;
}

static void signals_as_recorded(void **s)
{
    const char *bad[] = {"tests/data/filter/bad.txt"};
    struct filter_conf conf;
    struct stage st;
    struct buf table = {0};
    struct err e;
    char *row, *head;

    (void)s;
    filter_conf_init(&conf);
    conf.presets = "rpv2";
    conf.annotate = true;
    conf.bad_words = (struct opt_list){bad, 1};
    assert_int_equal(filter_stage_open(&st, &conf, &e), 0);
    assert_int_equal(file_read_all("tests/data/filter/rpv2.tsv", 1 << 20, &table, &e), 0);
    assert_int_equal(buf_putc(&table, '\0'), 0);
    row = table.p;
    head = strsep(&row, "\n");
    assert_true(check_file("tests/data/filter/own.jsonl", &st, &row, head) >= 40);
    assert_int_equal(check_file("tests/data/filter/rpv2.jsonl", &st, &row, head), 30);
    assert_int_equal(*row, '\0');
    st.ops->close(st.state);
    buf_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_as_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
