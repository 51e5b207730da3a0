/* base/run_files.h -- the files that a run reads and writes, so that it overwrites nothing that it reads.
 *
 * Every name is given here before anything is opened: tool_begin does so for operands and options, a tool for names that
 * follow from others (a plan's, the files of a prefix).  Then run_files_check refuses a run that would write a file which
 * it reads, or write one file twice.  Files are told apart by device and inode, those that are not there yet by their
 * resolved names.  Pipes and devices may be read and written as often as one likes, but standard input, of which a second
 * reader would get nothing, is read once.
 */
#ifndef BASE_RUN_FILES_H
#define BASE_RUN_FILES_H

#include <sys/types.h>

#include "base/err.h"
#include "base/opt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct run_file {
    char *what, *name, *real; /* "--output"; as it was given; resolved */
    bool there, writes, tree; /* there: dev and ino; tree: a folder, read with all that is in it */
    dev_t dev;
    ino_t ino;
};

/* Start with zeroes. */
struct run_files {
    struct run_file *v;
    size_t n, cap;
    char *standard; /* what reads standard input, such as "--against"; NULL: nothing */
};

/* Names a file that is read, or written; what says in messages where the name is from, such as "--output".  "-" is a
 * standard stream; a name to read that is not there may be a pattern as in the shell.  run_reads_tree: a folder stands for all
 * that is in it.  ERR_NOMEM; ERR_ARG: standard input is named a second time; a file's name ends as that of a compression that
 * cannot be written. */
int run_reads(struct run_files *f, const char *what, const char *name, struct err *e);
int run_reads_tree(struct run_files *f, const char *what, const char *name, struct err *e);
int run_writes(struct run_files *f, const char *what, const char *name, struct err *e);
/* The same for what is there already of names that a run makes up as it goes: a pattern as in the shell. */
int run_writes_pattern(struct run_files *f, const char *what, const char *pattern, struct err *e);
/* As name's kind says; OPT_NAMES_NOTHING and OPT_NAMES_FOLDER are none.  ERR_ARG: a folder or a dataset is an address. */
int run_names(struct run_files *f, enum opt_names kind, const char *what, const char *name, struct err *e);
/* All that the options of a table name.  before: in front of their names in messages, such as "--". */
int run_names_opts(struct run_files *f, const struct opt *opts, const char *before, struct err *e);

/* ERR_ARG names two that are one file, one of which is written. */
int run_files_check(const struct run_files *f, struct err *e);
/* ERR_ARG when one of the files stands in this folder, whose files may be removed. */
int run_files_not_in(const struct run_files *f, const char *what, const char *folder, struct err *e);
void run_files_free(struct run_files *f);

#ifdef __cplusplus
}
#endif
#endif
