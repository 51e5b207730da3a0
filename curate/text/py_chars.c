#include "curate/text/py_chars.h"

#include <pthread.h>
#include <stdlib.h>
#include <unicode/uchar.h>

#include "curate/text/chars.h"

static uint8_t *table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint8_t class_of(UChar32 c)
{
    char s[4] = {0};
    int n = 0;
    bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    bool number = u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE) != U_NT_NONE;
    uint8_t bits = 0;

    if (!surrogate && chars_space_at(s, s + utf8_put(s, (uint32_t)c), &n))
        return PY_SPACE;
    if (U_GET_GC_MASK(c) & U_GC_L_MASK || number || c == '_')
        bits |= PY_WORD;
    if (number)
        bits |= PY_NUMERIC;
    if (u_hasBinaryProperty(c, UCHAR_UPPERCASE))
        bits |= PY_UPPER;
    if (u_hasBinaryProperty(c, UCHAR_LOWERCASE) || u_charType(c) == U_TITLECASE_LETTER)
        bits |= PY_LOWER;
    if (c == '.' || c == '!' || c == '?')
        bits |= PY_END;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        bits |= PY_ALPHA;
    if (c > ' ' && c < 0x7F && !(bits & PY_ALPHA) && !number)
        bits |= PY_PUNCT;
    return bits;
}

static void build(void)
{
    uint8_t *p = malloc(0x110000);

    for (UChar32 c = 0; p && c < 0x110000; c++)
        p[c] = class_of(c);
    table = p;
}

const uint8_t *py_chars(void)
{
    pthread_once(&once, build);
    return table;
}
