/* Makes documents for benchmarks, the same for one seed on every machine, as JSON lines on standard output:
 *
 *     corpus_bench template DOCUMENTS SIMILARITY [SEED [SPREAD]]
 *     corpus_bench web MEGABYTES [SEED]
 *
 * template: pages of about 3 kB of which any two have that Jaccard similarity of shingles of five words.  Every page
 * has the words of one template, and in three places (a head, a body, an end) words of its own; each part is a line.  With
 * a SPREAD s the own part of a page is larger or smaller by up to s (0.1: a tenth), evenly.
 *
 * web: a crawl in which each document says what it is a copy of, 4.2 kB a document on average.  Document n is a function
 * of the seed and n alone, so a smaller corpus is the beginning of a larger one.
 *
 * Kinds, of 100 documents: 70 originals; 8 exact (the text of an earlier document under another address); 6 mirrors (its
 * body within the menu and notice of another site); 16 near (its text, of which words are replaced so that the Jaccard
 * similarity of shingles of five words is about .5, .6, .7, .75, .85, .9, .95 or .98; half of these in up to three
 * passages, half in words here and there).  What is copied is an earlier document, any with the same probability, or
 * what that is a copy of; so the sizes of families follow a power law, and the largest grows as the number of documents
 * to the power of .3.
 *
 * Body: words by Zipf's law (of 65,536; each octave of ranks with the same probability), sentences of 16 words and
 * lines of 4 sentences on average; in number 400 times 2 to the power of a bell curve of standard deviation 1.3, 80 to
 * 20,000 of them.  Two bodies share next to nothing.  Site: one of 2^20, that of rank r with the probability of
 * 1 / sqrt(r); it has four lines that stand on each of its pages, and each page ends with one of 256 notices: 30 to 50
 * words, so that two pages that are no copies have a similarity under .3.
 *
 * Scripts, of 64 sites: 40 Latin, 8 Cyrillic, 6 Han, 4 Arabic, 3 Devanagari, 3 Thai.
 *
 * Fields: id, url, script, kind, root (the id of what is copied, or its own), similarity (the one aimed at, to the
 * root; 1 for exact and original, 0 for mirrors, where nothing is aimed at), text.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { WORDS = 480, PLACES = 3, WIDTH = 5, VOCABULARY = 50000 };

/* The nth number of a stream. */
static uint64_t draw(uint64_t seed, uint64_t stream, uint64_t n)
{
    return hash_mix64(hash_mix64(seed + 1) + hash_mix64(stream + 1) * 3 + n);
}

static void put_word(uint64_t random)
{
    char word[12];
    uint64_t letters = hash_mix64(random % VOCABULARY + 1);
    int n = 3 + (int)(letters % 6);

    for (int i = 0; i < n; i++, letters /= 26)
        word[i] = (char)('a' + letters / 7 % 26);
    word[n] = ' ';
    fwrite(word, 1, (size_t)n + 1, stdout);
}

/* A page of WORDS words has about so many shingles; those of its own words, (1 - j) / (1 + j) of them, are the words
 * themselves and the WIDTH - 1 before each place. */
static void put_page(uint64_t seed, uint64_t page, double similarity, double spread)
{
    double even = (double)(draw(seed, page + 1, UINT32_MAX) >> 11) * 0x1p-53 * 2 - 1;
    double own = (WORDS - WIDTH + 1) * (1 - similarity) / (1 + similarity) * (1 + spread * even) - PLACES * (WIDTH - 1);
    int most = WORDS - PLACES * 2 * WIDTH, n = own < PLACES ? PLACES : own > most ? most : (int)(own + 0.5);
    uint64_t k = 0;

    printf("{\"id\":\"%s-%llu\",\"text\":\"", "page", (unsigned long long)page);
    for (int i = 0, at = 0; i <= PLACES; i++) { /* a part of the template, and after it a place */
        int to = (WORDS - n) * (i + 1) / (PLACES + 1), words = n * (i + 1) / PLACES - n * i / PLACES;
        for (; at < to; at++)
            put_word(draw(seed, 0, (uint64_t)at));
        fputs("\\n", stdout);
        for (; i < PLACES && words > 0; words--)
            put_word(draw(seed, page + 1, k++));
        fputs(i < PLACES ? "\\n" : "", stdout);
    }
    puts("\"}");
}

