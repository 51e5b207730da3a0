#include "base/opt.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/near.h"

void opt_list_free(struct opt_list *l)
{
    free(l->v);
    l->v = NULL;
    l->n = 0;
}

void opt_lists_free(const struct opt *opts)
{
    for (; opts->type != OPT_TYPE_END; opts++)
        if (opts->type == OPT_TYPE_LIST)
            opt_list_free(opts->value);
}

int opt_list_add(struct opt_list *l, const char *s, struct err *e)
{
    const char **v = realloc(l->v, (size_t)(l->n + 1) * sizeof *v);

    if (!v)
        return err_set(e, ERR_NOMEM, "out of memory");
    l->v = v;
    l->v[l->n++] = s;
    return 0;
}

static int parse_int(const struct opt *o, const char *s, struct err *e)
{
    bool size = o->type == OPT_TYPE_SIZE;
    int shift = 0;
    char *end;
    long long v;

    errno = 0;
    v = strtoll(s, &end, 10); /* beyond all numbers: the greatest, or the least */
    if (size && *end && end != s) {
        const char *u = strchr("KMGT", *end);
        if (u) {
            shift = 10 * (int)(u - "KMGT" + 1);
            end++;
        }
    }
    if (end == s || *end)
        return err_set(e, ERR_ARG, "--%s: not a %s: '%s'", o->name,
                       size ? "size (a whole number, then K, M, G or T)" : "whole number", s);
    if (errno || v > (INT64_MAX >> shift) || v < (INT64_MIN >> shift) ||
        v * (1LL << shift) < o->min || v * (1LL << shift) > o->max)
        return err_set(e, ERR_ARG, "--%s: %s is outside %" PRId64 "..%" PRId64, o->name, s,
                       o->min, o->max);
    *(int64_t *)o->value = v * (1LL << shift);
    return 0;
}

static int parse_num(const struct opt *o, const char *s, struct err *e)
{
    char *end;
    double v = strtod(s, &end);

    if (end == s || *end || !isfinite(v))
        return err_set(e, ERR_ARG, "--%s: not a number: '%s'", o->name, s);
    if (!(v >= o->fmin && v <= o->fmax))
        return err_set(e, ERR_ARG, "--%s: %s is outside %g..%g", o->name, s, o->fmin, o->fmax);
    *(double *)o->value = v;
    return 0;
}

static int parse_enum(const struct opt *o, const char *s, struct err *e)
{
    const char *w = o->arg;

    for (int i = 0;; i++) {
        size_t n = strcspn(w, "|");
        if (strlen(s) == n && memcmp(s, w, n) == 0) {
            *(int *)o->value = i;
            return 0;
        }
        if (!w[n])
            return err_set(e, ERR_ARG, "--%s: '%s' is not one of %s", o->name, s, o->arg);
        w += n + 1;
    }
}

static int store(const struct opt *o, const char *s, struct err *e)
{
    if (o->given)
        *o->given = true;
    switch (o->type) {
    case OPT_TYPE_FLAG:
        if (strcmp(s, "true") != 0 && strcmp(s, "false") != 0)
            return err_set(e, ERR_ARG, "--%s: '%s' is neither true nor false", o->name, s);
        *(bool *)o->value = s[0] == 't';
        return 0;
    case OPT_TYPE_STR:
        *(const char **)o->value = s;
        return 0;
    case OPT_TYPE_INT:
    case OPT_TYPE_SIZE:
        return parse_int(o, s, e);
    case OPT_TYPE_NUM:
        return parse_num(o, s, e);
    case OPT_TYPE_ENUM:
        return parse_enum(o, s, e);
    case OPT_TYPE_LIST:
        return opt_list_add(o->value, s, e);
    default:
        return err_set(e, ERR_ARG, "--%s: not an option", o->name);
    }
}

static const struct opt *find(const struct opt *o, const char *name, size_t n)
{
    for (; o->type != OPT_TYPE_END; o++)
        if (o->type != OPT_TYPE_HEAD && strlen(o->name) == n && memcmp(o->name, name, n) == 0)
            return o;
    return NULL;
}

