#include "tokenize/split.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tokenize/split_pcre.h"
#include "tokenize/split_run.h"
#include "tokenize/split_scan.h"

#define SPACES_END "\\s+(?!\\S)|\\s+"
#define LLAMA3(digits)                                                                                              \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                                            \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|" SPACES_END
#define O200K(digits, suffix)                                                                                       \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" suffix              \
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" suffix "|" digits  \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|" SPACES_END

/* The patterns with code of their own: by their names, or by their text as it stands in
 * tokenizer files.  An empty text: the first of the same kind has it. */
static const struct {
    const char *name;
    enum split_kind kind;
    const char *text;
} known[] = {
    {"none", SPLIT_NONE, ""},
    {"gpt2", SPLIT_GPT2, "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s"},
    {"gpt2", SPLIT_GPT2, "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" SPACES_END},
    {"gpt2", SPLIT_GPT2, "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" SPACES_END},
    {"r50k", SPLIT_GPT2, ""},
    {"p50k", SPLIT_GPT2, ""},
    {"p50k_edit", SPLIT_GPT2, ""},
    {"cl100k", SPLIT_CL100K,
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|"
     "\\s*[\\r\\n]|\\s+(?!\\S)|\\s"},
    {"llama3", SPLIT_LLAMA3, LLAMA3("\\p{N}{1,3}")},
    {"qwen2", SPLIT_QWEN2, LLAMA3("\\p{N}")},
    {"o200k", SPLIT_O200K, O200K("\\p{N}{1,3}", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?")},
    {"o200k_harmony", SPLIT_O200K, ""},
    {"tekken", SPLIT_TEKKEN, O200K("\\p{N}", "")},
};

static size_t next_whole(const uint8_t *p, const uint8_t *end)
{
    return (size_t)(end - p);
}

static void set_kind(struct split *s, enum split_kind kind)
{
    memset(s, 0, sizeof *s);
    s->kind = kind;
    switch (kind) {
    case SPLIT_NONE:
        s->next = next_whole;
        break;
    case SPLIT_GPT2:
        s->next = split_scan_gpt2;
        s->run = ISA_PICK(split_run_gpt2);
        break;
    case SPLIT_CL100K:
        s->next = split_scan_cl100k;
        s->run = ISA_PICK(split_run_cl100k);
        break;
    case SPLIT_LLAMA3:
        s->next = split_scan_llama3;
        s->run = ISA_PICK(split_run_cl100k);
        break;
    case SPLIT_QWEN2:
        s->next = split_scan_qwen2;
        s->run = ISA_PICK(split_run_qwen2);
        break;
    case SPLIT_O200K:
        s->next = split_scan_o200k;
        s->run = ISA_PICK(split_run_o200k);
        break;
    case SPLIT_TEKKEN:
        s->next = split_scan_tekken;
        s->run = ISA_PICK(split_run_tekken);
        break;
    case SPLIT_PCRE:
    case SPLIT_TABLE:
        break;
    }
}

int split_find(struct split *s, const char *pattern, struct err *e)
{
    size_t n = strlen(pattern);

    if (n > 5 && strcmp(pattern + n - 5, "_base") == 0)
        n -= 5;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if ((strlen(known[i].name) == n && memcmp(known[i].name, pattern, n) == 0) ||
            (known[i].text[0] && strcmp(known[i].text, pattern) == 0)) {
            set_kind(s, known[i].kind);
            return 0;
        }
    }
    set_kind(s, SPLIT_PCRE);
    return split_pcre_new(&s->pcre, pattern, false, e);
}

int split_find_expression(struct split *s, const char *pattern, bool oniguruma, struct err *e)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].text[0] && strcmp(known[i].text, pattern) == 0) {
            set_kind(s, known[i].kind);
            return 0;
        }
    set_kind(s, SPLIT_PCRE);
    s->oniguruma = oniguruma;
    return split_pcre_new(&s->pcre, pattern, oniguruma, e);
}

/* The expressions of steps, one after another; NULL: out of memory. */
static char *steps_text(const struct split_step *steps, size_t n)
{
    static const char *const names[] = {[SPLIT_STEP_NUMBERS] = "Digits", [SPLIT_STEP_PUNCTUATION] = "Punctuation"};
    struct buf b = {0};

    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%s", i ? ", then " : "", steps[i].expression ? steps[i].expression : names[steps[i].kind]);
    if (b.failed)
        buf_free(&b);
    return b.p;
}

