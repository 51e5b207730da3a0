#include "curate/main_content.h"

#include <stdlib.h>
#include <string.h>

#include "curate/html_text.h"

/* What is known of a node.  Sums are over its subtree, without what is skipped.  Lengths
 * are in columns: bytes of ASCII, one for other letters, two for CJK. */
struct info {
    uint32_t hints;
    uint32_t text, link; /* all text; text in links */
    uint32_t para;       /* text of paragraphs */
    uint32_t own, own_para; /* of itself: a text's length; a block's paragraphs */
    uint32_t block;      /* the block that it stands in, or is */
};

struct marker {
    const struct html_tree *t;
    struct info *info;
    uint8_t *skip;
    char title[256]; /* its letters: see text_key */
    size_t n_title;
    uint32_t para_min; /* a shorter run of text is no paragraph */
};

static bool is_block(const struct html_tree *t, uint32_t i)
{
    return html_tag_flags[t->node[i].tag] & TAG_BLOCK;
}

/* ---- text that nobody reads ---- */

static bool style_hides(struct span v)
{
    static const struct { const char *property, *value; } hiding[] = {
        {"display", "none"}, {"visibility", "hidden"}};
    for (unsigned k = 0; k < sizeof hiding / sizeof *hiding; k++) {
        const char *p = memmem(v.p, v.n, hiding[k].property, strlen(hiding[k].property));
        const char *end = v.p + v.n;
        if (!p)
            continue;
        for (p += strlen(hiding[k].property); p < end && (*p == ' ' || *p == ':'); p++)
            ;
        if ((size_t)(end - p) >= strlen(hiding[k].value) &&
            memcmp(p, hiding[k].value, strlen(hiding[k].value)) == 0)
            return true;
    }
    return false;
}

/* Elements without text of their own for a reader. */
static bool never_text(const struct html_tree *t, uint32_t i)
{
    switch (t->node[i].tag) {
    case HTML_script: {
        struct span type = html_attr_raw(t, i, ATTR_type, NULL);
        return !(type.n >= 8 && memcmp(type.p, "math/tex", 8) == 0);
    }
    case HTML_head: case HTML_title: case HTML_style: case HTML_template: case HTML_noscript:
    case HTML_iframe: case HTML_noembed: case HTML_noframes: case HTML_svg: case HTML_canvas:
    case HTML_audio: case HTML_video: case HTML_datalist: case HTML_select: case HTML_rp:
        return true;
    default:
        return false;
    }
}

static bool is_hidden(const struct html_tree *t, uint32_t i)
{
    const struct html_node *n = &t->node[i];

    for (uint32_t k = 0; k < n->n_attrs; k++) {
        const struct html_attr *a = &t->attr[n->first + k];
        struct span v = {t->src.p + a->off, a->len};
        if (a->name == ATTR_hidden || (a->name == ATTR_aria_hidden && span_is(v, "true")) ||
            (a->name == ATTR_style && style_hides(v)))
            return true;
    }
    return false;
}

/* ---- lengths ---- */

static uint32_t columns(struct span s)
{
    uint32_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        n += (c > ' ' && c < 0x80) + (c >= 0xC0) + (c >= 0xE3 && c < 0xF0);
    }
    return n;
}

enum { PARA_MIN = 30, PARA_WORDS = 40, LEAD_MIN = 110, ENOUGH = 250, BETTER = 2 };

/* Lengths of all text nodes, then of paragraphs: runs of text without a block's border,
 * long enough and not mostly links. */
static void measure_text(struct marker *m)
{
    const struct html_tree *t = m->t;
    uint32_t run_block = 0, run_text = 0, run_link = 0;

    for (uint32_t i = 0; i < t->n_nodes; i++)
        m->info[i].own = m->info[i].own_para = 0;
    for (uint32_t i = 1; i <= t->n_nodes; i++) {
        bool end = i == t->n_nodes;
        bool text = !end && t->node[i].tag == HTML_text;
        uint32_t block = end ? 0 : m->info[i].block;
        if (end || block != run_block || (!text && is_block(t, i))) {
            if (run_text >= m->para_min && run_link * 2 < run_text)
                m->info[run_block].own_para += run_text - run_link;
            run_text = run_link = 0;
            run_block = block;
        }
        if (end)
            break;
        if (m->skip[i]) {
            i = t->node[i].end - 1;
            continue;
        }
        if (text) {
            m->info[i].own = columns(html_text(t, i));
            run_text += m->info[i].own;
            run_link += t->node[i].flags & HTML_IN_LINK ? m->info[i].own : 0;
        }
    }
}

