#include "pipelines/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/http.h"
#include "base/version.h"
#include "curate/extract/walk.h"
#include "pipelines/plan_keep.h"
#include "pipelines/plan_read.h"
#include "tokenize/tokenizer.h"

bool plan_to_folder(const struct plan_branch *b)
{
    return span_ends(span_of(b->output), "/");
}

enum file_codec plan_codec_of(const char *name)
{
    enum file_codec codec = file_codec_by_name(name);

    return codec == FILE_PARQUET ? FILE_ZSTD : codec;
}

enum file_codec plan_codec(const struct plan_branch *b)
{
    return plan_to_folder(b) ? (enum file_codec)b->compress : plan_codec_of(b->output);
}

void plan_output_name(const struct plan_branch *b, int input, char name[4096])
{
    static const char *const ending[] = {"", ".gz", ".zst"};

    if (plan_to_folder(b))
        snprintf(name, 4096, "%s%06d.jsonl%s", b->output, input, ending[plan_codec(b)]);
    else
        snprintf(name, 4096, "%s", b->output);
}

void plan_group(const struct plan *p, const struct plan_pass *pass, int group, int *first, int *last)
{
    *first = (int)((int64_t)p->n_inputs * group / pass->groups);
    *last = (int)((int64_t)p->n_inputs * (group + 1) / pass->groups);
}

/* ---- checking ---- */

/* The end of a branch; NULL: it has none. */
static const struct plan_node *end_of(const struct plan_branch *b)
{
    return b->n_nodes && b->node[b->n_nodes - 1].kind.end ? &b->node[b->n_nodes - 1] : NULL;
}

/* What a branch gives, and that it gives something. */
static int check_branch(const struct plan *p, const struct plan_branch *b, struct err *e)
{
    const struct plan_node *end = end_of(b);

    if (end && b->output)
        return plan_wrong(p, end->line, e, "%s ends its branch, so no documents are left for output '%s': give it a branch"
                          " of its own", end->kind.stage->name, b->output);
    if (end && b->routes.n)
        return plan_wrong(p, end->line, e, "%s ends its branch, so no documents are left for '%s'", end->kind.stage->name,
                          b->routes.route[0].name);
    if (b->compress && !(b->output && plan_to_folder(b)))
        return plan_wrong(p, b->line, e, "compress is for a folder; a file is compressed by its name");
    if (b->output ? *b->output && strcmp(b->output, "-") != 0 : end || b->routes.n)
        return 0;
    if (!b->name)
        return err_set(e, ERR_ARG, "the plan needs an output: a file, or a folder with a slash behind it");
    return plan_wrong(p, b->line, e, "branch '%s' gives nothing: it needs an output (a file, or a folder with a slash behind"
                      " it), a last stage such as tokenize, or a branch that reads it", b->name);
}

/* Every branch that is read learns by whom, and every one that reads which file. */
static int connect(struct plan *p, struct err *e)
{
    int *readers = arena_calloc(&p->arena, (size_t)p->n_branches, sizeof *readers);

    for (int i = 0; readers && i < p->n_branches; i++)
        for (int k = 0; k < p->branch[i].n_from; k++)
            readers[p->branch[i].from[k]]++;
    for (int i = 0; i < p->n_branches; i++) {
        struct plan_branch *b = &p->branch[i];

        b->routes.kept = b->output != NULL;
        b->routes.route = readers ? arena_calloc(&p->arena, (size_t)readers[i] + 1, sizeof *b->routes.route) : NULL;
        if (!b->routes.route)
            return plan_no_memory(e);
        for (int k = 0; k < b->n_from; k++) {
            struct plan_branch *from = &p->branch[b->from[k]];

            b->out[k] = from->routes.kept + from->routes.n;
            from->routes.route[from->routes.n++] = b->route;
        }
    }
    return 0;
}

/* A node among the stages of the plan, behind the one that has to stand before it. */
static void line_up_node(struct plan *p, const struct plan_node *n)
{
    const struct stage_kind *before = stage_kind_before(n->kind.stage, n->conf);

    if (before)
        p->stage[p->n_stages++] = (struct plan_node){{.stage = before}, n->conf, n->line};
    p->stage[p->n_stages++] = *n;
}

/* The nodes of all branches, one after the other, each with what sends its documents on; a branch without any has that too,
 * which counts.  There is room for one more in each. */