int split_to_table(struct split *s, const struct split_step *steps, size_t chars, size_t n, struct err *e)
{
    struct split_step own = {.expression = s->kind == SPLIT_PCRE ? split_pcre_pattern(s->pcre) : NULL, .oniguruma = s->oniguruma};
    struct split new = {.kind = SPLIT_TABLE};
    int rc;

    if (s->kind == SPLIT_PCRE) {
        steps = &own;
        n = chars = 1;
    }
    rc = split_table_make(&new.table, steps, chars);
    if (rc == 1 && n > chars)
        rc = split_bytes_make(&new.bytes, steps + chars, n - chars);
    if (rc == 1 && !(new.text = steps_text(steps, n)))
        rc = ERR_NOMEM;
    if (rc == 1) {
        split_free(s);
        *s = new;
        return 1;
    }
    split_free(&new);
    return rc == 0 ? 0 : err_set(e, rc, "out of memory for a pattern");
}

const char *split_pattern(const struct split *s)
{
    if (s->kind == SPLIT_TABLE)
        return s->text;
    if (s->kind == SPLIT_PCRE)
        return split_pcre_pattern(s->pcre);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].kind == s->kind)
            return known[i].text;
    return "";
}

const char *split_name(const struct split *s)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].kind == s->kind)
            return known[i].name;
    return "regex";
}

void split_free(struct split *s)
{
    split_pcre_free(s->pcre);
    split_table_free(s->table);
    split_bytes_free(s->bytes);
    free(s->text);
    s->pcre = NULL;
    s->table = NULL;
    s->bytes = NULL;
    s->text = NULL;
}

/* What no match covers is a piece of its own. */
static int64_t next_pcre(const struct split *s, struct split_state *st, uint32_t *ends, size_t max, struct err *e)
{
    size_t n = 0, bounds[2];

    while (st->at < st->n && n + 2 <= max) {
        int rc = split_pcre_match(s->pcre, st->text, st->n, st->at, false, bounds, e);
        if (rc < 0)
            return rc;
        if (rc == 0)
            bounds[0] = bounds[1] = st->n;
        if (bounds[0] > st->at)
            ends[n++] = (uint32_t)bounds[0];
        if (bounds[1] > bounds[0])
            ends[n++] = (uint32_t)bounds[1];
        st->at = bounds[1];
    }
    return (int64_t)n;
}

/* One window after another until there is an end. */
static int64_t next_table(const struct split *s, struct split_state *st, uint32_t *ends, size_t max)
{
    struct split_run r = {.at = st->at, .ends = ends, .max = max};

    while (r.at < st->n && !r.n)
        ISA_PICK(split_table_run)(s->table, st->text, st->n, &st->scan, &r);
    st->at = r.at;
    return (int64_t)r.n;
}

/* Pieces of the table, cut further by their bytes. */
static int64_t next_bytes(const struct split *s, struct split_state *st, uint32_t *ends, size_t max)
{
    size_t n = 0, some;

    while (n + 3 <= max) {
        if (st->wide_at == st->wide_n) {
            st->wide_n = (uint32_t)next_table(s, st, st->wide, SPLIT_WIDE);
            st->wide_at = 0;
            if (!st->wide_n)
                break;
        }
        st->wide_at += (uint32_t)split_bytes_cut(s->bytes, st->text, st->wide + st->wide_at, st->wide_n - st->wide_at,
                                                 &st->by_byte, ends + n, max - n, &some);
        n += some;
    }
    return (int64_t)n;
}

enum { RUN_MIN = 16, PATIENCE_MAX = 64 };

int64_t split_next(const struct split *s, struct split_state *st, uint32_t *ends, size_t max, struct err *e)
{
    const uint8_t *end = st->text + st->n;
    struct split_run r = {.ends = ends, .max = max};

    if (s->kind == SPLIT_PCRE)
        return next_pcre(s, st, ends, max, e);
    if (s->kind == SPLIT_TABLE)
        return s->bytes ? next_bytes(s, st, ends, max) : next_table(s, st, ends, max);
    while (st->at < st->n && r.n < max) {
        if (s->run && st->at >= st->stop && st->n - st->at >= RUN_MIN && max - r.n > SPLIT_RUN_ROOM &&
            st->slow == 0) {
            size_t had = r.n;
            r.at = st->at;
            s->run(st->text, st->n, &r);
            st->at = r.at;
            st->stop = r.stop;
            /* Where runs are short, try them less often. */
            if (r.n - had >= 8)
                st->patience = 0;
            else
                st->patience = st->patience < PATIENCE_MAX ? st->patience * 2 + 2 : PATIENCE_MAX;
            st->slow = st->patience;
            continue;
        }
        if (s->run && st->slow == 0 && st->at >= st->stop && st->n - st->at >= RUN_MIN && r.n)
            break; /* no room for a run: come back with more */
        if (st->slow)
            st->slow--;
        st->at += s->next(st->text + st->at, end);
        ends[r.n++] = (uint32_t)st->at;
    }
    return (int64_t)r.n;
}
