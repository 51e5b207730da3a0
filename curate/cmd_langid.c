/* quern langid: finds the language of documents. */
#include "curate/driver.h"
#include "curate/langid.h"

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "langid",
        .usage = "[options] [FILE...]",
        .about = "find the language of documents, and keep some",
        .details =
            "Adds to each document `lang` (ISO 639: two letters where there are, else three; und if "
            "unknown) and `lang_score`, from 0 to 1: the share of the text that is in that language, "
            "halved when the detector (CLD2) calls its answer unreliable.",
        .example = "echo '{\"id\":\"a\",\"text\":\"Wer rastet, der rostet, sagt man im Land.\"}' | quern langid --keep de,en:0.8",
    };
    struct langid_conf f;
    struct stage stage;
    struct driver_conf c = {.stages = &stage, .n_stages = 1};
    const struct opt opts[] = {
        LANGID_OPTS(f),
        DRIVER_OPTS(c),
        TOOL_OPTS(t),
        TOOL_JOBS(t),
        OPT_END,
    };
    struct err e;
    int code, n;

    langid_conf_init(&f);
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n < 0)
        return code;
    if (langid_stage_open(&stage, &f, &e) < 0)
        return tool_fail(&t, &e);
    code = driver_main(&t, &c, n, argv);
    stage.ops->close(stage.state);
    return code;
}
