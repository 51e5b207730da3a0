/* base/spill.h -- what a program puts aside on disk: a nameless temporary file that is
 * first written from front to back, then read.
 */
#ifndef BASE_SPILL_H
#define BASE_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Start with {.fd = -1}.  size counts what was put, buffered or not. */
struct spill {
    int fd;
    const char *dir; /* where the file will be, if there is none yet */
    char *buf;
    size_t used, cap;
    uint64_t size;
};

/* The folder of a temporary file: dir, or if that is NULL $TMPDIR or /tmp. */
const char *spill_folder(const char *dir);
/* Makes the file in dir (NULL: $TMPDIR or /tmp); writes go through cap bytes of memory.
 * Close it in any case. */
int spill_open(struct spill *s, const char *dir, size_t cap, struct err *e);
/* The same, but there is a file only once more than cap bytes are put; else what is put stays in memory until it is closed.
 * For puts and reads alone; dir must outlive it. */
int spill_open_small(struct spill *s, const char *dir, size_t cap, struct err *e);
int spill_put(struct spill *s, const void *p, size_t n, struct err *e);
/* Writes out what is buffered: what was put can be read, and more may be put. */
int spill_write_out(struct spill *s, struct err *e);
/* The same, and gives the buffer back: between the last put and the first read. */
int spill_flush(struct spill *s, struct err *e);
/* Instead of puts: writes at an offset, in any order; any number of threads. */
int spill_write(const struct spill *s, uint64_t offset, const void *p, size_t n, struct err *e);
/* Reads n bytes at an offset; any number of threads. */
int spill_read(const struct spill *s, uint64_t offset, void *p, size_t n, struct err *e);

/* Some bytes of a file that were written out; s NULL: none. */
struct spill_part {
    struct spill *s;
    uint64_t at, n;
};
/* Puts a copy of them to another file. */
int spill_put_part(struct spill *to, const struct spill_part *from, struct err *e);
/* They have been read and are not wanted again: if none are behind them the file is emptied. */
int spill_part_done(const struct spill_part *p, struct err *e);
void spill_close(struct spill *s);

/* The bytes of [at, end) of a flushed spill, in order, through cap bytes of memory. */
struct spill_reader {
    const struct spill *s;
    uint64_t at, end;
    char *buf;
    size_t pos, have, cap;
};
int spill_reader_open(struct spill_reader *r, const struct spill *s, uint64_t at, uint64_t end, size_t cap,
                      struct err *e);
/* Makes n <= cap bytes readable at r->buf + r->pos, or as many as are left; their number.
 * The caller moves pos. */
int spill_ahead(struct spill_reader *r, size_t n, size_t *got, struct err *e);
/* Copies the next n bytes, any number; ERR_IO if there are fewer. */
int spill_next(struct spill_reader *r, void *p, size_t n, struct err *e);
/* Passes over the next n bytes, which are there; where they are comes back. */
uint64_t spill_skip(struct spill_reader *r, uint64_t n);
void spill_reader_close(struct spill_reader *r);

/* A nameless file of n zero bytes, mapped for reading and writing; n 0: no bytes. */
struct spill_map {
    unsigned char *p;
    size_t n;
};
int spill_map_open(struct spill_map *m, const char *dir, size_t n, struct err *e);
/* The pages are not to count as this process's memory any longer; the bytes stay. */
void spill_map_forget(const struct spill_map *m);
void spill_map_close(struct spill_map *m);
#endif
