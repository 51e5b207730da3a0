/* Any bytes as a fastText model: refused, or it gives scores or says that it cannot. */
#include <math.h>
#include <stdlib.h>

#include "curate/language/fasttext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char made[] = "kator velish\nlomi __label__x \0 </s> rana";
    struct span bytes = {(const char *)data, size};
    size_t n = size < 100 ? size : 100;
    struct span texts[] = {{made, sizeof made - 1}, {(const char *)data + size - n, n}, {NULL, 0}};
    struct fasttext_scratch s = {0};
    struct fasttext *m;
    struct err e;

    if (fasttext_open_mem(&m, "fuzz", bytes, &e) < 0)
        return 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int best = fasttext_predict(m, &s, texts[i], &e);
        if (best < -2 || best >= fasttext_n_labels(m))
            abort();
        for (int k = 0; best >= 0 && k < fasttext_n_labels(m); k++)
            if (!(fasttext_score(m, &s, k) >= 0 && fasttext_score(m, &s, k) <= 1.0001))
                abort();
    }
    for (int k = 0; k < fasttext_n_labels(m); k++)
        if (fasttext_label_find(m, fasttext_label(m, k)) < 0)
            abort();
    fasttext_scratch_free(&s);
    fasttext_close(m);
    return 0;
}
