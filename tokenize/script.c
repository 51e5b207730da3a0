#include "tokenize/script.h"

uint8_t script_of(uint32_t cp)
{
    size_t low = 0, high = script_n_runs;

    while (high - low > 1) { /* the run at low begins at cp or before */
        size_t middle = (low + high) / 2;
        if (script_runs[middle] >> 8 <= cp)
            low = middle;
        else
            high = middle;
    }
    return (uint8_t)script_runs[low];
}
