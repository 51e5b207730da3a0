/* base/icu_normal.h -- Unicode's normal forms by ICU, in time linear in the text.
 *
 * ICU puts marks in order one by one, which takes the square of their number where very many that are out of order follow one
 * another.
 */
#ifndef BASE_ICU_NORMAL_H
#define BASE_ICU_NORMAL_H

#include <unicode/unorm2.h>

/* As unorm2_normalize, the same result: the length; U_BUFFER_OVERFLOW_ERROR if that is more than cap. */
int32_t icu_normalize(const UNormalizer2 *form, const UChar *u, int32_t n, UChar *out, int32_t cap, UErrorCode *code);
#endif
