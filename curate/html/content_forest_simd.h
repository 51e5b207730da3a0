/* curate/html/content_forest_simd.h -- the loop of content_forest_simd.c, for content_model.c. */
#ifndef CURATE_CONTENT_FOREST_SIMD_H
#define CURATE_CONTENT_FOREST_SIMD_H

#include "base/isa.h"
#include "curate/html/content_model.h"

enum { CONTENT_AT_ONCE = 64 };

/* The sums of leaves of as many columns. */
ISA_DECLARE(void, content_forest_run, (const struct content_forest *f, const uint8_t *feature, size_t stride, int32_t *score));
#endif
