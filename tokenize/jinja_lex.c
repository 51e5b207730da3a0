/* Tokens of the tags of templates. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "tokenize/jinja_read.h"

void *jinja_fail(struct jinja_reader *p, const char *fmt, ...)
{
    char text[300];
    va_list ap;

    if (p->rc == 0) {
        va_start(ap, fmt);
        vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        p->rc = err_set(p->e, ERR_FORMAT, "line %d of the template: %s", p->line, text);
    }
    return NULL;
}

void *jinja_unwanted(struct jinja_reader *p, const char *wanted)
{
    return jinja_fail(p, "%s is wanted, not '%.*s'", wanted, (int)(p->t.text.n < 40 ? p->t.text.n : 40),
                      p->t.text.p ? p->t.text.p : "");
}

void *jinja_room(struct jinja_reader *p, size_t n, size_t size)
{
    void *v = arena_calloc(&p->x->arena, n, size);

    if (!v && p->rc == 0)
        p->rc = err_set(p->e, ERR_NOMEM, "out of memory for a template");
    return v;
}

/* ---- tokens of a tag ---- */

static bool name_byte(char c) { return ascii_is_alnum(c) || c == '_'; }

/* A string's escapes, which are Python's. */
static struct span unescaped(struct jinja_reader *p, const char *s, const char *end)
{
    char *out = jinja_room(p, (size_t)(end - s) + 1, 1);
    size_t n = 0;

    while (out && s < end) {
        static const char from[] = "ntr0bfav\\'\"", to[] = "\n\t\r\0\b\f\a\v\\'\"";
        const char *at = *s == '\\' && s + 1 < end ? memchr(from, s[1], sizeof from - 1) : NULL;
        int digits = *s != '\\' || s + 1 >= end ? 0 : s[1] == 'x' ? 2 : s[1] == 'u' ? 4 : s[1] == 'U' ? 8 : 0;

        if (digits) {
            char hex[9] = {0}, *rest;
            unsigned long cp;

            if (end - s - 2 < digits)
                return jinja_fail(p, "a string ends within an escape"), (struct span){NULL, 0};
            memcpy(hex, s + 2, (size_t)digits);
            cp = strtoul(hex, &rest, 16);
            if (*rest || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
                return jinja_fail(p, "\\%c%s is no character", s[1], hex), (struct span){NULL, 0};
            n += (size_t)utf8_put(out + n, (uint32_t)cp);
            s += 2 + digits;
        } else if (at) {
            out[n++] = to[at - from];
            s += 2;
        } else if (*s == '\\' && s + 1 < end && s[1] == '\n') {
            s += 2;
        } else {
            out[n++] = *s++;
        }
    }
    return (struct span){out, n};
}

static void lex_string(struct jinja_reader *p)
{
    char quote = *p->p;
    const char *s = p->p + 1, *at = s;

    while (at < p->end && *at != quote) {
        p->line += *at == '\n';
        at += *at == '\\' && at + 1 < p->end ? 2 : 1;
    }
    if (at >= p->end) {
        jinja_fail(p, "a string without an end");
        return;
    }
    p->t = (struct jinja_token){.kind = T_STRING, .text = unescaped(p, s, at)};
    p->p = at + 1;
}

static void lex_number(struct jinja_reader *p)
{
    char text[64];
    size_t n = 0;
    const char *at = p->p;
    bool whole = true;

    for (; at < p->end && n < sizeof text - 1; at++) {
        bool dot = *at == '.' && whole && at + 1 < p->end && ascii_is_digit(at[1]);
        bool power = (*at == 'e' || *at == 'E') && at + 1 < p->end && (ascii_is_digit(at[1]) || at[1] == '-' || at[1] == '+');

        if (!ascii_is_digit(*at) && *at != '_' && !dot && !power)
            break;
        whole &= !dot && !power;
        if (*at != '_')
            text[n++] = *at;
        if (power)
            text[n++] = *++at;
    }
    text[n] = 0;
    p->t = (struct jinja_token){.kind = whole ? T_INT : T_FLOAT, .text = {p->p, (size_t)(at - p->p)}, .f = strtod(text, NULL)};
    if (whole && n > 18)
        jinja_fail(p, "a number of %zu digits", n);
    p->t.i = whole ? strtoll(text, NULL, 10) : 0;
    p->p = at;
}

/* What closes the tag, with its sign before it; 0: nothing does here. */
static size_t closing(const struct jinja_reader *p)
{
    size_t left = (size_t)(p->end - p->p), sign = left && (*p->p == '-' || (*p->p == '+' && p->block));
    const char *mark = p->block ? "%}" : "}}";

    return !p->brackets && left >= sign + 2 && memcmp(p->p + sign, mark, 2) == 0 ? sign + 2 : 0;
}

void jinja_next(struct jinja_reader *p)
{
    static const char *const two[] = {"==", "!=", "<=", ">=", "//", "**"};
    size_t n;

    p->t = (struct jinja_token){.kind = T_NONE};
    for (; p->p < p->end && ascii_is_space(*p->p); p->p++)
        p->line += *p->p == '\n';
    if (p->p >= p->end) {
        jinja_fail(p, "a tag without an end");
        return;
    }
    if ((n = closing(p))) {
        p->t = (struct jinja_token){.kind = T_CLOSE, .text = {p->p, n}};
        return;
    }
    if (*p->p == '"' || *p->p == '\'') {
        lex_string(p);
        return;
    }
    if (ascii_is_digit(*p->p)) {
        lex_number(p);
        return;
    }
    for (n = 0; p->p + n < p->end && name_byte(p->p[n]);)
        n++;
    if (n) {
        p->t = (struct jinja_token){.kind = T_NAME, .text = {p->p, n}};
        p->p += n;
        return;
    }
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (p->end - p->p >= 2 && memcmp(p->p, two[i], 2) == 0)
            n = 2;
    if (!n && strchr("+-*/%~<>=()[]{},.:|", *p->p) && *p->p)
        n = 1;
    if (!n) {
        jinja_fail(p, "'%.1s' has no meaning here", p->p);
        return;
    }
    p->brackets += n == 1 && strchr("([{", *p->p) ? 1 : n == 1 && strchr(")]}", *p->p) ? -1 : 0;
    p->t = (struct jinja_token){.kind = T_SIGN, .text = {p->p, n}};
    p->p += n;
}

bool jinja_is_sign(const struct jinja_reader *p, const char *s) { return p->t.kind == T_SIGN && span_is(p->t.text, s); }
bool jinja_is_name(const struct jinja_reader *p, const char *s) { return p->t.kind == T_NAME && span_is(p->t.text, s); }

bool jinja_take_sign(struct jinja_reader *p, const char *s)
{
    if (p->rc || !jinja_is_sign(p, s))
        return false;
    jinja_next(p);
    return true;
}
bool jinja_take_name(struct jinja_reader *p, const char *s)
{
    if (p->rc || !jinja_is_name(p, s))
        return false;
    jinja_next(p);
    return true;
}
void jinja_expect(struct jinja_reader *p, const char *s)
{
    char sign[16];

    snprintf(sign, sizeof sign, "'%s'", s);
    if (!jinja_take_sign(p, s))
        jinja_unwanted(p, sign);
}
struct span jinja_expect_name(struct jinja_reader *p)
{
    struct span s = p->t.text;

    if (p->t.kind != T_NAME)
        return jinja_unwanted(p, "a name"), (struct span){NULL, 0};
    jinja_next(p);
    return s;
}

