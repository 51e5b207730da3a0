#include "curate/html/content_features_parts.h"

#include <stdlib.h>
#include <string.h>

/* ---- blocks alike ---- */

struct content_like *content_find_like(struct content_page *p, uint32_t hash, enum content_alike of)
{
    struct content_like *l;
    uint32_t h = content_mix(hash, of);

    for (uint32_t i = h & p->like_mask;; i = (i + 1) & p->like_mask) {
        l = &p->likes[i];
        if (!l->n || l->hash == h) {
            l->hash = h;
            return l;
        }
    }
}

static int count_likes(struct content_reader *r)
{
    struct content_page *p = r->p;
    uint32_t size = 16;

    while (size < p->n_blocks * (CONTENT_LIKES * 2))
        size *= 2;
    if (mem_room(&p->likes, &p->cap_like, size, sizeof *p->likes) < 0)
        return ERR_NOMEM;
    memset(p->likes, 0, size * sizeof *p->likes);
    p->like_mask = size - 1;
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct content_block *b = &p->block[i];
        const uint32_t of[CONTENT_LIKES] = {b->like, b->same, b->copy};
        for (uint32_t k = 0; k < CONTENT_LIKES; k++) {
            struct content_like *l = content_find_like(p, of[k], (enum content_alike)(k + 1));
            l->n++;
            l->text += b->text;
            l->link += b->link;
        }
    }
    return 0;
}

void content_like_means(struct content_page *p, uint8_t *like, uint8_t *same)
{
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct content_block *b = &p->block[i];
        uint64_t mass = (uint64_t)b->text * content_probability(p->score[i]);
        content_find_like(p, b->like, CONTENT_LIKE)->first += mass;
        content_find_like(p, b->same, CONTENT_SAME)->first += mass;
    }
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct content_block *b = &p->block[i];
        const struct content_like *l = content_find_like(p, b->like, CONTENT_LIKE);
        const struct content_like *s = content_find_like(p, b->same, CONTENT_SAME);
        like[i] = (uint8_t)content_share(l->first >> 16, l->text);
        same[i] = (uint8_t)content_share(s->first >> 16, s->text);
    }
}

/* ---- features of blocks ---- */

/* What a short block says: the title (2: all of it, 1: part), a phrase, a heading of what is elsewhere. */
struct said {
    uint8_t title, phrase, heads;
};

static struct said block_said(const struct content_reader *r, const struct content_block *b)
{
    enum { TITLE_COLUMNS = 200, KEY_MIN = 8 };
    char key[CONTENT_KEY_MAX];
    struct said said = {0};
    bool colon = false;
    size_t n = 0;

    if (b->text > TITLE_COLUMNS)
        return said;
    for (uint32_t i = b->first; i <= b->last && n < CONTENT_KEY_MAX; i++)
        if (r->t->node[i].tag == HTML_text && !r->skip[i]) {
            struct span s = html_text(r->t, i);
            colon |= n < 16 && memchr(s.p, ':', s.n < 24 ? s.n : 24);
            n = content_key(s, key, n);
        }
    if (n >= KEY_MIN && r->n_title >= KEY_MIN) {
        if (n == r->n_title && memcmp(key, r->title, n) == 0)
            said.title = 2;
        else if (n <= r->n_title ? n * 2 > r->n_title && memmem(r->title, r->n_title, key, n)
                                 : r->n_title * 2 > n && memmem(key, n, r->title, r->n_title))
            said.title = 1;
    }
    said.phrase = n && b->text <= LINE_SHORT && content_phrase(r->words, key, n, colon);
    said.heads = html_tag_flags[r->t->node[b->node].tag] & TAG_HEADING && n > 5 && b->text <= 60 &&
                 content_phrase_head(r->words, key, n);
    return said;
}

/* The block that holds the headline: a heading that says the title, or the first <h1>; n_blocks if there is none. */
static uint32_t find_headline(const struct content_reader *r)
{
    const struct content_page *p = r->p;
    uint32_t best = p->n_blocks, rank = 0;

    for (uint32_t i = 0; i < p->n_blocks; i++) {
        unsigned tag = r->t->node[p->block[i].node].tag;
        uint32_t title = p->block[i].shape[9] & 3, is = 0;
        if (html_tag_flags[tag] & TAG_HEADING)
            is = tag == HTML_h1 ? 2 + title * 2 : title ? 1 + title * 2 : 0;
        if (is > rank) {
            rank = is;
            best = i;
        }
    }
    return best;
}

#define SET(name, value) (f[(size_t)CF_##name * stride + i] = (uint8_t)(value))

