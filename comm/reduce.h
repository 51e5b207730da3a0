/* comm/reduce.h -- combining the ranks' values, always in the same order (comm/comm.h). */
#ifndef COMM_REDUCE_H
#define COMM_REDUCE_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of work space for a group of size. */
size_t reduce_work_size(int size);

/* to[n] = op over r of from[r][n].  to may be one of them. */
void reduce_ranks(void *to, const void *const *from, int size, size_t n, enum comm_type type,
                  enum comm_op op, void *work);

#ifdef __cplusplus
}
#endif
#endif
