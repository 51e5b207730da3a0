#include "curate/xml/xml_text_parts.h"

#include <stdlib.h>

#include "base/ascii.h"
#include "curate/html/html_text.h"
#include "curate/xml/xml_date.h"

enum {
    UNLESS_MAX = 64 << 10, /* bytes in which an element's siblings are looked for, */
    UNLESS_TIMES = 4       /* and times a document's length, in all */
};

/* ---- the table ---- */

static uint32_t hash_of(struct span s)
{
    uint32_t h = 0x811C9DC5;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (uint8_t)s.p[i]) * 0x01000193u;
    return h ^ h >> 15;
}

/* Where rules of this name are, or would be. */
static uint16_t *slot_of(struct xml_text *x, struct span name)
{
    uint32_t h = hash_of(name) % XML_SLOTS;

    while (x->index[h] && !span_is(name, x->format->rules[x->index[h] - 1].name))
        h = (h + 1) % XML_SLOTS;
    return &x->index[h];
}

static void index_rules(struct xml_text *x, const struct xml_format *f)
{
    if (x->format == f)
        return;
    x->format = f;
    memset(x->index, 0, sizeof x->index);
    for (uint16_t i = 0; f->rules[i].name && i < XML_RULES_MAX; i++) {
        uint16_t *at = slot_of(x, span_of(f->rules[i].name));
        x->next[i + 1] = 0;
        while (*at)
            at = &x->next[*at];
        *at = (uint16_t)(i + 1);
    }
}

static const struct xml_rule *rule_of(struct xml_text *x, struct span name)
{
    struct span around = xml_text_around(x, 0);

    for (uint16_t i = *slot_of(x, name); i; i = x->next[i]) {
        const struct xml_rule *r = &x->format->rules[i - 1];
        if (!r->in || span_is(around, r->in))
            return r;
    }
    return NULL;
}

/* Whether the innermost element has a child called name; decided once for its children. */
static bool has_child(struct xml_text *x, const char *name)
{
    struct xml_frame *f = x->depth ? &x->frame[x->depth - 1] : NULL;
    size_t n, len = strlen(name);
    const char *p, *end;

    if (!f)
        return false;
    if (f->unless == name)
        return f->unless_found;
    f->unless = name;
    f->unless_found = false;
    n = (size_t)(f->end - f->from) < UNLESS_MAX ? (size_t)(f->end - f->from) : UNLESS_MAX;
    if (x->looked / UNLESS_TIMES > (size_t)(x->reader.end - x->reader.start) + UNLESS_MAX)
        return false;
    p = f->from;
    end = p + n;
    while ((p = memchr(p, '<', (size_t)(end - p))) && ++p < end) {
        bool closing = *p == '/';
        const char *from = p += closing, *local = from;
        while (p < end && *p != '>' && *p != '/' && !ascii_is_space(*p))
            if (*p++ == ':')
                local = p;
        struct span s = {local, (size_t)(p - local)};
        if (closing && span_eq(s, f->name))
            break;
        if (!closing && s.n == len && memcmp(s.p, name, len) == 0) {
            f->unless_found = true;
            break;
        }
    }
    x->looked += (size_t)((p ? p : end) - f->from);
    return f->unless_found;
}

/* ---- what formats' code uses ---- */

struct xml_reader *xml_text_reader(struct xml_text *x)
{
    return &x->reader;
}

struct buf *xml_text_out(struct xml_text *x)
{
    return &x->out;
}

bool xml_text_hidden(const struct xml_text *x)
{
    return x->hidden;
}

int xml_text_label(struct xml_text *x, struct span text)
{
    return xml_put_html(text, true, &x->label) < 0 ? ERR_NOMEM : 0;
}

void xml_text_set_styles(struct xml_text *x, struct word_styles *styles)
{
    x->styles = styles;
}

struct word_styles *xml_text_styles(const struct xml_text *x)
{
    return x->styles;
}

int xml_text_count(struct xml_text *x, bool second)
{
    return ++x->count[second];
}

bool xml_text_joined(const struct xml_text *x)
{
    return x->joined;
}

void xml_text_join(struct xml_text *x, bool joined)
{
    x->joined = joined;
}

void xml_text_trim(struct xml_text *x)
{
    x->trim = true;
}

