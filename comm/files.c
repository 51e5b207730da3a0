/* Messages in files: each rank appends what it says to another one to a file of theirs, and reads what others say to it. */
#include "comm/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "comm/port.h"

/* SETTLE: seconds in which what was written has reached everybody, if not all of a file at once.  LONGEST_NAP: milliseconds. */
enum { SETTLE = 20, TELL_AFTER = 30, LONGEST_NAP = 100, LONGEST_PREFIX = 4000, PIECE = 1 << 16 };

/* Before the bytes of a message.  Processors are of one kind, so numbers go as they are. */
struct frame {
    uint64_t seal; /* hash of what follows, of where it stands, and of whose file it is */
    uint64_t port, tag, bytes, sum;
};

struct message {
    struct message *next;
    struct link *link;
    struct frame head;
    bool to_us, done;
    char *buf;
    uint64_t got; /* what came, if it was of another size */
};

/* A message that stands in the file before it was asked for. */
struct early {
    struct early *next;
    struct frame head;
    uint64_t at;
};

/* Another rank. */
struct link {
    int rank;
    uint64_t out_at, in_at; /* in the file to it and in that from it: where the next message begins */
    struct message *asked;  /* receives, in order */
    struct early *early;
    double bad_since;       /* 0: what stands in the file is no message yet */
};

struct files {
    struct comm_files conf;
    char prefix[LONGEST_PREFIX];
    double timeout;
    struct link *links;
    struct port *world;
};

static struct files own; /* one world a process */

/* ---- names and seals ---- */

static void file_of(int from, int to, char path[4096])
{
    snprintf(path, 4096, "%s%d-%d", own.prefix, from, to);
}

static uint64_t seal_of(const struct frame *h, int from, int to, uint64_t at)
{
    uint64_t v[] = {own.conf.key, (uint64_t)own.conf.size, (uint64_t)from, (uint64_t)to, at, h->port, h->tag, h->bytes, h->sum};

    return hash_xxh3_64((struct span){(const char *)v, sizeof v});
}

static uint64_t sum_of(const void *p, uint64_t n)
{
    return hash_xxh3_64((struct span){n ? p : "", n});
}

/* All n bytes at an offset.  1; 0: there are not so many. */
static int read_at(int fd, void *p, uint64_t n, uint64_t at, const char *path, struct err *e)
{
    ssize_t got = fd_read_at(fd, p, n, at);

    return got < 0 ? err_sys(e, ERR_IO, "cannot read '%s'", path) : (uint64_t)got == n;
}

/* ---- sending ---- */

/* Whether the bytes of a message stand there, from `at` on, that a run before this one wrote. */
static int has_bytes(int fd, const char *p, uint64_t n, uint64_t at, const char *path, struct err *e)
{
    char piece[PIECE];

    for (uint64_t i = 0; i < n; i += PIECE) {
        uint64_t some = n - i < PIECE ? n - i : PIECE;
        int rc = read_at(fd, piece, some, at + i, path, e);

        if (rc != 1 || memcmp(piece, p + i, some) != 0)
            return rc < 0 ? rc : 0;
    }
    return 1;
}

/* The same of a message.  1; 0: no whole one; ERR_ARG: another one. */
static int was_said(const struct link *l, int fd, const struct message *m, const char *path, struct err *e)
{
    const struct frame *h = &m->head;
    struct frame was;
    int rc = read_at(fd, &was, sizeof was, l->out_at, path, e);

    if (rc != 1 || was.seal != seal_of(&was, own.conf.rank, l->rank, l->out_at))
        return rc < 0 ? rc : 0;
    if (memcmp(&was, h, sizeof was) != 0)
        return err_set(e, ERR_ARG,
                       "'%s' at byte %" PRIu64 ": this rank has said something else here before (%" PRIu64 " bytes, now %" PRIu64
                       "): with other inputs, options, or another version.  To begin again, remove the folder",
                       path, l->out_at, was.bytes, h->bytes);
    return has_bytes(fd, m->buf, h->bytes, l->out_at + sizeof was, path, e);
}