static void set_scales(struct content_reader *r, uint32_t i)
{
    const struct content_page *p = r->p;
    const struct content_block *b = &p->block[i];
    const struct content_node *all = &p->node[0];
    uint8_t *f = p->feature + (size_t)CF_SCALE * p->stride + i;
    uint32_t at = p->node[b->node].blocks > 1 ? b->node : p->node[b->node].bigger;

    for (int k = 0; k < CONTENT_SCALES; k++, at = p->node[at].bigger) {
        const struct content_node *n = &p->node[at];
        const unsigned v[6] = {content_log(n->text), content_share(n->link, n->text), content_share(n->para, all->para),
                               content_log(n->blocks), content_share(b->text, n->text),
                               content_log(n->blocks ? n->text / n->blocks : 0)};
        for (int j = 0; j < 6; j++, f += p->stride)
            *f = (uint8_t)v[j];
    }
}

static void set_near(struct content_reader *r, uint32_t i)
{
    static const int step[CONTENT_NEAR] = {-2, -1, 1, 2};
    const struct content_page *p = r->p;
    uint8_t *f = p->feature + (size_t)CF_NEAR * p->stride + i;

    for (int k = 0; k < CONTENT_NEAR; k++) {
        int64_t at = (int64_t)i + step[k];
        unsigned v[5] = {63, 63, 63, 63, 63};
        if (at >= 0 && at < p->n_blocks) {
            const struct content_block *b = &p->block[at];
            v[0] = content_log(b->text);
            v[1] = content_share(b->link, b->text);
            v[2] = content_tag_order[r->t->node[b->node].tag];
            v[3] = content_score_level(b->text_sum);
            v[4] = content_score_level(p->node[b->node].sum / 2);
        }
        for (int j = 0; j < 5; j++, f += p->stride)
            *f = (uint8_t)v[j];
    }
}

/* Sums over the blocks from five before to five behind one, which go along with it. */
struct around {
    uint32_t text, link, para;
};

static void count_around(struct around *a, const struct content_block *b, bool in)
{
    uint32_t sign = in ? 1 : UINT32_MAX;

    a->text += sign * b->text;
    a->link += sign * b->link;
    a->para += sign * content_block_para(b);
}

static void set_around(struct content_reader *r, uint32_t i, struct around *a)
{
    enum { AROUND = 5 };
    const struct content_page *p = r->p;
    size_t stride = p->stride;
    uint8_t *f = p->feature;

    for (uint32_t k = 0; !i && k < AROUND && k < p->n_blocks; k++)
        count_around(a, &p->block[k], true);
    if (i + AROUND < p->n_blocks)
        count_around(a, &p->block[i + AROUND], true);
    if (i > AROUND)
        count_around(a, &p->block[i - AROUND - 1], false);
    SET(AROUND_TEXT, content_log(a->text));
    SET(AROUND_LINK, content_share(a->link, a->text));
    SET(AROUND_PARA, content_share(a->para, a->text));
}

static void set_likes(struct content_reader *r, uint32_t i)
{
    struct content_page *p = r->p;
    const struct content_block *b = &p->block[i];
    const struct content_like *like = content_find_like(p, b->like, CONTENT_LIKE);
    const struct content_like *same = content_find_like(p, b->same, CONTENT_SAME);
    size_t stride = p->stride;
    uint8_t *f = p->feature;

    SET(LIKE_N, content_log(like->n));
    SET(LIKE_LEN, content_log(like->text / like->n));
    SET(LIKE_LINK, content_share(like->link, like->text));
    SET(LIKE_SHARE, content_share(like->text, p->text));
    SET(SAME_N, content_log(same->n));
    SET(SAME_LEN, content_log(same->text / same->n));
    SET(SAME_LINK, content_share(same->link, same->text));
    SET(SAME_SHARE, content_share(same->text, p->text));
    struct content_like *copy = content_find_like(p, b->copy, CONTENT_COPY);
    SET(COPIES, content_log(copy->n));
    SET(COPY_BEFORE, content_log((uint32_t)copy->first++));
}

/* Finds the headings that each block stands below. */
static void find_heads(struct content_reader *r)
{
    struct content_page *p = r->p;
    uint32_t last[7] = {0}; /* 1 + the last heading of a level, 0 where a higher one came behind it */
    unsigned level = 0;

    for (uint32_t i = 0; i < p->n_blocks; i++) {
        struct content_block *b = &p->block[i];
        unsigned tag = r->t->node[b->node].tag, over;
        if (html_tag_flags[tag] & TAG_HEADING) {
            level = tag - HTML_h1 + 1u;
            last[level] = i + 1;
            memset(last + level + 1, 0, (6 - level) * sizeof *last);
        }
        for (over = level; over-- > 1 && !last[over];)
            ;
        b->head = level ? last[level] - 1 : i;
        b->over = level && over ? last[over] - 1 : i;
    }
}

