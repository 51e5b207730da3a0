#include "curate/html/html_text_parts.h"

#include <stdlib.h>
#include <string.h>

enum { FORMULA_MAX = 5000 }; /* nodes of a formula in which TeX is looked for */

struct span html_text_tex(const struct html_tree *t, uint32_t i, bool *escaped)
{
    const struct html_node *n = &t->node[i];
    struct span v = {NULL, 0};

    if (n->tag == HTML_math) {
        for (uint32_t k = i + 1; k < n->end && k - i < FORMULA_MAX; k++) {
            if (t->node[k].tag != HTML_annotation || k + 1 >= t->node[k].end)
                continue;
            v = html_attr_raw(t, k, ATTR_encoding, NULL);
            if (v.n >= 3 && memmem(v.p, v.n, "tex", 3) && t->node[k + 1].tag == HTML_text) {
                *escaped = t->node[k + 1].flags & HTML_ESCAPED;
                return html_text(t, k + 1);
            }
        }
        return html_attr_raw(t, i, ATTR_alttext, escaped);
    }
    struct span class = html_attr_raw(t, i, ATTR_class, NULL);
    if (class.n && (memmem(class.p, class.n, "tex", 3) || memmem(class.p, class.n, "math", 4)))
        v = html_attr_raw(t, i, ATTR_alt, escaped);
    return v;
}

uint8_t *html_text_layout(const struct html_tree *t)
{
    enum { STRUCTURE = 1, CELL = 2, CELLS = 4, PARAGRAPH = 8, BLOCKS = 16 };
    uint8_t *has = calloc(t->n_nodes, 1);

    for (uint32_t i = t->n_nodes; has && i-- > 1;) {
        const struct html_node *n = &t->node[i];
        uint8_t up = has[i] & (STRUCTURE | PARAGRAPH | BLOCKS), *parent = &has[n->parent];
        switch (n->tag) {
        case HTML_table: case HTML_ul: case HTML_ol: case HTML_dl: case HTML_pre:
        case HTML_h1: case HTML_h2: case HTML_h3: case HTML_h4: case HTML_blockquote:
            up = STRUCTURE;
            break;
        case HTML_p:
            up |= PARAGRAPH;
            break;
        case HTML_td: case HTML_th:
            up = (has[i] & STRUCTURE) | CELL | (has[i] & BLOCKS ? STRUCTURE : 0);
            break;
        case HTML_tr:
            has[i] = has[i] & STRUCTURE || !(has[i] & CELLS);
            up = 0;
            break;
        default:
            break;
        }
        if (up & CELL && *parent & CELL)
            up |= CELLS;
        if (up & PARAGRAPH && *parent & PARAGRAPH)
            up |= BLOCKS;
        *parent |= up;
    }
    return has;
}

int32_t html_text_list_start(const struct html_tree *t, uint32_t i)
{
    struct span v = html_attr_raw(t, i, ATTR_start, NULL);
    int32_t n = 0;

    for (size_t k = 0; k < v.n; k++) {
        if (v.p[k] < '0' || v.p[k] > '9' || n > 10000000)
            return 1;
        n = n * 10 + (v.p[k] - '0');
    }
    return v.n ? n : 1;
}
