#include "tokenize/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "tokenize/model.h"
#include "tokenize/normal.h"
#include "tokenize/specials.h"
#include "tokenize/ucd.h"

enum { FILE_MAX = 1 << 30, MAP_LEAST = 1 << 20 };

/* ---- files ---- */

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* DIR + name into path; false if it is too long or no file. */
static bool beside(char *path, size_t size, const char *dir, int dir_len, const char *sep, const char *name)
{
    int n = snprintf(path, size, "%.*s%s%s", dir_len, dir, sep, name);
    return n > 0 && (size_t)n < size && is_file(path);
}

enum { PATH_SIZE = 4096 };
static const char *const pairs[][2] = {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}};

static int open_pair(struct tokenizer *t, const char *vocab, const char *merges, const char *pattern, struct err *e)
{
    struct buf v = {0}, m = {0};
    int rc = file_read_all(vocab, FILE_MAX, &v, e);

    if (rc == 0)
        rc = file_read_all(merges, FILE_MAX, &m, e);
    if (rc == 0)
        rc = format_read_gpt2(t, vocab, buf_span(&v), merges, buf_span(&m), pattern, e);
    buf_free(&v);
    buf_free(&m);
    return rc;
}

static bool is_json_object(struct span s)
{
    size_t i = 0;

    while (i < s.n && memchr(" \t\r\n", s.p[i], 4))
        i++;
    return i < s.n && s.p[i] == '{';
}

/* A large file of JSON is mapped: into memory it would be copied for longer than it is read.  False: it is to be read. */
static bool map_json(const char *path, struct file_map *m)
{
    struct stat st;
    struct err e;

    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < MAP_LEAST || st.st_size > FILE_MAX ||
        file_map_open(m, path, &e) < 0)
        return false;
    if (file_map_fetch(m, m->p, m->n, &e) == 0 && is_json_object((struct span){(const char *)m->p, m->n}))
        return true;
    file_map_close(m);
    return false;
}

static int open_one(struct tokenizer *t, const char *path, const char *pattern, struct err *e)
{
    struct file_map m = {0};
    struct buf b = {0};
    int rc;

    if (map_json(path, &m)) {
        rc = format_read_huggingface(t, path, (struct span){(const char *)m.p, m.n}, pattern, e);
        file_map_close(&m);
        return rc;
    }
    rc = file_read_all(path, FILE_MAX, &b, e);
    if (rc == 0) {
        if (is_json_object(buf_span(&b)))
            rc = format_read_huggingface(t, path, buf_span(&b), pattern, e);
        else if (format_is_ranks(buf_span(&b)))
            rc = format_read_tiktoken(t, path, buf_span(&b), pattern, e);
        else if (span_ends(span_of(path), ".model") || (b.n > 4 && b.p[0] == '\n' && memchr(b.p + 2, '\n', 2)))
            rc = format_read_sentencepiece(t, path, buf_span(&b), pattern, e);
        else
            rc = err_set(e, ERR_FORMAT, "'%s' is no tokenizer: neither a JSON object, nor a SentencePiece model, nor ranks "
                         "(lines of base64, a space and a number)", path);
    }
    buf_free(&b);
    return rc;
}

/* The file that a path means into a, "" for path itself, or the two of a pair into a and b, which is "" for one. */
static int find_files(const char *path, char a[PATH_SIZE], char b[PATH_SIZE], struct err *e)
{
    struct stat st;
    int n = (int)strlen(path);

    for (int i = 0; i < 2; i++) /* one file of a pair */
        for (int j = 0; j < 2; j++)
            if (span_ends(span_of(path), pairs[i][j]) && is_file(path)) {
                int stem = n - (int)strlen(pairs[i][j]);
                if (beside(a, PATH_SIZE, path, stem, "", pairs[i][0]) && beside(b, PATH_SIZE, path, stem, "", pairs[i][1]))
                    return 0;
                return err_set(e, ERR_IO, "'%s' wants '%.*s%s' beside it", path, stem, path, pairs[i][!j]);
            }
    b[0] = '\0';
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        if (beside(a, PATH_SIZE, path, n, "/", "tokenizer.json"))
            return 0;
        for (int i = 0; i < 2; i++)
            if (beside(a, PATH_SIZE, path, n, "/", pairs[i][0]) && beside(b, PATH_SIZE, path, n, "/", pairs[i][1]))
                return 0;
        return err_set(e, ERR_IO, "folder '%s' has no tokenizer.json, vocab.json + merges.txt or encoder.json + "
                                  "vocab.bpe", path);
    }
    for (int i = 0; i < 2; i++)
        if (beside(a, PATH_SIZE, path, n, "-", pairs[i][0]) && beside(b, PATH_SIZE, path, n, "-", pairs[i][1]))
            return 0;
    a[0] = b[0] = '\0';
    return 0;
}

