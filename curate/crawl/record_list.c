#include "curate/crawl/record_list.h"

#include <limits.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/hash.h"
#include "curate/crawl/crawl_places.h"

/* ---- keys ---- */

uint64_t record_digest_key(struct span s)
{
    char small[128];

    if (span_starts_nocase(s, "sha1:"))
        s = (struct span){s.p + 5, s.n - 5};
    while (s.n && s.p[s.n - 1] == '=')
        s.n--;
    if (s.n == 0 || s.n > sizeof small)
        return 0;
    for (size_t i = 0; i < s.n; i++)
        small[i] = (char)(ascii_is_upper((unsigned char)s.p[i]) ? s.p[i] | 32 : s.p[i]);
    return hash_xxh3_64((struct span){small, s.n}) | 1;
}

uint64_t record_url_key(struct span url)
{
    return url.n ? hash_xxh3_64(url) | 1 : 0;
}

/* ---- telling a list ---- */

/* Whether an object has a number, in quotes or not, under one of these keys. */
static bool has_key(struct span line, const char *const *names)
{
    for (; *names; names++) {
        const char *p = memmem(line.p, line.n, *names, strlen(*names));
        if (p)
            return true;
    }
    return false;
}

bool record_list_begins(struct span s)
{
    static const char *const files[] = {"\"file\"", "\"filename\"", "\"warc_filename\"", NULL};
    static const char *const offsets[] = {"\"offset\"", "\"warc_record_offset\"", NULL};
    static const char *const lengths[] = {"\"length\"", "\"warc_record_length\"", NULL};
    static const char *const text[] = {"\"text\"", "\"source\"", NULL};
    const char *nl;

    while (s.n && ascii_is_space((unsigned char)*s.p))
        s = (struct span){s.p + 1, s.n - 1};
    nl = s.n ? memchr(s.p, '\n', s.n) : NULL;
    if (nl)
        s.n = (size_t)(nl - s.p);
    return s.n && s.p[0] == '{' && has_key(s, files) && has_key(s, offsets) && has_key(s, lengths) && !has_key(s, text);
}

/* ---- files ---- */

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a list of records");
}

/* The place of a name in the table. */
static size_t slot_of(const struct record_list *l, struct span name)
{
    size_t i = hash_xxh3_64(name) & (l->table_size - 1);

    while (l->table[i] && !span_is(name, l->file[l->table[i] - 1]))
        i = (i + 1) & (l->table_size - 1);
    return i;
}

static int grow_table(struct record_list *l, struct err *e)
{
    size_t n = l->table_size ? l->table_size * 2 : 256;
    uint32_t *table = calloc(n, sizeof *table);

    if (!table)
        return no_memory(e);
    free(l->table);
    l->table = table;
    l->table_size = n;
    for (uint32_t i = 0; i < l->n_files; i++)
        l->table[slot_of(l, span_of(l->file[i]))] = i + 1;
    return 0;
}

/* The number of a file, new ones being added. */
static int find_file(struct record_list *l, struct span name, struct span dump, uint32_t *number, struct err *e)
{
    size_t i;

    if (2 * (size_t)l->n_files >= l->table_size)
        TRY(grow_table(l, e));
    i = slot_of(l, name);
    if (!l->table[i]) {
        if (l->n_files == UINT32_MAX - 1 || mem_grow(&l->file, &l->cap_files, l->n_files + (size_t)1, sizeof *l->file) < 0 ||
            mem_grow(&l->dump, &l->cap_dumps, l->n_files + (size_t)1, sizeof *l->dump) < 0)
            return no_memory(e);
        l->dump[l->n_files] = dump.n ? strndup(dump.p, dump.n) : NULL;
        l->file[l->n_files] = strndup(name.p, name.n);
        if (!l->file[l->n_files] || (dump.n && !l->dump[l->n_files])) {
            free(l->file[l->n_files]);
            free(l->dump[l->n_files]);
            return no_memory(e);
        }
        l->table[i] = ++l->n_files;
    }
    *number = l->table[i] - 1;
    return 0;
}

int record_list_add(struct record_list *l, const struct crawl_entry *c, uint64_t line, bool any, struct err *e)
{
    struct record_entry r = {.offset = c->offset, .length = c->length, .line = line};
    struct span file = c->text[CRAWL_FILE];

    if (file.n >= PATH_MAX || memchr(file.p, '\0', file.n))
        return err_set(e, ERR_FORMAT, "its file is no path");
    if (!any && !crawl_name_is_below(file))
        return err_set(e, ERR_FORMAT, "its file '%.*s' is no path below the folder of the crawl (--trust-list allows any)",
                       (int)(file.n < 200 ? file.n : 200), file.p);
    TRY(find_file(l, file, c->text[CRAWL_DUMP], &r.file, e));
    r.digest = record_digest_key(c->text[CRAWL_DIGEST]);
    r.url = record_url_key(c->text[CRAWL_URL]);
    if (mem_grow(&l->v, &l->cap, l->n + 1, sizeof *l->v) < 0)
        return no_memory(e);
    l->v[l->n++] = r;
    return 0;
}

/* ---- order ---- */

static int by_place(const void *a, const void *b, void *list)
{
    const struct record_list *l = list;
    const struct record_entry *x = a, *y = b;

    if (x->file != y->file)
        return strcmp(l->file[x->file], l->file[y->file]);
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

void record_list_sort(struct record_list *l)
{
    if (l->n)
        qsort_r(l->v, l->n, sizeof *l->v, by_place, l);
}

void record_list_free(struct record_list *l)
{
    for (uint32_t i = 0; i < l->n_files; i++) {
        free(l->file[i]);
        free(l->dump[i]);
    }
    free(l->file);
    free(l->dump);
    free(l->table);
    free(l->v);
    *l = (struct record_list){0};
}
