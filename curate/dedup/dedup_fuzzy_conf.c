/* Settings of near-duplicates: defaults, checks, the preset that an index has. */
#include "curate/dedup/dedup_fuzzy.h"
#include "curate/stream/note_index.h"

void dedup_fuzzy_conf_init(struct dedup_fuzzy_conf *c)
{
    *c = (struct dedup_fuzzy_conf){.threshold = 0.8, .verify = true, .report_over = 1000, .batch = DEDUP_BATCH};
}

int dedup_fuzzy_settle(const struct dedup_fuzzy_conf *c, int *bands, int *rows, struct err *e)
{
    const struct minhash_preset *p = minhash_preset_at(c->preset - 1);

    if (!(c->threshold > 0 && c->threshold <= 1))
        return err_set(e, ERR_ARG, "the threshold must be above 0 and at most 1, not %g",
                       c->threshold);
    if ((c->bands > 0) != (c->rows > 0))
        return err_set(e, ERR_ARG, "bands and rows go together");
    if (c->pairs && !c->verify)
        return err_set(e, ERR_ARG, "pairs are listed only where they are verified");
    TRY(dedup_keep_check(c->keep, c->by, e));
    if (c->cluster_size)
        TRY(dedup_size_check(c->cluster_size, e));
    if (c->keep == KEEP_NONE)
        return err_set(e, ERR_ARG, "one of the documents that are alike must stay");
    if (c->report && !c->report_over)
        return err_set(e, ERR_ARG, "a report of clusters over which size?");
    if (c->templates && !c->strip_template)
        return err_set(e, ERR_ARG, "--templates FILE is for the lines that --strip-template leaves out, which is not given");
    if (c->memory && c->memory < 128 << 20)
        return err_set(e, ERR_ARG, "memory of less than 128M");
    *bands = c->bands ? (int)c->bands : p->bands;
    *rows = c->bands ? (int)c->rows : p->rows;
    if (!*bands && p->hashes)
        minhash_optimal(c->threshold, p->hashes, bands, rows);
    else if (!*bands)
        minhash_choose(c->threshold, MINHASH_OWN_HASHES, bands, rows);
    if (*bands > MINHASH_MAX_BANDS || *rows > MINHASH_MAX || *bands * *rows > MINHASH_MAX)
        return err_set(e, ERR_ARG, "at most %d bands and %d hashes, not %d bands of %d rows",
                       MINHASH_MAX_BANDS, MINHASH_MAX, *bands, *rows);
    return 0;
}

/* The preset of an index, if none is chosen yet. */
static int take_preset(void *conf, const char *path, struct err *e)
{
    static const char ours[] = "dedup fuzzy preset=";
    struct dedup_fuzzy_conf *c = conf;
    const struct minhash_preset *p;
    char kind[NOTE_INDEX_KIND], *name = kind + sizeof ours - 1;
    int rc = c->preset ? 0 : note_index_kind(path, kind, e);

    if (rc <= 0 || strncmp(kind, ours, sizeof ours - 1) != 0)
        return rc < 0 ? rc : 0;
    name[strcspn(name, " ")] = '\0';
    for (int k = 0; (p = minhash_preset_at(k)) && !c->preset; k++)
        c->preset = strcmp(p->name, name) == 0 ? k + 1 : 0;
    if (!c->preset)
        return err_set(e, ERR_UNSUPPORTED, "'%s' is an index of preset '%s', which is none of: %s", path, name, MINHASH_PRESETS);
    return 0;
}

int dedup_fuzzy_choose_preset(struct dedup_fuzzy_conf *c, struct err *e)
{
    int rc = dedup_against_names(&c->against, take_preset, c, e);

    if (!c->preset)
        c->preset = 1;
    return rc;
}
