/* quern dataset: info, verify, head, merge, filter, split, forget, trace. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/tool.h"
#include "indexed_dataset/idx_copy.h"
#include "indexed_dataset/idx_read.h"
#include "indexed_dataset/idx_stats.h"
#include "indexed_dataset/pages_seen.h"

static struct {
    bool json, ledger;
    int64_t step, row;
    struct opt_list ids, urls, id_files, url_files, checkpoints;
    const char *log, *cache;
    int64_t documents, skip, vocab;
    const char *output, *shares;
    int64_t seed;
    struct idx_wanted want;
} o = {.documents = 5, .want = {.max_tokens = -1}, .seed = 1, .row = -1};

/* ---- info ---- */

/* The shortest length of bin i. */
static uint64_t bin_from(int i)
{
    return i ? (uint64_t)1 << (i - 1) : 0;
}

static int print_json(const struct idx *x, const struct idx_stats *s)
{
    struct buf b = {0};
    bool first = true;

    buf_puts(&b, "{\"prefix\":");
    json_put_string(&b, span_of(idx_prefix(x)));
    buf_printf(&b, ",\"documents\":%" PRIu64 ",\"sequences\":%" PRIu64 ",\"tokens\":%" PRIu64
               ",\"dtype\":\"%s\",\"shortest\":%" PRIu64 ",\"longest\":%" PRIu64 ",\"histogram\":[",
               s->documents, s->sequences, s->tokens, idx_dtype_name(idx_dtype(x)), s->shortest, s->longest);
    for (int i = 0; i < IDX_BINS; i++) {
        if (!s->histogram[i])
            continue;
        buf_printf(&b, "%s{\"from\":%" PRIu64 ",\"documents\":%" PRIu64 "}", first ? "" : ",",
                   bin_from(i), s->histogram[i]);
        first = false;
    }
    int rc = buf_puts(&b, "]}\n");
    if (rc == 0)
        fwrite(b.p, 1, b.n, stdout);
    buf_free(&b);
    return rc;
}

static void print_text(const struct idx *x, const struct idx_stats *s)
{
    static const char bar[] = "########################################";
    uint64_t most = 1;

    printf("%s\n", idx_prefix(x));
    printf("  documents  %" PRIu64 "\n  sequences  %" PRIu64 "\n  tokens     %" PRIu64 "\n  dtype      %s\n",
           s->documents, s->sequences, s->tokens, idx_dtype_name(idx_dtype(x)));
    printf("  tokens a document: shortest %" PRIu64 ", mean %.1f, longest %" PRIu64 "\n", s->shortest,
           s->documents ? (double)s->tokens / (double)s->documents : 0.0, s->longest);
    for (int i = 0; i < IDX_BINS; i++)
        most = s->histogram[i] > most ? s->histogram[i] : most;
    for (int i = 0; i < IDX_BINS; i++) {
        double share = (double)s->histogram[i] / (double)most;
        if (s->histogram[i])
            printf("  %10" PRIu64 "+ %12" PRIu64 " %.*s\n", bin_from(i), s->histogram[i],
                   (int)(share * (sizeof bar - 1) + 0.5), bar);
    }
}

