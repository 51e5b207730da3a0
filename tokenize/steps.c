#include "tokenize/steps.h"

#include <stdlib.h>

struct span strings_get(const struct strings *s, size_t i)
{
    const uint32_t *ends = (const uint32_t *)(const void *)s->ends.p;
    uint32_t begin = i ? ends[i - 1] : 0;

    return (struct span){s->text.n ? s->text.p + begin : "", ends[i] - begin}; /* empty strings alone take no memory */
}

int strings_end(struct strings *s)
{
    uint32_t end = (uint32_t)s->text.n;

    return buf_put(&s->ends, &end, sizeof end);
}

void strings_clear(struct strings *s)
{
    buf_clear(&s->text);
    buf_clear(&s->ends);
}

void strings_free(struct strings *s)
{
    buf_free(&s->text);
    buf_free(&s->ends);
}

struct step *steps_add(struct steps *s, enum step_kind kind)
{
    struct step *v = realloc(s->v, (s->n + 1) * sizeof *v);

    if (!v)
        return NULL;
    s->v = v;
    memset(&v[s->n], 0, sizeof *v);
    v[s->n].kind = kind;
    return &v[s->n++];
}

static void free_step(struct step *x)
{
    free((void *)(uintptr_t)x->text.p);
    free((void *)(uintptr_t)x->content.p);
    split_free(&x->split);
    charsmap_free(&x->map);
}

void steps_drop_first(struct steps *s)
{
    free_step(s->v);
    memmove(s->v, s->v + 1, --s->n * sizeof *s->v);
}

void steps_free(struct steps *s)
{
    for (size_t i = 0; i < s->n; i++)
        free_step(&s->v[i]);
    free(s->v);
    memset(s, 0, sizeof *s);
}

void step_scratch_free(struct step_scratch *s)
{
    buf_free(&s->work);
    buf_free(&s->matches);
    strings_free(&s->other);
}

int steps_names(const struct steps *s, struct buf *out)
{
    static const char *const names[] = {
        [STEP_NFC] = "NFC", [STEP_NFD] = "NFD", [STEP_NFKC] = "NFKC", [STEP_NFKD] = "NFKD",
        [STEP_LOWERCASE] = "Lowercase", [STEP_STRIP_ACCENTS] = "StripAccents", [STEP_BERT] = "BertNormalizer",
        [STEP_REPLACE] = "Replace", [STEP_PREPEND] = "Prepend", [STEP_STRIP] = "Strip",
        [STEP_PRECOMPILED] = "Precompiled", [STEP_NMT] = "Nmt", [STEP_BYTE_LEVEL] = "ByteLevel",
        [STEP_SPLIT] = "Split", [STEP_METASPACE] = "Metaspace", [STEP_DIGITS] = "Digits",
        [STEP_PUNCTUATION] = "Punctuation", [STEP_WHITESPACE] = "Whitespace",
        [STEP_WHITESPACE_SPLIT] = "WhitespaceSplit", [STEP_BERT_SPLIT] = "BertPreTokenizer",
        [STEP_FIXED_LENGTH] = "FixedLength", [STEP_BYTE_FALLBACK] = "ByteFallback", [STEP_FUSE] = "Fuse",
        [STEP_WORDPIECE] = "WordPiece", [STEP_BPE] = "BPEDecoder", [STEP_CTC] = "CTC"};

    for (size_t i = 0; i < s->n; i++)
        TRY(buf_printf(out, "%s%s", i ? ", " : "", names[s->v[i].kind]));
    return 0;
}