enum {
    WEB_OCTAVES = 16,                /* of ranks of words */
    WEB_WORD = 16,                   /* bytes of a word in the table: the word, and its length in the last */
    WEB_SCRIPTS = 6,
    WEB_MOST_WORDS = 20000,
    WEB_BUFFER = 4 << 20,
    WEB_DOCUMENT = WEB_MOST_WORDS * (WEB_WORD + 8) + 4096 /* no document has more bytes */
};

static const struct web_script {
    const char *name;
    uint32_t first, letters; /* code points */
    int shortest, octaves;   /* letters of a word: shortest to shortest + 2, and one more every so many octaves */
    int share;               /* of 64 sites */
    const char *space, *stop;
} web_scripts[WEB_SCRIPTS] = {
    {"latin", 'a', 26, 2, 4, 40, " ", ". "},          {"cyrillic", 0x430, 32, 1, 4, 8, " ", ". "},
    {"han", 0x4e00, 3000, 1, 16, 6, "", "\xe3\x80\x82"}, {"arabic", 0x628, 19, 2, 8, 4, " ", ". "},
    {"devanagari", 0x915, 37, 1, 8, 3, " ", " \xe0\xa5\xa4 "}, {"thai", 0xe01, 46, 2, 16, 3, "", " "},
};

struct web {
    uint64_t seed;
    unsigned char (*words)[1 << WEB_OCTAVES][WEB_WORD]; /* [script][rank] */
    char *out;
    size_t used;
    uint64_t written;
};

/* What document n is. */
struct web_document {
    uint64_t n, root, site;
    double similarity; /* of words that are replaced; 1: none */
    const char *kind;
};

enum web_stream { WEB_KIND, WEB_SOURCE, WEB_SITE, WEB_LENGTH, WEB_BODY, WEB_EDIT, WEB_MENU, WEB_NOTICE, WEB_VOCABULARY };

static uint64_t web_key(const struct web *w, enum web_stream stream, uint64_t n)
{
    return hash_mix64(hash_mix64(w->seed + 1) + (uint64_t)stream * 0x9e3779b97f4a7c15 + hash_mix64(n + 1));
}

static void web_put(struct web *w, const char *s, size_t n)
{
    memcpy(w->out + w->used, s, n);
    w->used += n;
}

/* Fills the table of words: frequent ones are short. */
static void web_vocabulary(struct web *w)
{
    for (int s = 0; s < WEB_SCRIPTS; s++) {
        const struct web_script *t = &web_scripts[s];

        for (uint32_t rank = 1, octave = 0; rank < 1 << WEB_OCTAVES; octave += (rank & (rank + 1)) == 0, rank++) {
            uint64_t random = web_key(w, WEB_VOCABULARY, (uint64_t)s << 32 | rank);
            unsigned char *word = w->words[s][rank], n = 0;
            int letters = t->shortest + (int)octave / t->octaves + (int)(random % 3);

            random >>= 2;
            for (int i = 0; i < letters && n + 4 < WEB_WORD; i++, random /= t->letters) {
                uint32_t c = t->first + (uint32_t)(random % t->letters);
                if (c < 0x80) {
                    word[n++] = (unsigned char)c;
                } else if (c < 0x800) {
                    word[n++] = (unsigned char)(0xc0 | c >> 6);
                    word[n++] = (unsigned char)(0x80 | (c & 63));
                } else {
                    word[n++] = (unsigned char)(0xe0 | c >> 12);
                    word[n++] = (unsigned char)(0x80 | (c >> 6 & 63));
                    word[n++] = (unsigned char)(0x80 | (c & 63));
                }
            }
            if (t->space[0] != '\0')
                word[n++] = ' ';
            word[WEB_WORD - 1] = n;
        }
    }
}

