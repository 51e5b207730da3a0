#include "curate/archive/charset.h"

#include <stdlib.h>
#include <strings.h>

#include <unicode/ucnv.h>
#include <unicode/ucnv_cb.h>
#include <unicode/ucsdet.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "curate/archive/charset_guess.h"
#include "curate/archive/charset_label.h"

enum {
    PRESCAN = 4096,      /* browsers look at 1024 bytes and then wait for more */
    DETECT = 16 << 10,   /* ICU's detection is slow: 6 MB/s */
    BEFORE = 512,        /* of that before the first byte beyond ASCII */
    PIVOT = 4096,
    CONVERTERS = 48
};
#define GUESS_GOOD -4.5 /* text in one-byte charsets has -4 to -0.5, other text -6 to -5 */

struct charset {
    UConverter *utf8;
    struct {
        const struct charset_entry *entry;
        UConverter *cnv;
    } open[CONVERTERS];
    int n_open;
    UCharsetDetector *detector;
    struct charset_guess *guess;
    UChar pivot[PIVOT];
    struct buf out;
};

/* ---- what a page says of itself ---- */

/* An attribute at *p, which moves behind it.  False: the tag ends here. */
static bool take_attribute(const char **at, const char *end, struct span *name, struct span *value)
{
    const char *p = *at;

    while (p < end && (ascii_is_html_space(*p) || *p == '/'))
        p++;
    *value = (struct span){NULL, 0};
    if (p == end || *p == '>') {
        *at = p;
        return false;
    }
    name->p = p;
    while (p < end && !ascii_is_html_space(*p) && *p != '/' && *p != '>' && (*p != '=' || p == name->p))
        p++;
    name->n = (size_t)(p - name->p);
    while (p < end && ascii_is_html_space(*p))
        p++;
    if (p < end && *p == '=') {
        p++;
        while (p < end && ascii_is_html_space(*p))
            p++;
        if (p < end && (*p == '"' || *p == '\'')) {
            const char *q = memchr(p + 1, *p, (size_t)(end - p - 1));
            *value = (struct span){p + 1, (size_t)((q ? q : end) - p - 1)};
            p = q ? q + 1 : end;
        } else {
            value->p = p;
            while (p < end && !ascii_is_html_space(*p) && *p != '>')
                p++;
            value->n = (size_t)(p - value->p);
        }
    }
    *at = p;
    return true;
}

/* The charset in a content attribute: "text/html; charset=x". */
static struct span in_content(struct span s)
{
    struct span none = {0}, v;

    for (size_t i = 0; i + 7 < s.n; i++) {
        const char *p = s.p + i + 7, *end = s.p + s.n;
        if (strncasecmp(s.p + i, "charset", 7) != 0)
            continue;
        while (p < end && ascii_is_html_space(*p))
            p++;
        if (p == end || *p != '=')
            continue;
        for (p++; p < end && (ascii_is_html_space(*p) || *p == '"' || *p == '\''); p++)
            ;
        v.p = p;
        while (p < end && !ascii_is_html_space(*p) && *p != ';' && *p != '"' && *p != '\'')
            p++;
        v.n = (size_t)(p - v.p);
        return v.n ? v : none;
    }
    return none;
}

/* The tag <meta at *at, behind its name. */
static struct span in_meta(const char **at, const char *end)
{
    struct span name, value, charset = {0}, content = {0};
    bool pragma = false;

    while (take_attribute(at, end, &name, &value)) {
        if (span_is_nocase(name, "charset") && !charset.p)
            charset = value;
        else if (span_is_nocase(name, "content") && !content.p)
            content = value;
        else if (span_is_nocase(name, "http-equiv"))
            pragma = span_is_nocase(value, "content-type");
    }
    return charset.p || !pragma ? charset : in_content(content);
}

static struct span in_xml(struct span page)
{
    struct span none = {0};
    const char *end, *p;

    if (page.n < 20 || memcmp(page.p, "<?xml", 5) != 0)
        return none;
    end = memchr(page.p, '>', page.n < 256 ? page.n : 256);
    p = end ? memmem(page.p, (size_t)(end - page.p), "encoding", 8) : NULL;
    if (!p)
        return none;
    for (p += 8; p < end && (ascii_is_html_space(*p) || *p == '='); p++)
        ;
    if (p < end && (*p == '"' || *p == '\'')) {
        const char *q = memchr(p + 1, *p, (size_t)(end - p - 1));
        if (q)
            return (struct span){p + 1, (size_t)(q - p - 1)};
    }
    return none;
}

