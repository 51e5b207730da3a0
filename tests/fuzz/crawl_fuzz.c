/* The first byte says what the others are: a condition; lines of CDXJ and of a list; an index of any kind. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "curate/crawl/crawl_lines.h"
#include "curate/crawl/crawl_select.h"
#include "curate/crawl/record_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A condition is met or not by an entry, and bounds keys to prefixes in order. */
static void condition(const char *text)
{
    struct crawl_entry c = {.text = {[CRAWL_URL] = {"https://www.a.de/b", 18}, [CRAWL_STATUS] = {"200", 3}}};
    struct crawl_keys k;
    struct where *w;
    struct err e;

    if (where_read(&w, text, crawl_fields, &e) < 0)
        return;
    if (crawl_entry_meets(&c, w, &e) > 1 || crawl_keys_find(&k, w, &e) < 0 || (k.all && k.n))
        abort();
    for (size_t i = 1; i < k.n; i++)
        if (memcmp(k.v[i - 1].p, k.v[i].p, k.v[i - 1].n < k.v[i].n ? k.v[i - 1].n : k.v[i].n) > 0)
            abort();
    crawl_keys_free(&k);
    where_free(w);
}

struct bytes {
    const uint8_t *p;
    size_t n;
};

static ssize_t read_bytes(void *bytes, void *p, size_t n, struct err *e)
{
    struct bytes *b = bytes;

    (void)e;
    n = n < b->n ? n : b->n;
    memcpy(p, b->p, n);
    b->p += n;
    b->n -= n;
    return (ssize_t)n;
}

static int no_skip(void *bytes, struct err *e)
{
    (void)bytes;
    (void)e;
    return 0;
}

/* What an entry is written as is read as the same. */
static void entry_again(struct crawl_entry *c, struct record_list *l, uint64_t offset)
{
    struct crawl_entry again = {.json = NULL};
    struct buf b = {0};
    struct err e;

    if (crawl_entry_put(c, &b) < 0 || buf_reserve(&b, JSON_PADDING) < 0)
        abort();
    if (crawl_entry_json(&again, (struct span){b.p, b.n - 1}, &e) != 1 || again.offset != c->offset ||
        again.length != c->length ||
        !span_eq(again.text[CRAWL_FILE], c->text[CRAWL_FILE]))
        abort();
    if (record_list_add(l, c, offset, false, &e) == 0 && !l->file[l->v[l->n - 1].file][0])
        abort();
    crawl_entry_free(&again);
    buf_free(&b);
}

static void lines(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    struct crawl_lines l = {.read = read_bytes, .skip = no_skip, .arg = &b};
    struct crawl_entry c = {.json = NULL};
    struct record_list list = {0};
    struct span line;
    uint64_t offset;
    struct err e;
    int rc;

    while ((rc = crawl_lines_next(&l, &line, &offset, &e)) != 0)
        if (rc == 1 && ((offset % 2 ? crawl_entry_cdxj(&c, line, &e) : crawl_entry_json(&c, line, &e)) == 1))
            entry_again(&c, &list, offset);
    record_list_sort(&list);
    for (size_t i = 1; i < list.n; i++)
        if (list.v[i].file == list.v[i - 1].file && list.v[i].offset < list.v[i - 1].offset)
            abort();
    record_list_free(&list);
    crawl_lines_free(&l);
    crawl_entry_free(&c);
}

static int no_put(void *arg, struct span lines, struct err *e)
{
    (void)arg;
    (void)e;
    return lines.n && lines.p[lines.n - 1] != '\n' ? ERR_IO : 0;
}

static void no_word(void *arg, const struct err *why)
{
    (void)arg;
    (void)why;
}

static void no_show(void *arg, const struct crawl_counts *n, const char *index)
{
    (void)arg;
    (void)n;
    (void)index;
}

static void any_index(const uint8_t *data, size_t size)
{
    int fd = memfd_create("index", 0);
    char path[32];
    const char *const name = path;
    struct crawl_index_conf conf = {.prefix = NULL};
    struct crawl_sink sink = {no_put, no_word, no_show, NULL};
    struct crawl_counts counts = {.bad = 0};
    struct where *w = NULL;
    struct crawl_index *x;
    struct err e;

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (size % 2 && where_read(&w, "tld = de or not (status = 200 and lang != deu and date < 2025)", crawl_fields, &e) < 0)
        abort();
    conf.where = w;
    if (crawl_index_open(&x, &conf, &name, 1, &e) < 0)
        abort();
    crawl_select(x, &conf, 1, &sink, &counts, &e);
    crawl_index_close(x);
    where_free(w);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size == 0)
        return 0;
    if (data[0] == '1') {
        lines(data + 1, size - 1);
    } else if (data[0] == '2') {
        any_index(data + 1, size - 1);
    } else if ((text = strndup((const char *)data + 1, size - 1))) {
        condition(text);
        free(text);
    }
    return 0;
}
