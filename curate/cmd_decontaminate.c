/* quern decontaminate: keeps the questions of evaluation sets out of a corpus. */
#include "curate/decontaminate/decontaminate.h"
#include "curate/stream/driver.h"

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "decontaminate",
        .usage = "--against FILE [options] [FILE...]",
        .operands = OPT_NAMES_INPUT,
        .about = "keep the questions of evaluation sets out of a corpus",
        .details =
            "Reads documents as JSON lines and drops those that have a question of an evaluation set, or its answer; "
            "--action strip takes out the passage instead, annotate only adds a field `contamination`. --report "
            "shows what was found where. The default method, quern, finds 13 words in a row (a shorter question: "
            "all of it, 8 words at least) and questions of which four fifths are there in order with other words "
            "between them; case, punctuation and white space do not matter.\n\n"
            "The methods datatrove, curator and decon do what the systems of these names do, with their defaults.\n\n"
            "The evaluation sets are held in memory, 60 bytes or so a word of theirs.",
        .example =
            "echo '{\"id\":\"q1\",\"question\":\"How many apples are left when Tom eats three?\"}' >eval.jsonl\n"
            "echo '{\"id\":\"a\",\"text\":\"Quiz: how many apples are left when Tom eats three?\"}' | "
            "quern decontaminate --against eval.jsonl --report - --rejects rejects.jsonl",
    };
    struct decontaminate_conf d;
    struct stage stage;
    struct driver_conf c = {0};
    const struct opt opts[] = {
        DECONTAMINATE_OPTS(d),
        DRIVER_OPTS(c),
        TOOL_JOBS(t), TOOL_PROGRESS(t),
        TOOL_OPTS(t),
        OPT_END,
    };
    struct err e;
    int code, n;

    decontaminate_conf_init(&d);
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n >= 0)
        code = driver_one(&t, &c, &stage, decontaminate_stage_open(&stage, &d, &e), &e, n, argv);
    opt_lists_free(opts);
    return code;
}
