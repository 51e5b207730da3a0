#include "curate/language/classify_train.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/progress.h"
#include "curate/language/classify.h"
#include "curate/language/fasttext_model.h"
#include "curate/stream/pass.h"

#define PREFIX "__label__"

/* A stage that writes the lines to train on. */
struct collector {
    const struct classify_train_conf *conf;
    FILE *to;
    char *const *inputs;
    int n_positive, n_negative; /* inputs: positive files, negative files, others */
    char *first;                /* label seen first */
    bool two;                   /* there was another */
};

/* The label of a document, borrowed. */
static int label_of(const struct collector *c, struct doc *d, struct span *label, struct err *e)
{
    for (int i = 0; i < c->n_positive + c->n_negative; i++)
        if (c->inputs[i] == d->file) {
            *label = span_of(i < c->n_positive ? c->conf->positive_label : c->conf->negative_label);
            return 0;
        }
    *label = doc_string(d, c->conf->label_field);
    if (!label->p)
        return err_set(e, ERR_FORMAT, "no field '%s' with a label", c->conf->label_field);
    return 0;
}

static bool usable_label(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ')
            return false;
    return s.n > 0;
}

/* A document's line: its label, its text without newlines and without labels. */
static int put_line(struct buf *b, const struct classify_train_conf *conf, struct span label, struct span text)
{
    struct buf once = {0}, twice = {0};
    size_t start;
    int rc;

    if (label.n < sizeof PREFIX - 1 || memcmp(label.p, PREFIX, sizeof PREFIX - 1) != 0)
        TRY(buf_puts(b, PREFIX));
    TRY(buf_put_span(b, label));
    TRY(buf_putc(b, ' '));
    rc = classify_prepare(conf->dialect, text, &once, &text);
    if (rc == 0) /* whatever the dialect: the text must not bring labels of its own */
        rc = classify_prepare(CLASSIFY_NEMO, text, &twice, &text);
    start = b->n;
    if (rc == 0)
        rc = buf_put_span(b, text);
    for (size_t i = start; i < b->n; i++)
        if (b->p[i] == '\n')
            b->p[i] = ' ';
    buf_free(&once);
    buf_free(&twice);
    return rc < 0 ? rc : buf_putc(b, '\n');
}

static int collect_work(void *stage, void *thread, struct doc *d, struct verdict *v, struct span *note, struct err *e)
{
    const struct collector *c = stage;
    struct span label;
    struct buf b = {0};

    (void)thread;
    (void)v;
    TRY(label_of(c, d, &label, e));
    if (!usable_label(label))
        return err_set(e, ERR_FORMAT, "a label with white space, or an empty one");
    if (put_line(&b, c->conf, label, d->text) == 0)
        *note = arena_dup(d->arena, buf_span(&b));
    buf_free(&b);
    return note->p ? 0 : err_set(e, ERR_NOMEM, "no memory for a document");
}

static int collect_commit(void *stage, struct span note, struct verdict *v, struct span *reply, struct arena *a,
                          struct err *e)
{
    struct collector *c = stage;
    size_t n = (size_t)((const char *)memchr(note.p, ' ', note.n) - note.p);

    (void)v;
    (void)reply;
    (void)a;
    if (!c->first && (c->first = strndup(note.p, n)) == NULL)
        return err_set(e, ERR_NOMEM, "no memory for a label");
    c->two = c->two || !span_eq((struct span){note.p, n}, span_of(c->first));
    if (fwrite(note.p, 1, note.n, c->to) != note.n)
        return err_sys(e, ERR_IO, "cannot write the texts to train on");
    return 0;
}

static const struct stage_ops ops = {.name = "classify train", .work = collect_work, .commit = collect_commit};

static int run_pass(struct collector *c, int n_inputs, int jobs, struct classify_train_result *r, struct err *e)
{
    struct stage stage = {&ops, c};
    struct feed feed = {.lines = {.paths = c->inputs, .n_paths = n_inputs}};
    struct flows flows = {0};
    struct pass_conf conf = {.stages = &stage, .n_stages = 1, .last = 1, .feed = &feed, .jobs = jobs, .flows = &flows,
                             .tell = pass_show};
    struct pass *p;
    int rc = flows_init(&flows, 1) < 0 ? err_set(e, ERR_NOMEM, "out of memory") : feed_check(&feed, e);

    if (rc == 0)
        rc = pass_open(&p, &conf, e);
    if (rc == 0) {
        rc = pass_run(p, 0, e);
        pass_close(p);
    }
    progress_end();
    if (rc >= 0)
        *r = (struct classify_train_result){flows.flow[1].docs_in, flows.bad, flows.flow[1].bytes_in};
    feed_close(&feed);
    flows_free(&flows);
    if (rc >= 0 && fflush(c->to) != 0)
        return err_sys(e, ERR_IO, "cannot write the texts to train on");
    if (rc >= 0 && !c->two)
        return err_set(e, ERR_ARG, c->first ? "all documents have the label '%s': there is nothing to tell apart"
                                            : "there is no document to train on", c->first);
    return rc < 0 ? rc : 0;
}