static int write_frame(int fd, struct message *m, uint64_t at, const char *path, struct err *e)
{
    uint64_t all = sizeof m->head + m->head.bytes;

    for (uint64_t n = 0; n < all;) {
        uint64_t head = n < sizeof m->head ? sizeof m->head - n : 0, body = head ? 0 : n - sizeof m->head;
        struct iovec v[2] = {{(char *)&m->head + (sizeof m->head - head), head}, {m->buf + body, m->head.bytes - body}};
        ssize_t w = pwritev(fd, v, 2, (off_t)(at + n));

        if (w < 0 && errno != EINTR)
            return err_sys(e, ERR_IO, "cannot write '%s'", path);
        n += w > 0 ? (uint64_t)w : 0;
    }
    return 0;
}

/* Says m, unless it has been said. */
static int say(struct link *l, struct message *m, struct err *e)
{
    char path[4096];
    int fd, rc;

    file_of(own.conf.rank, l->rank, path);
    m->head.sum = sum_of(m->buf, m->head.bytes);
    m->head.seal = seal_of(&m->head, own.conf.rank, l->rank, l->out_at);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return err_sys(e, ERR_IO, "cannot write '%s'", path);
    rc = was_said(l, fd, m, path, e);
    if (rc == 0)
        rc = write_frame(fd, m, l->out_at, path, e);
    if (close(fd) < 0 && rc >= 0)
        rc = err_sys(e, ERR_IO, "cannot write '%s'", path);
    l->out_at += sizeof m->head + m->head.bytes;
    m->done = true;
    return rc < 0 ? rc : 0;
}

/* ---- receiving ---- */

/* What stands at `at` is no message: it may be under way yet, or is damaged. */
static int is_bad(struct link *l, const char *path, uint64_t at, const char *why, struct err *e)
{
    double now = log_seconds(), settle = own.timeout < SETTLE ? own.timeout : SETTLE;

    l->bad_since = l->bad_since > 0 ? l->bad_since : now;
    if (now - l->bad_since < settle)
        return 0;
    return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": %s.  Rank %d, started again, writes anew what it says", path, at,
                   why, l->rank);
}

/* Which receive a message is for, taken off. */
static struct message *take_asked(struct link *l, const struct frame *h)
{
    for (struct message **p = &l->asked; *p; p = &(*p)->next)
        if ((*p)->head.port == h->port && (*p)->head.tag == h->tag) {
            struct message *m = *p;
            *p = m->next;
            return m;
        }
    return NULL;
}

/* Reads the bytes at `at` of a message that is asked for.  1; 0: they are not all there. */
static int take_bytes(struct link *l, int fd, const struct frame *h, uint64_t at, struct message *m, const char *path,
                      struct err *e)
{
    int rc = 1;

    if (m->head.bytes == h->bytes) {
        rc = read_at(fd, m->buf, h->bytes, at, path, e);
        if (rc == 1 && sum_of(m->buf, h->bytes) != h->sum)
            rc = is_bad(l, path, at, "the bytes of the message do not have its checksum", e);
    }
    m->got = h->bytes;
    m->done = rc == 1;
    if (rc == 0) { /* the first of its kind again */
        m->next = l->asked;
        l->asked = m;
    }
    return rc;
}

/* What stands there already.  1; 0: some of that cannot be read now. */
static int take_early(struct link *l, int fd, const char *path, struct err *e)
{
    struct early **p = &l->early, *x;

    while ((x = *p)) {
        struct message *m = take_asked(l, &x->head);
        int rc = m ? take_bytes(l, fd, &x->head, x->at, m, path, e) : 1;

        if (rc != 1)
            return rc;
        if (m) {
            *p = x->next;
            free(x);
        } else {
            p = &x->next;
        }
    }
    return 1;
}

