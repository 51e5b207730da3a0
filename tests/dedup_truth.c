/* Pairs of documents in seven languages whose similarities are known.
 *
 *     dedup_truth make SEED PAIRS        documents: for each language and way of editing PAIRS texts and each again, edited
 *     dedup_truth score FILE <pairs      lines "first<TAB>second..." of ids, each with its similarities behind it
 *
 * The words of a language are made of letters of its script, drawn by Zipf's law; texts have 150 to 400 of them.  Words,
 * letters or passages are changed, each pair at a rate drawn so that the similarities spread from .3 to 1.  An id is
 * LANGUAGE-WAY-NUMBER-a, and -b of the edited text.  The first similarity is Jaccard's of shingles of five units as the
 * preset quern2 has them, the second that of five characters (code points of the text as it is); both by comparing all
 * shingles as strings.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unicode/ustring.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/rng.h"
#include "curate/stream/doc.h"
#include "tests/plain_units.h"

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "dedup_truth: %s\n", why);
    exit(1);
}

/* ---- making ---- */

/* A syllable: one of first, perhaps one of then, perhaps one of last; code points of ranges. */
struct script {
    const char *name;
    uint32_t first[2], then[2], last[2];
    int then_of, last_of; /* one in so many has it; 0: none */
    int most;             /* syllables of a word */
    const char *between, *full_stop;
};
static const struct script scripts[] = {
    {"en", {'a', 'z'}, {'a', 'z'}, {'a', 'z'}, 1, 2, 3, " ", ". "},
    {"zh", {0x4e00, 0x57ff}, {0}, {0}, 0, 0, 2, "", "。"},
    {"ja", {0x3042, 0x3093}, {0x4e00, 0x54ff}, {0x30a2, 0x30f3}, 3, 6, 2, "", "。"},
    {"th", {0xe01, 0xe2e}, {0xe34, 0xe39}, {0xe48, 0xe4b}, 2, 3, 3, "", " "},
    {"hi", {0x915, 0x939}, {0x93e, 0x94c}, {0x902, 0x902}, 2, 6, 4, " ", "। "},
    {"ar", {0x627, 0x64a}, {0x627, 0x64a}, {0x64b, 0x652}, 2, 5, 3, " ", "، "},
    {"ko", {0xac00, 0xd7a3}, {0}, {0}, 0, 0, 4, " ", ". "},
};
static const char *const ways[] = {"words", "letters", "passages"};
enum { SCRIPTS = sizeof scripts / sizeof *scripts, WORDS = 4000, WORD = 64, MOST = 400, LEAST = 150 };

static uint64_t below(struct rng_mt *r, uint64_t n) { return rng_mt_u64(r) % n; }

static uint32_t letter(struct rng_mt *r, const uint32_t range[2])
{
    return range[0] + (uint32_t)below(r, range[1] - range[0] + 1);
}

static void make_word(struct rng_mt *r, const struct script *s, char word[WORD])
{
    int n = 0;

    for (int k = 1 + (int)below(r, (uint64_t)s->most); k > 0; k--) {
        n += utf8_put(word + n, letter(r, s->first));
        if (s->then_of && !below(r, (uint64_t)s->then_of))
            n += utf8_put(word + n, letter(r, s->then));
        if (s->last_of && !below(r, (uint64_t)s->last_of))
            n += utf8_put(word + n, letter(r, s->last));
    }
    word[n] = '\0';
}

/* By Zipf's law: the word of rank n is 1/n as frequent as the first. */
static const char *draw(struct rng_mt *r, char (*vocabulary)[WORD])
{
    return vocabulary[(int)exp(rng_mt_double(r) * log(WORDS)) - 1];
}

/* A letter of the word becomes another one. */
static void change_letter(struct rng_mt *r, const struct script *s, char word[WORD])
{
    char to[WORD];
    uint32_t c[WORD];
    int n = 0, len = 0;
    size_t at;

    for (const char *p = word, *end = word + strlen(word); p < end; n++)
        p += utf8_next(p, end, &c[n]);
    at = below(r, (uint64_t)n);
    c[at] = letter(r, c[at] >= s->first[0] && c[at] <= s->first[1] ? s->first : s->then_of ? s->then : s->first);
    for (int i = 0; i < n; i++)
        len += utf8_put(to + len, c[i]);
    memcpy(word, to, (size_t)len);
    word[len] = '\0';
}

