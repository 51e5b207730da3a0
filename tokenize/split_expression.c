#include "tokenize/split_expression.h"

#include <ctype.h>
#include <stdlib.h>

#include "tokenize/ucd.h"

struct reader {
    const char *pattern, *p;
    bool oniguruma;
    struct err *e;
};

/* Characters as they stand between brackets, and whether all but those are meant. */
struct class {
    struct buf text;
    bool negated;
};

enum { DEPTH_MAX = 20 };

#define SPACES "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
/* Letters that are symbols by category. */
#define ROUND_LETTERS "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

static int unsupported(const struct reader *r, const char *what, size_t n)
{
    return err_set(r->e, ERR_UNSUPPORTED, "'%.*s' in the pattern '%s' is unknown here", (int)n, what, r->pattern);
}

/* A category, "L" or "Lu", with its latest characters. */
static int put_category(struct buf *out, const char *name)
{
    size_t n = strlen(name);

    TRY(buf_printf(out, "\\p{%s}", name));
    for (uint32_t i = 0; i < ucd_n_late; i++)
        if (memcmp(ucd_late[i].category, name, n) == 0)
            TRY(buf_printf(out, "\\x{%x}-\\x{%x}", ucd_late[i].first, ucd_late[i].last));
    return 0;
}

static int put_categories(struct buf *out, const char *const *names)
{
    for (; *names; names++)
        TRY(put_category(out, *names));
    return 0;
}

/* Oniguruma has superscripts and fractions of Latin-1 among the words, but not in sets. */
static int put_word(const struct reader *r, bool in_set, struct buf *out)
{
    static const char *const word[] = {"L", "M", "Nd", "Nl", "Pc", NULL};

    TRY(put_categories(out, word));
    TRY(buf_puts(out, ROUND_LETTERS));
    return buf_puts(out, !r->oniguruma ? "\\x{200c}\\x{200d}" : in_set ? "" : "\\xb2\\xb3\\xb9\\xbc-\\xbe");
}

/* What stands between the braces of \p. */
static int put_property(const struct reader *r, const char *name, size_t n, struct buf *out)
{
    static const char *const categories[] = {
        "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd",
        "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};
    static const char *const others[][2] = {{"Letter", "L"}, {"Mark", "M"}, {"Number", "N"}, {"Punctuation", "P"},
        {"Punct", "P"}, {"Symbol", "S"}, {"Separator", "Z"}};
    /* Scripts to which nothing was added since 14.0, but Han. */
    static const char *const scripts[] = {"Han", "Hangul", "Bopomofo", "Thai", "Greek", "Hebrew", "Armenian", "Georgian",
        "Bengali", "Tamil", "Gujarati", "Gurmukhi", "Malayalam", "Khmer", "Tibetan", "Sinhala", "Ethiopic", "Mongolian"};

    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (strlen(categories[i]) == n && memcmp(categories[i], name, n) == 0)
            return put_category(out, categories[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i][0]) == n && memcmp(others[i][0], name, n) == 0)
            return put_category(out, others[i][1]);
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strlen(scripts[i]) == n && memcmp(scripts[i], name, n) == 0)
            return buf_printf(out, "\\p{sc:%s}%s", scripts[i],
                              i ? "" : "\\x{2b739}\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}");
    return unsupported(r, name, n);
}

/* \p{L}, \p{^L}, \P{L} and \pL. */
static int read_property(struct reader *r, struct class *c)
{
    const char *name = r->p + 3, *end;

    c->negated = r->p[1] == 'P';
    if (r->p[2] != '{') {
        name = r->p + 2;
        r->p += *name ? 3 : 2;
        return put_property(r, name, *name != '\0', &c->text);
    }
    end = strchr(name, '}');
    if (!end)
        return err_set(r->e, ERR_ARG, "a brace is not closed in the pattern '%s'", r->pattern);
    if (*name == '^') {
        c->negated = !c->negated;
        name++;
    }
    r->p = end + 1;
    return put_property(r, name, (size_t)(end - name), &c->text);
}

/* [:name:] */
static int read_posix(struct reader *r, struct class *c)
{
    const char *name = r->p + 2, *end = strstr(name, ":]");
    static const char *const punct[] = {"P", "S", NULL};
    size_t n;

    if (!end)
        return err_set(r->e, ERR_ARG, "a bracket is not closed in the pattern '%s'", r->pattern);
    if (*name == '^') {
        c->negated = true;
        name++;
    }
    n = (size_t)(end - name);
    r->p = end + 2;
    if (!r->oniguruma) /* Rust's are those of ASCII, as PCRE2's would be without PCRE2_UCP */
        return unsupported(r, name, n);
    if (n == 5 && memcmp(name, "space", 5) == 0)
        return buf_puts(&c->text, SPACES);
    if (n == 5 && memcmp(name, "punct", 5) == 0)
        return put_categories(&c->text, punct);
    if (n == 5 && memcmp(name, "digit", 5) == 0)
        return put_category(&c->text, "Nd");
    if (n == 4 && memcmp(name, "word", 4) == 0)
        return put_word(r, true, &c->text);
    return unsupported(r, name, n);
}

