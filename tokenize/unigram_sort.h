/* tokenize/unigram_sort.h -- the suffix array of training Unigram, by libdivsufsort.
 */
#ifndef TOKENIZE_UNIGRAM_SORT_H
#define TOKENIZE_UNIGRAM_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Where the suffixes of text begin, in their order, to sa[0..n-1]; n is less than 2^31.  Not 0: out of memory.  There is none
 * without libdivsufsort. */
int unigram_sort(const char *text, size_t n, int32_t *sa);

#endif