/* The bytes behind fd under the name output. */
static int publish(int fd, const char *output, struct err *e)
{
    enum { CHUNK = 1 << 20 };
    struct file_out *out;
    char *p = malloc(CHUNK);
    ssize_t n = 0;
    int rc = p ? file_create(&out, output, 0, e) : err_set(e, ERR_NOMEM, "no memory to write the model");

    if (rc == 0) {
        for (off_t at = 0; rc == 0 && (n = pread(fd, p, CHUNK, at)) > 0; at += n)
            rc = file_write(out, p, (size_t)n, e);
        if (rc == 0 && n < 0)
            rc = err_sys(e, ERR_IO, "cannot read the model back");
        if (rc == 0)
            rc = file_commit(out, e);
        else
            file_abort(out);
    }
    free(p);
    return rc;
}

/* A model that cannot be read back was not written whole: the disk is full. */
static int train_to(FILE *text, const struct classify_train_conf *c, const char *output, struct err *e)
{
    static const int losses[] = {FASTTEXT_SOFTMAX, FASTTEXT_HS, FASTTEXT_NS, FASTTEXT_OVA};
    struct fasttext_train_conf conf = c->fasttext;
    struct fasttext *m = NULL;
    char in[32], out[32];
    int fd = file_nameless(output, e), rc;

    if (fd < 0)
        return fd;
    conf.loss = losses[c->loss];
    snprintf(in, sizeof in, "/proc/self/fd/%d", fileno(text));
    snprintf(out, sizeof out, "/proc/self/fd/%d", fd);
    rc = fasttext_train(in, out, &conf, e);
    if (rc == 0) {
        rc = fasttext_open(&m, out, e);
        if (rc < 0)
            err_wrap(e, "cannot write the model '%s'", output);
        fasttext_close(m);
    }
    if (rc == 0)
        rc = publish(fd, output, e);
    close(fd);
    return rc;
}

static int collect_and_train(struct collector *c, const char *output, int n_inputs, int jobs,
                             struct classify_train_result *r, struct err *e)
{
    int fd = file_nameless(output, e);

    if (fd < 0)
        return fd;
    c->to = fdopen(fd, "w");
    if (!c->to) {
        close(fd);
        return err_sys(e, ERR_IO, "cannot write the texts to train on");
    }
    TRY(run_pass(c, n_inputs, jobs, r, e));
    log_msg(LOG_INFO, "%" PRIu64 " documents, %" PRIu64 " bad; training", r->docs, r->bad);
    return train_to(c->to, c->conf, output, e);
}

int classify_train(const struct classify_train_conf *conf, const char *output, char *const *inputs, int n_inputs,
                   int jobs, struct classify_train_result *r, struct err *e)
{
    struct collector c = {.conf = conf, .n_positive = conf->positive.n, .n_negative = conf->negative.n};
    int n = c.n_positive + c.n_negative, rc;
    char **all = malloc((size_t)(n + n_inputs + 1) * sizeof *all);

    if (!all)
        return err_set(e, ERR_NOMEM, "no memory for names of files");
    for (int i = 0; i < n + n_inputs; i++) /* argv's strings, which are not const there */
        all[i] = i < c.n_positive ? (char *)(uintptr_t)conf->positive.v[i]
                 : i < n          ? (char *)(uintptr_t)conf->negative.v[i - c.n_positive]
                                  : inputs[i - n];
    c.inputs = all;
    rc = collect_and_train(&c, output, n + n_inputs, jobs, r, e);
    if (c.to)
        fclose(c.to);
    free(c.first);
    free(all);
    return rc;
}

void classify_train_conf_init(struct classify_train_conf *c)
{
    *c = (struct classify_train_conf){
        .label_field = "label",
        .positive_label = "hq",
        .negative_label = "cc",
        .fasttext = {.lr = 0.1, .dim = 100, .epoch = 5, .word_ngrams = 1, .bucket = 2000000, .min_count = 1, .threads = 1},
    };
}
