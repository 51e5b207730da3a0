/* tests/plain_units.h -- the units of the preset quern2 by their definition: the whole text normalised, then cut. */
#ifndef TESTS_PLAIN_UNITS_H
#define TESTS_PLAIN_UNITS_H

#include <stdbool.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uscript.h>

#include "base/utf8.h"

/* Does a script that has the character break between letters? */
static inline bool plain_is_alone(UChar32 c)
{
    static signed char known[0x110000];

    for (int script = 0; !known[c] && script < USCRIPT_CODE_LIMIT; script++)
        if (uscript_breaksBetweenLetters((UScriptCode)script) && uscript_hasScript(c, (UScriptCode)script))
            known[c] = 1;
    if (!known[c])
        known[c] = -1;
    return known[c] > 0;
}

/* The units of u[0..n) between single spaces; out has room for `room` UTF-16 units at folded and three bytes each, and a
 * space each, at out.  Returns the length, or -1: room is not enough. */
static inline long plain_units(const UChar *u, int32_t n, UChar *folded, int32_t room, char *out)
{
    UErrorCode status = U_ZERO_ERROR;
    int32_t m = unorm2_normalize(unorm2_getNFKCCasefoldInstance(&status), u, n, folded, room, &status), i = 0;
    bool open = false, alone = false;
    long len = 0;

    if (U_FAILURE(status))
        return -1;
    while (i < m) {
        UChar32 c;
        uint32_t class;
        bool by_itself;

        U16_NEXT(folded, i, m, c);
        class = U_GET_GC_MASK(c);
        if (!(class & (U_GC_L_MASK | U_GC_M_MASK | U_GC_N_MASK))) {
            open = alone = false;
            continue;
        }
        by_itself = class & U_GC_L_MASK && plain_is_alone(c);
        if (len && !(class & U_GC_M_MASK && open) && (!open || by_itself || alone))
            out[len++] = ' ';
        if (!(class & U_GC_M_MASK))
            alone = by_itself;
        open = true;
        len += utf8_put(out + len, (uint32_t)c);
    }
    return len;
}
#endif
