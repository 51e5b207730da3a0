#include "comm/rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/little.h"
#include "base/log.h"

enum {
    STRANGERS = 64,     /* connections that have not said yet who they are, at a time */
    PATIENCE = 10,      /* seconds for that */
    PLACE = 24          /* bytes of a rank's address in rank 0's answer: 4 or 6, port, 16 bytes */
};
static const char MAGIC[8] = {'q', 'u', 'e', 'r', 'n', 'T', 'C', 'P'};

void rendezvous_put_hello(unsigned char *to, const struct rendezvous_hello *h)
{
    memset(to, 0, RENDEZVOUS_HELLO);
    memcpy(to, MAGIC, 8);
    little_put(to + 8, h->size, 4);
    little_put(to + 12, h->rank, 4);
    little_put(to + 16, h->port, 4);
    little_put(to + 24, h->job, 8);
    memcpy(to + 32, h->word, RENDEZVOUS_WORD);
}

int rendezvous_get_hello(struct rendezvous_hello *h, const struct rendezvous *r, const unsigned char *from, size_t n,
                         struct err *e)
{
    if (memcmp(from, MAGIC, n < 8 ? n : 8) != 0)
        return err_set(e, ERR_FORMAT, "no rank of ours");
    if (n < RENDEZVOUS_HELLO)
        return 0;
    h->size = (uint32_t)little_get(from + 8, 4);
    h->rank = (uint32_t)little_get(from + 12, 4);
    h->port = (uint32_t)little_get(from + 16, 4);
    h->job = little_get(from + 24, 8);
    memcpy(h->word, from + 32, RENDEZVOUS_WORD);
    if (h->size != (uint32_t)r->size || h->job != r->job)
        return err_set(e, ERR_FORMAT, "a rank of another run, of %u ranks", (unsigned)h->size);
    if (h->rank >= h->size || h->port > 65535 || little_get(from + 20, 4) != 0)
        return err_set(e, ERR_FORMAT, "rank %u of %u cannot be", (unsigned)h->rank, (unsigned)h->size);
    return 1;
}

int rendezvous_first_node(const char *list, char *to, size_t size, struct err *e)
{
    size_t n = 0;
    bool open = false;

    for (const char *c = list; !open && *c && *c != ','; c++) {
        if (*c == '[') { /* the first number in it */
            for (c++; *c && !strchr(",-]", *c) && n + 1 < size; c++)
                to[n++] = *c;
            c += strcspn(c, "]");
            open = !*c;
        } else if (n + 1 < size) {
            to[n++] = *c;
        }
    }
    to[n] = '\0';
    if (open || n == 0 || n + 1 == size || strlen(list) > 1 << 20 || strpbrk(to, "[] \t\n"))
        return err_set(e, ERR_ARG, "'%.60s' is no list of nodes", list);
    return 0;
}

/* ---- the environment ---- */

static bool number_of(const char *name, int *v)
{
    const char *text = getenv(name);
    char *end;
    long n;

    if (!text || !*text)
        return false;
    n = strtol(text, &end, 10);
    *v = (int)n;
    return !*end && n >= 0 && n <= 1 << 20;
}

bool rendezvous_rank(int *rank, int *size)
{
    return number_of("RANK", rank) && number_of("WORLD_SIZE", size);
}

static bool who(int *rank, int *size)
{
    if (rendezvous_rank(rank, size))
        return true;
    /* srun sets the second for each task, sbatch for none. */
    return number_of("SLURM_PROCID", rank) && number_of("SLURM_STEP_NUM_TASKS", size);
}

bool rendezvous_started(int *size)
{
    int rank;

    return who(&rank, size);
}

/* torchrun's agent may have taken MASTER_PORT for a store of its own; it says so. */
static int port_number(int *port, struct err *e)
{
    const char *store = getenv("TORCHELASTIC_USE_AGENT_STORE"), *job = getenv("SLURM_JOB_ID");

    if (getenv("MASTER_PORT")) {
        if (!number_of("MASTER_PORT", port) || *port < 1 || *port > 65534)
            return err_set(e, ERR_ARG, "MASTER_PORT: '%.30s' is no port", getenv("MASTER_PORT"));
        *port += store && strcmp(store, "True") == 0;
        return 0;
    }
    if (!job)
        return err_set(e, ERR_UNSUPPORTED, "MASTER_PORT is not set");
    *port = 20000 + (int)(strtoul(job, NULL, 10) % 10000);
    return 0;
}

