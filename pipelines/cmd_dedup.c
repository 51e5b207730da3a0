/* quern dedup exact|fuzzy|lines|substring|merge */
#include <string.h>

#include "curate/dedup/dedup_fuzzy.h"
#include "curate/stages/stages.h"
#include "curate/stream/driver.h"
#include "curate/stream/ranks.h"
#include "pipelines/folder_ranks.h"
#include "pipelines/token_cutter.h"

static struct tool tool = {
    .name = "dedup",
    .usage = "exact|fuzzy|lines|substring|merge [options] [FILE...]",
    .operands = OPT_NAMES_INPUT,
    .about = "drop documents, or strike passages, that are in the collection already",
    .details =
        "Reads documents, a JSON line each, and writes those that stay, in order; of\n"
        "duplicates the first stays.  `quern dedup KIND --help` lists the options of a kind.\n\n"
        "exact: the text is the same, byte for byte (XXH3-128), or what --key names; --key url\n"
        "--normalize url: the same page.\n\n"
        "fuzzy: the sets of shingles (some consecutive words) have at least the Jaccard\n"
        "similarity --threshold.  MinHash signatures find candidates; every candidate pair\n"
        "is then compared by its shingles, and a document is dropped only if it is itself\n"
        "close to the document that stays for it.  With --no-verify whatever shares a band\n"
        "is a duplicate, and so is what is linked by others, as in the systems that the\n"
        "presets are named after.  Presets: quern2, 5 words, or letters where a script has no\n"
        "spaces, bands and rows by the threshold; quern, 5 words, the same; datatrove, 5 words\n"
        "of simplified text, 14 bands of 8 rows; nemo, 24 characters, 20 bands of 13 rows;\n"
        "text-dedup, 5 words, 250 hashes; rpv2, 13 words, 128 hashes.\n\n"
        "lines: strikes lines, paragraphs or sentences that came before, and drops documents of\n"
        "which too little is left.  Presets: quern, lines of 30 characters or more; ccnet,\n"
        "no copy of a line stays that two documents have; dolma, lines as they are; datatrove,\n"
        "three sentences in a row, 50 words and 3 sentences must be left.\n\n"
        "substring: strikes passages of --length bytes or more that came before, wherever they\n"
        "stand, by suffix arrays; with --tokens whatever white space is between.\n\n"
        "merge: makes one index of several that `fuzzy --index` wrote: `quern dedup merge --index all.idx\n"
        "a.idx b.idx`.  What it has, in which order, is what they have; --against takes it, or all of\n"
        "them.\n\n"
        "`mpirun -n 8 quern dedup fuzzy -o kept.jsonl crawl/*.jsonl.zst` (or exact) shares the files\n"
        "among 8 ranks, on any hosts; the output is the same, and the first rank writes it.\n"
        "--memory is for each rank.\n\n"
        "Where ranks have only a folder in common (a Slurm array, spot machines), `quern dedup fuzzy\n"
        "--ranks-folder DIR --task I --tasks 8 -o kept.jsonl crawl/*.jsonl.zst` is rank I of 8: the same\n"
        "command for each, at any time, on any host.  What ranks say to one another they leave in DIR; one\n"
        "that was killed is started again, and the others wait for it.  Remove DIR when all have ended.",
    .example = "printf '{\"id\":\"a\",\"text\":\"x\"}\\n{\"id\":\"b\",\"text\":\"x\"}\\n' | "
               "quern dedup exact --rejects -",
};

enum { MAX_KINDS = 4, MAX_OPTS = (MAX_KINDS + 1) * STAGE_MAX_OPTS };

/* The options of a kind, with a heading, behind opts[n]; conf gets its defaults. */
static int add_kind(const struct stage_kind *k, void *conf, struct opt *opts, int n)
{
    struct opt own[STAGE_MAX_OPTS];

    k->init(conf);
    k->options(conf, own);
    if (own[0].type != OPT_TYPE_END)
        opts[n++] = (struct opt)OPT_HEAD(k->name);
    for (int i = 0; own[i].type != OPT_TYPE_END; i++)
        opts[n++] = own[i];
    return n;
}

/* No kind was said, or one that this build does not have. */
static int say_kinds(void)
{
    const struct stage_kind *k;
    char names[256];
    int n = 0;

    for (int i = 0; (k = stage_kind_at(i)); i++)
        if (strncmp(k->name, "dedup ", 6) == 0 && n < (int)sizeof names - 64)
            n += snprintf(names + n, sizeof names - (size_t)n, "%s'%s'", n ? ", " : "", k->name + 6);
    return tool_usage(&tool, "say which kind first, of those that this build has: %s", names);
}

