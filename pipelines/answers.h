/* pipelines/answers.h -- a file of what a stage answered to notes, in their order. */
#ifndef PIPELINES_ANSWERS_H
#define PIPELINES_ANSWERS_H

#include <stdio.h>

#include "base/file.h"
#include "curate/stream/stage.h"

/* Appends one; b is scratch. */
int answer_write(struct file_out *out, struct buf *b, const struct verdict *v, struct span reply, struct err *e);
/* The next, in a.  ERR_FORMAT if there is none. */
int answer_read(FILE *in, struct verdict *v, struct span *reply, struct arena *a, struct err *e);
#endif
