/* tokenize/jobs.h -- divides inputs into outputs, the same way whoever does it. */
#ifndef TOKENIZE_JOBS_H
#define TOKENIZE_JOBS_H

#include "tokenize/pipeline.h"

struct jobs {
    struct pipeline_job *job;
    int n;
    struct arena memory;
};

/* prefix with a slash at its end: a job for each input, FOLDER/NAME without .jsonl, .gz and the like
 * (the folder is made).  shards > 0: so many jobs, PREFIX-00002-of-00008: the k-th has the lines that begin
 * in the k-th of equal parts of the inputs laid end to end, or, of a compressed input, all lines if
 * it begins there.  Their outputs one after another are that of one job.  Else one job.
 * ERR_ARG (two inputs of one name; standard input among several jobs), ERR_IO. */
int jobs_make(struct jobs *j, const char *prefix, int shards, char *const *paths, int n_paths, struct err *e);
void jobs_free(struct jobs *j);
#endif