/* A word of the nth octave of ranks and any rank within it. */
static void web_put_word(struct web *w, int script, uint64_t random)
{
    uint32_t octave = (uint32_t)random % WEB_OCTAVES;
    uint32_t rank = 1u << octave | ((uint32_t)(random >> 8) & ((1u << octave) - 1));
    const unsigned char *word = w->words[script][rank];

    memcpy(w->out + w->used, word, WEB_WORD);
    w->used += word[WEB_WORD - 1];
}

/* A line of n words, and the newline as JSON has it. */
static void web_put_line(struct web *w, int script, uint64_t key, int n)
{
    for (int i = 0; i < n; i++)
        web_put_word(w, script, hash_mix64(key + (uint64_t)i));
    web_put(w, "\\n", 2);
}

static int web_script_of(const struct web *w, uint64_t site)
{
    int at = (int)(web_key(w, WEB_MENU, site) >> 58), s = 0;

    while (at >= web_scripts[s].share)
        at -= web_scripts[s++].share;
    return s;
}

/* How many words the body of an original has; the bell curve is a sum of twelve numbers. */
static int web_length(const struct web *w, uint64_t root)
{
    uint64_t key = web_key(w, WEB_LENGTH, root);
    double bell = -6;
    int n;

    for (uint64_t i = 0; i < 12; i++)
        bell += (double)(hash_mix64(key + i) >> 32) * 0x1p-32;
    n = (int)(400 * exp2(1.3 * bell));
    return n < 80 ? 80 : n > WEB_MOST_WORDS ? WEB_MOST_WORDS : n;
}

static uint64_t web_site(const struct web *w, uint64_t n)
{
    uint64_t u = web_key(w, WEB_SITE, n) >> 32;

    return u * u >> 44;
}

static struct web_document web_document(const struct web *w, uint64_t n)
{
    static const double similarities[8] = {.5, .6, .7, .75, .85, .9, .95, .98};
    struct web_document d = {.n = n, .root = n, .similarity = 1, .kind = "original"};
    uint64_t kind = web_key(w, WEB_KIND, n);

    for (uint64_t k = kind; d.root > 0 && k % 100 >= 70; k = web_key(w, WEB_KIND, d.root))
        d.root = web_key(w, WEB_SOURCE, d.root) % d.root;
    d.site = web_site(w, d.root);
    if (d.root == n) {
        return d;
    } else if (kind % 100 < 78) {
        d.kind = "exact";
    } else if (kind % 100 < 84) {
        int script = web_script_of(w, d.site);
        d.kind = "mirror";
        d.site = web_site(w, n);
        while (web_script_of(w, d.site) != script)
            d.site = (d.site + 1) % (1 << 20);
    } else {
        d.kind = "near";
        d.similarity = similarities[kind >> 32 & 7];
    }
    return d;
}

/* The body of d's root with d's changes.  Of n words and so about n shingles n (1 - j) / (1 + j) are to go, by passages
 * (their words and four shingles more each) or by words apart (five shingles each). */
