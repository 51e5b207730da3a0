/* quern COMMAND [ARGUMENT...]: runs quern-COMMAND from the folder that quern is in,
 * else from PATH. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tool.h"

static const struct {
    const char *name, *about;
} commands[] = {
    {"extract", "web archives, pages, LaTeX and Wikipedia dumps to documents"},
    {"clean", "repair and normalise the text of documents"},
    {"langid", "find the language of documents and lines"},
    {"filter", "drop documents of low quality by rules"},
    {"classify", "train a classifier; score documents with it"},
    {"dedup", "drop exact and near duplicates; strike repeated passages"},
    {"decontaminate", "keep evaluation sets out"},
    {"mix", "sample, blend, shuffle, split and shard"},
    {"curate", "a whole plan of these, resumable and shared by tasks"},
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

static void list(FILE *out)
{
    fprintf(out, "\nCommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(out, "  %-14s %s\n", commands[i].name, commands[i].about);
}

/* The path of quern-NAME beside this program, or the bare name for PATH. */
static void locate(const char *name, char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    char *slash;

    if (n > 0) {
        path[n] = '\0';
        slash = strrchr(path, '/');
        if (slash && (size_t)(slash - path) + strlen(name) + 8 < size) {
            snprintf(slash + 1, size - (size_t)(slash + 1 - path), "quern-%s", name);
            if (access(path, X_OK) == 0)
                return;
        }
    }
    snprintf(path, size, "quern-%s", name);
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "COMMAND",
        .usage = "[ARGUMENT...]",
        .about = "from web dumps to a trained language model",
        .details = "quern COMMAND runs quern-COMMAND; quern COMMAND --help says what it does.",
        .example = "quern extract --help",
    };
    const struct opt opts[] = {TOOL_OPTS(t), OPT_END};
    char path[4096];
    int code, n;

    if (argc > 1 && argv[1][0] != '-') {
        locate(argv[1], path, sizeof path);
        argv[1] = path;
        execvp(path, argv + 1);
        if (errno == ENOENT)
            fprintf(stderr, "quern: no command '%s'; quern --help lists them\n", path + strlen("quern-"));
        else
            fprintf(stderr, "quern: cannot run '%s': %s\n", path, strerror(errno));
        return errno == ENOENT ? EXIT_USAGE : EXIT_FATAL;
    }
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n < 0) {
        if (t.version || code != EXIT_FINE || t.man)
            return code;
        list(stdout);
        return tool_end(&t, code);
    }
    fprintf(stderr, "usage: quern COMMAND [ARGUMENT...]\n");
    list(stderr);
    return EXIT_USAGE;
}
