#include "base/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/file.h"
#include "base/http.h"
#include "base/log.h"
#include "base/limits.h"
#include "base/progress.h"
#include "base/version.h"

/* "quern-filter" and "quern filter"; of quern itself both are "quern". */
static char program[64], command[64];

/* What a tool does for the process that it is. */
static struct {
    struct run_files files;
    const char **documents; /* where JSON lines go: the value of that option */
    char signal_line[256];  /* what ends the pipe when a signal ends us */
    size_t signal_n;
    bool quiet_pipe;        /* a closed pipe at standard output is to end us as it ends other programs */
} run;

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
    if (t->more)
        opt_help(t->more, stdout);
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
    if (t->more)
        opt_man(t->more, stdout);
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

/* The actions of which a usage like "train|score [options]" wants one, or the only one, or "[fit] [options]" may have one where
 * else a file stands; then the options. */
static void print_completion(const struct tool *t, const struct opt *opts)
{
    bool may = t->usage[0] == '[' && strncmp(t->usage, "[options]", 9) != 0;
    const char *a = t->usage + may, *end = a + strspn(a, "abcdefghijklmnopqrstuvwxyz|");
    bool some = may || t->action || memchr(a, '|', (size_t)(end - a));

    for (size_t word; some && a < end; a += word + 1) {
        word = strcspn(a, "| ]");
        printf("%.*s\t-\tcommand%s\t\n", (int)word, a, may ? "|file" : "");
    }
    opt_completion(opts, stdout);
}

/* ---- the process ---- */

/* No file that is opened later may become standard input, output or error.  One that was closed is open the other way
 * round, so that reading or writing it fails: as a folder for what would be written, which no name can lead to either. */
static void open_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!(fd == STDIN_FILENO ? open("/dev/null", O_WRONLY) : open("/", O_RDONLY | O_DIRECTORY));
}