static int line_up(struct plan *p, struct err *e)
{
    size_t n = 1;

    for (int i = 0; i < p->n_branches; i++)
        n += 2 * (size_t)p->branch[i].n_nodes + 2;
    p->stage = arena_calloc(&p->arena, n, sizeof *p->stage);
    if (!p->stage)
        return plan_no_memory(e);
    for (int i = 0; i < p->n_branches; i++) {
        struct plan_branch *b = &p->branch[i];

        b->first = p->n_stages;
        for (int k = 0; k < b->n_nodes; k++)
            line_up_node(p, &b->node[k]);
        if (b->routes.n || (b->name && !b->n_nodes))
            p->stage[p->n_stages++] = (struct plan_node){{.stage = &node_router}, &b->routes, b->line};
        b->last = p->n_stages;
    }
    return 0;
}

static int check_inputs(const struct plan *p, struct err *e)
{
    struct stat st;

    if (!p->n_inputs)
        return err_set(e, ERR_ARG, "the plan has no input");
    for (int i = 0; i < p->n_inputs; i++) {
        if (http_is_address(p->input[i])) { /* whether it is there is seen when it is read */
            TRY(http_check(p->input[i], e));
            continue;
        }
        if (stat(p->input[i], &st) < 0 || access(p->input[i], R_OK) < 0)
            return err_sys(e, ERR_IO, "cannot open '%s'", p->input[i]);
        if (!S_ISREG(st.st_mode) && !(p->source.kind.source && S_ISDIR(st.st_mode)))
            return err_set(e, ERR_ARG, "'%s' is no file: what a killed run goes on from can be read again", p->input[i]);
    }
    return 0;
}

/* What has this name has a folder to stand in; unless the name is only how others begin, it is a file or folder as it says. */
static int check_place(const char *name, bool begins, struct err *e)
{
    size_t n = strlen(name);
    bool folder = n && name[n - 1] == '/';
    char *bare, *real;
    struct stat st;
    int rc = 0;

    if (http_is_address(name))
        return file_check_suffix(name, e);
    while (n > 1 && name[n - 1] == '/')
        n--;
    bare = strndup(name, n);
    real = bare ? file_resolve(bare) : NULL;
    if (!real)
        rc = err_sys(e, ERR_IO, "cannot write '%s'", name);
    else if (!begins && stat(real, &st) == 0 && S_ISDIR(st.st_mode) != folder)
        rc = err_set(e, ERR_ARG, folder ? "'%s' is no folder" : "'%s' is a folder", name);
    free(bare);
    free(real);
    return rc;
}

/* Of a branch or its end. */
static int check_branch_place(const struct plan_branch *b, struct err *e)
{
    const struct plan_node *end = end_of(b);
    const char *name = end ? end->kind.end->name(end->conf, e) : b->output;

    if (end && !name)
        return e->code;
    return name ? check_place(name, end != NULL, e) : 0;
}

int plan_check_places(const struct plan *p, struct err *e)
{
    const char *const own[] = {p->rejects, p->stats, p->report};

    for (int i = 0; i < 3; i++)
        if (own[i])
            TRY(check_place(own[i], false, e));
    for (int i = 0; i < p->n_branches; i++) {
        const struct plan_branch *b = &p->branch[i];
        int line = end_of(b) ? end_of(b)->line : b->line;

        if (check_branch_place(b, e) < 0)
            return b->name || end_of(b) ? err_wrap(e, "'%s' line %d", p->file, line) : e->code;
    }
    return 0;
}

/* The work folder is called after the first thing that the plan makes. */
static int name_work(struct plan *p, struct err *e)
{
    const char *name = "";
    struct buf b = {0};
    size_t n;

    for (int i = 0; i < p->n_branches && !*name; i++)
        if (p->branch[i].output)
            name = p->branch[i].output;
    for (int i = 0; i < p->n_branches && !*name; i++)
        if (end_of(&p->branch[i]))
            name = end_of(&p->branch[i])->kind.end->name(end_of(&p->branch[i])->conf, e);
    if (http_is_address(name))
        return err_set(e, ERR_ARG, "the plan's output is an address: work has to name a folder");
    n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        n--;
    if (buf_put(&b, name, n) == 0 && buf_puts(&b, ".work") == 0)
        p->work = arena_dup(&p->arena, buf_span(&b)).p;
    buf_free(&b);
    return p->work ? 0 : plan_no_memory(e);
}

