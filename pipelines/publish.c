#include "pipelines/publish.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/file_group.h"
#include "base/json.h"
#include "base/log.h"
#include "curate/report/report.h"
#include "pipelines/work.h"

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the end of the plan");
}

/* ---- outputs ---- */

/* Files of parts that become one, in order: the accounts of all, or from input `first` on what a branch gives. */
struct pieces {
    const struct plan *p;
    const struct plan_branch *docs; /* NULL: the accounts */
    int first;
    int64_t n;
};

static void name_piece(const struct pieces *x, int64_t k, char path[4096])
{
    if (x->docs)
        work_docs(x->p, x->docs->last_pass, x->first + (int)k, 0, path);
    else
        work_part(x->p, (int)(k / x->p->n_inputs), (int)(k % x->p->n_inputs), WORK_REJECTS, path);
}

static bool all_empty(const struct pieces *x)
{
    char path[4096];
    struct stat st;

    for (int64_t k = 0; k < x->n; k++) {
        name_piece(x, k, path);
        if (stat(path, &st) < 0 || st.st_size)
            return false;
    }
    return true;
}

/* The lines of a piece. */
static int put_lines(struct file_out *out, const char *path, struct err *e)
{
    static const size_t step = 256 << 10;
    char *part = malloc(step);
    struct file_in *in = NULL;
    ssize_t n = part ? file_open(&in, path, e) : no_memory(e);

    while (n >= 0 && (n = file_read(in, part, step, e)) > 0)
        if (file_write(out, part, (size_t)n, e) < 0)
            n = e->code;
    file_close(in);
    free(part);
    return (int)n;
}

/* Makes `name` of the pieces one after the other, whole or not at all; a single one is linked, if it is what the name says.
 * Of many in a folder the last one makes sure that all stay. */
