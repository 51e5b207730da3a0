/* The suffix array of training Unigram.  Left out of a build without libdivsufsort. */
#include <divsufsort.h>

#include "tokenize/unigram_sort.h"

int unigram_sort(const char *text, size_t n, int32_t *sa)
{
    return divsufsort((const unsigned char *)text, sa, (saidx_t)n);
}
