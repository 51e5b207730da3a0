#include "curate/html/content_model.h"

#include <string.h>

#include "base/hash.h"
#include "curate/html/content_forest_simd.h"

const char *const content_kind_names[CONTENT_KINDS] = {
    "article", "collection", "documentation", "forum", "listing", "product", "service"};

#include "curate/html/content_weights.inc"

const char content_model_name[] = CONTENT_MODEL_NAME;

void content_model_init(struct content_model *m)
{
    content_lexicon_init(&m->lexicon);
    for (size_t i = 0; i < sizeof trained_tokens / sizeof *trained_tokens; i++)
        content_lexicon_put(&m->lexicon, trained_tokens[i].hash, trained_tokens[i].score, trained_tokens[i].token);
    for (int k = 0; k < CONTENT_KINDS; k++)
        m->kind[k] = trained_kinds[k];
    m->first = trained_first;
    m->second = trained_second;
}

static uint64_t forest_hash(const struct content_forest *f, uint64_t h)
{
    size_t tests = (size_t)f->n_trees * (size_t)f->depth;
    const int32_t shape[3] = {f->depth, f->n_trees, f->bias};

    h = hash_xxh3_64_seed((struct span){(const char *)shape, sizeof shape}, h);
    h = hash_xxh3_64_seed((struct span){(const char *)f->feature, tests * sizeof *f->feature}, h);
    h = hash_xxh3_64_seed((struct span){(const char *)f->threshold, tests}, h);
    return hash_xxh3_64_seed((struct span){(const char *)f->leaf, ((size_t)f->n_trees << f->depth) * sizeof *f->leaf}, h);
}

uint64_t content_model_hash(const struct content_model *m)
{
    const struct content_lexicon *l = &m->lexicon;
    uint64_t h = 0;

    for (uint32_t i = 0; i < CONTENT_LEXICON_SLOTS; i++) /* a sum: slots depend on the order of entry */
        h += l->hash[i] ? hash_mix64(l->hash[i] | (uint64_t)(uint8_t)l->score[i] << 32 | (uint64_t)l->token[i] << 40) : 0;
    for (int k = 0; k < CONTENT_KINDS; k++)
        h = forest_hash(&m->kind[k], h);
    return forest_hash(&m->second, forest_hash(&m->first, h));
}

/* The logistic function at eighths, in 65536ths. */
enum { STEPS = 64, STEP = CONTENT_ONE / 8 };
static const uint16_t logistic[STEPS + 1] = {
    32768, 34813, 36843, 38841, 40793, 42687, 44511, 46254, 47911, 49474, 50941, 52310,
    53581, 54754, 55834, 56822, 57724, 58544, 59287, 59959, 60565, 61109, 61598, 62036,
    62428, 62778, 63090, 63368, 63615, 63835, 64030, 64203, 64357, 64494, 64614, 64721,
    64816, 64900, 64974, 65039, 65097, 65149, 65194, 65234, 65269, 65300, 65328, 65352,
    65374, 65393, 65410, 65425, 65438, 65449, 65459, 65468, 65476, 65483, 65489, 65495,
    65500, 65504, 65508, 65511, 65514};

uint32_t content_probability(int32_t score)
{
    int32_t at = score < 0 ? -score : score;
    uint32_t p = at >= STEPS * STEP ? logistic[STEPS] : logistic[at / STEP];

    return score < 0 ? 65536 - p : p;
}

void content_forest_score(const struct content_forest *f, const uint8_t *feature, size_t stride, uint32_t n, int32_t *score)
{
    void (*run)(const struct content_forest *, const uint8_t *, size_t, int32_t *) = ISA_PICK(content_forest_run);

    for (uint32_t from = 0; from < n; from += CONTENT_AT_ONCE)
        run(f, feature + from, stride, score + from);
}

enum content_kind content_model_kind(const struct content_model *m, struct content_page *p, int *share)
{
    uint32_t best = 0, all = 0, odds[CONTENT_KINDS];

    for (unsigned k = 0; k < CONTENT_KINDS; k++) {
        const struct content_forest *f = &m->kind[k];
        int32_t s = f->bias;
        for (int i = 0; i < f->n_trees; i++) {
            unsigned at = 0;
            for (int d = 0; d < f->depth; d++)
                at |= (unsigned)(p->page[f->feature[i * f->depth + d]] > f->threshold[i * f->depth + d]) << d;
            s += f->leaf[((size_t)i << f->depth) + at];
        }
        int32_t level = s / (CONTENT_ONE / 4) + CONTENT_LEVELS / 2;
        level = level < 0 ? 0 : level >= CONTENT_LEVELS ? CONTENT_LEVELS - 1 : level;
        memset(p->feature + (CF_KIND + k) * p->stride, level, p->n_blocks);
        odds[k] = content_probability(s);
        all += odds[k];
        best = odds[k] > odds[best] ? k : best;
    }
    *share = (int)(odds[best] * 1000ull / all);
    return (enum content_kind)best;
}

static uint8_t mean_level(uint64_t sum, uint64_t text)
{
    return (uint8_t)content_share(sum >> 16, text);
}

static uint8_t first_level(int32_t score)
{
    score = score / (CONTENT_ONE / 4) + CONTENT_LEVELS / 2;
    return (uint8_t)(score < 0 ? 0 : score >= CONTENT_LEVELS ? CONTENT_LEVELS - 1 : score);
}

