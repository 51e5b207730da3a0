/* bindings/batch.h -- what a thread needs to encode or decode, and how threads share many texts. */
#ifndef BINDINGS_BATCH_H
#define BINDINGS_BATCH_H

#include "base/err.h"
#include "base/mem.h"
#include "bindings/quern.h"
#include "tokenize/tokenizer.h"

struct worker {
    struct encoder *enc;
    struct buf out; /* ids or text: what was made is appended */
    struct buf ids; /* scratch */
    bool spent;     /* memory was out: its buffers take nothing more */
};

/* One that is idle, or a new one: of the calling thread until it is given back.  NULL: out of memory. */
struct worker *worker_take(quern_tokenizer *t);
void worker_give(quern_tokenizer *t, struct worker *w);
/* Append to w->out: the ids of a text, 32 bits each; the text of ids. */
int worker_encode(struct worker *w, struct span text, int flags, struct err *e);
int worker_decode(quern_tokenizer *t, struct worker *w, const uint32_t *ids, size_t n, int flags, struct err *e);

#endif