int plan_settle(struct plan *p, struct err *e)
{
    TRY(connect(p, e));
    for (int i = 0; i < p->n_branches; i++)
        TRY(check_branch(p, &p->branch[i], e));
    if (p->columns && p->source.kind.source)
        return err_set(e, ERR_ARG, "columns are those of inputs in Parquet; a plan that begins with a format has none");
    if (p->text_key && p->source.kind.source)
        return err_set(e, ERR_ARG, "json-key is of JSON lines; a plan that begins with a format has none");
    if (p->rejects_full && !p->rejects)
        return err_set(e, ERR_ARG, "rejects-full says more in rejects, which is not given");
    if (p->report && !p->stats)
        return err_set(e, ERR_ARG, "report is made of stats, which is not given");
    TRY(check_inputs(p, e));
    TRY(plan_check_places(p, e));
    TRY(line_up(p, e));
    return p->work ? 0 : name_work(p, e);
}

static int stage_files(const struct plan *p, const struct plan_node *n, struct run_files *files, struct err *e)
{
    struct opt opts[STAGE_MAX_OPTS];
    char before[96];

    n->kind.stage->options(n->conf, opts);
    snprintf(before, sizeof before, "line %d, %s: ", n->line, n->kind.stage->name);
    TRY(run_names_opts(files, opts, before, e));
    if (!n->kind.end || !n->kind.end->files || n->kind.end->files(n->conf, p->n_inputs, before, files, e) == 0)
        return 0;
    return err_wrap(e, "'%s' line %d", p->file, n->line);
}

static int output_files(const struct plan *p, const struct plan_branch *b, struct run_files *files, struct err *e)
{
    char name[4096], what[64];

    snprintf(what, sizeof what, "line %d, output", b->line);
    for (int i = 0; b->output && i < (plan_to_folder(b) ? p->n_inputs : 1); i++) {
        plan_output_name(b, i, name);
        TRY(run_writes(files, b->name ? what : "output", name, e));
    }
    return 0;
}

/* The lists of pages that are to be forgotten at the cuts. */
static int forget_files(struct plan *p, struct run_files *files, struct err *e)
{
    const struct opt opts[] = {FORGET_OPTS(p->forget), OPT_END};

    return run_names_opts(files, opts, "--forget-", e);
}

/* A folder whose files are the plan's. */
static int own_folder(struct run_files *files, const char *what, const char *folder, struct err *e)
{
    TRY(run_names(files, OPT_NAMES_FOLDER, what, folder, e));
    return run_files_not_in(files, what, folder, e);
}

int plan_files(struct plan *p, struct run_files *files, struct err *e)
{
    TRY(run_reads(files, "plan", p->file, e));
    for (int i = 0; i < p->n_inputs; i++)
        TRY(run_reads_tree(files, "input", p->input[i], e));
    if (p->source.kind.source)
        TRY(stage_files(p, &p->source, files, e));
    for (int i = 0; i < p->n_stages; i++)
        TRY(stage_files(p, &p->stage[i], files, e));
    for (int i = 0; i < p->n_branches; i++)
        TRY(output_files(p, &p->branch[i], files, e));
    if (p->rejects)
        TRY(run_writes(files, "rejects", p->rejects, e));
    if (p->stats)
        TRY(run_writes(files, "stats", p->stats, e));
    if (p->report)
        TRY(run_writes(files, "report", p->report, e));
    TRY(forget_files(p, files, e));
    TRY(run_files_check(files, e));
    if (p->keep)
        TRY(own_folder(files, "keep", p->keep, e));
    return own_folder(files, "work", p->work, e);
}

/* ---- running ---- */

static int open_stages(const struct plan *p, struct comm *c, struct stage *stage, struct err *e)
{
    struct err why;

    for (int i = 0; i < p->n_stages; i++) {
        const struct stage_kind *kind = p->stage[i].kind.stage;
        int rc = c && kind->open_rank ? kind->open_rank(&stage[i], c, p->stage[i].conf, &why)
                                      : kind->open(&stage[i], p->stage[i].conf, &why);
        if (rc == 0)
            continue;
        for (int k = 0; k < i; k++)
            stage[k].ops->close(stage[k].state);
        return err_set(e, rc, "'%s' line %d: %s", p->file, p->stage[i].line, why.msg);
    }
    return 0;
}

int plan_open_stages(struct plan *p, struct comm *c, struct stage **stage, struct err *e)
{
    int rc;

    *stage = calloc((size_t)(p->n_stages + p->n_branches) + 1, sizeof **stage);
    if (!*stage)
        return plan_no_memory(e);
    rc = open_stages(p, c, *stage, e);
    if (rc < 0) {
        free(*stage);
        return rc;
    }
    if (p->keep)
        rc = plan_find_cuts(p, *stage, e);
    if (rc < 0)
        plan_close_stages(p, *stage);
    return rc;
}

