/* Pages with known answers: reads the three sets. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "bench/content/labels.h"
#include "curate/archive/page.h"
#include "curate/html/content_model.h"

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "content_train: %s: %s\n", what, name);
    exit(3);
}

static struct span json_at(struct json_reader *r, struct span object, const char *key)
{
    struct err e;
    const struct json_field *f;
    int n = json_read_object(r, object, &f, &e);

    for (int i = 0; i < n; i++)
        if (span_is(f[i].key, key))
            return f[i].raw;
    return (struct span){0};
}

static char *json_text(struct span raw)
{
    struct buf b = {0};
    struct err e;

    if (raw.n < 2 || raw.p[0] != '"' || json_unescape(raw, &b, &e) < 0)
        return NULL;
    buf_putc(&b, '\0');
    return b.p;
}

/* The strings of an array. */
static char **json_texts(struct span raw, int *n)
{
    char **v = NULL;

    *n = 0;
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] != '"')
            continue;
        size_t from = i;
        for (i++; i < raw.n && raw.p[i] != '"'; i++)
            i += raw.p[i] == '\\';
        v = realloc(v, (size_t)(*n + 1) * sizeof *v);
        v[(*n)++] = json_text((struct span){raw.p + from, i + 1 - from});
    }
    return v;
}

/* The last two labels of an address' host, three where the last but one is short as in "co.uk". */
static uint32_t domain_of(const char *url)
{
    const char *host = strstr(url, "://"), *end, *p;
    int labels = 0;

    host = host ? host + 3 : url;
    end = host + strcspn(host, "/:?#");
    for (p = end; p > host; p--)
        if (p[-1] == '.' && ++labels == 2)
            break;
    struct span d = {p, (size_t)(end - p)};
    const char *dot = memchr(d.p, '.', d.n);
    if (dot && dot - d.p <= 3 && p > host + 1) {
        for (p--; p > host && p[-1] != '.'; p--)
            ;
        d = (struct span){p, (size_t)(end - p)};
    }
    return (uint32_t)hash_xxh3_64(d);
}

/* The samples so far, and what reads them. */
struct reading {
    struct sample *sample;
    uint32_t n;
    struct json_reader *json;
    struct page_reader page;
    struct buf bytes; /* of a file of answers */
};

/* Adds a sample whose page is in the file at path. */
static void add(struct reading *r, struct sample s, const char *url, const char *path)
{
    const struct http_head none = {0};
    struct buf b = {0};
    struct err e;
    struct page page;

    if (file_read_all(path, 1 << 28, &b, &e) < 0)
        fail(e.msg, path);
    if (page_decode(&r->page, buf_span(&b), &none, (struct span){0}, true, 1 << 28, &page, &e) < 0)
        fail(e.msg, path);
    s.html.n = page.utf8.n;
    char *copy = malloc(page.utf8.n + 1);
    memcpy(copy, page.utf8.p, page.utf8.n);
    s.html.p = copy;
    buf_free(&b);
    s.domain = domain_of(url ? url : s.id);
    s.fold = (int)(s.domain % FOLDS);
    r->sample = realloc(r->sample, (r->n + 1) * sizeof *r->sample);
    r->sample[r->n++] = s;
}

