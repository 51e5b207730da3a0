/* quern tokenize: documents to PREFIX_KEY_document.bin and .idx. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/tool.h"
#include "tokenize/pipeline.h"

static void report_bad(const struct corpus_line *x, const struct err *e)
{
    log_msg(LOG_WARN, "'%s', offset %" PRIu64 ": %s: skipped", x->file, x->offset, e->msg);
}

static int run_all(const struct tool *t, const char *prefix, char **paths, int n, struct pipeline_options *x)
{
    struct pipeline_result r;
    char path[4096];
    double start = log_seconds(), seconds;
    struct err e;

    if ((size_t)snprintf(path, sizeof path, "%s_%s_document", prefix, x->key) >= sizeof path)
        return tool_usage(t, "--output-prefix is too long");
    x->prefix = path;
    if (x->append_eod && tokenizer_eod(x->tokenizer) < 0)
        return tool_usage(t, "--append-eod: the tokenizer has no token that ends a document");
    if (pipeline_run(paths, n, x, &r, &e) < 0)
        return tool_fail(t, &e);
    seconds = log_seconds() - start;
    log_msg(LOG_INFO, "%" PRIu64 " documents, %" PRIu64 " tokens (%s) from %.1f MB of text in %.1f s: '%s.bin'",
            r.documents, r.tokens, r.width == 2 ? "u16" : "i32", (double)r.bytes / 1e6, seconds, path);
    if (r.specials)
        log_msg(LOG_WARN, "%" PRIu64 " special tokens in the text were encoded as plain text (--allow-special)",
                r.specials);
    if (r.bad)
        log_msg(LOG_WARN, "%" PRIu64 " lines were bad and were skipped", r.bad);
    return tool_end(t, r.bad ? EXIT_SOME_BAD : EXIT_FINE);
}

int main(int argc, char **argv)
{
    const char *path = NULL, *pattern = NULL, *prefix = NULL;
    struct pipeline_options x = {.key = "text", .bad = report_bad};
    struct tokenizer *tokenizer;
    struct tool t = {
        .name = "tokenize",
        .usage = "--tokenizer PATH --output-prefix PREFIX [options] [FILE...]",
        .about = "documents to an indexed dataset of tokens",
        .details =
            "Reads JSON lines (plain, .gz or .zst; standard input by default) and writes\n"
            "PREFIX_text_document.bin and .idx as Megatron's preprocess_data.py does: two bytes a token when the\n"
            "vocabulary is below 65,500, else four.  PREFIX_text_document.sum.json says how they were made.  The\n"
            "files appear when they are whole.  Lines that are no document are named and skipped.",
        .example = "printf '{\"text\":\"The mill grinds.\"}\\n' >docs.jsonl\n"
                   "quern tokenizer train --vocab-size 258 -o tokenizer.json docs.jsonl\n"
                   "quern tokenize --tokenizer tokenizer.json --append-eod --output-prefix mill docs.jsonl",
    };
    const struct opt opts[] = {
        OPT_STR(0, "tokenizer", &path, "PATH", "as for quern tokenizer"),
        OPT_STR(0, "pattern", &pattern, "NAME", "as for quern tokenizer"),
        OPT_STR(0, "output-prefix", &prefix, "PREFIX", "the files' names but for _text_document.bin and .idx"),
        OPT_STR(0, "json-keys", &x.key, "KEY", "where a document has its text"),
        OPT_FLAG(0, "append-eod", &x.append_eod, "end each document with the token for that"),
        OPT_FLAG(0, "allow-special", &x.allow_special, "special tokens in a text are special"),
        TOOL_OPTS(t), TOOL_JOBS(t), OPT_END};
    struct err e;
    int code, n = tool_begin(&t, opts, argc, argv, &code);

    if (n < 0)
        return code;
    if (!path || !prefix)
        return tool_usage(&t, "--tokenizer and --output-prefix are needed");
    if (tokenizer_open(&tokenizer, path, pattern, &e) < 0)
        return tool_fail(&t, &e);
    x.tokenizer = tokenizer;
    x.threads = tool_jobs(&t);
    code = run_all(&t, prefix, argv + 1, n, &x);
    tokenizer_close(tokenizer);
    return code;
}
