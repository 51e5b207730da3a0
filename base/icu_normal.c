#include "base/icu_normal.h"

#include <stdlib.h>
#include <unicode/uchar.h>

#include "base/mem.h"

enum { LONG = 256 }; /* UTF-16 units in a row that ICU may put in order */

/* What has been normalised. */
struct normal {
    const UNormalizer2 *form;
    UChar *out;
    int32_t n, cap;
    UErrorCode code;
};

/* Appends the normal form of a text whose ends are boundaries. */
static void put(struct normal *x, const UChar *u, int32_t n)
{
    UErrorCode code = U_ZERO_ERROR;
    int32_t room = x->cap > x->n ? x->cap - x->n : 0;

    x->n += unorm2_normalize(x->form, u, n, room ? x->out + x->n : NULL, room, &code);
    if (U_FAILURE(code) && (U_SUCCESS(x->code) || code != U_BUFFER_OVERFLOW_ERROR))
        x->code = code;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* The characters of u, decomposed and in canonical order, each behind its class and its number; *n of them.  NULL: out of
 * memory. */
static uint64_t *in_order(const UNormalizer2 *form, const UChar *u, int32_t units, size_t *n)
{
    uint64_t *list = NULL;
    size_t cap = 0;

    *n = 0;
    for (int32_t i = 0, k = 0, m; i < units; k = 0) {
        UErrorCode code = U_ZERO_ERROR;
        UChar part[32];
        UChar32 c;

        U16_NEXT(u, i, units, c);
        m = unorm2_getDecomposition(form, c, part, 32, &code);
        if (m < 0) { /* is its own */
            m = 0;
            U16_APPEND_UNSAFE(part, m, c);
        }
        if (mem_grow(&list, &cap, *n + 32, sizeof *list) < 0) {
            free(list);
            return NULL;
        }
        while (k < m) {
            U16_NEXT(part, k, m, c);
            list[*n] = (uint64_t)u_getCombiningClass(c) << 56 | (uint64_t)*n << 21 | (uint64_t)c;
            ++*n;
        }
    }
    for (size_t i = 0, end; i < *n; i = end) { /* from a class of 0 to the next */
        for (end = i + 1; end < *n && list[end] >> 56; end++)
            ;
        qsort(list + i, end - i, sizeof *list, by_value);
    }
    return list;
}

/* Appends the normal form of a long run of marks, and of what they stand behind. */
static void put_run(struct normal *x, const UChar *u, int32_t units)
{
    size_t n;
    uint64_t *list = in_order(x->form, u, units, &n);
    UChar *sorted = list ? malloc(2 * n * sizeof *sorted) : NULL;
    int32_t m = 0;

    for (size_t i = 0; sorted && i < n; i++) {
        UChar32 c = (UChar32)(list[i] & 0x1fffff);
        U16_APPEND_UNSAFE(sorted, m, c);
    }
    if (sorted)
        put(x, sorted, m);
    else
        x->code = U_MEMORY_ALLOCATION_ERROR;
    free(sorted);
    free(list);
}

static bool is_boundary(const UNormalizer2 *form, const UChar *u, int32_t at, int32_t n)
{
    UChar32 c;

    U16_GET(u, 0, at, n, c);
    return unorm2_hasBoundaryBefore(form, c);
}

int32_t icu_normalize(const UNormalizer2 *form, const UChar *u, int32_t n, UChar *out, int32_t cap, UErrorCode *code)
{
    struct normal x = {form, out, 0, cap, *code};
    int32_t done = 0, end;

    if (U_FAILURE(*code))
        return 0;
    for (int32_t at = LONG; at < n; at = end + LONG) { /* no run that is twice as long is passed over */
        int32_t from = at;

        end = at;
        while (from > done && !is_boundary(form, u, from, n))
            U16_BACK_1(u, done, from);
        while (end < n && !is_boundary(form, u, end, n))
            U16_FWD_1(u, end, n);
        if (end - from <= LONG)
            continue;
        put(&x, u + done, from - done);
        put_run(&x, u + from, end - from);
        done = end;
    }
    put(&x, u + done, n - done);
    *code = x.code;
    return x.n;
}
