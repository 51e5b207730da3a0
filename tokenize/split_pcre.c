#include "tokenize/split_pcre.h"

#if HAVE_PCRE2

#include <pcre2.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tokenize/split_expression.h"

struct split_pcre {
    pcre2_code *code;
    pcre2_match_context *context;
    char *pattern;
};

/* What a match may take: the compiled code's stack, which grows up to a bound; beyond it the interpreter has the heap. */
enum { STACK_FIRST = 32 << 10, STACK_MOST = 8 << 20, HEAP_KIB = 1 << 20, MATCHES_MOST = 100000000 };

/* What a thread needs; it lives as long as the thread. */
struct own {
    pcre2_match_data *data; /* two offsets */
    pcre2_jit_stack *stack;
};

static pthread_key_t own_key;
static _Thread_local struct own *own;

static void free_own(void *p)
{
    struct own *o = p;

    pcre2_match_data_free(o->data);
    pcre2_jit_stack_free(o->stack);
    free(o);
    own = NULL;
}

static void make_key(void)
{
    pthread_key_create(&own_key, free_own);
}

/* The calling thread's; NULL: out of memory.  Without a stack the compiled code has 32 KiB of the thread's. */
static struct own *find_own(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (own)
        return own;
    pthread_once(&once, make_key);
    if (!(own = calloc(1, sizeof *own)))
        return NULL;
    own->data = pcre2_match_data_create(1, NULL);
    own->stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MOST, NULL);
    if (!own->data || pthread_setspecific(own_key, own) != 0)
        free_own(own);
    return own;
}

static pcre2_jit_stack *own_stack(void *unused)
{
    (void)unused;
    return own ? own->stack : NULL;
}

int split_pcre_new(struct split_pcre **x, const char *pattern, bool oniguruma, struct err *e)
{
    struct split_pcre *s = calloc(1, sizeof *s);
    struct buf text = {0};
    int rc = s && (s->pattern = strdup(pattern)) ? split_expression(pattern, oniguruma, &text, e)
                                                 : err_set(e, ERR_NOMEM, "out of memory for a pattern");
    int code;
    PCRE2_SIZE at;

    if (rc < 0)
        goto fail;
    s->code = pcre2_compile((PCRE2_SPTR)text.p, text.n,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_DOLLAR_ENDONLY, &code, &at,
                            NULL);
    if (!s->code) {
        PCRE2_UCHAR why[200] = "";
        pcre2_get_error_message(code, why, sizeof why);
        rc = code == PCRE2_ERROR_HEAP_FAILED
                 ? err_set(e, ERR_NOMEM, "out of memory for a pattern")
                 : err_set(e, ERR_ARG, "'%s' is neither the name of a pattern nor a regular expression: %s", pattern,
                           (const char *)why);
        goto fail;
    }
    pcre2_jit_compile(s->code, PCRE2_JIT_COMPLETE); /* without it, it is slower and no less right */
    s->context = pcre2_match_context_create(NULL);
    if (!s->context) {
        rc = err_set(e, ERR_NOMEM, "out of memory for a pattern");
        goto fail;
    }
    pcre2_set_match_limit(s->context, MATCHES_MOST);
    pcre2_set_heap_limit(s->context, HEAP_KIB);
    pcre2_jit_stack_assign(s->context, own_stack, NULL);
    buf_free(&text);
    *x = s;
    return 0;
fail:
    buf_free(&text);
    split_pcre_free(s);
    return rc;
}

void split_pcre_free(struct split_pcre *x)
{
    if (!x)
        return;
    pcre2_code_free(x->code);
    pcre2_match_context_free(x->context);
    free(x->pattern);
    free(x);
}

const char *split_pcre_pattern(const struct split_pcre *x)
{
    return x->pattern;
}

bool split_pcre_may_be_empty(const struct split_pcre *x)
{
    uint32_t may = 1;

    pcre2_pattern_info(x->code, PCRE2_INFO_MATCHEMPTY, &may);
    return may;
}

int split_pcre_match(const struct split_pcre *x, const uint8_t *text, size_t n, size_t at, bool empty, size_t bounds[2],
                     struct err *e)
{
    uint32_t options = empty ? 0 : PCRE2_NOTEMPTY;
    struct own *o = find_own();
    int rc;

    if (!o)
        return err_set(e, ERR_NOMEM, "out of memory for a pattern");
    rc = pcre2_match(x->code, (PCRE2_SPTR)text, n, at, options, o->data, x->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(x->code, (PCRE2_SPTR)text, n, at, options | PCRE2_NO_JIT, o->data, x->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    if (rc == PCRE2_ERROR_NOMEMORY)
        return err_set(e, ERR_NOMEM, "out of memory for a pattern");
    if (rc < 0) {
        PCRE2_UCHAR why[200] = "";
        pcre2_get_error_message(rc, why, sizeof why);
        return err_set(e, ERR_LIMIT, "the pattern '%.80s' cannot cut it at byte %zu: %s", x->pattern, at, (const char *)why);
    }
    bounds[0] = pcre2_get_ovector_pointer(o->data)[0];
    bounds[1] = pcre2_get_ovector_pointer(o->data)[1];
    return 1;
}

#else

int split_pcre_new(struct split_pcre **x, const char *pattern, bool oniguruma, struct err *e)
{
    (void)x, (void)oniguruma;
    return err_set(e, ERR_UNSUPPORTED, "the pattern '%s' needs PCRE2, which this build does without", pattern);
}

void split_pcre_free(struct split_pcre *x)
{
    (void)x;
}

const char *split_pcre_pattern(const struct split_pcre *x)
{
    (void)x;
    return "";
}

bool split_pcre_may_be_empty(const struct split_pcre *x)
{
    (void)x;
    return false;
}

int split_pcre_match(const struct split_pcre *x, const uint8_t *text, size_t n, size_t at, bool empty, size_t bounds[2],
                     struct err *e)
{
    (void)x, (void)text, (void)n, (void)at, (void)empty, (void)bounds;
    return err_set(e, ERR_UNSUPPORTED, "built without PCRE2");
}

#endif