static int open_path(struct tokenizer *t, const char *path, const char *pattern, struct err *e)
{
    char a[PATH_SIZE], b[PATH_SIZE];

    TRY(find_files(path, a, b, e));
    return b[0] ? open_pair(t, a, b, pattern, e) : open_one(t, a[0] ? a : path, pattern, e);
}

/* ---- the tokenizer ---- */

static struct tokenizer *tokenizer_new(struct err *e)
{
    struct tokenizer *t = calloc(1, sizeof *t);

    if (!t)
        err_set(e, ERR_NOMEM, "out of memory for a tokenizer");
    return t;
}

/* The folder that a tokenizer's path is in, or is; false: its name is too long. */
static bool folder_of(const char *path, char *folder, size_t size)
{
    struct stat st;
    const char *slash = strrchr(path, '/');
    bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    int n = is_folder ? snprintf(folder, size, "%s", path)
            : slash   ? snprintf(folder, size, "%.*s", (int)(slash - path) + 1, path)
                      : snprintf(folder, size, ".");

    return n > 0 && (size_t)n < size;
}

int tokenizer_files(const char *path, int (*tell)(void *of, const char *file), void *of)
{
    static const char *const facts[] = {"tokenizer_config.json", "generation_config.json"};
    char a[PATH_SIZE], b[PATH_SIZE], folder[PATH_SIZE];
    struct err none;

    if (find_files(path, a, b, &none) < 0) /* opening it will tell */
        return 0;
    TRY(tell(of, a[0] ? a : path));
    if (b[0])
        TRY(tell(of, b));
    for (size_t k = 0; folder_of(path, folder, sizeof folder) && k < sizeof facts / sizeof *facts; k++)
        if (beside(a, PATH_SIZE, folder, (int)strlen(folder), "/", facts[k]))
            TRY(tell(of, a));
    return 0;
}

/* Makes t ready, or closes it.  path: where it is from, or NULL. */
static int finish(struct tokenizer **out, struct tokenizer *t, const char *path, const struct tokenizer_settings *s, int rc,
                  struct err *e)
{
    char folder[4096];