/* Reads a file of answers into r->bytes. */
static void read_answers(struct reading *r, const char *path)
{
    struct err e;

    buf_clear(&r->bytes);
    if (file_read_all(path, 1 << 28, &r->bytes, &e) < 0)
        fail(e.msg, path);
    buf_reserve(&r->bytes, JSON_PADDING);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char **names_in(const char *folder, int *n)
{
    DIR *d = opendir(folder);
    struct dirent *at;
    char **v = NULL;

    if (!d)
        fail("cannot be read", folder);
    for (*n = 0; (at = readdir(d));)
        if (at->d_name[0] != '.') {
            v = realloc(v, (size_t)(*n + 1) * sizeof *v);
            v[(*n)++] = strdup(at->d_name);
        }
    closedir(d);
    qsort(v, (size_t)*n, sizeof *v, by_name);
    return v;
}

static void read_wcxb(struct reading *r, const char *folder)
{
    char path[4096];
    int n;

    snprintf(path, sizeof path, "%s/ground-truth", folder);
    char **name = names_in(path, &n);
    for (int i = 0; i < n; i++) {
        struct sample s = {.set = WCXB, .kind = -1};
        snprintf(path, sizeof path, "%s/ground-truth/%s", folder, name[i]);
        read_answers(r, path);
        struct span all = buf_span(&r->bytes), truth = json_at(r->json, all, "ground_truth"), url = json_at(r->json, all, "url");
        struct span kind = json_at(r->json, json_at(r->json, json_at(r->json, all, "_internal"), "page_type"), "primary");
        char *kind_name = json_text(kind), *url_text = json_text(url);
        for (int k = 0; kind_name && k < CONTENT_KINDS; k++)
            if (strcmp(kind_name, content_kind_names[k]) == 0)
                s.kind = k;
        s.gold = json_text(json_at(r->json, truth, "main_content"));
        s.gold = s.gold ? s.gold : strdup("");
        if (s.kind < 0)
            fail("no main_content or kind", path);
        s.id = strndup(name[i], strcspn(name[i], "."));
        snprintf(path, sizeof path, "%s/html/%s.html", folder, s.id);
        add(r, s, url_text, path);
        free(kind_name);
        free(url_text);
    }
}

static void read_segments(struct reading *r, const char *folder)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/segment-benchmark/dev/segments.jsonl", folder);
    read_answers(r, path);
    for (char *p = r->bytes.p, *end = p + r->bytes.n, *to; p < end; p = to + 1) {
        to = memchr(p, '\n', (size_t)(end - p));
        to = to ? to : end;
        struct span line = {p, (size_t)(to - p)};
        if (line.n < 2)
            continue;
        struct sample s = {.set = SEGMENT, .kind = CONTENT_ARTICLE};
        s.id = json_text(json_at(r->json, line, "id"));
        s.with = json_texts(json_at(r->json, line, "with"), &s.n_with);
        s.without = json_texts(json_at(r->json, line, "without"), &s.n_without);
        char *url = json_text(json_at(r->json, line, "url"));
        snprintf(path, sizeof path, "%s/segment-benchmark/dev/html/%s.html.gz", folder, s.id);
        add(r, s, url, path);
        free(url);
    }
}

static void read_articles(struct reading *r, const char *folder)
{
    const struct json_field *f;
    char path[4096];
    struct err e;

    snprintf(path, sizeof path, "%s/article-benchmark/dev/ground-truth.json", folder);
    read_answers(r, path);
    int fields = json_read_object(r->json, buf_span(&r->bytes), &f, &e);
    struct span *raw = malloc((size_t)fields * 2 * sizeof *raw);
    for (int i = 0; i < fields; i++) {
        raw[2 * i] = (struct span){strndup(f[i].key.p, f[i].key.n), f[i].key.n};
        raw[2 * i + 1] = f[i].raw;
    }
    for (int i = 0; i < fields; i++) {
        struct sample s = {.set = ARTICLE, .kind = CONTENT_ARTICLE, .id = (char *)(uintptr_t)raw[2 * i].p};
        s.gold = json_text(json_at(r->json, raw[2 * i + 1], "articleBody"));
        char *url = json_text(json_at(r->json, raw[2 * i + 1], "url"));
        if (!s.gold)
            fail("no articleBody", s.id);
        snprintf(path, sizeof path, "%s/article-benchmark/dev/html/%s.html.gz", folder, s.id);
        add(r, s, url ? url : s.id, path);
        free(url);
    }
    free(raw);
}

struct sample *samples_read(const char *folder, const char *wcxb, uint32_t *n)
{
    struct reading r = {.json = json_reader_new()};
    struct err e;

    if (!r.json || page_reader_open(&r.page, &e) < 0)
        fail("out of memory", folder);
    read_wcxb(&r, wcxb);
    read_segments(&r, folder);
    read_articles(&r, folder);
    json_reader_free(r.json);
    page_reader_close(&r.page);
    buf_free(&r.bytes);
    *n = r.n;
    return r.sample;
}
