#include "curate/xml/word_styles.h"

#include <stdlib.h>

#include "base/ascii.h"
#include "curate/xml/xml_reader.h"

enum { LABEL_MAX = 100, ROMAN_MAX = 3999, COUNT_MAX = 1000000, NO_NUMBER = -2 /* numId 0: the style's list is turned off */ };

enum word_format { FORMAT_NONE, FORMAT_BULLET, FORMAT_DECIMAL, FORMAT_ZERO, FORMAT_LETTER, FORMAT_CAPITAL, FORMAT_ROMAN,
                   FORMAT_ROMAN_CAPITAL };

struct word_numbering {
    int id;
    struct word_level {
        enum word_format format;
        int start;
        struct span text; /* "%1.%2)" */
    } level[WORD_LEVELS];
    int count[WORD_LEVELS]; /* of the last item; 0 before the first */
    bool begun[WORD_LEVELS];
};

struct word_list {
    int id, numbering;
    int restart[WORD_LEVELS]; /* where the list begins anew; WORD_NO_LEVEL: it goes on */
};

void word_styles_reset(struct word_styles *w)
{
    w->n_styles = w->n_numberings = w->n_lists = 0;
    arena_reset(&w->text);
}

void word_styles_free(struct word_styles *w)
{
    free(w->style);
    free(w->numbering);
    free(w->list);
    arena_free(&w->text);
    *w = (struct word_styles){0};
}

/* A number of an attribute "val" or another; none if it is no number or out of bounds. */
static int number(const struct xml_reader *r, const char *name, int none)
{
    struct span s = xml_attr(r, name);
    int n = 0;

    if (!s.n)
        return none;
    for (size_t i = 0; i < s.n; i++) {
        if (!ascii_is_digit((unsigned char)s.p[i]) || n > COUNT_MAX)
            return none;
        n = n * 10 + (s.p[i] - '0');
    }
    return n;
}

static int level_of(const struct xml_reader *r, const char *name)
{
    int n = number(r, name, WORD_NO_LEVEL);

    return n < WORD_LEVELS ? n : WORD_NO_LEVEL;
}

/* Keeps an attribute's value. */
static int keep(struct word_styles *w, const struct xml_reader *r, const char *name, struct span *to)
{
    struct buf b = {0};
    int rc = xml_attr_text(r, name, &b);

    if (rc > 0 && b.n) {
        *to = arena_dup(&w->text, buf_span(&b));
        rc = to->p ? 0 : ERR_NOMEM;
    }
    buf_free(&b);
    return rc < 0 ? rc : 0;
}

/* ---- styles ---- */