struct span xml_text_around(const struct xml_text *x, int up)
{
    return x->depth > up ? x->frame[x->depth - 1 - up].name : (struct span){"", 0};
}

int xml_text_field(struct xml_text *x, int field, struct span value, bool more)
{
    struct buf *b = &x->field[field];
    size_t at = b->n;

    if (!value.n || x->parts || (b->n && !more))
        return 0;
    if (b->n)
        TRY(buf_puts(b, ", "));
    size_t from = b->n;
    TRY(html_fold(value, b));
    if (b->n == from)
        b->n = at;
    return 0;
}

/* ---- elements ---- */

/* An element begins: rule, a copy, says how. */
static int push(struct xml_text *x, const struct xml_rule *rule, bool copied)
{
    struct xml_reader *r = &x->reader;
    struct xml_frame *f = &x->frame[x->depth];

    *f = (struct xml_frame){.name = r->name, .from = r->p, .end = r->end, .take = x->take, .hidden = x->hidden,
                            .copy = x->copy, .role = copied ? XML_XHTML : rule ? rule->role : XML_TAG};
    if (copied)
        TRY(xml_element_copy(x));
    else if (rule)
        TRY(xml_element_begin(x, f, rule));
    x->depth++;
    return r->empty ? xml_element_end(x) : 0;
}

static int start(struct xml_text *x)
{
    struct xml_reader *r = &x->reader;
    const struct xml_rule *rule;
    struct xml_rule mine;

    x->rooted = true;
    if (x->depth == XML_DEPTH_MAX) {
        x->deeper += !r->empty;
        return 0;
    }
    rule = rule_of(x, r->name);
    if (rule && rule->role == XML_HOOK) {
        mine = *rule;
        mine.role = XML_TAG;
        TRY(x->format->hook(x, &mine));
        rule = &mine;
    }
    if (rule && rule->role != XML_META_ATTR && rule->unless && has_child(x, rule->unless)) {
        static const struct xml_rule skip = {.role = XML_SKIP};
        return push(x, &skip, false);
    }
    if (rule && rule->role == XML_MATH && !r->empty)
        return xml_element_math(x);
    return push(x, rule, x->copy && (!rule || rule->role != XML_SKIP));
}

