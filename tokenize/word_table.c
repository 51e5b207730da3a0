#include "tokenize/word_table.h"

#include "base/err.h"
#include "base/hash.h"
#include "tokenize/word_hash.h"

enum {
    STORE_MAX = 16 << 20,
    HUGE = 2 << 20,
    WINDOW = 16,
    LINES = 4,
    FIRST_WORDS = HUGE / sizeof(struct known_word),
    FIRST_LINES = HUGE / sizeof(struct word_line)
};

static uint64_t words_of(const struct word_table *w)
{
    return (w->set_mask >> WORD_SET_SHIFT) * 2 + 2;
}

static void set_words(struct word_table *w, uint64_t n)
{
    w->set_mask = (n / 2 - 1) << WORD_SET_SHIFT;
}

int word_table_init(struct word_table *w, unsigned log2_words)
{
    size_t word_bytes;
    char *p;

    memset(w, 0, sizeof *w);
    w->most_words = (uint64_t)1 << log2_words;
    w->most_lines = w->most_words / 2;
    set_words(w, w->most_words < FIRST_WORDS ? w->most_words : FIRST_WORDS);
    w->line_mask = (w->most_lines < FIRST_LINES ? w->most_lines : FIRST_LINES) - 1;
    word_bytes = (w->most_words + WINDOW) * sizeof *w->words;
    p = pages_new(&w->pages, word_bytes + (w->most_lines + LINES) * sizeof *w->lines + WORDS_SLACK);
    if (!p)
        return ERR_NOMEM;
    w->words = (struct known_word *)(void *)p;
    w->lines = (struct word_line *)(void *)(p + word_bytes);
    w->store.max = STORE_MAX;
    return 0;
}

void word_table_free(struct word_table *w)
{
    pages_free(&w->pages);
    buf_free(&w->store);
    memset(w, 0, sizeof *w);
}

static void empty(struct word_table *w)
{
    memset(w->words, 0, (words_of(w) + WINDOW) * sizeof *w->words);
    memset(w->lines, 0, (w->line_mask + 1 + LINES) * sizeof *w->lines);
    w->words_used = w->lines_used = 0;
    w->store.n = 0;
}

static struct known_word *set_of(const struct word_table *w, const struct word_key *key)
{
    return (struct known_word *)(void *)((char *)w->words + word_set(word_hash_key(key->lo, key->hi), w->set_mask));
}

/* The key of any piece: what does not fit is hashed and marked.  Returns its set. */
static struct known_word *key_of(const struct word_table *w, const uint8_t *p, size_t n, struct word_key *key)
{
    if (n > WORDS_SHORT)
        *key = (struct word_key){hash_xxh3_64((struct span){(const char *)p, n}), n | (uint64_t)0x80 << 56};
    else
        *key = word_key_of(p, n);
    return set_of(w, key);
}

static bool is_key(const struct known_word *x, const struct word_key *key)
{
    return ((word_load(x->key) ^ key->lo) | (word_load(x->key + 8) ^ key->hi)) == 0;
}

static struct word_line *line_of(const struct word_table *w, const uint8_t *p, size_t n)
{
    return w->lines + (word_hash_long(p, n) & w->line_mask);
}

/* word_table_find for WORDS_SHORT < n < WORDS_LINE, among the lines only. */
static const uint8_t *find_line(struct word_table *w, const uint8_t *p, size_t n, size_t *count)
{
    struct word_line *x = line_of(w, p, n);

    for (int i = 0; i < LINES && x[i].n; i++)
        if (x[i].n == n && memcmp(x[i].bytes, p, n) == 0) {
            if (i) { /* to where the next look finds it at once */
                struct word_line y = x[i];
                x[i] = x[0];
                x[0] = y;
            }
            *count = x->count;
            return x->bytes + n;
        }
    return NULL;
}

const uint8_t *word_table_find(struct word_table *w, const uint8_t *p, size_t n, size_t *count)
{
    struct word_key key;
    struct known_word *x;
    const uint8_t *found;

    if (n > WORDS_SHORT && n < WORDS_LINE && (found = find_line(w, p, n, count)))
        return found;
    x = key_of(w, p, n, &key);
    for (int i = 0; i < WINDOW && x[i].key[15]; i++) {
        if (!is_key(&x[i], &key))
            continue;
        if (i >= 2) { /* to where the next look finds it at once */
            struct known_word y = x[i];
            x[i] = x[1];
            x[1] = y;
            i = 1;
        }
        if (x[i].n != WORDS_STORED) {
            *count = x[i].n;
            return x[i].ids;
        }
        found = word_stored(w, &x[i], count);
        if (n <= WORDS_SHORT)
            return found;
        if (memcmp(found, p, n) == 0)
            return found + n;
    }
    return NULL;
}