static int info(const struct idx *x, struct err *e)
{
    struct idx_stats s;

    TRY(idx_stats(&s, x, e));
    if (!o.json)
        print_text(x, &s);
    else if (print_json(x, &s) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    return 0;
}

/* ---- verify ---- */

static int verify_ledger(const struct idx *x, struct err *e)
{
    char root[2 * SHA256_SUM + 1];
    struct ledger *l;
    int rc = ledger_open(&l, idx_prefix(x), e);

    if (rc == 0 && !l)
        return err_set(e, ERR_FORMAT, "'%s.ledger' is missing", idx_prefix(x));
    if (rc == 0)
        rc = ledger_verify(l, x, e);
    if (rc == 0) {
        sha256_hex(ledger_root(l), root);
        printf("%s: its ledger is fine: root %s\n", idx_prefix(x), root);
    }
    ledger_close(l);
    return rc;
}

static int verify(const struct idx *x, int jobs, struct err *e)
{
    struct idx_report r;

    TRY(idx_verify(x, o.vocab, jobs, &r, e));
    if (o.ledger)
        TRY(verify_ledger(x, e));
    printf("%s: fine: %" PRIu64 " documents, %" PRIu64 " tokens, %s", idx_prefix(x), idx_n_documents(x), r.tokens,
           r.sums ? "checksums agree" : "no checksums to compare");
    if (r.max_id >= 0)
        printf(", largest id %" PRId64, r.max_id);
    putchar('\n');
    return 0;
}

/* ---- head ---- */

static int print_tokens(const struct idx *x, uint64_t seq, bool *first, struct err *e)
{
    int32_t ids[1024], length = idx_length(x, seq);

    TRY(idx_check_sequence(x, seq, e));
    for (int32_t at = 0; at < length;) {
        int32_t n = length - at < 1024 ? length - at : 1024;
        TRY(idx_tokens_i32(x, seq, at, n, ids, e));
        for (int32_t i = 0; i < n; i++) {
            if (ids[i] < 0)
                return err_set(e, ERR_FORMAT, "'%s': sequence %" PRIu64 " has the id %d: %s is not its type", idx_prefix(x), seq,
                               ids[i], idx_dtype_name(idx_dtype(x)));
            printf("%s%d", *first ? "" : o.json ? "," : " ", ids[i]);
            *first = false;
        }
        at += n;
    }
    return 0;
}

static int head(const struct idx *x, struct err *e)
{
    uint64_t n = idx_n_documents(x), from = (uint64_t)o.skip, first, end;

    for (uint64_t d = from; d < n && d - from < (uint64_t)o.documents; d++) {
        bool none = true;
        TRY(idx_document(x, d, &first, &end, e));
        if (o.json)
            putchar('[');
        for (; first < end; first++)
            TRY(print_tokens(x, first, &none, e));
        puts(o.json ? "]" : "");
    }
    return 0;
}

/* ---- */

/* Runs one of the above on each dataset; a faulty one is told and the next is looked at. */
static int each(const struct tool *t, const char *what, char **prefix, int n)
{
    int code = EXIT_FINE;

    for (int i = 0; i < n; i++) {
        struct idx *x;
        struct err e;
        int rc = idx_open(&x, prefix[i], &e);

        if (rc == 0)
            rc = *what == 'i' ? info(x, &e) : *what == 'v' ? verify(x, tool_jobs(t), &e) : head(x, &e);
        idx_close(x);
        if (rc == ERR_FORMAT) {
            log_msg(LOG_ERROR, "%s", e.msg);
            if (code == EXIT_FINE)
                code = EXIT_SOME_BAD;
        } else if (rc < 0) {
            code = tool_fail(t, &e);
        }
    }
    return tool_end(t, code);
}

static int merge(const struct tool *t, char **part, int n)
{
    struct err e;

    if (!o.output)
        return tool_usage(t, "merge needs --output PREFIX");
    if (idx_merge(o.output, (const char *const *)part, n, &e) < 0)
        return tool_fail(t, &e);
    return tool_end(t, EXIT_FINE);
}

static int filter(const struct tool *t, char **part, int n)
{
    uint64_t kept;
    struct err e;

    if (!o.output || n != 1)
        return tool_usage(t, "filter needs one PREFIX and --output PREFIX");
    if (idx_filter(o.output, part[0], &o.want, &kept, &e) < 0)
        return tool_fail(t, &e);
    log_msg(LOG_INFO, "%" PRIu64 " documents: '%s'", kept, o.output);
    return tool_end(t, EXIT_FINE);
}

/* "train:90,valid:10", in place: names of outputs and shares.  The number of them, or 0. */
static int cut_shares(char *list, struct buf *names, const char *prefix[IDX_SPLITS_MAX], double share[IDX_SPLITS_MAX])
{
    size_t at[IDX_SPLITS_MAX];
    int n = 0;

    for (char *p = list, *next; p; p = next, n++) {
        char *colon = strchr(p, ':'), *end;
        next = strchr(p, ',');
        if (next)
            *next++ = '\0';
        if (!colon || colon == p || n == IDX_SPLITS_MAX)
            return 0;
        *colon = '\0';
        share[n] = strtod(colon + 1, &end);
        if (end == colon + 1 || *end)
            return 0;
        for (int k = 0; k < n; k++)
            if (strcmp(names->p + at[k] + strlen(o.output) + 1, p) == 0)
                return 0;
        at[n] = names->n;
        if (buf_printf(names, "%s_%s", o.output, p) < 0 || buf_putc(names, '\0') < 0)
            return 0;
    }
    for (int k = 0; k < n; k++)
        prefix[k] = names->p + at[k];
    return n;
}

/* The files that a split writes. */
static int account(const char *const *prefix, int n, struct err *e)
{
    for (int i = 0; i < n; i++)
        TRY(run_names(tool_files(), OPT_NAMES_OUT_PREFIX, "--output", prefix[i], e));
    return run_files_check(tool_files(), e);
}

static int split(const struct tool *t, char **part, int n)
{
    const char *prefix[IDX_SPLITS_MAX];
    double share[IDX_SPLITS_MAX];
    struct buf names = {0};
    char list[4096];
    struct err e;
    int code;

    if (!o.output || !o.shares || n != 1)
        return tool_usage(t, "split needs one PREFIX, --output PREFIX and --shares");
    n = snprintf(list, sizeof list, "%s", o.shares) < (int)sizeof list ? cut_shares(list, &names, prefix, share) : 0;
    if (names.failed)
        code = tool_fail(t, &(struct err){ERR_NOMEM, "out of memory for names"});
    else if (n == 0)
        code = tool_usage(t, "--shares: not NAME:SHARE,NAME:SHARE with different names");
    else if (account(prefix, n, &e) < 0 || idx_split(prefix, share, n, part[0], (uint64_t)o.seed, &e) < 0)
        code = tool_fail(t, &e);
    else
        code = tool_end(t, EXIT_FINE);
    buf_free(&names);
    return code;
}

/* ---- forget and trace ---- */

static int read_pages(struct page_list *pages, struct err *e)
{
    TRY(page_list_add(pages, PAGE_IDS, &o.ids, e));
    TRY(page_list_add(pages, PAGE_URLS, &o.urls, e));
    TRY(page_list_read(pages, PAGE_IDS, &o.id_files, e));
    return page_list_read(pages, PAGE_URLS, &o.url_files, e);
}

/* Names the first pages that no ledger has, and counts the others. */
static void tell_missing(const struct page_list *pages, const char *where)
{
    enum { SHOWN = 20 };
    struct span name;
    size_t at = 0, n = 0;

    for (; page_list_missing(pages, &at, &name); n++)
        if (n < SHOWN)
            log_msg(LOG_WARN, "%s: no page '%.*s'", where, (int)(name.n < 400 ? name.n : 400), name.p);
    if (n > SHOWN)
        log_msg(LOG_WARN, "%s: %zu more pages are not there", where, n - SHOWN);
}

static int print_seen(void *arg, const struct pages_seen *s, struct err *e)
{
    struct buf b = {0};
    int rc;

    (void)arg;
    if (!o.json) {
        printf("%s: %s", s->checkpoint, s->documents ? "" : "saw none of them\n");
        if (s->documents)
            printf("saw %" PRIu64 " of them in %" PRIu64 " samples, the first in step %" PRId64 "\n", s->documents, s->samples,
                   s->first_step);
        return 0;
    }
    buf_puts(&b, "{\"checkpoint\":");
    json_put_name(&b, s->checkpoint);
    rc = buf_printf(&b, ",\"step\":%" PRId64 ",\"documents\":%" PRIu64 ",\"samples\":%" PRIu64 ",\"first_step\":%" PRId64 "}\n",
                    s->step, s->documents, s->samples, s->first_step);
    if (rc == 0)
        fwrite(b.p, 1, b.n, stdout);
    buf_free(&b);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}

static int forget_pages(struct page_list *pages, const char *part, int jobs, struct err *e)
{
    uint64_t kept, gone;

    TRY(read_pages(pages, e));
    for (int i = 0; i < o.checkpoints.n; i++)
        TRY(pages_seen(o.checkpoints.v[i], jobs, pages, print_seen, NULL, e));
    page_list_unfind(pages);
    TRY(idx_forget(o.output, part, pages, &kept, &gone, e));
    tell_missing(pages, part);
    log_msg(LOG_INFO, "%" PRIu64 " documents forgotten, %" PRIu64 " left: '%s'", gone, kept, o.output);
    return 0;
}

static int forget(const struct tool *t, char **part, int n)
{
    struct page_list pages = {0};
    struct err e;
    int rc;

    if (!o.output || n != 1)
        return tool_usage(t, "forget needs one PREFIX and --output PREFIX");
    if (!o.ids.n && !o.urls.n && !o.id_files.n && !o.url_files.n)
        return tool_usage(t, "forget: which pages? --ids, --urls, --id or --url");
    rc = forget_pages(&pages, part[0], tool_jobs(t), &e);
    page_list_free(&pages);
    return rc < 0 ? tool_fail(t, &e) : tool_end(t, EXIT_FINE);
}

static int print_piece(void *arg, const struct traced_piece *p, struct err *e)
{
    struct buf *b = arg;

    buf_clear(b);
    if (traced_piece_put(b, p) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    fwrite(b->p, 1, b->n, stdout);
    return 0;
}

/* What a step saw, or who saw the pages. */
static int trace_steps(struct page_list *pages, int jobs, struct err *e)
{
    const struct sample_trace_conf c = {.checkpoint = o.checkpoints.v[0], .of = -1, .log = o.log, .cache = o.cache, .jobs = jobs};
    struct sample_trace *t = NULL;
    struct buf line = {0};
    int rc = read_pages(pages, e);

    if (rc == 0)
        rc = sample_trace_open(&t, &c, e);
    if (rc == 0)
        rc = o.step ? sample_trace_step(t, o.step, o.row, print_piece, &line, e)
                    : sample_trace_find(t, pages, print_piece, &line, e);
    if (rc == 0 && !o.step)
        tell_missing(pages, o.checkpoints.v[0]);
    sample_trace_close(t);
    buf_free(&line);
    return rc;
}

static int trace(const struct tool *t)
{
    struct page_list pages = {0};
    bool names = o.ids.n || o.urls.n || o.id_files.n || o.url_files.n;
    struct err e;
    int rc;

    if (o.checkpoints.n != 1)
        return tool_usage(t, "trace needs one --checkpoint");
    if (names == (o.step > 0))
        return tool_usage(t, "trace: either --step, or pages by --ids, --urls, --id or --url");
    if (o.row >= 0 && !o.step)
        return tool_usage(t, "trace: --sample is one of a --step");
    rc = trace_steps(&pages, tool_jobs(t), &e);
    page_list_free(&pages);
    return rc < 0 ? tool_fail(t, &e) : tool_end(t, EXIT_FINE);
}

/* ---- */

static bool is_known(const char *what)
{
    static const char *const all[] = {"info", "verify", "head", "merge", "filter", "split", "forget", "trace"};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(what, all[i]) == 0)
            return true;
    return false;
}

static int run(const struct tool *t, const char *what, char **prefix, int n)
{
    if (*what == 't')
        return n ? tool_usage(t, "trace takes no PREFIX: '%s'", prefix[0]) : trace(t);
    if (n < 1)
        return tool_usage(t, "%s: of which dataset?", what);
    switch (*what) {
    case 'm': return merge(t, prefix, n);
    case 'f': return what[1] == 'o' ? forget(t, prefix, n) : filter(t, prefix, n);
    case 's': return split(t, prefix, n);
    default: return each(t, what, prefix, n);
    }
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "dataset",
        .usage = "info|verify|head|merge|filter|split|forget|trace [options] PREFIX...",
        .operands = OPT_NAMES_PREFIX,
        .action = true,
        .about = "look into indexed datasets of tokens, verify, merge and divide them",
        .details = "PREFIX names PREFIX.bin and PREFIX.idx, the format of Megatron-LM; it may end in .bin or .idx.\n"
                   "\n"
                   "info    documents, sequences, tokens, and how long the documents are\n"
                   "verify  every length, offset and document, the checksums of PREFIX.sum.json where it is,\n"
                   "        and with --vocab-size every id; exit status 1 when a dataset is faulty\n"
                   "head    the ids of the first documents, a line each\n"
                   "merge   the documents of all PREFIXes, in order, as one dataset\n"
                   "filter  the documents of one PREFIX that meet all conditions\n"
                   "split   the documents of one PREFIX divided at random, each part in the order they had: with\n"
                   "        --shares train:98,valid:2 into OUTPUT_train and OUTPUT_valid\n"
                   "forget  the documents of one PREFIX with a ledger, without the pages named; with --checkpoint\n"
                   "        says which checkpoints have seen them\n"
                   "trace   no PREFIX: of a --checkpoint, as JSON lines, the documents that a --step was trained on,\n"
                   "        or the steps that have seen the pages named. docs/provenance.md says more",
        .example = "printf '%s\\n' '{\"text\":\"One.\"}' '{\"text\":\"Two, three.\"}' >docs.jsonl\n"
                   "quern tokenizer train --vocab-size 300 -o tokenizer.json docs.jsonl\n"
                   "quern tokenize --tokenizer tokenizer.json --output-prefix my docs.jsonl\n"
                   "quern dataset info my_text_document\n"
                   "quern dataset verify --vocab-size 300 my_text_document\n"
                   "quern dataset merge -o twice my_text_document my_text_document\n"
                   "quern dataset filter -o long --min-tokens 10 twice\n"
                   "quern dataset split -o part --shares train:3,valid:1 twice\n"
                   "quern tokenize --tokenizer tokenizer.json --ledger --output-prefix known docs.jsonl\n"
                   "quern dataset forget -o less --id docs.jsonl:0 known_text_document",
    };
    const struct opt opts[] = {
        OPT_HEAD("info and head"),
        OPT_FLAG(0, "json", &o.json, "print JSON, a line a dataset or document"),
        OPT_INT('n', "documents", &o.documents, 0, INT64_MAX, "head: how many documents"),
        OPT_INT(0, "skip", &o.skip, 0, INT64_MAX, "head: documents to pass over first"),
        OPT_HEAD("verify"),
        OPT_FLAG(0, "ledger", &o.ledger, "hold PREFIX.ledger against tokens, sources and root (SHA-256)"),
        OPT_INT(0, "vocab-size", &o.vocab, 0, INT64_MAX, "ids must be below N; 0: do not look at them"),
        TOOL_JOBS(t),
        OPT_HEAD("merge, filter, split and forget"),
        OPT_FILE('o', "output", &o.output, "PREFIX", "the dataset to write; split: how their names begin",
                 OPT_NAMES_OUT_PREFIX),
        OPT_INT(0, "min-tokens", &o.want.min_tokens, 0, INT64_MAX, "filter: documents of at least so many tokens"),
        OPT_INT(0, "max-tokens", &o.want.max_tokens, -1, INT64_MAX, "filter: of at most so many; -1: no bound"),
        OPT_IN(0, "keep", &o.want.keep, "FILE", "filter: those whose number, from 0, is a line of FILE"),
        OPT_IN(0, "drop", &o.want.drop, "FILE", "filter: those whose number is not"),
        OPT_STR(0, "shares", &o.shares, "NAME:X,...", "split: the names of the parts, and their shares"),
        OPT_INT(0, "seed", &o.seed, 0, INT64_MAX, "split: another seed, another division"),
        OPT_HEAD("forget and trace"),
        OPT_IN_LIST(0, "ids", &o.id_files, "FILE", "the documents whose id is a line of FILE"),
        OPT_IN_LIST(0, "urls", &o.url_files, "FILE", "those whose URL is"),
        OPT_LIST(0, "id", &o.ids, "ID", "the document of this id"),
        OPT_LIST(0, "url", &o.urls, "URL", "those of this URL"),
        OPT_FILES(0, "checkpoint", &o.checkpoints, "DIR", "a run's checkpoints, or one of them; forget takes several",
                  OPT_NAMES_FOLDER),
        OPT_INT(0, "step", &o.step, 1, INT64_MAX, "trace: what this step was trained on"),
        OPT_INT(0, "sample", &o.row, -1, INT64_MAX, "trace: of its samples only this, from 0; -1: all"),
        OPT_IN(0, "log-file", &o.log, "FILE", "trace: the run's log, for steps after the newest checkpoint"),
        OPT_FOLDER(0, "data-cache-path", &o.cache, "DIR", "trace: the run's folder of indices, to save building them"),
        TOOL_OPTS(t),
        OPT_END,
    };
    int code, n = tool_begin(&t, opts, argc, argv, &code);
    const char *what = n > 0 ? argv[1] : "";

    if (n < 0)
        return code;
    if (!is_known(what))
        code = tool_usage(&t, n ? "'%s' is not one of info, verify, head, merge, filter, split, forget and trace"
                                : "what is to be done%s?", what);
    else
        code = run(&t, what, argv + 2, n - 1);
    opt_lists_free(opts);
    return code;
}
