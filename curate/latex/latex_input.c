/* Reading: frames, names, arguments. */
#include "curate/latex/latex_engine.h"

#include <stdlib.h>

#include "base/ascii.h"

const struct latex_env latex_no_arguments = {.n = 0};

struct span latex_trim(struct span s)
{
    while (s.n && ascii_is_space(s.p[0]))
        s.p++, s.n--;
    while (s.n && ascii_is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

int latex_limit(struct latex_worker *w, const char *what)
{
    return err_set(w->e, ERR_LIMIT, "LaTeX: more than the bound of %s", what);
}

/* ---- frames ---- */

struct latex_frame *latex_top(struct latex_worker *w)
{
    return &w->frame[w->n_frames - 1];
}

static void pop(struct latex_worker *w)
{
    w->users -= latex_top(w)->env != NULL;
    w->n_frames--;
}

int latex_push(struct latex_worker *w, struct latex_arg a, uint32_t flags)
{
    struct latex_frame *f;

    while (w->n_frames && latex_top(w)->p == latex_top(w)->end && !(latex_top(w)->flags & ~LE_AT))
        pop(w); /* so that a macro that ends with itself does not pile up */
    if (w->n_frames == LATEX_FRAMES)
        return latex_limit(w, "levels of macros");
    if (w->expansions-- <= 0)
        return latex_limit(w, "expansions");
    f = &w->frame[w->n_frames++];
    *f = (struct latex_frame){.p = a.text.p, .end = a.text.p + a.text.n, .env = a.env, .out = w->out,
                              .flags = flags | (a.at ? LE_AT : 0), .groups = w->n_groups, .opens = w->n_opens};
    if (!a.text.n)
        f->p = f->end = "";
    w->users += a.env != NULL;
    return 0;
}

/* At "#1" in a body: goes on in the argument.  False: it is none. */
static bool enter_parameter(struct latex_worker *w, struct latex_frame *f)
{
    int k;

    if (!f->env || *f->p != '#' || f->end - f->p < 2 || !ascii_is_digit(f->p[1]))
        return false;
    k = f->p[1] - '1';
    if (k < 0 || k >= f->env->n)
        return false;
    struct latex_arg a = f->env->arg[k];
    f->p += 2;
    return a.text.n == 0 || latex_push(w, a, 0) == 0;
}

bool latex_more(struct latex_worker *w)
{
    for (;;) {
        struct latex_frame *f = latex_top(w);
        if (f->p < f->end) {
            if (*f->p != '#' || !enter_parameter(w, f))
                return true;
            continue;
        }
        if ((f->flags & ~LE_AT) || w->n_frames == 1)
            return false;
        pop(w);
    }
}

void latex_skip_comment(struct latex_frame *f)
{
    const char *nl = memchr(f->p, '\n', (size_t)(f->end - f->p));

    f->p = nl ? nl + 1 : f->end;
    while (f->p < f->end && (*f->p == ' ' || *f->p == '\t'))
        f->p++;
}

void latex_skip_space(struct latex_worker *w)
{
    bool line = false;

    while (latex_more(w)) {
        struct latex_frame *f = latex_top(w);
        if (*f->p == '%') {
            latex_skip_comment(f);
            line = true;
        } else if (*f->p == '\n') {
            if (line)
                return;
            line = true;
            f->p++;
        } else if (ascii_is_space(*f->p)) {
            f->p++;
        } else {
            return;
        }
    }
}

/* ---- names ---- */

struct span latex_name(struct latex_worker *w, struct latex_frame *f)
{
    const char *p = f->p + 1, *from = p;
    bool at = (f->flags & LE_AT) || ((f->flags & LE_FILE) && w->at);

    while (p < f->end && (ascii_is_letter(*p) || (at && *p == '@')))
        p++;
    if (p == from && p < f->end) {
        p++;
        while (p < f->end && ((unsigned char)*p & 0xC0) == 0x80)
            p++;
    }
    f->p = p;
    return (struct span){from, (size_t)(p - from)};
}

struct span latex_command_name(struct latex_worker *w, struct latex_frame *f)
{
    struct span name = latex_name(w, f);
    const char *p = f->p;

    if (!name.n || !(ascii_is_letter(name.p[0]) || name.p[0] == '@'))
        return name;
    while (p < f->end && (*p == ' ' || *p == '\t'))
        p++;
    if (p < f->end && *p == '\n') {
        const char *q = p + 1;
        while (q < f->end && (*q == ' ' || *q == '\t'))
            q++;
        if (q == f->end || *q != '\n')
            p = q; /* an empty line is left */
    }
    f->p = p;
    return name;
}

/* ---- arguments ---- */

struct span latex_character(struct latex_frame *f)
{
    const char *from = f->p++;

    while (f->p < f->end && ((unsigned char)*f->p & 0xC0) == 0x80)
        f->p++;
    return (struct span){from, (size_t)(f->p - from)};
}

/* The first place from p on where c stands outside groups, or the brace that closes the group
 * around p; end if there is none. */
static const char *find_outside(struct latex_worker *w, const char *p, const char *end, char c)
{
    const char *from = p;
    int depth = 0;

    for (; p < end; p++) {
        if (*p == '\\') {
            if (c == '\\' && depth == 0)
                break;
            p++;
        } else if (*p == '%') {
            const char *nl = memchr(p, '\n', (size_t)(end - p));
            p = nl ? nl : end - 1;
        } else if (depth == 0 && *p == c) {
            break;
        } else if (*p == '{') {
            depth++;
        } else if (*p == '}' && depth-- == 0) {
            break;
        }
    }
    if (p > end)
        p = end;
    w->work -= p - from;
    return p;
}

const char *latex_group_end(struct latex_worker *w, const char *p, const char *end)
{
    return find_outside(w, p, end, '}');
}

static struct latex_arg piece(struct latex_worker *w, struct latex_frame *f, const char *p, const char *end)
{
    bool at = (f->flags & LE_AT) || ((f->flags & LE_FILE) && w->at);

    return (struct latex_arg){{p, (size_t)(end - p)}, f->env, at};
}

struct latex_arg latex_arg(struct latex_worker *w)
{
    struct latex_frame *f;
    const char *from;

    latex_skip_space(w);
    if (!latex_more(w))
        return (struct latex_arg){{"", 0}, NULL, false};
    f = latex_top(w);
    from = f->p;
    if (*from == '\n' || *from == '}') /* an empty line, or the end of the group: there is none */
        return (struct latex_arg){{"", 0}, NULL, false};
    if (*from == '{') {
        const char *to = latex_group_end(w, from + 1, f->end);
        f->p = to < f->end ? to + 1 : to;
        return piece(w, f, from + 1, to);
    }
    if (*from == '\\') {
        latex_name(w, f);
        struct latex_arg a = piece(w, f, from, f->p);
        f->p = from;
        latex_command_name(w, f);
        return a;
    }
    latex_character(f);
    return piece(w, f, from, f->p);
}

bool latex_delimited(struct latex_worker *w, char open, char close, struct latex_arg *a)
{
    struct latex_frame *f;
    const char *to;

    *a = (struct latex_arg){{"", 0}, NULL, false};
    latex_skip_space(w);
    if (!latex_more(w))
        return false;
    f = latex_top(w);
    if (*f->p != open)
        return false;
    to = f->p;
    for (int depth = 0;; depth--) { /* brackets in brackets */
        const char *inner = to + 1;
        to = find_outside(w, inner, f->end, close);
        if (to == f->end || *to != close)
            return false;
        for (const char *q = inner; open == '[' && q < to; q++)
            if (*q == '[' && q[-1] != '\\')
                depth++;
        if (depth <= 0)
            break;
    }
    *a = piece(w, f, f->p + 1, to);
    f->p = to + 1;
    return true;
}

bool latex_optional(struct latex_worker *w, struct latex_arg *a)
{
    return latex_delimited(w, '[', ']', a);
}

bool latex_star(struct latex_worker *w, char star)
{
    if (!latex_more(w) || *latex_top(w)->p != star)
        return false;
    latex_top(w)->p++;
    return true;
}

/* Whether b ends with a control word, which a letter must not follow. */
static bool ends_with_word(const struct buf *b)
{
    size_t n = b->n;

    while (n && ascii_is_letter(b->p[n - 1]))
        n--;
    return n && n < b->n && b->p[n - 1] == '\\';
}

void latex_drop_arguments(struct latex_worker *w)
{
    struct latex_arg a;

    while (latex_more(w) && (*latex_top(w)->p == '{' || *latex_top(w)->p == '['))
        if (*latex_top(w)->p == '{')
            latex_arg(w);
        else if (!latex_optional(w, &a))
            return;
}

/* Appends text with its parameters put in. */
static int flatten(struct latex_worker *w, struct latex_arg a, struct buf *b, int depth)
{
    const char *p = a.text.p, *end = p + a.text.n;

    w->work -= (int64_t)a.text.n + 16;
    if (w->work < 0 || depth > 64)
        return latex_limit(w, "work");
    while (p < end) {
        const char *q = memchr(p, '#', (size_t)(end - p)), *to = q ? q : end;
        TRY(buf_put(b, p, (size_t)(to - p)));
        p = to;
        if (!q)
            break;
        if (end - p >= 2 && p[1] == '#') {
            TRY(buf_putc(b, '#'));
            p += 2;
        } else if (end - p >= 2 && ascii_is_digit(p[1]) && p[1] > '0' && p[1] - '0' <= a.env->n) {
            struct latex_arg in = a.env->arg[p[1] - '1'];
            if (in.text.n && ascii_is_letter(in.text.p[0]) && ends_with_word(b))
                TRY(buf_putc(b, ' '));
            if (in.env && in.text.n && memchr(in.text.p, '#', in.text.n))
                TRY(flatten(w, in, b, depth + 1));
            else
                TRY(buf_put_span(b, in.text));
            w->work -= (int64_t)in.text.n;
            p += 2;
        } else {
            TRY(buf_putc(b, *p++));
        }
    }
    return 0;
}

struct span latex_flat(struct latex_worker *w, struct latex_arg a)
{
    struct buf b = {.max = (size_t)1 << 26};
    struct span s;

    if (!a.env || !a.text.n || !memchr(a.text.p, '#', a.text.n))
        return a.text;
    if (flatten(w, a, &b, 0) < 0)
        w->work = -1; /* the main loop reports it */
    s = arena_dup(&w->kept, buf_span(&b));
    buf_free(&b);
    if (!s.p)
        s = (struct span){"", 0};
    return s;
}

struct span latex_flat_word(struct latex_worker *w, struct latex_arg a)
{
    return latex_trim(latex_flat(w, a));
}

bool latex_join(struct latex_worker *w)
{
    struct latex_frame *f = latex_top(w), *below = f - 1;
    struct buf b = {.max = (size_t)1 << 24};
    struct span s;

    if (w->n_frames < 2 || (f->flags & ~LE_AT) || !below->env)
        return false;
    struct latex_arg a = {{f->p, (size_t)(f->end - f->p)}, f->env ? f->env : &latex_no_arguments, false};
    struct latex_arg c = {{below->p, (size_t)(below->end - below->p)}, below->env, false};
    if (flatten(w, a, &b, 0) < 0 || flatten(w, c, &b, 0) < 0)
        w->work = -1;
    s = arena_dup(&w->kept, buf_span(&b));
    buf_free(&b);
    if (!s.p || w->work < 0)
        return false;
    uint32_t at = (f->flags | below->flags) & LE_AT;
    pop(w);
    below->p = below->end;
    return latex_push(w, (struct latex_arg){s, NULL, at != 0}, 0) == 0;
}

/* ---- numbers ---- */

static bool skip_one_dimension(struct latex_worker *w)
{
    struct latex_frame *f;
    const char *p;

    latex_skip_space(w);
    if (!latex_more(w))
        return false;
    f = latex_top(w);
    while (f->p < f->end && (*f->p == '-' || *f->p == '+' || *f->p == ' '))
        f->p++;
    p = f->p;
    while (p < f->end && (ascii_is_digit(*p) || *p == '.' || *p == ','))
        p++;
    if (p > f->p) {
        while (p < f->end && *p == ' ')
            p++;
        if (f->end - p >= 5 && memcmp(p, "true", 4) == 0)
            p += 4;
        if (f->end - p >= 3 && memcmp(p, "fil", 3) == 0) {
            for (p += 3; p < f->end && *p == 'l'; p++)
                ;
        } else if (f->end - p >= 2) {
            static const char units[] = "pt em ex cm mm in pc sp bp dd cc mu";
            for (const char *u = units; u < units + sizeof units - 2; u += 3)
                if (memcmp(p, u, 2) == 0) {
                    p += 2;
                    break;
                }
        }
        f->p = p;
    }
    if (f->p < f->end && *f->p == '\\') /* 0.5\textwidth, or a register alone */
        latex_command_name(w, f);
    return true;
}

static bool skip_word(struct latex_worker *w, const char *word)
{
    size_t n = strlen(word);
    struct latex_frame *f;

    latex_skip_space(w);
    if (!latex_more(w))
        return false;
    f = latex_top(w);
    if ((size_t)(f->end - f->p) < n || memcmp(f->p, word, n) != 0)
        return false;
    f->p += n;
    return true;
}

void latex_skip_dimension(struct latex_worker *w)
{
    latex_skip_space(w);
    latex_star(w, '=');
    if (!skip_one_dimension(w))
        return;
    if (skip_word(w, "plus "))
        skip_one_dimension(w);
    if (skip_word(w, "minus "))
        skip_one_dimension(w);
}

int latex_read_number(struct latex_worker *w, int64_t *v)
{
    struct latex_frame *f;
    bool minus = false;

    *v = 0;
    latex_skip_space(w);
    if (!latex_more(w))
        return 0;
    f = latex_top(w);
    while (f->p < f->end && (*f->p == '-' || *f->p == '+'))
        minus ^= *f->p++ == '-';
    if (f->p < f->end && *f->p == '\\') { /* registers are not kept: 0, and its argument */
        struct span name = latex_command_name(w, f);
        if (span_is(name, "value"))
            latex_arg(w);
        return 0;
    }
    for (; f->p < f->end && ascii_is_digit(*f->p); f->p++)
        if (*v < 1000000000)
            *v = *v * 10 + (*f->p - '0');
    if (minus)
        *v = -*v;
    if (f->p < f->end && *f->p == ' ')
        f->p++;
    return 0;
}
