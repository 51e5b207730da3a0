/* base/file_group.h -- output files that appear together: none of them before all are whole and on disk. */
#ifndef BASE_FILE_GROUP_H
#define BASE_FILE_GROUP_H

#include "base/file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise to start. */
struct file_group {
    struct file_out **file;
    size_t n, cap;
};

/* Writes f out and fsyncs it (file_flush); its name has to wait.  f belongs to the group, or is gone if this fails.
 * ERR_IO, ERR_NOMEM. */
int file_group_add(struct file_group *g, struct file_out *f, struct err *e);
/* The same for a whole file of these bytes. */
int file_group_write(struct file_group *g, const char *path, struct span s, struct err *e);
/* Puts all files of `from` at the end of g; `from` is empty then.  ERR_NOMEM: both are as they were. */
int file_group_join(struct file_group *g, struct file_group *from, struct err *e);
/* Gives all files their names, in the order in which they came; allocates nothing.  The group is empty then.  When a
 * name cannot be given the files after it do not appear either. */
int file_group_commit(struct file_group *g, struct err *e);
/* None of them appears.  Zeroed is fine. */
void file_group_abort(struct file_group *g);

#ifdef __cplusplus
}
#endif
#endif
