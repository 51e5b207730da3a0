#include "curate/crawl/crawl_key.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "curate/crawl/crawl_entry.h"

enum { KEY_MAX = 4096 };

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for keys");
}

static int add(struct crawl_keys *k, struct span s, struct err *e)
{
    if (k->all || k->n == CRAWL_KEYS_MAX) {
        k->all = true;
        return 0;
    }
    if (mem_grow(&k->v, &k->cap, k->n + 1, sizeof *k->v) < 0)
        return no_memory(e);
    k->v[k->n] = arena_dup(&k->arena, s);
    return k->v[k->n++].p ? 0 : no_memory(e);
}

/* ---- hosts and URLs ---- */

/* Without a first label of "www" and digits. */
static struct span without_www(struct span host)
{
    size_t n = 3;

    if (!span_starts_nocase(host, "www"))
        return host;
    while (n < host.n && ascii_is_digit((unsigned char)host.p[n]))
        n++;
    return n + 1 < host.n && host.p[n] == '.' ? (struct span){host.p + n + 1, host.n - n - 1} : host;
}

/* The labels of a host in reverse, commas between; false: its key is not known (an address of numbers, other letters). */
static bool put_host(struct buf *b, struct span host)
{
    bool named = false;

    host = without_www(host);
    for (size_t i = 0; i < host.n; i++) {
        if (!ascii_is_alnum((unsigned char)host.p[i]) && !strchr("-_.", host.p[i]))
            return false;
        named |= ascii_is_letter((unsigned char)host.p[i]);
    }
    for (size_t end = host.n; end > 0;) {
        size_t at = end;
        while (at > 0 && host.p[at - 1] != '.')
            at--;
        if (b->n)
            buf_putc(b, ',');
        for (size_t i = at; i < end; i++)
            buf_putc(b, (char)(ascii_is_upper((unsigned char)host.p[i]) ? host.p[i] | 32 : host.p[i]));
        end = at ? at - 1 : 0;
    }
    return named && b->n > 0 && b->failed == 0;
}

/* Appends as much of a path as stands in keys as it does in URLs: not all have capitals made small. */
static void put_path(struct buf *b, struct span path)
{
    size_t n = 0;

    while (n < path.n && (ascii_is_digit((unsigned char)path.p[n]) || ascii_is_lower((unsigned char)path.p[n]) ||
                          strchr("-_", path.p[n]) ||
                          (n > 0 && path.p[n] == '.' && path.p[n - 1] != '/') ||
                          (path.p[n] == '/' && (n == 0 || path.p[n - 1] != '/'))))
        n++;
    while (n > 0 && (path.p[n - 1] == '/' || path.p[n - 1] == '.'))
        n--; /* one at the end is left out */
    buf_put(b, path.p, n);
}

/* Adds the key of all URLs that begin with this one; whole: it ends there. */
static int add_url(struct crawl_keys *k, struct span url, bool whole, struct err *e)
{
    const char *slashes = memmem(url.p, url.n, "://", 3), *end = url.p + url.n, *host, *path, *at;
    struct buf b = {.max = KEY_MAX};
    struct span name;
    int rc = 0;

    host = slashes ? slashes + 3 : end;
    for (path = host; path < end && !strchr("/?#", *path); path++)
        ;
    name = (struct span){host, (size_t)(path - host)};
    if ((at = name.n ? memrchr(name.p, '@', name.n) : NULL))
        name = (struct span){at + 1, (size_t)(path - at) - 1};
    at = name.n ? memchr(name.p, ':', name.n) : NULL; /* a port stands in keys, or does not */
    if (!name.n || (path == end && !whole) ||
        !put_host(&b, at ? (struct span){name.p, (size_t)(at - name.p)} : name)) {
        k->all = true;
    } else {
        if (!at && path < end && *path == '/') {
            buf_putc(&b, ')');
            put_path(&b, (struct span){path, (size_t)(end - path)});
        }
        rc = b.failed ? no_memory(e) : add(k, buf_span(&b), e);
    }
    buf_free(&b);
    return rc;
}

static int add_host(struct crawl_keys *k, struct span host, struct err *e)
{
    struct buf b = {.max = KEY_MAX};
    int rc = 0;

    if (put_host(&b, host))
        rc = add(k, buf_span(&b), e);
    else
        k->all = true;
    buf_free(&b);
    return rc;
}

/* ---- expressions ---- */

/* What all texts begin with in which a regular expression is found, as far as that is plain: "^" and letters; "" if nothing is.
 * "https?" counts as "http", "(www\.)?" as nothing: keys know neither. */
static int literal_start(struct span regex, struct buf *b)
{
    static const char *const passed[] = {"https?://", "http(s)?://", "http(s|)://", "https?:\\/\\/"};
    static const char *const www[] = {"(www\\.)?", "(?:www\\.)?", "(www[.])?"};
    struct span s = {regex.p + 1, regex.n - 1};

    if (!regex.n || regex.p[0] != '^' || memchr(regex.p, '|', regex.n))
        return 0;
    for (size_t i = 0; i < sizeof passed / sizeof *passed && !b->n; i++)
        if (span_starts(s, passed[i])) {
            s = (struct span){s.p + strlen(passed[i]), s.n - strlen(passed[i])};
            TRY(buf_puts(b, "http://"));
        }
    for (size_t i = 0; i < sizeof www / sizeof *www && b->n; i++)
        if (span_starts(s, www[i]))
            s = (struct span){s.p + strlen(www[i]), s.n - strlen(www[i])};
    while (s.n) {
        bool escaped = s.p[0] == '\\' && s.n > 1 && !ascii_is_alnum((unsigned char)s.p[1]);
        size_t n = 1 + escaped;

        if (!escaped && strchr("\\^$.[]()*+?{}|", s.p[0]))
            return 0;
        if (s.n > n && strchr("*?{+", s.p[n])) /* it may be missing */
            return 0;
        TRY(buf_putc(b, s.p[n - 1]));
        s = (struct span){s.p + n, s.n - n};
    }
    return 0;
}

