#include "curate/plan/plan.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/near.h"
#include "base/opt_map.h"
#include "base/version.h"
#include "curate/extract/walk.h"

/* The two keys whose values are not words. */
static const char input_key[] = "input", stages_key[] = "stages";

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the plan");
}

static int wrong(const struct plan *p, int line, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static int wrong(const struct plan *p, int line, struct err *e, const char *fmt, ...)
{
    char what[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return err_set(e, ERR_FORMAT, "'%s' line %d: %s", p->file, line, what);
}

/* ---- inputs ---- */

static int add_input(struct plan *p, const char *name, struct err *e)
{
    struct span copy = arena_dup(&p->arena, span_of(name));
    char **list = p->input;
    int n = p->n_inputs;

    if ((n & (n - 1)) == 0) { /* full at each power of two */
        list = arena_alloc(&p->arena, (n ? 2 * (size_t)n : 1) * sizeof *list);
        if (list && n)
            memcpy(list, p->input, (size_t)n * sizeof *list);
    }
    if (!copy.p || !list)
        return no_memory(e);
    p->input = list;
    p->input[p->n_inputs++] = (char *)(uintptr_t)copy.p;
    return 0;
}

/* A folder of JSON lines stands for its files; extract walks folders itself. */
static int add_path(struct plan *p, char *path, struct err *e)
{
    struct walk w = {0};
    struct stat st;
    int rc;

    if (p->extract || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return add_input(p, path, e);
    rc = walk_list(&w, &path, 1, e);
    for (int i = 0; i < w.n && rc == 0; i++)
        rc = add_input(p, w.file[i].path, e);
    walk_free(&w);
    return rc;
}

/* A name, or a pattern as in the shell. */
static int add_pattern(struct plan *p, const char *pattern, int line, struct err *e)
{
    glob_t g;
    int rc = glob(pattern, strpbrk(pattern, "*?[") ? GLOB_ERR : GLOB_NOCHECK, NULL, &g);

    if (rc == GLOB_NOMATCH)
        return wrong(p, line, e, "no file matches '%s'", pattern);
    if (rc == GLOB_NOSPACE)
        return err_set(e, ERR_NOMEM, "out of memory for a list of files");
    if (rc)
        return wrong(p, line, e, "cannot list '%s'", pattern);
    for (size_t i = 0; i < g.gl_pathc && rc == 0; i++)
        rc = add_path(p, g.gl_pathv[i], e);
    globfree(&g);
    return rc;
}

int plan_set_inputs(struct plan *p, char *const *names, int n, struct err *e)
{
    p->n_inputs = 0;
    for (int i = 0; i < n; i++)
        TRY(add_path(p, names[i], e));
    return 0;
}

/* ---- stages ---- */

static int add_extract(struct plan *p, const struct node *settings, struct err *e)
{
    const struct opt opts[] = {EXTRACT_OPTS(p->extract_conf), OPT_END};

    if (p->extract || p->n_stages)
        return wrong(p, settings->line, e, "extract can only be the first stage");
    p->extract = true;
    extract_conf_init(&p->extract_conf);
    return opt_set_map(opts, "extract", settings, p->file, &p->arena, e);
}

static int no_stage(const struct plan *p, int line, struct span name, struct err *e)
{
    const struct stage_kind *k;
    struct near near = near_to(name);
    char list[256] = "extract", meant[64];
    size_t at = strlen(list);

    near_try(&near, "extract");
    for (int i = 0; (k = stage_kind_at(i)) && at < sizeof list; i++) {
        at += (size_t)snprintf(list + at, sizeof list - at, ", %s", k->name);
        near_try(&near, k->name);
    }
    return wrong(p, line, e, "no stage '%.*s': there are %s%s", (int)name.n, name.p, list,
                 near_say(&near, "", meant, sizeof meant));
}

/* One of `stages`: a name, or a map of one name to settings. */
static int add_stage(struct plan *p, const struct node *n, struct err *e)
{
    static const struct node none = {.type = NODE_NULL};
    const struct node *settings = n->type == NODE_MAP ? n->child : &none;
    struct span name = n->type == NODE_MAP && n->child ? n->child->key : n->str;
    struct plan_stage *s = &p->stage[p->n_stages];
    struct opt opts[STAGE_MAX_OPTS];

    if ((n->type != NODE_MAP && n->type != NODE_STR) || (n->type == NODE_MAP && n->count != 1))
        return wrong(p, n->line, e, "a stage is a name, or one name with its settings");
    if (span_is(name, "extract"))
        return add_extract(p, settings, e);
    s->kind = stage_kind_find(name);
    s->line = n->line;
    if (!s->kind)
        return no_stage(p, n->line, name, e);
    s->conf = arena_calloc(&p->arena, 1, s->kind->conf_size + 1);
    if (!s->conf)
        return no_memory(e);
    p->n_stages++;
    s->kind->init(s->conf);
    s->kind->options(s->conf, opts);
    return opt_set_map(opts, s->kind->name, settings, p->file, &p->arena, e);
}

static int read_stages(struct plan *p, const struct node *list, struct err *e)
{
    if (list->type != NODE_LIST)
        return wrong(p, list->line, e, "stages is a list");
    p->stage = arena_calloc(&p->arena, (size_t)list->count + 1, sizeof *p->stage);
    if (!p->stage)
        return no_memory(e);
    for (const struct node *n = list->child; n; n = n->next)
        TRY(add_stage(p, n, e));
    return 0;
}

/* ---- the rest ---- */

static int read_inputs(struct plan *p, const struct node *n, struct err *e)
{
    if (n->type == NODE_STR)
        return add_pattern(p, n->str.p, n->line, e);
    if (n->type != NODE_LIST)
        return wrong(p, n->line, e, "input is a name or a list of names");
    for (const struct node *i = n->child; i; i = i->next) {
        if (i->type != NODE_STR)
            return wrong(p, i->line, e, "input is a list of names");
        TRY(add_pattern(p, i->str.p, i->line, e));
    }
    return 0;
}

static int no_key(const struct plan *p, const struct opt *opts, const struct node *n, struct err *e)
{
    struct near near = near_to(n->key);
    char list[256], meant[64];
    size_t at = (size_t)snprintf(list, sizeof list, "%s, %s", input_key, stages_key);

    near_try(&near, input_key);
    near_try(&near, stages_key);
    for (; opts->type != OPT_TYPE_END; opts++) {
        at += (size_t)snprintf(list + at, sizeof list - at, ", %s", opts->name);
        near_try(&near, opts->name);
    }
    return wrong(p, n->line, e, "a plan has no key '%.*s', but %s%s", (int)n->key.n, n->key.p, list,
                 near_say(&near, "", meant, sizeof meant));
}

static int read_key(struct plan *p, const struct opt *opts, const struct node *n, struct err *e)
{
    struct err why;

    if (span_is(n->key, stages_key) || span_is(n->key, input_key))
        return 0;
    if (!opt_find(opts, n->key.p))
        return no_key(p, opts, n, e);
    if (n->type != NODE_STR && !(n->type == NODE_BOOL && opt_find(opts, n->key.p)->type == OPT_TYPE_FLAG))
        return wrong(p, n->line, e, "%.*s needs a word", (int)n->key.n, n->key.p);
    if (opt_set(opts, n->key.p, n->str.p, &why) < 0)
        return wrong(p, n->line, e, "%s", why.msg);
    return 0;
}

static int read_plan(struct plan *p, const struct node *root, struct err *e)
{
    const struct opt opts[] = {
        OPT_STR(0, "output", &p->output, "", ""), OPT_STR(0, "rejects", &p->rejects, "", ""),
        OPT_FLAG(0, "rejects-full", &p->rejects_full, ""),
        OPT_STR(0, "stats", &p->stats, "", ""),   OPT_STR(0, "work", &p->work, "", ""),
        OPT_ENUM(0, "compress", &p->compress, "none|gz|zst", ""),
        OPT_END,
    };
    const struct node *stages = node_get(root, stages_key), *input = node_get(root, input_key);

    if (root->type != NODE_MAP)
        return wrong(p, 1, e, "a plan is a map with the keys input, stages and output");
    for (const struct node *n = root->child; n; n = n->next)
        TRY(read_key(p, opts, n, e));
    if (!stages)
        return wrong(p, root->line, e, "the plan has no stages");
    TRY(read_stages(p, stages, e)); /* first: they say what inputs are */
    return input ? read_inputs(p, input, e) : 0;
}

int plan_load(struct plan *p, const char *path, struct err *e)
{
    struct node *root;
    int rc;

    *p = (struct plan){.file = path};
    rc = node_load_yaml(&p->arena, path, &root, e);
    if (rc == 0)
        rc = read_plan(p, root, e);
    if (rc < 0)
        plan_free(p);
    return rc;
}

void plan_free(struct plan *p)
{
    struct opt opts[STAGE_MAX_OPTS];

    for (int i = 0; i < p->n_stages; i++) {
        p->stage[i].kind->options(p->stage[i].conf, opts);
        opt_lists_free(opts);
    }
    arena_free(&p->arena);
    *p = (struct plan){0};
}

bool plan_to_folder(const struct plan *p)
{
    size_t n = strlen(p->output);

    return n && p->output[n - 1] == '/';
}

enum file_codec plan_codec(const struct plan *p)
{
    if (plan_to_folder(p))
        return (enum file_codec)p->compress;
    return span_ends(span_of(p->output), ".gz") ? FILE_GZIP : span_ends(span_of(p->output), ".zst") ? FILE_ZSTD : FILE_PLAIN;
}

int plan_settle(struct plan *p, struct err *e)
{
    struct stat st;
    char *work;
    size_t n;

    if (!p->output || !*p->output || strcmp(p->output, "-") == 0)
        return err_set(e, ERR_ARG, "the plan needs an output: a file, or a folder with a slash behind it");
    if (!p->n_inputs)
        return err_set(e, ERR_ARG, "the plan has no input");
    if (p->rejects_full && !p->rejects)
        return err_set(e, ERR_ARG, "rejects-full says more in rejects, which is not given");
    if (p->compress && !plan_to_folder(p))
        return err_set(e, ERR_ARG, "compress is for a folder; a file is compressed by its name");
    for (int i = 0; i < p->n_inputs; i++) {
        if (stat(p->input[i], &st) < 0)
            return err_sys(e, ERR_IO, "cannot open '%s'", p->input[i]);
        if (access(p->input[i], R_OK) < 0)
            return err_sys(e, ERR_IO, "cannot open '%s'", p->input[i]);
        if (!S_ISREG(st.st_mode) && !(p->extract && S_ISDIR(st.st_mode)))
            return err_set(e, ERR_ARG, "'%s' is no file: what a killed run goes on from can be read again", p->input[i]);
    }
    if (p->work)
        return 0;
    n = strlen(p->output);
    while (n > 1 && p->output[n - 1] == '/')
        n--;
    work = arena_alloc(&p->arena, n + sizeof ".work");
    if (!work)
        return no_memory(e);
    memcpy(work, p->output, n);
    memcpy(work + n, ".work", sizeof ".work");
    p->work = work;
    return 0;
}

static int stage_files(struct plan *p, struct run_files *files, struct err *e)
{
    const struct opt extract[] = {EXTRACT_OPTS(p->extract_conf), OPT_END};
    struct opt opts[STAGE_MAX_OPTS];
    char before[96];

    if (p->extract)
        TRY(run_names_opts(files, extract, "extract: ", e));
    for (int i = 0; i < p->n_stages; i++) {
        p->stage[i].kind->options(p->stage[i].conf, opts);
        snprintf(before, sizeof before, "%s: ", p->stage[i].kind->name);
        TRY(run_names_opts(files, opts, before, e));
    }
    return 0;
}

static int output_files(const struct plan *p, struct run_files *files, struct err *e)
{
    static const char *const ending[] = {"", ".gz", ".zst"};
    char name[4096];

    if (!plan_to_folder(p))
        return run_writes(files, "output", p->output, e);
    for (int i = 0; i < p->n_inputs; i++) {
        snprintf(name, sizeof name, "%s%06d.jsonl%s", p->output, i, ending[plan_codec(p)]);
        TRY(run_writes(files, "output", name, e));
    }
    return 0;
}

int plan_files(struct plan *p, struct run_files *files, struct err *e)
{
    TRY(run_reads(files, "plan", p->file, e));
    for (int i = 0; i < p->n_inputs; i++)
        TRY(run_reads_tree(files, "input", p->input[i], e));
    TRY(stage_files(p, files, e));
    TRY(output_files(p, files, e));
    if (p->rejects)
        TRY(run_writes(files, "rejects", p->rejects, e));
    if (p->stats)
        TRY(run_writes(files, "stats", p->stats, e));
    TRY(run_files_check(files, e));
    return run_files_not_in(files, "work", p->work, e);
}

int plan_open_stages(const struct plan *p, struct stage *stage, struct err *e)
{
    struct err why;

    for (int i = 0; i < p->n_stages; i++) {
        int rc = p->stage[i].kind->open(&stage[i], p->stage[i].conf, &why);
        if (rc == 0)
            continue;
        for (int k = 0; k < i; k++)
            stage[k].ops->close(stage[k].state);
        return err_set(e, rc, "'%s' line %d: %s", p->file, p->stage[i].line, why.msg);
    }
    return 0;
}

void plan_close_stages(const struct plan *p, struct stage *stage)
{
    for (int i = 0; i < p->n_stages; i++)
        stage[i].ops->close(stage[i].state);
}

static int describe_options(struct buf *out, const char *name, const struct opt *opts)
{
    char text[4096];

    TRY(buf_printf(out, "%s\n", name));
    for (; opts->type != OPT_TYPE_END; opts++)
        if (opts->type != OPT_TYPE_HEAD)
            TRY(buf_printf(out, "  %s: %s\n", opts->name, opt_text(opts, text, sizeof text)));
    return 0;
}

static int describe_inputs(struct plan *p, struct buf *out)
{
    for (int i = 0; i < p->n_inputs; i++) {
        struct stat st = {0};

        (void)stat(p->input[i], &st); /* it was there a moment ago; if not, opening it will tell */
        TRY(buf_printf(out, "input %s %" PRId64 " %" PRId64 ".%09ld\n", p->input[i], (int64_t)st.st_size,
                       (int64_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec));
    }
    return 0;
}

static int describe(struct plan *p, struct buf *out)
{
    struct opt opts[STAGE_MAX_OPTS];
    const struct opt extract[] = {EXTRACT_OPTS(p->extract_conf), OPT_END};

    TRY(buf_printf(out, "quern %s\noutput %s %d\nrejects %s\n", QUERN_VERSION, p->output, p->compress,
                   p->rejects ? p->rejects : ""));
    if (p->rejects_full)
        TRY(buf_puts(out, "rejects-full\n"));
    if (p->extract)
        TRY(describe_options(out, "extract", extract));
    for (int i = 0; i < p->n_stages; i++) {
        p->stage[i].kind->options(p->stage[i].conf, opts);
        TRY(describe_options(out, p->stage[i].kind->name, opts));
    }
    return describe_inputs(p, out);
}

int plan_describe(struct plan *p, struct buf *out, struct err *e)
{
    return describe(p, out) < 0 ? no_memory(e) : 0;
}