static bool is_fuzzy(const struct stage_kind *k)
{
    return strcmp(k->name, "dedup fuzzy") == 0;
}

/* Options for ranks. */
struct rank_conf {
    const char *backend;
    double minutes;
    bool minutes_given;
    struct folder_ranks folder; /* in place of the backend, if it names one */
    struct work_lock lock;
};

/* opts: those that all ranks have alike, up to --stats. */
static int open_ranks(struct comm **c, struct rank_conf *r, const struct opt *opts, int n, char **argv, struct err *e)
{
    struct folder_ranks *f = &r->folder;

    if (!f->folder && f->tasks)
        return err_set(e, ERR_ARG, "--task and --tasks are for ranks of a --ranks-folder");
    if (!f->folder)
        return comm_open(c, r->backend, r->minutes * 60, e);
    f->minutes = r->minutes_given ? r->minutes : 0;
    TRY(folder_ranks_key(&f->key, opts, "stats", argv + 1, n, e));
    return folder_ranks_open(c, f, &r->lock, e);
}

/* The names that ranks make of one with a *. */
static int account_ranks(const char *what, const char *name, int ranks, struct err *e)
{
    char own[4096];

    for (int rank = 0; rank < ranks; rank++) {
        TRY(ranks_own_name(own, name, rank, e));
        TRY(run_writes(tool_files(), what, own, e));
    }
    return 0;
}

/* A '*' in an output's name is for files that each rank writes; all others the first rank writes for all. */
static int check_stars(const struct stage_kind *k, const struct opt *opts, int ranks, struct err *e)
{
    for (const struct opt *x = opts; x->type != OPT_TYPE_END; x++) {
        const char *const *name = x->value;

        if (x->names != OPT_NAMES_OUTPUT || !*name || !strchr(*name, '*') || strcmp(x->name, "rejects") == 0)
            continue;
        if (!is_fuzzy(k) || strcmp(x->name, "index") != 0)
            return err_set(e, ERR_ARG, "--%s '%s': of several ranks one writes it; --output, --rejects and the index of fuzzy "
                           "alone take a '*'", x->name, *name);
        TRY(account_ranks("--index", *name, ranks, e));
    }
    return 0;
}

/* What the whole command says of near-duplicates.  An index names the files of the texts, if these can be read again; else it
 * has a set file, which must be none of the run's others. */
static int settle_fuzzy(struct dedup_fuzzy_conf *c, int ranks, const char *rejects, int n, char **argv, struct err *e)
{
    char sets[4096];

    c->own_notes = ranks == 1;
    c->no_similarity = !c->verify && !rejects && !c->clusters && !c->index;
    c->texts = n > 0;
    for (int i = 1; i <= n; i++)
        c->texts &= !lines_is_pipe(argv[i]);
    if (c->index_sets && !c->index)
        return err_set(e, ERR_ARG, "--index-sets is beside an index: --index names none");
    if (!c->index || (c->texts && !c->index_sets))
        return 0;
    if (snprintf(sets, sizeof sets, "%s.sets", c->index) >= (int)sizeof sets)
        return err_set(e, ERR_ARG, "the name '%.100s...' is too long", c->index);
    if (ranks > 1 && strchr(sets, '*'))
        TRY(account_ranks("--index-sets", sets, ranks, e));
    else
        TRY(run_writes(tool_files(), "--index-sets", sets, e));
    return run_files_check(tool_files(), e);
}

/* Opens the stage behind *n others, which is one more then. */
static int open_stage(struct stage *s, int *n, const struct stage_kind *k, const void *conf, struct comm *ranks, struct err *e)
{
    if (ranks && !k->open_rank)
        return err_set(e, ERR_UNSUPPORTED, "'%s' is not for several ranks, but exact and fuzzy are", k->name);
    TRY(ranks ? k->open_rank(&s[*n], ranks, conf, e) : k->open(&s[*n], conf, e));
    ++*n;
    return 0;
}

static int run(const struct stage_kind *k, void *conf, const struct opt *opts, struct driver_conf *driver,
               struct rank_conf *ranks, int n, char **argv)
{
    static struct comm *c; /* not closed after a failure, and no leak */
    static struct stage stage[2];
    const struct stage_kind *before;
    struct err e;
    int rc, code, opened = 0;

