/* tests/recorded.h -- for unit tests: tensors that a script of tests/record wrote, and numbers by the formula they are of. */
#ifndef TESTS_RECORDED_H
#define TESTS_RECORDED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/file.h"
#include "train/safetensors.h"

struct recorded {
    struct file_map map;
    struct arena arena;
    struct safetensors tensors;
};

static inline int recorded_open(struct recorded *r, const char *path, struct err *e)
{
    TRY(file_map_open(&r->map, path, e));
    return safetensors_parse(&r->arena, path, (struct span){(const char *)r->map.p, r->map.n}, &r->tensors, e);
}

static inline void recorded_close(struct recorded *r)
{
    arena_free(&r->arena);
    file_map_close(&r->map);
}

/* The tensor of that name behind a prefix, of n numbers of four bytes; without one the test fails. */
static inline const void *recorded_find(const struct recorded *r, const char *prefix, const char *name, size_t n)
{
    char full[160];
    const struct safetensor *t;

    snprintf(full, sizeof full, "%s%s", prefix, name);
    t = safetensors_find(&r->tensors, full);
    if (!t)
        fail_msg("nothing recorded for %s", full);
    assert_int_equal(t->data.n, n * 4);
    return t->data.p;
}

/* As made_up() of gpt2_parity.py: those of tensor `number`. */
static inline void recorded_made_up(size_t number, bool norm, size_t n, float *w)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t x = (uint32_t)(i + number * 1000003);

        for (int r = 0; r < 2; r++)
            x = (x ^ x >> 16) * 0x45D9F3Bu;
        x ^= x >> 16;
        w[i] = ((float)(x >> 8) * 0x1p-24f - 0.5f) * 0.4f + (float)norm;
    }
}

#endif
