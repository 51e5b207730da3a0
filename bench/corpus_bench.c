/* Makes documents for benchmarks, the same for one seed on every machine, as JSON lines on standard output:
 *
 *     corpus_bench template DOCUMENTS SIMILARITY [SEED [SPREAD]]
 *
 * template: pages of about 3 kB of which any two have that Jaccard similarity of shingles of five words.  Every page
 * has the words of one template, and in three places (a head, a body, an end) words of its own.  With a SPREAD s the
 * own part of a page is larger or smaller by up to s (0.1: a tenth), evenly.
 */
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
        for (; i < PLACES && words > 0; words--)
            put_word(draw(seed, page + 1, k++));
    }
    puts("\"}");
}

int main(int argc, char **argv)
{
    double similarity, spread;
    uint64_t documents, seed;

    if (argc < 4 || argc > 6 || strcmp(argv[1], "template") != 0) {
        fputs("usage: corpus_bench template DOCUMENTS SIMILARITY [SEED [SPREAD]]\n", stderr);
        return 2;
    }
    documents = strtoull(argv[2], NULL, 10);
    similarity = strtod(argv[3], NULL);
    seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    spread = argc > 5 ? strtod(argv[5], NULL) : 0;
    for (uint64_t page = 0; page < documents; page++)
        put_page(seed, page, similarity, spread);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
