/* Messages over TCP: a connection between each two ranks, on which messages of all ports and tags follow one another, each
 * behind a head.  Both sides are processors of one kind, so numbers go as they are. */
#include "comm/tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "comm/port.h"
#include "comm/rendezvous.h"

enum {
    AT_ONCE = 4 << 20,    /* bytes that are read from one rank before the others have their turn */
    LONGEST_SHIFT = 42    /* a message of 4 TiB is none */
};

struct head {
    uint64_t port, tag, bytes;
};

struct message {
    struct message *next;
    struct link *link;
    struct head head;
    bool to_us, done, moved;
    char *buf;
    size_t at;  /* bytes that are over, of a message that is sent with the head's */
    size_t got; /* what came, if it was of another size */
};

/* What came before it was asked for, or is still coming.  whose: it has been asked for meanwhile. */
struct early {
    struct early *next;
    struct head head;
    struct message *whose;
    bool whole;
    char buf[];
};

struct link {
    struct tcp *net;
    int fd, rank;
    bool gone, watched; /* watched: for room to send */
    struct message *first_out, **last_out;
    struct message *asked;  /* receives, in order */
    struct early *early;
    struct head head;       /* what comes in */
    size_t head_at, at;
    struct message *to;     /* where it goes: a message, else early */
    struct early *to_early;
};

struct tcp {
    int rank, size, epoll;
    struct link *links;
};

static double patience; /* one world a process */

static int link_lost(const struct link *l, struct err *e)
{
    return err_set(e, ERR_IO, "world rank %d has closed the connection", l->rank);
}

static void lose(struct link *l)
{
    l->gone = true;
    epoll_ctl(l->net->epoll, EPOLL_CTL_DEL, l->fd, NULL);
}

/* ---- sending ---- */

static void want_room(struct link *l, bool want)
{
    struct epoll_event ev = {.events = EPOLLIN | (want ? EPOLLOUT : 0), .data.ptr = l};

    if (want != l->watched && !l->gone)
        epoll_ctl(l->net->epoll, EPOLL_CTL_MOD, l->fd, &ev);
    l->watched = want;
}