static void print_doc(const struct script *s, int way, int number, char half, char (*word)[WORD], int n)
{
    struct buf json = {0}, text = {0};

    for (int i = 0; i < n; i++) {
        buf_puts(&text, word[i]);
        buf_puts(&text, i % 12 == 11 ? s->full_stop : s->between);
    }
    json_put_string(&json, buf_span(&text));
    printf("{\"id\":\"%s-%s-%d-%c\",\"text\":%.*s}\n", s->name, ways[way], number, half, (int)json.n, json.p);
    buf_free(&json);
    buf_free(&text);
}

static void make_pair(struct rng_mt *r, const struct script *s, int way, int number, char (*vocabulary)[WORD])
{
    static char word[MOST][WORD];
    int n = LEAST + (int)below(r, MOST - LEAST);
    double like = .3 + .7 * rng_mt_double(r), same = 2 * like / (1 + like); /* the share of shingles that stay */
    double rate = 1 - pow(same, .2);
    int from, passage = (int)((1 - same) * n);

    for (int i = 0; i < n; i++)
        strcpy(word[i], draw(r, vocabulary));
    print_doc(s, way, number, 'a', word, n);
    from = (int)below(r, (uint64_t)(n - passage) + 1);
    for (int i = 0; i < n; i++) {
        if (way == 2 ? i >= from && i < from + passage : rng_mt_double(r) < rate) {
            if (way == 1)
                change_letter(r, s, word[i]);
            else
                strcpy(word[i], draw(r, vocabulary));
        }
    }
    print_doc(s, way, number, 'b', word, n);
}

static void make(uint32_t seed, int pairs)
{
    static char vocabulary[WORDS][WORD];
    struct rng_mt r;

    rng_mt_seed(&r, seed);
    for (int s = 0; s < SCRIPTS; s++) {
        for (int i = 0; i < WORDS; i++)
            make_word(&r, &scripts[s], vocabulary[i]);
        for (int way = 0; way < 3; way++)
            for (int i = 0; i < pairs; i++)
                make_pair(&r, &scripts[s], way, i, vocabulary);
    }
}

/* ---- scoring ---- */

static int span_order(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    int c = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);

    return c ? c : (x->n > y->n) - (x->n < y->n);
}

/* A set of strings: sorted, each once. */
struct set {
    struct span *v;
    size_t n;
};

/* Five in a row of what begins at start[0..n] (the end is one more); of fewer the whole; `gap` bytes are between. */
static struct set shingles_of(const char *text, const size_t *start, size_t n, size_t gap)
{
    struct set s = {malloc((n + 1) * sizeof *s.v), 0};
    size_t width = n < 5 ? n : 5, kept = 0;

    if (!s.v)
        stop("out of memory");
    for (size_t i = 0; n && i + width <= n; i++)
        s.v[s.n++] = (struct span){text + start[i], start[i + width] - gap - start[i]};
    qsort(s.v, s.n, sizeof *s.v, span_order);
    for (size_t i = 0; i < s.n; i++)
        if (!i || span_order(&s.v[i], &s.v[kept - 1]) != 0)
            s.v[kept++] = s.v[i];
    s.n = kept;
    return s;
}

/* The shingles of one text in both ways; v points into them. */
struct shingles {
    char *units;
    struct set own, chars;
};

static struct shingles make_shingles(struct span text)
{
    size_t *start = malloc((20 * text.n + 2) * sizeof *start), n = 0;
    UChar *u = malloc((text.n + 1) * sizeof *u), *folded = malloc((20 * text.n + 64) * sizeof *folded);
    struct shingles s = {.units = malloc(80 * text.n + 256)};
    UErrorCode status = U_ZERO_ERROR;
    int32_t u_n = 0;
    long len;