/* Behind a tag or comment that begins at p. */
static const char *pass_tag(const char *p, const char *end)
{
    struct span name, value;

    if (end - p >= 4 && memcmp(p, "<!--", 4) == 0) {
        const char *q = memmem(p + 2, (size_t)(end - p - 2), "-->", 3);
        return q ? q + 3 : end;
    }
    if (end - p >= 2 && (p[1] == '!' || p[1] == '?' || (p[1] == '/' && end - p > 2 && !ascii_is_letter(p[2])))) {
        const char *q = memchr(p, '>', (size_t)(end - p));
        return q ? q + 1 : end;
    }
    if (end - p < 2 || !(ascii_is_letter(p[1]) || p[1] == '/'))
        return p + 1;
    for (p++; p < end && !ascii_is_html_space(*p) && *p != '>'; p++)
        ;
    while (take_attribute(&p, end, &name, &value))
        ;
    return p;
}

struct span charset_prescan(struct span page)
{
    const char *p = page.p, *end = p + (page.n < PRESCAN ? page.n : PRESCAN);

    while (p < end && (p = memchr(p, '<', (size_t)(end - p)))) {
        if (end - p > 6 && strncasecmp(p + 1, "meta", 4) == 0 && (ascii_is_html_space(p[5]) || p[5] == '/')) {
            struct span found;
            p += 5;
            found = in_meta(&p, end);
            if (found.p && charset_entry_of(found))
                return found;
        } else {
            p = pass_tag(p, end);
        }
    }
    return in_xml(page);
}

/* ---- what the bytes say ---- */

/* So many sequences beyond ASCII that all are UTF-8 by chance are in no text of another charset: of two bytes of
 * GB 2312 one pair in seven is. */
enum { NO_CHANCE = 8 };

struct census {
    size_t beyond; /* well-formed sequences beyond ASCII */
    size_t broken; /* ill-formed ones */
};

/* As UTF-8, of the first megabyte. */
static struct census count_utf8(struct span s)
{
    const char *p = s.p, *end = p + (s.n < 1 << 20 ? s.n : 1 << 20);
    struct census c = {0, 0};
    uint32_t cp;

    while (p < end) {
        if (!(*p & 0x80)) {
            p++;
            continue;
        }
        int n = utf8_next(p, end, &cp);
        if (cp == 0xFFFD && (unsigned char)*p != 0xEF)
            c.broken++;
        else
            c.beyond++;
        p += n;
    }
    return c;
}

static const struct charset_entry *by_bom(struct span s, size_t *skip)
{
    *skip = 3;
    if (s.n >= 3 && memcmp(s.p, "\xEF\xBB\xBF", 3) == 0)
        return charset_entry_of(span_of("utf-8"));
    *skip = 2;
    if (s.n >= 2 && memcmp(s.p, "\xFF\xFE", 2) == 0)
        return charset_entry_of(span_of("utf-16le"));
    if (s.n >= 2 && memcmp(s.p, "\xFE\xFF", 2) == 0)
        return charset_entry_of(span_of("utf-16be"));
    *skip = 0;
    return NULL;
}

/* UTF-16 without a mark: every other byte of markup is NUL. */
static const struct charset_entry *by_zeros(struct span s)
{
    size_t n = s.n < 1024 ? s.n & ~(size_t)1 : 1024, zero[2] = {0, 0};

    for (size_t i = 0; i < n; i++)
        zero[i & 1] += s.p[i] == '\0';
    if (n >= 8 && zero[1] > n / 4 && zero[0] < n / 64 + 1)
        return charset_entry_of(span_of("utf-16le"));
    if (n >= 8 && zero[0] > n / 4 && zero[1] < n / 64 + 1)
        return charset_entry_of(span_of("utf-16be"));
    return NULL;
}

/* Pairs of a byte beyond ASCII and a digit are how GB18030 writes what GBK has not, in
 * fours; nothing else on the web looks like that. */
static bool many_fours(struct span s)
{
    size_t beyond = 0, fours = 0;

    for (size_t i = 0; i + 3 < s.n; i++) {
        const char *p = s.p + i;
        if (!(p[0] & 0x80))
            continue;
        beyond++;
        if (p[1] >= '0' && p[1] <= '9' && (p[2] & 0x80) && p[3] >= '0' && p[3] <= '9') {
            fours++;
            i += 3;
        }
    }
    return fours > 1 && fours * 2 > beyond;
}

