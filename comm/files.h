/* comm/files.h -- ranks that have nothing in common but a folder: what one says to another is a file there, which grows.
 *
 * Nothing is removed or changed, so a rank that was killed is simply started again: what it says is determined by the inputs,
 * the settings and the number of ranks, so it finds its own messages there, passes them over and goes on; and what was said to
 * it, it reads again.  The others wait.  For that a program must make its calls in one order, wait for each before the next,
 * and send the same bytes in each run; a rank that is about to say something else than before fails.
 *
 * The file `ranks` says how many there are, and of what run; A-B has the messages from rank A to rank B, one after the other,
 * each behind a head with checksums of both.  On NFS a file that was closed is seen by who opens it after that, so both sides
 * open it for each look.
 */
#ifndef COMM_FILES_H
#define COMM_FILES_H

#include "comm/message.h"

#ifdef __cplusplus
extern "C" {
#endif

struct comm_files {
    const char *prefix; /* of the files' names, "DIR/"; NULL: comm_files_turn says it before the first call */
    int rank, size;
    uint64_t key; /* the same in all ranks of a run, another for other inputs or settings */
};
/* The world of these ranks (comm_open).  Nobody else may be this rank at the time.  A call may stand still for timeout seconds
 * (INFINITY: for ever); whom it waits for is told meanwhile.  In calls a damaged or foreign file is ERR_FORMAT, with its name,
 * the offset and the reason, once it has not changed for a while.  Errors as comm_files_turn. */
int comm_open_files(struct comm **c, const struct comm_files *f, double timeout, struct err *e);
/* From now on messages are in files whose names begin like this, in a folder that is there; they have those of nothing else.
 * c: such a world, with nothing in flight and no groups split from it.  ERR_IO; ERR_ARG: the files are of another run, or of
 * another number of ranks. */
int comm_files_turn(struct comm *c, const char *prefix, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
