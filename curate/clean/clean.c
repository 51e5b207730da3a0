#include "curate/clean/clean.h"

#include <stdlib.h>

#include <unicode/uchar.h>
#include <unicode/ustring.h>

#include "base/icu_normal.h"
#include "base/utf8.h"
#include "curate/text/chars.h"

/* ---- single characters ---- */

enum { DROP = 0xFFFFFFFF };

/* What decides about a joiner: the characters before it that stay. */
struct context {
    uint32_t prev, base; /* base: the last that is no mark; 0: none on this line */
};

static bool is_mark(uint32_t c) { return U_GET_GC_MASK((UChar32)c) & U_GC_M_MASK; }

static bool is_pictograph(uint32_t c)
{
    return u_hasBinaryProperty((UChar32)c, UCHAR_EXTENDED_PICTOGRAPHIC) ||
           u_hasBinaryProperty((UChar32)c, UCHAR_EMOJI_MODIFIER) || c == 0xFE0F || c == 0xFE0E || c == 0x20E3;
}

/* Joiners mean something behind letters and marks of cursive scripts (Arabic, Syriac,
 * N'Ko, Mongolian) and of Brahmi's descendants, and ZWJ in an emoji. */
static bool joiner_stays(uint32_t joiner, const struct context *x)
{
    uint32_t c = x->base;

    if (!x->prev)
        return false;
    if (joiner == 0x200D && is_pictograph(x->prev))
        return true;
    if (x->prev >= 0x300 && u_getIntPropertyValue((UChar32)x->prev, UCHAR_INDIC_SYLLABIC_CATEGORY) != U_INSC_OTHER &&
        (is_mark(x->prev) || u_isalpha((UChar32)x->prev)))
        return true;
    switch (u_getIntPropertyValue((UChar32)c, UCHAR_JOINING_TYPE)) {
    case U_JT_DUAL_JOINING:
    case U_JT_LEFT_JOINING:
    case U_JT_RIGHT_JOINING:
        return true;
    default:
        return false;
    }
}

/* ZWSP marks where words end in scripts that write none: South-East Asian, Tibetan. */
static bool zwsp_stays(const struct context *x)
{
    return (x->prev >= 0x0E00 && x->prev < 0x1100) || (x->prev >= 0x1780 && x->prev < 0x1800) ||
           (x->prev >= 0x1950 && x->prev < 0x1AB0) || (x->prev >= 0xA980 && x->prev < 0xAA80);
}

static bool zero_width_stays(uint32_t c, const struct context *x)
{
    switch (c) {
    case 0x200B:
        return zwsp_stays(x);
    case 0x200C:
    case 0x200D:
        return joiner_stays(c, x);
    case 0x2060: case 0x2061: case 0x2062: case 0x2063: case 0x2064:
    case 0xFEFF:
        return false;
    default: /* tags: only in flags */
        return !(c >= 0xE0000 && c < 0xE0080) || x->prev == 0x1F3F4 || (x->prev >= 0xE0020 && x->prev < 0xE0080);
    }
}

static bool is_bidi(uint32_t c)
{
    return c == 0x200E || c == 0x200F || c == 0x061C || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069);
}

static bool is_control(uint32_t c)
{
    return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7F && c < 0xA0) || (c & 0xFFFE) == 0xFFFE ||
           (c >= 0xFDD0 && c <= 0xFDEF) || (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0x206A && c <= 0x206F);
}

