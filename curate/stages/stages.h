/* curate/stages/stages.h -- the table of all stages of curation, by which plans and accounts find them.
 *
 * A stage's own header has its settings (struct x_conf), their defaults (x_conf_init),
 * their options (X_OPTS) and x_stage_open; a command uses those directly.  Here they
 * stand behind one form for all.
 */
#ifndef CURATE_STAGES_H
#define CURATE_STAGES_H

#include "base/opt.h"
#include "comm/comm.h"
#include "curate/stream/stage.h"

enum { STAGE_MAX_OPTS = 64 };

struct stage_kind {
    const char *name; /* as the command: "clean", "dedup exact" */
    size_t conf_size;
    void (*init)(void *conf); /* sets the defaults */
    const struct stage_rule *rules; /* why it drops documents; NULL: it drops none, or says it itself (filter.h) */
    /* Fills out with the options, OPT_END included, bound to conf. */
    void (*options)(void *conf, struct opt out[STAGE_MAX_OPTS]);
    /* Makes the stage.  Strings in conf must outlive it. */
    int (*open)(struct stage *s, const void *conf, struct err *e);
    /* Makes it for one of the ranks of c, which share the documents.  NULL: it runs alone. */
    int (*open_rank)(struct stage *s, struct comm *c, const void *conf, struct err *e);
    /* The kind of a stage with the same settings that has to stand right before it.  NULL, or it gives NULL: there is none. */
    const struct stage_kind *(*before)(const void *conf);
};

/* The common form of x with its struct x_conf and options OPTS: functions x_init and x_options; and x_open, of a stage. */
#define STAGE_SETTINGS(x, OPTS)                                                \
    static void x##_init(void *conf) { x##_conf_init(conf); }                  \
    static void x##_options(void *conf, struct opt out[STAGE_MAX_OPTS])        \
    {                                                                          \
        struct x##_conf *c = conf;                                             \
        const struct opt opts[] = {OPTS(*c), OPT_END};                         \
        _Static_assert(sizeof opts <= STAGE_MAX_OPTS * sizeof *opts, "room");  \
        memcpy(out, opts, sizeof opts);                                        \
    }
#define STAGE_FORM(x, OPTS)                                                    \
    STAGE_SETTINGS(x, OPTS)                                                    \
    static int x##_open(struct stage *s, const void *conf, struct err *e)      \
    {                                                                          \
        return x##_stage_open(s, conf, e);                                     \
    }
/* A row, of a stage that drops by these rules (NULL: none); open_rank may be NULL.  _AFTER: with what may stand before it. */
#define STAGE_KIND_AFTER(name, x, rules, open_rank, before) \
    {name, sizeof(struct x##_conf), x##_init, rules, x##_options, x##_open, open_rank, before}
#define STAGE_KIND(name, x, rules, open_rank) STAGE_KIND_AFTER(name, x, rules, open_rank, NULL)
/* The kind that has to stand right before one of these settings, or NULL. */
static inline const struct stage_kind *stage_kind_before(const struct stage_kind *k, const void *conf)
{
    return k->before ? k->before(conf) : NULL;
}

/* Number i of them; NULL beyond the last.  Those whose library this build lacks are not
 * among them. */
const struct stage_kind *stage_kind_at(int i);
/* NULL if there is none of that name. */
const struct stage_kind *stage_kind_find(struct span name);
/* A rule by the names of stage and rule in the account of drops, of extract too; NULL if there is none here. */
const struct stage_rule *stage_rule_find(struct span stage, struct span rule);
#endif
