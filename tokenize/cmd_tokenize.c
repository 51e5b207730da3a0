/* quern tokenize: documents to PREFIX_KEY_document.bin and .idx, or to shards of tokens. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/tool.h"
#include "base/version.h"
#include "indexed_dataset/loss_mask.h"
#include "tokenize/jobs.h"

static struct {
    const char *tokenizer, *prefix, *keys, *start;
    struct tokenizer_settings settings;
    const char *chat, *chat_date;
    int format, loss;
    int64_t shards, task, tasks, shard_tokens;
} o = {.keys = "text", .tasks = 1, .shard_tokens = 100000000};

static void report_bad(const struct line *x, const struct err *e)
{
    log_skipped(x->file, x->offset, e->msg);
}

static void tell(const struct pipeline_job *job, const struct pipeline_options *x, const struct pipeline_result *r,
                 double seconds)
{
    uint64_t tokens = 0, bytes = 0, specials = 0;

    for (int k = 0; k < (x->chat ? 1 : x->n_keys); k++) {
        tokens += r->key[k].tokens;
        bytes += r->key[k].bytes;
        specials += r->key[k].specials;
    }
    if (r->already)
        log_msg(LOG_INFO, "'%s' is done already; --again does it again", job->prefix);
    else
        log_msg(LOG_INFO, "%" PRIu64 " documents, %" PRIu64 " tokens (%s) from %.1f MB of text in %.1f s%s: '%s'",
                r->documents, tokens, r->width == 2 ? "u16" : x->format ? "u32" : "i32", (double)bytes / 1e6, seconds,
                r->resumed ? " and an earlier run" : "", job->prefix);
    if (specials)
        log_msg(LOG_WARN, "%" PRIu64 " special tokens in the text were encoded as plain text (--allow-special)",
                specials);
    if (r->bad)
        log_msg(LOG_WARN, "%" PRIu64 " lines were bad and were skipped", r->bad);
}

/* The files that this task will write. */
static int account(const struct jobs *jobs, const struct pipeline_options *x, struct err *e)
{
    static const char what[] = "--output-prefix";
    char name[4096];

    for (int k = (int)o.task; k < jobs->n; k += (int)o.tasks) {
        for (int i = 0; i < x->n_keys && x->format == PIPELINE_MEGATRON; i++) {
            snprintf(name, sizeof name, "%s_%s_document%s", jobs->job[k].prefix, x->keys[i],
                     x->chat && i == 1 ? LOSS_MASK_SUFFIX : "");
            TRY(run_names(tool_files(), OPT_NAMES_OUT_PREFIX, what, name, e));
        }
        if (x->format != PIPELINE_MEGATRON) {
            TRY(run_names(tool_files(), OPT_NAMES_FOLDER, what, jobs->job[k].prefix, e));
            snprintf(name, sizeof name, "%s_[0-9]*.%s", jobs->job[k].prefix, x->format == PIPELINE_NPY ? "npy" : "bin");
            TRY(run_writes_pattern(tool_files(), what, name, e));
        }
    }
    return run_files_check(tool_files(), e);
}

/* Checks the inputs of all that this task does, and tells their bytes to the jobs; total: all of them, NAN when not known. */
static int check_inputs(struct jobs *jobs, double *total, struct err *e)
{
    *total = 0;
    for (int k = (int)o.task; k < jobs->n; k += (int)o.tasks) {
        struct pipeline_job *job = &jobs->job[k];
        struct lines_in in = {.paths = job->paths, .n_paths = job->n_paths, .range = job->range};

        if (job->paths && !job->n_paths) /* a shard that no line begins in */
            continue;
        TRY(lines_check(&in, &job->size, e));
        job->paths = in.paths;
        job->n_paths = in.n_paths;
        *total += job->size ? (double)job->size : NAN;
    }
    return 0;
}

