#include "tokenize/train_conf.h"

#include <stdio.h>

#include "base/limits.h"

static uint64_t half_of_memory(void)
{
    uint64_t half = limits_memory() / 2;

    return half > TRAIN_MEMORY_MIN ? half : TRAIN_MEMORY_MIN;
}

struct train_options train_conf_options(const struct train_conf *c)
{
    const struct train_kind *kind = &train_kinds[c->model];
    struct train_options x = {.model = c->model,
                              .vocab_size = (uint32_t)c->vocab_size,
                              .sample = (uint64_t)c->sample,
                              .min_frequency = (uint64_t)c->min_frequency,
                              .max_length = (uint32_t)c->max_length,
                              .ties = c->ties,
                              .specials = c->specials.n ? c->specials.v : kind->specials,
                              .n_specials = c->specials.n,
                              .byte_fallback = c->byte_fallback,
                              .coverage = c->coverage,
                              .memory = c->memory ? (uint64_t)c->memory : half_of_memory(),
                              .tmp = c->tmp,
                              .output = c->output,
                              .folder = c->folder,
                              .ranks = c->ranks,
                              .spm = c->spm};

    uint32_t least;

    while (!c->specials.n && kind->specials[x.n_specials])
        x.n_specials++;
    least = 256 + (uint32_t)x.n_specials;
    x.subwords = (uint32_t)(c->subwords ? c->subwords : c->vocab_size * 2 / 5);
    if (!c->subwords && x.subwords < least)
        x.subwords = least;
    return x;
}

int train_conf_account(const struct train_conf *c, struct run_files *files, struct err *e)
{
    static const char *const names[] = {"vocab.json", "merges.txt"};
    char path[4096];

    for (int i = 0; c->folder && i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", c->folder, names[i]);
        TRY(run_writes(files, "--vocab-merges", path, e));
    }
    return run_files_check(files, e);
}
