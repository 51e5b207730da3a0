/* tiktoken's rank files: lines of base64 and rank, the rank being the id. */
#include "base/base64.h"
#include "tokenize/model.h"
#include "tokenize/specials.h"

/* Names that occur in the names of rank files, and the pattern that goes with them. */
static const struct {
    const char *part, *pattern;
} names[] = {{"o200k_harmony", "o200k_harmony"}, {"p50k_edit", "p50k_edit"}, {"o200k", "o200k"}, {"cl100k", "cl100k"},
             {"p50k", "p50k"},                   {"r50k", "r50k"},           {"gpt2", "gpt2"},   {"gpt-neox", "gpt2"}};

static const char *pattern_of_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(base, names[i].part))
            return names[i].pattern;
    return NULL;
}

/* Twins are looked for if `careful`; else the vocabulary is still to be indexed. */
static int read_line(struct tokenizer *t, const char *p, size_t n, long line, bool careful, struct buf *bytes, struct err *e)
{
    const char *gap = memchr(p, ' ', n);
    size_t i = gap ? (size_t)(gap + 1 - p) : n;
    uint64_t id = 0;
    size_t digits = 0;

    for (; i < n && p[i] >= '0' && p[i] <= '9' && digits < 10; i++, digits++)
        id = id * 10 + (uint64_t)(p[i] - '0');
    while (i < n && (p[i] == ' ' || p[i] == '\r'))
        i++;
    buf_clear(bytes);
    if (!gap || gap == p || !digits || i < n || !base64_decode((struct span){p, (size_t)(gap - p)}, bytes))
        return bytes->failed ? err_set(e, bytes->failed, "out of memory for a token")
                             : err_set(e, ERR_FORMAT, "line %ld is not base64 and a rank", line);
    if (id > VOCAB_MAX_ID)
        return err_set(e, ERR_FORMAT, "line %ld: rank %llu is above %d", line, (unsigned long long)id, VOCAB_MAX_ID);
    if (careful && vocab_find(&t->vocab, buf_span(bytes)) >= 0)
        return err_set(e, ERR_FORMAT, "line %ld: the token is there twice", line);
    if ((careful ? vocab_add : vocab_put)(&t->vocab, (uint32_t)id, buf_span(bytes), e) < 0)
        return err_wrap(e, "line %ld", line);
    return 0;
}

static int read_ranks(struct tokenizer *t, struct span ranks, bool careful, struct err *e)
{
    const char *p = ranks.p, *end = ranks.p + ranks.n;
    struct buf bytes = {0};
    int rc = 0;

    for (long line = 1; p < end && rc == 0; line++) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((eol ? eol : end) - p);
        if (n && !(n == 1 && *p == '\r'))
            rc = read_line(t, p, n, line, careful, &bytes, e);
        p += n + (eol != NULL);
    }
    buf_free(&bytes);
    if (rc < 0 || careful)
        return rc;
    TRY(vocab_index(&t->vocab, e));
    if (!t->vocab.twins)
        return 0;
    vocab_free(&t->vocab); /* again, for the line */
    return read_ranks(t, ranks, true, e);
}

bool format_is_ranks(struct span file)
{
    const char *eol = memchr(file.p, '\n', file.n);
    size_t n = eol ? (size_t)(eol - file.p) : file.n, i = 0, digits = 0;

    while (i < n && (base64_is_digit(file.p[i]) || file.p[i] == '='))
        i++;
    if (i == 0 || i == n || file.p[i++] != ' ')
        return false;
    for (; i < n && file.p[i] >= '0' && file.p[i] <= '9'; i++)
        digits++;
    while (i < n && (file.p[i] == ' ' || file.p[i] == '\r'))
        i++;
    return digits && i == n;
}

int format_read_tiktoken(struct tokenizer *t, const char *name, struct span ranks, const char *pattern,
                         struct err *e)
{
    const struct known_ranks *known = NULL;
    int rc;

    t->format = "ranks (tiktoken)";
    t->whole_first = true;
    if (!pattern && !(pattern = pattern_of_name(name)) && (known = specials_known_ranks(ranks)))
        pattern = known->pattern;
    if (!pattern)
        return err_set(e, ERR_ARG, "'%s': a rank file does not say its pattern: give it (gpt2, cl100k, o200k ...)",
                       name);
    TRY(split_find(&t->split, pattern, e));
    rc = read_ranks(t, ranks, false, e);
    if (rc == 0)
        rc = bpe_set_bytes(&t->bpe, &t->vocab, e);
    if (rc == 0)
        rc = ranks_later_begin(t, 0, NULL, NULL, e);
    if (rc == 0 && !t->specials_given)
        rc = known ? specials_add_known(t, known, e) : specials_add_usual(t, pattern, e);
    return rc < 0 ? err_wrap(e, "'%s'", name) : 0;
}
