/* base/mem.h -- spans, growable buffers and arenas.
 *
 * A span is borrowed bytes: it says nothing about who owns them.  A buf owns its
 * bytes and has a cap, so that no input can make it grow without bound.  An arena
 * owns many small pieces that die together (one document, one request).
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed bytes, not NUL-terminated.  p may be NULL only when n is 0. */
struct span {
    const char *p;
    size_t n;
};

static inline struct span span_of(const char *cstr)
{
    struct span s = {cstr, cstr ? strlen(cstr) : 0};
    return s;
}
static inline bool span_eq(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool span_is(struct span a, const char *cstr)
{
    return span_eq(a, span_of(cstr));
}
/* Below 0, 0, above 0: by bytes, what another begins with before it. */
static inline int span_cmp(struct span a, struct span b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;

    return c ? c : (a.n > b.n) - (a.n < b.n);
}
/* Whether s begins or ends with cstr. */
static inline bool span_starts(struct span s, const char *cstr)
{
    size_t n = strlen(cstr);

    return s.n >= n && memcmp(s.p, cstr, n) == 0;
}
static inline bool span_ends(struct span s, const char *cstr)
{
    size_t n = strlen(cstr);

    return s.n >= n && memcmp(s.p + s.n - n, cstr, n) == 0;
}

/* Owned, growable bytes.  Zero-initialise to start ({0}: no cap but SIZE_MAX/2),
 * or set max for a cap in bytes.  p[n] is always a readable byte after a put. */
struct buf {
    char *p;
    size_t n, cap, max;
    int failed; /* ERR_NOMEM once memory was out */
};

/* Room for extra more bytes (and one beyond).  0, ERR_NOMEM or ERR_LIMIT;
 * on failure the contents stay as they were.  Amortised O(1).  Once memory was out every
 * call on the buffer returns ERR_NOMEM until buf_free(): of a row of puts it is enough to
 * look at the last, or at `failed`. */
int buf_reserve(struct buf *b, size_t extra);
/* The same for something large that will be filled soon: in huge pages, if the system has them. */
int buf_reserve_large(struct buf *b, size_t extra);
/* Appends; same errors as buf_reserve. */
int buf_put_slowly(struct buf *b, const void *p, size_t n); /* buf_put where there is no room yet */
static inline int buf_put(struct buf *b, const void *p, size_t n)
{
    if (__builtin_expect(b->failed || b->max || n >= b->cap - b->n || !n, 0))
        return buf_put_slowly(b, p, n);
    memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
    return 0;
}
static inline int buf_putc(struct buf *b, char c) { return buf_put(b, &c, 1); }
int buf_puts(struct buf *b, const char *cstr);
static inline int buf_put_span(struct buf *b, struct span s) { return buf_put(b, s.p, s.n); }
int buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static inline void buf_clear(struct buf *b) { b->n = 0; }
static inline struct span buf_span(const struct buf *b)
{
    struct span s = {b->p, b->n};
    return s;
}
/* Releases the bytes; the buf can be used again.  Zeroed is fine. */
void buf_free(struct buf *b);
/* As buf_clear, and one that has grown beyond `most` bytes gives its memory back. */
static inline void buf_clear_most(struct buf *b, size_t most)
{
    b->n = 0;
    if (b->cap > most)
        buf_free(b);
}

/* Pieces that die together.  Zero-initialise to start; set max (bytes in all)
 * for a cap.  Not thread-safe: an arena belongs to one thread at a time. */
struct arena {
    struct arena_block *head;
    size_t used, max;
};

/* n bytes aligned to 16, uninitialised; NULL when memory or the cap is out. */
void *arena_alloc(struct arena *a, size_t n);
/* As arena_alloc, zeroed, for n objects of size bytes; checks for overflow. */
void *arena_calloc(struct arena *a, size_t n, size_t size);
/* A copy of s, NUL-terminated behind its end; p is NULL when memory is out. */
struct span arena_dup(struct arena *a, struct span s);
/* Forgets every piece; keeps the largest block for the next round. */
void arena_reset(struct arena *a);
void arena_free(struct arena *a);

/* Aligned memory for vector code: 64-byte alignment, n rounded up.  free(). */
void *mem_aligned(size_t n);

/* Says that n bytes at p, not yet touched, will be: in huge pages, if the system has them. */
void mem_large(void *p, size_t n);

/* Make *p, a pointer to objects of size bytes, hold at least need of them; *cap is how many it
 * holds.  p is the pointer's address.  mem_grow keeps what is there, and at least doubles;
 * mem_room loses it, and is aligned as mem_aligned.  free().  ERR_NOMEM. */
int mem_grow_more(void *p, size_t *cap, size_t need, size_t size);
int mem_room_more(void *p, size_t *cap, size_t need, size_t size);
static inline int mem_grow(void *p, size_t *cap, size_t need, size_t size)
{
    return need <= *cap ? 0 : mem_grow_more(p, cap, need, size);
}
static inline int mem_room(void *p, size_t *cap, size_t need, size_t size)
{
    return need <= *cap ? 0 : mem_room_more(p, cap, need, size);
}

/* Whether a function of this header has found no memory in this thread since mem_short_reset(); a cap that was reached is none
 * of that.  For the engine that runs many ways to fail: what came of a document while memory was short is no fault of it. */
bool mem_was_short(void);
/* What was freed goes back to the system, where the C library keeps it (glibc): after something rare and large. */
void mem_trim(void);
void mem_short_reset(void);

/* Resident bytes of the process, and those of mapped files among them; 0 if they cannot be
 * told. */
struct mem_size {
    uint64_t all, files;
};
struct mem_size mem_resident(void);

#ifdef __cplusplus
}
#endif
#endif