const struct opt *opt_find(const struct opt *opts, const char *name)
{
    return find(opts, name, strlen(name));
}

const char *opt_near(const struct opt *opts, struct span typed, const char *prefix, char *buf, size_t size)
{
    struct near n = near_to(typed);

    for (; opts->type != OPT_TYPE_END; opts++)
        if (opts->type != OPT_TYPE_HEAD)
            near_try(&n, opts->name);
    return near_say(&n, prefix, buf, size);
}

int opt_set(const struct opt *opts, const char *name, const char *text, struct err *e)
{
    const struct opt *o = opt_find(opts, name);
    char meant[96];

    if (!o)
        return err_set(e, ERR_ARG, "unknown option '%s'%s", name, opt_near(opts, span_of(name), "", meant, sizeof meant));
    return store(o, text, e);
}

/* A command line that is parsed. */
struct command_line {
    const struct opt *opts;
    int argc;
    char **argv;
    bool *seen; /* of each option, whether it was given */
    char *twice;
};

static int take(struct command_line *c, const struct opt *o, const char *s, struct err *e)
{
    bool *seen = &c->seen[o - c->opts];
    const char *lost = *seen && o->type == OPT_TYPE_STR ? *(const char **)o->value : s;

    if (strcmp(lost, s) != 0 && c->twice && !c->twice[0])
        snprintf(c->twice, OPT_TWICE, "--%s is given twice: '%s' counts, not '%s'", o->name, s, lost);
    *seen = true;
    return store(o, s, e);
}

/* --name, --name=value, --no-name.  *i moves past a separate value. */
static int parse_long(struct command_line *c, int *i, struct err *e)
{
    const char *a = c->argv[*i] + 2, *val = strchr(a, '=');
    size_t n = val ? (size_t)(val++ - a) : strlen(a);
    const struct opt *o = find(c->opts, a, n);
    char meant[96];

    if (!o && n > 3 && memcmp(a, "no-", 3) == 0) {
        o = find(c->opts, a + 3, n - 3);
        if (o && o->type == OPT_TYPE_FLAG)
            return val ? err_set(e, ERR_ARG, "--%.*s takes no value", (int)n, a) : take(c, o, "false", e);
        o = NULL;
    }
    if (!o)
        return err_set(e, ERR_ARG, "unknown option '--%.*s'%s", (int)n, a,
                       opt_near(c->opts, (struct span){a, n}, "--", meant, sizeof meant));
    if (o->type == OPT_TYPE_FLAG)
        return val ? err_set(e, ERR_ARG, "--%s takes no value: --no-%s turns it off", o->name, o->name) : take(c, o, "true", e);
    if (!val && ++*i >= c->argc)
        return err_set(e, ERR_ARG, "--%s needs a value", o->name);
    return take(c, o, val ? val : c->argv[*i], e);
}

/* -abc (flags), -ovalue, -o value. */
static int parse_short(struct command_line *c, int *i, struct err *e)
{
    for (const char *a = c->argv[*i] + 1; *a; a++) {
        const struct opt *o = c->opts;
        while (o->type != OPT_TYPE_END && o->letter != *a)
            o++;
        if (o->type == OPT_TYPE_END)
            return err_set(e, ERR_ARG, "unknown option '-%c'", *a);
        if (o->type == OPT_TYPE_FLAG) {
            TRY(take(c, o, "true", e));
            continue;
        }
        if (a[1])
            return take(c, o, a + 1, e);
        if (++*i >= c->argc)
            return err_set(e, ERR_ARG, "-%c needs a value", *a);
        return take(c, o, c->argv[*i], e);
    }
    return 0;
}

