#include "curate/html/justext.h"

#include <stdlib.h>
#include <unicode/ucasemap.h>

#include "base/utf8.h"
#include "curate/html/html_tree.h"
#include "curate/text/html_entity.h"
#include "curate/text/lang.h"
#include "curate/text/py_chars.h"
#include "curate/text/word_set.h"

static const struct {
    const char *code, *words;
} lists[] = {
#include "curate/html/justext_lists.inc"
};
enum { N_LISTS = sizeof lists / sizeof *lists };

/* What the name of an element says. */
enum {
    BORDER = 1, /* begins and ends a paragraph */
    KILLED = 2, /* left out with all in it */
    NAMELESS = 4 /* left out, what is in it stays */
};
static const uint8_t kinds[HTML_N_TAGS] = {
    [HTML_body] = BORDER, [HTML_blockquote] = BORDER, [HTML_caption] = BORDER, [HTML_center] = BORDER,
    [HTML_col] = BORDER, [HTML_colgroup] = BORDER, [HTML_dd] = BORDER, [HTML_div] = BORDER, [HTML_dl] = BORDER,
    [HTML_dt] = BORDER, [HTML_fieldset] = BORDER, [HTML_legend] = BORDER, [HTML_optgroup] = BORDER,
    [HTML_option] = BORDER, [HTML_p] = BORDER, [HTML_pre] = BORDER, [HTML_table] = BORDER, [HTML_td] = BORDER,
    [HTML_tfoot] = BORDER, [HTML_th] = BORDER, [HTML_thead] = BORDER, [HTML_tr] = BORDER, [HTML_ul] = BORDER,
    [HTML_li] = BORDER, [HTML_h1] = BORDER, [HTML_h2] = BORDER, [HTML_h3] = BORDER, [HTML_h4] = BORDER,
    [HTML_h5] = BORDER, [HTML_h6] = BORDER,
    [HTML_head] = KILLED, [HTML_script] = KILLED, [HTML_style] = KILLED, [HTML_applet] = KILLED,
    [HTML_base] = KILLED, [HTML_link] = KILLED, [HTML_button] = KILLED, [HTML_input] = KILLED,
    [HTML_select] = KILLED, [HTML_textarea] = KILLED,
    [HTML_form] = NAMELESS, [HTML_iframe] = NAMELESS, [HTML_embed] = NAMELESS, [HTML_object] = NAMELESS,
    [HTML_param] = NAMELESS,
};

struct justext {
    struct justext_conf conf;
    struct word_set own;            /* of the file */
    struct word_set list[N_LISTS];  /* made when first needed */
    UCaseMap *lower;
    const uint8_t *chars;

    struct justext_paragraph *p;
    uint32_t n;
    size_t p_size;
    uint32_t *of; /* by node */
    size_t of_size;
    uint8_t *near; /* by paragraph: the classes behind it */
    size_t near_size;

    /* The page at hand. */
    const struct html_tree *t;
    const struct word_set *stop_words;
    struct buf word, low, text;
    bool link, br;
    int headings;      /* open elements h1 to h6 */
    bool space;        /* white space stands before its next character */
    bool piece, piece_space; /* of the run of text at hand: has text; begins or ends in white space */
    bool nomem;
};

void justext_conf_init(struct justext_conf *c)
{
    *c = (struct justext_conf){.length_low = 70,
                               .length_high = 200,
                               .stopwords_low = .30,
                               .stopwords_high = .32,
                               .max_link_density = .2,
                               .max_heading_distance = 200,
                               .headings = true,
                               .lang = "auto"};
}

/* ---- stop words ---- */

static int find_list(struct span code)
{
    for (int i = 0; i < N_LISTS; i++)
        if (span_is(code, lists[i].code))
            return i;
    return -1;
}

static const struct word_set *get_list(struct justext *j, int i)
{
    struct buf b = {0};

    if (j->list[i].slot)
        return &j->list[i];
    if (buf_puts(&b, lists[i].words) < 0) {
        buf_free(&b);
        return NULL;
    }
    for (size_t k = 0; k < b.n; k++)
        b.p[k] = b.p[k] == ' ' ? '\n' : b.p[k];
    return word_set_take(&j->list[i], &b, NULL, NULL) < 0 ? NULL : &j->list[i];
}

/* That of the page's language, if there is one; else of English, the first. */
static int page_list(struct span lang)
{
    char code[8] = "";
    const struct lang *l;
    int i;

    for (size_t k = 0; k < lang.n && k < sizeof code - 1; k++)
        code[k] = (char)(lang.p[k] >= 'A' && lang.p[k] <= 'Z' ? lang.p[k] | 32 : lang.p[k]);
    l = lang_find(span_of(code));
    i = l ? find_list(span_of(lang_code(l))) : -1;
    return i < 0 ? 0 : i;
}