static uint64_t job_of(void)
{
    static const char *const names[] = {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID"};
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (const char *c = getenv(names[i]); c && *c; c++)
            h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    return h;
}

int rendezvous_from_environment(struct rendezvous *r, struct err *e)
{
    const char *host = getenv("MASTER_ADDR"), *nodes = getenv("SLURM_STEP_NODELIST");
    int port = 0;

    memset(r, 0, sizeof *r);
    if (!who(&r->rank, &r->size))
        return err_set(e, ERR_UNSUPPORTED, "neither RANK and WORLD_SIZE nor SLURM_PROCID and SLURM_STEP_NUM_TASKS are set");
    if (r->size < 1 || r->rank >= r->size)
        return err_set(e, ERR_ARG, "rank %d of %d ranks cannot be", r->rank, r->size);
    TRY(port_number(&port, e));
    snprintf(r->port, sizeof r->port, "%d", port);
    r->job = job_of();
    if (host && *host && strlen(host) < sizeof r->host) {
        snprintf(r->host, sizeof r->host, "%s", host);
        return 0;
    }
    if (!nodes)
        return err_set(e, ERR_UNSUPPORTED, "MASTER_ADDR, the address of rank 0, is not set");
    return rendezvous_first_node(nodes, r->host, sizeof r->host, e);
}

/* ---- sockets ---- */

/* Until poll says so or the deadline comes.  0: it is ready. */
static int wait_for(int fd, short what, double deadline, const char *peer, struct err *e)
{
    for (;;) {
        double left = deadline - log_seconds();
        struct pollfd p = {.fd = fd, .events = what};
        int n = poll(&p, 1, left > 0 ? (int)(1e3 * left) + 1 : 0);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_sys(e, ERR_IO, "%s", peer);
        if (left <= 0)
            return err_set(e, ERR_LIMIT, "no answer from %s in time", peer);
    }
}

/* Receives (POLLIN) or sends (POLLOUT) all n bytes. */
static int move_all(int fd, short way, unsigned char *buf, size_t n, double deadline, const char *peer, struct err *e)
{
    for (size_t at = 0; at < n;) {
        ssize_t some = way == POLLIN ? recv(fd, buf + at, n - at, 0) : send(fd, buf + at, n - at, MSG_NOSIGNAL);

        if (some == 0)
            return err_set(e, ERR_IO, "%s has closed the connection", peer);
        if (some > 0)
            at += (size_t)some;
        else if (errno != EAGAIN && errno != EINTR)
            return err_sys(e, ERR_IO, "%s", peer);
        else
            TRY(wait_for(fd, way, deadline, peer, e));
    }
    return 0;
}

/* Answers at once, and looks whether the other side is still there. */
static void tune(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
}

static int try_connect(const struct sockaddr *to, socklen_t n, double deadline)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), bad = 0;
    socklen_t len = sizeof bad;
    struct err e;

    if (fd < 0)
        return -1;
    if (connect(fd, to, n) < 0 &&
        (errno != EINPROGRESS || wait_for(fd, POLLOUT, deadline, "", &e) < 0 ||
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &bad, &len) < 0 || bad)) {
        bad = bad ? bad : errno;
        close(fd);
        errno = bad;
        return -1;
    }
    tune(fd);
    return fd;
}

/* Whoever is to answer may not have begun to listen. */
static int connect_until(const char *host, const char *port, double deadline, int *fd, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    char why[128] = "";

    do {
        struct addrinfo *all, *a;
        int rc = getaddrinfo(host, port, &hints, &all);

        if (rc != 0 && rc != EAI_AGAIN && rc != EAI_NONAME)
            return err_set(e, ERR_IO, "%s: %s", host, gai_strerror(rc));
        snprintf(why, sizeof why, "%s", rc ? gai_strerror(rc) : "");
        for (a = rc ? NULL : all; a; a = a->ai_next) {
            double soon = log_seconds() + 5;
            *fd = try_connect(a->ai_addr, a->ai_addrlen, soon < deadline ? soon : deadline);
            if (*fd >= 0)
                break;
            snprintf(why, sizeof why, "%s", strerror(errno));
        }
        if (rc == 0)
            freeaddrinfo(all);
        if (*fd >= 0)
            return 0;
        poll(NULL, 0, 100);
    } while (log_seconds() < deadline);
    return err_set(e, ERR_LIMIT, "cannot reach %s, port %s: %s", host, port, why);
}