void plan_close_stages(const struct plan *p, struct stage *stage)
{
    for (int i = 0; i < p->n_stages; i++)
        stage[i].ops->close(stage[i].state);
    free(stage);
}

/* The pass of a branch that comes after another one of it, or is its first (NULL). */
static struct plan_pass next_pass(const struct plan *p, const struct stage *stage, int branch, const struct plan_pass *before)
{
    const struct plan_branch *b = &p->branch[branch];
    int first = before ? before->last : b->first;
    struct plan_pass c = {.number = p->n_passes, .branch = branch, .first = first, .last = first,
                          .kept = p->keep && b->alone && !before, .follows = before != NULL, .judged = before && before->later,
                          .groups = 1};
    bool cut = c.kept && b->cut >= 0;
    const struct plan_node *last;

    while (c.last < (cut ? b->cut : b->last) && !c.later)
        c.later = stage[c.last++].ops->commit != NULL;
    last = c.later ? &p->stage[c.last - 1] : NULL;
    if (last && last->kind.end) {
        c.ends = true;
        if (last->kind.end->groups)
            c.groups = last->kind.end->groups(last->conf, p->n_inputs);
    }
    c.goes_on = cut || (c.later && !c.ends);
    return c;
}

int plan_cut(struct plan *p, const struct stage *stage, struct err *e)
{
    p->pass = arena_calloc(&p->arena, (size_t)(p->n_stages + 2 * p->n_branches), sizeof *p->pass);
    if (!p->pass)
        return plan_no_memory(e);
    p->n_passes = 0;
    for (int i = 0; i < p->n_branches; i++) {
        const struct plan_pass *before = NULL;

        do {
            p->pass[p->n_passes] = next_pass(p, stage, i, before);
            before = &p->pass[p->n_passes++];
        } while (before->goes_on);
        p->branch[i].last_pass = before->number;
    }
    return 0;
}

/* ---- what it does, as text ---- */