static int run_all(const struct tool *t, char **paths, int n, struct pipeline_options *x)
{
    struct pipeline_result r;
    uint64_t bad = 0;
    struct jobs jobs;
    struct err e;
    int rc = jobs_make(&jobs, o.prefix, (int)o.shards, paths, n, &e);

    if (rc < 0)
        return tool_fail(t, &e);
    if (o.tasks > 1 && jobs.n == 1 && !o.shards)
        log_msg(LOG_WARN, "one output cannot be divided among tasks: --shards N, or a folder as prefix");
    rc = account(&jobs, x, &e);
    if (rc == 0)
        rc = check_inputs(&jobs, &x->total, &e);
    for (int k = (int)o.task; k < jobs.n && rc == 0; k += (int)o.tasks) {
        double start = log_seconds();
        rc = pipeline_run(&jobs.job[k], x, &r, &e);
        if (rc == 0)
            tell(&jobs.job[k], x, &r, log_seconds() - start);
        bad += rc == 0 ? r.bad : 0;
        x->done += r.consumed;
    }
    jobs_free(&jobs);
    return rc < 0 ? tool_fail(t, &e) : tool_end(t, bad ? EXIT_SOME_BAD : EXIT_FINE);
}

/* The token in front of each document of a stream. */
static int64_t start_token(const struct tokenizer *t)
{
    int64_t id;

    if (o.start)
        return tokenizer_find(t, span_of(o.start));
    id = tokenizer_find(t, span_of("<|begin_of_text|>"));
    return id >= 0 ? id : tokenizer_eod(t);
}

static int with_tokenizer(const struct tool *t, struct pipeline_options *x, char **paths, int n)
{
    const char *keys[LINE_KEYS_MAX];
    char list[4096];

    if (snprintf(list, sizeof list, "%s", o.keys) >= (int)sizeof list)
        return tool_usage(t, "--json-keys is too long");
    x->keys = keys;
    x->n_keys = line_cut_keys(list, keys);
    if (x->chat) {
        keys[0] = keys[1] = "chat";
        x->n_keys = 2;
    }
    if (x->chat && x->format)
        return tool_usage(t, "--chat-template: --format megatron alone has a mask of what has a loss");
    if (x->n_keys == 0)
        return tool_usage(t, "--json-keys: at most %d different names, separated by commas", LINE_KEYS_MAX);
    if (x->format && x->n_keys > 1)
        return tool_usage(t, "--format llmc and npy write one stream: name one key");
    if (x->ledger && x->format)
        return tool_usage(t, "--ledger: --format megatron alone has documents that it could tell of");
    if (x->append_eod && tokenizer_eod(x->tokenizer) < 0)
        return tool_usage(t, "--append-eod: the tokenizer has no special token that is known to end a document: --eod-token");
    if (x->append_eod)
        pipeline_tell_eod(x->tokenizer);
    x->prepend = x->format ? start_token(x->tokenizer) : -1;
    if (x->format && x->prepend < 0 && !(o.start && !*o.start))
        return tool_usage(t, o.start ? "--start-token: the tokenizer has no '%s'"
                                     : "the tokenizer has no token%s that could begin a document: --start-token",
                          o.start ? o.start : "");
    return run_all(t, paths, n, x);
}