/* On all addresses, but for a run that is of this machine alone by its words. */
static int listen_at(const char *host, const char *port, int *fd, struct err *e)
{
    bool here = strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 || strcmp(host, "::1") == 0;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *all, *a;
    int rc = getaddrinfo(here ? host : NULL, port, &hints, &all), one = 1, no = 0;

    if (rc)
        return err_set(e, ERR_IO, "port %s: %s", port, gai_strerror(rc));
    rc = -1;
    for (int six = here ? 0 : 1; six >= 0 && rc < 0; six--) /* one socket for both: the sixth kind first */
        for (a = all; a && rc < 0; a = a->ai_next) {
            if (six && a->ai_family != AF_INET6)
                continue;
            *fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            if (*fd < 0)
                continue;
            setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
            if (a->ai_family == AF_INET6)
                setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
            rc = bind(*fd, a->ai_addr, a->ai_addrlen) < 0 ? -1 : listen(*fd, 4096);
            if (rc < 0) {
                err_sys(e, ERR_IO, "cannot listen at port %s", port);
                close(*fd);
            }
        }
    freeaddrinfo(all);
    if (rc < 0)
        *fd = -1;
    return rc < 0 ? ERR_IO : 0;
}

/* ---- addresses ---- */

struct place {
    uint32_t family, port; /* 4 or 6 */
    unsigned char address[16];
};

static void place_of(const struct sockaddr_storage *s, struct place *p)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)s;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)s;

    memset(p, 0, sizeof *p);
    if (s->ss_family == AF_INET) {
        p->family = 4;
        memcpy(p->address, &four->sin_addr, 4);
    } else if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        p->family = 4;
        memcpy(p->address, six->sin6_addr.s6_addr + 12, 4);
    } else {
        p->family = 6;
        memcpy(p->address, &six->sin6_addr, 16);
    }
}

static bool is_loopback(const struct place *p)
{
    static const unsigned char one[16] = {[15] = 1};

    return p->family == 4 ? p->address[0] == 127 : memcmp(p->address, one, 16) == 0;
}

static bool place_text(const struct place *p, char *to, size_t size)
{
    return (p->family == 4 || p->family == 6) && p->port > 0 && p->port < 65536 &&
           inet_ntop(p->family == 4 ? AF_INET : AF_INET6, p->address, to, (socklen_t)size) != NULL;
}

/* ---- meeting ---- */

struct meeting {
    const struct rendezvous *r;
    double deadline;
    unsigned char word[RENDEZVOUS_WORD];
    int listener, *fd;
    struct place *place; /* by rank */
};

/* A connection that has not said all of who it is. */
struct stranger {
    int fd;
    size_t n;
    double since;
    unsigned char said[RENDEZVOUS_HELLO];
};

/* Reads what is there.  1: it has become a rank; 0: not yet; -1: it is closed. */
static int listen_to(struct meeting *m, struct stranger *s)
{
    struct rendezvous_hello h = {0};
    struct err why;
    ssize_t got = read(s->fd, s->said + s->n, RENDEZVOUS_HELLO - s->n);
    int rc = 0;

    if (got > 0)
        s->n += (size_t)got;
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        rc = -1;
    if (rc == 0)
        rc = rendezvous_get_hello(&h, m->r, s->said, s->n, &why);
    if (rc < 0 && got > 0)
        log_msg(LOG_WARN, "a connection was turned away: %s", why.msg);
    if (rc == 1 && ((int)h.rank <= m->r->rank || m->fd[h.rank] >= 0 || memcmp(h.word, m->word, sizeof h.word) != 0))
        rc = -1;
    if (rc == 1) {
        struct sockaddr_storage at;
        socklen_t len = sizeof at;

        memset(&at, 0, sizeof at);
        if (getpeername(s->fd, (struct sockaddr *)&at, &len) < 0)
            rc = -1;
        place_of(&at, &m->place[h.rank]);
        m->place[h.rank].port = h.port;
    }
    if (rc == 1) {
        tune(s->fd);
        m->fd[h.rank] = s->fd;
    } else if (rc < 0) {
        close(s->fd);
    }
    return rc;
}

