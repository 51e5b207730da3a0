#include "curate/language/langid.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "curate/language/cld2.h"
#include "curate/language/langid_model.h"

/* What CLD2 calls otherwise than ISO 639 does.  Its jokes (pig latin, hacker, Klingon)
 * and its bare scripts (xx-Latn) are no languages. */
static const struct {
    const char *cld2, *iso;
} renamed[] = {
    {"iw", "he"}, {"jw", "jv"}, {"zh-Hant", "zh"}, {"sr-ME", "cnr"}, {"bh", "bho"},
    {"un", "und"}, {"xxx", "und"}, {"tlh", "und"}, {"", "und"},
};

const char *langid_iso(const char *code)
{
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(code, renamed[i].cld2) == 0)
            return renamed[i].iso;
    return strncmp(code, "xx-", 3) == 0 || strncmp(code, "zz", 2) == 0 ? "und" : code;
}

int langid_detect(struct span text, struct langid *l, struct err *e)
{
    struct cld2_result r;

    if (!cld2_detect(text.p ? text.p : "", text.n, &r))
        return err_set(e, ERR_NOMEM, "no memory to find a text's language");
    *l = (struct langid){.code = span_of(langid_iso(r.code)), .label = -1};
    l->score = span_is(l->code, "und") ? 0 : r.percent / (r.reliable ? 100.0 : 200.0);
    return 0;
}

/* ---- the stage ---- */

struct kept {
    const char *code;
    double threshold;
};
struct langid_stage {
    struct langid_conf conf;
    struct langid_model *model; /* NULL: CLD2 */
    double *floor;              /* model: threshold of each label, NAN: not kept; NULL: all kept */
    struct kept *kept;          /* CLD2: NULL: all */
    int n;
};
struct langid_thread {
    struct fasttext_scratch scratch;
    struct buf text, json;
};

/* The static spelling of a code that CLD2 can answer, or NULL. */
static const char *known_code(struct span s)
{
    const char *code;

    for (int i = 0; (code = cld2_code(i)) != NULL; i++)
        if (strcmp(langid_iso(code), "und") != 0 && span_is(s, langid_iso(code)))
            return langid_iso(code);
    return NULL;
}

/* Keeps one language.  1, or 0 if it is never answered. */
static int keep_one(struct langid_stage *st, struct span code, double threshold, struct err *e)
{
    int found = 0;
    struct kept *more;

    for (int i = 0; st->model && i < fasttext_n_labels(langid_model_fasttext(st->model)); i++)
        if (langid_model_is(st->model, i, code)) {
            st->floor[i] = threshold;
            found = 1;
        }
    if (st->model)
        return found;
    more = realloc(st->kept, (size_t)(st->n + 1) * sizeof *more);
    if (!more)
        return err_set(e, ERR_NOMEM, "no memory for a list of languages");
    st->kept = more;
    more[st->n] = (struct kept){known_code(code), threshold};
    if (!more[st->n].code)
        return 0;
    st->n++;
    return 1;
}

static int parse_keep(struct langid_stage *st, struct err *e)
{
    const char *p = st->conf.keep;
    int n_labels = st->model ? fasttext_n_labels(langid_model_fasttext(st->model)) : 0;

    if (!*p)
        return err_set(e, ERR_ARG, "no language to keep is given");
    st->floor = st->model ? malloc((size_t)n_labels * sizeof *st->floor) : NULL;
    if (st->model && !st->floor)
        return err_set(e, ERR_NOMEM, "no memory for a list of languages");
    for (int i = 0; i < n_labels; i++)
        st->floor[i] = NAN;
    while (*p) {
        size_t n = strcspn(p, ","), k = strcspn(p, ":,");
        double x = st->conf.threshold;
        int found;

        if (k < n) {
            char *end;
            errno = 0;
            x = strtod(p + k + 1, &end);
            if (end != p + n || end == p + k + 1 || !(x >= 0 && x <= 1))
                return err_set(e, ERR_ARG, "'%.*s': a threshold is a number from 0 to 1", (int)n, p);
        }
        TRY(found = keep_one(st, (struct span){p, k}, x, e));
        if (!found)
            return err_set(e, ERR_ARG, "'%.*s' is no language that is recognised (%s)", (int)k, p,
                           st->model ? "the model has no such label" : "ISO 639 codes are");
        p += n + (p[n] == ',');
    }
    return 0;
}

static int detect(const struct langid_stage *st, struct langid_thread *t, struct span text, struct langid *l,
                  struct err *e)
{
    return st->model ? langid_model_detect(st->model, &t->scratch, text, l, e) : langid_detect(text, l, e);
}

/* The threshold of a language that is kept; NAN: it is not. */
static double floor_of(const struct langid_stage *st, const struct langid *l)
{
    if (st->model)
        return l->label < 0 ? NAN : st->floor[l->label];
    for (int i = 0; i < st->n; i++)
        if (span_is(l->code, st->kept[i].code))
            return st->kept[i].threshold;
    return NAN;
}

enum { LANG, LANG_SCORE, LANG_LINES };
const struct stage_rule langid_rules[] = {
    [LANG] = {"lang", "score of the language found", "The language is none of those that are kept.", NULL, false},
    [LANG_SCORE] = {"lang_score", "score of the language", "The language is kept, but its score is too low.", "below",
                    false},
    [LANG_LINES] = {"lang_lines", "lines removed", "Nothing is left once lines in other languages are removed.", NULL,
                    false},
    {0},
};