/* What a run reads: its name, size and time. */
static int describe_file(struct buf *out, const char *what, const char *name)
{
    struct stat st = {0};

    (void)stat(name, &st); /* it was there a moment ago; if not, opening it will tell */
    return buf_printf(out, "%s %s %" PRId64 " %" PRId64 ".%09ld\n", what, name, (int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec,
                      st.st_mtim.tv_nsec);
}

/* The files in a folder, by one hash of names, sizes and times. */
static int describe_folder(struct buf *out, char *path)
{
    struct buf b = {0};
    struct walk w = {0};
    struct err e;
    uint64_t hash = 0;
    int rc = walk_list(&w, &path, 1, &e);

    for (int i = 0; i < w.n && rc == 0; i++) {
        buf_clear(&b);
        rc = buf_printf(&b, "%016" PRIx64, hash);
        if (rc == 0)
            rc = describe_file(&b, "", w.file[i].path);
        hash = hash_xxh3_64(buf_span(&b));
    }
    if (rc == 0)
        rc = buf_printf(out, "  files %d %016" PRIx64 "\n", w.n, hash);
    walk_free(&w);
    buf_free(&b);
    return rc == ERR_NOMEM ? rc : 0; /* reading it will tell */
}

/* One that a setting reads, or all in a folder; with describe_file's line. */
static int describe_read(void *out, const char *name)
{
    union { const char *in; char *out; } path = {name};
    struct stat st;

    if (stat(name, &st) < 0)
        return 0;
    TRY(describe_file(out, "    file", name));
    return S_ISDIR(st.st_mode) ? describe_folder(out, path.out) : 0;
}

/* What a setting of this value reads. */
static int describe_value(struct buf *out, const struct opt *o, const char *value)
{
    const char *colon = o->names == OPT_NAMES_TAGGED ? strchr(value, ':') : NULL;

    if (strcmp(o->name, "tokenizer") == 0)
        return tokenizer_files(value, describe_read, out);
    return describe_read(out, colon ? colon + 1 : value);
}

/* Files that settings name and that are read; a model's checkpoint is a folder. */
static int describe_files(struct buf *out, const struct opt *o)
{
    const char *const *value = o->value;
    const struct opt_list *l = o->value;

    if (o->names != OPT_NAMES_INPUT && o->names != OPT_NAMES_TAGGED && strcmp(o->name, "load") != 0)
        return 0;
    if (o->type == OPT_TYPE_STR && *value)
        return describe_value(out, o, *value);
    for (int i = 0; o->type == OPT_TYPE_LIST && i < l->n; i++)
        TRY(describe_value(out, o, l->v[i]));
    return 0;
}

static int describe_node(struct buf *out, const struct plan_node *n)
{
    struct opt opts[STAGE_MAX_OPTS], *o = opts;

    n->kind.stage->options(n->conf, opts);
    TRY(buf_printf(out, "%s\n", n->kind.stage->name));
    for (; o->type != OPT_TYPE_END; o++)
        if (o->type != OPT_TYPE_HEAD) {
            TRY(buf_printf(out, "  %s: ", o->name));
            TRY(opt_put_text(out, o));
            TRY(buf_putc(out, '\n'));
            TRY(describe_files(out, o));
        }
    return 0;
}

/* What a branch reads, and, unless that is not wanted, where it goes. */
static int describe_reading(struct buf *out, const struct plan *p, const struct plan_branch *b, bool output)
{
    TRY(buf_printf(out, "branch %s\n  from:", b->name));
    for (int i = 0; i < b->n_from; i++)
        TRY(buf_printf(out, " %s", b->from[i] ? p->branch[b->from[i]].name : "stages"));
    TRY(buf_printf(out, "\n  if:%s", b->route.otherwise ? " else" : ""));
    for (int i = 0; i < b->route.n_tests; i++)
        TRY(buf_printf(out, "%s %s", i ? "," : "", where_text(b->route.test[i])));
    return output ? buf_printf(out, "\n  output: %s %d\n", b->output ? b->output : "", b->compress) : buf_putc(out, '\n');
}

/* What documents are made of, as inputs have them. */
static int describe_source(struct buf *out, const struct plan *p)
{
    if (p->columns)
        TRY(buf_printf(out, "columns %s\n", p->columns));
    if (p->text_key)
        TRY(buf_printf(out, "json-key %s\n", p->text_key));
    if (p->rejects_full)
        TRY(buf_puts(out, "rejects-full\n"));
    return p->source.kind.source ? describe_node(out, &p->source) : 0;
}

static int describe_inputs(struct buf *out, const struct plan *p)
{
    struct stat st;

    for (int i = 0; i < p->n_inputs; i++) {
        TRY(describe_file(out, "input", p->name[i]));
        if (stat(p->input[i], &st) == 0 && S_ISDIR(st.st_mode))
            TRY(describe_folder(out, p->input[i]));
    }
    return 0;
}

static int describe(struct buf *out, const struct plan *p)
{
    const struct plan_branch *b = p->branch;

    TRY(buf_printf(out, "quern %s\noutput %s %d\nrejects %s\n", QUERN_VERSION, b->output ? b->output : "", b->compress,
                   p->rejects ? p->rejects : ""));
    if (p->row_group)
        TRY(buf_printf(out, "row-group-size %" PRId64 "\n", p->row_group));
    if (p->keep)
        TRY(buf_printf(out, "keep %s\n", p->keep));
    TRY(describe_source(out, p));
    for (int i = 0; i < p->n_branches; i++) {
        if (b[i].name)
            TRY(describe_reading(out, p, &b[i], true));
        for (int k = 0; k < b[i].n_nodes; k++)
            TRY(describe_node(out, &b[i].node[k]));
    }
    return describe_inputs(out, p);
}

/* Files there have the number of their branch in their names, and their accounts are compressed as rejects are. */
static int describe_kept(struct buf *out, const struct plan *p)
{
    TRY(buf_printf(out, "quern %s\nrejects %d\n", QUERN_VERSION, p->rejects ? (int)plan_codec_of(p->rejects) : -1));
    TRY(describe_source(out, p));
    for (int i = 0; i < p->n_branches; i++) {
        const struct plan_branch *b = &p->branch[i];
        int n = b->cut >= 0 ? b->cut - b->first : b->n_nodes;

        if (!b->alone)
            continue;
        TRY(buf_printf(out, "kept %d\n", i));
        if (b->name)
            TRY(describe_reading(out, p, b, false));
        for (int k = 0; k < n; k++)
            TRY(describe_node(out, &b->node[k]));
    }
    return describe_inputs(out, p);
}

int plan_describe_kept(struct plan *p, struct buf *out, struct err *e)
{
    return describe_kept(out, p) < 0 ? plan_no_memory(e) : 0;
}

int plan_describe(struct plan *p, struct buf *out, struct err *e)
{
    return describe(out, p) < 0 ? plan_no_memory(e) : 0;
}
