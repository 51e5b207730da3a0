/* Special tokens of rank files, which are in no file: tiktoken's registry has those that go with a pattern, and those of some
 * published files are known by the files' hashes. */
#include <stdio.h>

#include "base/hash.h"
#include "tokenize/specials.h"

/* tiktoken's. */
static const struct {
    const char *pattern, *text;
    uint32_t id;
} specials[] = {
    {"gpt2", "<|endoftext|>", 50256},         {"r50k", "<|endoftext|>", 50256},
    {"p50k", "<|endoftext|>", 50256},         {"cl100k", "<|endoftext|>", 100257},
    {"cl100k", "<|fim_prefix|>", 100258},     {"cl100k", "<|fim_middle|>", 100259},
    {"cl100k", "<|fim_suffix|>", 100260},     {"cl100k", "<|endofprompt|>", 100276},
    {"p50k_edit", "<|endoftext|>", 50256},    {"p50k_edit", "<|fim_prefix|>", 50281},
    {"p50k_edit", "<|fim_middle|>", 50282},   {"p50k_edit", "<|fim_suffix|>", 50283},
    {"o200k", "<|endoftext|>", 199999},       {"o200k", "<|endofprompt|>", 200018},
    {"o200k_harmony", "<|startoftext|>", 199998}, {"o200k_harmony", "<|endoftext|>", 199999},
    {"o200k_harmony", "<|return|>", 200002},  {"o200k_harmony", "<|constrain|>", 200003},
    {"o200k_harmony", "<|channel|>", 200005}, {"o200k_harmony", "<|start|>", 200006},
    {"o200k_harmony", "<|end|>", 200007},     {"o200k_harmony", "<|message|>", 200008},
    {"o200k_harmony", "<|call|>", 200012},    {"o200k_harmony", "<|endofprompt|>", 200018},
};
/* <|reserved_N|> has the id N where nothing else is, and beside <|endofprompt|>. */
enum { HARMONY_FIRST = 200000, HARMONY_END = 201088, ENDOFPROMPT = 200018 };

/* Names with ids that follow one another: `text` itself, or, where there is a count, text, a number from `first` on, and "|>". */
struct series {
    const char *text;
    uint32_t first, count;
};

static const struct series llama3[] = {
    {"<|begin_of_text|>", 0, 0}, {"<|end_of_text|>", 0, 0}, {"<|reserved_special_token_", 0, 2},
    {"<|finetune_right_pad_id|>", 0, 0}, {"<|step_id|>", 0, 0}, {"<|start_header_id|>", 0, 0}, {"<|end_header_id|>", 0, 0},
    {"<|eom_id|>", 0, 0}, {"<|eot_id|>", 0, 0}, {"<|python_tag|>", 0, 0}, {"<|image|>", 0, 0},
    {"<|reserved_special_token_", 2, 244}, {NULL, 0, 0}};
static const struct series llama4[] = {
    {"<|begin_of_text|>", 0, 0}, {"<|end_of_text|>", 0, 0}, {"<|fim_prefix|>", 0, 0}, {"<|fim_middle|>", 0, 0},
    {"<|fim_suffix|>", 0, 0}, {"<|header_start|>", 0, 0}, {"<|header_end|>", 0, 0}, {"<|eom|>", 0, 0}, {"<|eot|>", 0, 0},
    {"<|step|>", 0, 0}, {"<|text_post_train_reserved_special_token_", 0, 6}, {"<|python_start|>", 0, 0},
    {"<|python_end|>", 0, 0}, {"<|finetune_right_pad|>", 0, 0}, {"<|text_post_train_reserved_special_token_", 8, 61},
    {"<|image_start|>", 0, 0}, {"<|image_end|>", 0, 0}, {"<|vision_reserved_special_token_", 0, 2},
    {"<|tile_x_separator|>", 0, 0}, {"<|tile_y_separator|>", 0, 0}, {"<|vision_reserved_special_token_", 2, 4},
    {"<|image|>", 0, 0}, {"<|vision_reserved_special_token_", 6, 1}, {"<|patch|>", 0, 0},
    {"<|vision_reserved_special_token_", 7, 1041}, {"<|reasoning_reserved_special_token_", 0, 8},
    {"<|reasoning_thinking_start|>", 0, 0}, {"<|reasoning_thinking_end|>", 0, 0}, {"<|reserved_special_token_", 0, 904},
    {NULL, 0, 0}};
static const struct series qwen[] = {
    {"<|endoftext|>", 0, 0}, {"<|im_start|>", 0, 0}, {"<|im_end|>", 0, 0}, {"<|extra_", 0, 205}, {NULL, 0, 0}};

/* Llama 3's and 4's tokenizer.model, the first Qwen's qwen.tiktoken. */
static const struct known_ranks known[] = {{0xe7339703bb9e9d7b, "llama3", false, llama3},
                                           {0xd2fc82dae9636e64, "o200k", false, llama4},
                                           {0x9f288efcb5368aab, "qwen2", true, qwen}};

const struct known_ranks *specials_known_ranks(struct span file)
{
    uint64_t hash = hash_xxh3_64(file);

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].hash == hash)
            return &known[i];
    return NULL;
}

static int add_special(struct tokenizer *t, const char *text, uint32_t id, struct err *e)
{
    return format_add_token(t, &(struct added_token){.text = span_of(text), .id = id, .special = true}, e);
}

int specials_add_known(struct tokenizer *t, const struct known_ranks *k, struct err *e)
{
    uint32_t id = t->vocab.n;
    char name[80];

    t->nfc = k->nfc;
    for (const struct series *s = k->specials; s->text; s++) {
        if (!s->count)
            TRY(add_special(t, s->text, id++, e));
        for (uint32_t i = 0; i < s->count; i++) {
            snprintf(name, sizeof name, "%s%u|>", s->text, s->first + i);
            TRY(add_special(t, name, id++, e));
        }
    }
    return 0;
}

static int add_reserved(struct tokenizer *t, struct err *e)
{
    char name[32];

    for (uint32_t id = HARMONY_FIRST; id < HARMONY_END; id++) {
        size_t n = (size_t)snprintf(name, sizeof name, "<|reserved_%u|>", id);
        struct added_token x = {.text = {name, n}, .id = id, .special = true};
        if (id == ENDOFPROMPT)
            TRY(added_add(&t->added, &x, e));
        else if (!vocab_get(&t->vocab, id).p)
            TRY(format_add_token(t, &x, e));
    }
    return 0;
}

int specials_add_usual(struct tokenizer *t, const char *pattern, struct err *e)
{
    struct span end = span_of("<|endoftext|>");
    int64_t id = vocab_find(&t->vocab, end);

    if (id >= 0)
        return format_add_token(t, &(struct added_token){.text = end, .id = (uint32_t)id, .special = true}, e);
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        struct added_token x = {.text = span_of(specials[i].text), .id = specials[i].id, .special = true};
        size_t n = strlen(specials[i].pattern);
        if (strncmp(pattern, specials[i].pattern, n) != 0 || (pattern[n] && strcmp(pattern + n, "_base") != 0))
            continue;
        if (vocab_find(&t->vocab, x.text) < 0 && !vocab_get(&t->vocab, x.id).p)
            TRY(format_add_token(t, &x, e));
    }
    return strcmp(pattern, "o200k_harmony") == 0 ? add_reserved(t, e) : 0;
}