/* As much as there is room for. */
static void send_some(struct link *l)
{
    while (l->first_out && !l->gone) {
        struct message *m = l->first_out;
        size_t head = m->at < sizeof m->head ? sizeof m->head - m->at : 0, body = head ? 0 : m->at - sizeof m->head;
        struct iovec v[2] = {{(char *)&m->head + (sizeof m->head - head), head}, {m->buf + body, m->head.bytes - body}};
        struct msghdr h = {.msg_iov = v, .msg_iovlen = 2};
        ssize_t n = sendmsg(l->fd, &h, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            lose(l);
        if (n < 0)
            break;
        m->at += (size_t)n;
        m->moved = true;
        if (m->at < sizeof m->head + m->head.bytes)
            continue;
        m->done = true;
        l->first_out = m->next;
        if (!l->first_out)
            l->last_out = &l->first_out;
    }
    want_room(l, l->first_out != NULL);
}

/* ---- receiving ---- */

static bool same_message(const struct head *a, const struct head *b)
{
    return a->port == b->port && a->tag == b->tag;
}

static struct message *take_asked(struct link *l, const struct head *h)
{
    for (struct message **p = &l->asked; *p; p = &(*p)->next)
        if (same_message(&(*p)->head, h)) {
            struct message *m = *p;
            *p = m->next;
            return m;
        }
    return NULL;
}

/* Where the message goes that l->head begins. */
static int begin(struct link *l)
{
    struct early **end;

    if (l->head.bytes >> LONGEST_SHIFT)
        return -1;
    l->at = 0;
    l->to = take_asked(l, &l->head);
    if (l->to && l->to->head.bytes == l->head.bytes)
        return 0;
    l->to_early = malloc(sizeof *l->to_early + l->head.bytes);
    if (!l->to_early)
        return -1;
    *l->to_early = (struct early){.head = l->head, .whose = l->to};
    l->to = NULL;
    for (end = &l->early; *end; end = &(*end)->next)
        ;
    *end = l->to_early;
    return 0;
}

static void hand_over(struct message *m, struct early *x)
{
    m->got = x->head.bytes;
    if (m->got == m->head.bytes)
        memcpy(m->buf, x->buf, m->got);
    m->done = m->moved = true;
}

static void drop_early(struct link *l, struct early *x)
{
    struct early **p = &l->early;

    while (*p != x)
        p = &(*p)->next;
    *p = x->next;
    free(x);
}

/* The message that came in is whole. */
static void end(struct link *l)
{
    struct early *x = l->to_early;

    if (l->to) {
        l->to->got = l->head.bytes;
        l->to->done = true;
    } else {
        x->whole = true;
        if (x->whose) {
            hand_over(x->whose, x);
            drop_early(l, x);
        }
    }
    l->to = NULL;
    l->to_early = NULL;
    l->head_at = 0;
}

static void receive_some(struct link *l)
{
    for (size_t all = 0; all < AT_ONCE && !l->gone;) {
        bool head = l->head_at < sizeof l->head;
        char *to = head ? (char *)&l->head + l->head_at : (l->to ? l->to->buf : l->to_early->buf) + l->at;
        ssize_t n = recv(l->fd, to, head ? sizeof l->head - l->head_at : l->head.bytes - l->at, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            lose(l);
            return;
        }
        all += (size_t)n;
        if (head) {
            l->head_at += (size_t)n;
            if (l->head_at < sizeof l->head)
                continue;
            if (begin(l) < 0) {
                lose(l);
                return;
            }
        } else {
            l->at += (size_t)n;
        }
        if (l->to)
            l->to->moved = true;
        if (l->at == l->head.bytes)
            end(l);
    }
}

static void progress(struct tcp *net, int ms)
{
    struct epoll_event ev[64];
    int n = epoll_wait(net->epoll, ev, 64, ms);

    for (int i = 0; i < n; i++) {
        struct link *l = ev[i].data.ptr;

        if (ev[i].events & EPOLLOUT)
            send_some(l);
        if (ev[i].events & ~(uint32_t)EPOLLOUT)
            receive_some(l);
    }
}

/* ---- the network ---- */

static void queue_out(struct link *l, struct message *m)
{
    *l->last_out = m;
    l->last_out = &m->next;
    if (l->first_out == m)
        send_some(l);
}

/* It may have come before. */
static void ask(struct link *l, struct message *m)
{
    struct message **last;

    for (struct early *x = l->early; x; x = x->next) {
        if (x->whose || !same_message(&x->head, &m->head))
            continue;
        if (!x->whole) {
            x->whose = m;
            return;
        }
        hand_over(m, x);
        drop_early(l, x);
        return;
    }
    for (last = &l->asked; *last; last = &(*last)->next)
        ;
    *last = m;
}

static int tcp_post(struct port *p, bool to_us, void *buf, size_t n, int peer, int tag, void **message, struct err *e)
{
    struct message *m = calloc(1, sizeof *m);
    struct tcp *net = p->net;
    struct link *l = &net->links[p->world[peer]];

    if (!m)
        return err_set(e, ERR_NOMEM, "out of memory");
    *m = (struct message){.link = l, .head = {p->id, (uint64_t)tag, n}, .to_us = to_us, .buf = buf};
    if (to_us)
        ask(l, m);
    else
        queue_out(l, m);
    *message = m;
    return 0;
}

/* After a failure m stays in the lists of its link, and so in memory. */
static int tcp_test(void *message, bool *done, bool *moved, struct err *e)
{
    struct message *m = message;

    if (!m->done)
        progress(m->link->net, 0);
    *moved |= m->moved;
    m->moved = false;
    *done = m->done;
    if (!m->done)
        return m->link->gone ? link_lost(m->link, e) : 0;
    if (m->to_us && m->got != m->head.bytes)
        return err_set(e, ERR_FORMAT, "the message has %zu bytes, not %zu", m->got, (size_t)m->head.bytes);
    free(m);
    return 0;
}

/* ---- opening and closing ---- */

static void tcp_free(struct tcp *net)
{
    for (int i = 0; net->links && i < net->size; i++) {
        if (net->links[i].fd >= 0)
            close(net->links[i].fd);
        while (net->links[i].early)
            drop_early(&net->links[i], net->links[i].early);
    }
    if (net->epoll >= 0)
        close(net->epoll);
    free(net->links);
    free(net);
}

static int take_links(struct tcp *net, const int *fd, struct err *e)
{
    for (int i = 0; i < net->size; i++) {
        struct link *l = &net->links[i];
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = l};

        *l = (struct link){.net = net, .fd = fd[i], .rank = i, .last_out = &l->first_out};
        if (fd[i] >= 0 && epoll_ctl(net->epoll, EPOLL_CTL_ADD, fd[i], &ev) < 0)
            return err_sys(e, ERR_IO, "epoll");
    }
    return 0;
}