static bool is_space_separator(uint32_t c)
{
    return c == ' ' || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

/* Most characters beyond ASCII begin with bytes under which nothing special stands. */
static bool may_be_special(unsigned char lead, unsigned char next)
{
    return lead == 0xC2 || lead == 0xD8 || lead == 0xE1 || (lead == 0xE2 && next <= 0x81) ||
           (lead == 0xE3 && next == 0x80) || lead == 0xEF || lead >= 0xF0;
}

/* c as it goes on: itself, ' ', or DROP. */
static uint32_t map_char(const struct clean_conf *conf, uint32_t c, const struct context *x)
{
    if (conf->spaces && is_space_separator(c))
        return ' ';
    if (conf->controls && is_control(c))
        return DROP;
    if (conf->soft_hyphens && c == 0xAD)
        return DROP;
    if (conf->bidi && is_bidi(c))
        return DROP;
    if (conf->zero_width && !zero_width_stays(c, x))
        return DROP;
    return c;
}

/* ---- lines ---- */

/* True if the line is ASCII in which nothing can need work. */
static bool is_plain(struct span s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    unsigned bad = 0;

    for (size_t i = 0; i + 1 < s.n; i++)
        bad |= (unsigned)(p[i] < 0x20) | (p[i] > 0x7E) | ((p[i] == ' ') & (p[i + 1] == ' '));
    return !bad && (s.n == 0 || (p[s.n - 1] > ' ' && p[s.n - 1] <= 0x7E));
}

/* Appends one line.  Indentation stays as it is; further on a run of spaces becomes
 * one, spaces beside tabs go. */
static int put_line(const struct clean_conf *conf, struct span s, struct buf *out)
{
    const char *p = s.p, *end = s.p + s.n;
    size_t from = out->n;
    struct context x = {0, 0};
    bool indent = true;

    if (is_plain(s))
        return buf_put(out, s.p, s.n);
    TRY(buf_reserve(out, s.n));
    while (p < end) {
        const char *run = p;
        unsigned char lead;
        uint32_t cp, c;
        int n;

        while (p < end && *p > ' ' && *p < 0x7F) /* most characters: as they are */
            p++;
        if (p > run) {
            memcpy(out->p + out->n, run, (size_t)(p - run));
            out->n += (size_t)(p - run);
            x.prev = x.base = (uint32_t)p[-1];
            indent = false;
            continue;
        }
        lead = (unsigned char)*p;
        n = utf8_next(p, end, &cp);
        c = lead >= 0x80 && !may_be_special(lead, (unsigned char)p[1]) ? cp : map_char(conf, cp, &x);
        if (c == DROP) {
            p += n;
            continue;
        }
        if (conf->spaces && !indent && (c == ' ' || c == '\t') && out->n > from) {
            char *last = &out->p[out->n - 1];
            if (*last == '\t' && c == ' ') {
                p += n;
                continue;
            }
            if (*last == ' ') {
                if (c == '\t')
                    *last = '\t';
                p += n;
                continue;
            }
        }
        indent = indent && (c == ' ' || c == '\t');
        if (c == cp) {
            memcpy(out->p + out->n, p, (size_t)n);
            out->n += (size_t)n;
        } else {
            out->p[out->n++] = (char)c;
        }
        x.prev = c;
        if (c < 0x300 || !is_mark(c))
            x.base = c;
        p += n;
    }
    if (conf->spaces)
        while (out->n > from && (out->p[out->n - 1] == ' ' || out->p[out->n - 1] == '\t'))
            out->n--;
    return 0;
}

/* Finds the end of the line at p; *n is the length of the newline (0: end of text). */
static const char *find_newline(const struct clean_conf *conf, const char *p, const char *end, int *n)
{
    const unsigned char *q = (const unsigned char *)p, *e = (const unsigned char *)end;

    *n = 1;
    if (!conf->newlines) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        *n = nl != NULL;
        return nl ? nl : end;
    }
    for (;; q++) {
        q = (const unsigned char *)chars_find_control((const char *)q, end);
        if (q == e)
            break;
        if (*q == '\r') {
            *n = q + 1 < e && q[1] == '\n' ? 2 : 1;
            return (const char *)q;
        }
        if (*q >= '\n' && *q <= '\f')
            return (const char *)q;
        if (*q == 0xC2 && e - q > 1 && q[1] == 0x85) {
            *n = 2;
            return (const char *)q;
        }
        if (*q == 0xE2 && e - q > 2 && q[1] == 0x80 && (q[2] == 0xA8 || q[2] == 0xA9)) {
            *n = 3;
            return (const char *)q;
        }
    }
    *n = 0;
    return end;
}