/* Ends the program as the signal would have without us. */
static void end_by(int sig)
{
    struct sigaction sa = {.sa_handler = SIG_DFL};
    sigset_t set;

    sigaction(sig, &sa, NULL);
    sigemptyset(&set);
    sigaddset(&set, sig);
    raise(sig);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Whether the documents go to standard output.  Async-signal-safe. */
static bool prints_documents(void)
{
    struct stat a, b;

    if (!run.documents)
        return false;
    if (!*run.documents || strcmp(*run.documents, "-") == 0)
        return true;
    return stat(*run.documents, &a) == 0 && fstat(STDOUT_FILENO, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static void on_signal(int sig)
{
    file_drop_unfinished();
    if (prints_documents())
        failure_end_with((struct span){run.signal_line, run.signal_n}, true);
    end_by(sig);
}

/* A closed pipe and a file that gets too large are write errors like any other.  What ends us takes unfinished outputs with
 * it (USR1 and USR2 are what batch systems announce an end by), unless whoever started us wants the signal to be ignored
 * (nohup). */
static void set_signals(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGUSR1, SIGUSR2};
    struct sigaction sa = {.sa_handler = on_signal}, old;

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(ends[i], &sa, NULL);
    run.quiet_pipe = sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static bool has_no_reader(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&p, 1, 0) > 0 && (p.revents & POLLERR);
}

/* Nobody reads standard output any more: without a word, and with the status that a shell knows of other tools (141). */
static void end_closed(void)
{
    if (run.quiet_pipe)
        end_by(SIGPIPE);
}

struct run_files *tool_files(void)
{
    return &run.files;
}

/* Where documents go, and the line that ends them when a signal comes. */
static void find_documents(const struct opt *opts)
{
    struct buf b = {0};

    for (; opts->type != OPT_TYPE_END; opts++)
        if (opts->names == OPT_NAMES_DOCUMENTS)
            run.documents = opts->value;
    if (failure_put(&b, program, "a signal ended it") == 0 && b.n <= sizeof run.signal_line) {
        memcpy(run.signal_line, b.p, b.n);
        run.signal_n = b.n;
    }
    buf_free(&b);
}

/* All files that operands and options name. */
static int account(const struct tool *t, const struct opt *opts, int n, char **argv, struct err *e)
{
    int first = t->action;

    TRY(run_names_opts(&run.files, opts, "--", e));
    for (int i = first; i < n; i++)
        TRY(run_names(&run.files, t->operands, "input", argv[1 + i], e));
    if (n <= first)
        TRY(run_names(&run.files, t->operands, "input", "-", e));
    return run_files_check(&run.files, e);
}

/* Whether the command line asks about the tool. */
static bool asks(const struct tool *t)
{
    return t->help || t->man || t->version || t->completion;
}

static void name_tool(const struct tool *t)
{
    snprintf(program, sizeof program, "quern%s%s", t->name[0] ? "-" : "", t->name);
    snprintf(command, sizeof command, "quern%s%s", t->name[0] ? " " : "", t->name);
}

/* An endpoint by option goes before all that base/s3.h looks at. */
static int take_endpoint(const struct tool *t, struct err *e)
{
    const char *url = t->endpoint;

    if (!url)
        return 0;
    if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
        return err_set(e, ERR_ARG, "--endpoint-url: '%s' begins with neither https:// nor http://", http_bare(url));
    return setenv("AWS_ENDPOINT_URL_S3", url, 1) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}

int tool_begin(struct tool *t, const struct opt *opts, int argc, char **argv, int *code)
{
    struct err e;
    char twice[OPT_TWICE];
    int n;

    name_tool(t);
    open_standard();
    set_signals();
    log_init(program, LOG_INFO);
    find_documents(opts);
    n = opt_parse(opts, argc, argv, twice, &e);
    if (n >= 0 && take_endpoint(t, &e) < 0)
        n = -1;
    if (n >= 0 && !asks(t) && account(t, opts, n, argv, &e) < 0)
        n = -1;
    if (n < 0) {
        *code = tool_fail(t, &e);
        opt_lists_free(opts);
        return -1;
    }
    log_init(program, t->quiet ? LOG_ERROR : t->verbose ? LOG_DEBUG : LOG_INFO);
    progress_init(program, (enum progress_form)t->progress);
    if (twice[0])
        log_msg(LOG_WARN, "%s", twice);
    if (!asks(t))
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

/* Tells the next tool in a pipe of JSON lines that these are not all. */
static void end_pipe(const struct tool *t, const char *why)
{
    if (!t->json_lines && !prints_documents())
        return;
    fflush(stdout);
    failure_end(program, why, file_stdout_in_line());
}

int tool_usage(const struct tool *t, const char *fmt, ...)
{
    char what[640], try[sizeof command + 32];
    va_list ap;

    name_tool(t); /* a tool may look at its words before tool_begin */
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(try, sizeof try, "try '%s --help'\n", command);
    log_error_and(try, "%s", what);
    end_pipe(t, what);
    return EXIT_USAGE;
}

int tool_fail(const struct tool *t, const struct err *e)
{
    progress_end();
    log_skipped_end();
    if (e->code == ERR_ARG)
        return tool_usage(t, "%s", e->msg);
    if (e->code == ERR_CLOSED)
        end_closed();
    log_msg(LOG_ERROR, "%s", e->msg);
    end_pipe(t, e->msg);
    return EXIT_FATAL;
}

int tool_end(const struct tool *t, int code)
{
    (void)t;
    progress_end();
    log_skipped_end();
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        int why = errno ? errno : EIO;

        if (has_no_reader())
            end_closed();
        log_msg(LOG_ERROR, "cannot write standard output: %s", strerror(why));
        return EXIT_FATAL;
    }
    return code;
}

int tool_jobs(const struct tool *t)
{
    return t->jobs > 0 ? (int)t->jobs : limits_cpus();
}
