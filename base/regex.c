#include "base/regex.h"

#if HAVE_PCRE2

#include <pcre2.h>
#include <stdlib.h>

struct regex {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
};

enum { STEPS = 10000000 };

int regex_new(struct regex **out, struct span pattern, struct err *e)
{
    struct regex *x = *out = calloc(1, sizeof *x);
    PCRE2_UCHAR why[200];
    PCRE2_SIZE at = 0;
    int code = 0;

    if (!x)
        return err_set(e, ERR_NOMEM, "out of memory");
    x->code = pcre2_compile((PCRE2_SPTR)(pattern.p ? pattern.p : ""), pattern.n,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &code, &at, NULL);
    if (x->code) {
        pcre2_jit_compile(x->code, PCRE2_JIT_COMPLETE); /* without it, it is slower and no less right */
        x->data = pcre2_match_data_create_from_pattern(x->code, NULL);
        x->limits = pcre2_match_context_create(NULL);
    }
    if (x->data && x->limits) {
        pcre2_set_match_limit(x->limits, STEPS);
        return 0;
    }
    if (!x->code)
        pcre2_get_error_message(code, why, sizeof why);
    code = x->code || code == PCRE2_ERROR_HEAP_FAILED ? err_set(e, ERR_NOMEM, "out of memory for a regular expression")
                   : err_set(e, ERR_FORMAT, "the expression '%.*s': %s at %zu", (int)(pattern.n < 80 ? pattern.n : 80),
                             pattern.p ? pattern.p : "", (const char *)why, (size_t)at);
    regex_free(x);
    *out = NULL;
    return code;
}

void regex_free(struct regex *x)
{
    if (!x)
        return;
    pcre2_match_data_free(x->data);
    pcre2_match_context_free(x->limits);
    pcre2_code_free(x->code);
    free(x);
}

/* pcre2_match; what is too deep for the compiled code's stack goes to the interpreter. */
static int match(const struct regex *x, struct span text, size_t at, uint32_t options, pcre2_match_data *data)
{
    PCRE2_SPTR p = (PCRE2_SPTR)(text.p ? text.p : "");
    int n = pcre2_match(x->code, p, text.n, at, options, data, x->limits);

    return n == PCRE2_ERROR_JIT_STACKLIMIT ? pcre2_match(x->code, p, text.n, at, options | PCRE2_NO_JIT, data, x->limits) : n;
}

/* Why there was no match: 0, there is none. */
static int no_match(int n, struct err *e)
{
    if (n == PCRE2_ERROR_NOMEMORY)
        return err_set(e, ERR_NOMEM, "out of memory for a regular expression");
    return n == PCRE2_ERROR_NOMATCH ? 0 : err_set(e, ERR_LIMIT, "a regular expression takes too long (%d)", n);
}

/* The next match from *at on, which goes behind it: an empty one may stand directly behind another.  1, 0, ERR_LIMIT. */
static int next(const struct regex *x, struct span text, size_t *at, bool *empty_before, struct err *e)
{
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(x->data);

    while (*at <= text.n) {
        int n = match(x, text, *at, *empty_before ? PCRE2_NOTEMPTY_ATSTART | PCRE2_ANCHORED : 0, x->data);

        if (n > 0) {
            *empty_before = bounds[0] == bounds[1];
            *at = bounds[1];
            return 1;
        }
        TRY(no_match(n, e));
        if (!*empty_before)
            return 0;
        *empty_before = false; /* nothing else begins where the empty match was: on by a character */
        for (++*at; *at < text.n && ((unsigned char)text.p[*at] & 0xc0) == 0x80; ++*at)
            ;
    }
    return 0;
}

/* What findall gives of the match: it, its group, or the first of its groups that is not empty. */
static struct span groups(const struct regex *x, struct span text)
{
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(x->data);
    uint32_t n = pcre2_get_ovector_count(x->data);
    struct span s = {NULL, 0};

    for (uint32_t i = n > 1; i < n && s.n == 0; i++)
        if (bounds[2 * i] != PCRE2_UNSET)
            s = (struct span){text.p + bounds[2 * i], bounds[2 * i + 1] - bounds[2 * i]};
    return s;
}

int regex_find(const struct regex *x, struct span text, int64_t k, struct span *found, struct err *e)
{
    bool empty = false, several = pcre2_get_ovector_count(x->data) > 2;
    int64_t n = 0;
    size_t at = 0;
    int rc;

    if (k < 0) {
        while ((rc = next(x, text, &at, &empty, e)) > 0)
            n++;
        if (rc < 0)
            return rc;
        k += n;
        at = 0;
        empty = false;
    }
    if (k < 0)
        return 0;
    while ((rc = next(x, text, &at, &empty, e)) > 0 && k-- > 0)
        ;
    if (rc <= 0)
        return rc;
    *found = groups(x, text);
    return !several || found->n > 0;
}

int regex_has(const struct regex *x, struct span text, struct err *e)
{
    pcre2_match_data *own = pcre2_match_data_create(1, NULL);
    int n = own ? match(x, text, 0, 0, own) : PCRE2_ERROR_NOMEMORY;

    pcre2_match_data_free(own);
    return n >= 0 ? 1 : no_match(n, e); /* 0: more groups than asked for */
}

int regex_remove(const struct regex *x, struct span text, struct buf *out, struct err *e)
{
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(x->data);
    bool empty = false;
    size_t at = 0, kept = 0;
    int rc;

    while ((rc = next(x, text, &at, &empty, e)) > 0) {
        buf_put(out, text.p + kept, bounds[0] - kept);
        kept = bounds[1];
    }
    if (rc == 0 && buf_put(out, text.p ? text.p + kept : "", text.n - kept) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    return rc;
}

#else

int regex_new(struct regex **x, struct span pattern, struct err *e)
{
    *x = NULL;
    return err_set(e, ERR_UNSUPPORTED, "the expression '%.*s' needs PCRE2, which this build has not",
                   (int)(pattern.n < 80 ? pattern.n : 80), pattern.p ? pattern.p : "");
}

void regex_free(struct regex *x) { (void)x; }

int regex_find(const struct regex *x, struct span text, int64_t k, struct span *found, struct err *e)
{
    (void)x, (void)text, (void)k, (void)found;
    return err_set(e, ERR_UNSUPPORTED, "no PCRE2 here");
}

int regex_has(const struct regex *x, struct span text, struct err *e)
{
    (void)x, (void)text;
    return err_set(e, ERR_UNSUPPORTED, "no PCRE2 here");
}

int regex_remove(const struct regex *x, struct span text, struct buf *out, struct err *e)
{
    (void)x, (void)text, (void)out;
    return err_set(e, ERR_UNSUPPORTED, "no PCRE2 here");
}
#endif