/* Sums over subtrees. */
static void measure(struct marker *m)
{
    const struct html_tree *t = m->t;

    for (uint32_t i = 0; i < t->n_nodes; i++) {
        struct info *at = &m->info[i];
        at->text = at->own;
        at->link = t->node[i].flags & HTML_IN_LINK ? at->own : 0;
        at->para = at->own_para;
    }
    for (uint32_t i = t->n_nodes; i-- > 1;) {
        struct info *up = &m->info[t->node[i].parent], *at = &m->info[i];
        if (m->skip[i])
            continue;
        up->text += at->text;
        up->link += at->link;
        up->para += at->para;
    }
}

static void prepare(struct marker *m, const struct content_words *w)
{
    const struct html_tree *t = m->t;

    m->info[0] = (struct info){.hints = 0};
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const struct html_node *n = &t->node[i];
        struct info *at = &m->info[i];
        at->hints = n->tag != HTML_text && n->n_attrs ? content_hints(w, t, i) : 0;
        at->block = is_block(t, i) ? i : m->info[n->parent].block;
    }
}

static void skip_hidden(struct marker *m)
{
    const struct html_tree *t = m->t;

    for (uint32_t i = 1; i < t->n_nodes; i++)
        if (never_text(t, i))
            m->skip[i] = 1;
    measure_text(m);
    measure(m);
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        if (t->node[i].tag == HTML_text || m->skip[i] || !t->node[i].n_attrs || !is_hidden(t, i))
            continue;
        /* Formulas are often hidden behind their picture; and what is most of the page
         * is shown by a script. */
        bool math = false;
        if (t->node[i].end - i < 200)
            for (uint32_t k = i; k < t->node[i].end; k++)
                math |= t->node[k].tag == HTML_math;
        if (!math && m->info[i].para * 2 <= m->info[0].para)
            m->skip[i] = 1;
    }
}

/* ---- boilerplate ---- */

enum { ALWAYS = HINT_NAV | HINT_SIDE | HINT_FOOT | HINT_SHARE | HINT_RELATED | HINT_AD |
                HINT_FORM | HINT_META | HINT_COMMENT | HINT_HIDDEN | HINT_TEASER };

static void drop_boilerplate(struct marker *m, uint32_t by)
{
    const struct html_tree *t = m->t;
    uint32_t total = m->info[0].para;

    for (uint32_t i = 1; i < t->n_nodes; i++) {
        unsigned tag = t->node[i].tag;
        struct info *at = &m->info[i];
        bool drop = false;
        if (m->skip[i]) {
            i = t->node[i].end - 1;
            continue;
        }
        if (tag == HTML_text || tag == HTML_body || tag == HTML_main ||
            tag == HTML_blockquote)
            continue;
        switch (tag) {
        case HTML_nav: case HTML_footer: case HTML_aside: case HTML_button: case HTML_dialog:
        case HTML_textarea: case HTML_object: case HTML_label: case HTML_menu:
            drop = true;
            break;
        case HTML_form: case HTML_fieldset:
            drop = at->para * 4 < total;
            break;
        default:
            break;
        }
        uint32_t hints = at->hints & by;
        if (hints == HINT_TEASER && !at->link && at->para >= LEAD_MIN)
            hints = 0; /* it leads to no other page: a lead */
        if (hints && tag != HTML_article)
            drop = true;
        if (drop && (at->para * 2 <= total ||
                     (tag != HTML_form && at->hints & by & HINT_FOOT && total - at->para >= ENOUGH))) {
            m->skip[i] = 1;
            i = t->node[i].end - 1;
        }
    }
}

/* ---- the root ---- */

