/* Any bytes as an n-gram model, binary or ARPA: refused, or it gives logarithms of probabilities or says that it cannot. */
#include <math.h>
#include <stdlib.h>

#include "curate/language/ngram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = {(const char *)data, size};
    size_t n = size < 100 ? size : 100;
    struct span texts[] = {{"kator velish the mill <s> never", 31}, {(const char *)data + size - n, n}, {NULL, 0}};
    static struct ngram_line line;
    struct ngram_model *m;
    struct err e;

    if (ngram_open_mem(&m, "fuzz", bytes, &e) < 0)
        return 0;
    memset(line.hash, 0, sizeof line.hash);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        float log10;
        if (ngram_words(m, &line, texts[i]) < 0)
            abort();
        if (ngram_score(m, (const uint32_t *)(const void *)line.words.p, line.words.n / 4, &log10, &e) == 0 && !isfinite(log10))
            abort();
    }
    buf_free(&line.words);
    ngram_close(m);
    return 0;
}