uint32_t content_part_end(const struct content_page *p, uint32_t i)
{
    uint32_t end = i + 1;

    while (end < p->n_blocks && p->block[end].head < end && p->block[end].head == p->block[i].head)
        end++;
    return end;
}

static void set_parts(struct content_reader *r)
{
    const struct content_page *p = r->p;
    size_t stride = p->stride;
    uint8_t *f = p->feature;

    for (uint32_t from = 0, end; from < p->n_blocks; from = end) {
        uint32_t text = 0, link = 0, para = 0;
        end = content_part_end(p, from);
        for (uint32_t i = from; i < end; i++) {
            text += p->block[i].text;
            link += p->block[i].link;
            para += content_block_para(&p->block[i]);
        }
        for (uint32_t i = from; i < end; i++) {
            const struct content_block *b = &p->block[i], *head = &p->block[b->head], *over = &p->block[b->over];
            SET(HEAD_SUM, content_score_level(head->text_sum / 2));
            SET(HEAD_LINE, content_score_level(head->line));
            SET(HEAD_CLASS, content_score_level(p->node[head->node].sum / 4));
            SET(OVER_SUM, content_score_level(over->text_sum / 2));
            SET(OVER_LINE, content_score_level(over->line));
            SET(OVER_CLASS, content_score_level(p->node[over->node].sum / 4));
            SET(PART_TEXT, content_log(text));
            SET(PART_LINK, content_share(link, text));
            SET(PART_PARA, content_share(para, text));
            SET(PART_BLOCKS, content_log(end - from));
        }
    }
}

/* What goes along the blocks in order. */
struct along {
    uint32_t text, headline, heading, main80, main50;
    unsigned level; /* of the last heading */
    unsigned related; /* level of the heading of what is elsewhere that holds, 0 none */
};

static void set_place(struct content_reader *r, uint32_t i, struct along *a)
{
    const struct content_page *p = r->p;
    const struct html_tree *t = r->t;
    const struct content_block *b = &p->block[i];
    unsigned tag = t->node[b->node].tag, level = html_tag_flags[tag] & TAG_HEADING ? tag - HTML_h1 + 1u : 0;
    size_t stride = p->stride;
    uint8_t *f = p->feature;

    if (level) {
        if (a->related && level <= a->related)
            a->related = 0;
        if (b->shape[9] & 8)
            a->related = level;
        a->level = level;
        a->heading = i;
    }
    SET(TAG, content_tag_order[tag]);
    SET(HEADING, level);
    SET(DEPTH, p->node[b->node].depth < 63 ? p->node[b->node].depth : 63);
    SET(TEXT_BEFORE, content_share(a->text, p->text));
    SET(BLOCKS_BEFORE, content_log(i));
    SET(BLOCKS_BEHIND, content_log(p->n_blocks - 1 - i));
    SET(HEADLINE, a->headline == p->n_blocks ? 0 : i < a->headline ? 1 : i == a->headline ? 2 : 3);
    SET(FROM_HEADLINE, a->headline == p->n_blocks ? 0
                       : i < a->headline ? 31 - content_log(a->headline - i) / 2 : 32 + content_log(i - a->headline) / 2);
    SET(LAST_HEADING, a->level);
    SET(FROM_HEADING, content_log(i - a->heading));
    SET(RELATED, a->related > 0);
    SET(IN_MAIN, b->first >= a->main80 && b->first < t->node[a->main80].end);
    SET(IN_HALF, b->first >= a->main50 && b->first < t->node[a->main50].end);
    SET(ARTICLE, content_log(b->main));
    SET(LISTS, p->node[b->node].lists);
    SET(TABLES, p->node[b->node].tables);
    a->text += b->text;
}