static int open_links(struct tcp *net, const struct rendezvous *r, struct err *e)
{
    int *fd = malloc((size_t)r->size * sizeof *fd);
    int rc;

    net->rank = r->rank;
    net->size = r->size;
    net->links = calloc((size_t)r->size, sizeof *net->links);
    if (!fd || !net->links) {
        free(fd);
        net->size = 0;
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    for (int i = 0; i < r->size; i++)
        net->links[i].fd = -1;
    net->epoll = epoll_create1(EPOLL_CLOEXEC);
    rc = net->epoll < 0 ? err_sys(e, ERR_IO, "epoll") : rendezvous_meet(r, patience, fd, e);
    if (rc == 0)
        rc = take_links(net, fd, e);
    free(fd);
    return rc;
}

static int tcp_open(struct port **world, int *rank, int *size, struct err *e)
{
    struct rendezvous r;
    struct tcp *net;
    struct port *p;
    int rc;

    TRY(rendezvous_from_environment(&r, e));
    net = calloc(1, sizeof *net);
    p = port_world(net, r.rank, r.size);
    if (!net || !p) {
        free(net), free(p);
        return err_set(e, ERR_NOMEM, "out of memory");
    }
    net->epoll = -1;
    rc = open_links(net, &r, e);
    if (rc < 0) {
        tcp_free(net);
        free(p);
        return rc;
    }
    *rank = r.rank;
    *size = r.size;
    *world = p;
    return 0;
}

/* The world: nothing is on its way to us; what we have sent is read before the connection goes, for a connection that is
 * closed with something unread would take it along. */
static void tcp_close(struct port *p)
{
    struct tcp *net = p->net;
    bool world = p->id == PORT_WORLD;
    double deadline = log_seconds() + 5;

    free(p);
    if (!world)
        return;
    for (int i = 0; i < net->size; i++)
        if (net->links[i].fd >= 0)
            shutdown(net->links[i].fd, SHUT_WR);
    for (int i = 0; i < net->size; i++)
        while (net->links[i].fd >= 0 && !net->links[i].gone && log_seconds() < deadline)
            progress(net, 20);
    tcp_free(net);
}

static int tcp_split(struct port *p, int colour, int key, struct port **to, int *rank, int *size, struct err *e);

static const struct network tcp = {tcp_open, tcp_split, tcp_close, tcp_post, tcp_test, NULL, 0};

static int tcp_split(struct port *p, int colour, int key, struct port **to, int *rank, int *size, struct err *e)
{
    return port_split(&tcp, patience, p, colour, key, to, rank, size, e);
}

const struct network *tcp_network(double timeout)
{
    patience = timeout;
    return &tcp;
}