static int compare_spans(struct span a, struct span b)
{
    int c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int compare_styles(const void *pa, const void *pb)
{
    const struct word_style *a = pa, *b = pb;

    return compare_spans(a->id, b->id);
}

const struct word_style *word_style(const struct word_styles *w, struct span id)
{
    const struct word_style key = {.id = id};

    return w->n_styles && id.n ? bsearch(&key, w->style, w->n_styles, sizeof *w->style, compare_styles) : NULL;
}

/* The name of a style that Word has of itself is English in every language: "heading 1", "Title". */
static void read_style_name(const struct xml_reader *r, struct word_style *s)
{
    struct span name = xml_attr(r, "val");

    if (name.n == 9 && span_starts_nocase(name, "heading ") && name.p[8] >= '1' && name.p[8] <= '9')
        s->outline = name.p[8] - '1';
    s->title = span_is_nocase(name, "title");
}

static int read_style_part(struct word_styles *w, const struct xml_reader *r, struct word_style *s)
{
    int n;

    if (span_is(r->name, "name"))
        read_style_name(r, s);
    else if (span_is(r->name, "basedOn"))
        return keep(w, r, "val", &s->base);
    else if (span_is(r->name, "outlineLvl"))
        s->outline = number(r, "val", WORD_NO_LEVEL); /* 9: text, whatever it is based on */
    else if (span_is(r->name, "ilvl"))
        s->level = level_of(r, "val");
    else if (span_is(r->name, "numId"))
        s->list = (n = number(r, "val", WORD_NO_LEVEL)) ? n : NO_NUMBER;
    return 0;
}

/* What a style does not say those say that it is based on. */
static void inherit(struct word_styles *w, struct word_style *s)
{
    const struct word_style *base = word_style(w, s->base);

    for (int k = 0; base && k < WORD_BASES_MAX; k++, base = word_style(w, base->base)) {
        s->outline = s->outline == WORD_NO_LEVEL ? base->outline : s->outline;
        s->list = s->list == WORD_NO_LEVEL ? base->list : s->list;
        s->level = s->level == WORD_NO_LEVEL ? base->level : s->level;
    }
}

int word_styles_read(struct word_styles *w, struct span xml)
{
    struct word_style *s = NULL;
    struct xml_reader r = {0};
    enum xml_event ev;
    int rc = 0;

    xml_reader_begin(&r, xml);
    while (rc >= 0 && !r.too_much && (ev = xml_next(&r)) != XML_EV_END) {
        if (ev == XML_EV_CLOSE && span_is(r.name, "style"))
            s = NULL;
        if (ev != XML_EV_START)
            continue;
        if (span_is(r.name, "style") && w->n_styles < WORD_PARTS_MAX) {
            rc = mem_grow(&w->style, &w->cap_styles, w->n_styles + 1, sizeof *w->style);
            if (rc < 0)
                break;
            s = &w->style[w->n_styles++];
            *s = (struct word_style){.id = {"", 0}, .base = {"", 0}, .outline = WORD_NO_LEVEL, .list = WORD_NO_LEVEL,
                                     .level = WORD_NO_LEVEL};
            rc = keep(w, &r, "styleId", &s->id);
            s = r.empty ? NULL : s;
        } else if (s) {
            rc = read_style_part(w, &r, s);
        }
    }
    rc = r.nomem ? ERR_NOMEM : rc;
    xml_reader_free(&r);
    if (rc < 0)
        return rc;
    if (w->n_styles)
        qsort(w->style, w->n_styles, sizeof *w->style, compare_styles);
    for (size_t i = 0; i < w->n_styles; i++)
        inherit(w, &w->style[i]);
    return 0;
}

/* ---- lists ---- */

static enum word_format format_of(struct span name)
{
    static const struct { const char *name; enum word_format format; } formats[] = {
        {"none", FORMAT_NONE}, {"bullet", FORMAT_BULLET}, {"decimalZero", FORMAT_ZERO}, {"lowerLetter", FORMAT_LETTER},
        {"upperLetter", FORMAT_CAPITAL}, {"lowerRoman", FORMAT_ROMAN}, {"upperRoman", FORMAT_ROMAN_CAPITAL}};

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (span_is(name, formats[i].name))
            return formats[i].format;
    return FORMAT_DECIMAL; /* and for those of other scripts */
}

/* Where in numbering.xml the reader is: in an abstractNum or a num, at a level of it. */
struct place {
    struct word_numbering *numbering;
    struct word_list *list;
    int level;
};

static int begin_numbering(struct word_styles *w, const struct xml_reader *r, struct place *at)
{
    *at = (struct place){.level = WORD_NO_LEVEL};
    if (w->n_numberings == WORD_PARTS_MAX)
        return 0;
    TRY(mem_grow(&w->numbering, &w->cap_numberings, w->n_numberings + 1, sizeof *w->numbering));
    at->numbering = &w->numbering[w->n_numberings++];
    *at->numbering = (struct word_numbering){.id = number(r, "abstractNumId", WORD_NO_LEVEL)};
    for (int i = 0; i < WORD_LEVELS; i++)
        at->numbering->level[i] = (struct word_level){.format = FORMAT_NONE, .start = 1, .text = {"", 0}};
    return 0;
}

static int begin_list(struct word_styles *w, const struct xml_reader *r, struct place *at)
{
    *at = (struct place){.level = WORD_NO_LEVEL};
    if (w->n_lists == WORD_PARTS_MAX)
        return 0;
    TRY(mem_grow(&w->list, &w->cap_lists, w->n_lists + 1, sizeof *w->list));
    at->list = &w->list[w->n_lists++];
    *at->list = (struct word_list){.id = number(r, "numId", WORD_NO_LEVEL), .numbering = WORD_NO_LEVEL};
    for (int i = 0; i < WORD_LEVELS; i++)
        at->list->restart[i] = WORD_NO_LEVEL;
    return 0;
}

static int read_list_part(struct word_styles *w, const struct xml_reader *r, struct place *at)
{
    struct word_level *level = at->numbering && at->level >= 0 ? &at->numbering->level[at->level] : NULL;

    if (span_is(r->name, "abstractNum"))
        return begin_numbering(w, r, at);
    if (span_is(r->name, "num"))
        return begin_list(w, r, at);
    if (span_is(r->name, "lvl") || span_is(r->name, "lvlOverride"))
        at->level = level_of(r, "ilvl");
    else if (at->list && span_is(r->name, "abstractNumId"))
        at->list->numbering = number(r, "val", WORD_NO_LEVEL);
    else if (at->list && at->level >= 0 && span_is(r->name, "startOverride"))
        at->list->restart[at->level] = number(r, "val", WORD_NO_LEVEL);
    else if (level && span_is(r->name, "start"))
        level->start = number(r, "val", 1);
    else if (level && span_is(r->name, "numFmt"))
        level->format = format_of(xml_attr(r, "val"));
    else if (level && span_is(r->name, "lvlText"))
        return keep(w, r, "val", &level->text);
    return 0;
}

static int compare_lists(const void *a, const void *b)
{
    const struct word_list *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

static int compare_numberings(const void *a, const void *b)
{
    const struct word_numbering *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

int word_styles_read_lists(struct word_styles *w, struct span xml)
{
    struct place at = {.level = WORD_NO_LEVEL};
    struct xml_reader r = {0};
    enum xml_event ev;
    int rc = 0;

    xml_reader_begin(&r, xml);
    while (rc >= 0 && !r.too_much && (ev = xml_next(&r)) != XML_EV_END)
        if (ev == XML_EV_START)
            rc = read_list_part(w, &r, &at);
    rc = r.nomem ? ERR_NOMEM : rc;
    xml_reader_free(&r);
    if (rc < 0)
        return rc;
    if (w->n_lists)
        qsort(w->list, w->n_lists, sizeof *w->list, compare_lists);
    if (w->n_numberings)
        qsort(w->numbering, w->n_numberings, sizeof *w->numbering, compare_numberings);
    return 0;
}

/* ---- labels ---- */

static int put_roman(int n, bool capital, struct buf *out)
{
    static const struct { int value; const char *small, *capital; } parts[] = {
        {1000, "m", "M"}, {900, "cm", "CM"}, {500, "d", "D"}, {400, "cd", "CD"}, {100, "c", "C"}, {90, "xc", "XC"},
        {50, "l", "L"}, {40, "xl", "XL"}, {10, "x", "X"}, {9, "ix", "IX"}, {5, "v", "V"}, {4, "iv", "IV"}, {1, "i", "I"}};

    if (n > ROMAN_MAX)
        return buf_printf(out, "%d", n);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (; n >= parts[i].value; n -= parts[i].value)
            TRY(buf_puts(out, capital ? parts[i].capital : parts[i].small));
    return 0;
}

/* a to z, then aa to zz: as Word counts. */
static int put_letters(int n, char first, struct buf *out)
{
    for (int k = (n - 1) / 26; n > 0 && k >= 0 && k < LABEL_MAX; k--)
        TRY(buf_putc(out, (char)(first + (n - 1) % 26)));
    return 0;
}

static int put_count(enum word_format format, int n, struct buf *out)
{
    switch (format) {
    case FORMAT_NONE: case FORMAT_BULLET: return 0;
    case FORMAT_ZERO: return buf_printf(out, "%02d", n);
    case FORMAT_LETTER: return put_letters(n, 'a', out);
    case FORMAT_CAPITAL: return put_letters(n, 'A', out);
    case FORMAT_ROMAN: return put_roman(n, false, out);
    case FORMAT_ROMAN_CAPITAL: return put_roman(n, true, out);
    default: return buf_printf(out, "%d", n);
    }
}

/* Counts an item: deeper levels begin anew behind it, and those above it that had none yet have their first. */
static void count_item(struct word_numbering *n, struct word_list *list, int level)
{
    for (int i = 0; i <= level; i++) {
        int start = list->restart[i] != WORD_NO_LEVEL ? list->restart[i] : n->level[i].start;
        if (!n->begun[i] || list->restart[i] != WORD_NO_LEVEL)
            n->count[i] = start - (i == level);
        n->begun[i] = true;
        list->restart[i] = WORD_NO_LEVEL; /* once */
    }
    n->count[level]++;
    for (int i = level + 1; i < WORD_LEVELS; i++)
        n->begun[i] = false;
}

int word_list_item(struct word_styles *w, int id, int level, struct buf *label)
{
    const struct word_list list_key = {.id = id};
    struct word_list *list = w->n_lists ? bsearch(&list_key, w->list, w->n_lists, sizeof *w->list, compare_lists) : NULL;
    const struct word_numbering key = {.id = list ? list->numbering : WORD_NO_LEVEL};
    struct word_numbering *n = w->n_numberings && list
                                   ? bsearch(&key, w->numbering, w->n_numberings, sizeof *w->numbering, compare_numberings)
                                   : NULL;
    struct span text;

    buf_clear(label);
    if (!n || level < 0 || level >= WORD_LEVELS)
        return 0;
    count_item(n, list, level);
    text = n->level[level].text;
    if (n->level[level].format == FORMAT_BULLET || n->level[level].format == FORMAT_NONE)
        return 0;
    for (size_t i = 0; i < text.n && label->n < LABEL_MAX; i++) {
        int of = text.p[i] == '%' && i + 1 < text.n ? text.p[i + 1] - '1' : -1;
        if (of >= 0 && of <= level) {
            TRY(put_count(n->level[of].format, n->count[of], label));
            i++;
        } else {
            TRY(buf_putc(label, text.p[i]));
        }
    }
    return 0;
}