/* A class where r->p is: 1, and r->p behind it; 0 if there is none. */
static int read_class(struct reader *r, bool in_set, struct class *c)
{
    int rc;

    c->negated = false;
    buf_clear(&c->text);
    if (in_set && r->p[0] == '[' && r->p[1] == ':')
        return (rc = read_posix(r, c)) < 0 ? rc : 1;
    if (*r->p != '\\' || !r->p[1] || !strchr("sSdDwWhHpP", r->p[1]))
        return 0;
    if (tolower(r->p[1]) == 'p')
        return (rc = read_property(r, c)) < 0 ? rc : 1;
    c->negated = isupper((unsigned char)r->p[1]);
    switch (tolower(r->p[1])) {
    case 's':
        rc = buf_puts(&c->text, SPACES);
        break;
    case 'd':
        rc = put_category(&c->text, "Nd");
        break;
    case 'w':
        rc = put_word(r, in_set, &c->text);
        break;
    default:
        rc = r->oniguruma ? buf_puts(&c->text, "0-9A-Fa-f") : unsupported(r, r->p, 2);
    }
    r->p += 2;
    return rc < 0 ? rc : 1;
}

/* \b or \B, which goes by the words of put_word. */
static int read_boundary(struct reader *r, struct buf *out)
{
    struct buf word = {0};
    int rc;

    if (r->p[2] == '{' && isalpha((unsigned char)r->p[3])) /* Rust's \b{start} */
        return unsupported(r, r->p, 3);
    rc = put_word(r, false, &word);
    if (rc == 0)
        rc = buf_printf(out, r->p[1] == 'b' ? "(?:(?<=[%.*s])(?![%.*s])|(?<![%.*s])(?=[%.*s]))"
                                            : "(?:(?<=[%.*s])(?=[%.*s])|(?<![%.*s])(?![%.*s]))",
                        (int)word.n, word.p, (int)word.n, word.p, (int)word.n, word.p, (int)word.n, word.p);
    buf_free(&word);
    r->p += 2;
    return rc;
}

/* An escape that is no class. */
static int read_escape(struct reader *r, bool in_set, struct buf *out)
{
    char c = r->p[1];

    if (c == 'u' && strspn(r->p + 2, "0123456789abcdefABCDEF") >= 4) {
        TRY(buf_printf(out, "\\x{%.4s}", r->p + 2));
        r->p += 6;
        return 0;
    }
    if (!c || (!in_set && strchr("XKQEyYg", c)))
        return unsupported(r, r->p, c ? 2 : 1);
    r->p += 2;
    if (!in_set && c == 'O')
        return buf_puts(out, "(?s:.)");
    return buf_put(out, r->p - 2, 2);
}

/* A set in brackets while it is read: the characters of what stands between two &&, other expressions of one character
 * that belong there too, and the parts before, as conditions. */
struct set {
    struct buf plain, others, sure;
};

static void set_free(struct set *s)
{
    buf_free(&s->plain);
    buf_free(&s->others);
    buf_free(&s->sure);
}

/* Appends the expression for what stands between two &&. */
static int put_part(const struct set *s, struct buf *out)
{
    if (!s->others.n)
        return s->plain.n ? buf_printf(out, "[%.*s]", (int)s->plain.n, s->plain.p) : buf_puts(out, "(?!)");
    TRY(buf_puts(out, "(?:"));
    if (s->plain.n)
        TRY(buf_printf(out, "[%.*s]|", (int)s->plain.n, s->plain.p));
    return buf_printf(out, "%.*s)", (int)s->others.n - 1, s->others.p); /* the last | */
}

static int end_part(struct set *s)
{
    TRY(buf_puts(&s->sure, "(?="));
    TRY(put_part(s, &s->sure));
    TRY(buf_putc(&s->sure, ')'));
    buf_clear(&s->plain);
    buf_clear(&s->others);
    return 0;
}

static int read_set(struct reader *r, int depth, struct buf *out, struct buf *parent);

