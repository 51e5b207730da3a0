#include <stdlib.h>
#include <string.h>

#include "curate/html/main_content_parts.h"

/* What the name of an element alone says of it. */
enum {
    NO_TEXT = 1,      /* nothing in it is there to be read */
    BOILERPLATE = 2,  /* never content, unless most of the page is in it */
    CONTROLS = 4,     /* the same, if it holds little */
    TRUSTED = 8,      /* whatever its class says */
    LINKS = 16,       /* not content when it is mostly links */
    LEAF = 32,        /* too small to be the root */
    ANNOTATION = 64   /* beside the content */
};
static const uint8_t roles[HTML_N_TAGS] = {
    [HTML_head] = NO_TEXT, [HTML_title] = NO_TEXT, [HTML_style] = NO_TEXT, [HTML_template] = NO_TEXT,
    [HTML_iframe] = NO_TEXT, [HTML_noembed] = NO_TEXT,
    [HTML_noframes] = NO_TEXT, [HTML_svg] = NO_TEXT, [HTML_canvas] = NO_TEXT, [HTML_audio] = NO_TEXT,
    [HTML_video] = NO_TEXT, [HTML_datalist] = NO_TEXT, [HTML_select] = NO_TEXT, [HTML_rp] = NO_TEXT,
    [HTML_nav] = BOILERPLATE, [HTML_footer] = BOILERPLATE, [HTML_aside] = BOILERPLATE,
    [HTML_button] = BOILERPLATE, [HTML_dialog] = BOILERPLATE, [HTML_textarea] = BOILERPLATE,
    [HTML_object] = BOILERPLATE, [HTML_label] = BOILERPLATE, [HTML_menu] = BOILERPLATE,
    [HTML_form] = CONTROLS, [HTML_fieldset] = CONTROLS,
    [HTML_text] = TRUSTED | LEAF, [HTML_body] = TRUSTED, [HTML_main] = TRUSTED,
    [HTML_article] = TRUSTED | LINKS, [HTML_blockquote] = TRUSTED | LEAF,
    [HTML_ul] = LINKS | LEAF, [HTML_ol] = LINKS | LEAF, [HTML_dl] = LINKS, [HTML_div] = LINKS,
    [HTML_section] = LINKS, [HTML_table] = LINKS, [HTML_header] = LINKS, [HTML_h1] = LINKS,
    [HTML_h2] = LINKS, [HTML_h3] = LINKS, [HTML_h4] = LINKS, [HTML_h5] = LINKS,
    [HTML_p] = LEAF, [HTML_li] = LEAF, [HTML_pre] = LEAF, [HTML_tr] = LEAF, [HTML_td] = LEAF,
    [HTML_figcaption] = ANNOTATION, [HTML_rt] = ANNOTATION,
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

static bool is_formula(const struct html_tree *t, uint32_t script)
{
    struct span type = html_attr_raw(t, script, ATTR_type, NULL);

    return type.n >= 8 && memcmp(type.p, "math/tex", 8) == 0;
}

static bool is_blank(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] > ' ')
            return false;
    return true;
}

/* What MathJax writes: a formula as it is shown. */
static bool is_mathjax(const struct html_tree *t, uint32_t i)
{
    struct span v = html_attr_raw(t, i, ATTR_class, NULL);

    return (v.n >= 7 && memcmp(v.p, "MathJax", 7) == 0) || (v.n >= 4 && memcmp(v.p, "mjx-", 4) == 0);
}

/* MathJax 2 leaves the TeX of a formula in a script, behind the preview and the shown formula. */
static bool is_shown_tex(const struct html_tree *t, uint32_t i)
{
    uint32_t next = i;

    if (!is_mathjax(t, i))
        return false;
    for (int k = 0; k < 4; k++) {
        next = t->node[next].end;
        if (next >= t->n_nodes || t->node[next].parent != t->node[i].parent)
            return false;
        if (t->node[next].tag == HTML_script)
            return is_formula(t, next);
        if (t->node[next].tag == HTML_text ? !is_blank(html_text(t, next)) : !is_mathjax(t, next))
            return false;
    }
    return false;
}

bool content_is_hidden(const struct html_tree *t, uint32_t i)
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

/* Lengths of all text nodes, then of paragraphs: runs of text without a block's border,
 * long enough and not mostly links. */
static void measure_text(struct content_marker *m)
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
static void measure(struct content_marker *m)
{
    const struct html_tree *t = m->t;

    for (uint32_t i = 0; i < t->n_nodes; i++) {
        struct content_info *at = &m->info[i];
        at->text = at->own;
        at->link = t->node[i].flags & HTML_IN_LINK ? at->own : 0;
        at->para = at->own_para;
    }
    for (uint32_t i = t->n_nodes; i-- > 1;) {
        struct content_info *up = &m->info[t->node[i].parent], *at = &m->info[i];
        if (m->skip[i] || !at->text)
            continue;
        up->text += at->text;
        up->link += at->link;
        up->para += at->para;
    }
}

