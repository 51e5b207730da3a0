/* Letters that the phrases share, at every place of a text. */
#include "curate/text/phrase.h"
#include "curate/text/phrase_simd.h"

/* Of five bytes in small letters ("cart" never begins a phrase): which phrase they may belong to.  The Kelvin sign may
 * stand for the k of "cookie". */
static inline uint8_t hint(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t e)
{
    uint8_t any = 0;

    any |= (uint8_t)(-((a == 'j') & (b == 'a') & (c == 'v') & (d == 'a') & (e == 's')) & PHRASE_SCRIPT);
    any |= (uint8_t)(-((a == 'c') & (b == 'o') & (c == 'o') & (d == 'k') & (e == 'i')) & PHRASE_COOKIE);
    any |= (uint8_t)(-((a == 'l') & (b == 'o') & (c == 'r') & (d == 'e') & (e == 'm')) & PHRASE_LOREM);
    any |= (uint8_t)(-((a == 'p') & (b == 'r') & (c == 'i') & (d == 'v') & (e == 'a')) & PHRASE_PRIVACY);
    any |= (uint8_t)(-((a == 't') & (b == 'e') & (c == 'r') & (d == 'm') & (e == 's')) & PHRASE_TERMS);
    any |= (uint8_t)(-((b == 'c') & (c == 'a') & (d == 'r') & (e == 't')) & PHRASE_CART);
    any |= (uint8_t)(-((a == (0xE2 | 32)) & (b == (0x84 | 32)) & (c == (0xAA | 32))) & PHRASE_COOKIE);
    return any;
}

unsigned ISA_FN(phrase_find)(const uint8_t *p, size_t n)
{
    uint8_t any = 0;

    for (size_t i = 4; i < n; i++) /* no jumps, so that it becomes vector code */
        any |= hint(p[i - 4] | 32, p[i - 3] | 32, p[i - 2] | 32, p[i - 1] | 32, p[i] | 32);
    return any;
}