static void web_put_body(struct web *w, const struct web_document *d, int script)
{
    uint64_t key = web_key(w, WEB_BODY, d->root), edit = web_key(w, WEB_EDIT, d->n);
    const char *stop = web_scripts[script].stop;
    size_t stop_bytes = strlen(stop), space = strlen(web_scripts[script].space);
    int n = web_length(w, d->root), passages = 1 + (int)(edit % 3);
    int shingles = (int)((n + 40) * (1 - d->similarity) / (1 + d->similarity) + .5);
    int each = shingles / passages - 4, apart = shingles < 5 ? n : n / (shingles / 5);
    bool in_passages = d->similarity < 1 && (edit & 4) != 0 && each > 0, in_words = d->similarity < 1 && !in_passages;

    for (int i = 0; i < n; i++) {
        uint64_t random = hash_mix64(key + (uint64_t)i), word = random;
        int part = in_passages ? i % (n / passages) : 0;

        if ((in_passages && part >= 8 && part < 8 + each && i / (n / passages) < passages)
            || (in_words && i % apart == apart / 2))
            word = hash_mix64(edit + (uint64_t)i);
        web_put_word(w, script, word);
        if (random >> 60 == 0) { /* the end of a sentence, and of a line */
            w->used -= space;
            web_put(w, stop, stop_bytes);
            if ((random >> 56 & 3) == 0)
                web_put(w, "\\n", 2);
        }
    }
    web_put(w, "\\n", 2);
}

static void web_put_document(struct web *w, uint64_t n)
{
    struct web_document d = web_document(w, n);
    int script = web_script_of(w, d.site);
    uint64_t menu = web_key(w, WEB_MENU, d.site), notice = web_key(w, WEB_NOTICE, d.root % 256);

    w->used += (size_t)sprintf(w->out + w->used,
        "{\"id\":\"w%llu\",\"url\":\"https://site-%llu.example/%llu\",\"script\":\"%s\",\"kind\":\"%s\",\"root\":\"w%llu\","
        "\"similarity\":%g,\"text\":\"", (unsigned long long)n, (unsigned long long)d.site, (unsigned long long)n,
        web_scripts[script].name, d.kind, (unsigned long long)d.root, d.kind[0] == 'm' ? 0 : d.similarity);
    web_put_line(w, script, menu, 6);
    web_put_line(w, script, menu + 100, 8);
    web_put_body(w, &d, script);
    web_put_line(w, script, menu + 200, 4 + (int)(menu % 6));
    web_put_line(w, script, menu + 300, 4 + (int)(menu / 6 % 6));
    web_put_line(w, script, notice, 8 + (int)(notice % 10));
    w->used -= 2; /* no newline at the end */
    web_put(w, "\"}\n", 3);
}

static int web_flush(struct web *w)
{
    bool good = fwrite(w->out, 1, w->used, stdout) == w->used;

    w->written += w->used;
    w->used = 0;
    return good ? 0 : -1;
}

/* Writes documents until there are so many bytes.  0, or 1 when they can't be written. */
static int corpus_web(uint64_t bytes, uint64_t seed)
{
    struct web w = {.seed = seed, .words = calloc(WEB_SCRIPTS, sizeof *w.words), .out = malloc(WEB_BUFFER + WEB_DOCUMENT)};
    int status = w.words != NULL && w.out != NULL ? 0 : -1;

    if (status == 0)
        web_vocabulary(&w);
    for (uint64_t n = 0; status == 0 && w.written + w.used < bytes; n++) {
        web_put_document(&w, n);
        if (w.used >= WEB_BUFFER)
            status = web_flush(&w);
    }
    if (status == 0)
        status = web_flush(&w) == 0 && fflush(stdout) == 0 ? 0 : -1;
    free(w.words);
    free(w.out);
    return status == 0 ? 0 : 1;
}

static int usage(void)
{
    fputs("usage: corpus_bench template DOCUMENTS SIMILARITY [SEED [SPREAD]]\n"
          "       corpus_bench web MEGABYTES [SEED]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    double similarity, spread;
    uint64_t documents, seed;

    if ((argc == 3 || argc == 4) && strcmp(argv[1], "web") == 0)
        return corpus_web(strtoull(argv[2], NULL, 10) * 1000000, argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
    if (argc < 4 || argc > 6 || strcmp(argv[1], "template") != 0)
        return usage();
    documents = strtoull(argv[2], NULL, 10);
    similarity = strtod(argv[3], NULL);
    seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    spread = argc > 5 ? strtod(argv[5], NULL) : 0;
    for (uint64_t page = 0; page < documents; page++)
        put_page(seed, page, similarity, spread);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
