/* Which blocks say what the page states as data too, and which what other blocks say. */
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "curate/html/content_features_parts.h"

/* The last words of a text, as hashes. */
struct run {
    uint32_t word[2], n;
};

typedef void gram_take(void *arg, uint32_t gram);

/* What stands behind the tag, reference, or punctuation that begins at p, if one does; else p. */
static const unsigned char *behind_mark(const unsigned char *p, const unsigned char *end)
{
    size_t n = (size_t)(end - p < 300 ? end - p : 300);
    const unsigned char *to;

    switch (*p) {
    case 0xE2:
        return n > 2 && p[1] < 0x82 ? p + 3 : p;
    case 0xC2:
        return n > 1 && p[1] == 0xA0 ? p + 2 : p;
    case '<':
        to = n > 1 && (ascii_is_lower((char)(p[1] | 0x20)) || p[1] == '/') ? memchr(p, '>', n) : NULL;
        break;
    default:
        to = memchr(p, ';', n < 10 ? n : 10);
    }
    return to ? to + 1 : p;
}

/* Calls take for each three words that follow each other in s, going on from *run: letters and digits in small letters of
 * ASCII.  Tags, references and general punctuation (U+2000 to U+207F) stand between words. */
static void each_gram(const uint8_t letter[256], struct span s, struct run *run, gram_take *take, void *arg)
{
    const unsigned char *p = (const unsigned char *)s.p, *end = p + s.n;

    while (p < end) {
        uint32_t word = HTML_NAME_HASH_START;
        const unsigned char *from = p, *behind = p;
        for (; p < end; p++) {
            unsigned c = letter[*p];
            if (c > 1) {
                word = html_name_hash(word, (char)c);
                continue;
            }
            behind = c ? behind_mark(p, end) : p;
            if (!c || behind > p || *p < 0x80)
                break;
            word = html_name_hash(word, (char)*p);
        }
        if (p > from) {
            uint32_t gram = content_mix(content_mix(run->word[0], run->word[1]), word);
            if (run->n++ >= 2)
                take(arg, gram + !gram);
            run->word[0] = run->word[1];
            run->word[1] = word;
        }
        p = p == end ? end : behind > p ? behind : p + 1;
    }
}

static struct content_gram *find_gram(const struct content_grams *g, uint32_t hash)
{
    uint32_t i = hash & g->mask;

    while (g->slot[i].hash && g->slot[i].hash != hash)
        i = (i + 1) & g->mask;
    return &g->slot[i];
}

struct stating {
    struct content_grams *g;
    uint8_t role; /* a bit */
};

static void state_gram(void *arg, uint32_t hash)
{
    struct stating *s = arg;
    struct content_gram *at = find_gram(s->g, hash);

    s->g->n += !at->hash;
    at->hash = hash;
    at->roles |= s->role;
    s->g->roles |= s->role;
}

int content_read_stated(struct content_reader *r)
{
    struct content_grams *g = &r->p->grams;
    const struct html_ld *l = &r->p->ld;
    size_t size = 64;

    g->n = 0;
    g->roles = 0;
    TRY(html_ld_read(&r->p->ld, r->t));
    if (!l->n_texts)
        return 0;
    while (size < l->bytes.n) /* a word takes two bytes */
        size *= 2;
    if (mem_room(&g->slot, &g->cap, size, sizeof *g->slot) < 0)
        return ERR_NOMEM;
    memset(g->slot, 0, size * sizeof *g->slot);
    g->mask = (uint32_t)size - 1;
    for (int i = 0; i < l->n_texts; i++) {
        struct stating s = {g, (uint8_t)(1u << l->text[i].role)};
        struct run run = {.n = 0};
        each_gram(r->lexicon->letter, html_ld_text(l, i), &run, state_gram, &s);
    }
    return 0;
}

struct shown {
    const struct content_grams *g;
    uint32_t n, of[LD_ROLES];
};

static void show_gram(void *arg, uint32_t hash)
{
    struct shown *s = arg;
    struct content_gram *at = find_gram(s->g, hash);

    s->n++;
    if (!at->hash)
        return;
    at->shown = true;
    for (int k = 0; k < LD_ROLES; k++)
        s->of[k] += at->roles >> k & 1;
}

void content_set_stated(struct content_reader *r)
{
    enum { SHORT = 62, NONE = 63 };
    const struct content_page *p = r->p;
    const struct content_grams *g = &p->grams;

    memset(p->feature + (size_t)CF_LD_BODY * p->stride, NONE, LD_ROLES * p->stride);
    memset(p->feature + (size_t)CF_PAGE_LD * p->stride, (int)content_log(g->n), p->stride);
    for (uint32_t i = 0; g->n && i < p->n_blocks; i++) {
        const struct content_block *b = &p->block[i];
        struct shown shown = {.g = g};
        struct run run = {.n = 0};
        for (uint32_t k = b->first; k <= b->last; k++)
            if (r->t->node[k].tag == HTML_text && !r->skip[k])
                each_gram(r->lexicon->letter, html_text(r->t, k), &run, show_gram, &shown);
        for (unsigned k = 0; k < LD_ROLES; k++)
            if (g->roles >> k & 1)
                p->feature[(CF_LD_BODY + k) * p->stride + i] =
                    (uint8_t)(shown.n ? content_share(shown.of[k], shown.n) : SHORT);
    }
}

