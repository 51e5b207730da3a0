/* MPI as a network: a shared object of its own, so that nothing else needs MPI. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "comm/message.h"

/* MPI counts in int; a message is this many bytes at a time. */
enum { CHUNK = 256 << 20 };

struct port {
    MPI_Comm comm;
    bool world;
};

struct message {
    bool to_us;
    size_t bytes;
    int n, left;
    MPI_Request requests[];
};

static int mpi_failed(int code, const char *what, struct err *e)
{
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;

    if (MPI_Error_string(code, text, &n) != MPI_SUCCESS)
        n = 0;
    return err_set(e, ERR_IO, "%s: %.*s", what, n, text);
}

/* Open MPI copies between processes by a system call that containers may forbid, and then fails
 * while it runs; so it is told beforehand. */
static void without_forbidden_copies(void)
{
    char from = 1, to = 0;
    struct iovec a = {&to, 1}, b = {&from, 1};

    if (process_vm_readv(getpid(), &a, 1, &b, 1, 0) != 1)
        setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
}

static int make_port(MPI_Comm comm, bool world, struct port **to, int *rank, int *size, struct err *e)
{
    struct port *p = malloc(sizeof *p);

    if (!p)
        return err_set(e, ERR_NOMEM, "out of memory");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, rank);
    MPI_Comm_size(comm, size);
    p->comm = comm;
    p->world = world;
    *to = p;
    return 0;
}

static int mpi_open(struct port **world, int *rank, int *size, struct err *e)
{
    MPI_Comm comm;
    int given, rc, before = 0;

    MPI_Initialized(&before);
    if (before)
        return err_set(e, ERR_UNSUPPORTED, "MPI was started before in this process");
    without_forbidden_copies();
    rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
    if (rc != MPI_SUCCESS)
        return mpi_failed(rc, "MPI_Init_thread", e);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rc = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rc != MPI_SUCCESS)
        return mpi_failed(rc, "MPI_Comm_dup", e);
    return make_port(comm, true, world, rank, size, e);
}

static int mpi_split(struct port *p, int colour, int key, struct port **to, int *rank, int *size, struct err *e)
{
    MPI_Comm comm;
    int rc = MPI_Comm_split(p->comm, colour < 0 ? MPI_UNDEFINED : colour, key, &comm);

    if (rc != MPI_SUCCESS)
        return mpi_failed(rc, "MPI_Comm_split", e);
    return comm == MPI_COMM_NULL ? 0 : make_port(comm, false, to, rank, size, e);
}

static void mpi_close(struct port *p)
{
    bool world = p->world;

    MPI_Comm_free(&p->comm);
    free(p);
    if (world)
        MPI_Finalize();
}

static int mpi_post(struct port *p, bool to_us, void *buf, size_t n, int peer, int tag, void **out, struct err *e)
{
    size_t chunks = n / CHUNK + (n % CHUNK || n == 0);
    struct message *m = malloc(sizeof *m + chunks * sizeof *m->requests);

    if (!m)
        return err_set(e, ERR_NOMEM, "out of memory");
    *m = (struct message){.to_us = to_us, .bytes = n};
    for (; (size_t)m->n < chunks; m->n++) {
        char *at = (char *)buf + (size_t)m->n * CHUNK;
        size_t left = n - (size_t)m->n * CHUNK;
        int len = (int)(left < CHUNK ? left : CHUNK);
        int rc = to_us ? MPI_Irecv(at, len, MPI_BYTE, peer, tag, p->comm, &m->requests[m->n])
                       : MPI_Isend(at, len, MPI_BYTE, peer, tag, p->comm, &m->requests[m->n]);
        if (rc != MPI_SUCCESS) /* what was posted stays with MPI, and m with it */
            return mpi_failed(rc, to_us ? "MPI_Irecv" : "MPI_Isend", e);
    }
    m->left = m->n;
    *out = m;
    return 0;
}

static int mpi_test(void *message, bool *done, bool *moved, struct err *e)
{
    struct message *m = message;

    for (int i = 0; i < m->n; i++) {
        size_t left = m->bytes - (size_t)i * CHUNK;
        MPI_Status status;
        int over, got = 0, rc;
        if (m->requests[i] == MPI_REQUEST_NULL)
            continue;
        rc = MPI_Test(&m->requests[i], &over, &status);
        if (rc == MPI_ERR_TRUNCATE)
            return err_set(e, ERR_FORMAT, "the message is longer than %zu bytes", m->bytes);
        if (rc != MPI_SUCCESS)
            return mpi_failed(rc, m->to_us ? "receiving" : "sending", e);
        if (!over)
            break; /* they end in order */
        m->left--;
        *moved = true;
        if (m->to_us)
            MPI_Get_count(&status, MPI_BYTE, &got);
        if (m->to_us && (size_t)got != (left < CHUNK ? left : CHUNK))
            return err_set(e, ERR_FORMAT, "the message has %zu bytes, not %zu", (size_t)i * CHUNK + (size_t)got,
                           m->bytes);
    }
    *done = m->left == 0;
    if (*done)
        free(m);
    return 0;
}

static const char *mpi_library(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;

    if (MPI_Get_library_version(text, &n) != MPI_SUCCESS)
        return "MPI";
    text[strcspn(text, ",\n")] = '\0';
    return text;
}

extern const struct mpi_backend quern_mpi_backend;
__attribute__((visibility("default"))) const struct mpi_backend quern_mpi_backend = {
    MPI_BACKEND_ABI,
    mpi_library,
    {mpi_open, mpi_split, mpi_close, mpi_post, mpi_test, NULL, 0},
};
