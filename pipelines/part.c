#include "pipelines/part.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/http.h"
#include "base/json.h"
#include "base/log.h"
#include "base/node.h"
#include "pipelines/answers.h"
#include "pipelines/work.h"

/* BATCH_BLOCK: larger blocks than a pipe's, as nobody waits for the first.  SETTLE: seconds for which a part that is through
 * waits for others, as a disk takes as long to make one of a few kilobytes last as hundreds.
 * THREAD_BYTES: of a part, stored, for each thread, as to start one takes as long as some documents. */
enum { BATCH_BLOCK = 1 << 20, SETTLE = 2, THREAD_BYTES = 16 << 10 };

/* ---- files that grow ---- */

/* One that a part writes; it is whole when the part is through, so it needs no other name until then. */
struct growing {
    int fd; /* -1: not open */
    uint64_t size;
    char path[4096];
};

/* Opens g->path behind its first size bytes. */
static int grow_open(struct growing *g, uint64_t size, struct err *e)
{
    struct stat st;

    g->size = size;
    g->fd = open(g->path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (g->fd < 0 || fstat(g->fd, &st) < 0)
        return err_sys(e, ERR_IO, "cannot write '%s'", g->path);
    if ((uint64_t)st.st_size < size)
        return err_set(e, ERR_FORMAT, "'%s' has %" PRId64 " bytes of the %" PRIu64 " that were written: remove the"
                       " work folder", g->path, (int64_t)st.st_size, size);
    if (ftruncate(g->fd, (off_t)size) < 0 || lseek(g->fd, (off_t)size, SEEK_SET) < 0)
        return err_sys(e, ERR_IO, "cannot write '%s'", g->path);
    return 0;
}

static int grow_put(void *to, struct span s, struct err *e)
{
    struct growing *g = to;

    if (!fd_put(g->fd, s.p, s.n))
        return err_sys(e, ERR_IO, "cannot write '%s'", g->path);
    g->size += s.n;
    return 0;
}

static int grow_sync(struct growing *g, struct err *e)
{
    if (g->fd >= 0 && fdatasync(g->fd) < 0)
        return err_sys(e, ERR_IO, "cannot write '%s'", g->path);
    return 0;
}

/* A network's file system tells here what it could not write. */
static int grow_close(struct growing *g, struct err *e)
{
    int fd = g->fd;

    g->fd = -1;
    return fd >= 0 && close(fd) < 0 ? err_sys(e, ERR_IO, "cannot write '%s'", g->path) : 0;
}

/* ---- a part ---- */

/* A file of a part, what the state calls its length, and whether the pass wants it. */
struct part_file {
    struct growing g;
    char key[24];
};

struct runner {
    const struct part_conf *c;
    const struct plan_pass *pass;
    struct source source;
    struct feed feed;
    struct pass *engine;
    int input;               /* the part under way */
    struct part_file *file;  /* those of documents, out[] by out[], then */
    struct part_file *notes, *rejects; /* NULL: not wanted */
    int n_files;
    struct pass_out *out;
    int n_out;
    struct arena kept;       /* names of the files that it reads */
    FILE *answers;
    int *ended, n_ended;     /* parts that are through and wait to be settled, */
    double ended_since;      /*   the first of them since then */
    struct part_counts before; /* own: what the stages said when the part began; */
    struct part_counts counts; /*   of the part: flows, own up to its last rest */
};

static const struct plan_branch *branch_of(const struct runner *r)
{
    return &r->c->plan->branch[r->pass->branch];
}

/* One more file, NULL if it is not wanted. */
static struct part_file *add_file(struct runner *r, bool wanted, const char *key, int number)
{
    struct part_file *f = &r->file[r->n_files];

    if (!wanted)
        return NULL;
    r->n_files++;
    f->g.fd = -1;
    snprintf(f->key, sizeof f->key, number ? "%s.%d" : "%s", key, number);
    return f;
}

static void add_out(struct runner *r, bool frames, enum file_codec codec, int route)
{
    struct part_file *f = add_file(r, true, "docs", r->n_out);

    r->out[r->n_out++] = (struct pass_out){.to = {grow_put, &f->g}, .frames = frames, .codec = codec, .route = route};
}

/* What the pass gives: documents for the next one, and notes; or the branch's output, and what other branches read. */
static int plan_files_of_part(struct runner *r, struct err *e)
{
    const struct plan_branch *b = branch_of(r);
    size_t n = (size_t)b->routes.n + 2;
    bool gives = !r->pass->goes_on && !r->pass->later;

    r->file = calloc(n + 2, sizeof *r->file);
    r->out = calloc(n, sizeof *r->out);
    if (!r->file || !r->out)
        return err_set(e, ERR_NOMEM, "out of memory for the files of a part");
    if (r->pass->goes_on)
        add_out(r, true, FILE_PLAIN, 0);
    if (gives && b->output)
        add_out(r, false, plan_codec(b), 0);
    for (int k = 0; gives && k < b->routes.n; k++)
        add_out(r, true, FILE_PLAIN, k + 1);
    r->notes = add_file(r, r->pass->later, "notes", 0);
    r->rejects = add_file(r, r->c->plan->rejects != NULL, "rejects", 0);
    return 0;
}

static int read_answer(void *of, uint64_t n, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    struct runner *r = of;

    (void)n; /* they lie in order */
    return answer_read(r->answers, v, reply, a, e);
}

/* The files of documents that the part reads become the feed's. */
static int open_kept(struct runner *r, struct err *e)
{
    size_t room = (size_t)branch_of(r)->n_from + 1;
    char path[4096], **name;
    struct span copy;

    arena_reset(&r->kept);
    r->feed.kept = name = arena_calloc(&r->kept, room, sizeof *name);
    for (int k = 0; name && work_reads(r->c->plan, r->pass, r->input, k, path); k++) {
        if (access(path, R_OK) != 0)
            return err_sys(e, ERR_IO, "cannot open '%s', made by a former run; without its folder all is made again", path);
        copy = arena_dup(&r->kept, span_of(path));
        if (!copy.p)
            break;
        name[k] = (char *)(uintptr_t)copy.p;
        r->feed.n_kept++;
    }
    if (!r->feed.n_kept)
        return err_set(e, ERR_NOMEM, "out of memory for names of files");
    if (!r->pass->judged)
        return 0;
    work_part(r->c->plan, r->pass->number - 1, r->input, WORK_ANSWERS, path);
    r->answers = fopen(path, "re");
    if (!r->answers)
        return err_sys(e, ERR_IO, "cannot open '%s'", path);
    setvbuf(r->answers, NULL, _IOFBF, 1 << 20);
    return 0;
}

/* What the engine has to know of the feed before it is open. */
static struct feed closed_feed(struct runner *r)
{
    struct feed f = {.lines = {.block_bytes = BATCH_BLOCK, .threads = r->c->jobs, .columns = r->c->plan->columns}};

    if (r->pass->judged)
        f.judge = (struct judge){read_answer, r};
    if (!r->pass->number && r->c->plan->source.kind.source)
        f.source = &r->source;
    else if (!r->pass->number)
        f.text_key = r->c->plan->text_key;
    return f;
}

/* What an input at an address was when it was begun: it must be the same now. */
static int check_state(struct runner *r, const struct node *state, struct err *e)
{
    const char *was = node_str(state, "object");
    struct source_where now;

    feed_where(&r->feed, &now);
    if (was && now.state && *now.state && strcmp(was, now.state) != 0)
        return err_set(e, ERR_FORMAT, "'%s' has changed since it was begun (%s, now %s)", r->c->plan->name[r->input], was,
                       now.state);
    return 0;
}

static int open_input(struct runner *r, const struct node *state, struct err *e)
{
    char **input = &r->c->plan->input[r->input];
    struct lines_place place = {0, (uint64_t)node_int(state, "offset", 0), (uint64_t)node_int(state, "damages", 0)};

    r->feed = closed_feed(r);
    if (r->pass->number) {
        TRY(open_kept(r, e));
    } else if (r->feed.source) {
        TRY(r->c->plan->source.kind.source->restart(&r->source, input, 1, e));
    } else {
        r->feed.lines.paths = input;
        r->feed.lines.n_paths = 1;
    }
    TRY(feed_skip(&r->feed, (uint64_t)node_int(state, "items", 0), &place, e));
    return check_state(r, state, e);
}

/* What file[i] is called in the part of an input. */
static void name_file(const struct runner *r, int i, int input, char path[4096])
{
    if (i < r->n_out)
        work_docs(r->c->plan, r->pass->number, input, i, path);
    else
        work_part(r->c->plan, r->pass->number, input, &r->file[i] == r->notes ? WORK_NOTES : WORK_REJECTS, path);
}

static int open_files(struct runner *r, const struct node *state, struct err *e)
{
    for (int i = 0; i < r->n_files; i++) {
        name_file(r, i, r->input, r->file[i].g.path);
        TRY(grow_open(&r->file[i].g, (uint64_t)node_int(state, r->file[i].key, 0), e));
    }
    return 0;
}

static int begin(struct runner *r, struct err *e)
{
    struct arena a = {0};
    struct node *state = NULL;
    char path[4096];
    int rc = 0;

    work_part(r->c->plan, r->pass->number, r->input, WORK_STATE, path);
    for (int k = r->pass->first; k <= r->pass->last && rc == 0; k++) {
        buf_clear(&r->counts.own[k]);
        rc = part_counts_ask(r->feed.source, r->c->stage, k, &r->before.own[k], e);
    }
    flows_free(&r->counts.flows);
    if (rc == 0 && flows_init(&r->counts.flows, r->c->plan->n_stages) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for counts");
    if (rc == 0 && access(path, F_OK) == 0) {
        rc = node_load_json(&a, path, &state, e);
        if (rc == 0)
            rc = part_counts_get(&r->counts, r->pass, state, path, e);
    }
    if (rc == 0)
        rc = open_files(r, state, e);
    if (rc == 0)
        rc = open_input(r, state, e);
    arena_free(&a);
    return rc;
}

/* Adds to the part's own counts what the stages of the pass, and the source or the stage that judges before them, did since it
 * began here. */
static int count_own(struct runner *r, struct part_counts *sum, struct err *e)
{
    struct buf now = {0};
    int rc = 0;

    for (int k = r->pass->first; k <= r->pass->last && rc == 0; k++) {
        rc = part_counts_ask(r->feed.source, r->c->stage, k, &now, e);
        if (rc == 0 && buf_put_span(&sum->own[k], buf_span(&r->counts.own[k])) < 0)
            rc = err_set(e, ERR_NOMEM, "out of memory for counts");
        if (rc == 0)
            rc = part_counts_add(sum, k, 1, buf_span(&now), e);
        if (rc == 0)
            rc = part_counts_add(sum, k, -1, buf_span(&r->before.own[k]), e);
    }
    buf_free(&now);
    return rc;
}

static int put_state(struct buf *b, const struct runner *r, const struct part_counts *sum)
{
    struct source_where now;

    feed_where(&r->feed, &now);
    TRY(buf_putc(b, '{'));
    TRY(json_put_count(b, "items", r->feed.count));
    TRY(json_put_count(b, "offset", r->feed.lines.now.offset));
    TRY(json_put_count(b, "damages", r->feed.lines.now.damages));
    if (now.state && *now.state)
        TRY(json_put_key(b, "object") < 0 ? ERR_NOMEM : json_put_string(b, span_of(now.state)));
    for (int i = 0; i < r->n_files; i++)
        TRY(json_put_count(b, r->file[i].key, r->file[i].g.size));
    TRY(part_counts_put(&r->counts, r->pass, sum->own, b));
    return buf_puts(b, "}\n");
}

static int state_now(struct runner *r, struct buf *b, struct err *e)
{
    struct part_counts sum;
    int rc = 0;

    if (part_counts_init(&sum, r->c->plan) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for counts");
    if (rc == 0)
        rc = count_own(r, &sum, e);
    if (rc == 0 && put_state(b, r, &sum) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for counts");
    part_counts_free(&sum);
    return rc;
}

/* Everything of the part so far is made to last. */
static int rest(struct runner *r, struct err *e)
{
    struct buf b = {0};
    char path[4096];
    int rc;

    for (int i = 0; i < r->n_files; i++)
        TRY(grow_sync(&r->file[i].g, e));
    rc = state_now(r, &b, e);
    work_part(r->c->plan, r->pass->number, r->input, WORK_STATE, path);
    if (rc == 0)
        rc = file_write_all(path, buf_span(&b), e);
    buf_free(&b);
    return rc;
}

/* The part is through: its files are written, its state as WORK_ENDED, and wait for settle(). */
static int end(struct runner *r, struct err *e)
{
    struct growing g = {.fd = -1};
    struct buf b = {0};
    int rc = 0;

    for (int i = 0; i < r->n_files && rc == 0; i++)
        rc = grow_close(&r->file[i].g, e);
    if (rc == 0)
        rc = state_now(r, &b, e);
    work_part(r->c->plan, r->pass->number, r->input, WORK_ENDED, g.path);
    if (rc == 0)
        rc = grow_open(&g, 0, e);
    if (rc == 0)
        rc = grow_put(&g, buf_span(&b), e);
    if (grow_close(&g, e) < 0)
        rc = e->code;
    buf_free(&b);
    if (rc == 0 && !r->n_ended)
        r->ended_since = log_seconds();
    if (rc == 0)
        r->ended[r->n_ended++] = r->input;
    return rc;
}

/* What the parts that have ended wrote is made to last: of one its files, for several all that the disk has not written yet. */
static int sync_ended(const struct runner *r, struct err *e)
{
    char path[4096];

    work_part(r->c->plan, r->pass->number, r->ended[0], WORK_ENDED, path);
    if (r->n_ended > 1)
        return file_sync_disk(path, e);
    TRY(file_sync_path(path, e));
    for (int i = 0; i < r->n_files; i++) {
        name_file(r, i, r->ended[0], path);
        TRY(file_sync_path(path, e));
    }
    return 0;
}

static void close_part(struct runner *r)
{
    struct err e;

    for (int i = 0; i < r->n_files; i++)
        grow_close(&r->file[i].g, &e);
    if (r->answers)
        fclose(r->answers);
    r->answers = NULL;
    feed_close(&r->feed);
    r->feed = closed_feed(r);
}

/* What a part read, now that nobody needs it again, unless it is to be kept. */
static void remove_read(const struct runner *r, int input)
{
    static const enum work_file files[] = {WORK_NOTES, WORK_ANSWERS};
    const struct plan *p = r->c->plan;
    char path[4096];

    for (int k = 0; !work_reads_kept(r->pass) && work_reads(p, r->pass, input, k, path); k++)
        unlink(path);
    for (size_t i = 0; i < sizeof files / sizeof *files && r->pass->judged; i++) {
        work_part(p, r->pass->number - 1, input, files[i], path);
        unlink(path);
    }
}

/* The parts that have ended are done: they last, and their states are called so (a part never has both a state and that). */
static int settle(struct runner *r, struct err *e)
{
    const struct plan *p = r->c->plan;
    const int pass = r->pass->number;
    char ended[4096], state[4096], done[4096];

    if (!r->n_ended)
        return 0;
    TRY(sync_ended(r, e));
    for (int i = 0; i < r->n_ended; i++) {
        work_part(p, pass, r->ended[i], WORK_ENDED, ended);
        work_part(p, pass, r->ended[i], WORK_STATE, state);
        work_part(p, pass, r->ended[i], WORK_DONE, done);
        if (rename(ended, state) < 0 || rename(state, done) < 0)
            return err_sys(e, ERR_IO, "cannot write '%s'", done);
    }
    TRY(file_sync_parent(done, e));
    for (int i = 0; i < r->n_ended; i++)
        remove_read(r, r->ended[i]);
    r->n_ended = 0;
    return 0;
}

/* Bytes that were written so far for passes to come, or for the output. */
static double bytes_kept(const struct runner *r)
{
    double sum = 0;

    for (int i = 0; i < r->n_out; i++)
        sum += (double)r->file[i].g.size;
    return sum;
}

/* The pass tells how far it is. */
static void tell(void *of, const struct pass_now *now)
{
    struct runner *r = of;

    plan_progress_tell(r->c->progress, now, bytes_kept(r));
}

static int run_one(struct runner *r, struct err *e)
{
    double bytes = work_bytes(r->c->plan, r->pass, r->input);
    bool sized = r->pass->number || !http_is_address(r->c->plan->input[r->input]);
    int rc;

    plan_progress_input(r->c->progress, r->c->plan->name[r->input], bytes);
    pass_use(r->engine, sized ? 1 + bytes / THREAD_BYTES : r->c->jobs);
    rc = begin(r, e);
    if (rc == 0)
        do {
            rc = pass_run(r->engine, r->c->checkpoint, e);
            if (rc > 0 && (settle(r, e) < 0 || rest(r, e) < 0))
                rc = e->code;
        } while (rc > 0);
    if (rc == 0)
        rc = end(r, e);
    plan_progress_input_end(r->c->progress, &r->counts.flows, bytes_kept(r));
    close_part(r);
    return rc == 0 && log_seconds() - r->ended_since >= SETTLE ? settle(r, e) : rc;
}

static int open_engine(struct runner *r, struct err *e)
{
    const struct part_conf *c = r->c;
    struct pass_conf conf = {.stages = c->stage, .n_stages = c->plan->n_stages, .first = r->pass->first,
                             .last = r->pass->last, .later = r->pass->later && !r->pass->ends,
                             .source = r->source.ops ? &r->source : NULL, .feed = &r->feed, .jobs = c->jobs, .out = r->out,
                             .n_out = r->n_out,
                             .full = c->plan->rejects_full, .branch = branch_of(r)->name, .flows = &r->counts.flows,
                             .tell = tell, .tell_of = r};

    if (r->notes)
        conf.notes = (struct sink){grow_put, &r->notes->g};
    if (r->rejects) {
        conf.rejects = (struct sink){grow_put, &r->rejects->g};
        conf.rejects_codec = plan_codec_of(c->plan->rejects);
    }
    r->feed = closed_feed(r);
    return pass_open(&r->engine, &conf, e);
}

static int open_runner(struct runner *r, struct err *e)
{
    const struct plan *p = r->c->plan;

    if (part_counts_init(&r->before, p) < 0 || part_counts_init(&r->counts, p) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for counts");
    TRY(plan_files_of_part(r, e));
    if (p->source.kind.source)
        TRY(p->source.kind.source->open(&r->source, p->source.conf, p->input, 1, e));
    return open_engine(r, e);
}

int part_run(const struct part_conf *c, const struct plan_pass *pass, const int *input, int n, struct err *e)
{
    struct runner r = {.c = c, .pass = pass, .ended = malloc(((size_t)n + 1) * sizeof *r.ended)};
    struct err other;
    int rc = r.ended ? open_runner(&r, e) : err_set(e, ERR_NOMEM, "out of memory for parts");

    for (int i = 0; i < n && rc == 0; i++) {
        r.input = input[i];
        rc = run_one(&r, e);
    }
    if (settle(&r, rc == 0 ? e : &other) < 0 && rc == 0)
        rc = e->code;
    close_part(&r);
    pass_close(r.engine);
    if (r.source.ops)
        c->plan->source.kind.source->close(&r.source);
    part_counts_free(&r.before);
    part_counts_free(&r.counts);
    arena_free(&r.kept);
    free(r.ended);
    free(r.file);
    free(r.out);
    return rc;
}
