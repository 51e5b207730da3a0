/* Many texts on threads: each takes the next few, works on them by itself, and puts what came of them behind what came of
 * those before, so that the output is the same for any number of threads. */
#include "bindings/batch.h"

#include <signal.h>
#include <string.h>

#include "base/limits.h"
#include "base/pool.h"
#include "bindings/call.h"

enum { BLOCK = 64 << 10 /* bytes of texts, or ids, that a thread takes at a time */ };

struct batch {
    quern_tokenizer *t;
    size_t n;
    int flags;
    const char *const *texts; /* to encode, or NULL */
    const size_t *sizes;
    const uint32_t *ids; /* to decode */
    const size_t *ends;
    sigset_t signals; /* the caller's mask */

    pthread_mutex_t lock; /* of the next two */
    size_t next;
    uint64_t ticket;

    struct gate gate; /* of what follows */
    char *out;
    size_t unit, room, done; /* bytes of an id or a character; room and what there is, in units */
    size_t *out_ends;
    struct err why;
    int rc;
};

static size_t begin_of(const struct batch *b, size_t i)
{
    return i ? b->ends[i - 1] : 0;
}

/* Takes items [*begin, *end); false when there are none left. */
static bool take(struct batch *b, size_t *begin, size_t *end, uint64_t *ticket)
{
    size_t size = 0;

    pthread_mutex_lock(&b->lock);
    *begin = b->next;
    while (b->next < b->n && size < BLOCK) {
        size += 64 + (b->texts ? b->sizes[b->next] : 4 * (b->ends[b->next] - begin_of(b, b->next)));
        b->next++;
    }
    *end = b->next;
    *ticket = b->ticket;
    b->ticket += *begin < *end;
    pthread_mutex_unlock(&b->lock);
    return *begin < *end;
}

static int work(struct batch *b, struct worker *w, size_t i, struct err *e)
{
    size_t begin;

    if (b->texts)
        return worker_encode(w, (struct span){b->texts[i], b->sizes[i]}, b->flags, e);
    begin = begin_of(b, i);
    return worker_decode(b->t, w, b->ids + begin, b->ends[i] - begin, b->flags, e);
}

/* Inside the gate: what came of items [begin, end) lies in w->out; their ends are counted from its beginning. */
static void put(struct batch *b, const struct worker *w, size_t begin, size_t end)
{
    size_t n = w->out.n / b->unit, left = b->done < b->room ? b->room - b->done : 0;

    if (n && left)
        memcpy(b->out + b->done * b->unit, w->out.p, (n < left ? n : left) * b->unit);
    for (size_t i = begin; i < end; i++)
        b->out_ends[i] += b->done;
    b->done += n;
}

static void take_part(struct batch *b, struct worker *w)
{
    size_t begin, end;
    uint64_t ticket;
    struct err why;

    while (take(b, &begin, &end, &ticket)) {
        size_t i = begin;
        int rc = 0;
        buf_clear(&w->out);
        for (; i < end && (rc = work(b, w, i, &why)) == 0; i++)
            b->out_ends[i] = w->out.n / b->unit;
        if (gate_enter(&b->gate, ticket) < 0)
            return;
        if (rc < 0) {
            err_wrap(&why, "text %zu", i);
            b->rc = rc;
            b->why = why;
            gate_stop(&b->gate);
            return;
        }
        put(b, w, begin, end);
        gate_leave(&b->gate);
    }
}

/* The host's signals are not for threads that it does not know: these begin with all of them blocked. */
static void run_thread(void *arg, int thread)
{
    struct batch *b = arg;
    struct worker *w;

    if (thread == 0)
        pthread_sigmask(SIG_SETMASK, &b->signals, NULL);
    if ((w = worker_take(b->t)) == NULL)
        return; /* others do it, or batch_run sees that nobody did */
    take_part(b, w);
    worker_give(b->t, w);
}

/* How many threads have something to do. */
static int threads_for(const struct batch *b, int asked)
{
    size_t size = 0, most;

    for (size_t i = 0; i < b->n; i++)
        size += 64 + (b->texts ? b->sizes[i] : 4 * (b->ends[i] - begin_of(b, i)));
    if (size < BLOCK)
        return 1;
    most = asked > 0 ? (size_t)asked : (size_t)limits_cpus();
    return (int)(size / BLOCK < most ? size / BLOCK + 1 : most);
}

static int64_t batch_run(struct batch *b, int threads, quern_error *e)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &b->signals);
    pthread_mutex_init(&b->lock, NULL);
    gate_init(&b->gate);
    pool_run(threads_for(b, threads), run_thread, b, NULL); /* with fewer threads, if the system has no more */
    gate_destroy(&b->gate);
    pthread_mutex_destroy(&b->lock);
    if (b->rc == 0 && b->next < b->n)
        b->rc = err_set(&b->why, ERR_NOMEM, "out of memory for an encoder");
    return b->rc < 0 ? call_failed(e, &b->why) : (int64_t)b->done;
}

int64_t quern_encode_batch(quern_tokenizer *t, const char *const *texts, const size_t *sizes, size_t n, int flags,
                           int threads, uint32_t *ids, size_t room, size_t *ends, quern_error *e)
{
    struct batch b = {.t = t, .n = n, .flags = flags, .texts = texts, .sizes = sizes, .out = (char *)ids, .unit = sizeof *ids,
                      .room = room, .out_ends = ends};

    if (!t || (n && (!texts || !sizes || !ends)) || (!ids && room) || flags & ~QUERN_SPECIAL || threads < 0)
        return call_refused(e, "encode: no tokenizer, no texts, nowhere to put their ids, or a flag that is none");
    for (size_t i = 0; i < n; i++)
        if (!texts[i] && sizes[i])
            return call_refused(e, "encode: one of the texts is NULL");
    return batch_run(&b, threads, e);
}

int64_t quern_decode_batch(quern_tokenizer *t, const uint32_t *ids, const size_t *ends, size_t n, int flags, int threads,
                           char *text, size_t room, size_t *text_ends, quern_error *e)
{
    struct batch b = {.t = t, .n = n, .flags = flags, .ids = ids, .ends = ends, .out = text, .unit = 1, .room = room,
                      .out_ends = text_ends};

    if (!t || (n && (!ends || !text_ends)) || (!text && room) || flags & ~QUERN_SKIP_SPECIAL || threads < 0)
        return call_refused(e, "decode: no tokenizer, no ids, nowhere to put their texts, or a flag that is none");
    for (size_t i = 0; i < n; i++)
        if (ends[i] < begin_of(&b, i) || (!ids && ends[i]))
            return call_refused(e, "decode: texts end before they begin, or there are no ids");
    return batch_run(&b, threads, e);
}