/* The next message of the file.  1; 0: there is none yet. */
static int take_next(struct link *l, int fd, uint64_t size, const char *path, struct err *e)
{
    struct message *m;
    struct early **end, *x;
    struct frame h;
    int rc;

    if (size < l->in_at)
        return is_bad(l, path, size, "the file has been cut", e);
    if (size - l->in_at < sizeof h)
        return 0;
    TRY(rc = read_at(fd, &h, sizeof h, l->in_at, path, e));
    if (rc == 1 && h.seal != seal_of(&h, l->rank, own.conf.rank, l->in_at))
        return is_bad(l, path, l->in_at, "no message of this run begins here", e);
    if (rc == 0 || size - l->in_at - sizeof h < h.bytes)
        return 0;
    m = take_asked(l, &h);
    if (m) {
        TRY(rc = take_bytes(l, fd, &h, l->in_at + sizeof h, m, path, e));
        if (rc == 0)
            return 0;
    } else {
        for (end = &l->early; *end; end = &(*end)->next)
            ;
        *end = x = malloc(sizeof *x);
        if (!x)
            return err_set(e, ERR_NOMEM, "out of memory");
        *x = (struct early){.head = h, .at = l->in_at + sizeof h};
    }
    l->in_at += sizeof h + h.bytes;
    l->bad_since = 0;
    return 1;
}

/* Reads what is there for the receives of a link. */
static int look(struct link *l, struct err *e)
{
    char path[4096];
    struct stat st;
    int fd, rc;

    file_of(l->rank, own.conf.rank, path);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return l->in_at ? is_bad(l, path, 0, "the file is gone", e) : 0;
    if (fd < 0)
        return err_sys(e, ERR_IO, "cannot open '%s'", path);
    rc = fstat(fd, &st) < 0 ? err_sys(e, ERR_IO, "cannot read '%s'", path) : take_early(l, fd, path, e);
    while (rc == 1 && l->asked)
        rc = take_next(l, fd, (uint64_t)st.st_size, path, e);
    close(fd);
    return rc < 0 ? rc : 0;
}

/* ---- the network ---- */

static int files_post(struct port *p, bool to_us, void *buf, size_t n, int peer, int tag, void **message, struct err *e)
{
    struct message *m = calloc(1, sizeof *m), **last;
    struct link *l = &own.links[p->world[peer]];

    if (!m)
        return err_set(e, ERR_NOMEM, "out of memory");
    *m = (struct message){.link = l, .head = {.port = p->id, .tag = (uint64_t)tag, .bytes = n}, .to_us = to_us, .buf = buf};
    *message = m;
    if (!to_us)
        return say(l, m, e);
    for (last = &l->asked; *last; last = &(*last)->next)
        ;
    *last = m;
    return 0;
}

/* After a failure m stays in the lists of its link, and so in memory. */
static int files_test(void *message, bool *done, bool *moved, struct err *e)
{
    struct message *m = message;

    if (!m->done)
        TRY(look(m->link, e));
    *done = m->done;
    *moved |= m->done;
    if (!m->done)
        return 0;
    if (m->to_us && m->got != m->head.bytes)
        return err_set(e, ERR_FORMAT, "the message has %" PRIu64 " bytes, not %" PRIu64, m->got, m->head.bytes);
    free(m);
    return 0;
}

/* A nap is an eighth of the time that was waited, up to LONGEST_NAP. */
static void files_idle(int rounds)
{
    long ns = rounds < 52 ? 20000L << rounds / 4 : LONGEST_NAP * 1000000L;

    nanosleep(&(struct timespec){.tv_nsec = ns < LONGEST_NAP * 1000000L ? ns : LONGEST_NAP * 1000000L}, NULL);
}

