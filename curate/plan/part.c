#include "curate/plan/part.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/node.h"
#include "curate/plan/answers.h"
#include "curate/extract/walk.h"
#include "curate/plan/counts.h"

enum { BATCH_BLOCK = 1 << 20 }; /* larger blocks than a pipe's: nobody waits for the first */

void part_path(const struct plan *p, int pass, int input, enum part_file f, char path[4096])
{
    static const char *const ending[] = {"docs", "notes", "rejects", "state", "done", "answers"};

    snprintf(path, 4096, "%s/%d.%06d.%s", p->work, pass, input, ending[f]);
}

bool part_is_done(const struct plan *p, int pass, int input)
{
    char path[4096];

    part_path(p, pass, input, PART_DONE, path);
    return access(path, F_OK) == 0;
}

/* Of a file, or of all files that a folder stands for. */
static double bytes_of(char *path)
{
    struct walk w = {0};
    struct stat st;
    struct err e;
    double sum = 0;

    if (stat(path, &st) < 0)
        return 0;
    if (!S_ISDIR(st.st_mode))
        return (double)st.st_size;
    if (walk_list(&w, &path, 1, &e) == 0)
        for (int i = 0; i < w.n; i++)
            sum += stat(w.file[i].path, &st) == 0 ? (double)st.st_size : 0;
    walk_free(&w);
    return sum;
}

double part_bytes(const struct plan *p, int pass, int input)
{
    char path[4096];

    if (pass == 0)
        return bytes_of(p->input[input]);
    part_path(p, pass - 1, input, PART_DOCS, path);
    return bytes_of(path);
}

/* ---- files that grow ---- */

struct growing {
    int fd; /* -1: not wanted */
    uint64_t size;
    char path[4096];
};

static int grow_open(struct growing *g, const struct plan *p, int pass, int input, enum part_file f, uint64_t size,
                     struct err *e)
{
    struct stat st;

    part_path(p, pass, input, f, g->path);
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

    while (s.n) {
        ssize_t n = write(g->fd, s.p, s.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, ERR_IO, "cannot write '%s'", g->path);
        s.p += n;
        s.n -= (size_t)n;
        g->size += (size_t)n;
    }
    return 0;
}

static int grow_sync(struct growing *g, struct err *e)
{
    if (g->fd >= 0 && fdatasync(g->fd) < 0)
        return err_sys(e, ERR_IO, "cannot write '%s'", g->path);
    return 0;
}

static void grow_close(struct growing *g)
{
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
}

/* ---- counts ---- */

int part_counts_init(struct part_counts *c, const struct plan *p)
{
    *c = (struct part_counts){.own = calloc((size_t)p->n_stages + 1, sizeof *c->own)};
    return c->own && flows_init(&c->flows, p->n_stages) == 0 ? 0 : ERR_NOMEM;
}

void part_counts_free(struct part_counts *c)
{
    for (int i = 0; i < c->flows.n && c->own; i++)
        buf_free(&c->own[i]);
    free(c->own);
    flows_free(&c->flows);
    *c = (struct part_counts){0};
}

/* own[k] += b */
static int add_own(struct part_counts *c, int k, int sign, struct span b, struct err *e)
{
    struct buf sum = {0};
    int rc = counts_add(&sum, buf_span(&c->own[k]), sign, b, e);

    if (rc < 0) {
        buf_free(&sum);
        return rc;
    }
    buf_free(&c->own[k]);
    c->own[k] = sum;
    return 0;
}

static int read_counts(struct part_counts *c, const struct node *n, const char *path, struct err *e)
{
    const struct node *own = node_get(n, "own");
    struct flows f;
    int rc = flows_init(&f, c->flows.n - 1), k = 0;

    if (rc == 0)
        rc = flows_get(&f, node_get(n, "counts"), e);
    if (rc == 0)
        rc = flows_add(&c->flows, &f);
    flows_free(&f);
    if (rc == ERR_NOMEM)
        return err_set(e, ERR_NOMEM, "out of memory for counts");
    if (rc == 0 && (!own || own->type != NODE_LIST || own->count != c->flows.n))
        return err_set(e, ERR_FORMAT, "'%s' is no state of these stages", path);
    for (const struct node *o = rc == 0 ? own->child : NULL; o && rc == 0; o = o->next, k++)
        rc = add_own(c, k, 1, o->str, e);
    return rc < 0 ? err_wrap(e, "'%s'", path) : 0;
}

