#include "curate/language/langid_model.h"

#include <stdlib.h>

/* ISO 639-3 and 639-1. */
static const char codes[] =
    "aaraaabkabafrafakaakalssqamhamaraararbararganasmasavaavaveaeaymayayrayazeazazjazbakbabambmbelbebenbnbisbi"
    "bodbobosbsbrebrbulbgcatcacescschachchecechucuchvcvcmnzhcorkwcoscocrecrcymcydandadeudedivdvdzodzekketellel"
    "engenepoeoesteteuseueweeefaofofasfafijfjfiltlfinfifrafrfryfyfulfffuvffgazomglagdglegaglgglglvgvgrngnguggn"
    "gujguhaththauhahbsshhebheherhzhinhihmohohrvhrhunhuhyehyiboigidoioiiiiiikeiuikuiuileieinaiaindidipkikislis"
    "itaitjavjvjpnjakalklkanknkaskskatkakaukrkazkkkhkmnkhmkmkikkikinrwkirkykmrkuknckrkomkvkonkgkorkokuakjkurku"
    "laololatlalavlvlimlilinlnlitltltzlblubluluglglvslvmahmhmalmlmarmrmkdmkmlgmgmltmtmonmnmrimimsamsmyamynauna"
    "navnvnblnrndendndongnepnenldnlnnonnnobnonornonpinenyanyociocojiojoriorormomoryorossospanpapbtpspesfaplipi"
    "pltmgpolplporptpuspsqueququyqurohrmronrorunrnrusrusagsgsansasinsislkskslvslsmesesmosmsnasnsndsdsomsosotst"
    "spaessqisqsrdscsrpsrsswsssunsuswaswswesvswhswtahtytamtatatttteltetgktgtgltlthathtirtitontotsntntsotstuktk"
    "turtrtwitwuigugukrukurduruzbuzuznuzvenvevievivolvowlnwawolwoxhoxhyddyiyidyiyoryozhazazhozhzsmmszulzu";

/* Codes of Wikipedia's, which lid.176 has as labels, that mean another language in ISO 639. */
static const char *const wikipedia[][2] = {{"als", "gsw"}, {"bh", "bho"}, {"eml", "egl"}};

struct name {
    struct span label, code, short_code, script;
};
struct langid_model {
    struct fasttext *model;
    struct name *name;
};

struct span langid_short_code(struct span iso3)
{
    size_t lo = 0, hi = sizeof codes / 5;

    while (iso3.n == 3 && lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = memcmp(iso3.p, codes + 5 * mid, 3);
        if (c == 0)
            return (struct span){codes + 5 * mid + 3, 2};
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return iso3;
}

/* A label with a script has a code of ISO 639-3; one without, a code of Wikipedia's. */
static struct name name_label(struct span label)
{
    const char *mark = label.n ? memchr(label.p, '_', label.n) : NULL;
    struct name n = {label, label, label, {0}};

    if (mark) {
        n.code.n = (size_t)(mark - label.p);
        n.script = (struct span){mark + 1, label.n - n.code.n - 1};
        n.short_code = langid_short_code(n.code);
        return n;
    }
    for (size_t i = 0; i < sizeof wikipedia / sizeof *wikipedia; i++)
        if (span_is(label, wikipedia[i][0]))
            n.short_code = span_of(wikipedia[i][1]);
    return n;
}

int langid_model_open(struct langid_model **model, const char *path, struct err *e)
{
    struct langid_model *m = calloc(1, sizeof *m);
    int n;

    *model = NULL;
    if (!m)
        return err_set(e, ERR_NOMEM, "no memory for a model");
    if (fasttext_open(&m->model, path, e) < 0) {
        free(m);
        return e->code;
    }
    n = fasttext_n_labels(m->model);
    m->name = malloc((size_t)n * sizeof *m->name);
    if (!m->name) {
        langid_model_close(m);
        return err_set(e, ERR_NOMEM, "no memory for a model");
    }
    for (int i = 0; i < n; i++)
        m->name[i] = name_label(fasttext_label_name(m->model, i));
    *model = m;
    return 0;
}

void langid_model_close(struct langid_model *m)
{
    if (!m)
        return;
    fasttext_close(m->model);
    free(m->name);
    free(m);
}

const struct fasttext *langid_model_fasttext(const struct langid_model *m) { return m->model; }

bool langid_model_is(const struct langid_model *m, int i, struct span name)
{
    const struct name *n = &m->name[i];

    return span_eq(name, n->label) || span_eq(name, n->short_code) || (n->script.n && span_eq(name, n->code));
}

int langid_model_detect(const struct langid_model *m, struct fasttext_scratch *s, struct span text,
                        struct langid *l, struct err *e)
{
    int best = fasttext_predict(m->model, s, text, e);

    if (best == -2)
        return e->code;
    *l = (struct langid){span_of("und"), {0}, 0, best};
    if (best >= 0) {
        l->code = m->name[best].short_code;
        l->script = m->name[best].script;
        l->score = fasttext_score(m->model, s, best);
    }
    return 0;
}