static void prepare(struct content_marker *m, const struct content_words *w)
{
    const struct html_tree *t = m->t;

    m->info[0] = (struct content_info){.hints = 0};
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const struct html_node *n = &t->node[i];
        struct content_info *at = &m->info[i];
        at->hints = n->tag != HTML_text && n->n_attrs && !is_mathjax(t, i) ? content_hints(w, t, i) : 0;
        at->block = is_block(t, i) ? i : m->info[n->parent].block;
    }
}

void content_skip_silent(const struct html_tree *t, uint8_t *skip)
{
    for (uint32_t i = 1; i < t->n_nodes; i++)
        if (roles[t->node[i].tag] & NO_TEXT || (t->node[i].tag == HTML_script && !is_formula(t, i)) ||
            (t->node[i].n_attrs && is_shown_tex(t, i)))
            skip[i] = 1;
}

static void skip_hidden(struct content_marker *m)
{
    const struct html_tree *t = m->t;

    content_skip_silent(t, m->skip);
    measure_text(m);
    measure(m);
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        if (t->node[i].tag == HTML_text || m->skip[i] ||
            (t->node[i].tag != HTML_noscript && (!t->node[i].n_attrs || !content_is_hidden(t, i))))
            continue;
        if (m->info[i].hints & HINT_FOLD && m->info[i].para >= FOLD_MIN)
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

/* ---- sections by their headings ---- */

enum { BEFORE_MAX = 100, HEAD_MAX = 40 }; /* nodes; columns */

/* The element that heading i begins: the first around it with more text than its own, if
 * nothing stands before the heading there; else 0. */
static uint32_t headed(const struct content_marker *m, uint32_t i)
{
    const struct html_tree *t = m->t;
    uint32_t up = t->node[i].parent;

    while (up && m->info[up].text == m->info[i].text)
        up = t->node[up].parent;
    if (i - up > BEFORE_MAX)
        return 0;
    for (uint32_t k = up + 1; k < i; k++)
        if (t->node[k].tag == HTML_text && m->info[k].own && !m->skip[k])
            return 0;
    return up;
}

/* "Related articles" above something says what it is, whatever its class: if that is a
 * third links, or next to nothing comes behind it.  A manual has a chapter "Comments". */
static void mark_sections(struct content_marker *m)
{
    const struct html_tree *t = m->t;
    uint32_t total = m->info[0].para, behind = 0; /* paragraphs from i on, but for such sections */

    for (uint32_t i = t->n_nodes; i-- > 1;) {
        behind += m->info[i].own_para;
        if (!(html_tag_flags[t->node[i].tag] & TAG_HEADING) || t->node[i].tag == HTML_h1 || !m->info[i].text ||
            m->info[i].text > HEAD_MAX || !content_heads_related(m, i))
            continue;
        uint32_t section = headed(m, i), para = m->info[section].para;
        uint32_t rest = behind > para ? behind - para : 0;
        if (!section || (m->info[section].link * 3 < m->info[section].text && rest * 4 > total))
            continue;
        m->info[section].hints |= HINT_RELATED;
        behind = rest;
    }
}

/* ---- boilerplate ---- */

enum {
    FEW_HINTS = HINT_NAV | HINT_SIDE | HINT_FOOT | HINT_COMMENT | HINT_CONSENT,
    ALL_HINTS = FEW_HINTS | HINT_SHARE | HINT_RELATED | HINT_AD | HINT_FORM | HINT_META | HINT_HIDDEN | HINT_TEASER |
                HINT_CONSENT | HINT_NOTICE,
    MAY_BE_MORE = HINT_FOOT | HINT_COMMENT | HINT_CONSENT | HINT_RELATED /* than the content */
};

static bool is_heading(const struct content_marker *m, uint32_t i)
{
    return html_tag_flags[m->t->node[i].tag] & TAG_HEADING;
}

static bool is_boilerplate(const struct content_marker *m, uint32_t i, uint32_t by)
{
    const struct content_info *at = &m->info[i];
    uint32_t total = m->info[0].para, hints = at->hints & by;
    uint8_t role = roles[m->t->node[i].tag];

    if (is_heading(m, i))
        hints &= ~(uint32_t)HINT_NAV; /* a bar follows it */
    else if (m->t->node[i].tag == HTML_button && is_heading(m, m->t->node[i].parent))
        return false; /* it opens what stands below */
    if (hints == HINT_TEASER && !at->link && at->para >= LEAD_MIN)
        hints = 0; /* it leads to no other page: a lead */
    if (!(role & BOILERPLATE) && !(role & CONTROLS && at->para * 4 < total) && (!hints || role & TRUSTED))
        return false;
    if (at->para * 2 <= total)
        return true;
    return hints & MAY_BE_MORE && !(role & CONTROLS) && total - at->para >= ENOUGH;
}

/* True if an element's name or hints say that it is the content. */
static bool is_candidate(const struct content_marker *m, uint32_t i)
{
    uint32_t hints = m->info[i].hints;

    return hints & HINT_ROOT || (hints & HINT_ARTICLE && hints & HINT_BODY) ||
           m->t->node[i].tag == HTML_article || m->t->node[i].tag == HTML_main;
}

/* Skips boilerplate, by the hints in by and by the names of elements. */
static void drop_boilerplate(struct content_marker *m, uint32_t by)
{
    const struct html_tree *t = m->t;
    uint32_t code_end = 0; /* classes in code are the highlighter's: "comment" */
    uint32_t article_end = 0; /* a notice in an article is its own */

    for (uint32_t i = 1; i < t->n_nodes; i++) {
        unsigned tag = t->node[i].tag;
        if (tag == HTML_pre || tag == HTML_code)
            code_end = t->node[i].end > code_end ? t->node[i].end : code_end;
        if (is_candidate(m, i) && t->node[i].end > article_end)
            article_end = t->node[i].end;
        uint32_t hints = i < article_end ? by & ~(uint32_t)HINT_NOTICE : by;
        if (!m->skip[i] && is_boilerplate(m, i, i < code_end ? by & HINT_HIDDEN : hints))
            m->skip[i] = 1;
        if (m->skip[i])
            i = t->node[i].end - 1;
    }
}

/* ---- the root ---- */

/* True of a row or cell of a table without <th>: it may only arrange the page. */
static bool is_layout(const struct html_tree *t, uint32_t i)
{
    uint32_t table = i;

    if (t->node[i].tag != HTML_tr && t->node[i].tag != HTML_td)
        return false;
    while (table && t->node[table].tag != HTML_table)
        table = t->node[table].parent;
    for (uint32_t k = table + 1; k < t->node[table].end; k++) {
        if (t->node[k].tag == HTML_th)
            return false;
        if (t->node[k].tag == HTML_td)
            k = t->node[k].end - 1;
    }
    return true;
}

static uint32_t walk_down(const struct content_marker *m, uint32_t root)
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
        if (roles[t->node[best].tag] & LEAF && !is_layout(t, best))
            return root;
        root = best;
    }
}

