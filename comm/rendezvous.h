/* comm/rendezvous.h -- how processes that know nothing but an address find one another: over TCP.
 *
 * Rank 0 listens at the address; every other rank says who it is there, and is told where the others are and a random
 * word that only ranks of this run know; then each is connected with each.  Whoever else knocks (a scanner, another
 * run) is turned away, and can neither hold the ranks up nor make them read more than a few bytes.  Nothing is
 * encrypted: this is for the inside of a cluster, as MPI is.
 */
#ifndef COMM_RENDEZVOUS_H
#define COMM_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rendezvous {
    int rank, size;
    char host[256], port[8];
    uint64_t job; /* the same in all ranks of a run, different in others that may use the address */
};

/* Whether the environment names a rank and a number of ranks: RANK and WORLD_SIZE, as torchrun sets them, or SLURM_PROCID and
 * SLURM_STEP_NUM_TASKS, as srun does.  *size: how many. */
bool rendezvous_started(int *size);
/* The same by RANK and WORLD_SIZE alone. */
bool rendezvous_rank(int *rank, int *size);
/* The same, and where rank 0 is: MASTER_ADDR and MASTER_PORT; under Slurm by default the first node of the step, and a port
 * by the job's number.  ERR_UNSUPPORTED, ERR_ARG: what is missing or makes no sense. */
int rendezvous_from_environment(struct rendezvous *r, struct err *e);

/* Connects each rank with each: fd[r] is a socket that does not block, -1 for the rank itself.  ERR_LIMIT after timeout
 * seconds, naming ranks that are missing; ERR_IO.  After a failure nothing is open. */
int rendezvous_meet(const struct rendezvous *r, double timeout, int *fd, struct err *e);

/* ---- what comes from outside, for tests ---- */

/* The first of Slurm's list of nodes: gpu003 of "gpu[003-010,12],login".  ERR_ARG: no such list, or a name of more than size. */
int rendezvous_first_node(const char *list, char *to, size_t size, struct err *e);

/* What is said first on a connection, little-endian: "quernTCP", ranks in all, rank and port (4 bytes each), 4 of 0, job
 * (8 bytes), and the word (16 bytes; 0 for rank 0's). */
enum { RENDEZVOUS_HELLO = 48, RENDEZVOUS_WORD = 16 };
struct rendezvous_hello {
    uint32_t size, rank, port;
    uint64_t job;
    unsigned char word[RENDEZVOUS_WORD];
};
void rendezvous_put_hello(unsigned char *to, const struct rendezvous_hello *h);
/* From n <= RENDEZVOUS_HELLO bytes so far: 1: whole; 0: may become one; ERR_FORMAT: none, or of another run than r's (why
 * in e). */
int rendezvous_get_hello(struct rendezvous_hello *h, const struct rendezvous *r, const unsigned char *from, size_t n,
                         struct err *e);

#ifdef __cplusplus
}
#endif
#endif