int part_counts_read(struct part_counts *c, const struct plan *p, int pass, int input, struct err *e)
{
    struct arena a = {0};
    char path[4096];
    struct node *n;
    int rc;

    part_path(p, pass, input, PART_DONE, path);
    rc = node_load_json(&a, path, &n, e);
    if (rc == 0)
        rc = read_counts(c, n, path, e);
    arena_free(&a);
    return rc;
}

/* What the source (k = 0) or stage k - 1 says of itself now. */
static int ask_own(const struct source *source, const struct stage *stage, int k, struct buf *out)
{
    buf_clear(out);
    if (k == 0)
        return source && source->ops->stats ? source->ops->stats(source->state, out) : 0;
    return stage[k - 1].ops->stats ? stage[k - 1].ops->stats(stage[k - 1].state, out) : 0;
}

/* ---- a part ---- */

struct runner {
    const struct part_conf *c;
    const struct part_pass *pass;
    struct source source;
    struct feed feed;
    struct pass *engine;
    int input;                  /* the part under way */
    struct growing docs, notes, rejects;
    FILE *answers;
    struct part_counts before; /* own: what the stages said when the part began; */
    struct part_counts counts; /*   of the part: flows, own up to its last rest */
};

/* The name of the work folder's file for input's documents of the pass before. */
static int open_kept(struct runner *r, struct err *e)
{
    char path[4096];

    part_path(r->c->plan, r->pass->number - 1, r->input, PART_DOCS, path);
    r->feed.spool = fopen(path, "re");
    if (!r->feed.spool)
        return err_sys(e, ERR_IO, "cannot open '%s'", path);
    setvbuf(r->feed.spool, NULL, _IOFBF, 1 << 20);
    part_path(r->c->plan, r->pass->number - 1, r->input, PART_ANSWERS, path);
    r->answers = fopen(path, "re");
    if (!r->answers)
        return err_sys(e, ERR_IO, "cannot open '%s'", path);
    setvbuf(r->answers, NULL, _IOFBF, 1 << 20);
    return 0;
}

static int read_answer(void *of, uint64_t n, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    struct runner *r = of;

    (void)n; /* they lie in order */
    return answer_read(r->answers, v, reply, a, e);
}

static int open_input(struct runner *r, const struct node *state, struct err *e)
{
    char **input = &r->c->plan->input[r->input];

    r->feed = (struct feed){.block_bytes = BATCH_BLOCK, .jobs = r->c->jobs};
    if (r->pass->number > 0) {
        r->feed.judge = (struct judge){read_answer, r};
        TRY(open_kept(r, e));
    } else if (r->c->plan->extract) {
        r->feed.source = &r->source;
        TRY(extract_restart(&r->source, input, 1, e));
    } else {
        r->feed.inputs = input;
        r->feed.n_inputs = 1;
    }
    return feed_skip(&r->feed, (uint64_t)node_int(state, "items", 0), (uint64_t)node_int(state, "offset", 0), e);
}

static int open_files(struct runner *r, const struct node *state, struct err *e)
{
    const struct plan *p = r->c->plan;
    int pass = r->pass->number;

    TRY(grow_open(&r->docs, p, pass, r->input, PART_DOCS, (uint64_t)node_int(state, "docs", 0), e));
    if (r->pass->later)
        TRY(grow_open(&r->notes, p, pass, r->input, PART_NOTES, (uint64_t)node_int(state, "notes", 0), e));
    if (p->rejects)
        TRY(grow_open(&r->rejects, p, pass, r->input, PART_REJECTS, (uint64_t)node_int(state, "rejects", 0), e));
    return 0;
}

