/* kernels/text_hash.h -- XXH3-128 (seed 0) of a text: what tells texts apart where only copies count. */
#ifndef KERNELS_TEXT_HASH_H
#define KERNELS_TEXT_HASH_H

#include <stdint.h>

#include "base/isa.h"

/* hash: the low half, the high half. */
ISA_DECLARE(void, text_hash_one, (const void *p, uint64_t n, uint64_t hash[2]));
#endif
