#include "curate/dedup/minhash_preset.h"

#include <math.h>
#include <string.h>

static const struct minhash_preset presets[] = {
    {"quern2", SHINGLE_UNITS, 5, true, MINHASH_M61, 1, 0, 0, 0, true},
    {"quern", SHINGLE_PLAIN_WORDS, 5, true, MINHASH_M61, 1, 0, 0, 0, true},
    {"datatrove", SHINGLE_TROVE_WORDS, 5, false, MINHASH_M61, 1, 14, 8, 0, true},
    {"nemo", SHINGLE_CHARS, 24, true, MINHASH_U32, 42, 20, 13, 0, true},
    {"text-dedup", SHINGLE_SPLIT_WORDS, 5, false, MINHASH_LOW32, 42, 0, 0, 250, true},
    {"rpv2", SHINGLE_RPV2_WORDS, 13, false, MINHASH_LOW32_TURNS, 42, 0, 0, 128, true},
};

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

/* Of minhash_meet over [from, to], by Gauss and Legendre with five points in each of 32 pieces: the error
 * is far below what tells two choices apart. */
static double area(int bands, int rows, double from, double to)
{
    static const double at[] = {0, 0.5384693101056831, 0.9061798459386640};
    static const double weight[] = {0.5688888888888889, 0.4786286704993665, 0.2369268850561891};
    enum { PIECES = 32 };
    double half = (to - from) / PIECES / 2, sum = 0;

    for (int i = 0; i < PIECES; i++) {
        double middle = from + (2 * i + 1) * half;
        sum += weight[0] * minhash_meet(middle, bands, rows);
        for (int k = 1; k < 3; k++)
            sum += weight[k] * (minhash_meet(middle - at[k] * half, bands, rows) +
                                minhash_meet(middle + at[k] * half, bands, rows));
    }
    return sum * half;
}

void minhash_optimal(double threshold, int hashes, int *bands, int *rows)
{
    double least = INFINITY;

    *bands = *rows = 1;
    for (int b = 1; b <= hashes; b++)
        for (int r = 1; r <= hashes / b; r++) {
            double error = area(b, r, 0, threshold) + (1 - threshold) - area(b, r, threshold, 1);
            if (error < least) {
                least = error;
                *bands = b;
                *rows = r;
            }
        }
}