static uint32_t walk_down(const struct marker *m, uint32_t root)
{
    const struct html_tree *t = m->t;

    for (;;) {
        uint32_t best = 0;
        for (uint32_t c = root + 1; c < t->node[root].end; c = t->node[c].end)
            if (!m->skip[c] && (!best || m->info[c].para > m->info[best].para))
                best = c;
        if (!best || m->info[best].para * 100ull < m->info[root].para * 80ull)
            return root;
        if ((m->info[best].text - m->info[best].link) * 100ull <
            (m->info[root].text - m->info[root].link) * 70ull)
            return root;
        switch (t->node[best].tag) {
        case HTML_p: case HTML_li: case HTML_blockquote: case HTML_pre: case HTML_tr:
        case HTML_td: case HTML_ul: case HTML_ol:
        case HTML_text:
            return root;
        default:
            root = best;
        }
    }
}

static uint32_t choose_root(const struct marker *m)
{
    const struct html_tree *t = m->t;
    uint32_t best = 0;
    double best_score = 0;

    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const struct info *at = &m->info[i];
        if (m->skip[i]) {
            i = t->node[i].end - 1;
            continue;
        }
        double weight = 0;
        if (at->hints & HINT_ROOT || (at->hints & (HINT_ARTICLE | HINT_BODY)) == (HINT_ARTICLE | HINT_BODY))
            weight = 1.3;
        else if (t->node[i].tag == HTML_article)
            weight = 1.1;
        else if (t->node[i].tag == HTML_main)
            weight = 1.0;
        if (at->para * weight > best_score) {
            best = i;
            best_score = at->para * weight;
        }
    }
    if (m->info[best].para * 3 < m->info[0].para)
        best = 0;
    return walk_down(m, best);
}

/* ---- the headline ---- */

enum { KEY_MAX = 256, KEY_NODES = 1000 }; /* a longer heading is no headline */

/* The letters and digits of s, in lower case as far as ASCII goes, without references:
 * what two ways to write a title have in common. */
static size_t text_key(struct span s, char key[KEY_MAX], size_t n)
{
    for (size_t i = 0; i < s.n && n < KEY_MAX; i++) {
        char c = s.p[i];
        if (c == '&')
            while (i + 1 < s.n && s.p[i] != ';' && s.p[i] != ' ')
                i++;
        else if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c < 0)
            key[n++] = c;
        else if (c >= 'A' && c <= 'Z')
            key[n++] = (char)(c | 0x20);
    }
    return n;
}

static size_t node_key(const struct marker *m, uint32_t i, char key[KEY_MAX])
{
    size_t n = 0;

    uint32_t end = m->t->node[i].end;

    if (end - i > KEY_NODES)
        end = i + KEY_NODES;
    for (uint32_t k = i + 1; k < end && n < KEY_MAX; k++)
        if (m->t->node[k].tag == HTML_text)
            n = text_key(html_text(m->t, k), key, n);
    return n;
}

/* True if element i says what the title says, or most of it. */
static bool is_headline(const struct marker *m, uint32_t i)
{
    char key[KEY_MAX];
    size_t n = node_key(m, i, key);

    if (n < 8 || m->n_title < 8)
        return false;
    return n <= m->n_title ? n * 2 > m->n_title && memmem(m->title, m->n_title, key, n)
                           : m->n_title * 2 > n && memmem(key, n, m->title, m->n_title);
}

/* The page's only <h1>, or the heading that repeats the title, in front of root or of most of its text; 0 if there
 * is none. */
static uint32_t find_headline(const struct marker *m, uint32_t root)
{
    const struct html_tree *t = m->t;
    uint32_t found = 0, seen = 0, n_h1 = 0;

    for (uint32_t i = 1; i < t->n_nodes; i++)
        n_h1 += t->node[i].tag == HTML_h1;
    for (uint32_t i = 1; i < t->node[root].end; i++) {
        if (m->skip[i] && i > root) {
            i = t->node[i].end - 1;
            continue;
        }
        if ((t->node[i].tag == HTML_h1 && n_h1 == 1) ||
            (html_tag_flags[t->node[i].tag] & TAG_HEADING && is_headline(m, i)))
            found = i;
        if (i > root && (seen += m->info[i].own_para) * 5 > m->info[root].para)
            break;
    }
    return found;
}

