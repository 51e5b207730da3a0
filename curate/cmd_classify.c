/* quern classify train|score */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "curate/language/classify.h"
#include "curate/language/classify_train.h"
#include "curate/stream/driver.h"

static struct tool tool = {
    .name = "classify",
    .usage = "train|score [options] [FILE...]",
    .operands = OPT_NAMES_INPUT,
    .about = "train fastText classifiers and score documents with them",
    .details =
        "train: learns labels from documents, a JSON line each with the label in a field, or\n"
        "from files that each hold one label (--positive, --negative), and writes a model in\n"
        "fastText's format (-o).  With one thread the same documents, settings and seed give\n"
        "the same bytes.\n\n"
        "score: sets the field quality_score (--field) to the model's score for --label, and\n"
        "drops what is below --threshold.  --pareto ALPHA samples as NeMo Curator does: a\n"
        "document stays if a number drawn from a Pareto distribution is above 1 - score.\n"
        "The number is a function of the seed and the document's id or text, so it depends\n"
        "on no order; --draw numpy gives Curator's own sequence instead.\n\n"
        "Dialects: fasttext, newlines as spaces and the label's own score; datatrove, text\n"
        "stripped and newlines removed; nemo, __label__ removed and 1 - score if another\n"
        "label is best; dclm, stripped, lines joined by spaces, and scored like nemo.",
    .example = "for w in flour stone wheel; do\n"
               "  echo '{\"label\":\"hq\",\"text\":\"the mill has a '$w'\"}'\n"
               "  echo '{\"label\":\"cc\",\"text\":\"buy '$w' now\"}'\n"
               "done > docs.jsonl\n"
               "quern classify train --dim 8 --epoch 50 -o model.bin docs.jsonl\n"
               "quern classify score --model model.bin --threshold 0.5 docs.jsonl",
};

static int run_score(bool no_mode, int argc, char **argv)
{
    struct classify_conf conf;
    struct classify_train_conf train;
    struct stage stage;
    struct driver_conf driver = {0};
    const struct opt opts[] = {
        OPT_HEAD("Scores"),
        CLASSIFY_OPTS(conf),
        OPT_HEAD("Documents"),
        DRIVER_OPTS(driver),
        TOOL_JOBS(tool), TOOL_PROGRESS(tool),
        TOOL_OPTS(tool),
        OPT_END,
    }, more[] = {OPT_HEAD("classify train"), CLASSIFY_TRAIN_OPTS(train), OPT_END};
    struct err e;
    int code, n;

    classify_conf_init(&conf);
    classify_train_conf_init(&train);
    tool.more = no_mode ? more : NULL;
    conf.histogram = true; /* costs nothing here */
    n = tool_begin(&tool, opts, argc, argv, &code);
    if (n < 0)
        return code;
    if (no_mode)
        return tool_usage(&tool, "say what to do first: 'train' or 'score'");
    return driver_one(&tool, &driver, &stage, classify_stage_open(&stage, &conf, &e), &e, n, argv);
}

static int train(const struct classify_train_conf *conf, const char *output, int n, char **argv)
{
    struct classify_train_result r;
    struct err e;

    if (!output)
        return tool_usage(&tool, "where shall the model go? (-o FILE)");
    if (conf->fasttext.minn > conf->fasttext.maxn)
        return tool_usage(&tool, "--minn %" PRId64 " is above --maxn %" PRId64, conf->fasttext.minn, conf->fasttext.maxn);
    if (conf->fasttext.threads > 1)
        log_msg(LOG_WARN, "threads of fastText race: with --thread 1 the model would be the same from run to run");
    if (classify_train(conf, output, argv + 1, n, tool_jobs(&tool), &r, &e) < 0)
        return tool_fail(&tool, &e);
    log_msg(LOG_INFO, "trained on %" PRIu64 " documents, %.1f MB; %" PRIu64 " bad", r.docs, (double)r.bytes / 1e6, r.bad);
    return tool_end(&tool, r.bad ? EXIT_SOME_BAD : EXIT_FINE);
}

static int run_train(int argc, char **argv)
{
    struct classify_train_conf conf;
    const char *output = NULL;
    const struct opt opts[] = {
        OPT_OUT('o', "output", &output, "FILE", "write the model here"),
        OPT_HEAD("Documents"),
        CLASSIFY_TRAIN_OPTS(conf),
        OPT_HEAD("Reading"),
        TOOL_JOBS(tool), TOOL_PROGRESS(tool),
        TOOL_OPTS(tool),
        OPT_END,
    };
    int code, n;

    classify_train_conf_init(&conf);
    n = tool_begin(&tool, opts, argc, argv, &code);
    if (n >= 0)
        code = train(&conf, output, n, argv);
    opt_lists_free(opts);
    return code;
}

int main(int argc, char **argv)
{
    bool is_train = argc > 1 && strcmp(argv[1], "train") == 0;
    bool is_score = argc > 1 && strcmp(argv[1], "score") == 0;

    if (is_train || is_score) {
        argv[1] = argv[0];
        return is_train ? run_train(argc - 1, argv + 1) : run_score(false, argc - 1, argv + 1);
    }
    return run_score(true, argc, argv);
}
