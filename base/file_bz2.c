/* bzip2 streams, decoded a block at a time and, if file_set_threads() allows it, many blocks at a
 * time.  The reader cuts what is stored into pieces where the mark of a block or of an end
 * stands, and puts them into a ring; threads decode the blocks in it; the reader gives them
 * out in order.  That a block decodes as it was cut, check sum and all, proves that the mark
 * behind it was one.  If it does not, the reader goes back to its first bit and lets libbz2 find
 * its true end, or else the stream is damaged there. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bz2_block.h"
#include "base/file_in.h"

bool file_bz2_at(const uint8_t *p, size_t n)
{
    /* A block (pi) or, in an empty stream, its end (the root of pi). */
    static const char block[] = "\x31\x41\x59\x26\x53\x59", end[] = "\x17\x72\x45\x38\x50\x90";

    return n >= BZ2_HEAD && memcmp(p, "BZh", 3) == 0 && p[3] >= '1' && p[3] <= '9' &&
           (memcmp(p + 4, block, 6) == 0 || memcmp(p + 4, end, 6) == 0);
}

#if HAVE_BZ2
#include <bzlib.h>

enum {
    STREAM_HEAD = 4,
    BLOCK_MAX = 4 << 20,   /* stored; the longest that the format's numbers allow is 2.3 MB */
    SEARCH = 256 << 10,    /* bytes searched at a time */
    MEND_FIRST = 64 << 10, /* bytes in which the end of a block is looked for first */
    MANY_MENDS = 8,        /* marks that are none in so many blocks are no chance: no more looking ahead */
    MOST_THREADS = 32      /* more decode faster than anyone reads */
};

enum kind { STREAM, BLOCK, STREAM_OVER, FILE_OVER, NO_STREAM, CUT_SHORT, NO_MARK, FAULT };

struct piece {
    enum kind kind;
    enum { WAITING, TAKEN, DONE } state; /* of a block; under the lock */
    uint64_t at;     /* where raw begins in the file */
    struct buf raw;  /* as stored, from the byte of the first bit to that of the last */
    size_t from, to; /* the bits of a block in raw; to 0: no mark was found behind it */
    char level;
    uint32_t crc;    /* of a block, or of all blocks at the end of a stream */
    int rc;          /* of decoding, as bz2_decode gives it, */
    struct buf out;  /* with this */
    size_t given;    /* of out */
    bool big;
};

struct bz2 {
    struct piece *ring; /* [head, head + n) modulo cap, in file order */
    size_t cap, head, n;
    /* the reader's: where it stands in what is stored */
    bool inside;    /* a stream, at this bit of the next byte */
    unsigned bit;
    char level;
    bool over;      /* the last piece is one behind which there is nothing */
    int mends;
    /* and in what it gives out */
    bool giving;    /* the block at the head */
    uint32_t sum;   /* of the stream's blocks so far */
    bz_stream big;  /* decodes a block too big to be kept */
    bool big_open;
    struct buf wrapped;
    /* the threads */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pthread_t threads[MOST_THREADS];
    int n_threads;
    bool started, stop;
};

static struct piece *piece_at(const struct bz2 *b, size_t i)
{
    return &b->ring[(b->head + i) % b->cap];
}

/* ---- decoding ---- */

static void decode(struct piece *p, struct buf *wrapped)
{
    p->rc = p->to ? bz2_wrap((uint8_t *)p->raw.p, p->from, p->to, p->level, wrapped) : ERR_FORMAT;
    if (p->rc == 0)
        p->rc = bz2_decode(wrapped, &p->out, &p->big);
}

/* The first block that nobody has taken; under the lock. */
static struct piece *take(struct bz2 *b)
{
    for (size_t i = 0; i < b->n; i++) {
        struct piece *p = piece_at(b, i);
        if (p->kind == BLOCK && p->state == WAITING) {
            p->state = TAKEN;
            return p;
        }
    }
    return NULL;
}