/* Skips what stands between the headline and root but for paragraphs: the lead. */
static void keep_lead(struct marker *m, uint32_t from, uint32_t root)
{
    const struct html_tree *t = m->t;

    for (uint32_t i = from; i < root; i++) {
        const struct html_node *n = &t->node[i];
        if (n->tag != HTML_text && n->end > root)
            continue; /* an ancestor of root */
        if (m->skip[i] || n->tag == HTML_figcaption || n->tag == HTML_li || n->tag == HTML_figure ||
            m->info[i].hints & HINT_CAPTION) {
            m->skip[i] = 1;
            i = n->end - 1;
            continue;
        }
        if (n->tag == HTML_text && m->info[m->info[i].block].own_para < LEAD_MIN)
            m->skip[i] = 1;
    }
}

/* Skips all but root and its lead, and the headline with what stands above it. */
static void keep_only(struct marker *m, uint32_t root)
{
    const struct html_tree *t = m->t;
    uint32_t headline = find_headline(m, root);
    uint32_t lead = !headline ? root : t->node[headline].end;

    for (uint32_t i = 1; headline && i < lead; i++)
        if (t->node[i].end <= lead)
            m->skip[i] = 1;
    if (lead > root)
        lead = root;
    for (uint32_t at = root; at; at = t->node[at].parent) {
        uint32_t up = t->node[at].parent;
        for (uint32_t c = up + 1; c < t->node[up].end; c = t->node[c].end)
            if (c != at && (t->node[c].end <= lead || c > at))
                m->skip[c] = 1;
    }
    if (lead < root)
        keep_lead(m, lead, root);
}

/* ---- inside ---- */

static void clean_inside(struct marker *m, uint32_t root)
{
    const struct html_tree *t = m->t;

    for (uint32_t i = root + 1; i < t->node[root].end; i++) {
        struct info *at = &m->info[i];
        if (m->skip[i]) {
            i = t->node[i].end - 1;
            continue;
        }
        if (at->hints & HINT_CAPTION && at->para * 4 < m->info[root].para) {
            m->skip[i] = 1;
            continue;
        }
        switch (t->node[i].tag) {
        case HTML_ul: case HTML_ol: case HTML_dl: case HTML_div: case HTML_section:
        case HTML_table: case HTML_h1: case HTML_h2: case HTML_h3: case HTML_h4: case HTML_h5:
        case HTML_article: case HTML_header:
            if (at->link * 2 > at->text && at->para * 10 < m->info[root].para)
                m->skip[i] = 1;
            break;
        case HTML_p:
            /* Prose may have many links, but words of its own. */
            if (at->link * 2 > at->text && at->text - at->link < PARA_WORDS)
                m->skip[i] = 1;
            break;
        case HTML_figcaption: case HTML_rt:
            m->skip[i] = 1;
            break;
        default:
            break;
        }
    }
}

/* ---- lines ---- */

/* A run of text without a block's border: what a reader sees as a line or paragraph. */
struct line {
    uint32_t first, last; /* text nodes */
    uint32_t block;
    uint32_t text, link;  /* columns */
    uint32_t dated;       /* of it, columns in <time> */
};

enum { LINE_SHORT = 150, DATE_SLACK = 30 };

static void skip_line(struct marker *m, const struct line *l)
{
    for (uint32_t i = l->first; i <= l->last; i++)
        if (m->t->node[i].tag == HTML_text)
            m->skip[i] = 1;
}

/* True if a short line is a label, a credit, a date: no content. */
static bool is_furniture(const struct marker *m, const struct line *l)
{
    char key[KEY_MAX];
    size_t n = 0;
    bool colon = false;

    if (l->text > LINE_SHORT)
        return false;
    if (l->dated && l->text <= l->dated + DATE_SLACK)
        return true;
    for (uint32_t i = l->first; i <= l->last && n < KEY_MAX; i++)
        if (m->t->node[i].tag == HTML_text && !m->skip[i]) {
            struct span s = html_text(m->t, i);
            colon |= n < 16 && memchr(s.p, ':', s.n < 24 ? s.n : 24);
            n = text_key(s, key, n);
        }
    /* The title again: under a picture, say. */
    if (n >= 16 && n == m->n_title && memcmp(key, m->title, n) == 0)
        return true;
    return n && content_phrase(key, n, colon);
}

/* The next line of the root from *i on; false at its end.  *gap: text was skipped on the
 * way. */