static int lower(struct justext *j, struct span s, struct buf *out)
{
    UErrorCode status = U_ZERO_ERROR;
    size_t need = s.n * 3 + 8;
    int32_t n;

    buf_clear(out);
    TRY(buf_reserve(out, need));
    n = ucasemap_utf8ToLower(j->lower, out->p, (int32_t)need, s.p, (int32_t)s.n, &status);
    out->n = U_FAILURE(status) ? 0 : (size_t)n;
    return 0;
}

/* The file's words in lower case. */
static int load_words(struct justext *j, struct err *e)
{
    struct word_set raw = {0};
    struct buf all = {0};
    struct span w;
    size_t at = 0;
    int rc = 0;

    TRY(word_set_load(&raw, j->conf.stop_words, NULL, e));
    while (rc == 0 && word_set_next(&raw, &at, &w)) {
        rc = lower(j, w, &j->low);
        if (rc == 0)
            rc = buf_reserve(&all, j->low.n + 1);
        if (rc == 0)
            rc = buf_put_span(&all, buf_span(&j->low));
        if (rc == 0)
            rc = buf_putc(&all, '\n');
    }
    word_set_free(&raw);
    if (rc == 0)
        return word_set_take(&j->own, &all, NULL, e);
    buf_free(&all);
    return err_set(e, ERR_NOMEM, "no memory for stop words");
}

static int check(const struct justext_conf *c, struct err *e)
{
    if (strcmp(c->lang, "auto") != 0 && find_list(span_of(c->lang)) < 0)
        return err_set(e, ERR_ARG, "there is no stop list for '%s'; a file of words can be given", c->lang);
    if (c->stopwords_low > c->stopwords_high)
        return err_set(e, ERR_ARG, "stopwords-low %g is above stopwords-high %g", c->stopwords_low, c->stopwords_high);
    if (c->length_low > c->length_high)
        return err_set(e, ERR_ARG, "length-low %lld is above length-high %lld", (long long)c->length_low,
                       (long long)c->length_high);
    return 0;
}

int justext_new(struct justext **out, const struct justext_conf *c, struct err *e)
{
    UErrorCode status = U_ZERO_ERROR;
    struct justext *j;
    int rc;

    TRY(check(c, e));
    j = calloc(1, sizeof *j);
    if (!j)
        return err_set(e, ERR_NOMEM, "out of memory");
    j->conf = *c;
    j->chars = py_chars();
    j->lower = ucasemap_open("", 0, &status);
    rc = !j->chars || U_FAILURE(status) ? err_set(e, ERR_NOMEM, "out of memory") : 0;
    if (rc == 0 && c->stop_words)
        rc = load_words(j, e);
    if (rc < 0) {
        justext_free(j);
        return rc;
    }
    *out = j;
    return 0;
}

void justext_free(struct justext *j)
{
    if (!j)
        return;
    word_set_free(&j->own);
    for (int i = 0; i < N_LISTS; i++)
        word_set_free(&j->list[i]);
    if (j->lower)
        ucasemap_close(j->lower);
    free(j->p);
    free(j->of);
    free(j->near);
    buf_free(&j->word);
    buf_free(&j->low);
    buf_free(&j->text);
    free(j);
}

/* ---- paragraphs ---- */

static struct justext_paragraph *last(struct justext *j) { return &j->p[j->n - 1]; }

static void end_word(struct justext *j)
{
    struct justext_paragraph *p = last(j);
    struct span w = buf_span(&j->word);
    bool ascii = true;

    if (!w.n)
        return;
    for (size_t i = 0; i < w.n; i++) {
        char c = w.p[i];
        ascii &= c >= 0;
        j->word.p[i] = (char)(c >= 'A' && c <= 'Z' ? c | 32 : c);
        p->copyright |= c == '&' && w.n - i >= 5 && memcmp(w.p + i, "&copy", 5) == 0;
    }
    if (!ascii) {
        j->nomem |= lower(j, w, &j->low) < 0;
        w = buf_span(&j->low);
    }
    p->words++;
    p->stop_words += word_set_has(j->stop_words, w);
    buf_clear(&j->word);
}

/* Begins a paragraph; the last one stays only if it has text. */
static void begin(struct justext *j)
{
    if (j->n)
        end_word(j);
    j->n += !j->n || last(j)->length;
    *last(j) = (struct justext_paragraph){.heading = j->headings > 0};
    j->space = false;
}