static uint32_t choose_root(const struct content_marker *m)
{
    const struct html_tree *t = m->t;
    uint32_t best = 0;

    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const struct content_info *at = &m->info[i];
        if (m->skip[i]) {
            i = t->node[i].end - 1;
            continue;
        }
        if (is_candidate(m, i) && at->para > (best ? m->info[best].para : 0))
            best = i;
    }
    if (m->info[best].para * 3 < m->info[0].para)
        best = 0;
    return walk_down(m, best);
}

/* ---- inside ---- */

static bool is_beside(const struct content_marker *m, uint32_t i, uint32_t root)
{
    const struct content_info *at = &m->info[i];
    uint8_t role = roles[m->t->node[i].tag];

    if (m->t->node[i].tag == HTML_figcaption && at->para >= CAPTION_MIN)
        return false;
    if (role & ANNOTATION || (at->hints & HINT_CAPTION && at->para * 4 < m->info[root].para))
        return true;
    if (at->link * 2 <= at->text)
        return false;
    /* Prose may have many links, but words of its own. */
    return m->t->node[i].tag == HTML_p ? at->text - at->link < PARA_WORDS
                                       : role & LINKS && at->para * 10 < m->info[root].para;
}

/* Skips what stands in the root but is not of it: captions, lists of links. */
static void clean_inside(struct content_marker *m, uint32_t root)
{
    const struct html_tree *t = m->t;

    for (uint32_t i = root + 1; i < t->node[root].end; i++) {
        if (!m->skip[i] && is_beside(m, i, root))
            m->skip[i] = 1;
        if (m->skip[i])
            i = t->node[i].end - 1;
    }
}

/* Marks what is not content, by the hints in by alone; returns the root. */
static uint32_t mark_main(struct content_marker *m, uint32_t by)
{
    measure(m);
    drop_boilerplate(m, by);
    measure(m);
    uint32_t root = choose_root(m);
    clean_inside(m, root);
    measure(m);
    content_keep_root(m, root);
    content_drop_lines(m, root);
    return root;
}

int content_mark(const struct content_words *w, const struct html_tree *t, bool main_only,
                 struct span title, struct content_scratch *scratch, uint8_t *skip)
{
    enum { BETTER = 2 }; /* times as much */
    static const struct { uint32_t hints, para_min; } levels[] = {
        {ALL_HINTS, PARA_MIN}, {FEW_HINTS, PARA_MIN}, {0, PARA_MIN}, {FEW_HINTS, 1}};
    size_t need = t->n_nodes * (sizeof(struct content_info) + 2);
    struct content_marker m = {.t = t, .words = w, .skip = skip, .para_min = levels[0].para_min};
    uint32_t most = 0, all;

    if (scratch->size < need) {
        free(scratch->p);
        scratch->p = malloc(need);
        scratch->size = scratch->p ? need : 0;
        if (!scratch->p)
            return ERR_NOMEM;
    }
    m.n_title = content_key(title, m.title, 0);
    m.info = scratch->p;
    memset(skip, 0, t->n_nodes);
    prepare(&m, w);
    skip_hidden(&m);
    if (!main_only)
        return 0;
    measure(&m);
    all = m.info[0].text;
    mark_sections(&m);
    uint8_t *hidden = (uint8_t *)(m.info + t->n_nodes), *best = hidden + t->n_nodes;
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
        if (most >= ENOUGH || most * BETTER >= all)
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
