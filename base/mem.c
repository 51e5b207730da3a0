#include "base/mem.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/err.h"

enum { ARENA_FIRST = 16 << 10, ARENA_KEEP = 4 << 20, BUF_FIRST = 256 };

static _Thread_local bool was_short;

void mem_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

bool mem_was_short(void)
{
    return was_short;
}

void mem_short_reset(void)
{
    was_short = false;
}

/* p as it is; NULL is remembered. */
static void *noted(void *p)
{
    was_short |= !p;
    return p;
}

int buf_reserve(struct buf *b, size_t extra)
{
    size_t max = b->max ? b->max : SIZE_MAX / 2;
    size_t want, cap;
    char *p;

    if (b->failed)
        return b->failed;
    if (extra > max || b->n > max - extra)
        return ERR_LIMIT;
    want = b->n + extra + 1;
    if (want <= b->cap)
        return 0;
    cap = b->cap ? b->cap : BUF_FIRST;
    while (cap < want)
        cap += cap / 2 + 64;
    p = noted(realloc(b->p, cap));
    if (!p)
        return b->failed = ERR_NOMEM;
    b->p = p;
    b->cap = cap;
    return 0;
}

int buf_reserve_large(struct buf *b, size_t extra)
{
    size_t had = b->cap;

    TRY(buf_reserve(b, extra));
    if (b->cap > had)
        mem_large(b->p + b->n, b->cap - b->n);
    return 0;
}

int buf_put_slowly(struct buf *b, const void *p, size_t n)
{
    TRY(buf_reserve(b, n));
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
    return 0;
}

int buf_puts(struct buf *b, const char *cstr)
{
    return buf_put(b, cstr, strlen(cstr));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return ERR_ARG;
    TRY(buf_reserve(b, (size_t)n));
    va_start(ap, fmt);
    vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
    return 0;
}

void buf_free(struct buf *b)
{
    free(b->p);
    b->p = NULL;
    b->n = b->cap = 0;
    b->failed = 0;
}

struct arena_block {
    struct arena_block *next;
    size_t size, used;
    _Alignas(16) char data[];
};

static struct arena_block *arena_grow(struct arena *a, size_t n)
{
    size_t size = a->head ? a->head->size * 2 : ARENA_FIRST;
    struct arena_block *b;

    if (size > ARENA_KEEP)
        size = ARENA_KEEP;
    if (size < n)
        size = n;
    b = noted(malloc(sizeof *b + size));
    if (!b)
        return NULL;
    b->size = size;
    b->used = 0;
    b->next = a->head;
    a->head = b;
    return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
    struct arena_block *b = a->head;
    void *p;

    if (n > SIZE_MAX - 64 || (a->max && (n > a->max || a->used > a->max - n)))
        return NULL;
    n = (n + 15) & ~(size_t)15;
    if (!b || b->size - b->used < n) {
        b = arena_grow(a, n);
        if (!b)
            return NULL;
    }
    p = b->data + b->used;
    b->used += n;
    a->used += n;
    return p;
}

void *arena_calloc(struct arena *a, size_t n, size_t size)
{
    void *p;

    if (size && n > SIZE_MAX / size)
        return NULL;
    p = arena_alloc(a, n * size);
    if (p)
        memset(p, 0, n * size);
    return p;
}

struct span arena_dup(struct arena *a, struct span s)
{
    char *p = s.n < SIZE_MAX ? arena_alloc(a, s.n + 1) : NULL;
    struct span d = {p, p ? s.n : 0};

    if (p) {
        if (s.n)
            memcpy(p, s.p, s.n);
        p[s.n] = '\0';
    }
    return d;
}

void arena_reset(struct arena *a)
{
    struct arena_block *keep = NULL;

    while (a->head) {
        struct arena_block *b = a->head;
        a->head = b->next;
        if (b->size <= ARENA_KEEP && (!keep || b->size > keep->size)) {
            free(keep);
            keep = b;
        } else {
            free(b);
        }
    }
    if (keep) {
        keep->next = NULL;
        keep->used = 0;
    }
    a->head = keep;
    a->used = 0;
}

void arena_free(struct arena *a)
{
    while (a->head) {
        struct arena_block *b = a->head;
        a->head = b->next;
        free(b);
    }
    a->used = 0;
}

void mem_large(void *p, size_t n)
{
#ifdef MADV_HUGEPAGE
    enum { HUGE = 2 << 20 };
    uintptr_t begin = ((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1), end = ((uintptr_t)p + n) & ~(uintptr_t)(HUGE - 1);

    if (begin < end)
        madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)p;
    (void)n;
#endif
}

void *mem_aligned(size_t n)
{
    if (n > SIZE_MAX - 64)
        return NULL;
    return noted(aligned_alloc(64, ((n ? n : 1) + 63) & ~(size_t)63));
}

/* The pointer is copied as bytes: its type is the caller's. */
int mem_grow_more(void *p, size_t *cap, size_t need, size_t size)
{
    size_t n = *cap < SIZE_MAX / 2 && 2 * *cap > need ? 2 * *cap : need + 64;
    void *old, *q;

    if (n < need || n > SIZE_MAX / size)
        return ERR_NOMEM;
    memcpy(&old, p, sizeof old);
    q = noted(realloc(old, n * size));
    if (!q)
        return ERR_NOMEM;
    memcpy(p, &q, sizeof q);
    *cap = n;
    return 0;
}

int mem_room_more(void *p, size_t *cap, size_t need, size_t size)
{
    size_t n = need + need / 4;
    void *q;

    memcpy(&q, p, sizeof q);
    free(q);
    q = n < need || n > SIZE_MAX / size ? NULL : mem_aligned(n * size);
    memcpy(p, &q, sizeof q);
    *cap = q ? n : 0;
    return q ? 0 : ERR_NOMEM;
}

struct mem_size mem_resident(void)
{
    char text[128];
    unsigned long long all = 0, files = 0;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    sscanf(text, "%*u %llu %llu", &all, &files);
    return (struct mem_size){all * page, files * page};
}