/* What ICU takes a text for that is in no one-byte charset; NULL: it does not know. */
static const struct charset_entry *detect_multi(struct charset *c, struct span s, bool markup)
{
    UErrorCode u = U_ZERO_ERROR;
    const UCharsetMatch **match;
    int32_t count = 0;

    if (!c->detector)
        c->detector = ucsdet_open(&u);
    if (U_FAILURE(u))
        return NULL;
    ucsdet_enableInputFilter(c->detector, markup);
    ucsdet_setText(c->detector, s.p, (int32_t)s.n, &u);
    match = ucsdet_detectAll(c->detector, &count, &u);
    for (int32_t i = 0; U_SUCCESS(u) && i < count; i++) {
        const char *name = ucsdet_getName(match[i], &u);
        const struct charset_entry *t = U_SUCCESS(u) ? charset_entry_of(span_of(name)) : NULL;
        if (t && t->kind == CHARSET_MULTI)
            return t;
    }
    return NULL;
}

/* Of a text that says nothing of itself and is not UTF-8, or has escapes. */
static int detect(struct charset *c, struct span s, bool markup, const struct charset_entry **found)
{
    const struct charset_entry *t;
    double score = 0;
    size_t from = 0;

    while (from < s.n && !(s.p[from] & 0x80) && s.p[from] != 0x1b)
        from++;
    from = from > BEFORE ? from - BEFORE : 0;
    s.p += from;
    s.n = s.n - from < DETECT ? s.n - from : DETECT;
    *found = charset_entry_of(span_of("gb18030"));
    if (many_fours(s))
        return 0;
    if (!c->guess && !(c->guess = charset_guess_new()))
        return ERR_NOMEM;
    *found = charset_guess(c->guess, s, &score);
    if (score > GUESS_GOOD && score < 0)
        return 0;
    t = detect_multi(c, s, markup);
    if (t)
        *found = t;
    return 0;
}

/* ---- conversion ---- */

/* U+FFFD for what cannot be decoded; ICU's own callback writes U+001A for some. */
static void replace_bad(const void *context, UConverterToUnicodeArgs *args, const char *bytes, int32_t n,
                        UConverterCallbackReason reason, UErrorCode *u)
{
    static const UChar replacement = 0xFFFD;

    (void)context, (void)bytes, (void)n;
    if (reason > UCNV_IRREGULAR)
        return;
    *u = U_ZERO_ERROR;
    ucnv_cbToUWriteUChars(args, &replacement, 1, 0, u);
}

static UConverter *converter_of(struct charset *c, const struct charset_entry *t, UErrorCode *u)
{
    for (int i = 0; i < c->n_open; i++)
        if (c->open[i].entry == t) {
            ucnv_resetToUnicode(c->open[i].cnv);
            return c->open[i].cnv;
        }
    UConverter *cnv = ucnv_open(t->converter, u);
    if (U_SUCCESS(*u))
        ucnv_setToUCallBack(cnv, replace_bad, NULL, NULL, NULL, u);
    if (U_SUCCESS(*u)) {
        c->open[c->n_open].entry = t;
        c->open[c->n_open++].cnv = cnv;
    }
    return cnv;
}

static int convert(struct charset *c, const struct charset_entry *t, struct span s)
{
    UErrorCode u = U_ZERO_ERROR;
    UConverter *cnv = converter_of(c, t, &u);
    const char *in = s.p, *end = s.p + s.n;
    UChar *read = c->pivot, *write = c->pivot;

    if (U_FAILURE(u))
        return ERR_NOMEM;
    ucnv_resetFromUnicode(c->utf8);
    do {
        char *out;
        TRY(buf_reserve(&c->out, (size_t)(end - in) + (size_t)(end - in) / 2 + 64));
        out = c->out.p + c->out.n;
        u = U_ZERO_ERROR;
        ucnv_convertEx(c->utf8, cnv, &out, c->out.p + c->out.cap - 1, &in, end, c->pivot, &read, &write,
                       c->pivot + PIVOT, false, true, &u);
        c->out.n = (size_t)(out - c->out.p);
    } while (u == U_BUFFER_OVERFLOW_ERROR);
    return u == U_MEMORY_ALLOCATION_ERROR ? ERR_NOMEM : 0;
}

