/* curate/text/phrase_simd.h -- the loop of phrase_simd.c, for phrase.c. */
#ifndef CURATE_PHRASE_SIMD_H
#define CURATE_PHRASE_SIMD_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"

ISA_DECLARE(unsigned, phrase_find, (const uint8_t *p, size_t n));
#endif