static int missing(const struct meeting *m, struct err *e)
{
    char list[160] = "";
    size_t n = 0;
    int left = 0;

    for (int i = m->r->rank + 1; i < m->r->size; i++)
        if (m->fd[i] < 0 && left++ < 16)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%d", n ? ", " : "", i);
    return err_set(e, ERR_LIMIT, "rank %d of %d has waited in vain for %d rank%s: %s%s", m->r->rank, m->r->size, left,
                   left == 1 ? "" : "s", list, left > 16 ? ", ..." : "");
}

/* Until all higher ranks have come. */
static int receive_ranks(struct meeting *m, struct err *e)
{
    struct stranger s[STRANGERS];
    int n = 0, left = m->r->size - 1 - m->r->rank, rc = 0;

    while (left && rc == 0) {
        struct pollfd p[STRANGERS + 1];
        double now = log_seconds();
        int fd = -1;

        if (now > m->deadline)
            rc = missing(m, e);
        p[n] = (struct pollfd){.fd = n < STRANGERS ? m->listener : -1, .events = POLLIN};
        for (int i = 0; i < n; i++)
            p[i] = (struct pollfd){.fd = s[i].fd, .events = POLLIN};
        if (rc == 0 && poll(p, (nfds_t)n + 1, 200) < 0 && errno != EINTR)
            rc = err_sys(e, ERR_IO, "waiting for ranks");
        if (rc == 0 && n < STRANGERS)
            fd = accept4(m->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            s[n++] = (struct stranger){.fd = fd, .since = now};
        else if (rc == 0 && n < STRANGERS && (errno == EMFILE || errno == ENFILE))
            rc = err_sys(e, ERR_IO, "connections of %d ranks", m->r->size);
        for (int i = n - 1; i >= 0 && rc == 0; i--) {
            int got = listen_to(m, &s[i]);

            if (got == 0 && now - s[i].since < PATIENCE)
                continue;
            if (got == 0)
                close(s[i].fd);
            left -= got == 1;
            s[i] = s[--n];
        }
    }
    while (n)
        close(s[--n].fd);
    return rc;
}

/* Rank 0: where everybody is, to everybody. */
static int tell_places(struct meeting *m, struct err *e)
{
    size_t n = 8 + RENDEZVOUS_WORD + (size_t)m->r->size * PLACE;
    unsigned char *text = calloc(1, n), *at = text;
    char peer[32];
    int rc = text ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    if (rc < 0)
        return rc;
    memcpy(at, MAGIC, 8);
    memcpy(at + 8, m->word, RENDEZVOUS_WORD);
    at += 8 + RENDEZVOUS_WORD;
    for (int i = 0; i < m->r->size; i++, at += PLACE) {
        little_put(at, m->place[i].family, 4);
        little_put(at + 4, m->place[i].port, 4);
        memcpy(at + 8, m->place[i].address, 16);
    }
    for (int i = 1; i < m->r->size && rc == 0; i++) {
        snprintf(peer, sizeof peer, "rank %d", i);
        rc = move_all(m->fd[i], POLLOUT, text, n, m->deadline, peer, e);
    }
    free(text);
    return rc;
}

static int say_hello(const struct meeting *m, int fd, int port, const char *peer, struct err *e)
{
    const struct rendezvous *r = m->r;
    struct rendezvous_hello h = {.size = (uint32_t)r->size, .rank = (uint32_t)r->rank, .port = (uint32_t)port, .job = r->job};
    unsigned char text[RENDEZVOUS_HELLO];

    memcpy(h.word, m->word, sizeof h.word);
    rendezvous_put_hello(text, &h);
    return move_all(fd, POLLOUT, text, sizeof text, m->deadline, peer, e);
}

/* The others: who they are, to rank 0, which answers when it knows all. */
static int hear_places(struct meeting *m, int port, struct err *e)
{
    char rank0[300];
    unsigned char head[8 + RENDEZVOUS_WORD], at[PLACE];

    snprintf(rank0, sizeof rank0, "rank 0 at %s, port %s,", m->r->host, m->r->port);
    TRY(say_hello(m, m->fd[0], port, rank0, e));
    TRY(move_all(m->fd[0], POLLIN, head, sizeof head, m->deadline, rank0, e));
    if (memcmp(head, MAGIC, 8) != 0)
        return err_set(e, ERR_FORMAT, "%s is no rank of ours", rank0);
    memcpy(m->word, head + 8, RENDEZVOUS_WORD);
    for (int i = 0; i < m->r->size; i++) {
        TRY(move_all(m->fd[0], POLLIN, at, sizeof at, m->deadline, rank0, e));
        m->place[i].family = (uint32_t)little_get(at, 4);
        m->place[i].port = (uint32_t)little_get(at + 4, 4);
        memcpy(m->place[i].address, at + 8, 16);
    }
    return 0;
}

/* Lower ranks are called, higher ones call.  What rank 0 saw come from its own machine is where rank 0 is. */
static int connect_lower(struct meeting *m, struct err *e)
{
    struct sockaddr_storage zero;
    struct place rank0;
    socklen_t len = sizeof zero;

    memset(&zero, 0, sizeof zero);
    if (getpeername(m->fd[0], (struct sockaddr *)&zero, &len) < 0)
        return err_sys(e, ERR_IO, "rank 0");
    place_of(&zero, &rank0);
    for (int i = 1; i < m->r->rank; i++) {
        struct place at = m->place[i];
        char host[INET6_ADDRSTRLEN], port[16], peer[32];

        if (is_loopback(&at)) {
            at = rank0;
            at.port = m->place[i].port;
        }
        snprintf(peer, sizeof peer, "rank %d", i);
        snprintf(port, sizeof port, "%u", (unsigned)at.port);
        if (!place_text(&at, host, sizeof host))
            return err_set(e, ERR_FORMAT, "rank 0 gave no address of %s", peer);
        if (connect_until(host, port, m->deadline, &m->fd[i], e) < 0) {
            err_wrap(e, "%s", peer);
            return e->code;
        }
        TRY(say_hello(m, m->fd[i], 0, peer, e));
    }
    return 0;
}

static int meet(struct meeting *m, struct err *e)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    int port;

    if (m->r->rank == 0) {
        TRY(listen_at(m->r->host, m->r->port, &m->listener, e));
        TRY(receive_ranks(m, e));
        if (getrandom(m->word, sizeof m->word, 0) != (ssize_t)sizeof m->word)
            return err_sys(e, ERR_IO, "random numbers");
        return tell_places(m, e);
    }
    TRY(listen_at("", "0", &m->listener, e));
    memset(&at, 0, sizeof at);
    if (getsockname(m->listener, (struct sockaddr *)&at, &len) < 0)
        return err_sys(e, ERR_IO, "the socket that listens");
    port = ntohs(at.ss_family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port : ((struct sockaddr_in6 *)&at)->sin6_port);
    TRY(connect_until(m->r->host, m->r->port, m->deadline, &m->fd[0], e));
    TRY(hear_places(m, port, e));
    TRY(connect_lower(m, e));
    return receive_ranks(m, e);
}

int rendezvous_meet(const struct rendezvous *r, double timeout, int *fd, struct err *e)
{
    struct meeting m = {.r = r, .deadline = log_seconds() + timeout, .listener = -1, .fd = fd};
    struct rlimit files;
    int rc;

    /* A socket a rank; 1024 files are few. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    for (int i = 0; i < r->size; i++)
        fd[i] = -1;
    m.place = calloc((size_t)r->size, sizeof *m.place);
    rc = m.place ? meet(&m, e) : err_set(e, ERR_NOMEM, "out of memory");
    for (int i = 0; rc < 0 && i < r->size; i++)
        if (fd[i] >= 0) {
            close(fd[i]);
            fd[i] = -1;
        }
    if (m.listener >= 0)
        close(m.listener);
    free(m.place);
    return rc;
}
