/* curate/wiki/wikitext_parts.h -- inside of curate/wiki/wikitext.h, for its own files alone. */
#ifndef CURATE_WIKITEXT_PARTS_H
#define CURATE_WIKITEXT_PARTS_H

#include "curate/wiki/wikitext.h"

/* ---- what belongs together (wikitext_nodes.c) ---- */

enum wt_kind { WT_NONE, WT_TEMPLATE, WT_ARGUMENT, WT_LINK, WT_VARIANT, WT_TAG, WT_COMMENT };
/* Tags whose content is not wikitext. */
enum wt_tag { WT_NOWIKI, WT_PRE, WT_CODE, WT_MATH, WT_CHEM, WT_DROP };

/* [start, end) of the page, [body, body_end) without its marks.  Nodes nest, and stand in
 * order of start; those without an end have kind WT_NONE. */
struct wt_node {
    uint32_t start, end, body, body_end;
    uint32_t next; /* the first node behind the end */
    uint8_t kind, tag;
};

struct wt_nodes {
    struct wt_node *v;
    uint32_t n, cap;
    struct wt_open *open; /* scratch */
    uint32_t cap_open;
};

/* Finds the nodes of text (below 4 GiB).  variants: -{...}- means something.  ERR_NOMEM. */
int wt_nodes_find(struct wt_nodes *n, struct span text, bool variants);
void wt_nodes_free(struct wt_nodes *n);
/* Whether a tag's name is one of those whose content is not wikitext. */
bool wt_is_raw_tag(struct span name);

/* ---- writing HTML ---- */

enum {
    WT_DEPTH = 32,      /* of what is nested and recurses; deeper is left out */
    WT_LISTS = 16,      /* of lists in lists */
    WT_TABLES = 32,     /* of tables in tables; deeper ones lose their marks */
    WT_PARENS = 8,
    WT_PAREN_MAX = 4096 /* bytes in parentheses that are tidied */
};

/* A part of the page and the first node in it. */
struct wt_range {
    uint32_t at, end, node;
};

struct wt_arg {
    struct span name; /* p NULL: by position */
    struct wt_range value; /* without white space around */
    bool lines;            /* it began on a line of its own */
};

/* What lines mean depends on it: the page, an argument, a link's text. */
struct wt_frame {
    bool block;      /* lines mean something */
    bool line_start;
    bool para;       /* the next text begins a paragraph */
    bool text, dropped, comment; /* on this line */
    bool pre;        /* lines that begin with a blank */
    bool term;       /* of ";term:definition", before the colon */
    bool cells, heads; /* a line of cells, with "||" or "!!" between them */
    bool poem;
    char quote[3];   /* of "b" and "i", what is open */
    int n_quotes;
    uint32_t quotes_to, quote_fix; /* quotes were counted up to; this one is an apostrophe and '' */
    uint32_t no_bracket; /* there is no ']' before this */
    int html;        /* block elements that are open */
    int n_lists, n_tables, deeper;
    char list[WT_LISTS];
    struct {
        bool row, drop;
        size_t start;
    } table[WT_TABLES];
};

struct wt {
    const struct wiki_site *site;
    struct span title;
    const char *t;
    struct wt_nodes nodes;
    struct buf *out;
    int rc;    /* negative: memory is out */
    int depth;
    size_t dropped_at; /* length of out when something was left out */
    int n_parens;
    struct {
        size_t at;
        bool dropped;
    } paren[WT_PARENS];
    bool in_heading;
    int n_heads; /* headings behind which no text is yet */
    struct {
        int level;
        size_t at;
    } head[8];
    struct wt_arg *arg; /* a stack: of templates within templates */
    int n_args, cap_args;
};

/* wikitext_out.c.  Tags and text in HTML; wt_text escapes, but keeps entities. */
void wt_put(struct wt *w, const char *html);
void wt_put_n(struct wt *w, const char *html, size_t n);
void wt_text(struct wt *w, struct wt_frame *f, const char *p, size_t n);
/* The paragraph that is due: before tags within a line. */
void wt_begin(struct wt *w, struct wt_frame *f);
/* As wt_text; entities are none. */
void wt_literal(struct wt *w, struct wt_frame *f, const char *p, size_t n);
/* An '&' at p: whether an entity begins. */
bool wt_entity_at(const char *p, const char *end);
/* Something was left out here. */
void wt_dropped(struct wt *w, struct wt_frame *f);
void wt_paren_open(struct wt *w);
void wt_paren_close(struct wt *w, struct wt_frame *f);

/* wikitext.c.  Writes a range. */
void wt_walk(struct wt *w, struct wt_frame *f, struct wt_range r);
/* Writes an argument, or another part with a frame of its own. */
void wt_part(struct wt *w, struct wt_frame *f, struct wt_range r, bool lines);
/* The first node at or behind r->at that ends within r, or NULL; r->node goes along. */
const struct wt_node *wt_node_at(const struct wt *w, struct wt_range *r);
/* The first byte among stops at or behind r.at that is in no node; r.end if there is none.
 * r->node goes along. */
uint32_t wt_find(const struct wt *w, struct wt_range *r, const char *stops);
static inline struct span wt_span(const struct wt *w, uint32_t from, uint32_t to)
{
    return (struct span){w->t + from, to - from};
}
void wt_close_lists(struct wt *w, struct wt_frame *f);
void wt_close_quotes(struct wt *w, struct wt_frame *f);

/* wikitext_block.c.  What a line begins with; r moves behind it. */
void wt_line(struct wt *w, struct wt_frame *f, struct wt_range *r);
void wt_cell(struct wt *w, struct wt_frame *f, struct wt_range *r, char mark);
void wt_table_close(struct wt *w, struct wt_frame *f, bool whole);
void wt_heads_end(struct wt *w, int level);

/* wikitext_inline.c.  r->at is at the mark, and moves behind it. */
void wt_link(struct wt *w, struct wt_frame *f, const struct wt_node *n, struct wt_range *r);
void wt_bracket(struct wt *w, struct wt_frame *f, struct wt_range *r);
void wt_quotes(struct wt *w, struct wt_frame *f, struct wt_range *r);
void wt_html_tag(struct wt *w, struct wt_frame *f, struct wt_range *r);
void wt_magic(struct wt *w, struct wt_frame *f, struct wt_range *r);
void wt_raw_tag(struct wt *w, struct wt_frame *f, const struct wt_node *n);
void wt_variant(struct wt *w, struct wt_frame *f, const struct wt_node *n);

/* wikitext_section.c.  The end of the section behind r (which begins behind its heading, of
 * this level) if it holds references and links alone; else 0. */
uint32_t wt_section_end(const struct wt *w, struct span heading, int level, struct wt_range r);

/* wikitext_template.c */
void wt_template(struct wt *w, struct wt_frame *f, const struct wt_node *n);
/* wikitext_function.c: templates that a pattern does not describe. */
void wt_function(struct wt *w, struct wt_frame *f, const char *name, const char *template, const struct wt_arg *arg, int n);
/* An argument by name or by position (from "1"; "-1": the last), if it is there and not empty. */
const struct wt_arg *wt_argument(const struct wt_arg *arg, int n, struct span name);
/* What a template called by this name (in the form of wiki_key) writes; NULL: nothing. */
const char *wt_pattern(struct span name);
#endif