static int join(const char *name, const struct pieces *x, bool last, struct err *e)
{
    enum file_codec codec = file_codec_by_name(name);
    bool lines = codec == FILE_PARQUET;
    struct file_out *out;
    char path[4096];
    int rc = 0;

    if (codec != FILE_PLAIN && all_empty(x))
        return file_write_all(name, (struct span){0}, e); /* compressed, it takes some bytes */
    if (x->n == 1 && !lines) {
        name_piece(x, 0, path);
        rc = file_publish_link(path, name, last, e);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    TRY(lines ? file_create(&out, name, 0, e) : file_create_stored(&out, name, e));
    for (int64_t k = 0; k < x->n && rc == 0; k++) {
        name_piece(x, k, path);
        rc = lines ? put_lines(out, path, e) : file_put_file(out, path, e);
    }
    if (rc == 0)
        return file_commit(out, e);
    file_abort(out);
    return rc;
}

/* The output of a branch: one file, or one for each input. */
static int join_docs(const struct plan *p, const struct plan_branch *b, struct err *e)
{
    int n = plan_to_folder(b) ? 1 : p->n_inputs;
    char name[4096];

    for (int i = 0; i < p->n_inputs; i += n) {
        plan_output_name(b, i, name);
        TRY(join(name, &(struct pieces){p, b, i, n}, i + n == p->n_inputs, e));
    }
    return 0;
}

static int join_outputs(const struct plan *p, struct err *e)
{
    const struct pieces rejects = {p, NULL, 0, (int64_t)p->n_passes * p->n_inputs};

    if (p->rejects)
        TRY(join(p->rejects, &rejects, true, e));
    for (int k = 0; k < p->n_branches; k++)
        if (p->branch[k].output)
            TRY(join_docs(p, &p->branch[k], e));
    return 0;
}

/* ---- counts ---- */

/* Adds what all parts counted to the counts, and the bad records of each input to bad. */
static int sum_parts(const struct plan *p, struct part_counts *counts, uint64_t *bad, struct err *e)
{
    for (int pass = 0; pass < p->n_passes; pass++) {
        for (int i = 0; i < p->n_inputs; i++) {
            uint64_t before = counts->flows.bad;

            TRY(part_counts_read(counts, p, pass, i, e));
            bad[i] += counts->flows.bad - before;
        }
        if (p->pass[pass].later)
            TRY(part_counts_decided(counts, p, &p->pass[pass], e));
    }
    return 0;
}

/* Adds up what all parts counted, and finds the inputs with bad records. */
static int sum_counts(const struct plan *p, struct part_counts *counts, struct curate_result *res, struct err *e)
{
    uint64_t *bad = calloc((size_t)p->n_inputs + 1, sizeof *bad);
    int rc = bad ? sum_parts(p, counts, bad, e) : no_memory(e);

    res->bad_input = calloc((size_t)p->n_inputs + 1, sizeof *res->bad_input);
    if (rc == 0 && !res->bad_input)
        rc = no_memory(e);
    for (int i = 0; i < p->n_inputs && rc == 0; i++)
        if (bad[i])
            res->bad_input[res->n_bad_inputs++] = (struct curate_bad){p->name[i], bad[i]};
    free(bad);
    return rc;
}

/* Inputs with bad records, into the object that ends b. */
static int put_bad_inputs(struct buf *b, const struct curate_result *res)
{
    while (b->n && b->p[b->n - 1] != '}')
        b->n--;
    b->n--;
    TRY(json_put_key(b, "bad_inputs"));
    TRY(buf_putc(b, '['));
    for (int i = 0; i < res->n_bad_inputs; i++) {
        TRY(buf_puts(b, i ? ",{" : "{"));
        TRY(json_put_key(b, "input"));
        TRY(json_put_name(b, res->bad_input[i].input));
        TRY(json_put_count(b, "bad", res->bad_input[i].bad));
        TRY(buf_putc(b, '}'));
    }
    return buf_puts(b, "]}\n");
}

/* The statistics of all parts, as they stand in both files that have them; what goes out is what outputs and ends get. */
static int put_stats(const struct plan *p, const struct stage *stage, const struct part_counts *counts, double start,
                     struct curate_result *res, struct buf *b, struct err *e)
{
    const struct source_ops named = {.name = p->source.kind.source ? p->source.kind.stage->name : NULL};
    const struct source source = {&named, NULL};
    const char **branch = calloc((size_t)p->n_stages + 1, sizeof *branch);
    struct stats s = {.flows = &counts->flows, .source = named.name ? &source : NULL, .stages = stage, .branch = branch,
                      .own = counts->own, .seconds = log_seconds() - start};
    int rc = branch ? 0 : ERR_NOMEM;

    for (int k = 0; k < p->n_branches && rc == 0; k++) {
        const struct plan_branch *x = &p->branch[k];
        bool out = x->output || p->pass[x->last_pass].ends;

        for (int i = x->first; i < x->last; i++)
            branch[i] = x->name;
        s.docs_out += out ? counts->flows.flow[x->last].docs_out : 0;
        s.bytes_out += out ? counts->flows.flow[x->last].bytes_out : 0;
    }
    res->docs_out = s.docs_out;
    if (rc == 0)
        rc = stats_put(b, &s);
    if (rc == 0)
        rc = put_bad_inputs(b, res);
    free(branch);
    return rc < 0 ? no_memory(e) : 0;
}

/* ---- the whole ---- */

/* The page about what was kept and dropped, of the statistics and the account as they stand. */
static int write_report(const struct plan *p, struct err *e)
{
    char *const stats = (char *)(uintptr_t)p->stats, *const rejects = (char *)(uintptr_t)p->rejects;
    const struct report_conf conf = {.stats = &stats, .n_stats = 1, .rejects = &rejects, .n_rejects = rejects != NULL, .jobs = 1,
                                     .examples = REPORT_EXAMPLES, .title = REPORT_TITLE};
    struct report r;
    struct buf b = {0};
    int rc = report_read(&r, &conf, e);

    if (rc == 0 && report_put(&r, &conf, &b) < 0)
        rc = no_memory(e);
    if (rc == 0)
        rc = file_write_all(p->report, buf_span(&b), e);
    report_free(&r);
    buf_free(&b);
    return rc;
}

/* The statistics are whole before any output appears, and the word that all is done gets its name after them. */
static int give_names(const struct plan *p, struct span stats, struct err *e)
{
    struct file_group first = {0}, last = {0};
    char path[4096];
    int rc;

    work_finished(p, path);
    rc = file_group_write(&last, path, stats, e);
    if (rc == 0 && p->stats)
        rc = file_group_write(&first, p->stats, stats, e);
    if (rc == 0)
        rc = file_group_commit(&first, e);
    if (rc == 0)
        rc = join_outputs(p, e);
    if (rc == 0 && p->report)
        rc = write_report(p, e);
    if (rc == 0)
        rc = file_group_commit(&last, e);
    file_group_abort(&first);
    file_group_abort(&last);
    return rc;
}

int publish(const struct plan *p, const struct stage *stage, struct part_counts *counts, double start, struct curate_result *res,
            struct err *e)
{
    struct buf b = {0};
    int rc;

    file_set_row_group(p->row_group);
    TRY(sum_counts(p, counts, res, e));
    if (!p->source.kind.source)
        TRY(flows_check(&counts->flows, NULL, e));
    rc = put_stats(p, stage, counts, start, res, &b, e);
    if (rc == 0)
        rc = give_names(p, buf_span(&b), e);
    buf_free(&b);
    TRY(rc);
    work_tidy(p);
    res->finished = true;
    res->docs_in = counts->flows.flow[0].docs_in;
    res->dropped = counts->flows.dropped;
    res->bad = counts->flows.bad;
    return 0;
}
