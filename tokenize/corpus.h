/* tokenize/corpus.h -- texts from files, a block at a time.
 *
 * JSON lines (a document with a string under `key`, or just a string a line) or
 * plain text, told apart by the first byte that is no white space ('{' or '"'), plain or
 * compressed.  Blocks are filled in order by one thread at a time; making texts of a block's
 * lines is for all threads.
 */
#ifndef TOKENIZE_CORPUS_H
#define TOKENIZE_CORPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "tokenize/chat.h"

enum corpus_form {
    CORPUS_AUTO,  /* by the first byte; a line of plain text, newline included, is a text */
    CORPUS_JSONL
};

/* The lines of a plain file that begin within [from, to). */
struct corpus_range {
    uint64_t from, to;
};
/* Behind a line: the file, the place in what it decompresses to, the damages met in it so far. */
struct corpus_place {
    int at;
    uint64_t offset, damages;
};
enum { CORPUS_MAX_KEYS = 16 };

struct corpus {
    char *const *paths;
    int n_paths;
    enum corpus_form form;
    const char *key;   /* where a document has its text */
    const struct corpus_range *range; /* for each path, set after corpus_open; NULL: all of it */
    int threads;       /* that may decode an input (file_set_threads), set after corpus_open; 0: one */
    /* state */
    int at;
    struct file_in *in;
    bool started, plain, ended, damaged;
    uint64_t offset;   /* of rest, in the decompressed file */
    uint64_t to;       /* no line that begins there or behind */
    uint64_t damages;  /* in this file */
    double passed;     /* bytes as stored of the files before this one */
    struct buf rest;
};

struct corpus_line {
    const char *file;
    uint64_t offset;  /* of the line in the decompressed file */
    struct span line; /* JSON, JSON_PADDING readable behind; or plain text */
    bool plain;
    int why;          /* an index into the block's faults + 1: no text but a fault; 0: none */
};

struct corpus_block {
    struct buf bytes;
    struct buf lines;  /* struct corpus_line */
    struct buf faults; /* NUL-terminated messages, one after another */
    size_t n;
    struct corpus_place next; /* behind its last line */
    double consumed;          /* bytes as stored that have been read so far, for progress */
};

/* Cuts "a,b" at its commas, in place, into keys; 0 when one is empty, given twice, or there are too many. */
int corpus_cut_keys(char *list, const char *keys[CORPUS_MAX_KEYS]);
/* Bytes as stored of inputs, within their ranges (NULL: all of them); NAN: not known, as of a pipe (paths
 * NULL: standard input). */
double corpus_size(char *const *paths, int n_paths, const struct corpus_range *range);
/* Takes the paths ("-": standard input; none: "-" too) and checks that each opens. */
int corpus_open(struct corpus *c, char *const *paths, int n_paths, enum corpus_form form, const char *key,
                struct err *e);
/* The next lines; none: the end.  A failure ends the run; a fault of the data is a line with
 * a fault. */
int corpus_fill(struct corpus *c, struct corpus_block *b, struct err *e);
/* Goes to a place that a block of the same files had; before the first corpus_fill. */
int corpus_goto(struct corpus *c, const struct corpus_place *p, struct err *e);
void corpus_close(struct corpus *c);

static inline struct corpus_line *corpus_line(const struct corpus_block *b, size_t i)
{
    return (struct corpus_line *)(void *)b->lines.p + i;
}
/* What a thread needs to make texts of lines. */
struct corpus_reader {
    struct json_reader *json;
    struct buf object, text;
    struct chat_text chat; /* of a conversation, */
    struct arena chat_room;
    struct buf id, url, source; /* of a document that a ledger is to know (tokenize/origin.h) */
};
int corpus_reader_init(struct corpus_reader *r, struct err *e);
void corpus_reader_free(struct corpus_reader *r);
/* Line i's text, which lies in the block or in r until the next call.  ERR_FORMAT: the line has none, with the reason
 * (without the file's name). */
int corpus_text(const struct corpus *c, const struct corpus_block *b, size_t i, struct corpus_reader *r,
                struct span *text, struct err *e);
/* The texts under several keys of a document, all different, at most CORPUS_MAX_KEYS; a line lacks one: it has none. */
int corpus_texts(const struct corpus_block *b, size_t i, const char *const *keys, int n, struct corpus_reader *r,
                 struct span *texts, struct err *e);
/* Line i itself, which is JSON.  ERR_FORMAT: it is none. */
int corpus_json(const struct corpus_block *b, size_t i, struct span *line, struct err *e);
void corpus_block_free(struct corpus_block *b);

#endif