static int add_start(struct crawl_keys *k, const struct where_node *n, struct err *e)
{
    struct buf b = {.max = KEY_MAX};
    int rc = literal_start(n->word[0], &b);

    if (rc == ERR_NOMEM)
        no_memory(e);
    else if (b.n == 0)
        k->all = true;
    if (rc != ERR_NOMEM)
        rc = b.n == 0 ? 0 : n->which == CRAWL_KEY ? add(k, buf_span(&b), e) : add_url(k, buf_span(&b), false, e);
    buf_free(&b);
    return rc;
}

/* ---- conditions ---- */

int crawl_key_side(struct span key, struct span prefix)
{
    size_t n = key.n < prefix.n ? key.n : prefix.n;
    int c = n ? memcmp(key.p, prefix.p, n) : 0;

    return c ? c : key.n < prefix.n ? -1 : 0;
}

static bool starts_with(struct span s, struct span start)
{
    return s.n >= start.n && memcmp(s.p, start.p, start.n) == 0;
}

static int by_bytes(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    return span_cmp(*x, *y);
}

/* Sorts them, and leaves those out that begin with another. */
static void tidy(struct crawl_keys *k)
{
    size_t kept = 0;

    if (k->all)
        k->n = 0;
    if (k->n)
        qsort(k->v, k->n, sizeof *k->v, by_bytes);
    for (size_t i = 0; i < k->n; i++)
        if (!kept || !starts_with(k->v[i], k->v[kept - 1]))
            k->v[kept++] = k->v[i];
    k->n = kept;
}

static int find(struct crawl_keys *k, const struct where_node *n, struct err *e);

/* What both can belong to: of each two of which one begins with the other the longer.  Both are tidy. */
static int add_both(struct crawl_keys *k, const struct crawl_keys *a, const struct crawl_keys *b, struct err *e)
{
    k->all = a->all && b->all;
    for (size_t i = 0, j = 0; i < a->n || j < b->n;) {
        const struct span *x = i < a->n ? &a->v[i] : NULL, *y = j < b->n ? &b->v[j] : NULL;

        if ((a->all && y) || (x && y && starts_with(*y, *x))) {
            TRY(add(k, *y, e));
            j++;
        } else if ((b->all && x) || (x && y && starts_with(*x, *y))) {
            TRY(add(k, *x, e));
            i++;
        } else if (!x || !y) {
            break;
        } else if (by_bytes(x, y) < 0) {
            i++;
        } else {
            j++;
        }
    }
    return 0;
}

static int find_two(struct crawl_keys *k, const struct where_node *n, struct err *e)
{
    struct crawl_keys a = {0}, b = {0};
    int rc = find(&a, n->left, e);

    if (rc == 0)
        rc = find(&b, n->right, e);
    if (rc == 0 && n->op == WHERE_AND)
        rc = add_both(k, &a, &b, e);
    k->all |= n->op == WHERE_OR && (a.all || b.all);
    for (size_t i = 0; rc == 0 && n->op == WHERE_OR && i < a.n; i++)
        rc = add(k, a.v[i], e);
    for (size_t i = 0; rc == 0 && n->op == WHERE_OR && i < b.n; i++)
        rc = add(k, b.v[i], e);
    crawl_keys_free(&a);
    crawl_keys_free(&b);
    return rc;
}

/* Adds what entries that meet n can have. */
static int find(struct crawl_keys *k, const struct where_node *n, struct err *e)
{
    if (n->op == WHERE_AND || n->op == WHERE_OR) {
        TRY(find_two(k, n, e));
    } else if (n->op == WHERE_MATCHES && (n->which == CRAWL_URL || n->which == CRAWL_KEY)) {
        TRY(add_start(k, n, e));
    } else if (n->op == WHERE_IS && (n->which == CRAWL_URL || n->which == CRAWL_HOST || n->which == CRAWL_DOMAIN ||
                                     n->which == CRAWL_TLD || n->which == CRAWL_KEY)) {
        for (int i = 0; i < n->n; i++)
            TRY(n->which == CRAWL_URL ? add_url(k, n->word[i], true, e)
                : n->which == CRAWL_KEY ? add(k, n->word[i], e) : add_host(k, n->word[i], e));
    } else {
        k->all = true;
    }
    tidy(k);
    return 0;
}

int crawl_keys_find(struct crawl_keys *k, const struct where *w, struct err *e)
{
    *k = (struct crawl_keys){.all = !w};
    return w ? find(k, where_root(w), e) : 0;
}

bool crawl_keys_meet(const struct crawl_keys *k, struct span least, struct span most)
{
    for (size_t i = 0; i < k->n; i++)
        if (crawl_key_side(least, k->v[i]) <= 0 && span_cmp(most, k->v[i]) >= 0)
            return true;
    return k->all;
}

void crawl_keys_free(struct crawl_keys *k)
{
    free(k->v);
    arena_free(&k->arena);
    *k = (struct crawl_keys){0};
}