static void decode_taken(struct bz2 *b, struct piece *p, struct buf *wrapped)
{
    pthread_mutex_unlock(&b->lock);
    decode(p, wrapped);
    pthread_mutex_lock(&b->lock);
    p->state = DONE;
    pthread_cond_signal(&b->done);
}

static void *work(void *of)
{
    struct bz2 *b = of;
    struct buf wrapped = {0};

    pthread_mutex_lock(&b->lock);
    while (!b->stop) {
        struct piece *p = take(b);
        if (p)
            decode_taken(b, p, &wrapped);
        else
            pthread_cond_wait(&b->work, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
    buf_free(&wrapped);
    return NULL;
}

/* Until the block at the head is decoded; the reader decodes too meanwhile. */
static void decode_head(struct bz2 *b)
{
    struct piece *head = piece_at(b, 0);

    pthread_mutex_lock(&b->lock);
    while (head->state != DONE) {
        struct piece *p = take(b);
        if (p)
            decode_taken(b, p, &b->wrapped);
        else
            pthread_cond_wait(&b->done, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
}

/* The reader is one of the threads, and if others cannot be had it does without them. */
static void start_threads(struct bz2 *b, int n)
{
    b->started = true;
    while (b->n_threads < n - 1 && pthread_create(&b->threads[b->n_threads], NULL, work, b) == 0)
        b->n_threads++;
}

/* ---- cutting ---- */

/* Moves k bytes of the window to the end of the piece. */
static int keep(struct file_in *f, struct piece *p, size_t k)
{
    if (buf_put(&p->raw, f->in + f->at, k) < 0)
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    f->at += k;
    return 0;
}

static int cut_block(struct file_in *f, struct piece *p)
{
    struct bz2 *b = f->bz2;
    size_t from = b->bit + BZ2_MARK_BITS + BZ2_CRC_BITS; /* where to search in what is left of the window */

    p->kind = BLOCK;
    p->state = WAITING;
    p->from = b->bit;
    p->to = 0;
    p->level = b->level;
    p->crc = bz2_bits32(f->in + f->at, b->bit + BZ2_MARK_BITS);
    while (p->raw.n < BLOCK_MAX) {
        size_t avail = f->n - f->at < SEARCH ? f->n - f->at : SEARCH, mark, past;

        mark = bz2_find_mark(f->in + f->at, avail, from);
        if (mark != SIZE_MAX) {
            p->to = p->raw.n * 8 + mark;
            TRY(keep(f, p, mark / 8 + 1));
            f->at--; /* the mark begins in this byte */
            b->bit = mark % 8;
            return 0;
        }
        past = avail < SEARCH && f->eof ? avail : avail - BZ2_MARK_BITS / 8; /* a mark can have begun */
        TRY(keep(f, p, past));
        if (f->at == f->n && f->eof)
            break;
        from = from > past * 8 ? from - past * 8 : 0;
        TRY(file_in_fill(f, SEARCH));
    }
    return 0;
}

/* Behind a block: another, or the end of the stream. */
static int cut_inside(struct file_in *f, struct piece *p)
{
    struct bz2 *b = f->bz2;
    size_t need = (b->bit + BZ2_MARK_BITS + BZ2_CRC_BITS + 7) / 8;
    enum bz2_mark mark;

    TRY(file_in_fill(f, need));
    p->kind = CUT_SHORT;
    if (f->n - f->at < need)
        return 0;
    mark = bz2_mark_at(f->in + f->at, b->bit);
    p->kind = NO_MARK;
    if (mark == BZ2_BLOCK)
        return cut_block(f, p);
    if (mark == BZ2_STREAM_END) {
        p->kind = STREAM_OVER;
        p->crc = bz2_bits32(f->in + f->at, b->bit + BZ2_MARK_BITS);
        b->inside = false;
        return keep(f, p, need);
    }
    return 0;
}

static int cut(struct file_in *f, struct piece *p)
{
    struct bz2 *b = f->bz2;

    buf_clear(&p->raw);
    p->at = f->base + f->at;
    if (b->inside)
        return cut_inside(f, p);
    TRY(file_in_fill(f, BZ2_HEAD));
    p->kind = f->at == f->n ? FILE_OVER : NO_STREAM;
    if (!file_bz2_at(f->in + f->at, f->n - f->at))
        return 0;
    p->kind = STREAM;
    b->inside = true;
    b->bit = 0;
    b->level = (char)f->in[f->at + STREAM_HEAD - 1];
    return keep(f, p, STREAM_HEAD);
}

/* Fills the ring.  A file that cannot be read is a piece too: what was read before comes first. */
static void look_ahead(struct file_in *f)
{
    struct bz2 *b = f->bz2;

    while (b->n < (b->mends < MANY_MENDS ? b->cap : 1) && !b->over) {
        struct piece *p = piece_at(b, b->n);
        enum file_state state = f->state;

        if (cut(f, p) < 0) {
            p->kind = FAULT;
            f->state = state;
        }
        b->over = p->kind >= FILE_OVER;
        if (p->kind == BLOCK && b->n > 0 && !b->started)
            start_threads(b, f->threads);
        pthread_mutex_lock(&b->lock);
        b->n++;
        if (p->kind == BLOCK)
            pthread_cond_signal(&b->work);
        pthread_mutex_unlock(&b->lock);
    }
}

static void drop_head(struct bz2 *b)
{
    pthread_mutex_lock(&b->lock);
    b->head = (b->head + 1) % b->cap;
    b->n--;
    pthread_mutex_unlock(&b->lock);
}

/* ---- going back ---- */

/* The bytes from offset `start` on, which have been taken from the window, stand before it again. */
static int put_back(struct file_in *f, uint64_t start, struct buf *bytes)
{
    if (start >= f->base) {
        f->at = (size_t)(start - f->base);
        buf_free(bytes);
        return 0;
    }
    if (buf_put(bytes, f->in + f->at, f->n - f->at) < 0 || buf_reserve(bytes, f->cap) < 0) {
        buf_free(bytes);
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    }
    free(f->own);
    f->in = f->own = (uint8_t *)bytes->p;
    f->cap = bytes->cap;
    f->n = bytes->n;
    f->at = 0;
    f->base = start;
    return 0;
}

/* Empties the ring; the window begins again with what the piece at its head began with. */
static int go_back(struct file_in *f)
{
    struct bz2 *b = f->bz2;
    struct buf all = {0};
    uint64_t start;
    int rc = 0;

    if (b->n == 0)
        return 0;
    start = piece_at(b, 0)->at;
    pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < b->n; i++) {
        struct piece *p = piece_at(b, i);
        if (p->kind == BLOCK && p->state == WAITING)
            p->state = DONE;
        while (p->kind == BLOCK && p->state != DONE)
            pthread_cond_wait(&b->done, &b->lock);
        if (rc == 0 && start < f->base) {
            all.n = all.n ? (size_t)(p->at - start) : 0; /* neighbours share a byte */
            rc = buf_put_span(&all, buf_span(&p->raw));
        }
    }
    all.n = all.n ? (size_t)(f->base + f->at - start) : 0;
    b->n = 0;
    pthread_mutex_unlock(&b->lock);
    b->over = b->giving = false;
    if (rc == 0)
        return put_back(f, start, &all);
    buf_free(&all);
    return file_in_broken(f, ERR_NOMEM, "out of memory");
}

/* Takes bytes from the window until the piece has n. */
static int gather(struct file_in *f, struct piece *p, size_t n)
{
    while (p->raw.n < n && !(f->eof && f->at == f->n)) {
        TRY(file_in_fill(f, 1));
        TRY(keep(f, p, f->n - f->at < n - p->raw.n ? f->n - f->at : n - p->raw.n));
    }
    return 0;
}

/* Decodes the block that the piece begins with, wherever it ends.  Leaves in p->rc how it went.
 * *more: the file ends before the block. */
static int decode_open(struct file_in *f, struct piece *p, bool *more)
{
    struct bz2 *b = f->bz2;
    size_t bytes, want = MEND_FIRST;

    buf_clear(&p->raw);
    for (;; want *= 4) {
        TRY(gather(f, p, want));
        bytes = bz2_block_bytes((uint8_t *)p->raw.p, p->raw.n, (unsigned)p->from, p->level, more);
        if (!*more || p->raw.n < want || want >= BLOCK_MAX)
            break;
    }
    *more = *more && p->raw.n < want;
    p->rc = ERR_FORMAT;
    for (size_t k = bytes ? bytes * 8 - 7 : 1; k <= bytes * 8 && p->rc == ERR_FORMAT; k++) {
        p->to = p->from + k;
        if (p->to <= p->raw.n * 8)
            decode(p, &b->wrapped);
    }
    return 0;
}

/* A block was not decoded as it was cut: finds where it ends, and decodes it.  It stays the one at
 * the head, the only one. */
static int mend(struct file_in *f)
{
    struct bz2 *b = f->bz2;
    struct piece *p = piece_at(b, 0);
    struct buf behind = {0};
    uint64_t at = p->at;
    bool more;

    TRY(go_back(f));
    TRY(decode_open(f, p, &more));
    if (p->rc == ERR_FORMAT && more)
        return file_in_broken(f, ERR_FORMAT, "bzip2 stream at offset %" PRIu64 " is cut short", f->member);
    if (p->rc == ERR_FORMAT)
        return file_in_broken(f, ERR_FORMAT, "damaged bzip2 stream at offset %" PRIu64 ": its block at offset %" PRIu64,
                              f->member, at);
    if (p->rc < 0 || buf_put(&behind, p->raw.p + p->to / 8, p->raw.n - p->to / 8) < 0)
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    b->mends++;
    b->inside = true;
    b->level = p->level;
    b->bit = p->to % 8;
    pthread_mutex_lock(&b->lock);
    b->n = 1;
    pthread_mutex_unlock(&b->lock);
    return put_back(f, at + p->to / 8, &behind);
}

/* ---- giving out ---- */

static int open_bz2(struct file_in *f)
{
    struct bz2 *b = calloc(1, sizeof *b);

    f->bz2 = b;
    if (b) {
        f->threads = f->threads > MOST_THREADS ? MOST_THREADS : f->threads;
        b->cap = f->threads > 1 ? (size_t)f->threads * 4 : 1;
        b->ring = calloc(b->cap, sizeof *b->ring);
        pthread_mutex_init(&b->lock, NULL);
        pthread_cond_init(&b->work, NULL);
        pthread_cond_init(&b->done, NULL);
    }
    return b && b->ring ? 0 : file_in_broken(f, ERR_NOMEM, "out of memory");
}

static int give_up(struct file_in *f)
{
    f->state = BROKEN;
    return f->why.code;
}

int file_bz2_begin(struct file_in *f)
{
    struct bz2 *b;
    struct piece *p;

    if (!f->bz2)
        TRY(open_bz2(f));
    b = f->bz2;
    look_ahead(f);
    p = piece_at(b, 0);
    if (p->kind == FAULT)
        return give_up(f);
    f->member = p->at;
    if (p->kind == FILE_OVER)
        return 0;
    if (p->kind == NO_STREAM)
        return file_in_broken(f, ERR_FORMAT, "no bzip2 stream but other bytes at offset %" PRIu64, f->member);
    b->sum = 0;
    drop_head(b);
    return 1;
}

static int begin_block(struct file_in *f)
{
    struct bz2 *b = f->bz2;
    struct piece *p = piece_at(b, 0);

    decode_head(b);
    if (p->rc == ERR_NOMEM)
        return file_in_broken(f, ERR_NOMEM, "out of memory");
    if (p->rc < 0)
        TRY(mend(f));
    if (p->big) {
        b->big = (bz_stream){0};
        if (bz2_wrap((uint8_t *)p->raw.p, p->from, p->to, p->level, &b->wrapped) < 0 ||
            BZ2_bzDecompressInit(&b->big, 0, 0) != BZ_OK)
            return file_in_broken(f, ERR_NOMEM, "out of memory");
        b->big.next_in = b->wrapped.p;
        b->big.avail_in = (unsigned)b->wrapped.n;
        b->big_open = true;
    }
    b->sum = (b->sum << 1 | b->sum >> 31) ^ p->crc;
    p->given = 0;
    b->giving = true;
    return 1;
}

/* 1: there is a block at the head to be given out; 0: the stream is over; negative: broken. */
static int next_block(struct file_in *f)
{
    struct bz2 *b = f->bz2;
    struct piece *p;

    look_ahead(f);
    p = piece_at(b, 0);
    switch (p->kind) {
    case BLOCK:
        return begin_block(f);
    case STREAM_OVER:
        if (p->crc != b->sum)
            return file_in_broken(f, ERR_FORMAT, "damaged bzip2 stream at offset %" PRIu64 ": the check sum of its blocks",
                                  f->member);
        drop_head(b);
        return 0;
    case CUT_SHORT:
        return file_in_broken(f, ERR_FORMAT, "bzip2 stream at offset %" PRIu64 " is cut short", f->member);
    case FAULT:
        return give_up(f);
    default:
        return file_in_broken(f, ERR_FORMAT, "damaged bzip2 stream at offset %" PRIu64
                              ": neither a block nor an end at offset %" PRIu64, f->member, p->at);
    }
}

static size_t give(struct bz2 *b, void *out, size_t n)
{
    struct piece *p = piece_at(b, 0);

    if (b->big_open) {
        b->big.next_out = out;
        b->big.avail_out = (unsigned)n;
        if (BZ2_bzDecompress(&b->big) != BZ_OK) { /* it went well before: the end */
            BZ2_bzDecompressEnd(&b->big);
            b->big_open = false;
        }
        return n - b->big.avail_out;
    }
    if (n > p->out.n - p->given)
        n = p->out.n - p->given;
    memcpy(out, p->out.p + p->given, n);
    p->given += n;
    return n;
}

ssize_t file_bz2_read(struct file_in *f, void *out, size_t n)
{
    struct bz2 *b = f->bz2;

    for (;;) {
        size_t k;

        if (!b->giving) {
            int rc = next_block(f);
            if (rc <= 0)
                return rc;
        }
        k = give(b, out, n);
        if (k)
            return (ssize_t)k;
        b->giving = false;
        drop_head(b);
    }
}

int file_bz2_go_back(struct file_in *f)
{
    struct bz2 *b = f->bz2;

    if (!b)
        return 0;
    if (b->big_open)
        BZ2_bzDecompressEnd(&b->big);
    b->big_open = false;
    TRY(go_back(f));
    b->inside = false;
    return 0;
}

void file_bz2_close(struct file_in *f)
{
    struct bz2 *b = f->bz2;

    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_cond_broadcast(&b->work);
    pthread_mutex_unlock(&b->lock);
    for (int i = 0; i < b->n_threads; i++)
        pthread_join(b->threads[i], NULL);
    if (b->big_open)
        BZ2_bzDecompressEnd(&b->big);
    for (size_t i = 0; b->ring && i < b->cap; i++) {
        buf_free(&b->ring[i].raw);
        buf_free(&b->ring[i].out);
    }
    pthread_cond_destroy(&b->work);
    pthread_cond_destroy(&b->done);
    pthread_mutex_destroy(&b->lock);
    buf_free(&b->wrapped);
    free(b->ring);
    free(b);
}

#else

int file_bz2_begin(struct file_in *f)
{
    return file_in_broken(f, ERR_UNSUPPORTED, "it is compressed with bzip2, and this quern was built without libbz2");
}

ssize_t file_bz2_read(struct file_in *f, void *p, size_t n)
{
    (void)p;
    (void)n;
    return f->why.code;
}

int file_bz2_go_back(struct file_in *f)
{
    (void)f;
    return 0;
}

void file_bz2_close(struct file_in *f)
{
    (void)f;
}
#endif