static int close_tag(struct xml_text *x)
{
    int to = x->depth, least = x->depth > XML_ANCESTORS_MAX ? x->depth - XML_ANCESTORS_MAX : 0;
    bool html;

    if (x->deeper) {
        x->deeper--;
        return 0;
    }
    while (to > least && !span_eq(x->frame[to - 1].name, x->reader.name))
        to--;
    if (to == least) { /* of nothing that is open */
        x->faults++;
        return 0;
    }
    x->faults += x->depth != to;
    while (x->depth >= to) {
        html = x->frame[x->depth - 1].role == XML_HTML && x->take == XML_TAKE_HTML && !x->hidden && !x->skips;
        TRY(xml_element_end(x));
        if (html) {
            struct err e;
            int rc = xml_text_html(x, buf_span(&x->value), &e);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int text(struct xml_text *x)
{
    struct xml_reader *r = &x->reader;
    int lost = 0;

    while (x->trim && r->text.n && ascii_is_space(*r->text.p))
        r->text.p++, r->text.n--;
    x->trim &= !r->text.n;
    if (x->take != XML_NOT_TAKEN)
        TRY(lost = xml_put_text(r->text, r->literal, &x->value));
    if (!x->hidden && x->take > XML_TAKE_HTML)
        TRY(lost = xml_put_html(r->text, r->literal, &x->out));
    x->faults += (uint64_t)lost;
    return 0;
}

/* ---- documents ---- */

/* Makes text of the HTML so far. */
static int flush(struct xml_text *x, struct err *e)
{
    struct html_page page;

    if (!x->out.n)
        return 0;
    TRY(html_extract(x->html, buf_span(&x->out), (struct span){"", 0}, &page, e));
    x->truncated |= page.truncated;
    if (page.text.n && ((x->text.n && buf_putc(&x->text, '\n') < 0) || buf_put_span(&x->text, page.text) < 0))
        return err_set(e, ERR_NOMEM, "out of memory for a document");
    buf_clear(&x->out);
    return 0;
}

int xml_text_html(struct xml_text *x, struct span html, struct err *e)
{
    TRY(flush(x, e));
    if (buf_put_span(&x->out, html) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a document");
    return flush(x, e);
}

void xml_text_begin(struct xml_text *x)
{
    for (int i = 0; i < XML_ALL_FIELDS; i++)
        buf_clear(&x->field[i]);
    buf_clear(&x->out);
    buf_clear(&x->text);
    x->faults = 0;
    x->truncated = false;
    x->count[0] = x->count[1] = 0;
}

int xml_text_run(struct xml_text *x, const struct xml_format *f, struct span utf8, struct err *e)
{
    struct xml_reader *r = &x->reader;
    enum xml_event ev;
    int rc = 0;

    index_rules(x, f);
    xml_reader_begin(r, utf8);
    x->depth = x->deeper = x->sections = x->parts = x->skips = 0;
    x->take = XML_NOT_TAKEN;
    x->hidden = x->copy = x->rooted = x->trim = false;
    x->joined = true;
    x->looked = 0;
    while (rc >= 0 && !r->too_much && (ev = xml_next(r)) != XML_EV_END)
        rc = ev == XML_EV_TEXT ? text(x) : ev == XML_EV_START ? start(x) : close_tag(x);
    x->faults += r->faults;
    if (rc == ERR_LIMIT)
        return err_set(e, rc, "the document takes too long");
    if (rc < 0 || r->nomem)
        return err_set(e, ERR_NOMEM, "out of memory for a document");
    if (r->too_much)
        return err_set(e, ERR_LIMIT, "at its byte %zu its entities grow beyond %d bytes", xml_offset(r), XML_EXPANSION_MAX);
    if (!x->rooted)
        return err_set(e, ERR_FORMAT, "no XML element is in it");
    if (x->depth && !f->soup)
        return err_set(e, ERR_FORMAT, "at its byte %zu the document ends in <%.*s>", xml_offset(r),
                       (int)(x->frame[x->depth - 1].name.n < 40 ? x->frame[x->depth - 1].name.n : 40),
                       x->frame[x->depth - 1].name.p);
    return flush(x, e);
}

int xml_text_end(struct xml_text *x, struct xml_doc *out, struct err *e)
{
    *out = (struct xml_doc){.faults = x->faults, .truncated = x->truncated};
    buf_clear(&x->line);
    if (x->field[XML_DATE].n) {
        if (xml_date(buf_span(&x->field[XML_DATE]), &x->line) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a document");
    }
    for (int i = 0; i < XML_FIELDS; i++)
        if (x->field[i].n)
            out->field[i] = i == XML_DATE ? buf_span(&x->line) : buf_span(&x->field[i]);
    out->text = buf_span(&x->text);
    return 0;
}

int xml_text_extract(struct xml_text *x, const struct xml_format *f, struct span utf8, struct xml_doc *out, struct err *e)
{
    xml_text_begin(x);
    TRY(xml_text_run(x, f, utf8, e));
    return xml_text_end(x, out, e);
}

int xml_text_new(struct xml_text **out, const struct html_conf *c, struct err *e)
{
    struct html_conf conf = *c;
    struct xml_text *x = *out = calloc(1, sizeof *x);

    if (x)
        x->frame = calloc(XML_DEPTH_MAX, sizeof *x->frame);
    if (!x || !x->frame)
        return err_set(e, ERR_NOMEM, "out of memory for a thread");
    conf.extractor = HTML_EVERYTHING;
    return html_worker_new(&x->html, &conf, e);
}

void xml_text_free(struct xml_text *x)
{
    if (!x)
        return;
    html_worker_free(x->html);
    xml_reader_free(&x->reader);
    free(x->frame);
    buf_free(&x->out);
    buf_free(&x->text);
    buf_free(&x->value);
    buf_free(&x->line);
    buf_free(&x->label);
    for (int i = 0; i < XML_ALL_FIELDS; i++)
        buf_free(&x->field[i]);
    free(x);
}

struct span xml_root(struct span utf8, struct span *attrs)
{
    struct xml_reader r = {0};
    struct span name = {"", 0};
    enum xml_event ev;

    *attrs = name;
    xml_reader_begin(&r, utf8);
    while ((ev = xml_next(&r)) == XML_EV_TEXT || ev == XML_EV_CLOSE)
        ;
    if (ev == XML_EV_START) {
        name = r.name;
        *attrs = r.attrs;
    }
    xml_reader_free(&r);
    return name;
}
