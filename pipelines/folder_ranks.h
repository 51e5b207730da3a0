/* pipelines/folder_ranks.h -- ranks that meet in a folder (comm/files.h): who this one is, and what run they are of. */
#ifndef PIPELINES_FOLDER_RANKS_H
#define PIPELINES_FOLDER_RANKS_H

#include "base/opt.h"
#include "comm/comm.h"
#include "pipelines/work_lock.h"

struct folder_ranks {
    const char *folder;  /* made if need be; NULL: comm_files_turn says where */
    int64_t task, tasks; /* rank task of tasks; tasks 0: by RANK and WORLD_SIZE, or as tasks_find does it */
    double minutes;      /* that a call may stand still; 0: any time */
    uint64_t key;        /* folder_ranks_key */
};
/* The world of these ranks.  With a folder, lock is taken there as this rank (pipelines/work_lock.h).  Errors as
 * comm_open_files, tasks_find and work_lock_take; ERR_ARG: nothing says who this is. */
int folder_ranks_open(struct comm **c, const struct folder_ranks *f, struct work_lock *lock, struct err *e);

/* What the options up to the one that is named `last` are set to, folders left out, and what files they and the inputs are: the
 * same for ranks that share a run. */
int folder_ranks_key(uint64_t *key, const struct opt *opts, const char *last, char *const *inputs, int n, struct err *e);
#endif