static void set_own(struct content_reader *r, uint32_t i)
{
    const struct content_page *p = r->p;
    const struct content_block *b = &p->block[i];
    const struct content_node *n = &p->node[b->node], *in = &p->node[r->t->node[b->first].parent];
    size_t stride = p->stride;
    uint8_t *f = p->feature;

    SET(LEN, content_log(b->text));
    SET(WORDS, content_log(b->words));
    SET(LINK, content_share(b->link, b->text));
    SET(LINKS, content_log(b->links));
    for (unsigned k = 0; k < 9; k++)
        f[(CF_COMMAS + k) * stride + i] = b->shape[k];
    SET(TITLE, b->shape[9] & 3);
    SET(PHRASE, b->shape[9] >> 2 & 1);
    for (unsigned k = 0; CF_NAV + k <= CF_TIME; k++)
        f[(CF_NAV + k) * stride + i] = in->tags >> k & 1;
    SET(CLASS_OWN, content_score_level(in->own ? in->own : n->own));
    SET(CLASS_SUM, content_score_level(in->sum / 4));
    SET(CLASS_LOW, content_score_level(in->low));
    SET(CLASS_HIGH, content_score_level(in->high));
    SET(TEXT_SUM, content_score_level(b->text_sum / 2));
    SET(TEXT_LOW, content_score_level(b->text_low));
    SET(TEXT_HIGH, content_score_level(b->text_high));
    SET(LINE, content_score_level(b->line));
    for (unsigned k = 0; k < CONTENT_HINTS; k++)
        f[(CF_HINT + k) * stride + i] = (uint8_t)((in->under >> k & 1) + ((in->near | n->near) >> k & 1));
}

/* The element that has share/10 of the page's paragraphs and that no smaller one has. */
static uint32_t main_element(const struct content_reader *r, uint32_t share)
{
    const struct html_tree *t = r->t;
    const struct content_node *node = r->p->node;
    uint32_t at = 0;

    for (;;) {
        uint32_t best = 0;
        for (uint32_t c = at + 1; c < t->node[at].end; c = t->node[c].end)
            if (t->node[c].tag != HTML_text && (node[c].para > node[best].para || !best))
                best = c;
        if (!best || !node[best].para || node[best].para * 10ull < node[0].para * (uint64_t)share)
            return at;
        at = best;
    }
}

static void set_features(struct content_reader *r)
{
    struct content_page *p = r->p;
    const struct content_node *all = &p->node[0];
    size_t stride = p->stride;
    uint8_t *f = p->feature;
    struct around around = {0};
    struct along a = {.main80 = main_element(r, 8), .main50 = main_element(r, 5)};

    for (uint32_t i = 0; i < p->n_blocks; i++) {
        struct said said = block_said(r, &p->block[i]);
        p->block[i].shape[9] = (uint8_t)(said.title | said.phrase << 2 | said.heads << 3);
    }
    a.headline = find_headline(r);
    find_heads(r);
    set_parts(r);
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        set_own(r, i);
        set_place(r, i, &a);
        set_likes(r, i);
        set_around(r, i, &around);
        set_scales(r, i);
        set_near(r, i);
        SET(PAGE_TEXT, content_log(all->text));
        SET(PAGE_LINK, content_share(all->link, all->text));
        SET(PAGE_PARA, content_share(all->para, all->text));
        SET(PAGE_BLOCKS, content_log(all->blocks));
        SET(PAGE_ARTICLES, content_log(r->n_articles));
    }
}

int content_page_read(struct content_page *p, const struct html_tree *t, const struct content_words *words,
                      const struct content_lexicon *lexicon, const uint8_t *skip, struct span title, struct span url)
{
    struct content_reader r = {.p = p, .t = t, .words = words, .lexicon = lexicon, .skip = skip};

    if (!p->memo && !(p->memo = malloc(CONTENT_MEMO * sizeof *p->memo)))
        return ERR_NOMEM;
    memset(p->memo, 0, CONTENT_MEMO * sizeof *p->memo);
    memset(p->page, 0, sizeof p->page);
    if (mem_room(&p->node, &p->cap_nodes, t->n_nodes, sizeof *p->node) < 0)
        return ERR_NOMEM;
    r.n_title = content_key(title, r.title, 0);
    content_read_nodes(&r);
    TRY(content_read_blocks(&r));
    content_sum_nodes(&r);
    TRY(count_likes(&r));
    TRY(content_read_stated(&r));
    content_read_whole(&r, url);
    p->stride = ((p->n_blocks + 63u) / 64 | 1) * 64; /* odd in lines of a cache: rows do not share its sets */
    if (mem_room(&p->score, &p->cap_scores, p->stride, sizeof *p->score) < 0 ||
        mem_room(&p->feature, &p->cap_features, p->stride * CONTENT_FEATURES, 1) < 0)
        return ERR_NOMEM;
    memset(p->feature, 0, p->stride * CONTENT_FEATURES);
    set_features(&r);
    content_set_stated(&r);
    return 0;
}

void content_page_free(struct content_page *p)
{
    free(p->node);
    free(p->block);
    free(p->feature);
    free(p->likes);
    free(p->memo);
    free(p->score);
    free(p->grams.slot);
    free(p->repeats.gram);
    free(p->repeats.said);
    free(p->repeats.slot);
    html_ld_free(&p->ld);
    memset(p, 0, sizeof *p);
}
