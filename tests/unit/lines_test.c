/* Lines of files: blocks, damages, long lines, ranges, and going on from any place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/lines.h"
#include "tests/temp_folder.h"

static char plain[96], packed[96];

static void put(const char *name, struct span bytes)
{
    struct file_out *f;
    struct err e;

    assert_int_equal(file_create(&f, name, 0, &e), 0);
    assert_int_equal(file_write(f, bytes.p, bytes.n, &e), 0);
    assert_int_equal(file_commit(f, &e), 0);
}

static struct buf take(const char *name)
{
    FILE *f = fopen(name, "rb");
    struct buf b = {0};

    assert_non_null(f);
    assert_int_equal(buf_reserve(&b, 1 << 20), 0);
    b.n = fread(b.p, 1, 1 << 20, f);
    fclose(f);
    return b;
}

/* Lines from..to, of lengths that differ; each hundredth is longer than 300 bytes, some are blank. */
static void put_lines(struct buf *b, int from, int to)
{
    for (int i = from; i < to; i++)
        assert_int_equal(i % 7 == 3 ? buf_puts(b, " \r\n")
                                    : buf_printf(b, "{\"text\":\"%0*d\"}\n", i % 100 == 50 ? 400 : i * 13 % 90, i), 0);
}

/* `plain` has 600 lines; `packed` the same in three gzip members, of which the second is damaged in its middle, and begins
 * within a line. */
static int make_files(void **s)
{
    static const int ends[] = {200, 400, 600};
    struct buf all = {0}, joined = {0};
    char name[96];

    if (make_dir(s) < 0)
        return -1;
    sprintf(plain, "%s/plain", dir);
    sprintf(packed, "%s/packed", dir);
    sprintf(name, "%s/part.gz", dir);
    put_lines(&all, 0, 600);
    put(plain, buf_span(&all));
    for (int k = 0; k < 3; k++) {
        struct buf part;
        buf_clear(&all);
        put_lines(&all, k ? ends[k - 1] : 0, ends[k]);
        all.n -= k == 0 ? 5 : 0; /* its last line goes on in the second */
        put(name, buf_span(&all));
        part = take(name);
        if (k == 1)
            memset(part.p + part.n / 2, 0xff, 40);
        assert_int_equal(buf_put_span(&joined, buf_span(&part)), 0);
        buf_free(&part);
    }
    put(packed, buf_span(&joined));
    buf_free(&all);
    buf_free(&joined);
    return 0;
}

/* What a block holds, in a form to compare. */
static void describe(const struct line_block *b, struct buf *to)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct line *x = &b->line[i];
        assert_int_equal(buf_printf(to, "%s %d %s|", x->fault ? "" : x->file, (int)x->offset, x->fault ? x->fault : ""), 0);
        assert_int_equal(buf_put_span(to, x->text), 0);
        assert_int_equal(buf_putc(to, '\n'), 0);
    }
    assert_int_equal(buf_puts(to, "--\n"), 0);
}

static struct buf read_all(struct lines_in *l)
{
    struct line_block b = {0};
    struct buf to = {0};
    struct err e;

    do {
        assert_int_equal(lines_fill(l, &b, &e), 0);
        describe(&b, &to);
    } while (b.n);
    line_block_free(&b);
    lines_close(l);
    return to;
}

/* From behind each block the same blocks follow as to one that never stopped. */
static void goes_on_anywhere(struct lines_in conf, size_t least_blocks)
{
    struct lines_in l = conf;
    struct line_block b = {0};
    struct buf all = read_all(&l), head = {0};
    size_t blocks = 0;
    struct err e;

    l = conf;
    for (;; blocks++) {
        struct lines_in again = conf;
        struct buf rest;
        assert_int_equal(lines_fill(&l, &b, &e), 0);
        if (!b.n)
            break;
        describe(&b, &head);
        assert_int_equal(lines_goto(&again, &b.next, &e), 0);
        rest = read_all(&again);
        assert_int_equal(head.n + rest.n, all.n);
        assert_memory_equal(head.p, all.p, head.n);
        assert_memory_equal(rest.p, all.p + head.n, rest.n);
        buf_free(&rest);
    }
    assert_true(blocks >= least_blocks);
    line_block_free(&b);
    lines_close(&l);
    buf_free(&all);
    buf_free(&head);
}

