#include <string.h>

#include "curate/html/main_content_parts.h"

/* ---- the headline ---- */

enum { KEY_NODES = 1000, KEY_MIN = 8 }; /* a longer or shorter heading is no headline */

/* A letter of two bytes in lower case, Latin-1 and Russian; what is punctuation becomes
 * nothing.  Returns the bytes taken of s, 0 for all other letters. */
static size_t odd_letter(struct span s, char *key, size_t *n)
{
    unsigned char a = (unsigned char)s.p[0], b = s.n > 1 ? (unsigned char)s.p[1] : 0;
    unsigned char low = a;

    if (a == 0xE2 && b == 0x80 && s.n > 2)
        return 3;
    if (a == 0xC2 && b >= 0xA0 && b != 0xA9)
        return 2;
    if (a == 0xC3 && b >= 0x80 && b < 0x9F && b != 0x97)
        b = (unsigned char)(b + 0x20);
    else if (a == 0xD0 && b >= 0x90 && b < 0xB0) {
        low = b < 0xA0 ? a : 0xD1;
        b = (unsigned char)(b < 0xA0 ? b + 0x20 : b - 0x20);
    } else
        return 0;
    if (*n + 2 <= CONTENT_KEY_MAX) {
        key[(*n)++] = (char)low;
        key[(*n)++] = (char)b;
    }
    return 2;
}

size_t content_key(struct span s, char key[CONTENT_KEY_MAX], size_t n)
{
    for (size_t i = 0; i < s.n && n < CONTENT_KEY_MAX; i++) {
        char c = s.p[i];
        size_t odd = c < 0 ? odd_letter((struct span){s.p + i, s.n - i}, key, &n) : 0;
        if (odd)
            i += odd - 1;
        else if (c == '&')
            while (i + 1 < s.n && s.p[i] != ';' && s.p[i] != ' ')
                i++;
        else if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c < 0)
            key[n++] = c;
        else if (c >= 'A' && c <= 'Z')
            key[n++] = (char)(c | 0x20);
    }
    return n;
}

static size_t node_key(const struct content_marker *m, uint32_t i, char key[CONTENT_KEY_MAX])
{
    size_t n = 0;
    uint32_t end = m->t->node[i].end;

    if (end - i > KEY_NODES)
        end = i + KEY_NODES;
    for (uint32_t k = i + 1; k < end && n < CONTENT_KEY_MAX; k++)
        if (m->t->node[k].tag == HTML_text)
            n = content_key(html_text(m->t, k), key, n);
    return n;
}

/* True if element i says what the title says, or most of it. */
static bool is_headline(const struct content_marker *m, uint32_t i)
{
    char key[CONTENT_KEY_MAX];
    size_t n = node_key(m, i, key);

    if (n < KEY_MIN || m->n_title < KEY_MIN)
        return false;
    return n <= m->n_title ? n * 2 > m->n_title && memmem(m->title, m->n_title, key, n)
                           : m->n_title * 2 > n && memmem(key, n, m->title, m->n_title);
}

bool content_heads_related(const struct content_marker *m, uint32_t i)
{
    enum { LETTERS_MIN = 6 }; /* "more", "next" may be more than labels */
    char key[CONTENT_KEY_MAX];
    size_t n = node_key(m, i, key);

    return n >= LETTERS_MIN && !is_headline(m, i) && content_phrase_head(m->words, key, n);
}

/* The page's only <h1>, or the heading that repeats the title, in front of root or of
 * most of its text; 0 if there is none. */
static uint32_t find_headline(const struct content_marker *m, uint32_t root)
{
    const struct html_tree *t = m->t;
    uint32_t found = 0, seen = 0, n_h1 = 0;
    bool said = false; /* found says what the title says */

    for (uint32_t i = 1; i < t->n_nodes; i++)
        n_h1 += t->node[i].tag == HTML_h1;
    for (uint32_t i = 1; i < t->node[root].end; i++) {
        if (m->skip[i] && i > root) {
            i = t->node[i].end - 1;
            continue;
        }
        if (html_tag_flags[t->node[i].tag] & TAG_HEADING) {
            bool says = is_headline(m, i);
            /* A lower heading that has part of the title is that of a section. */
            if ((says && !(said && t->node[i].tag > t->node[found].tag)) || (t->node[i].tag == HTML_h1 && n_h1 == 1)) {
                found = i;
                said = says;
            }
        }
        if (i > root && (seen += m->info[i].own_para) * 5 > m->info[root].para)
            break;
    }
    return found;
}

/* Skips what stands between the headline and root but for paragraphs: the lead. */
static void keep_lead(struct content_marker *m, uint32_t from, uint32_t root)
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

void content_keep_root(struct content_marker *m, uint32_t root)
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

/* ---- lines ---- */

/* A run of text without a block's border: what a reader sees as a line or paragraph. */
struct line {
    uint32_t first, last; /* text nodes */
    uint32_t block;
    uint32_t text, link;  /* columns */
    uint32_t dated;       /* of it, columns in <time> */
};

static void skip_line(struct content_marker *m, const struct line *l)
{
    for (uint32_t i = l->first; i <= l->last; i++)
        if (m->t->node[i].tag == HTML_text)
            m->skip[i] = 1;
}

/* True if a short line is a label, a credit, a date: no content. */
static bool is_furniture(const struct content_marker *m, const struct line *l)
{
    char key[CONTENT_KEY_MAX];
    size_t n = 0;
    bool colon = false;

    if (l->text > LINE_SHORT)
        return false;
    if (l->dated && l->text <= l->dated + DATE_SLACK)
        return true;
    for (uint32_t i = l->first; i <= l->last && n < CONTENT_KEY_MAX; i++)
        if (m->t->node[i].tag == HTML_text && !m->skip[i]) {
            struct span s = html_text(m->t, i);
            colon |= n < 16 && memchr(s.p, ':', s.n < 24 ? s.n : 24);
            n = content_key(s, key, n);
        }
    /* The title again: under a picture, say. */
    if (n >= 16 && n == m->n_title && memcmp(key, m->title, n) == 0)
        return true;
    return n && content_phrase(m->words, key, n, colon);
}

/* The next line of the root from *i on; false at its end.  *gap: text was skipped on the
 * way. */
static bool next_line(const struct content_marker *m, uint32_t end, uint32_t *i, struct line *l, bool *gap)
{
    const struct html_tree *t = m->t;
    uint32_t time_end = 0;

    *l = (struct line){0};
    for (; *i < end; (*i)++) {
        const struct html_node *n = &t->node[*i];
        const struct content_info *at = &m->info[*i];
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

/* Nothing follows a heading if the next line is the end, or a heading as high and what
 * stood between was dropped. */
void content_drop_lines(struct content_marker *m, uint32_t root)
{
    const struct html_tree *t = m->t;
    struct line l, heading = {0};
    uint32_t i = root, end = t->node[root].end;
    bool gap = false;

    while (next_line(m, end, &i, &l, &gap)) {
        unsigned tag = t->node[l.block].tag;
        bool data = tag == HTML_pre || tag == HTML_td || tag == HTML_th || tag == HTML_dt || tag == HTML_dd;
        if (!data && is_furniture(m, &l)) {
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
