/* comm/port.h -- ports of a network without groups of its own (comm/message.h): its ranks are numbers, and a port is split by
 * messages among its ranks.
 */
#ifndef COMM_PORT_H
#define COMM_PORT_H

#include "comm/message.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PORT_WORLD = 1, PORT_SPLIT_TAG = 1 << 16 /* beyond those of messages */ };

struct port {
    void *net;           /* the network's */
    uint64_t id, splits; /* id: the same on all ranks, PORT_WORLD of the first */
    int rank, size;
    int world[]; /* ranks of the world */
};

/* The port of all ranks; released with free.  NULL: out of memory. */
struct port *port_world(void *net, int rank, int size);
/* As split of struct network.  ERR_LIMIT: a rank has not joined in for timeout seconds. */
int port_split(const struct network *by, double timeout, struct port *p, int colour, int key, struct port **to, int *rank,
               int *size, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