static int put_lines(const struct clean_conf *conf, struct span s, struct buf *out)
{
    const char *p = s.p, *end = s.p + s.n;
    int64_t newlines = 0; /* that wait for a line that is not blank */
    int n;

    buf_clear(out);
    TRY(buf_reserve(out, s.n));
    for (;;) {
        const char *q = find_newline(conf, p, end, &n);
        struct span line = {p, (size_t)(q - p)};
        size_t before = out->n;
        bool first = before == 0;
        int64_t most = first ? 0 : conf->blank_lines + 1;

        if (!conf->newlines)
            most = INT64_MAX;
        for (int64_t i = 0; i < newlines && i < most; i++)
            TRY(buf_putc(out, '\n'));
        size_t content = out->n;
        TRY(put_line(conf, line, out));
        if (conf->newlines && out->n == content)
            out->n = before; /* blank: its newlines still wait */
        else
            newlines = 0;
        if (!n)
            return 0;
        newlines++;
        p = q + n;
    }
}

/* ---- normalisation ---- */

/* Everything below U+0300 is in NFC, and stays so: no mark, no partner of a mark. */
static bool may_need_nfc(struct span s)
{
    unsigned any = 0;

    for (size_t i = 0; i < s.n; i++)
        any |= (unsigned char)s.p[i] >= 0xCC;
    return any != 0;
}

/* *out is s or bytes in c->b. */
static int normalize(struct clean *c, int form, struct span s, struct span *out, struct err *e)
{
    UErrorCode u = U_ZERO_ERROR;
    const UNormalizer2 *norm;
    int32_t n, good, m;

    *out = s;
    if (form == CLEAN_ANY || (form == CLEAN_NFC && !may_need_nfc(s)))
        return 0;
    norm = form == CLEAN_NFC ? unorm2_getNFCInstance(&u) : unorm2_getNFKCInstance(&u);
    if (U_FAILURE(u))
        return err_set(e, ERR_UNSUPPORTED, "ICU has no normalisation data: %s", u_errorName(u));
    if (mem_room(&c->u16, &c->cap_u16, s.n + 1, sizeof(uint16_t)) < 0)
        return err_set(e, ERR_NOMEM, "no memory to normalise a text");
    u_strFromUTF8(c->u16, (int32_t)c->cap_u16, &n, s.p, (int32_t)s.n, &u);
    good = U_SUCCESS(u) ? unorm2_spanQuickCheckYes(norm, c->u16, n, &u) : 0;
    if (U_SUCCESS(u) && good == n)
        return 0;
    m = icu_normalize(norm, c->u16, n, c->norm, (int32_t)c->cap_norm, &u);
    if (u == U_BUFFER_OVERFLOW_ERROR) {
        u = U_ZERO_ERROR;
        if (mem_room(&c->norm, &c->cap_norm, (size_t)m + 1, sizeof(uint16_t)) < 0)
            return err_set(e, ERR_NOMEM, "no memory to normalise a text");
        m = icu_normalize(norm, c->u16, n, c->norm, (int32_t)c->cap_norm, &u);
    }
    if (U_FAILURE(u))
        return err_set(e, ERR_FORMAT, "cannot normalise a text: %s", u_errorName(u));
    buf_clear(&c->b);
    if (buf_reserve(&c->b, (size_t)m * 3 + 1) < 0)
        return err_set(e, ERR_NOMEM, "no memory to normalise a text");
    u_strToUTF8(c->b.p, (int32_t)((size_t)m * 3 + 1), &n, c->norm, m, &u);
    if (U_FAILURE(u))
        return err_set(e, ERR_FORMAT, "cannot normalise a text: %s", u_errorName(u));
    c->b.n = (size_t)n;
    *out = buf_span(&c->b);
    return 0;
}

/* ---- all of it ---- */

int clean_text(struct clean *c, const struct clean_conf *conf, struct span text, struct span *out,
               struct err *e)
{
    struct span s = text, t;
    bool same;

    if (text.n >= 1u << 30)
        return err_set(e, ERR_LIMIT, "text of %zu bytes: cleaning takes less than 2^30", text.n);
    if (!utf8_valid(text)) {
        buf_clear(&c->b);
        if (utf8_repair(text, &c->b) < 0)
            return err_set(e, ERR_NOMEM, "no memory to clean a text");
        s = buf_span(&c->b);
    }
    if (repair_text(&c->repair, &conf->repair, s, &s) < 0)
        return err_set(e, ERR_NOMEM, "no memory to clean a text");
    /* What is removed may bring together what composes or what is mojibake, and NFKC makes
     * spaces: again until nothing changes, which the second round nearly always finds. */
    for (int round = 0; round < 32; round++) {
        if (put_lines(conf, s, &c->a) < 0)
            return err_set(e, ERR_NOMEM, "no memory to clean a text");
        same = span_eq(buf_span(&c->a), s);
        TRY(normalize(c, conf->form, buf_span(&c->a), &t, e));
        if (same && t.p == c->a.p)
            break;
        if (repair_text(&c->repair, &conf->repair, t, &s) < 0)
            return err_set(e, ERR_NOMEM, "no memory to clean a text");
        if (s.p == t.p && t.p == c->a.p)
            break;
    }
    *out = span_eq(text, s) ? text : s;
    return 0;
}