static int begin(struct runner *r, struct err *e)
{
    struct arena a = {0};
    struct node *state = NULL;
    char path[4096];
    int rc = 0;

    part_path(r->c->plan, r->pass->number, r->input, PART_STATE, path);
    for (int k = 0; k < r->counts.flows.n && rc == 0; k++) {
        buf_clear(&r->counts.own[k]);
        rc = ask_own(r->feed.source, r->c->stage, k, &r->before.own[k]);
    }
    flows_free(&r->counts.flows);
    if (rc < 0 || flows_init(&r->counts.flows, r->c->plan->n_stages) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for counts");
    if (access(path, F_OK) == 0) {
        rc = node_load_json(&a, path, &state, e);
        if (rc == 0)
            rc = read_counts(&r->counts, state, path, e);
    }
    if (rc == 0)
        rc = open_files(r, state, e);
    if (rc == 0)
        rc = open_input(r, state, e);
    arena_free(&a);
    return rc;
}

/* Adds to the part's own counts what the stages did since it began here. */
static int count_own(struct runner *r, struct part_counts *sum, struct err *e)
{
    struct buf now = {0};
    int rc = 0;

    for (int k = 0; k < sum->flows.n && rc == 0; k++) {
        if (ask_own(r->feed.source, r->c->stage, k, &now) < 0)
            rc = err_set(e, ERR_NOMEM, "out of memory for counts");
        if (rc == 0 && buf_put_span(&sum->own[k], buf_span(&r->counts.own[k])) < 0)
            rc = err_set(e, ERR_NOMEM, "out of memory for counts");
        if (rc == 0)
            rc = add_own(sum, k, 1, buf_span(&now), e);
        if (rc == 0)
            rc = add_own(sum, k, -1, buf_span(&r->before.own[k]), e);
    }
    buf_free(&now);
    return rc;
}

static int put_number(struct buf *b, const char *key, uint64_t n)
{
    TRY(json_put_key(b, key));
    return json_put_int(b, (int64_t)n);
}

static int put_own(struct buf *b, const struct buf *own, int n)
{
    TRY(json_put_key(b, "own"));
    TRY(buf_putc(b, '['));
    for (int k = 0; k < n; k++) {
        if (k)
            TRY(buf_putc(b, ','));
        TRY(json_put_string(b, buf_span(&own[k])));
    }
    return buf_putc(b, ']');
}

static int put_state(struct buf *b, const struct runner *r, const struct part_counts *sum)
{
    TRY(buf_putc(b, '{'));
    TRY(put_number(b, "items", r->feed.count));
    TRY(put_number(b, "offset", r->feed.offset));
    TRY(put_number(b, "docs", r->docs.size));
    TRY(put_number(b, "notes", r->notes.size));
    TRY(put_number(b, "rejects", r->rejects.size));
    TRY(json_put_key(b, "counts"));
    TRY(flows_put(&r->counts.flows, b));
    TRY(put_own(b, sum->own, sum->flows.n));
    return buf_puts(b, "}\n");
}

/* Everything so far is made to last. */
static int rest(struct runner *r, bool done, struct err *e)
{
    struct part_counts sum;
    struct buf b = {0};
    char path[4096];
    int rc = 0;

    TRY(grow_sync(&r->docs, e));
    TRY(grow_sync(&r->notes, e));
    TRY(grow_sync(&r->rejects, e));
    if (part_counts_init(&sum, r->c->plan) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for counts");
    if (rc == 0)
        rc = count_own(r, &sum, e);
    if (rc == 0 && put_state(&b, r, &sum) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for counts");
    part_path(r->c->plan, r->pass->number, r->input, done ? PART_DONE : PART_STATE, path);
    if (rc == 0)
        rc = file_write_all(path, buf_span(&b), e);
    part_counts_free(&sum);
    buf_free(&b);
    return rc;
}

static void close_part(struct runner *r)
{
    const struct source *source = r->feed.source;
    struct judge judge = r->feed.judge;

    grow_close(&r->docs);
    grow_close(&r->notes);
    grow_close(&r->rejects);
    if (r->answers)
        fclose(r->answers);
    r->answers = NULL;
    feed_close(&r->feed);
    r->feed = (struct feed){.source = source, .judge = judge}; /* the engine looks at these */
}

/* What the part read, now that nobody needs it again. */
static void remove_read(const struct plan *p, int pass, int input)
{
    static const enum part_file files[] = {PART_DOCS, PART_NOTES, PART_ANSWERS};
    char path[4096];

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        part_path(p, pass, input, files[i], path);
        unlink(path);
    }
}

/* The pass tells how far it is. */
static void tell(void *of, const struct pass_now *now)
{
    struct runner *r = of;

    plan_progress_tell(r->c->progress, now, (double)r->docs.size);
}

static int run_one(struct runner *r, struct err *e)
{
    char path[4096];
    int rc;

    plan_progress_input(r->c->progress, r->c->plan->input[r->input], part_bytes(r->c->plan, r->pass->number, r->input));
    rc = begin(r, e);

    while (rc == 0) {
        rc = pass_run(r->engine, r->c->checkpoint, e);
        if (rc < 0)
            break;
        TRY(rest(r, rc == 0, e));
        if (rc == 0)
            break;
        rc = 0;
    }
    plan_progress_input_end(r->c->progress, &r->counts.flows, (double)r->docs.size);
    close_part(r);
    if (rc < 0)
        return rc;
    part_path(r->c->plan, r->pass->number, r->input, PART_STATE, path);
    unlink(path);
    if (r->pass->number > 0)
        remove_read(r->c->plan, r->pass->number - 1, r->input);
    return 0;
}

static int open_engine(struct runner *r, struct err *e)
{
    const struct part_conf *c = r->c;
    const struct part_pass *p = r->pass;
    struct pass_conf conf = {.stages = c->stage, .n_stages = c->plan->n_stages, .first = p->first, .last = p->last,
                             .later = p->later, .source = c->plan->extract ? &r->source : NULL, .feed = &r->feed,
                             .jobs = c->jobs, .docs = {grow_put, &r->docs}, .flows = &r->counts.flows, .tell = tell,
                             .tell_of = r};

    if (p->later)
        conf.notes = (struct sink){grow_put, &r->notes};
    else
        conf.codec = plan_codec(c->plan);
    if (c->plan->rejects)
        conf.rejects = (struct sink){grow_put, &r->rejects};
    conf.full = c->plan->rejects_full;
    if (p->number > 0)
        r->feed.judge = (struct judge){read_answer, r};
    else if (c->plan->extract)
        r->feed.source = &r->source;
    return pass_open(&r->engine, &conf, e);
}

int part_run(const struct part_conf *c, const struct part_pass *pass, const int *input, int n, struct err *e)
{
    struct runner r = {.c = c, .pass = pass, .docs = {.fd = -1}, .notes = {.fd = -1}, .rejects = {.fd = -1}};
    int rc = 0;

    if (part_counts_init(&r.before, c->plan) < 0 || part_counts_init(&r.counts, c->plan) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for counts");
    if (rc == 0 && c->plan->extract)
        rc = extract_open(&r.source, &c->plan->extract_conf, c->plan->input, 1, e);
    if (rc == 0)
        rc = open_engine(&r, e);
    for (int i = 0; i < n && rc == 0; i++) {
        r.input = input[i];
        if (!part_is_done(c->plan, pass->number, r.input))
            rc = run_one(&r, e);
    }
    close_part(&r);
    pass_close(r.engine);
    if (c->plan->extract)
        extract_close(&r.source);
    part_counts_free(&r.before);
    part_counts_free(&r.counts);
    return rc;
}

/* ---- deciding ---- */

static void decided_path(const struct plan *p, int pass, char path[4096])
{
    snprintf(path, 4096, "%s/%d.decided", p->work, pass);
}

bool part_decided(const struct plan *p, int pass)
{
    char path[4096];

    decided_path(p, pass, path);
    return access(path, F_OK) == 0;
}

/* Has the stage commit the notes of one part; *count of them.  Answers are written now if out is
 * given, else the stage must see all first. */
static int commit_notes(const struct stage *st, struct span notes, struct file_out *out, uint64_t *count, struct err *e)
{
    struct arena a = {0};
    struct buf b = {0};
    struct span note;
    size_t at = 0;
    int rc;

    *count = 0;
    while ((rc = frame_next_note(notes, &at, &note, e)) > 0) {
        struct verdict v = {0};
        struct span reply = {0};

        rc = st->ops->commit(st->state, note, &v, &reply, &a, e);
        if (rc == 0 && !out && (v.drop || reply.p))
            rc = err_set(e, ERR_UNSUPPORTED, "stage %s answers before it has seen all", st->ops->name);
        if (rc == 0 && out)
            rc = answer_write(out, &b, &v, reply, e);
        if (rc < 0)
            break;
        arena_reset(&a);
        ++*count;
    }
    arena_free(&a);
    buf_free(&b);
    return rc;
}

static int judge_notes(const struct stage *st, bool account, uint64_t first, uint64_t count, struct file_out *out,
                       struct err *e)
{
    struct arena a = {0};
    struct buf b = {0};
    int rc = 0;

    for (uint64_t n = first; n < first + count && rc == 0; n++) {
        struct verdict v = {.account = account};
        struct span reply = {0};

        rc = st->ops->judge(st->state, n, &v, &reply, &a, e);
        if (rc == 0)
            rc = answer_write(out, &b, &v, reply, e);
        arena_reset(&a);
    }
    arena_free(&a);
    buf_free(&b);
    return rc;
}

static int end_answers(struct file_out *out, int rc, struct err *e)
{
    if (rc == 0)
        return file_commit(out, e);
    file_abort(out);
    return rc;
}

static int commit_part(const struct part_conf *c, const struct part_pass *pass, int input, uint64_t *count, struct err *e)
{
    const struct stage *st = &c->stage[pass->last - 1];
    struct file_out *out = NULL;
    struct file_map m;
    char path[4096];
    int rc = 0;

    part_path(c->plan, pass->number, input, PART_NOTES, path);
    TRY(file_map_open(&m, path, e));
    part_path(c->plan, pass->number, input, PART_ANSWERS, path);
    if (!st->ops->resolve)
        rc = file_create(&out, path, 0, e);
    if (rc == 0)
        rc = commit_notes(st, (struct span){(const char *)m.p, m.n}, out, count, e);
    if (out)
        rc = end_answers(out, rc, e);
    file_map_close(&m);
    return rc;
}

static int judge_parts(const struct part_conf *c, const struct part_pass *pass, const uint64_t *count, struct err *e)
{
    const struct stage *st = &c->stage[pass->last - 1];
    uint64_t first = 0;

    TRY(st->ops->resolve(st->state, c->jobs, e));
    for (int i = 0; i < c->plan->n_inputs; i++) {
        struct file_out *out;
        char path[4096];

        part_path(c->plan, pass->number, i, PART_ANSWERS, path);
        TRY(file_create(&out, path, 0, e));
        TRY(end_answers(out, judge_notes(st, c->plan->rejects != NULL, first, count[i], out, e), e));
        first += count[i];
    }
    return 0;
}

static int decide(const struct part_conf *c, const struct part_pass *pass, struct err *e)
{
    uint64_t *count = calloc((size_t)c->plan->n_inputs + 1, sizeof *count);
    struct file_group files = {0};
    int rc = count ? 0 : err_set(e, ERR_NOMEM, "out of memory for %d inputs", c->plan->n_inputs);

    for (int i = 0; i < c->plan->n_inputs && rc == 0; i++) {
        plan_progress_wait(c->progress, "deciding");
        rc = commit_part(c, pass, i, &count[i], e);
    }
    if (rc == 0 && c->stage[pass->last - 1].ops->resolve)
        rc = judge_parts(c, pass, count, e);
    if (rc == 0 && c->stage[pass->last - 1].ops->finish)
        rc = c->stage[pass->last - 1].ops->finish(c->stage[pass->last - 1].state, &files, e);
    if (rc == 0)
        rc = file_group_commit(&files, e);
    file_group_abort(&files);
    free(count);
    return rc;
}

int part_decide(const struct part_conf *c, const struct part_pass *pass, struct err *e)
{
    struct buf before = {0}, after = {0}, own = {0};
    char path[4096];
    int rc = 0;

    if (part_decided(c->plan, pass->number))
        return 0;
    if (ask_own(NULL, c->stage, pass->last, &before) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for counts");
    if (rc == 0)
        rc = decide(c, pass, e);
    if (rc == 0 && ask_own(NULL, c->stage, pass->last, &after) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for counts");
    if (rc == 0)
        rc = counts_add(&own, buf_span(&after), -1, buf_span(&before), e);
    decided_path(c->plan, pass->number, path);
    if (rc == 0)
        rc = file_write_all(path, buf_span(&own), e);
    buf_free(&before);
    buf_free(&after);
    buf_free(&own);
    return rc;
}

int part_decided_counts(struct part_counts *c, const struct plan *p, const struct part_pass *pass, struct err *e)
{
    struct buf own = {0};
    char path[4096];
    int rc;

    decided_path(p, pass->number, path);
    rc = file_read_all(path, 64 << 20, &own, e);
    if (rc == 0)
        rc = add_own(c, pass->last, 1, buf_span(&own), e);
    buf_free(&own);
    return rc;
}