    if (!k)
        return say_kinds();
    if (open_ranks(&c, ranks, opts, n, argv, &e) < 0)
        return tool_fail(&tool, &e);
    driver->ranks = c->size > 1 ? c : NULL;
    rc = driver->ranks ? check_stars(k, opts, c->size, &e) : 0;
    if (rc == 0 && is_fuzzy(k))
        rc = settle_fuzzy(conf, c->size, driver->rejects, n, argv, &e);
    if (rc == 0)
        rc = (before = stage_kind_before(k, conf)) ? open_stage(stage, &opened, before, conf, driver->ranks, &e) : 0;
    if (rc == 0)
        rc = open_stage(stage, &opened, k, conf, driver->ranks, &e);
    code = driver_some(&tool, driver, stage, opened, rc, &e, n, argv);
    if (c->size == 1 || code == EXIT_FINE || code == EXIT_SOME_BAD) /* else the launcher is to end the others */
        comm_close(c);
    work_lock_release(&ranks->lock);
    return code;
}

/* quern dedup merge */
static int merge(int argc, char **argv)
{
    const char *index = NULL, *dir = NULL;
    int64_t memory = DEDUP_FUZZY_MEMORY;
    const struct opt opts[] = {
        OPT_HEAD("dedup merge"),
        OPT_OUT(0, "index", &index, "FILE", "write the index here"),
        OPT_SIZE(0, "memory", &memory, 1 << 20, INT64_MAX, "memory for sorting"),
        OPT_FOLDER(0, "tmp", &dir, "DIR", "for temporary files, 16 bytes a band and 200 a document"),
        TOOL_OPTS(tool), OPT_END,
    };
    struct err e;
    int code, n = tool_begin(&tool, opts, argc, argv, &code);

    if (n < 0)
        return code;
    if (!index || n == 0)
        return tool_usage(&tool, "merge needs --index FILE and indexes");
    if (dedup_index_merge(index, argv + 1, n, dir, memory, &e) < 0)
        return tool_fail(&tool, &e);
    return tool_end(&tool, EXIT_FINE);
}

int main(int argc, char **argv)
{
    static struct opt opts[MAX_OPTS];
    static _Alignas(16) char conf[MAX_KINDS][4096];
    struct driver_conf driver = {0};
    struct rank_conf ranks = {.backend = "auto", .minutes = COMM_TIMEOUT_MINUTES, .lock = {.fd = -1}};
    const struct opt common[] = {
        OPT_HEAD("Documents"), DRIVER_OPTS(driver), TOOL_JOBS(tool), TOOL_PROGRESS(tool),
        OPT_STR(0, "ranks", &ranks.backend, "KIND",
                "share the files with the ranks of mpirun or srun: auto, mpi, or self (alone)"),
        OPT_FOLDER(0, "ranks-folder", &ranks.folder.folder, "DIR",
                   "share the files with ranks that have only this folder in common, each started by itself"),
        OPT_INT(0, "task", &ranks.folder.task, 0, 1000000, "with --tasks: which of them this is, from 0"),
        OPT_INT(0, "tasks", &ranks.folder.tasks, 0, 1000000,
                "ranks of the folder; 0: by RANK and WORLD_SIZE, or a Slurm array"),
        {.type = OPT_TYPE_NUM, .name = "distributed-timeout-minutes", .arg = "X", .value = &ranks.minutes, .fmin = 0.001,
         .fmax = 1e6, .given = &ranks.minutes_given,
         .help = "how long a rank may keep the others waiting in an exchange; in a folder any time, unless given"},
        TOOL_OPTS(tool), OPT_END,
    };
    const struct stage_kind *k = NULL, *other;
    char name[64];
    int code, n = 0;

    dedup_tokenizers = &token_cutter;
    if (argc > 1 && strcmp(argv[1], "merge") == 0) {
        argv[1] = argv[0];
        return merge(argc - 1, argv + 1);
    }
    snprintf(name, sizeof name, "dedup %s", argc > 1 ? argv[1] : "");
    k = stage_kind_find(span_of(name));
    if (k) {
        argv[1] = argv[0];
        argc--;
        argv++;
        n = add_kind(k, conf[0], opts, n);
    } else { /* help and the man page show them all */
        for (int i = 0, used = 0; used < MAX_KINDS && (other = stage_kind_at(i)); i++)
            if (strncmp(other->name, "dedup ", 6) == 0)
                n = add_kind(other, conf[used++], opts, n);
    }
    memcpy(opts + n, common, sizeof common);
    n = tool_begin(&tool, opts, argc, argv, &code);
    if (n >= 0)
        code = run(k, conf[0], opts, &driver, &ranks, n, argv);
    opt_lists_free(opts);
    return code;
}
