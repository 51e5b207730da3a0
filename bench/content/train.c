/* Trains the models of main content (curate/html/content_model.h) and measures them by folds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"
#include "bench/content/boost.h"
#include "bench/content/trainer.h"
#include "curate/html/html_text.h"

enum {
    BLOCKS_MANY = 250, /* of a page with more so many are learned from */
    FIRST_TREES = 200, SECOND_TREES = 320
};

/* A domain weighs as its number of pages to 1 less this power. */
#define DOMAIN_POWER 0.2f

static const uint64_t seed = 1;

/* Puts the columns of features from `from` to `to` of the page on the desk, which is s, with those of all pages. */
static void put_features(struct content_trainer *t, const struct sample *s, int from, int to)
{
    const struct content_page *p = &t->desk.page;

    for (int f = from; f < to; f++)
        memcpy(t->x + (size_t)f * t->rows + s->first_row, p->feature + (size_t)f * p->stride, s->n_blocks);
}

/* The features of all pages but those that other models give. */
static void read_features(struct content_trainer *t, int without)
{
    for (uint32_t i = 0; i < t->n; i++) {
        read_unknown(t, i, without);
        put_features(t, &t->sample[i], 0, CF_KIND);
        for (int f = 0; f < CONTENT_PAGE_FEATURES; f++)
            t->pages[(size_t)f * t->n + i] = t->desk.page.page[f];
    }
}

/* ---- kinds ---- */

/* A forest for each kind, that kind against all others, from the pages of all folds but `without` and `also`. */
static void train_kinds(struct content_trainer *t, int without, int also, struct content_forest kind[CONTENT_KINDS])
{
    float *y = calloc(t->n, sizeof *y), *w = calloc(t->n, sizeof *w);
    struct boost_conf c = {.depth = CONTENT_KIND_DEPTH, .trees = 80, .rate = 0.1f, .lambda = 2, .row_share = 0.7f,
                           .feature_share = 0.5f, .features = CONTENT_PAGE_FEATURES, .seed = seed};

    for (int k = 0; k < CONTENT_KINDS; k++) {
        for (uint32_t i = 0; i < t->n; i++) {
            const struct sample *s = &t->sample[i];
            y[i] = s->kind == k;
            w[i] = s->fold == without || s->fold == also ? 0 : (s->set == WCXB ? 1 : 0.3f) * sqrtf(t->domain_weight[i]);
        }
        kind[k] = boost_train(&(struct boost_data){t->n, t->pages, y, w}, &c);
    }
    free(y);
    free(w);
}

static void free_kinds(struct content_forest kind[CONTENT_KINDS])
{
    for (int k = 0; k < CONTENT_KINDS; k++)
        boost_free(&kind[k]);
}

/* Sets the kinds' scores of the pages of a fold. */
static void put_kinds(struct content_trainer *t, int fold, const struct content_model *m)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct sample *s = &t->sample[i];
        int share;
        if (s->fold != fold)
            continue;
        t->desk.page.n_blocks = s->n_blocks;
        t->desk.page.stride = ((s->n_blocks + 63u) / 64 | 1) * 64;
        if (mem_room(&t->desk.page.feature, &t->desk.page.cap_features, t->desk.page.stride * CONTENT_FEATURES, 1) < 0)
            exit(3);
        for (int f = 0; f < CONTENT_PAGE_FEATURES; f++)
            t->desk.page.page[f] = t->pages[(size_t)f * t->n + i];
        content_model_kind(m, &t->desk.page, &share);
        put_features(t, s, CF_KIND, CF_FIRST);
    }
}

/* ---- blocks ---- */

/* Trains on the pages of folds in the set. */
static struct content_forest train_blocks(struct content_trainer *t, unsigned folds, uint32_t features)
{
    struct boost_conf c = {.depth = CONTENT_DEPTH, .trees = features > CF_FIRST ? SECOND_TREES : FIRST_TREES, .rate = 0.12f,
                           .lambda = 1, .row_share = 0.4f, .feature_share = 0.35f, .features = features, .seed = seed + folds};

    for (uint32_t i = 0; i < t->n; i++) {
        const struct sample *s = &t->sample[i];
        float share = s->n_blocks > BLOCKS_MANY ? (float)BLOCKS_MANY / (float)s->n_blocks : 1;
        for (uint32_t b = 0; b < s->n_blocks; b++) {
            uint32_t r = s->first_row + b;
            bool in = folds >> s->fold & 1 && (hash_mix64(r + seed) >> 40) * 0x1p-24 < share;
            t->used[r] = in ? t->w[r] * powf(t->domain_weight[i], DOMAIN_POWER) / share : 0;
        }
    }
    /* Only rows in use: the columns are long. */
    uint32_t n = 0;
    for (uint32_t r = 0; r < t->rows; r++)
        n += t->used[r] > 0;
    uint8_t *x = malloc((size_t)n * features);
    float *y = malloc(n * sizeof *y), *w = malloc(n * sizeof *w);
    for (uint32_t f = 0; f < features; f++) {
        uint8_t *to = x + (size_t)f * n;
        const uint8_t *from = t->x + (size_t)f * t->rows;
        for (uint32_t r = 0; r < t->rows; r++)
            if (t->used[r] > 0)
                *to++ = from[r];
    }
    n = 0;
    for (uint32_t r = 0; r < t->rows; r++)
        if (t->used[r] > 0) {
            y[n] = t->y[r];
            w[n++] = t->used[r];
        }
    struct content_forest f = boost_train(&(struct boost_data){n, x, y, w}, &c);
    free(x);
    free(y);
    free(w);
    return f;
}

