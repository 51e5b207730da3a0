#include "curate/text/phrase.h"

#include "curate/text/phrase_simd.h"

/* U+212A, the Kelvin sign, is the only character beyond ASCII whose lower case is a
 * letter of ASCII (U+0130 becomes two characters). */
static const char kelvin[] = "\xE2\x84\xAA";

/* Is the phrase at p? */
static bool phrase_at(const char *p, const char *end, const char *phrase)
{
    for (; *phrase; phrase++) {
        if (p == end)
            return false;
        if (*phrase == 'k' && end - p >= 3 && memcmp(p, kelvin, 3) == 0) {
            p += 3;
            continue;
        }
        if (*p != *phrase && !(*p >= 'A' && *p <= 'Z' && (*p | 32) == *phrase))
            return false;
        p++;
    }
    return true;
}

bool phrase_in(struct span s, const char *phrase)
{
    const char *end = s.p + s.n;
    char c = phrase[0];

    for (const char *p = s.p; p < end; p++)
        if ((*p | 32) == c && phrase_at(p, end, phrase))
            return true;
    return false;
}

bool phrase_in_any(struct span s, const char *const *phrases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (phrase_in(s, phrases[i]))
            return true;
    return false;
}

bool phrase_ends(struct span s, const char *phrase)
{
    size_t n = strlen(phrase);

    return s.n >= n && phrase_at(s.p + s.n - n, s.p + s.n, phrase); /* none with a k */
}

unsigned phrase_hints(struct span s)
{
    unsigned (*find)(const uint8_t *, size_t) = ISA_PICK(phrase_find);

    return find((const uint8_t *)s.p, s.n);
}
