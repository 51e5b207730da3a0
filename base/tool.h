/* base/tool.h -- what every command does alike: help, version, messages, exit.
 *
 * Only files named cmd_*.c use this header, and the stage driver, which is their common main.
 */
#ifndef BASE_TOOL_H
#define BASE_TOOL_H

#include "base/opt.h"
#include "base/progress.h"
#include "base/run_files.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tool_exit {
    EXIT_FINE = 0,     /* all well */
    EXIT_SOME_BAD = 1, /* done, but some records were bad and were skipped */
    EXIT_USAGE = 2,    /* the command line makes no sense */
    EXIT_FATAL = 3     /* could not do it */
};

struct tool {
    const char *name;    /* "filter": the program is quern-filter */
    const char *usage;   /* "[options] [FILE...]" */
    const char *about;   /* one line, no full stop */
    const char *details; /* paragraphs for --help and the man page; may be NULL */
    const char *example; /* command lines that work when pasted, a line each */
    enum opt_names operands; /* what they name; where they are files and none is given, standard input is read */
    const struct opt *more;  /* options of another action, which help and the man page show too; may be NULL */
    bool action;             /* the first operand is a word that says what to do */
    bool json_lines;         /* standard output carries JSON lines (an option of OPT_NAMES_DOCUMENTS says so too) */
    bool help, man, version, completion, quiet, verbose;
    int64_t jobs;
    int progress; /* enum progress_form */
    const char *endpoint; /* of S3 */
};

/* What every program is asked about itself. */
#define TOOL_ASKS(t)                                                           \
    OPT_HEAD("General"),                                                       \
    OPT_ASK('h', "help", &(t).help, "show this help"), \
    OPT_ASK(0, "man", &(t).man, "print the manual page as man(7) source"), \
    OPT_ASK('V', "version", &(t).version, "print the version"),               \
    OPT_ASK(0, "completion", &(t).completion, "print what a shell can complete")
/* The options that every command has.  Put it last in the table, before OPT_END. */
#define TOOL_OPTS(t)                                                           \
    TOOL_ASKS(t),                                                              \
    OPT_STR(0, "endpoint-url", &(t).endpoint, "URL", "where s3:// is; default: as AWS's environment and profile say"), \
    OPT_FLAG('q', "quiet", &(t).quiet, "print errors only"),                   \
    OPT_FLAG('v', "verbose", &(t).verbose, "say more")
/* For a tool that calls progress_show. */
#define TOOL_PROGRESS(t) OPT_ENUM(0, "progress", &(t).progress, PROGRESS_WORDS, PROGRESS_HELP)
#define TOOL_JOBS(t)                                                           \
    OPT_INT('j', "jobs", &(t).jobs, 0, 4096, "threads; 0: all processors; the output is the same for any N")

/* Parses the command line.  Returns the number of operands (argv[1..]), or -1 when
 * main has to return *code at once: what --help, --man, --version or --completion asks for
 * was printed, or the usage error was; lists are empty then.  A run that would overwrite what
 * it reads, by what operands and options name, is a usage error.  Also: descriptors 0 to 2 are
 * open afterwards, and what INT, TERM, HUP or XCPU ends takes its unfinished outputs with it. */
int tool_begin(struct tool *t, const struct opt *opts, int argc, char **argv, int *code);
/* The account that tool_begin made of the run's files, for names that follow from others.  Who adds some checks it again. */
struct run_files *tool_files(void);
/* Prints "quern-NAME: WHAT" and how to get help; returns EXIT_USAGE. */
int tool_usage(const struct tool *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the error once; returns EXIT_USAGE for ERR_ARG, else EXIT_FATAL.  This and tool_usage end a pipe of JSON lines with
 * one that says so (base/failure.h).  ERR_CLOSED ends the program without a word as SIGPIPE would. */
int tool_fail(const struct tool *t, const struct err *e);
/* Flushes standard output and returns code, or EXIT_FATAL after a message when the
 * output could not be written (a full disk).  A pipe without a reader: as ERR_CLOSED. */
int tool_end(const struct tool *t, int code);
/* The number of threads that -j asks for: 0 means all processors. */
int tool_jobs(const struct tool *t);

#ifdef __cplusplus
}
#endif
#endif