static int files_open(struct port **world, int *rank, int *size, struct err *e)
{
    own.world = *world = port_world(&own, own.conf.rank, own.conf.size);
    own.links = calloc((size_t)own.conf.size, sizeof *own.links);
    if (!own.world || !own.links) {
        free(own.world), free(own.links);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    for (int r = 0; r < own.conf.size; r++)
        own.links[r].rank = r;
    *rank = own.conf.rank;
    *size = own.conf.size;
    return 0;
}

static void files_close(struct port *p)
{
    bool world = p->id == PORT_WORLD;

    free(p);
    for (int r = 0; r < own.conf.size && world; r++)
        for (struct early *x = own.links[r].early, *next; x; x = next) {
            next = x->next;
            free(x);
        }
    if (world)
        free(own.links);
}

static int files_split(struct port *p, int colour, int key, struct port **to, int *rank, int *size, struct err *e);

static const struct network network = {files_open, files_split, files_close, files_post, files_test, files_idle, TELL_AFTER};

static int files_split(struct port *p, int colour, int key, struct port **to, int *rank, int *size, struct err *e)
{
    return port_split(&network, own.timeout, p, colour, key, to, rank, size, e);
}

/* ---- whose the files are ---- */

#define RANKS_TEXT "messages of quern 1: %d ranks, run %016"

static int compare(const char *path, const char *was, struct err *e)
{
    uint64_t key;
    int size;

    if (sscanf(was, RANKS_TEXT SCNx64, &size, &key) != 2)
        return err_set(e, ERR_ARG, "'%s' is there already, and no file of ranks: take another folder", path);
    if (size != own.conf.size)
        return err_set(e, ERR_ARG, "'%s': here are messages of %d ranks, not of %d: take another folder", path, size,
                       own.conf.size);
    if (key != own.conf.key)
        return err_set(e, ERR_ARG, "'%s': here are messages of ranks with other inputs or options: take another folder, or remove"
                       " this one to begin again", path);
    return 0;
}

/* A file says whose the others are; the first rank to come writes it, and nobody replaces it (where there are no hard links two
 * that come at once may: should their runs differ, no seal fits what the other says). */
static int claim(struct err *e)
{
    char path[4096], mine[4096], text[100] = "";
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof path, "%sranks", own.prefix);
    snprintf(mine, sizeof mine, "%sranks.%d", own.prefix, own.conf.rank);
    if (access(path, F_OK) < 0) {
        int len = snprintf(text, sizeof text, RANKS_TEXT PRIx64 "\n", own.conf.size, own.conf.key);

        fd = open(mine, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0 || write(fd, text, (size_t)len) != len || close(fd) < 0 ||
            (link(mine, path) < 0 && access(path, F_OK) < 0 && rename(mine, path) < 0))
            return err_sys(e, ERR_IO, "cannot write '%s'", path);
        unlink(mine);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        memset(text, 0, sizeof text);
        n = pread(fd, text, sizeof text - 1, 0);
        close(fd);
    }
    return n < 0 ? err_sys(e, ERR_IO, "cannot read '%s'", path) : compare(path, text, e);
}

int comm_files_turn(struct comm *c, const char *prefix, struct err *e)
{
    if (snprintf(own.prefix, sizeof own.prefix, "%s", prefix) >= LONGEST_PREFIX)
        return err_set(e, ERR_ARG, "the name '%.100s...' is too long", prefix);
    TRY(claim(e));
    collective_begin(c);
    own.world->splits = 0;
    for (int r = 0; r < own.conf.size; r++)
        own.links[r] = (struct link){.rank = r};
    return 0;
}

int comm_open_files(struct comm **c, const struct comm_files *f, double timeout, struct err *e)
{
    int rc;

    own = (struct files){.conf = *f, .timeout = timeout};
    TRY(collective_open(c, &comm_files, &network, e));
    (*c)->world_rank = (*c)->rank;
    (*c)->timeout = timeout;
    (*c)->starts_again = true;
    snprintf((*c)->name, sizeof (*c)->name, "world");
    rc = f->prefix ? comm_files_turn(*c, f->prefix, e) : 0;
    if (rc < 0) {
        comm_close(*c);
        *c = NULL;
    }
    return rc;
}