bool content_is_elsewhere(const struct content_page *p, int32_t cut)
{
    enum { GRAMS_MIN = 20 }; /* fewer say little */
    const unsigned own = (1u << LD_TEASER) - 1;
    const struct content_grams *g = &p->grams;
    uint64_t kept = 0, stated = 0;
    uint32_t n = 0, shown = 0, things = 0;

    for (uint32_t i = 0; g->n && i <= g->mask; i++) {
        n += (g->slot[i].roles & own) > 0;
        shown += g->slot[i].roles & own && g->slot[i].shown;
    }
    for (int i = 0; i < p->ld.n_texts; i++) {
        things += p->ld.text[i].role == LD_DESCRIPTION;
        stated += p->ld.text[i].role < LD_TEASER ? p->ld.text[i].n : 0;
    }
    if (n < GRAMS_MIN || shown * 2 >= n || things > 1) /* a page of several things lists them */
        return false;
    for (uint32_t i = 0; i < p->n_blocks; i++)
        kept += p->score[i] >= cut ? p->block[i].text : 0;
    return kept < stated;
}

/* ---- repeats ---- */

static void say_gram(void *arg, uint32_t gram)
{
    struct content_repeats *r = arg;

    r->gram[r->n_grams++] = gram;
}

/* How often a gram is said. */
static uint32_t *times(const struct content_repeats *r, uint32_t gram)
{
    uint32_t i = gram & r->mask;

    while (r->slot[i].hash && r->slot[i].hash != gram)
        i = (i + 1) & r->mask;
    r->slot[i].hash = gram;
    return &r->slot[i].n;
}

/* Whether nine of ten of what s says is said more often than `often` times. */
static bool is_said(const struct content_repeats *r, const struct content_said *s, uint32_t often)
{
    uint32_t n = 0;

    for (uint32_t i = s->from; i < s->from + s->n; i++)
        n += *times(r, r->gram[i]) > often;
    return n * 10ull >= s->n * 9ull;
}

static void say(const struct content_repeats *r, const struct content_said *s, bool more)
{
    for (uint32_t i = s->from; i < s->from + s->n; i++)
        *times(r, r->gram[i]) += more ? 1 : UINT32_MAX;
}

static int by_length(const void *a, const void *b)
{
    const struct content_said *x = a, *y = b;

    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : (x->block < y->block) - (x->block > y->block);
}

/* Reads the blocks from cut on, and counts what they say. */
static int read_said(struct content_page *p, const struct html_tree *t, const uint8_t letter[256], const uint8_t *skip,
                     int32_t cut)
{
    struct content_repeats *r = &p->repeats;
    size_t words = 0, size = 64;

    r->n_grams = r->n_said = 0;
    for (uint32_t i = 0; i < p->n_blocks; i++)
        for (uint32_t k = p->block[i].first; p->score[i] >= cut && k <= p->block[i].last; k++)
            words += t->node[k].tag == HTML_text && !skip[k] ? (html_text(t, k).n + 1) / 2 : 0; /* at most */
    if (mem_room(&r->gram, &r->cap_grams, words + 1, sizeof *r->gram) < 0 ||
        mem_room(&r->said, &r->cap_said, p->n_blocks + 1u, sizeof *r->said) < 0)
        return ERR_NOMEM;
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        struct run run = {.n = 0};
        struct content_said *s = &r->said[r->n_said];
        if (p->score[i] < cut)
            continue;
        *s = (struct content_said){.block = i, .from = r->n_grams};
        for (uint32_t k = p->block[i].first; k <= p->block[i].last; k++)
            if (t->node[k].tag == HTML_text && !skip[k])
                each_gram(letter, html_text(t, k), &run, say_gram, r);
        s->n = r->n_grams - s->from;
        r->n_said += s->n > 0;
    }
    while (size < r->n_grams * 2ull)
        size *= 2;
    if (mem_room(&r->slot, &r->cap_slots, size, sizeof *r->slot) < 0)
        return ERR_NOMEM;
    memset(r->slot, 0, size * sizeof *r->slot);
    r->mask = (uint32_t)size - 1;
    for (uint32_t i = 0; i < r->n_said; i++)
        say(r, &r->said[i], true);
    return 0;
}

int content_drop_repeats(struct content_page *p, const struct html_tree *t, const struct content_lexicon *lexicon,
                         const uint8_t *skip, int32_t cut)
{
    enum { GRAMS_MIN = 18 }; /* of 20 words */
    const uint32_t code = 1u << (CF_CODE - CF_NAV);
    struct content_repeats *r = &p->repeats;

    TRY(read_said(p, t, lexicon->letter, skip, cut));
    qsort(r->said, r->n_said, sizeof *r->said, by_length);
    for (uint32_t i = 0; i < r->n_said && r->said[i].n >= GRAMS_MIN; i++) {
        const struct content_said *s = &r->said[i];
        const struct content_block *b = &p->block[s->block];
        if (p->node[t->node[b->first].parent].tags & code || !is_said(r, s, 1))
            continue;
        say(r, s, false);
        if (is_said(r, s, 0))
            p->score[s->block] = INT32_MIN;
        else
            say(r, s, true);
    }
    return 0;
}