    if (!start || !u || !folded || !s.units)
        stop("out of memory");
    u_strFromUTF8(u, (int32_t)text.n + 1, &u_n, text.p, (int32_t)text.n, &status);
    len = plain_units(u, u_n, folded, (int32_t)(20 * text.n + 64), s.units);
    if (U_FAILURE(status) || len < 0)
        stop("a text cannot be normalised");
    s.units[len] = ' ';
    start[0] = 0;
    for (long i = 0; len && i <= len; i++)
        if (s.units[i] == ' ')
            start[++n] = (size_t)i + 1;
    s.own = shingles_of(s.units, start, n, 1);
    n = 0;
    for (size_t i = 0; i < text.n; i++)
        if (((unsigned char)text.p[i] & 0xc0) != 0x80)
            start[n++] = i;
    start[n] = text.n;
    s.chars = shingles_of(text.p, start, n, 0);
    free(start);
    free(u);
    free(folded);
    return s;
}

static double jaccard(const struct set *a, const struct set *b)
{
    size_t i = 0, k = 0, both = 0;

    while (i < a->n && k < b->n) {
        int c = span_order(&a->v[i], &b->v[k]);
        both += c == 0;
        i += c <= 0;
        k += c >= 0;
    }
    return a->n + b->n ? (double)both / (double)(a->n + b->n - both) : 0;
}

static void free_shingles(struct shingles *s)
{
    free(s->units);
    free(s->own.v);
    free(s->chars.v);
}

static int doc_order(const void *a, const void *b)
{
    const struct doc *x = a, *y = b;

    return span_order(&x->id, &y->id);
}

/* All documents of a file, by id. */
static struct doc *read_docs(const char *path, size_t *n)
{
    static struct arena a;
    static struct buf all;
    struct json_reader *r = json_reader_new();
    size_t cap = 0;
    struct doc *d = NULL;
    struct err e;

    if (!r || file_read_all(path, 1u << 31, &all, &e) < 0 || buf_reserve(&all, JSON_PADDING) < 0)
        stop("the documents cannot be read");
    *n = 0;
    for (size_t at = 0; at < all.n; ++*n) {
        const char *end = memchr(all.p + at, '\n', all.n - at);
        struct span line = {all.p + at, (size_t)((end ? end : all.p + all.n) - all.p) - at};

        if (mem_grow(&d, &cap, *n + 1, sizeof *d) < 0)
            stop("out of memory");
        doc_init(&d[*n], &a);
        if (doc_parse(&d[*n], r, line, &e) < 0)
            stop(e.msg);
        at += line.n + 1;
    }
    json_reader_free(r);
    qsort(d, *n, sizeof *d, doc_order);
    return d;
}

static struct span text_of(const struct doc *d, size_t n, const char *id)
{
    struct doc key = {.id = span_of(id)};
    const struct doc *at = bsearch(&key, d, n, sizeof *d, doc_order);

    if (!at)
        stop("a pair has an id that no document has");
    return at->text;
}

static void score(const char *path)
{
    size_t n;
    struct doc *d = read_docs(path, &n);
    char line[4096], x[1024], y[1024];

    while (fgets(line, sizeof line, stdin)) {
        struct shingles a, b;

        if (sscanf(line, "%1023[^\t]\t%1023[^\t\n]", x, y) != 2)
            stop("a line is no pair");
        line[strcspn(line, "\n")] = '\0';
        a = make_shingles(text_of(d, n, x));
        b = make_shingles(text_of(d, n, y));
        printf("%s\t%.6f\t%.6f\n", line, jaccard(&a.own, &b.own), jaccard(&a.chars, &b.chars));
        free_shingles(&a);
        free_shingles(&b);
    }
    free(d);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "make") == 0)
        make((uint32_t)strtoul(argv[2], NULL, 10), atoi(argv[3]));
    else if (argc == 3 && strcmp(argv[1], "score") == 0)
        score(argv[2]);
    else
        stop("make SEED PAIRS, or score FILE <pairs");
    return 0;
}
