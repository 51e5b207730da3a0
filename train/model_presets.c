/* Presets: published models as the flags that make them. */
#include <stddef.h>
#include <string.h>

#include "train/model_config.h"

#define SHAPE(l, h, a) "num-layers " #l " hidden-size " #h " num-attention-heads " #a
#define NO_DROPOUT " attention-dropout 0 hidden-dropout 0" /* today's recipes see each text about once */
#define GPT2 NO_DROPOUT " vocab-size 50257 seq-length 1024"
#define GPT3 NO_DROPOUT " vocab-size 50257 seq-length 2048"
#define LLAMA_ANY " position-embedding-type rope normalization RMSNorm mlp-activation swiglu disable-bias-linear true" NO_DROPOUT
#define LLAMA LLAMA_ANY " untie-embeddings-and-output-weights true"
#define LLAMA1 LLAMA " vocab-size 32000 seq-length 2048 norm-epsilon 1e-6 ffn-hidden-size "
#define LLAMA2 LLAMA " vocab-size 32000 seq-length 4096 ffn-hidden-size "
#define GROUPS(n) " group-query-attention true num-query-groups " #n
#define MIXTRAL " vocab-size 32000 seq-length 4096 max-position-embeddings 32768 num-experts 8 moe-router-topk 2"
#define LLAMA3_ANY GROUPS(8) " vocab-size 128256 seq-length 8192 rotary-base 500000 ffn-hidden-size "
#define LLAMA3 LLAMA LLAMA3_ANY
#define SCALED(factor) " max-position-embeddings 131072 use-rope-scaling true rope-scaling-factor " #factor

static const struct {
    const char *name, *flags;
} presets[] = {
    {"gpt2-124m", SHAPE(12, 768, 12) GPT2},
    {"gpt2-355m", SHAPE(24, 1024, 16) GPT2},
    {"gpt2-774m", SHAPE(36, 1280, 20) GPT2},
    {"gpt2-1.5b", SHAPE(48, 1600, 25) GPT2},
    {"gpt3-125m", SHAPE(12, 768, 12) GPT3},
    {"gpt3-350m", SHAPE(24, 1024, 16) GPT3},
    {"gpt3-760m", SHAPE(24, 1536, 16) GPT3},
    {"gpt3-1.3b", SHAPE(24, 2048, 16) GPT3},
    {"gpt3-2.7b", SHAPE(32, 2560, 32) GPT3},
    {"gpt3-6.7b", SHAPE(32, 4096, 32) GPT3},
    {"gpt3-13b", SHAPE(40, 5120, 40) GPT3},
    {"gpt3-175b", SHAPE(96, 12288, 96) GPT3},
    {"llama-7b", SHAPE(32, 4096, 32) LLAMA1 "11008"},
    {"llama-13b", SHAPE(40, 5120, 40) LLAMA1 "13824"},
    {"llama-30b", SHAPE(60, 6656, 52) LLAMA1 "17920"},
    {"llama-65b", SHAPE(80, 8192, 64) LLAMA1 "22016"},
    {"llama2-7b", SHAPE(32, 4096, 32) LLAMA2 "11008"},
    {"llama2-13b", SHAPE(40, 5120, 40) LLAMA2 "13824"},
    {"llama2-70b", SHAPE(80, 8192, 64) GROUPS(8) LLAMA2 "28672"},
    {"llama3-8b", SHAPE(32, 4096, 32) LLAMA3 "14336"},
    {"llama3-70b", SHAPE(80, 8192, 64) LLAMA3 "28672"},
    {"llama3.1-8b", SHAPE(32, 4096, 32) LLAMA3 "14336" SCALED(8)},
    {"llama3.1-70b", SHAPE(80, 8192, 64) LLAMA3 "28672" SCALED(8)},
    {"llama3.1-405b", SHAPE(126, 16384, 128) LLAMA3 "53248" SCALED(8)},
    {"llama3.2-1b", SHAPE(16, 2048, 32) LLAMA_ANY LLAMA3_ANY "8192" SCALED(32)},
    {"mixtral-8x7b", SHAPE(32, 4096, 32) LLAMA GROUPS(8) MIXTRAL " rotary-base 1e6 ffn-hidden-size 14336"},
    {"mixtral-8x22b", SHAPE(56, 6144, 48) LLAMA GROUPS(8) MIXTRAL " rotary-base 1e6 ffn-hidden-size 16384"},
    {"llama3.2-3b", SHAPE(28, 3072, 24) LLAMA_ANY LLAMA3_ANY "8192" SCALED(32)},
};

enum { PRESETS = sizeof presets / sizeof *presets };

const char *model_preset(const char *name)
{
    for (int i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0)
            return presets[i].flags;
    return NULL;
}

const char *const *model_preset_names(void)
{
    static const char *names[PRESETS + 1];

    for (int i = 0; i < PRESETS; i++)
        names[i] = presets[i].name;
    return names;
}
