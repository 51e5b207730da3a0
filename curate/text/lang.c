#include "curate/text/lang.h"

#include <math.h>
#include <pthread.h>

#include "curate/text/word_set.h"

static const struct lang {
    const char *code, *others;
    unsigned traits;
    double number[N_LANG_NUMBERS];
    const char *stop_words;
} langs[] = {
#define NUMBERS(...) {__VA_ARGS__}
#define NONE {NAN}
#define LANG(...) {__VA_ARGS__},
#include "curate/text/lang_data.inc"
#undef LANG
#undef NONE
#undef NUMBERS
};
enum { N_LANGS = sizeof langs / sizeof *langs };

/* The words of a list with single spaces, one after the other. */
static bool next_word(const char **list, struct span *w)
{
    *w = (struct span){*list, strcspn(*list, " ")};
    *list += w->n + ((*list)[w->n] == ' ');
    return w->n != 0;
}

const struct lang *lang_find(struct span code)
{
    size_t n = 0;

    while (n < code.n && code.p[n] != '-' && code.p[n] != '_')
        n++;
    code.n = n;
    for (int i = 0; n && i < N_LANGS; i++) {
        const char *list = langs[i].others;
        struct span w = span_of(langs[i].code);

        do
            if (span_eq(w, code))
                return &langs[i];
        while (next_word(&list, &w));
    }
    return NULL;
}

const struct lang *lang_english(void) { return &langs[0]; }

const struct lang *lang_at(int i) { return i >= 0 && i < N_LANGS ? &langs[i] : NULL; }

const char *lang_code(const struct lang *l) { return l->code; }

unsigned lang_traits(const struct lang *l) { return l ? l->traits : 0; }

double lang_number(const struct lang *l, enum lang_number which)
{
    return l && !isnan(l->number[0]) ? l->number[which] : NAN;
}

/* ---- stop words ---- */

enum { MAX_STOP_WORDS = 24 };
static struct list {
    struct span word[MAX_STOP_WORDS];
    int n;
    uint64_t lengths; /* in bytes, a bit each */
} lists[N_LANGS];
static pthread_once_t lists_once = PTHREAD_ONCE_INIT;

static void build_lists(void)
{
    for (int i = 0; i < N_LANGS; i++) {
        const char *rest = langs[i].stop_words;
        struct list *l = &lists[i];

        while (l->n < MAX_STOP_WORDS && next_word(&rest, &l->word[l->n]))
            l->lengths |= 1ULL << l->word[l->n++].n;
    }
}

uint64_t lang_stop_words(const struct lang *l, struct span word)
{
    bool endings = lang_traits(l) & LANG_ENDINGS;
    const struct list *list;
    uint64_t bits = 0;

    if (!l)
        return 0;
    pthread_once(&lists_once, build_lists);
    list = &lists[l - langs];
    if (!endings && (word.n > 63 || !(list->lengths >> word.n & 1)))
        return 0;
    for (int i = 0; i < list->n; i++) {
        struct span w = list->word[i];
        if ((endings ? word.n >= w.n : word.n == w.n) && memcmp(word.p + word.n - w.n, w.p, w.n) == 0)
            bits |= 1ULL << i;
    }
    return bits;
}

/* ---- RedPajama's lists ---- */

static const struct {
    const char *code, *words;
} rpv2[] = {
#include "curate/text/rpv2_stop_words.inc"
};
enum { N_RPV2 = sizeof rpv2 / sizeof *rpv2 };
static struct word_set sets[N_RPV2];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void build(void)
{
    for (int i = 0; i < N_RPV2; i++) {
        struct buf b = {0};

        if (buf_puts(&b, rpv2[i].words) == 0)
            for (size_t k = 0; k < b.n; k++)
                b.p[k] = b.p[k] == ' ' ? '\n' : b.p[k];
        word_set_take(&sets[i], &b, NULL, NULL);
    }
}

static const struct word_set *rpv2_set(const struct lang *l)
{
    for (int i = 0; l && i < N_RPV2; i++)
        if (strcmp(rpv2[i].code, lang_code(l)) == 0)
            return &sets[i];
    return NULL;
}

bool lang_has_rpv2_stop_words(const struct lang *l) { return rpv2_set(l) != NULL; }

bool lang_rpv2_stop_word(const struct lang *l, struct span word)
{
    const struct word_set *s = rpv2_set(l);

    pthread_once(&once, build);
    return s && word_set_has(s, word);
}
