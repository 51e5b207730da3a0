/* curate/stream/stage.h -- what a curation tool is: a stage that keeps, changes or drops.
 *
 * A stage is a table of functions and its own state.  The driver (curate/stream/driver.h)
 * gives every stage reading, threads, order, rejects, statistics and exit codes, and
 * can run many stages in one process.  Three kinds, by which functions are there:
 * - work alone: looks at one document at a time, on any thread (clean, filter);
 * - work and commit: commit sees the documents in input order, one at a time, and may
 *   still drop (exact duplicates);
 * - work, commit, resolve and judge: must see all documents before it can answer
 *   (near duplicates).  The driver keeps the documents aside meanwhile.
 *
 * What a stage remembers of a document is a note, plain bytes that work makes and commit
 * takes.  Commit sees nothing else, so notes can be kept in a file and committed later,
 * or elsewhere.  A stage that changes documents by what it knows of all the others answers
 * with a reply, plain bytes again, by which apply then changes the document in parallel.
 *
 * A long note need not be in memory: it may be its first NOTE_HEAD bytes, and the rest in a file.
 */
#ifndef CURATE_STAGE_H
#define CURATE_STAGE_H

#include "base/err.h"
#include "base/file_group.h"
#include "base/mem.h"
#include "curate/stream/doc.h"

/* Bytes of the beginning of a note of which the rest is in a file; and of a note for which that is worth it. */
enum { NOTE_HEAD = 32, NOTE_LONG = 1 << 20 };

/* One of the reasons for which a stage drops documents, in words for those who read the account of drops (`quern why`,
 * `quern report`).  A table of them ends with a name of NULL. */
struct stage_rule {
    const char *name;  /* as in the account */
    const char *value; /* what is counted or measured, such as "words left"; NULL: nothing */
    const char *why;   /* a sentence, where the value does not say it; NULL: none.  One of the two is there */
    const char *drops; /* "above", "below", "from" the threshold; NULL: there is none */
    bool question;     /* the survivor is a question of an evaluation set, no document */
};

/* Why a document was dropped.  rule points to static or stage-owned memory. */
struct verdict {
    bool drop;
    const char *rule;
    double value, threshold;   /* NAN: there is none */
    struct span survivor;      /* duplicates: the name (curate/stream/doc_name.h) of what stays; p NULL otherwise.
                                  Must live as long as the stage or the arena */
    bool account;              /* set by the caller of judge: the survivor is wanted */
};

static inline int verdict_drop(struct verdict *v, const struct stage_rule *rule, double value, double threshold)
{
    v->drop = true;
    v->rule = rule->name;
    v->value = value;
    v->threshold = threshold;
    return 0;
}

struct stage_ops {
    const char *name; /* as in `quern NAME` and in the account of drops */

    /* State for one thread (ICU iterators, buffers).  NULL if none is needed. */
    int (*thread_open)(void *stage, void **thread, struct err *e);
    void (*thread_close)(void *stage, void *thread);

    /* In parallel.  May set fields and drop.  *note, in d->arena, is for commit.  A
     * failure here is of the whole run; a document that is merely bad gets ERR_FORMAT:
     * it is counted as bad, named, and skipped. */
    int (*work)(void *stage, void *thread, struct doc *d, struct verdict *v,
                struct span *note, struct err *e);
    /* In parallel, after work has seen the documents of a block and before any of them is committed, by the thread that will
     * commit them: what is better done for several at once.  May be NULL.  Not called where notes are committed elsewhere. */
    int (*work_end)(void *stage, void *thread, struct err *e);
    /* In input order, one at a time.  Not called for what work dropped.  The note is
     * aligned to 16 bytes.  *reply, in a, is for apply. */
    int (*commit)(void *stage, struct span note, struct verdict *v, struct span *reply,
                  struct arena *a, struct err *e);
    /* The same of a note that goes on in a file; NULL: this stage takes whole notes only.  With it work may leave the rest of a
     * note in a file of its thread, written out, and say in *d->note_rest where; it is emptied when that has been taken. */
    int (*commit_long)(void *stage, struct span head, const struct spill_part *rest, struct verdict *v, struct span *reply,
                       struct arena *a, struct err *e);
    /* Once, when every document has been committed; may use `jobs` threads.  The commit of a
     * stage that has this neither drops nor replies. */
    int (*resolve)(void *stage, int jobs, struct err *e);
    /* After resolve, for each document that commit kept, in order; n = 0, 1, 2 ... in
     * the order of commit.  May drop; *reply, in a, is for apply. */
    int (*judge)(void *stage, uint64_t n, struct verdict *v, struct span *reply,
                 struct arena *a, struct err *e);
    /* In parallel, for each document to which commit or judge replied (reply.p is set)
     * and which it did not drop.  May set fields and drop. */
    int (*apply)(void *stage, void *thread, struct doc *d, struct span reply,
                 struct verdict *v, struct err *e);
    /* Once, where commit was called, after the last commit or resolve and before the output
     * gets its name: hands over files of its own, which get theirs with it.  May be NULL. */
    int (*finish)(void *stage, struct file_group *files, struct err *e);
    /* Appends pairs of its own to the JSON statistics (json_put_key).  Numbers are counts of
     * what was done since the stage was opened, which can be added up over processes, or
     * never change.  May be NULL. */
    int (*stats)(void *stage, struct buf *json);
    void (*close)(void *stage);
};

struct stage {
    const struct stage_ops *ops;
    void *state;
};

/* Commits a note, or its head where there is a rest (s not NULL). */
static inline int stage_commit(const struct stage *s, struct span note, const struct spill_part *rest, struct verdict *v,
                               struct span *reply, struct arena *a, struct err *e)
{
    return rest && rest->s ? s->ops->commit_long(s->state, note, rest, v, reply, a, e)
                           : s->ops->commit(s->state, note, v, reply, a, e);
}
#endif