/* A run of characters that are no white space, n of them. */
static void put_word(struct justext *j, struct span s, uint32_t n)
{
    struct justext_paragraph *p = last(j);

    if (!j->piece) {
        j->piece = true;
        j->br = false;
        if (j->piece_space) {
            j->space = true;
            p->links += j->link;
        }
    }
    if (j->space && p->length) {
        p->length++;
        end_word(j);
    }
    j->space = j->piece_space = false;
    p->length += n;
    p->links += j->link ? n : 0;
    j->nomem |= buf_put_span(&j->word, s) < 0;
}

static void put_space(struct justext *j)
{
    if (j->piece) {
        if (!j->piece_space)
            last(j)->links += j->link;
        j->space = true;
    }
    j->piece_space = true;
}

static void put_text(struct justext *j, struct span s)
{
    const char *p = s.p, *end = s.p + s.n;
    uint32_t cp;

    while (p < end) {
        const char *from = p;
        uint32_t n = 0;
        int k = 1;
        for (; p < end; p += k, n++) {
            cp = (unsigned char)*p;
            k = cp < 0x80 ? 1 : utf8_next(p, end, &cp);
            if (j->chars[cp] & PY_SPACE)
                break;
            if (cp == 0xA9)
                last(j)->copyright = true;
        }
        if (p > from)
            put_word(j, (struct span){from, (size_t)(p - from)}, n);
        if (p < end) {
            put_space(j);
            p += k;
        }
    }
}

/* What begins or ends an element that counts also ends a run of text: one that is white
 * space alone does not count. */
static void end_piece(struct justext *j) { j->piece = j->piece_space = false; }

static void open_element(struct justext *j, unsigned tag)
{
    end_piece(j);
    j->headings += html_tag_flags[tag] & TAG_HEADING;
    if (kinds[tag] & BORDER || (tag == HTML_br && j->br)) {
        begin(j);
        return;
    }
    j->br = tag == HTML_br;
    j->space |= j->br;
    j->link |= tag == HTML_a;
}

static void close_element(struct justext *j, unsigned tag)
{
    end_piece(j);
    j->headings -= html_tag_flags[tag] & TAG_HEADING;
    if (kinds[tag] & BORDER)
        begin(j);
    if (tag == HTML_a)
        j->link = false;
}

/* A formula or its picture: not text to jusText, kept with the paragraph around it. */
static bool is_formula(const struct html_tree *t, uint32_t i)
{
    struct span type;

    if (t->node[i].tag != HTML_script)
        return t->node[i].tag == HTML_img || t->node[i].tag == HTML_math;
    type = html_attr_raw(t, i, ATTR_type, NULL);
    return type.n >= 8 && memcmp(type.p, "math/tex", 8) == 0;
}

static int make_paragraphs(struct justext *j)
{
    const struct html_tree *t = j->t;
    struct { uint32_t end; uint8_t tag; } open[HTML_MAX_DEPTH + 1];
    int depth = 0;

    begin(j);
    for (uint32_t i = 0; i < t->n_nodes && !j->nomem; i++) {
        const struct html_node *n = &t->node[i];
        while (depth && open[depth - 1].end <= i)
            close_element(j, open[--depth].tag);
        j->of[i] = n->tag == HTML_text || is_formula(t, i) ? j->n - 1 : JUSTEXT_NONE;
        if (n->tag == HTML_text) {
            struct span s = html_text(t, i);
            if (n->flags & HTML_ESCAPED) {
                buf_clear(&j->text);
                TRY(html_decode(s, false, &j->text));
                s = buf_span(&j->text);
            }
            put_text(j, s);
        } else if (kinds[n->tag] & KILLED) {
            while (i + 1 < n->end)
                j->of[++i] = JUSTEXT_NONE;
        } else if (!(kinds[n->tag] & NAMELESS)) {
            open_element(j, n->tag);
            open[depth].end = n->end;
            open[depth++].tag = n->tag;
        }
    }
    while (depth)
        close_element(j, open[--depth].tag);
    end_word(j);
    j->n -= !last(j)->length;
    return j->nomem ? ERR_NOMEM : 0;
}

/* ---- classes ---- */

static enum justext_class classify(const struct justext_conf *c, const struct justext_paragraph *p)
{
    double links = p->length ? (double)p->links / p->length : 0;
    double stops = p->words ? (double)p->stop_words / p->words : 0;

    if (links > c->max_link_density || p->copyright)
        return JUSTEXT_BAD;
    if (p->length < c->length_low)
        return p->links ? JUSTEXT_BAD : JUSTEXT_SHORT;
    if (stops >= c->stopwords_high)
        return p->length > c->length_high ? JUSTEXT_GOOD : JUSTEXT_NEAR_GOOD;
    return stops >= c->stopwords_low ? JUSTEXT_NEAR_GOOD : JUSTEXT_BAD;
}