/* Means of the parts of the page that headings begin. */
static void part_means(const struct content_page *p, uint8_t *f)
{
    for (uint32_t from = 0, end; from < p->n_blocks; from = end) {
        uint64_t mass = 0, text = 0;
        end = content_part_end(p, from);
        for (uint32_t i = from; i < end; i++) {
            mass += (uint64_t)p->block[i].text * content_probability(p->score[i]);
            text += p->block[i].text;
        }
        memset(f + from, mean_level(mass, text), end - from);
    }
}

void content_first_features(struct content_page *p, const struct html_tree *t)
{
    enum { AROUND = 5 };
    size_t stride = p->stride;
    uint8_t *f = p->feature + (size_t)CF_FIRST * stride;
    uint64_t best = 0, mass = 0, text = 0; /* the likeliest; sums of the blocks around, which go along */

    for (uint32_t i = 0; i < t->n_nodes; i++)
        p->node[i].first = 0;
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        uint32_t likely = content_probability(p->score[i]);
        p->node[p->block[i].node].first += (uint64_t)p->block[i].text * likely;
        best = best > likely ? best : likely;
    }
    for (uint32_t i = t->n_nodes; i-- > 1;)
        if (t->node[i].tag != HTML_text)
            p->node[t->node[i].parent].first += p->node[i].first;
    content_like_means(p, f + 5 * stride, f + 6 * stride);
    part_means(p, f + 16 * stride);
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct content_block *b = &p->block[i];
        uint32_t at = p->node[b->node].blocks > 1 ? b->node : p->node[b->node].bigger;
        for (int d = -2; d <= 2; d++) {
            int64_t k = (int64_t)i + d;
            f[(size_t)(d + 2) * stride + i] = k >= 0 && k < p->n_blocks ? first_level(p->score[k]) : 0;
        }
        for (int k = 0; k < CONTENT_SCALES; k++, at = p->node[at].bigger)
            f[(size_t)(7 + k) * stride + i] = mean_level(p->node[at].first, p->node[at].text);
        for (uint32_t k = i ? i + AROUND : 0; k < p->n_blocks && k <= i + AROUND; k++) {
            mass += (uint64_t)p->block[k].text * content_probability(p->score[k]);
            text += p->block[k].text;
        }
        if (i > AROUND) {
            const struct content_block *out = b - AROUND - 1;
            mass -= (uint64_t)out->text * content_probability(p->score[i - AROUND - 1]);
            text -= out->text;
        }
        f[11 * stride + i] = mean_level(mass, text);
        f[14 * stride + i] = first_level(p->score[b->head]);
        f[15 * stride + i] = first_level(p->score[b->over]);
        f[12 * stride + i] = mean_level(p->node[0].first, p->node[0].text);
        f[13 * stride + i] = (uint8_t)content_share(best, 65536);
    }
}

void content_model_score(const struct content_model *m, struct content_page *p, const struct html_tree *t)
{
    content_forest_score(&m->first, p->feature, p->stride, p->n_blocks, p->score);
    if (!m->second.n_trees)
        return;
    content_first_features(p, t);
    content_forest_score(&m->second, p->feature, p->stride, p->n_blocks, p->score);
}

int32_t content_cut(const struct content_page *p)
{
    enum { LOWEST = -16 }; /* what is less likely is not content, however little else there is */
    uint64_t words[2 * STEPS + 1] = {0};
    uint64_t all = 0, mass = 0, n = 0;
    double best = -1;
    int32_t cut = 0;

    for (uint32_t i = 0; i < p->n_blocks; i++) {
        int32_t s = p->score[i] / STEP;
        s = s < -STEPS ? -STEPS : s > STEPS ? STEPS : s;
        words[s + STEPS] += p->block[i].words;
        all += (uint64_t)p->block[i].words * content_probability(s * STEP);
    }
    for (int s = STEPS; s >= LOWEST; s--) {
        mass += words[s + STEPS] * content_probability(s * STEP);
        n += words[s + STEPS];
        double f1 = n ? (double)mass / ((double)n * 65536 + (double)all) : 0;
        if (f1 > best) {
            best = f1;
            cut = s;
        }
    }
    return cut > 0 ? cut * STEP : cut * STEP - STEP + 1;
}

enum content_found content_keep_blocks(struct content_page *p, const struct html_tree *t, int32_t cut, uint8_t *skip)
{
    enum { KEPT = 1, DROPPED = 2 };
    enum { LIKELY = -415, COLUMNS_MIN = 100, PARA_MAX = 500 }; /* a chance of .4; of pages that say nothing, all and paragraphs */
    bool likely = false, any = false;

    for (uint32_t i = 0; i < p->n_blocks; i++) {
        likely = likely || p->score[i] >= LIKELY;
        any = any || p->score[i] >= cut;
    }
    bool none = !likely && p->text >= COLUMNS_MIN && p->node[0].para < PARA_MAX;
    for (uint32_t i = 0; i < t->n_nodes; i++)
        p->node[i].own = 0;
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct content_block *b = &p->block[i];
        bool keep = p->score[i] >= cut && !none;
        for (uint32_t k = b->first; k <= b->last; k++)
            if (t->node[k].tag == HTML_text && !(t->node[k].flags & HTML_SPACE)) {
                p->node[k].own = keep ? KEPT : DROPPED;
                skip[k] = skip[k] || !keep;
            }
    }
    for (uint32_t i = t->n_nodes; i-- > 1;) {
        p->node[t->node[i].parent].own |= p->node[i].own;
        if (p->node[i].own == DROPPED)
            skip[i] = 1;
    }
    return none ? CONTENT_NONE : any ? CONTENT_FOUND : CONTENT_UNKNOWN;
}
