/* kernels/lt_cache.h -- which algorithm of cuBLASLt was the fastest for a product, kept on disk.
 *
 * $XDG_CACHE_HOME/quern/cublaslt.tsv ($HOME/.cache without the first), a line a product:
 *     library version TAB device TAB product TAB eight numbers of 16 hexadecimal digits
 * A line that is anything else is passed over, and an algorithm is used only when the library says that it fits.  Lines are
 * added by one write each, so that several processes may; without a place to write nothing is kept.
 */
#ifndef KERNELS_LT_CACHE_H
#define KERNELS_LT_CACHE_H

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LT_CACHE_KEY = 256, LT_CACHE_MOST = 4 << 20 };

struct lt_cache {
    char path[4096];
    char *text;       /* what the file held, from a newline on; NULL: nothing */
    char before[160]; /* version and device, what each key begins with */
};

/* Finds key, of the version and device of `before`, in text, which begins with a newline. */
static inline bool lt_cache_parse(const char *text, const char *before, const char *key, uint64_t algo[8])
{
    char want[LT_CACHE_KEY + 200];
    const char *at;

    snprintf(want, sizeof want, "\n%s\t%s\t", before, key);
    at = text ? strstr(text, want) : NULL;
    if (!at)
        return false;
    at += strlen(want);
    for (int i = 0; i < 8; i++) {
        char digits[17] = {0};
        for (int j = 0; j < 16; j++, at++) {
            bool hex = (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f');
            if (!hex)
                return false;
            digits[j] = *at;
        }
        algo[i] = strtoull(digits, NULL, 16);
        if (*at++ != (i < 7 ? ' ' : '\n'))
            return false;
    }
    return true;
}

static inline void lt_cache_open(struct lt_cache *c, size_t version, const char *device)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    struct stat s;
    FILE *f;

    memset(c, 0, sizeof *c);
    snprintf(c->before, sizeof c->before, "%zu\t%s", version, device);
    if (base && *base)
        snprintf(c->path, sizeof c->path, "%.4000s/quern/cublaslt.tsv", base);
    else if (home && *home)
        snprintf(c->path, sizeof c->path, "%.4000s/.cache/quern/cublaslt.tsv", home);
    f = c->path[0] ? fopen(c->path, "re") : NULL;
    if (f && fstat(fileno(f), &s) == 0 && s.st_size <= LT_CACHE_MOST &&
        (c->text = (char *)malloc((size_t)s.st_size + 2)) != NULL) {
        size_t n = fread(c->text + 1, 1, (size_t)s.st_size, f);
        c->text[0] = '\n';
        c->text[n + 1] = '\0';
    }
    if (f)
        fclose(f);
}

static inline void lt_cache_close(struct lt_cache *c)
{
    free(c->text);
    c->text = NULL;
}

static inline bool lt_cache_find(const struct lt_cache *c, const char *key, uint64_t algo[8])
{
    return lt_cache_parse(c->text, c->before, key, algo);
}

/* The folders of path, as far as they are missing. */
static inline void lt_cache_folders(char *path)
{
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            mkdir(path, 0700);
            *p = '/';
        }
}

static inline void lt_cache_add(struct lt_cache *c, const char *key, const uint64_t algo[8])
{
    char line[1024];
    int n = snprintf(line, sizeof line, "%s\t%s\t", c->before, key), fd;

    for (int i = 0; i < 8; i++)
        n += snprintf(line + n, sizeof line - (size_t)n, "%016" PRIx64 "%c", algo[i], i < 7 ? ' ' : '\n');
    if (!c->path[0])
        return;
    lt_cache_folders(c->path);
    fd = open(c->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, line, (size_t)n) != n)
        c->path[0] = '\0'; /* half a line is passed over; no more are tried */
    close(fd);
}

#endif