int main(int argc, char **argv)
{
    struct pipeline_options x = {.bad = report_bad, .version = QUERN_VERSION, .checkpoint = 30};
    struct tokenizer *tokenizer;
    struct tool t = {
        .name = "tokenize",
        .usage = "--tokenizer PATH --output-prefix PREFIX [options] [FILE...]",
        .operands = OPT_NAMES_INPUT,
        .about = "documents to an indexed dataset of tokens",
        .details =
            "Reads JSON lines (plain, .gz, .zst, .bz2, .xz or .lz4; standard input by default) and writes "
            "PREFIX_text_document.bin and .idx as Megatron's preprocess_data.py does: two bytes a token when the "
            "vocabulary is below 65,500, else four.  PREFIX_text_document.sum.json says how they were made.  The "
            "files appear when they are whole.  Lines that are no document are named and skipped.\n\n"
            "A run over files that was killed goes on when it is started again; one that is done is not done again. "
            "PREFIX with a slash behind it is a folder with a dataset for each FILE.  --shards divides the "
            "input into PREFIX-00000-of-00008_text_document and so on; quern dataset merge puts them together, and "
            "--task and --tasks share them among machines.\n\n"
            "--chat-template takes conversations (\"messages\", or \"prompt\" and \"completion\") to PREFIX_chat_document, and "
            "which tokens are answers to PREFIX_chat_document_loss_mask, for quern train --sft.\n\n"
            "--format llmc writes PREFIX_000000.bin ... for llm.c, --format npy PREFIX_000000.npy ... for NumPy: one "
            "stream, each document behind a start token.",
        .example = "printf '{\"text\":\"The mill grinds.\"}\\n' >docs.jsonl\n"
                   "quern tokenizer train --vocab-size 258 -o tokenizer.json docs.jsonl\n"
                   "quern tokenize --tokenizer tokenizer.json --append-eod --output-prefix mill docs.jsonl",
    };
    const struct opt opts[] = {
        OPT_IN(0, "tokenizer", &o.tokenizer, "PATH", "as for quern tokenizer"),
        OPT_STR(0, "pattern", &o.settings.pattern, "NAME", "as for quern tokenizer"),
        OPT_IN(0, "special-tokens-file", &o.settings.special_tokens, "FILE", "as for quern tokenizer"),
        OPT_ENUM(0, "sentencepiece", &o.settings.sentencepiece, TOKENIZER_SPM_NAMES, "as for quern tokenizer"),
        OPT_STR(0, "output-prefix", &o.prefix, "PREFIX", "the files' names but for _text_document.bin and .idx"),
        LINES_OPTS(x),
        OPT_STR(0, "json-keys", &o.keys, "KEY[,KEY]", "where a document has its texts; a dataset for each"),
        OPT_STR(0, "chat-template", &o.chat, "NAME|FILE|auto",
                "conversations, written so: " CHAT_NAMES ", Jinja in FILE, or the tokenizer's own"),
        OPT_STR(0, "chat-date", &o.chat_date, "YYYY-MM-DD", "the day that a chat template may ask for"),
        OPT_ENUM(0, "loss-on", &o.loss, "assistant|all", "conversations: which tokens have a loss"),
        OPT_FLAG(0, "append-eod", &x.append_eod, "end each document with the token for that"),
        OPT_STR(0, "eod-token", &o.settings.eod, "TOKEN", "which token that is, or its id; else what the files say"),
        OPT_FLAG(0, "allow-special", &x.allow_special, "special tokens in a text are special"),
        OPT_FLAG(0, "ledger", &x.ledger, "keep where each document came from: PREFIX_text_document.ledger"),
        OPT_HEAD("Dividing"),
        OPT_INT(0, "shards", &o.shards, 0, 99999, "so many datasets, of equal parts of the input; 0: one"),
        OPT_INT(0, "task", &o.task, 0, 99999, "which task this is, from 0"),
        OPT_INT(0, "tasks", &o.tasks, 1, 99999, "how many tasks share the datasets"),
        OPT_HEAD("Going on"),
        OPT_FLAG(0, "again", &x.again, "begin afresh, whatever an earlier run left"),
        OPT_NUM(0, "checkpoint", &x.checkpoint, 0, 1e9, "seconds of work that a killed run may lose"),
        OPT_HEAD("Other formats"),
        OPT_ENUM(0, "format", &o.format, "megatron|llmc|npy", "what to write"),
        OPT_INT(0, "shard-tokens", &o.shard_tokens, 1, INT32_MAX, "llmc, npy: tokens a file"),
        OPT_STR(0, "start-token", &o.start, "TOKEN",
                "llmc, npy: what begins a document, '' for nothing; by default <|begin_of_text|> or what ends one"),
        TOOL_OPTS(t), TOOL_PROGRESS(t), TOOL_JOBS(t), OPT_END};
    struct err e;
    struct chat *chat = NULL;
    int code, n = tool_begin(&t, opts, argc, argv, &code);

    if (n < 0)
        return code;
    if (!o.tokenizer || !o.prefix)
        return tool_usage(&t, "--tokenizer and --output-prefix are needed");
    if (o.task >= o.tasks)
        return tool_usage(&t, "task %" PRId64 " of %" PRId64 ": tasks are counted from 0", o.task, o.tasks);
    if (tokenizer_open_as(&tokenizer, o.tokenizer, &o.settings, &e) < 0)
        return tool_fail(&t, &e);
    x.tokenizer = tokenizer;
    x.threads = tool_jobs(&t);
    x.format = (enum pipeline_format)o.format;
    if (o.chat && chat_open(&chat, o.chat, o.tokenizer, o.chat_date, &e) < 0) {
        tokenizer_close(tokenizer);
        return tool_fail(&t, &e);
    }
    x.chat = chat;
    x.chat_name = o.chat;
    x.all_loss = o.loss;
    x.allow_special |= chat != NULL;
    x.shard_tokens = (uint64_t)o.shard_tokens;
    code = with_tokenizer(&t, &x, argv + 1, n);
    chat_close(chat);
    tokenizer_close(tokenizer);
    return code;
}
