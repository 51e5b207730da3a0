/* tests/words.h -- options, and a configuration of training, from words of "name=value", of which NULL is the last. */
#ifndef TESTS_WORDS_H
#define TESTS_WORDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "train/config.h"

/* Sets what the words say; of the first that is wrong the code. */
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

/* The configuration of two lists of words, the second of which changes the first, and of so many ranks, checked; or the code of
 * what is wrong. */
static inline int words_config(struct train_config *c, int64_t world, const char *const *base, const char *const *set,
                               struct err *e)
{
    static const struct opt no_more[] = {OPT_END};
    struct opt *opts;
    int rc;

    train_config_init(c);
    c->world = world;
    opts = train_config_options(c, no_more);
    if (!opts)
        return err_set(e, ERR_NOMEM, "out of memory for options");
    rc = words_set(opts, base, e);
    rc = rc ? rc : words_set(opts, set, e);
    free(opts);
    return rc ? rc : train_config_check(c, e);
}
#endif