/* The number of operands. */
static int parse(struct command_line *c, struct err *e)
{
    int n = 0;

    for (int i = 1; i < c->argc; i++) {
        const char *a = c->argv[i];
        if (a[0] != '-' || !a[1]) {
            c->argv[1 + n++] = c->argv[i];
        } else if (a[1] != '-') {
            TRY(parse_short(c, &i, e));
        } else if (a[2]) {
            TRY(parse_long(c, &i, e));
        } else {
            while (++i < c->argc)
                c->argv[1 + n++] = c->argv[i];
        }
    }
    return n;
}

int opt_parse(const struct opt *opts, int argc, char **argv, char twice[OPT_TWICE], struct err *e)
{
    struct command_line c = {opts, argc, argv, NULL, twice};
    size_t n = 1;
    int rc;

    while (opts[n - 1].type != OPT_TYPE_END)
        n++;
    c.seen = calloc(n, sizeof *c.seen);
    if (!c.seen)
        return err_set(e, ERR_NOMEM, "out of memory for the options");
    if (twice)
        twice[0] = '\0';
    rc = parse(&c, e);
    free(c.seen);
    return rc;
}

/* The index-th of words with bars between them. */
static int put_nth(struct buf *b, const char *words, int index)
{
    while (index-- > 0)
        words += strcspn(words, "|") + 1;
    return buf_put(b, words, strcspn(words, "|"));
}

static int put_words(struct buf *b, const struct opt_list *l)
{
    for (int i = 0; i < l->n; i++) {
        if (i)
            TRY(buf_putc(b, ','));
        for (const char *c = l->v[i]; *c; c++) {
            if (*c == ',' || *c == '\\')
                TRY(buf_putc(b, '\\'));
            TRY(buf_putc(b, *c));
        }
    }
    return 0;
}

int opt_put_text(struct buf *b, const struct opt *o)
{
    int64_t v;
    int shift = 0;

    switch (o->type) {
    case OPT_TYPE_FLAG:
        return buf_puts(b, *(bool *)o->value ? "true" : "false");
    case OPT_TYPE_STR:
        return *(const char **)o->value ? buf_puts(b, *(const char **)o->value) : 0;
    case OPT_TYPE_INT:
        return buf_printf(b, "%" PRId64, *(int64_t *)o->value);
    case OPT_TYPE_SIZE:
        v = *(int64_t *)o->value;
        for (; v && v % 1024 == 0 && shift < 4; shift++)
            v /= 1024;
        return buf_printf(b, "%" PRId64 "%.1s", v, &"\0KMGT"[shift]);
    case OPT_TYPE_NUM:
        return buf_printf(b, "%.15g", *(double *)o->value);
    case OPT_TYPE_ENUM:
        return put_nth(b, o->arg, *(int *)o->value);
    case OPT_TYPE_LIST:
        return put_words(b, o->value);
    default:
        return 0;
    }
}

int opt_set_text(const struct opt *o, const char *text, struct arena *a, struct err *e)
{
    size_t n = strlen(text), at = 0;
    char *word, *to;

    if (o->type != OPT_TYPE_LIST)
        return opt_set(o, o->name, text, e);
    word = arena_calloc(a, n + 1, 1);
    if (!word)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (to = word; at < n; at++) {
        if (text[at] == '\\' && at + 1 < n) {
            *to++ = text[++at];
        } else if (text[at] == ',') {
            *to++ = '\0';
            TRY(opt_list_add(o->value, word, e));
            word = to;
        } else {
            *to++ = text[at];
        }
    }
    return n ? opt_list_add(o->value, word, e) : 0;
}

/* What goes in brackets after the help, on one line (newlines and tabs as in C): nothing for a flag that is off. */
static const char *default_text(const struct opt *o, char *buf, size_t size)
{
    struct buf whole = {0};
    const char *t;
    size_t n = 0;

    if (o->type == OPT_TYPE_FLAG && !*(bool *)o->value)
        return "";
    opt_put_text(&whole, o);
    for (t = whole.n ? whole.p : ""; *t && n + 3 < size; t++) {
        if (*t == '\n' || *t == '\t')
            buf[n++] = '\\';
        buf[n++] = *t == '\n' ? 'n' : *t == '\t' ? 't' : *t;
    }
    buf[n] = '\0';
    buf_free(&whole);
    return buf;
}