/* Sets the features of stage 2 of the pages of folds in the set. */
static void put_first(struct content_trainer *t, unsigned folds, int without, const struct content_forest *first)
{
    struct content_page *p = &t->desk.page;

    for (uint32_t i = 0; i < t->n; i++) {
        const struct sample *s = &t->sample[i];
        if (!(folds >> s->fold & 1))
            continue;
        read_unknown(t, i, without);
        for (int f = 0; f < CONTENT_FEATURES; f++)
            memcpy(p->feature + (size_t)f * p->stride, t->x + (size_t)f * t->rows + s->first_row, s->n_blocks);
        content_forest_score(first, p->feature, p->stride, p->n_blocks, p->score);
        content_first_features(p, &t->desk.tree);
        put_features(t, s, CF_FIRST, CONTENT_FEATURES);
    }
}

/* Trains all models on the pages of every fold but one (NO_FOLD: on all). */
static void train(struct content_trainer *t, int without, struct content_model *m)
{
    unsigned all = 0, half[2] = {0};

    for (int f = 0, k = 0; f < FOLDS; f++)
        if (f != without) {
            all |= 1u << f;
            half[k++ % 2] |= 1u << f;
        }
    learn_lexicon(t, without);
    read_features(t, without);
    /* What a later model learns from scores was scored by a model that does not know the page. */
    for (int f = 0; f < FOLDS; f++) {
        if (f == without)
            continue;
        train_kinds(t, without, f, m->kind);
        put_kinds(t, f, m);
        free_kinds(m->kind);
    }
    train_kinds(t, without, NO_FOLD, m->kind);
    m->first = train_blocks(t, all, CF_FIRST);
    for (int k = 0; k < 2; k++) {
        struct content_forest f = train_blocks(t, half[!k], CF_FIRST);
        put_first(t, half[k], without, &f);
        boost_free(&f);
    }
    m->second = train_blocks(t, all, CONTENT_FEATURES);
    m->lexicon = t->lexicon;
}

/* ---- folds ---- */

static void write_page(struct content_trainer *t, const struct sample *s, FILE *out)
{
    struct buf text = {0}, line = {0};

    if (html_text_write(&t->desk.tree, t->desk.skip, &(struct html_text_conf){0}, &text) < 0)
        exit(3);
    buf_puts(&line, "{\"id\":");
    json_put_name(&line, s->id);
    buf_puts(&line, ",\"text\":");
    buf_putc(&text, '\0');
    json_put_name(&line, text.p);
    buf_puts(&line, "}\n");
    fwrite(line.p, 1, line.n, out);
    buf_free(&text);
    buf_free(&line);
}

/* Writes the content of the pages of the fold that was left out, as extract would.  Returns how many kinds are right;
 * *of: of so many. */
static int write_fold(struct content_trainer *t, const struct content_model *m, int fold, FILE *const out[], int *of)
{
    struct content_page *p = &t->desk.page;
    int right = 0, share;

    for (uint32_t i = 0; i < t->n; i++) {
        const struct sample *s = &t->sample[i];
        if (s->fold != fold)
            continue;
        desk_read(&t->desk, s, &t->lexicon);
        int kind = (int)content_model_kind(m, p, &share);
        if (s->set == WCXB) {
            right += kind == s->kind;
            ++*of;
        }
        content_model_score(m, p, &t->desk.tree);
        int32_t cut = content_cut(p);
        if (kind != CONTENT_DOCUMENTATION &&
            content_drop_repeats(p, &t->desk.tree, &t->lexicon, t->desk.skip, cut) < 0)
            exit(3);
        content_keep_blocks(p, &t->desk.tree, cut, t->desk.skip);
        write_page(t, s, out[s->set]);
    }
    return right;
}

/* Each page by a model that knows nothing of its domain: FOLDER/wcxb.jsonl, segment.jsonl, article.jsonl. */
static void run_folds(struct content_trainer *t, struct content_model *m, const char *folder)
{
    static const char *const names[] = {"wcxb", "segment", "article"};
    int right = 0, of = 0;
    char path[4096];
    FILE *out[3];

    for (int k = 0; k < 3; k++) {
        snprintf(path, sizeof path, "%s/%s.jsonl", folder, names[k]);
        out[k] = fopen(path, "w");
        if (!out[k])
            exit(3);
    }
    for (int f = 0; f < FOLDS; f++) {
        train(t, f, m);
        right += write_fold(t, m, f, out, &of);
        free_kinds(m->kind);
        boost_free(&m->first);
        boost_free(&m->second);
    }
    for (int k = 0; k < 3; k++)
        fclose(out[k]);
    printf("content kinds right\t%.4f\tshare\tof %d pages, by folds\n", (double)right / of, of);
}

int main(int argc, char **argv)
{
    struct content_trainer *t = calloc(1, sizeof *t);
    struct content_model *m = calloc(1, sizeof *m);
    bool folds = argc == 5 && strcmp(argv[1], "folds") == 0;

    if (!t || !m || (!folds && (argc != 5 || strcmp(argv[1], "model") != 0))) {
        fprintf(stderr, "usage: content_train folds|model SETS WCXB FOLDER|FILE\n");
        return 2;
    }
    html_names_init(&t->desk.names);
    content_words_init(&t->desk.words);
    content_lexicon_init(&t->lexicon);
    t->sample = samples_read(argv[2], argv[3], &t->n);
    label_all(t);
    if (folds) {
        run_folds(t, m, argv[4]);
    } else {
        train(t, NO_FOLD, m);
        write_model(m, argv[4]);
    }
    return 0;
}
