/* base/opt.h -- one table an option set: parsing, --help, man page, settings.
 *
 * A tool writes one array of struct opt.  Parsing fills the values it points to;
 * --help, the man page (--help=man) and the table of effective settings are printed
 * from the same array, defaults included, so they cannot disagree with the code.
 */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum opt_type {
    OPT_TYPE_END,
    OPT_TYPE_HEAD,   /* a heading in --help and the man page */
    OPT_TYPE_FLAG,   /* bool: --name, --no-name */
    OPT_TYPE_STR,    /* const char *: points into argv */
    OPT_TYPE_INT,    /* int64_t within min..max */
    OPT_TYPE_SIZE,   /* int64_t bytes; suffix K, M, G, T (powers of 1024) */
    OPT_TYPE_NUM,    /* double, finite, within fmin..fmax */
    OPT_TYPE_ENUM,   /* int: the index of the word in "a|b|c" (arg) */
    OPT_TYPE_LIST    /* struct opt_list: given several times, kept in order */
};

/* What the value of an option, or an operand, names: for the account of a run's files (base/run_files.h) and for completion. */
enum opt_names {
    OPT_NAMES_NOTHING,
    OPT_NAMES_INPUT,      /* a file that is read */
    OPT_NAMES_TREE,       /* the same, or a folder with all that is in it */
    OPT_NAMES_TAGGED,     /* the same, perhaps with a word and a colon in front */
    OPT_NAMES_PREFIX,     /* an indexed dataset that is read: NAME.bin and NAME.idx */
    OPT_NAMES_OUTPUT,     /* a file that is written */
    OPT_NAMES_DOCUMENTS,  /* the same, for JSON lines that go to standard output where no file is named */
    OPT_NAMES_OUT_PREFIX, /* an indexed dataset that is written */
    OPT_NAMES_FOLDER
};

/* A growing list of strings that point into argv.  Release with opt_list_free.
 * opt_list_add: ERR_NOMEM. */
struct opt_list {
    const char **v;
    int n;
};
/* Adds s, which is borrowed.  ERR_NOMEM.  opt_list_free empties the list. */
int opt_list_add(struct opt_list *l, const char *s, struct err *e);
void opt_list_free(struct opt_list *l);
struct opt;
/* Empties every list of the table. */
void opt_lists_free(const struct opt *opts);

struct opt {
    enum opt_type type;
    char letter;      /* 0: long name only */
    const char *name; /* without the dashes */
    const char *arg;  /* what to call the value in the help; ENUM: "a|b|c" */
    const char *help; /* one line, lower case, no full stop */
    void *value;
    int64_t min, max;
    double fmin, fmax;
    bool *given; /* set to true when the option is given; may be NULL */
    enum opt_names names;
};

#define OPT_HEAD(h)                          {OPT_TYPE_HEAD, 0, "", 0, h, 0, 0, 0, 0, 0, 0, OPT_NAMES_NOTHING}
#define OPT_FLAG(l, n, v, h)                 {OPT_TYPE_FLAG, l, n, 0, h, v, 0, 0, 0, 0, 0, OPT_NAMES_NOTHING}
/* A flag that asks for something else than the tool's work: nobody turns it off. */
#define OPT_ASK(l, n, v, h)                  {OPT_TYPE_FLAG, l, n, 0, h, v, 1, 0, 0, 0, 0, OPT_NAMES_NOTHING}
#define OPT_STR(l, n, v, a, h)               OPT_FILE(l, n, v, a, h, OPT_NAMES_NOTHING)
#define OPT_INT(l, n, v, lo, hi, h)          {OPT_TYPE_INT, l, n, "N", h, v, lo, hi, 0, 0, 0, OPT_NAMES_NOTHING}
#define OPT_SIZE(l, n, v, lo, hi, h)         {OPT_TYPE_SIZE, l, n, "SIZE", h, v, lo, hi, 0, 0, 0, OPT_NAMES_NOTHING}
#define OPT_NUM(l, n, v, lo, hi, h)          {OPT_TYPE_NUM, l, n, "X", h, v, 0, 0, lo, hi, 0, OPT_NAMES_NOTHING}
#define OPT_ENUM(l, n, v, words, h)          {OPT_TYPE_ENUM, l, n, words, h, v, 0, 0, 0, 0, 0, OPT_NAMES_NOTHING}
#define OPT_LIST(l, n, v, a, h)              OPT_FILES(l, n, v, a, h, OPT_NAMES_NOTHING)
/* A string, or a list of them, that names files: use one of these for every file, so that no run overwrites what it reads. */
#define OPT_IN(l, n, v, a, h)                OPT_FILE(l, n, v, a, h, OPT_NAMES_INPUT)
#define OPT_IN_LIST(l, n, v, a, h)           OPT_FILES(l, n, v, a, h, OPT_NAMES_INPUT)
#define OPT_OUT(l, n, v, a, h)               OPT_FILE(l, n, v, a, h, OPT_NAMES_OUTPUT)
#define OPT_FOLDER(l, n, v, a, h)            OPT_FILE(l, n, v, a, h, OPT_NAMES_FOLDER)
#define OPT_FILE(l, n, v, a, h, names)       {OPT_TYPE_STR, l, n, a, h, v, 0, 0, 0, 0, 0, names}
#define OPT_FILES(l, n, v, a, h, names)  {OPT_TYPE_LIST, l, n, a, h, v, 0, 0, 0, 0, 0, names}
#define OPT_END                              {OPT_TYPE_END, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, OPT_NAMES_NOTHING}

/* Parses argv[1..]: GNU style, options and operands mixed, "--" ends options, "-"
 * is an operand.  Operands are moved to argv[1..] in order; their number comes back,
 * or ERR_ARG with the message.  An option given twice: the last one counts; of the first string that was lost so
 * `twice` says it, else it is "" (it may be NULL). */
enum { OPT_TWICE = 256 };
int opt_parse(const struct opt *opts, int argc, char **argv, char twice[OPT_TWICE], struct err *e);

/* Sets one option by its long name from text, as `--name text` would (a plan or
 * configuration file).  A FLAG takes true or false.  ERR_ARG if there is none. */
int opt_set(const struct opt *opts, const char *name, const char *text, struct err *e);

/* The table by name; NULL if there is none. */
const struct opt *opt_find(const struct opt *opts, const char *name);

/* "; did you mean 'PREFIXname'?" in buf, of the option that was probably meant; "" if none is near. */
const char *opt_near(const struct opt *opts, struct span typed, const char *prefix, char *buf, size_t size);

/* Appends the current value as text: nothing for an unset string or list.  The words of a list have commas between them, and
 * within a word a backslash before each comma and backslash.  ERR_NOMEM. */
int opt_put_text(struct buf *b, const struct opt *o);

/* Sets option o from such text, all words of a list at once; they live in a.  ERR_ARG, ERR_NOMEM. */
int opt_set_text(const struct opt *o, const char *text, struct arena *a, struct err *e);

/* The options as --help shows them, values that stand now as defaults. */
void opt_help(const struct opt *opts, FILE *out);
/* The same as man(7) source. */
void opt_man(const struct opt *opts, FILE *out);
/* For shells (completion/): a line an option, of four columns with tabs between: the word, "-" and its letter or "-", what
 * follows it ("flag": nothing; "file", "folder", "text", or words with bars between), the help.  Of a flag that is on the
 * word is that which turns it off. */
void opt_completion(const struct opt *opts, FILE *out);
/* "name  value" a line for every option that has a value: the effective settings. */
void opt_settings(const struct opt *opts, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
