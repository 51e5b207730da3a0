#include "curate/minhash_preset.h"

#include <math.h>
#include <string.h>

static const struct minhash_preset presets[] = {
    {"quern", SHINGLE_PLAIN_WORDS, 5, true, MINHASH_M61, 1, 0, 0, true},
    {"datatrove", SHINGLE_TROVE_WORDS, 5, false, MINHASH_M61, 1, 14, 8, true},
    {"nemo", SHINGLE_CHARS, 24, true, MINHASH_U32, 42, 20, 13, true},
};
const char minhash_preset_names[] = "quern|datatrove|nemo";

const struct minhash_preset *minhash_preset_at(int i)
{
    return i >= 0 && i < (int)(sizeof presets / sizeof *presets) ? &presets[i] : NULL;
}

const struct minhash_preset *minhash_preset_find(const char *name)
{
    const struct minhash_preset *p;

    for (int i = 0; (p = minhash_preset_at(i)); i++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

double minhash_meet(double s, int bands, int rows)
{
    return 1.0 - pow(1.0 - pow(s, rows), bands);
}

void minhash_choose(double threshold, int hashes, int *bands, int *rows)
{
    int r = hashes;

    while (r > 1 && minhash_meet(threshold, hashes / r, r) < 0.995)
        r--;
    *rows = r;
    *bands = hashes / r;
}