/* What stands between the dashes and the name: most flags can be turned off (by another's name: some begin with no-). */
static const char *switch_off(const struct opt *o)
{
    return o->type == OPT_TYPE_FLAG && !o->min && strncmp(o->name, "no-", 3) != 0 ? "[no-]" : "";
}

void opt_help(const struct opt *opts, FILE *out)
{
    char left[128], val[256];

    if (opts->type != OPT_TYPE_HEAD)
        fprintf(out, "\nOptions:\n");
    for (const struct opt *o = opts; o->type != OPT_TYPE_END; o++) {
        if (o->type == OPT_TYPE_HEAD) {
            fprintf(out, "\n%s:\n", o->help);
            continue;
        }
        const char *def = default_text(o, val, sizeof val);
        snprintf(left, sizeof left, "%c%c%c --%s%s%s%s", o->letter ? '-' : ' ',
                 o->letter ? o->letter : ' ', o->letter ? ',' : ' ', switch_off(o), o->name,
                 o->arg ? " " : "", o->arg ? o->arg : "");
        fprintf(out, "  %-30s", left);
        if (strlen(left) > 30)
            fprintf(out, "\n  %-30s", "");
        fprintf(out, " %s", o->help);
        if (def[0])
            fprintf(out, " [%s]", def);
        fputc('\n', out);
    }
}

static void man_escape(const char *s, FILE *out)
{
    for (; *s; s++) {
        if (*s == '-')
            fputs("\\-", out);
        else if (*s == '\\')
            fputs("\\e", out);
        else
            fputc(*s, out);
    }
}

void opt_man(const struct opt *opts, FILE *out)
{
    char val[256];

    for (const struct opt *o = opts; o->type != OPT_TYPE_END; o++) {
        if (o->type == OPT_TYPE_HEAD) {
            fprintf(out, ".SS %s\n", o->help);
            continue;
        }
        fputs(".TP\n.B ", out);
        if (o->letter)
            fprintf(out, "\\-%c, ", o->letter);
        fputs("\\-\\-", out);
        man_escape(switch_off(o), out);
        man_escape(o->name, out);
        if (o->arg) {
            fputs(" \\fI", out);
            man_escape(o->arg, out);
            fputs("\\fR", out);
        }
        fputs("\n\\&", out);
        man_escape(o->help, out);
        const char *def = default_text(o, val, sizeof val);
        if (def[0]) {
            fputs(" [", out);
            man_escape(def, out);
            fputc(']', out);
        }
        fputc('\n', out);
    }
}

void opt_settings(const struct opt *opts, FILE *out)
{
    struct buf b = {0};

    for (const struct opt *o = opts; o->type != OPT_TYPE_END; o++) {
        buf_clear(&b);
        if (opt_put_text(&b, o) == 0 && b.n)
            fprintf(out, "  %-36s %.*s\n", o->name, (int)b.n, b.p);
    }
    buf_free(&b);
}

/* What follows option o, in a word. */
static const char *completion_value(const struct opt *o)
{
    switch (o->names) {
    case OPT_NAMES_NOTHING:
        return o->type == OPT_TYPE_FLAG ? "flag" : o->type == OPT_TYPE_ENUM ? o->arg : "text";
    case OPT_NAMES_FOLDER:
        return "folder";
    default:
        return "file";
    }
}

void opt_completion(const struct opt *opts, FILE *out)
{
    for (const struct opt *o = opts; o->type != OPT_TYPE_END; o++)
        if (o->type != OPT_TYPE_HEAD)
            fprintf(out, "--%s%s\t-%.1s\t%s\t%s\n", o->type == OPT_TYPE_FLAG && *(bool *)o->value ? "no-" : "", o->name,
                    (char[2]){o->letter}, completion_value(o), o->help);
}