static void a_run_goes_on_behind_any_block(void **s)
{
    char *paths[] = {plain, packed, plain};

    (void)s;
    goes_on_anywhere((struct lines_in){.paths = paths, .n_paths = 3, .block_bytes = 1000}, 60);
    goes_on_anywhere((struct lines_in){.paths = paths, .n_paths = 3, .block_bytes = 1, .max_line = 300}, 1000);
    goes_on_anywhere((struct lines_in){.paths = paths + 1, .n_paths = 1}, 3);
}

static size_t count(const struct buf *b, const char *what)
{
    size_t n = 0;

    for (const char *p = b->p; (p = strstr(p, what)); p++)
        n++;
    return n;
}

static void a_damage_stands_where_it_was_met(void **s)
{
    char *path = packed;
    struct lines_in l = {.paths = &path, .n_paths = 1};
    struct buf got = read_all(&l);
    const char *fault;

    (void)s;
    fault = strstr(got.p, "gzip member at offset");
    assert_non_null(fault);
    assert_int_equal(count(&got, "gzip member at offset"), 1);
    assert_true(strstr(got.p, "198\"}") < fault); /* the last whole line of the first member */
    assert_null(strstr(got.p, "199\"}"));         /* the one that was cut */
    assert_true(strstr(got.p, "401\"}") > fault);
    assert_non_null(strstr(got.p, "599\"}"));
    assert_int_equal(count(&got, "401\"}"), 1);
    buf_free(&got);
}

static void long_lines_are_faults_with_their_place(void **s)
{
    char *path = plain;
    struct lines_in l = {.paths = &path, .n_paths = 1, .max_line = 300};
    struct buf got = read_all(&l), all = take(plain);
    char want[96];

    (void)s;
    assert_int_equal(count(&got, "the line is longer than 300 bytes"), 5); /* 150 is blank: 3 of 7 */
    sprintf(want, " %d the line is longer than 300 bytes|", (int)(strstr(all.p, "49\"}\n") + 5 - all.p));
    assert_non_null(strstr(got.p, want));
    assert_int_equal(count(&got, "51\"}"), 5);
    buf_free(&got);
    buf_free(&all);
}

/* Wherever a file is cut in two, the lines of the halves are those of the whole. */
static void share_the_lines(char *path, uint64_t max_line)
{
    char *paths[] = {path, path};
    struct lines_in l = {.paths = paths, .n_paths = 1, .max_line = max_line, .block_bytes = 1};
    struct buf whole = read_all(&l), all = take(path);

    for (uint64_t cut = 0; cut < all.n + 2; cut += cut < 200 ? 1 : 97) {
        struct lines_range r[] = {{0, cut}, {cut, UINT64_MAX}};
        struct lines_in halves = {.paths = paths, .n_paths = 2, .range = r, .max_line = max_line, .block_bytes = 1};
        struct buf got = read_all(&halves);
        const char *p = whole.p, *q = got.p;
        uint64_t size;
        struct err e;
        while (*p && *q) { /* but for where blocks end */
            if (strncmp(p, "--\n", 3) == 0)
                p += 3;
            else if (strncmp(q, "--\n", 3) == 0)
                q += 3;
            else
                assert_int_equal(*p++, *q++);
        }
        while (strncmp(p, "--\n", 3) == 0)
            p += 3;
        while (strncmp(q, "--\n", 3) == 0)
            q += 3;
        assert_int_equal(*p, *q);
        assert_int_equal(lines_check(&halves, &size, &e), 0);
        assert_int_equal(size, all.n);
        buf_free(&got);
    }
    buf_free(&whole);
    buf_free(&all);
}

