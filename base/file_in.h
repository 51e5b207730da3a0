/* base/file_in.h -- inside of reading, for base/file_in.c and its decoders alone. */
#ifndef BASE_FILE_IN_H
#define BASE_FILE_IN_H

#include <libdeflate.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#include "base/file.h"

enum file_state {
    BETWEEN, /* before a member, or the end */
    INSIDE,  /* a member is being read */
    BROKEN,  /* why says what stands in the way */
    END
};

struct file_in {
    char *name;
    int fd; /* -1: in memory, at an address, or a stream: */
    struct http *http;
    ssize_t (*read)(void *arg, void *p, size_t n, struct err *e);
    void *arg;
    bool seekable, first_done, ended, whole;
    enum file_codec codec;
    enum file_state state;
    struct err why;

    int threads;       /* that may decode */
    const char *columns; /* of Parquet that are read; NULL: all */
    uint8_t *own;      /* cap bytes; NULL in memory */
    const uint8_t *in; /* the window: [at, n) is not consumed yet */
    size_t at, n, cap;
    bool eof;
    uint64_t base; /* offset in the file of in[0] */
    uint64_t start, size, member, told;

    struct libdeflate_decompressor *deflate;
    z_stream z;
    bool z_open;
    ZSTD_DCtx *zstd;
    void *bz2, *xz, *lz4; /* the decoders' own, in base/file_*.c */
    size_t want;          /* bytes that zstd or lz4 asks for */
    bool flush;           /* it may hold what it had no room for */
    struct parquet_in *parquet;
    uint8_t *out; /* of gzip: a whole member; [out_at, out_n) is to be given out */
    size_t out_cap, out_at, out_n;
    uint8_t *step; /* what a small read left of a step; [step_at, step_n) is to be given out */
    size_t step_at, step_n;
};

/* Records why reading cannot go on, for this and every later read; returns code. */
int file_in_broken(struct file_in *f, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Makes at least want (<= the window) bytes available unless the file ends before. */
int file_in_fill(struct file_in *f, size_t want);

static inline uint32_t file_in_load32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Skippable frames, which zstd and lz4 share: whether one begins at p, which has n bytes; and, with the
 * window at one, of which 8 bytes are there: passes over it, or takes its bytes to `to` unless that is NULL. */
bool file_skippable_at(const uint8_t *p, size_t n);
int file_in_skippable(struct file_in *f, uint8_t *to, const char *codec);

/* A descriptor of a file in folder ("": the working one) or below; -1 with errno, EXDEV or ELOOP when a link or ".."
 * leaves it. */
int file_beneath(const char *folder, const char *name);

enum { GZIP_HEAD = 10 }; /* bytes by which a gzip member is told */

/* Whether a gzip member begins at p, which has n bytes. */
bool file_gzip_at(const uint8_t *p, size_t n);
/* 1: a member begins; 0: the end of the file; negative: broken. */
int file_gzip_begin(struct file_in *f);
/* The next bytes of the member; 0 when it has ended. */
ssize_t file_gzip_read(struct file_in *f, void *p, size_t n);

/* Whether a zstd frame, skippable or not, begins at p, which has n bytes. */
bool file_zstd_at(const uint8_t *p, size_t n);
/* 1: a frame begins; 0: the end of the file; negative: broken. */
int file_zstd_begin(struct file_in *f);
/* The next bytes of the frame; 0 when it has ended. */
ssize_t file_zstd_read(struct file_in *f, void *p, size_t n);

enum { BZ2_HEAD = 10 }; /* bytes by which a bzip2 stream is told */

/* Whether a bzip2 stream begins at p, which has n bytes. */
bool file_bz2_at(const uint8_t *p, size_t n);
/* 1: a stream begins; 0: the end of the file; negative: broken. */
int file_bz2_begin(struct file_in *f);
/* The next bytes of the stream; 0 when it has ended. */
ssize_t file_bz2_read(struct file_in *f, void *p, size_t n);
/* Forgets what was read ahead: the window begins with what is to be given out next, at the
 * latest with the block that was. */
int file_bz2_go_back(struct file_in *f);
void file_bz2_close(struct file_in *f);

/* The same for xz streams and lz4 frames. */
enum { XZ_HEAD = 8 };
bool file_xz_at(const uint8_t *p, size_t n);
int file_xz_begin(struct file_in *f);
ssize_t file_xz_read(struct file_in *f, void *p, size_t n);
void file_xz_close(struct file_in *f);

bool file_lz4_at(const uint8_t *p, size_t n);
int file_lz4_begin(struct file_in *f);
ssize_t file_lz4_read(struct file_in *f, void *p, size_t n);
void file_lz4_close(struct file_in *f);

/* A Parquet file.  1: a row group begins; 0: the end of the file; negative: broken. */
int file_parquet_begin(struct file_in *f);
/* The next bytes of the row group as JSON lines; 0 when it has ended. */
ssize_t file_parquet_read(struct file_in *f, void *p, size_t n);
/* After a damage: 1: the next row group is to be read; 0: there is none. */
int file_parquet_skip(struct file_in *f);
void file_parquet_close(struct file_in *f);
#endif
