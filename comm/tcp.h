/* comm/tcp.h -- TCP as a network (comm/message.h), for ranks that no MPI brings together. */
#ifndef COMM_TCP_H
#define COMM_TCP_H

#include "comm/message.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Its open finds the other ranks as comm/rendezvous.h says, within timeout seconds.  What comes before it is asked for is kept
 * in memory: at most what the other ranks have in flight. */
const struct network *tcp_network(double timeout);

#ifdef __cplusplus
}
#endif
#endif
