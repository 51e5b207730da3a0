/* quern COMMAND [ARGUMENT...]: runs quern-COMMAND from the folder that quern is in,
 * else from PATH. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/log.h"
#include "base/near.h"
#include "base/program.h"
#include "base/tool.h"

static const struct {
    const char *name, *about;
} commands[] = {
    {"crawl", "choose records of crawls by their indexes"},
    {"extract", "web archives, pages, LaTeX and Wikipedia dumps to documents"},
    {"clean", "repair and normalise the text of documents"},
    {"langid", "find the language of documents and lines"},
    {"filter", "drop documents of low quality by rules"},
    {"classify", "train a classifier; score documents with it"},
    {"perplexity", "score documents by an n-gram language model (KenLM)"},
    {"dedup", "drop exact and near duplicates; strike repeated passages"},
    {"decontaminate", "keep evaluation sets out"},
    {"mix", "sample, blend, shuffle, split and shard"},
    {"forget", "take pages out, by id or URL"},
    {"curate", "a whole plan of these, resumable and shared by tasks"},
    {"ablate", "which of several plans makes the better model"},
    {"scale", "the loss of a large model, and the best size, by small ones"},
    {"why", "say why a document was dropped"},
    {"stats", "numbers of a corpus"},
    {"report", "a page about a run"},
    {"tokenizer", "train a tokenizer; encode and decode with it"},
    {"tokenize", "documents to an indexed dataset of tokens"},
    {"dataset", "look into indexed datasets and verify them"},
    {"train", "pretrain a GPT or a Llama"},
    {"eval", "loss and perplexity of a checkpoint"},
    {"generate", "text from a checkpoint"},
    {"checkpoint", "look into checkpoints; exchange them with transformers"},
    {"doctor", "what this machine can do, and what is missing"},
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void list(char *buf, size_t size)
{
    size_t n = (size_t)snprintf(buf, size, "Commands (quern COMMAND --help says more):");

    for (size_t i = 0; i < N_COMMANDS && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "\n  %-14s %s", commands[i].name, commands[i].about);
}

/* Command name's program at path did not start: errno. */
static int cannot_run(const char *name, const char *path)
{
    static const char quern[] = "quern";
    char why[160];
    struct near n = near_to(span_of(name));
    bool known = false;
    char meant[64];

    if (errno != ENOENT) {
        snprintf(why, sizeof why, "cannot run '%.100s': %s", path, strerror(errno));
        log_msg(LOG_ERROR, "%s", why);
        failure_end(quern, why, false);
        return EXIT_FATAL;
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        near_try(&n, commands[i].name);
        known |= strcmp(commands[i].name, name) == 0;
    }
    if (known)
        log_msg(LOG_ERROR, "this build has no '%s': quern doctor says what is missing", name);
    else
        log_error_and("quern --help lists the commands\n", "no command '%s'%s", name,
                      near_say(&n, "", meant, sizeof meant));
    snprintf(why, sizeof why, "there is no '%.100s'", name);
    failure_end(quern, why, false); /* whatever it was to be, what comes is no stream that is whole */
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    static char details[2048], help[] = "--help";
    struct tool t = {
        .name = "",
        .usage = "COMMAND [ARGUMENT...]",
        .about = "from web dumps to a trained language model",
        .details = details,
        .example = "quern extract --help",
    };
    const struct opt opts[] = {TOOL_ASKS(t), OPT_END};
    char path[4096];
    int code;

    list(details, sizeof details);
    if (argc > 2 && (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0)) { /* as git has it: quern help COMMAND */
        argv[1] = argv[2];
        argv[2] = help;
        argc = 3;
        argv[argc] = NULL;
    } else if (argc == 2 && strcmp(argv[1], "help") == 0) {
        argv[1] = help;
    }

    if (argc > 1 && argv[1][0] != '-') {
        const char *name = argv[1];

        log_init("quern", LOG_INFO);
        program_path(name, path, sizeof path);
        argv[1] = path;
        execvp(path, argv + 1);
        return cannot_run(name, path);
    }
    if (argc == 2 && strcmp(argv[1], "--completion") == 0) /* the options follow */
        for (size_t i = 0; i < N_COMMANDS; i++)
            printf("%s\t-\tcommand\t%s\n", commands[i].name, commands[i].about);
    if (tool_begin(&t, opts, argc, argv, &code) < 0) {
        if (code == EXIT_USAGE && argc > 2)
            fprintf(stderr, "a command's options follow it: quern COMMAND [OPTION...]\n");
        return code;
    }
    fprintf(stderr, "usage: quern COMMAND [ARGUMENT...]\n\n%s\n", details);
    return EXIT_USAGE;
}