/* Takes NULs out of b in place. */
static void strip_nul(struct buf *b)
{
    char *to = b->n ? memchr(b->p, '\0', b->n) : NULL;

    if (!to)
        return;
    for (const char *p = to; p < b->p + b->n; p++)
        if (*p)
            *to++ = *p;
    b->n = (size_t)(to - b->p);
}

/* What the header and the page say, unless the bytes tell otherwise; NULL. */
static const struct charset_entry *by_label(struct span s, struct span label, bool markup, bool valid,
                                            struct census count)
{
    const struct charset_entry *said[2] = {charset_entry_of(label), NULL}, *utf8 = charset_entry_of(span_of("utf-8"));

    said[1] = markup ? charset_entry_of(charset_prescan(s)) : NULL;
    if (said[1] && said[1]->kind == CHARSET_UTF16) /* it was read as ASCII */
        said[1] = utf8;
    for (int i = 0; i < 2; i++) {
        if (!said[i])
            continue;
        if (said[i]->kind == CHARSET_BYTE && valid)
            return utf8;
        if (said[i]->kind == CHARSET_MULTI && valid && count_utf8(s).beyond >= NO_CHANCE)
            return utf8;
        if (said[i]->kind != CHARSET_UTF8 || valid || count.beyond >= count.broken)
            return said[i];
    }
    return NULL;
}

/* Chooses among the labels and the bytes; *skip: the length of a mark at the start. */
static int choose(struct charset *c, struct span s, struct span label, bool markup, bool valid,
                  const struct charset_entry **t, size_t *skip)
{
    struct census count = {0, 0};

    *t = by_bom(s, skip);
    if (*t)
        return 0;
    if (!valid)
        count = count_utf8(s);
    *t = by_label(s, label, markup, valid, count);
    if (!*t)
        *t = by_zeros(s);
    if (*t)
        return 0;
    if (!valid && count.beyond < 3 * count.broken)
        return detect(c, s, markup, t);
    *t = valid && s.n && memchr(s.p, 0x1b, s.n) ? detect_multi(c, s, markup) : NULL;
    if (!*t)
        *t = charset_entry_of(span_of("utf-8"));
    return 0;
}

int charset_decode(struct charset *c, struct span page, struct span label, bool markup,
                   struct span *utf8, const char **name, struct err *e)
{
    bool valid = utf8_valid(page);
    const struct charset_entry *t;
    size_t skip;
    int rc;

    if (!page.n) /* it may have no pointer either */
        page.p = "";
    rc = choose(c, page, label, markup, valid, &t, &skip);
    if (rc < 0)
        return err_set(e, rc, "out of memory for charsets");
    *name = t->name;
    page.p += skip;
    page.n -= skip;
    if (t->kind == CHARSET_UTF8 && valid && !(page.n && memchr(page.p, '\0', page.n))) {
        *utf8 = page;
        return 0;
    }
    buf_clear(&c->out);
    rc = t->kind != CHARSET_UTF8 ? convert(c, t, page)
         : valid                 ? buf_put_span(&c->out, page)
                                 : utf8_repair(page, &c->out);
    if (rc < 0)
        return err_set(e, rc, "out of memory for a page of %zu bytes", page.n);
    strip_nul(&c->out);
    *utf8 = buf_span(&c->out);
    if (utf8->n >= 3 && memcmp(utf8->p, "\xEF\xBB\xBF", 3) == 0) {
        utf8->p += 3;
        utf8->n -= 3;
    }
    return 0;
}

int charset_new(struct charset **out, struct err *e)
{
    struct charset *c = calloc(1, sizeof *c);
    UErrorCode u = U_ZERO_ERROR;

    *out = NULL;
    if (!c)
        return err_set(e, ERR_NOMEM, "out of memory for charsets");
    c->utf8 = ucnv_open("UTF-8", &u);
    if (U_FAILURE(u)) {
        charset_free(c);
        return err_set(e, ERR_NOMEM, "cannot open ICU's UTF-8 converter: %s", u_errorName(u));
    }
    *out = c;
    return 0;
}

void charset_free(struct charset *c)
{
    if (!c)
        return;
    if (c->utf8)
        ucnv_close(c->utf8);
    for (int i = 0; i < c->n_open; i++)
        ucnv_close(c->open[i].cnv);
    if (c->detector)
        ucsdet_close(c->detector);
    charset_guess_free(c->guess);
    buf_free(&c->out);
    free(c);
}