/* Two classes of neighbours, in one byte: the nearest that is good or bad, and the nearest
 * that is not short.  At the ends of the page all is bad. */
enum { NEAR = 2, AT_END = JUSTEXT_BAD | JUSTEXT_BAD << NEAR };

static uint8_t next_near(uint8_t near, uint8_t class)
{
    switch (class) {
    case JUSTEXT_SHORT: return near;
    case JUSTEXT_NEAR_GOOD: return (uint8_t)((near & 3) | class << NEAR);
    default: return (uint8_t)(class | class << NEAR);
    }
}

static void look_behind(struct justext *j)
{
    uint8_t near = AT_END;

    for (uint32_t i = j->n; i-- > 0;) {
        j->near[i] = near;
        near = next_near(near, j->p[i].class);
    }
}

static uint8_t revise_short(uint8_t before, uint8_t behind)
{
    uint8_t a = before & 3, b = behind & 3;

    if (a == b)
        return a;
    if (a == JUSTEXT_BAD ? before >> NEAR == JUSTEXT_NEAR_GOOD : behind >> NEAR == JUSTEXT_NEAR_GOOD)
        return JUSTEXT_GOOD;
    return JUSTEXT_BAD;
}

/* Headings that are not bad by themselves, close before a good paragraph. */
static void save_headings(struct justext *j)
{
    int64_t to_good = INT64_MAX; /* characters between this paragraph and the next good one */

    for (uint32_t i = j->n; i-- > 0;) {
        struct justext_paragraph *p = &j->p[i];
        bool good = p->class == JUSTEXT_GOOD;
        if (p->heading && p->class == JUSTEXT_BAD && p->first != JUSTEXT_BAD && to_good <= j->conf.max_heading_distance)
            p->class = JUSTEXT_GOOD;
        if (good)
            to_good = 0;
        else if (to_good != INT64_MAX)
            to_good += p->length;
    }
}

static void revise(struct justext *j)
{
    uint8_t before = AT_END;

    look_behind(j);
    for (uint32_t i = 0; i < j->n; i++) {
        uint8_t class = j->p[i].class;
        if (class == JUSTEXT_SHORT)
            j->p[i].class = revise_short(before, j->near[i]);
        before = next_near(before, class);
    }
    look_behind(j);
    before = AT_END;
    for (uint32_t i = 0; i < j->n; i++) {
        if (j->p[i].class == JUSTEXT_NEAR_GOOD)
            j->p[i].class = (before & 3) == JUSTEXT_BAD && (j->near[i] & 3) == JUSTEXT_BAD ? JUSTEXT_BAD : JUSTEXT_GOOD;
        before = next_near(before, j->p[i].class);
    }
    save_headings(j);
}

static int room(void **p, size_t *size, size_t need)
{
    if (*size >= need)
        return 0;
    free(*p);
    *size = need + need / 2;
    *p = malloc(*size);
    if (*p)
        return 0;
    *size = 0;
    return ERR_NOMEM;
}

int justext_mark(struct justext *j, const struct html_tree *t, struct span page_lang, uint8_t *skip)
{
    bool automatic = strcmp(j->conf.lang, "auto") == 0;

    j->stop_words = j->conf.stop_words ? &j->own
                                       : get_list(j, automatic ? page_list(page_lang) : find_list(span_of(j->conf.lang)));
    if (!j->stop_words)
        return ERR_NOMEM;
    TRY(room((void **)&j->of, &j->of_size, t->n_nodes * sizeof *j->of));
    /* A paragraph has a text of its own, but for the one begun last. */
    TRY(room((void **)&j->p, &j->p_size, (t->n_nodes + 1) * sizeof *j->p));
    j->t = t;
    j->n = 0;
    j->link = j->br = j->space = j->piece = j->piece_space = j->nomem = false;
    j->headings = 0;
    buf_clear(&j->word);
    TRY(make_paragraphs(j));
    TRY(room((void **)&j->near, &j->near_size, j->n + 1));
    for (uint32_t i = 0; i < j->n; i++) {
        j->p[i].heading &= j->conf.headings;
        j->p[i].first = j->p[i].class = (uint8_t)classify(&j->conf, &j->p[i]);
    }
    revise(j);
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        unsigned tag = t->node[i].tag;
        if (tag == HTML_text || is_formula(t, i))
            skip[i] = j->of[i] >= j->n || j->p[j->of[i]].class != JUSTEXT_GOOD;
        else
            skip[i] = (kinds[tag] & KILLED) != 0;
    }
    return 0;
}

const struct justext_paragraph *justext_paragraphs(const struct justext *j, uint32_t *n, const uint32_t **of)
{
    *n = j->n;
    *of = j->of;
    return j->p;
}
