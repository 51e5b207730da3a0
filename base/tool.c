#include "base/tool.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/limits.h"
#include "base/progress.h"
#include "base/version.h"

/* "quern-filter" and "quern filter"; of quern itself both are "quern". */
static char program[64], command[64];

static void print_lines(const char *text, const char *indent, FILE *out)
{
    while (text && *text) {
        size_t n = strcspn(text, "\n");
        fprintf(out, "%s%.*s\n", n ? indent : "", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

/* The same, with longer lines broken at spaces. */
static void print_wrapped(const char *text, FILE *out)
{
    enum { WIDTH = 100 };

    while (*text) {
        size_t n = strcspn(text, "\n"), cut = n;

        if (n > WIDTH) {
            for (cut = WIDTH; cut > 0 && text[cut] != ' ';)
                cut--;
            cut = cut ? cut : strcspn(text, " \n");
        }
        fprintf(out, "%.*s\n", (int)cut, text);
        text += cut + (text[cut] == '\n' || text[cut] == ' ');
    }
}

static void print_help(const struct tool *t, const struct opt *opts)
{
    printf("%s - %s\n\nusage: %s %s\n", command, t->about, command, t->usage);
    if (t->details) {
        putchar('\n');
        print_wrapped(t->details, stdout);
    }
    opt_help(opts, stdout);
    if (t->example) {
        printf("\nExample:\n");
        print_lines(t->example, "  ", stdout);
    }
}

/* Text as man source: a leading dot or quote must not start a request. */
static void man_text(const char *text, FILE *out)
{
    bool start = true;

    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        start = *text == '\n';
        if (start && text[1] == '\n')
            fputs("\n.PP", out), text++;
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
    }
    fputc('\n', out);
}

static void print_man(const struct tool *t, const struct opt *opts)
{
    char line[256];

    printf(".TH ");
    for (const char *p = program; *p; p++)
        putchar(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    printf(" 1 \"\" \"quern %s\" \"quern manual\"\n.SH NAME\n", QUERN_VERSION);
    snprintf(line, sizeof line, "%s - %s", program, t->about);
    man_text(line, stdout);
    printf(".SH SYNOPSIS\n.B %s\n", command);
    man_text(t->usage, stdout);
    if (t->details) {
        printf(".SH DESCRIPTION\n");
        man_text(t->details, stdout);
    }
    printf(".SH OPTIONS\n");
    opt_man(opts, stdout);
    printf(".SH EXIT STATUS\n"
           "0: all well; 1: done, but some records were bad and were skipped;\n"
           "2: the command line makes no sense; 3: it could not be done.\n");
    if (t->example) {
        printf(".SH EXAMPLE\n.nf\n");
        man_text(t->example, stdout);
        printf(".fi\n");
    }
    if (t->name[0])
        printf(".SH SEE ALSO\n.BR quern (1)\n");
}

/* The actions of which a usage like "train|score [options]" wants one, then the options. */
static void print_completion(const struct tool *t, const struct opt *opts)
{
    size_t n = strspn(t->usage, "abcdefghijklmnopqrstuvwxyz|"), word;

    for (const char *a = t->usage; memchr(t->usage, '|', n) && a < t->usage + n; a += word + 1) {
        word = strcspn(a, "| ");
        printf("%.*s\t-\tcommand\t\n", (int)word, a);
    }
    opt_completion(opts, stdout);
}

static void name_tool(const struct tool *t)
{
    snprintf(program, sizeof program, "quern%s%s", t->name[0] ? "-" : "", t->name);
    snprintf(command, sizeof command, "quern%s%s", t->name[0] ? " " : "", t->name);
}

int tool_begin(struct tool *t, const struct opt *opts, int argc, char **argv, int *code)
{
    struct err e;
    int n;

    name_tool(t);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error like any other */
    log_init(program, LOG_INFO);
    n = opt_parse(opts, argc, argv, &e);
    if (n < 0) {
        *code = e.code == ERR_NOMEM ? tool_fail(t, &e) : tool_usage(t, "%s", e.msg);
        opt_lists_free(opts);
        return -1;
    }
    log_init(program, t->quiet ? LOG_ERROR : t->verbose ? LOG_DEBUG : LOG_INFO);
    progress_init(program, (enum progress_form)t->progress);
    if (!t->help && !t->man && !t->version && !t->completion)
        return n;
    if (t->version) {
        printf("%s %s%s%s%s\n", program, QUERN_VERSION, quern_commit[0] ? " (" : "", quern_commit, quern_commit[0] ? ")" : "");
    } else if (t->completion) {
        t->completion = false;
        print_completion(t, opts);
    } else {
        t->help = false; /* so that the defaults shown are the tool's */
        if (t->man)
            print_man(t, opts);
        else
            print_help(t, opts);
    }
    *code = tool_end(t, EXIT_FINE);
    opt_lists_free(opts);
    return -1;
}

int tool_usage(const struct tool *t, const char *fmt, ...)
{
    char what[640];
    va_list ap;

    name_tool(t); /* a tool may look at its words before tool_begin */
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    log_msg(LOG_ERROR, "%s", what);
    fprintf(stderr, "try '%s --help'\n", command);
    return EXIT_USAGE;
}

int tool_fail(const struct tool *t, const struct err *e)
{
    progress_end();
    log_skipped_end();
    if (e->code == ERR_ARG)
        return tool_usage(t, "%s", e->msg);
    log_msg(LOG_ERROR, "%s", e->msg);
    return EXIT_FATAL;
}

int tool_end(const struct tool *t, int code)
{
    (void)t;
    progress_end();
    log_skipped_end();
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        log_msg(LOG_ERROR, "cannot write standard output: %s", strerror(errno ? errno : EIO));
        return EXIT_FATAL;
    }
    return code;
}

int tool_jobs(const struct tool *t)
{
    return t->jobs > 0 ? (int)t->jobs : limits_cpus();
}