/* What stands in a set at r->p. */
static int read_item(struct reader *r, int depth, struct set *s, struct class *c, bool *after_class)
{
    int found = read_class(r, true, c);
    bool hyphen = *r->p == '-' && (*after_class || (!s->plain.n && !s->others.n) || r->p[1] == ']'); /* that makes no range */

    *after_class = found > 0 || *r->p == '[';
    if (found < 0)
        return found;
    if (found && c->negated)
        return buf_printf(&s->others, "[^%.*s]|", (int)c->text.n, c->text.p);
    if (found)
        return buf_put_span(&s->plain, buf_span(&c->text));
    if (*r->p == '[')
        return read_set(r, depth + 1, &s->others, &s->plain);
    if (r->p[0] == '&' && r->p[1] == '&') {
        r->p += 2;
        return end_part(s);
    }
    if (*r->p == '\\')
        return read_escape(r, true, &s->plain);
    if (hyphen)
        TRY(buf_putc(&s->plain, '\\'));
    return buf_putc(&s->plain, *r->p++);
}

/* Appends the expression for a whole set. */
static int put_set(const struct set *s, bool negated, struct buf *out)
{
    if (!s->others.n && !s->sure.n && s->plain.n)
        return buf_printf(out, negated ? "[^%.*s]" : "[%.*s]", (int)s->plain.n, s->plain.p);
    TRY(buf_puts(out, negated ? "(?:(?!" : "(?:"));
    TRY(buf_put_span(out, buf_span(&s->sure)));
    TRY(put_part(s, out));
    return buf_puts(out, negated ? ")(?s:.))" : ")");
}

/* A set from its bracket on.  A plain one goes between parent's brackets; any other to out, with a | behind it.  No parent: any
 * to out. */
static int read_set(struct reader *r, int depth, struct buf *out, struct buf *parent)
{
    struct class c = {.negated = false};
    struct set s = {.plain = {0}};
    bool negated = r->p[1] == '^', after_class = false;
    const char *begin = r->p += 1 + negated;
    int rc = depth > DEPTH_MAX ? unsupported(r, "[[[", 3) : 0;

    while (rc == 0 && *r->p && (*r->p != ']' || r->p == begin))
        rc = *r->p == ']' ? (r->p++, buf_puts(&s.plain, "\\]")) : read_item(r, depth, &s, &c, &after_class);
    if (rc == 0 && *r->p)
        r->p++;
    else if (rc == 0)
        rc = err_set(r->e, ERR_ARG, "a bracket is not closed in the pattern '%s'", r->pattern);
    if (rc == 0 && parent && !negated && !s.others.n && !s.sure.n)
        rc = buf_put_span(parent, buf_span(&s.plain));
    else if (rc == 0 && (rc = put_set(&s, negated, out)) == 0 && parent)
        rc = buf_putc(out, '|');
    buf_free(&c.text);
    set_free(&s);
    return rc;
}

/* Letters for options, (?i), (?m:. */
static int read_group(struct reader *r, struct buf *out)
{
    size_t n = strspn(r->p + 2, "imx-");
    bool flags = n && (r->p[2 + n] == ':' || r->p[2 + n] == ')');

    if (r->p[2] == '#') { /* a comment */
        const char *end = strchr(r->p, ')');
        r->p = end ? end + 1 : r->p + strlen(r->p);
        return 0;
    }
    TRY(buf_puts(out, "(?"));
    r->p += 2;
    for (; flags && n; n--, r->p++)
        TRY(buf_putc(out, *r->p == 'm' && r->oniguruma ? 's' : *r->p));
    return 0;
}

static int read_one(struct reader *r, struct class *c, struct buf *out)
{
    int found = read_class(r, false, c);

    if (found < 0)
        return found;
    if (found)
        return buf_printf(out, c->negated ? "[^%.*s]" : "[%.*s]", (int)c->text.n, c->text.p);
    if (r->p[0] == '\\' && (r->p[1] == 'b' || r->p[1] == 'B'))
        return read_boundary(r, out);
    if (*r->p == '\\')
        return read_escape(r, false, out);
    if (*r->p == '[')
        return read_set(r, 0, out, NULL);
    if (r->p[0] == '(' && r->p[1] == '?')
        return read_group(r, out);
    if (r->p[0] == '{' && r->p[1] == ',' && isdigit((unsigned char)r->p[2])) { /* {,2} */
        r->p++;
        return buf_puts(out, "{0");
    }
    if (r->oniguruma && (*r->p == '^' || *r->p == '$'))
        return buf_puts(out, *r->p++ == '^' ? "(?m:^)" : "(?m:$)");
    return buf_putc(out, *r->p++);
}

int split_expression(const char *pattern, bool oniguruma, struct buf *out, struct err *e)
{
    struct reader r = {pattern, pattern, oniguruma, e};
    struct class c = {.negated = false};
    int rc = 0;

    while (rc == 0 && *r.p)
        rc = read_one(&r, &c, out);
    buf_free(&c.text);
    return rc == ERR_NOMEM ? err_set(e, rc, "out of memory for a pattern") : rc;
}
