#include "train/tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct tensorboard {
    int fd;
    struct buf summary, event, record;
    char path[4352];
};

/* ---- records ---- */

static uint32_t crc32c(struct span s)
{
    uint32_t c = 0xffffffffu;

    for (size_t i = 0; i < s.n; i++) {
        c ^= (uint8_t)s.p[i];
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
    }
    return ~c;
}

static int put_le(struct buf *b, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        TRY(buf_putc(b, (char)(v >> (8 * i))));
    return 0;
}

/* A CRC of data that has CRCs in it is a weak one: the format turns it and adds a constant. */
static int put_crc(struct buf *b, struct span s)
{
    uint32_t c = crc32c(s);

    return put_le(b, (uint32_t)((c >> 15 | c << 17) + 0xa282ead8u), 4);
}

int tensorboard_record(struct buf *b, struct span event)
{
    char length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (char)((uint64_t)event.n >> (8 * i));
    TRY(buf_put(b, length, 8));
    TRY(put_crc(b, (struct span){length, 8}));
    TRY(buf_put_span(b, event));
    return put_crc(b, event);
}

/* ---- protocol buffers ---- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static int put_varint(struct buf *b, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        TRY(buf_putc(b, (char)(v | 128)));
    return buf_putc(b, (char)v);
}

static int put_field(struct buf *b, int field, enum wire wire)
{
    return put_varint(b, (uint64_t)field << 3 | (uint64_t)wire);
}

static int put_bytes(struct buf *b, int field, struct span s)
{
    TRY(put_field(b, field, WIRE_BYTES));
    TRY(put_varint(b, s.n));
    return buf_put_span(b, s);
}

static int put_time(struct buf *b)
{
    struct timespec now;
    double seconds;
    uint64_t bits;

    clock_gettime(CLOCK_REALTIME, &now);
    seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    memcpy(&bits, &seconds, 8);
    TRY(put_field(b, 1, WIRE_64));
    return put_le(b, bits, 8);
}

/* ---- the file ---- */

static int write_event(struct tensorboard *t, struct err *e)
{
    buf_clear(&t->record);
    if (tensorboard_record(&t->record, buf_span(&t->event)) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    if (write(t->fd, t->record.p, t->record.n) != (ssize_t)t->record.n)
        return err_sys(e, ERR_IO, "cannot write '%s'", t->path);
    return 0;
}

int tensorboard_open(struct tensorboard **out, const char *dir, struct err *e)
{
    struct tensorboard *t = calloc(1, sizeof *t);
    char host[256] = "";
    int rc = 0;

    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory");
    gethostname(host, sizeof host - 1);
    snprintf(t->path, sizeof t->path, "%s/events.out.tfevents.%010lld.%s.%ld", dir, (long long)time(NULL), host, (long)getpid());
    t->fd = mkdir(dir, 0777) != 0 && errno != EEXIST ? -1 : open(t->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (t->fd < 0)
        rc = err_sys(e, ERR_IO, "cannot write '%s'", t->path);
    if (rc == 0 && (put_time(&t->event) < 0 || put_bytes(&t->event, 3, span_of("brain.Event:2")) < 0))
        rc = err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = write_event(t, e);
    if (rc < 0) {
        tensorboard_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

void tensorboard_close(struct tensorboard *t)
{
    if (!t)
        return;
    if (t->fd >= 0)
        close(t->fd);
    buf_free(&t->summary);
    buf_free(&t->event);
    buf_free(&t->record);
    free(t);
}

static int put_value(struct buf *b, const char *tag, double value)
{
    float v = (float)value;
    uint32_t bits;

    memcpy(&bits, &v, 4);
    TRY(put_bytes(b, 1, span_of(tag)));
    TRY(put_field(b, 2, WIRE_32));
    return put_le(b, bits, 4);
}

int tensorboard_scalar(struct tensorboard *t, const char *tag, double value, struct err *e)
{
    buf_clear(&t->event); /* as scratch */
    if (put_value(&t->event, tag, value) < 0 || put_bytes(&t->summary, 1, buf_span(&t->event)) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    return 0;
}

int tensorboard_step(struct tensorboard *t, int64_t step, struct err *e)
{
    int rc;

    buf_clear(&t->event);
    rc = put_time(&t->event);
    if (rc == 0)
        rc = put_field(&t->event, 2, WIRE_VARINT);
    if (rc == 0)
        rc = put_varint(&t->event, (uint64_t)step);
    if (rc == 0)
        rc = put_bytes(&t->event, 5, buf_span(&t->summary));
    buf_clear(&t->summary);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory") : write_event(t, e);
}