static bool next_line(const struct marker *m, uint32_t end, uint32_t *i, struct line *l, bool *gap)
{
    const struct html_tree *t = m->t;
    uint32_t time_end = 0;

    *l = (struct line){0};
    for (; *i < end; (*i)++) {
        const struct html_node *n = &t->node[*i];
        const struct info *at = &m->info[*i];
        if (m->skip[*i]) {
            *gap |= at->text > 0;
            *i = n->end - 1;
            continue;
        }
        if (l->text && (at->block != l->block || n->tag == HTML_br))
            return true;
        if (n->tag == HTML_time)
            time_end = n->end;
        if (n->tag != HTML_text || n->flags & HTML_SPACE)
            continue;
        if (!l->text) {
            l->first = *i;
            l->block = at->block;
        }
        l->last = *i;
        l->text += at->own;
        l->link += n->flags & HTML_IN_LINK ? at->own : 0;
        l->dated += *i < time_end ? at->own : 0;
    }
    return l->text > 0;
}

/* Drops furniture, and headings that nothing follows: the next line is a heading as high
 * or the end, or what followed was dropped. */
static void drop_lines(struct marker *m, uint32_t root)
{
    const struct html_tree *t = m->t;
    struct line l, heading = {0};
    uint32_t i = root, end = t->node[root].end;
    bool gap = false;

    while (next_line(m, end, &i, &l, &gap)) {
        unsigned tag = t->node[l.block].tag;
        if (is_furniture(m, &l)) {
            skip_line(m, &l);
            gap = true;
            continue;
        }
        bool is_heading = html_tag_flags[tag] & TAG_HEADING;
        if (heading.text && is_heading && gap && t->node[heading.block].tag >= tag)
            skip_line(m, &heading);
        heading = is_heading ? l : (struct line){0};
        gap = false;
    }
    if (heading.text)
        skip_line(m, &heading);
}

/* Marks what is not content, by the hints in by alone; returns the root. */
static uint32_t mark_main(struct marker *m, uint32_t by)
{
    measure(m);
    drop_boilerplate(m, by);
    measure(m);
    uint32_t root = choose_root(m);
    clean_inside(m, root);
    measure(m);
    keep_only(m, root);
    drop_lines(m, root);
    return root;
}

int content_mark(const struct content_words *w, const struct html_tree *t, bool main_only,
                 struct span title, struct content_scratch *scratch, uint8_t *skip)
{
    enum { FEW = HINT_NAV | HINT_SIDE | HINT_FOOT | HINT_COMMENT };
    static const struct { uint32_t hints, para_min; } levels[] = {
        {ALWAYS, PARA_MIN}, {FEW, PARA_MIN}, {0, PARA_MIN}, {FEW, 1}};
    size_t need = t->n_nodes * (sizeof(struct info) + 2);
    struct marker m = {.t = t, .skip = skip, .para_min = levels[0].para_min};

    if (scratch->size < need) {
        free(scratch->p);
        scratch->p = malloc(need);
        scratch->size = scratch->p ? need : 0;
        if (!scratch->p)
            return ERR_NOMEM;
    }
    m.n_title = text_key(title, m.title, 0);
    m.info = scratch->p;
    memset(skip, 0, t->n_nodes);
    prepare(&m, w);
    skip_hidden(&m);
    if (!main_only)
        return 0;
    uint8_t *hidden = (uint8_t *)(m.info + t->n_nodes), *best = hidden + t->n_nodes;
    uint32_t most = 0;
    memcpy(hidden, skip, t->n_nodes);
    /* A page whose hints leave next to nothing has used the words otherwise; one without
     * paragraphs has its content in short lines. */
    for (unsigned k = 0; k < sizeof levels / sizeof *levels; k++) {
        if (k) {
            memcpy(skip, hidden, t->n_nodes);
            m.para_min = levels[k].para_min;
            measure_text(&m);
        }
        uint32_t root = mark_main(&m, levels[k].hints);
        uint32_t found = m.info[root].text - m.info[root].link;
        if (k == 0 || found > most * BETTER) {
            most = found;
            memcpy(best, skip, t->n_nodes);
        }
        if (most >= ENOUGH)
            break;
    }
    memcpy(skip, best, t->n_nodes);
    return 0;
}

void content_scratch_free(struct content_scratch *s)
{
    free(s->p);
    s->p = NULL;
    s->size = 0;
}
