/* quern langid: finds the language of documents. */
#include "curate/stream/driver.h"
#include "curate/language/langid.h"

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "langid",
        .usage = "[options] [FILE...]",
        .operands = OPT_NAMES_INPUT,
        .about = "find the language of documents, and keep some",
        .details =
            "Adds to each document `lang` (ISO 639: two letters where there are, else three; und if "
            "unknown) and `lang_score`, from 0 to 1. Of CLD2 that is the share of the text that is in that "
            "language, halved when CLD2 calls its answer unreliable; of a fastText model (--model) the "
            "model's score, and `lang_script` is added if its labels have scripts (eng_Latn).\n\n"
            "--keep takes those codes, or a model's labels. --per-line adds `lang_lines`, an entry a line: "
            "{\"lang\",\"score\"} or null. --strip-lines removes the lines that have a score of at least "
            "--line-threshold in a language that is not kept (without --keep: not the document's).",
        .example = "echo '{\"id\":\"a\",\"text\":\"Wer rastet, der rostet, sagt man im Land.\"}' | quern langid --keep de,en:0.8",
    };
    struct langid_conf f;
    struct stage stage;
    struct driver_conf c = {0};
    const struct opt opts[] = {
        LANGID_OPTS(f),
        DRIVER_OPTS(c),
        TOOL_OPTS(t),
        TOOL_JOBS(t), TOOL_PROGRESS(t),
        OPT_END,
    };
    struct err e;
    int code, n;

    langid_conf_init(&f);
    n = tool_begin(&t, opts, argc, argv, &code);
    return n < 0 ? code : driver_one(&t, &c, &stage, langid_stage_open(&stage, &f, &e), &e, n, argv);
}