static void put_line(struct word_table *w, const uint8_t *p, size_t n, const uint32_t *ids, size_t count)
{
    struct word_line *x = line_of(w, p, n);
    int i = 0;

    while (i < LINES && x[i].n)
        i++;
    w->lines_used += i < LINES;
    if (i == LINES)
        i = (int)(w->turn++ % LINES);
    x[i].n = (uint8_t)n;
    x[i].count = (uint8_t)count;
    memcpy(x[i].bytes, p, n);
    word_pack(x[i].bytes + n, ids, count);
}

/* Appends what does not fit into an entry; the offset, or -1 when there is no room. */
static int64_t store(struct word_table *w, const uint8_t *p, size_t n, const uint32_t *ids, size_t count)
{
    size_t at = w->store.n;

    if (buf_reserve(&w->store, n + 3 * count + WORDS_SLACK) < 0)
        return -1;
    memcpy(w->store.p + at, p, n);
    word_pack((uint8_t *)w->store.p + at + n, ids, count);
    w->store.n += n + 3 * count;
    return (int64_t)at;
}

void word_table_put(struct word_table *w, const uint8_t *p, size_t n, const uint32_t *ids, size_t count)
{
    struct word_key key;
    struct known_word *x;
    int i = 0;

    if (n > WORDS_LONGEST || n == 0)
        return;
    if (n > WORDS_SHORT && n + 3 * count <= WORDS_LINE) {
        put_line(w, p, n, ids, count);
        return;
    }
    x = key_of(w, p, n, &key);
    while (i < WINDOW && x[i].key[15])
        i++;
    w->words_used += i < WINDOW;
    if (i == WINDOW)
        i = (int)(w->turn++ % WINDOW);
    if (n > WORDS_SHORT || count > WORDS_INLINE) {
        int64_t at = store(w, p, n > WORDS_SHORT ? n : 0, ids, count);
        if (at < 0) { /* the store is full: begin again */
            empty(w);
            return;
        }
        memcpy(x[i].ids, &(uint32_t[2]){(uint32_t)at, (uint32_t)count}, 8);
        x[i].n = WORDS_STORED;
    } else {
        word_pack(x[i].ids, ids, count);
        x[i].n = (uint8_t)count;
    }
    memcpy(x[i].key, &key, 16);
}

/* ---- growing in place: an entry stays in the window where it was or goes as far into the new half ---- */

static void put_word(struct word_table *w, const struct known_word *x)
{
    struct word_key key = {word_load(x->key), word_load(x->key + 8)};
    struct known_word *to = set_of(w, &key);
    int i = 0;

    while (i < WINDOW && to[i].key[15])
        i++;
    if (i < WINDOW)
        to[i] = *x;
}

/* Entries keep their order in a window.  Those behind the last set, where the new half begins, come last. */
static void double_words(struct word_table *w)
{
    uint64_t n = words_of(w);
    struct known_word behind[WINDOW], x;

    memcpy(behind, w->words + n, sizeof behind);
    memset(w->words + n, 0, sizeof behind);
    set_words(w, 2 * n);
    for (uint64_t i = 0; i < n; i++) {
        if (!w->words[i].key[15])
            continue;
        x = w->words[i];
        w->words[i].key[15] = 0;
        put_word(w, &x);
    }
    for (int i = 0; i < WINDOW; i++)
        if (behind[i].key[15])
            put_word(w, &behind[i]);
}

static void put_line_again(struct word_table *w, const struct word_line *x)
{
    struct word_line *to = line_of(w, x->bytes, x->n);
    int i = 0;

    while (i < LINES && to[i].n)
        i++;
    if (i < LINES)
        to[i] = *x;
}

static void double_lines(struct word_table *w)
{
    uint64_t n = w->line_mask + 1;
    struct word_line behind[LINES], x;

    memcpy(behind, w->lines + n, sizeof behind);
    memset(w->lines + n, 0, sizeof behind);
    w->line_mask = 2 * n - 1;
    for (uint64_t i = 0; i < n; i++) {
        x = w->lines[i];
        w->lines[i].n = 0;
        if (x.n)
            put_line_again(w, &x);
    }
    for (int i = 0; i < LINES; i++)
        if (behind[i].n)
            put_line_again(w, &behind[i]);
}

void word_table_double(struct word_table *w)
{
    if (word_table_full_words(w) && words_of(w) < w->most_words)
        double_words(w);
    if (word_table_full_lines(w) && w->line_mask + 1 < w->most_lines)
        double_lines(w);
}