    if (rc == 0 && s->special_tokens)
        rc = specials_read(t, s->special_tokens, e);
    if (rc == 0 && t->nfc)
        rc = normal_ready(e);
    if (rc == 0 && t->split.kind == SPLIT_PCRE && (rc = split_to_table(&t->split, NULL, 0, 0, e)) > 0)
        rc = 0;
    if (rc == 0 && !t->later && (t->bpe.pairs || t->bpe.dense))
        rc = bpe_finish(&t->bpe, &t->vocab, e);
    if (rc == 0 && !t->later && t->whole_first)
        rc = bpe_check_cuts(&t->bpe, &t->vocab, e);
    if (rc == 0 && t->rules)
        rc = rules_name(t->rules, e);
    if (rc == 0)
        rc = specials_find_eod(t, path && folder_of(path, folder, sizeof folder) ? folder : NULL, s->eod, e);
    if (rc < 0) {
        tokenizer_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

int tokenizer_open_as(struct tokenizer **out, const char *path, const struct tokenizer_settings *s, struct err *e)
{
    struct tokenizer *t = tokenizer_new(e);

    if (!t)
        return ERR_NOMEM;
    t->specials_given = s->special_tokens != NULL;
    t->spm_version = (enum tokenizer_spm)s->sentencepiece;
    return finish(out, t, path, s, open_path(t, path, s->pattern, e), e);
}

int tokenizer_open(struct tokenizer **out, const char *path, const char *pattern, struct err *e)
{
    return tokenizer_open_as(out, path, &(struct tokenizer_settings){.pattern = pattern}, e);
}

static const struct tokenizer_settings as_it_says;

int tokenizer_open_json(struct tokenizer **out, const char *name, struct span json, const char *pattern,
                        struct err *e)
{
    struct tokenizer *t = tokenizer_new(e);

    return t ? finish(out, t, NULL, &as_it_says, format_read_huggingface(t, name, json, pattern, e), e) : ERR_NOMEM;
}

int tokenizer_open_sentencepiece(struct tokenizer **out, const char *name, struct span model, const struct tokenizer_settings *s,
                                 struct err *e)
{
    struct tokenizer *t = tokenizer_new(e);

    if (!t)
        return ERR_NOMEM;
    t->spm_version = (enum tokenizer_spm)s->sentencepiece;
    return finish(out, t, NULL, s, format_read_sentencepiece(t, name, model, s->pattern, e), e);
}

/* Frees what t has. */
static void empty(struct tokenizer *t)
{
    vocab_free(&t->vocab);
    bpe_free(&t->bpe);
    ranks_later_free(t->later);
    split_free(&t->split);
    added_free(&t->added);
    rules_free(t->rules);
}

void tokenizer_close(struct tokenizer *t)
{
    if (t)
        empty(t);
    free(t);
}

void tokenizer_clear(struct tokenizer *t)
{
    empty(t);
    *t = (struct tokenizer){.spm_version = t->spm_version, .specials_given = t->specials_given};
}

uint32_t tokenizer_vocab_size(const struct tokenizer *t)
{
    return t->vocab.n;
}

int64_t tokenizer_eod(const struct tokenizer *t)
{
    return t->eod;
}

const char *tokenizer_eod_from(const struct tokenizer *t)
{
    return t->eod_from;
}

int64_t tokenizer_find(const struct tokenizer *t, struct span token)
{
    return vocab_find(&t->vocab, token);
}

void tokenizer_mark_specials(const struct tokenizer *t, uint8_t *bits)
{
    size_t n;

    for (const struct added_token *a = added_list(&t->added, &n), *end = a + n; a < end; a++)
        if (a->special)
            bits[a->id / 8] |= (uint8_t)(1 << a->id % 8);
}

struct span tokenizer_bytes(const struct tokenizer *t, uint32_t id)
{
    return vocab_get(&t->vocab, id);
}

int64_t tokenizer_unknown(const struct tokenizer *t)
{
    if (!t->rules)
        return -1;
    return t->rules->model == MODEL_UNIGRAM ? t->rules->unigram.unknown
           : t->rules->model == MODEL_CHARS ? t->rules->chars.unknown
                                            : -1;
}

struct tokenizer_facts tokenizer_facts(const struct tokenizer *t)
{
    struct tokenizer_facts f = {
        .format = t->format,
        .pattern_name = split_name(&t->split),
        .pattern = split_pattern(&t->split),
        .normalizer = t->rules ? t->rules->normal_names : t->nfc ? "NFC" : "none",
        .merges = t->bpe.n,
    };
    size_t added;

    added_list(&t->added, &added);
    f.added = (uint32_t)added;
    if (t->rules && t->rules->cut_names) { /* pre-tokenizers one after another */
        f.pattern_name = "steps";
        f.pattern = t->rules->cut_names;
    }
    if (t->rules && t->rules->by_version)
        f.sentencepiece = t->spm_version == TOKENIZER_SPM_0_2_1 ? "0.2.1" : "0.2.3";
    for (uint32_t i = 0; i < t->vocab.n; i++)
        f.tokens += vocab_get(&t->vocab, i).p != NULL;
    return f;
}

static void hash_added(XXH3_state_t *x, const struct added *added)
{
    size_t n;

    for (const struct added_token *a = added_list(added, &n), *end = a + n; a < end; a++) {
        uint8_t flags = (uint8_t)(a->special | a->normalized << 1 | a->lstrip << 2 | a->rstrip << 3 | a->single_word << 4);
        XXH3_128bits_update(x, &a->id, sizeof a->id);
        XXH3_128bits_update(x, &flags, sizeof flags);
    }
}

/* Lengths and bytes, many at a time. */
static void hash_vocab(XXH3_state_t *x, const struct vocab *v)
{
    char some[4096];
    size_t n = 0;

    for (uint32_t id = 0; id < v->n; id++) {
        struct span s = vocab_get(v, id);
        uint64_t size = s.p ? s.n : UINT64_MAX;
        if (n + sizeof size + s.n > sizeof some) {
            XXH3_128bits_update(x, some, n);
            n = 0;
        }
        memcpy(some + n, &size, sizeof size);
        n += sizeof size;
        if (n + s.n > sizeof some) {
            XXH3_128bits_update(x, some, n);
            XXH3_128bits_update(x, s.p, s.n);
            n = 0;
        } else if (s.n) {
            memcpy(some + n, s.p, s.n);
            n += s.n;
        }
    }
    XXH3_128bits_update(x, some, n);
}

struct tokenizer_hash tokenizer_hash(const struct tokenizer *t)
{
    XXH3_state_t x;
    const char *pattern = split_pattern(&t->split);
    uint64_t merges = bpe_hash(&t->bpe);
    uint8_t flags = (uint8_t)(t->nfc | t->whole_first << 1);
    XXH128_hash_t h;

    XXH3_INITSTATE(&x);
    XXH3_128bits_reset(&x);
    hash_vocab(&x, &t->vocab);
    XXH3_128bits_update(&x, &merges, sizeof merges);
    XXH3_128bits_update(&x, pattern, strlen(pattern));
    XXH3_128bits_update(&x, &flags, sizeof flags);
    if (t->rules)
        XXH3_128bits_update(&x, &t->rules->hash, sizeof t->rules->hash);
    hash_added(&x, &t->added);
    h = XXH3_128bits_digest(&x);
    return (struct tokenizer_hash){h.low64, h.high64};
}

const char *tokenizer_unicode(void)
{
    return ucd_version;
}

int tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, struct buf *out, struct err *e)
{
    if (t->rules)
        return rules_decode(t, ids, n, out, e);
    for (size_t i = 0; i < n; i++) {
        struct span s = vocab_get(&t->vocab, ids[i]);
        if (!s.p)
            return err_set(e, ERR_FORMAT, "id %u is not in the vocabulary (number %zu)", ids[i], i + 1);
        if (format_decode_bytes(t, ids[i], s, out) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a text");
    }
    return 0;
}
