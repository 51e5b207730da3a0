/* quern perplexity: documents by an n-gram language model; quern perplexity model: by a checkpoint. */
#include <string.h>

#include "curate/stream/driver.h"
#include "kernels/threads.h"
#include "pipelines/node_model.h"
#include "pipelines/node_perplexity.h"

static struct tool tool = {
    .name = "perplexity",
    .usage = "[model] --lm FILE|--load DIR [options] [FILE...]",
    .operands = OPT_NAMES_INPUT,
    .about = "score documents by an n-gram language model (KenLM, ARPA) or a checkpoint; drop or sort them by perplexity",
    .details =
        "Sets the fields perplexity, perplexity_log10 (the base-10 logarithm of the text's\n"
        "probability) and perplexity_tokens (words and ends of sentences): perplexity is\n"
        "10^(-log10/tokens).  Probabilities are KenLM's, bit for bit; its binary files (probing\n"
        "and trie, quantised, array-compressed) are mapped, ARPA files, compressed or not, read.\n\n"
        "--cutoffs and --percentiles set perplexity_bucket as CCNet does: head, middle, tail;\n"
        "--keep drops what is in other buckets.\n\n"
        "As CCNet's own models want it: --tokenizer en.sp.model --normalize ccnet --sentences document.\n\n"
        "model: by a checkpoint of quern's (--load) and its tokenizer, as quern eval scores a text by\n"
        "itself; perplexity_bits is bits a byte.",
    .example = "cat >tiny.arpa <<'END'\n"
               "\\data\\\n"
               "ngram 1=5\n"
               "ngram 2=4\n"
               "\n"
               "\\1-grams:\n"
               "-1.2\t<unk>\n"
               "-99\t<s>\t-0.3\n"
               "-0.6\t</s>\n"
               "-0.5\tthe\t-0.2\n"
               "-0.7\tmill\t-0.1\n"
               "\n"
               "\\2-grams:\n"
               "-0.2\t<s> the\n"
               "-0.3\tthe mill\n"
               "-0.2\tmill </s>\n"
               "-0.9\tthe the\n"
               "\n"
               "\\end\\\n"
               "END\n"
               "echo '{\"text\":\"the mill\"}' | quern perplexity --lm tiny.arpa --cutoffs 5,20",
};

static int run_model(int argc, char **argv)
{
    struct by_model_conf conf;
    struct stage stage;
    struct driver_conf driver = {0};
    const struct opt opts[] = {
        OPT_HEAD("Model"),
        BY_MODEL_OPTS(conf),
        OPT_HEAD("Documents"),
        DRIVER_OPTS(driver),
        TOOL_JOBS(tool), TOOL_PROGRESS(tool),
        TOOL_OPTS(tool),
        OPT_END,
    };
    struct err e;
    int code, n;

    by_model_conf_init(&conf);
    n = tool_begin(&tool, opts, argc, argv, &code);
    if (n < 0)
        return code;
    return driver_one(&tool, &driver, &stage, by_model_stage_open(&stage, &conf, &e), &e, n, argv);
}

static int run_lm(int argc, char **argv)
{
    struct lm_conf conf;
    struct by_model_conf model;
    struct stage stage;
    struct driver_conf driver = {0};
    const struct opt opts[] = {
        OPT_HEAD("Perplexity"),
        LM_OPTS(conf),
        OPT_HEAD("Documents"),
        DRIVER_OPTS(driver),
        TOOL_JOBS(tool), TOOL_PROGRESS(tool),
        TOOL_OPTS(tool),
        OPT_END,
    }, more[] = {OPT_HEAD("perplexity model"), BY_MODEL_OPTS(model), OPT_END};
    struct err e;
    int code, n;

    lm_conf_init(&conf);
    by_model_conf_init(&model);
    tool.more = more;
    n = tool_begin(&tool, opts, argc, argv, &code);
    if (n < 0)
        return code;
    return driver_one(&tool, &driver, &stage, lm_stage_open(&stage, &conf, &e), &e, n, argv);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "model") == 0) {
        threads_bound_spin(argv);
        argv[1] = argv[0];
        return run_model(argc - 1, argv + 1);
    }
    return run_lm(argc, argv);
}