/* Drops the document unless a kept language has its score. */
static void judge(const struct langid_stage *st, const struct langid_thread *t, const struct langid *l,
                  struct verdict *v)
{
    double threshold = floor_of(st, l);

    if (l->score >= threshold)
        return;
    for (int i = 0; l->label >= 0 && i < fasttext_n_labels(langid_model_fasttext(st->model)); i++)
        if (fasttext_score(langid_model_fasttext(st->model), &t->scratch, i) >= st->floor[i])
            return;
    verdict_drop(v, &langid_rules[isnan(threshold) ? LANG : LANG_SCORE], l->score, threshold);
}

/* Appends what lang_lines says of one line. */
static int put_line(struct buf *json, const struct langid *l)
{
    int bad = json->n > 1 ? buf_putc(json, ',') : 0;

    if (span_is(l->code, "und"))
        return bad | buf_puts(json, "null");
    bad |= buf_puts(json, "{\"lang\":") | json_put_string(json, l->code);
    return bad | buf_puts(json, ",\"score\":") | json_put_num(json, l->score) | buf_putc(json, '}');
}

static bool is_other(const struct langid_stage *st, const struct langid *line, const struct langid *whole)
{
    if (span_is(line->code, "und") || line->score < st->conf.line_threshold)
        return false;
    return st->conf.keep ? isnan(floor_of(st, line)) : !span_is(whole->code, "und") && !span_eq(line->code, whole->code);
}

static int look_at_lines(const struct langid_stage *st, struct langid_thread *t, struct doc *d, const struct langid *whole,
                         struct verdict *v, struct err *e)
{
    const char *p = d->text.p, *end = p + d->text.n;
    int64_t removed = 0;
    int bad = 0;
    bool first = true;

    buf_clear(&t->text);
    buf_clear(&t->json);
    bad |= buf_putc(&t->json, '[');
    while (p <= end && !bad) {
        const char *nl = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        struct span line = {p, (size_t)((nl ? nl : end) - p)};
        struct langid l = {.code = span_of("und"), .label = -1};
        p = nl ? nl + 1 : end + 1;
        if (line.n)
            TRY(detect(st, t, line, &l, e));
        if (st->conf.strip_lines && is_other(st, &l, whole)) {
            removed++;
            continue;
        }
        if (!first)
            bad |= buf_putc(&t->text, '\n');
        first = false;
        bad |= buf_put_span(&t->text, line) | put_line(&t->json, &l);
    }
    bad |= buf_putc(&t->json, ']');
    if (removed && !bad) {
        bad |= doc_set_string(d, "text", buf_span(&t->text));
        if (strspn(t->text.p ? t->text.p : "", " \t\r\n") >= t->text.n)
            return verdict_drop(v, &langid_rules[LANG_LINES], (double)removed, NAN);
    }
    if (st->conf.per_line && !bad)
        bad |= doc_set_raw(d, "lang_lines", buf_span(&t->json));
    return bad ? err_set(e, ERR_NOMEM, "no memory for a document") : 0;
}

static int langid_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    const struct langid_stage *st = stage;
    struct langid_thread *t = thread;
    struct langid l;

    (void)note;
    TRY(detect(st, t, d->text, &l, e));
    if (doc_set_string(d, "lang", l.code) < 0 || doc_set_num(d, "lang_score", l.score) < 0 ||
        (l.script.n && doc_set_string(d, "lang_script", l.script) < 0))
        return err_set(e, ERR_NOMEM, "no memory for a document");
    if (st->conf.keep)
        judge(st, t, &l, v);
    if (v->drop || !d->text.n || !(st->conf.per_line || st->conf.strip_lines))
        return 0;
    return look_at_lines(st, t, d, &l, v, e);
}

static int langid_thread_open(void *stage, void **thread, struct err *e)
{
    (void)stage;
    *thread = calloc(1, sizeof(struct langid_thread));
    return *thread ? 0 : err_set(e, ERR_NOMEM, "no memory to find languages");
}

static void langid_thread_close(void *stage, void *thread)
{
    struct langid_thread *t = thread;

    (void)stage;
    fasttext_scratch_free(&t->scratch);
    buf_free(&t->text);
    buf_free(&t->json);
    free(t);
}

static void langid_close(void *stage)
{
    struct langid_stage *st = stage;

    langid_model_close(st->model);
    free(st->floor);
    free(st->kept);
    free(st);
}

static const struct stage_ops ops = {
    .name = "langid",
    .thread_open = langid_thread_open,
    .thread_close = langid_thread_close,
    .work = langid_work,
    .close = langid_close,
};

void langid_conf_init(struct langid_conf *c)
{
    *c = (struct langid_conf){.threshold = 0.65, .line_threshold = 0.8};
}

int langid_stage_open(struct stage *s, const struct langid_conf *conf, struct err *e)
{
    struct langid_stage *st = calloc(1, sizeof *st);
    int rc;

    if (!st)
        return err_set(e, ERR_NOMEM, "no memory to find languages");
    st->conf = *conf;
    rc = conf->model ? langid_model_open(&st->model, conf->model, e) : 0;
    if (rc == 0 && conf->keep)
        rc = parse_keep(st, e);
    if (rc < 0) {
        langid_close(st);
        return rc;
    }
    s->ops = &ops;
    s->state = st;
    return 0;
}
