/* tests/words.h -- options from words. */
#ifndef TESTS_WORDS_H
#define TESTS_WORDS_H

#include <stdio.h>
#include <string.h>

#include "base/opt.h"

/* Sets what words of "name=value" say, NULL at the end; of the first that is wrong the code. */
static int words_set(const struct opt *opts, const char *const *words, struct err *e)
{
    for (; *words; words++) {
        const char *value = strchr(*words, '=');
        char name[64];

        snprintf(name, sizeof name, "%.*s", (int)(value - *words), *words);
        TRY(opt_set(opts, name, value + 1, e));
    }
    return 0;
}
#endif