static void ranges_share_the_lines(void **s)
{
    char name[96], text[400];

    (void)s;
    share_the_lines(plain, 0);
    share_the_lines(plain, 300);
    memset(text, 'a', sizeof text);
    memcpy(text, "{}\n", 3);
    sprintf(name, "%s/tail", dir);
    put(name, (struct span){text, sizeof text});
    share_the_lines(name, 300);
}

/* A gzip member that is damaged from its first byte on, then one with a line of text. */
static void put_damaged_text(const char *name)
{
    char part[96];
    struct buf whole, all = {0};

    sprintf(part, "%s/part.gz", dir);
    put(part, span_of("text\n"));
    whole = take(part);
    assert_int_equal(buf_put(&all, whole.p, 10), 0);
    assert_int_equal(buf_puts(&all, "\xff\xff\xff\xff"), 0);
    assert_int_equal(buf_put_span(&all, buf_span(&whole)), 0);
    put(name, buf_span(&all));
    buf_free(&whole);
    buf_free(&all);
}

static void text_is_told_by_its_first_byte(void **s)
{
    char name[96], *paths[] = {name, plain};
    struct lines_in l = {.paths = paths, .n_paths = 2, .form = LINES_AUTO};
    struct line_block b = {0};
    struct err e;

    (void)s;
    sprintf(name, "%s/text", dir);
    put(name, span_of("\n a text\n\nlast"));
    assert_int_equal(lines_fill(&l, &b, &e), 0);
    assert_int_equal(b.n, 4);
    assert_true(b.line[0].plain && span_is(b.line[0].text, "\n"));
    assert_true(span_is(b.line[1].text, " a text\n") && span_is(b.line[3].text, "last"));
    assert_int_equal(lines_fill(&l, &b, &e), 0);
    assert_true(b.n && !b.line[0].plain && !memchr(b.line[0].text.p, '\n', b.line[0].text.n));
    lines_close(&l);
    l = (struct lines_in){.paths = paths, .n_paths = 1, .form = LINES_AUTO};
    put_damaged_text(name);
    assert_int_equal(lines_fill(&l, &b, &e), 0);
    assert_true(b.n == 1 && b.line[0].fault);
    assert_int_equal(lines_fill(&l, &b, &e), 0);
    assert_true(b.n == 1 && b.line[0].plain && span_is(b.line[0].text, "text\n"));
    lines_close(&l);
    l = (struct lines_in){.paths = paths, .n_paths = 1, .form = LINES_AUTO};
    put(name, (struct span){"a\0b\n", 4});
    assert_int_equal(lines_fill(&l, &b, &e), ERR_FORMAT);
    lines_close(&l);
    line_block_free(&b);
}

static void another_file_is_not_gone_on_with(void **s)
{
    char *path = packed;
    struct lines_in l = {.paths = &path, .n_paths = 1};
    struct err e;

    (void)s;
    assert_int_equal(lines_goto(&l, &(struct lines_place){0, 1 << 30, 0}, &e), ERR_FORMAT);
    lines_close(&l);
    assert_int_equal(lines_goto(&l, &(struct lines_place){0, 10, 5}, &e), ERR_FORMAT);
    lines_close(&l);
    assert_int_equal(lines_goto(&l, &(struct lines_place){1, 0, 0}, &e), ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_goes_on_behind_any_block), cmocka_unit_test(a_damage_stands_where_it_was_met),
        cmocka_unit_test(long_lines_are_faults_with_their_place), cmocka_unit_test(ranges_share_the_lines),
        cmocka_unit_test(text_is_told_by_its_first_byte), cmocka_unit_test(another_file_is_not_gone_on_with),
    };
    return cmocka_run_group_tests(tests, make_files, remove_dir);
}