void clean_free(struct clean *c)
{
    repair_free(&c->repair);
    buf_free(&c->a);
    buf_free(&c->b);
    free(c->u16);
    free(c->norm);
    memset(c, 0, sizeof *c);
}

/* ---- the stage ---- */

void clean_conf_init(struct clean_conf *c)
{
    *c = (struct clean_conf){
        .repair = {.mojibake = true, .unescape = UNESCAPE_AUTO, .terminal_escapes = true},
        .form = CLEAN_NFC,
        .controls = true,
        .zero_width = true,
        .soft_hyphens = true,
        .spaces = true,
        .newlines = true,
        .blank_lines = 2,
        .pii.tag = PII_TAG,
    };
}

/* The stage's state: what all threads read, and counts. */
struct clean_stage {
    struct clean_conf conf;
    struct pii pii;
    _Atomic uint64_t changed, found[PII_KINDS];
};

struct clean_thread {
    struct clean clean;
    struct buf a, b;
};

static int clean_thread_open(void *stage, void **thread, struct err *e)
{
    (void)stage;
    *thread = calloc(1, sizeof(struct clean_thread));
    return *thread ? 0 : err_set(e, ERR_NOMEM, "no memory to clean texts");
}

static void clean_thread_close(void *stage, void *thread)
{
    struct clean_thread *t = thread;

    (void)stage;
    if (t) {
        clean_free(&t->clean);
        buf_free(&t->a);
        buf_free(&t->b);
    }
    free(t);
}

static int clean_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    struct clean_stage *s = stage;
    struct clean_thread *t = thread;
    uint64_t found[PII_KINDS] = {0};
    struct span out;
    int rc = clean_text(&t->clean, &s->conf, d->text, &out, e);

    (void)v;
    (void)note;
    if (rc == ERR_LIMIT)
        return ERR_FORMAT;
    TRY(rc);
    if (pii_replace(&s->pii, &t->a, &t->b, out, &out, found) < 0)
        return err_set(e, ERR_NOMEM, "no memory to clean a text");
    if (out.p == d->text.p)
        return 0;
    s->changed++;
    for (int k = 0; k < PII_KINDS; k++)
        if (found[k])
            s->found[k] += found[k];
    if (doc_set_string(d, "text", out) < 0)
        return err_set(e, ERR_NOMEM, "no memory for a document");
    return 0;
}

static int clean_stats(void *stage, struct buf *json)
{
    struct clean_stage *s = stage;

    TRY(json_put_key(json, "changed"));
    TRY(json_put_int(json, (int64_t)s->changed));
    TRY(json_put_key(json, "pii"));
    TRY(buf_putc(json, '{'));
    for (int k = 0; k < PII_KINDS; k++)
        if (s->found[k]) {
            TRY(json_put_key(json, pii_names[k]));
            TRY(json_put_int(json, (int64_t)s->found[k]));
        }
    return buf_putc(json, '}');
}

static void clean_close(void *stage) { free(stage); }

static const struct stage_ops ops = {
    .name = "clean",
    .thread_open = clean_thread_open,
    .thread_close = clean_thread_close,
    .work = clean_work,
    .stats = clean_stats,
    .close = clean_close,
};

int clean_stage_open(struct stage *s, const struct clean_conf *conf, struct err *e)
{
    struct clean_stage *c = calloc(1, sizeof *c);
    int rc;

    if (!c)
        return err_set(e, ERR_NOMEM, "no memory to clean texts");
    c->conf = *conf;
    rc = pii_init(&c->pii, &conf->pii, e);
    if (rc < 0) {
        free(c);
        return rc;
    }
    s->ops = &ops;
    s->state = c;
    return 0;
}
