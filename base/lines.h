/* base/lines.h -- the lines of files, a block at a time.
 *
 * JSON lines or plain text, compressed or not, from files, addresses and pipes; a Parquet file is its rows (base/file.h).  One
 * thread at a time fills blocks, in order; what is made of a block's lines is for all threads.  Where a block ends is a matter
 * of where it begins, not of how the file was read: a run that goes on from a place gets the blocks of one that never stopped.
 *
 * A damaged member is a line with a fault, where the damage stood: the whole lines before it are given, the one that it cut is
 * not, and reading goes on at the next member.  So is a line longer than the bound.
 */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/file.h"
#include "base/http.h"
#include "base/mem.h"
#include "base/opt.h"

enum lines_form {
    LINES_JSON, /* a document a line; blank ones are passed over */
    LINES_AUTO  /* JSON when a file's first byte but white space is '{' or '"'; else each line, with its newline, is a text */
};

/* The lines of a plain file that begin within [from, to). */
struct lines_range {
    uint64_t from, to;
};

/* Between two lines: the file, the place in what it decompresses to, the damages passed in it so far. */
struct lines_place {
    int at;
    uint64_t offset, damages;
};

struct line {
    const char *file;   /* of a damage NULL: the fault names it */
    uint64_t offset;    /* of the line in the decompressed file */
    struct span text;   /* without its newline, JSON_PADDING bytes readable behind; of plain text with it */
    const char *fault;  /* why there is no line; else NULL */
    bool plain;         /* a text, not JSON */
};

struct line_block {
    struct line *line;
    size_t n, cap;
    struct buf bytes;
    struct arena faults;
    struct lines_place next; /* behind its last line */
    uint64_t size;           /* bytes of its lines, blank ones too */
};

/* What to read is set before the first call, the rest zero; paths and what range and columns point to must outlive it. */
struct lines_in {
    char *const *paths; /* "-": standard input */
    int n_paths;
    enum lines_form form;
    const struct lines_range *range; /* for each path, of LINES_JSON; NULL: all of it */
    const char *columns;  /* of Parquet (file_set_columns) */
    int threads;          /* that may decode a file (file_set_threads); 0: one */
    size_t block_bytes;   /* a block ends with the first line that ends there or behind; 0: LINES_BLOCK */
    uint64_t max_line;    /* bytes of the longest line; 0: LINES_MAX_LINE */
    /* state */
    struct file_in *in;
    struct lines_place now; /* of the first byte of rest */
    bool plain, formed;     /* formed: plain is known */
    bool ended, broken;     /* no more bytes but rest; a damage stands behind rest */
    uint64_t to;            /* no line that begins there or behind */
    uint64_t passed;        /* bytes as stored of the files before this one */
    char state[HTTP_STATE_MAX]; /* of the file that was opened last (file_state) */
    struct buf rest;
    struct err damage;
};
#define LINES_OPTS(c) \
    OPT_STR(0, "columns", &(c).columns, "NAME[,NAME]", "of Parquet inputs these columns alone, the fields of documents then")
enum { LINES_BLOCK = 256 << 10, LINES_MAX_LINE = 256 << 20 };

/* Whether a path (standard input, a pipe or device by name) can be read only once. */
bool lines_is_pipe(const char *path);
/* Checks before any work that each path but pipes opens and can hold documents; no path at all becomes standard input.
 * size (NULL: not asked): bytes as stored of what will be read, 0 when one is not known.  ERR_IO, ERR_FORMAT. */
int lines_check(struct lines_in *l, uint64_t *size, struct err *e);
/* Fills b, which is emptied before, with the next lines; none: the end.  A failure is one of the whole run; what is wrong with
 * one record is its fault. */
int lines_fill(struct lines_in *l, struct line_block *b, struct err *e);
/* Goes to a place that a block of the same files had, before the first lines_fill; of LINES_JSON, as the form is told by what a
 * file begins with.  ERR_FORMAT: the file has changed. */
int lines_goto(struct lines_in *l, const struct lines_place *p, struct err *e);
/* Bytes as stored that have been read so far, within the ranges, for progress; where lines_fill is called. */
uint64_t lines_consumed(const struct lines_in *l);
/* Closes the file in hand; zeroed is fine. */
void lines_close(struct lines_in *l);

/* Empties a block and keeps its memory, unless a long line made it large. */
void line_block_reset(struct line_block *b);
void line_block_free(struct line_block *b);

#endif
