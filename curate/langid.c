#include "curate/langid.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "curate/cld2.h"

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
    l->code = langid_iso(r.code);
    l->score = strcmp(l->code, "und") == 0 ? 0 : r.percent / (r.reliable ? 100.0 : 200.0);
    return 0;
}

/* ---- the stage ---- */

struct kept {
    const char *code;
    double threshold;
};
struct langid_stage {
    struct kept *kept; /* NULL: all */
    int n;
};

/* The static spelling of a code that the detector can answer, or NULL. */
static const char *known_code(struct span s)
{
    const char *code;

    for (int i = 0; (code = cld2_code(i)) != NULL; i++)
        if (strcmp(langid_iso(code), "und") != 0 && span_is(s, langid_iso(code)))
            return langid_iso(code);
    return NULL;
}

static int parse_keep(struct langid_stage *st, const struct langid_conf *conf, struct err *e)
{
    const char *p = conf->keep;

    while (*p) {
        size_t n = strcspn(p, ","), k = strcspn(p, ":,");
        struct span code = {p, k};
        struct kept x = {known_code(code), conf->threshold};
        struct kept *more;

        if (!x.code)
            return err_set(e, ERR_ARG, "'%.*s' is no language that is recognised (ISO 639 codes are)", (int)k, p);
        if (k < n) {
            char *end;
            errno = 0;
            x.threshold = strtod(p + k + 1, &end);
            if (end != p + n || end == p + k + 1 || !(x.threshold >= 0 && x.threshold <= 1))
                return err_set(e, ERR_ARG, "'%.*s': a threshold is a number from 0 to 1", (int)n, p);
        }
        more = realloc(st->kept, (size_t)(st->n + 1) * sizeof *more);
        if (!more)
            return err_set(e, ERR_NOMEM, "no memory for a list of languages");
        st->kept = more;
        st->kept[st->n++] = x;
        p += n + (p[n] == ',');
    }
    return st->n ? 0 : err_set(e, ERR_ARG, "no language to keep is given");
}

static int langid_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    const struct langid_stage *st = stage;
    struct langid l = {0};

    (void)thread;
    (void)note;
    TRY(langid_detect(d->text, &l, e));
    if (doc_set_string(d, "lang", span_of(l.code)) < 0 || doc_set_num(d, "lang_score", l.score) < 0)
        return err_set(e, ERR_NOMEM, "no memory for a document");
    if (!st->kept)
        return 0;
    for (int i = 0; i < st->n; i++)
        if (strcmp(st->kept[i].code, l.code) == 0)
            return l.score >= st->kept[i].threshold
                       ? 0 : verdict_drop(v, "lang_score", l.score, st->kept[i].threshold);
    return verdict_drop(v, "lang", l.score, NAN);
}

static void langid_close(void *stage)
{
    struct langid_stage *st = stage;

    free(st->kept);
    free(st);
}

static const struct stage_ops ops = {.name = "langid", .work = langid_work, .close = langid_close};

void langid_conf_init(struct langid_conf *c)
{
    *c = (struct langid_conf){NULL, 0.65};
}

int langid_stage_open(struct stage *s, const struct langid_conf *conf, struct err *e)
{
    struct langid_stage *st = calloc(1, sizeof *st);
    int rc;

    if (!st)
        return err_set(e, ERR_NOMEM, "no memory to find languages");
    rc = conf->keep ? parse_keep(st, conf, e) : 0;
    if (rc < 0) {
        langid_close(st);
        return rc;
    }
    s->ops = &ops;
    s->state = st;
    return 0;
}
