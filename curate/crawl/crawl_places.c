#include "curate/crawl/crawl_places.h"

#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/ascii.h"
#include "base/file.h"
#include "base/http.h"
#include "base/s3.h"

enum { PATHS_MAX = 64 << 20 }; /* bytes of a crawl's list of files */

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the names of indexes");
}

/* ---- names ---- */

bool crawl_name_is_below(struct span name)
{
    size_t from = 0;

    if (name.n == 0 || name.n >= PATH_MAX || name.p[0] == '/' || memmem(name.p, name.n, "://", 3))
        return false;
    for (size_t i = 0; i <= name.n; i++) {
        if (i < name.n && name.p[i] != '/') {
            if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f || name.p[i] == '\\')
                return false;
            continue;
        }
        if (i - from == 2 && name.p[from] == '.' && name.p[from + 1] == '.')
            return false;
        from = i + 1;
    }
    return true;
}

char *crawl_join(const char *folder, const char *name)
{
    bool remote = http_is_address(folder) && !s3_is_address(folder);
    struct buf b = {0};

    buf_puts(&b, folder);
    if (b.n && b.p[b.n - 1] != '/')
        buf_putc(&b, '/');
    for (const char *p = name; *p; p++) {
        if (remote && !ascii_is_alnum((unsigned char)*p) && !strchr("/-._~=+,:@!$&'()*;", *p))
            buf_printf(&b, "%%%02X", (unsigned char)*p);
        else
            buf_putc(&b, *p);
    }
    if (buf_putc(&b, '\0') == 0)
        return b.p;
    buf_free(&b);
    return NULL;
}

char *crawl_folder_of(const char *name)
{
    size_t n = http_is_address(name) ? strcspn(name, "?#") : strlen(name);

    while (n && name[n - 1] != '/')
        n--;
    return strndup(name, n);
}

/* ---- places ---- */

/* Takes ownership of name. */
static int add(struct crawl_places *p, char *name, struct err *e)
{
    if (name && p->n < INT_MAX && mem_grow(&p->v, &p->cap, (size_t)p->n + 1, sizeof *p->v) == 0) {
        p->v[p->n++] = name;
        return 0;
    }
    free(name);
    return no_memory(e);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Whether a file of a folder is an index, by its name. */
static bool is_index(const char *name)
{
    static const char *const endings[] = {".cdxj", ".cdxj.gz", ".cdxj.zst", ".parquet", NULL};

    for (int i = 0; endings[i]; i++)
        if (name[0] != '.' && span_ends(span_of(name), endings[i]))
            return true;
    return false;
}

/* The indexes in a folder: its cluster.idx, or all others in order of their names. */
static int add_folder(struct crawl_places *p, const char *folder, struct err *e)
{
    char *cluster = crawl_join(folder, "cluster.idx");
    const struct dirent *entry;
    int first = p->n, rc = 0;
    struct stat st;
    DIR *d;

    if (!cluster)
        return no_memory(e);
    if (stat(cluster, &st) == 0)
        return add(p, cluster, e);
    free(cluster);
    d = opendir(folder);
    if (!d)
        return err_sys(e, ERR_IO, "cannot read the folder '%s'", folder);
    while (rc == 0 && (entry = readdir(d)))
        if (is_index(entry->d_name))
            rc = add(p, crawl_join(folder, entry->d_name), e);
    closedir(d);
    if (rc < 0)
        return rc;
    if (p->n == first)
        return err_set(e, ERR_ARG, "the folder '%s' has no index: neither cluster.idx nor .cdxj, .cdxj.gz or .parquet files",
                       folder);
    qsort(p->v + first, (size_t)(p->n - first), sizeof *p->v, by_name);
    return 0;
}

static int add_pattern(struct crawl_places *p, const char *pattern, struct err *e)
{
    glob_t g = {0};
    int rc = glob(pattern, 0, NULL, &g);

    if (rc == 0)
        for (size_t i = 0; i < g.gl_pathc && rc == 0; i++)
            rc = add(p, strdup(g.gl_pathv[i]), e);
    else
        rc = rc == GLOB_NOSPACE ? no_memory(e) : err_set(e, ERR_ARG, "no file matches '%s'", pattern);
    globfree(&g);
    return rc;
}

/* Whether a name is that of one of Common Crawl's crawls. */
static bool is_crawl(const char *name)
{
    struct span s = span_of(name);

    if (!span_starts(s, "CC-MAIN-") || s.n < 15)
        return false;
    for (size_t i = 8; i < s.n; i++)
        if (!ascii_is_digit((unsigned char)s.p[i]) && s.p[i] != '-')
            return false;
    return true;
}

/* Adds those of a list of paths, a line each, that have a text in them. */
static int add_paths(struct crawl_places *p, const char *list, struct span lines, const char *prefix, const char *with,
                     struct err *e)
{
    int first = p->n;

    for (const char *at = lines.p, *end = lines.p + lines.n, *nl; at < end; at = nl + 1) {
        struct span line;
        char *name;
        int rc;

        nl = memchr(at, '\n', (size_t)(end - at));
        nl = nl ? nl : end;
        line = (struct span){at, (size_t)(nl - at)};
        if (!line.n || !memmem(line.p, line.n, with, strlen(with)))
            continue;
        if (!crawl_name_is_below(line))
            return err_set(e, ERR_FORMAT, "'%s' names '%.*s', which is no path below '%s'", list,
                           (int)(line.n < 200 ? line.n : 200), line.p, prefix);
        name = strndup(line.p, line.n);
        rc = name ? add(p, crawl_join(prefix, name), e) : no_memory(e);
        free(name);
        TRY(rc);
    }
    return p->n > first ? 0 : err_set(e, ERR_FORMAT, "'%s' names no files of the columnar index", list);
}

/* The well-known places of a crawl's indexes. */
static int add_crawl(struct crawl_places *p, const char *crawl, const struct crawl_index_conf *c, bool bounded, struct err *e)
{
    const char *prefix = c->prefix ? c->prefix : CRAWL_DATA;
    struct buf paths = {0};
    char name[200], *list;
    int rc;

    if (c->kind == CRAWL_CDX || (c->kind == CRAWL_AUTO && bounded)) {
        snprintf(name, sizeof name, "cc-index/collections/%.60s/indexes/cluster.idx", crawl);
        return add(p, crawl_join(prefix, name), e);
    }
    snprintf(name, sizeof name, "crawl-data/%.60s/cc-index-table.paths.gz", crawl);
    list = crawl_join(prefix, name);
    rc = list ? file_read_all(list, PATHS_MAX, &paths, e) : no_memory(e);
    if (rc == 0)
        rc = add_paths(p, list, buf_span(&paths), prefix, "/subset=warc/", e);
    free(list);
    buf_free(&paths);
    return rc;
}

int crawl_places_add(struct crawl_places *p, const char *name, const struct crawl_index_conf *c, bool bounded, struct err *e)
{
    struct stat st;

    if (http_is_address(name) || strcmp(name, "-") == 0)
        return add(p, strdup(name), e);
    if (stat(name, &st) == 0)
        return S_ISDIR(st.st_mode) ? add_folder(p, name, e) : add(p, strdup(name), e);
    if (is_crawl(name))
        return add_crawl(p, name, c, bounded, e);
    if (strpbrk(name, "*?["))
        return add_pattern(p, name, e);
    return err_sys(e, ERR_IO, "cannot open '%s'", name);
}

void crawl_places_free(struct crawl_places *p)
{
    for (int i = 0; i < p->n; i++)
        free(p->v[i]);
    free(p->v);
    *p = (struct crawl_places){0};
}
