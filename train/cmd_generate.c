/* quern generate: text from a checkpoint. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/tool.h"
#include "kernels/threads.h"
#include "tokenize/tokenizer.h"
#include "train/evaluate.h"
#include "train/generate.h"

struct options {
    const char *load, *tokenizer, *pattern, *prompt, *ids;
    int64_t step, tokens, samples, seed, top_k, eod;
    double temperature, top_p, penalty;
    bool bf16, print_ids, eod_given;
    int device;
};

struct job {
    const struct options *o;
    struct tokenizer *tokenizer;
    int64_t eod;       /* that ends a text; -1: none */
    bool *drawn;       /* ids of the model that the tokenizer has; NULL: all */
    struct buf prompt; /* int32_t each */
    struct buf *out;   /* a sample: the ids, uint32_t each */
    /* The first sample is printed as it comes: ids before `from` are behind us, those up to `shown` are printed. */
    size_t from, shown;
};

static size_t count_of(const struct buf *b)
{
    return b->n / sizeof(uint32_t);
}

/* Whether more tokens may change the end of the text: a character that is not whole, or what stands for one. */
static bool unfinished(struct span text)
{
    size_t n = 0;

    if (text.n >= 3 && memcmp(text.p + text.n - 3, "\xef\xbf\xbd", 3) == 0)
        return true;
    while (n < text.n && n < 3 && ((unsigned char)text.p[text.n - 1 - n] & 0xc0) == 0x80)
        n++;
    if (n == text.n)
        return false;
    switch ((unsigned char)text.p[text.n - 1 - n] >> 4) { /* the byte that says how many follow */
    case 0xc:
    case 0xd: return n < 1;
    case 0xe: return n < 2;
    case 0xf: return n < 3;
    default: return false;
    }
}

/* Prints what the tokens of the first sample that are not shown add to its text; all: the last of them has come.  A token's
 * text can depend on the one before it, so they are decoded behind those that were shown last. */
static int print_more(struct job *j, bool all, struct err *e)
{
    enum { HELD = 8 }; /* tokens at most that wait for the rest of a character */
    uint32_t *ids = (void *)j->out[0].p;
    size_t n = count_of(&j->out[0]);
    struct buf before = {0}, text = {0};
    int rc;

    if (n && ids[n - 1] == j->eod)
        n--;
    if (n == j->shown)
        return 0;
    rc = tokenizer_decode(j->tokenizer, ids + j->from, j->shown - j->from, &before, e);
    if (rc == 0)
        rc = tokenizer_decode(j->tokenizer, ids + j->from, n - j->from, &text, e);
    if (rc == 0 && (all || n - j->shown >= HELD || !unfinished(buf_span(&text)))) {
        if (text.n > before.n)
            fwrite(text.p + before.n, 1, text.n - before.n, stdout);
        fflush(stdout);
        j->from = j->shown;
        j->shown = n;
    }
    buf_free(&before);
    buf_free(&text);
    return rc;
}

static bool as_ids(const struct job *j)
{
    return j->o->print_ids || !j->tokenizer;
}

static int on_token(void *arg, int64_t sample, int32_t id, struct err *e)
{
    struct job *j = arg;
    uint32_t u = (uint32_t)id;

    if (buf_put(&j->out[sample], &u, sizeof u) < 0)
        return err_set(e, ERR_NOMEM, "out of memory");
    if (sample)
        return 0;
    if (!as_ids(j))
        return print_more(j, false, e);
    printf("%s%" PRIu32, count_of(&j->out[0]) > 1 ? " " : "", u);
    fflush(stdout);
    return 0;
}

/* "5,17 23": whole numbers between commas or spaces. */
static int parse_ids(const char *s, struct buf *out, struct err *e)
{
    while (*s) {
        char *end;
        long long v;
        int32_t id;

        errno = 0;
        v = strtoll(s, &end, 10);
        if (end == s || errno || v < 0 || v > INT32_MAX)
            return err_set(e, ERR_ARG, "--prompt-ids: not token ids: '%s'", s);
        id = (int32_t)v;
        if (buf_put(out, &id, sizeof id) < 0)
            return err_set(e, ERR_NOMEM, "out of memory");
        for (s = end; *s == ',' || *s == ' '; s++)
            ;
    }
    return 0;
}

static int encode_prompt(struct job *j, struct err *e)
{
    const struct options *o = j->o;
    struct encoder *enc;
    int64_t eod;
    int rc;

    if (o->ids && o->prompt)
        return err_set(e, ERR_ARG, "either --prompt or --prompt-ids: the model would see these and the reader that");
    if (o->ids)
        return parse_ids(o->ids, &j->prompt, e);
    if (!j->tokenizer)
        return err_set(e, ERR_ARG, "--tokenizer is needed for --prompt (or give --prompt-ids)");
    if (o->prompt && o->prompt[0]) {
        enc = encoder_new(j->tokenizer);
        if (!enc)
            return err_set(e, ERR_NOMEM, "out of memory");
        rc = encoder_encode(enc, span_of(o->prompt), ENCODER_SPECIAL, 4, &j->prompt, e);
        encoder_free(enc);
        return rc;
    }
    eod = tokenizer_eod(j->tokenizer); /* a document begins where one ended */
    if (eod < 0)
        return err_set(e, ERR_ARG, "--prompt is needed: the tokenizer has no token that ends a document");
    return buf_put(&j->prompt, &(int32_t){(int32_t)eod}, sizeof(int32_t)) < 0
               ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}

static void put_ids(const void *ids, size_t n)
{
    const uint32_t *v = ids;

    for (size_t i = 0; i < n; i++)
        printf("%s%" PRIu32, i ? " " : "", v[i]);
}

static const char *prompt_of(const struct job *j)
{
    return as_ids(j) || !j->o->prompt ? "" : j->o->prompt;
}

/* The end of the first sample, and the others. */
static int print_samples(struct job *j, struct err *e)
{
    TRY(as_ids(j) ? 0 : print_more(j, true, e));
    putchar('\n');
    for (int64_t s = 1; s < j->o->samples; s++) {
        size_t n = count_of(&j->out[s]);
        uint32_t *ids = (void *)j->out[s].p;
        struct buf text = {0};
        int rc = 0;

        printf("----\n%s", prompt_of(j));
        if (as_ids(j))
            put_ids(ids, n);
        else if (n && (n -= ids[n - 1] == j->eod))
            rc = tokenizer_decode(j->tokenizer, ids, n, &text, e);
        if (rc == 0)
            printf("%.*s\n", (int)text.n, text.n ? text.p : "");
        buf_free(&text);
        TRY(rc);
    }
    return 0;
}

/* Which of the model's ids the tokenizer has; says how many it has not. */
static int find_drawn(struct job *j, int64_t vocab, struct err *e)
{
    int64_t without = 0;

    if (!j->tokenizer)
        return 0;
    j->drawn = malloc((size_t)vocab * sizeof *j->drawn);
    if (!j->drawn)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (int64_t i = 0; i < vocab; i++) {
        j->drawn[i] = i < tokenizer_vocab_size(j->tokenizer) && tokenizer_bytes(j->tokenizer, (uint32_t)i).p != NULL;
        without += !j->drawn[i];
    }
    if (without)
        log_msg(LOG_WARN, "'%s' has no token for %" PRId64 " of the model's %" PRId64 " ids; they are not drawn", j->o->tokenizer,
                without, vocab);
    return 0;
}

static int sample(struct job *j, struct model *m, int64_t count, struct err *e)
{
    const struct options *o = j->o;
    struct sampling s = {o->temperature, o->top_k, o->top_p, o->penalty, (uint64_t)o->seed, -1, NULL};

    TRY(find_drawn(j, m->config.vocab, e));
    s.drawn = j->drawn;
    if (j->tokenizer)
        j->eod = tokenizer_eod(j->tokenizer);
    s.eod = o->eod_given ? o->eod : j->eod;
    fputs(prompt_of(j), stdout);
    fflush(stdout);
    TRY(generate(m, &s, (const int32_t *)(void *)j->prompt.p, 1, (int64_t)(j->prompt.n / sizeof(int32_t)), count,
                 on_token, j, e));
    return print_samples(j, e);
}

static int with_model(struct job *j, const struct checkpoint *ck, int threads, struct err *e)
{
    const struct options *o = j->o;
    const struct model_config *c = &checkpoint_info(ck)->model;
    int64_t n = (int64_t)(j->prompt.n / sizeof(int32_t)), count = o->tokens;
    struct model_run run = {.dt = o->bf16 ? DTYPE_BF16 : DTYPE_F32, .use = MODEL_GENERATE, .b = o->samples};
    struct device *dev = NULL;
    struct model *m = NULL;
    int rc;

    if (n > c->positions || n == 0)
        return err_set(e, ERR_ARG, "a prompt of %" PRId64 " tokens; the model takes 1 to %" PRId64, n, c->positions);
    if (n + count - 1 > c->positions) {
        count = c->positions - n + 1;
        log_msg(LOG_WARN, "the model has %" PRId64 " positions: %" PRId64 " tokens instead of %" PRId64, c->positions,
                count, o->tokens);
    }
    run.t = n + (count ? count - 1 : 0);
    rc = device_open(&dev, train_config_device[o->device], threads, e);
    if (rc == 0)
        rc = model_restore(&m, ck, dev, &run, e);
    if (rc == 0)
        rc = sample(j, m, count, e);
    model_close(m);
    device_close(dev);
    return rc;
}

static int run(const struct options *o, int threads, struct err *e)
{
    struct job j = {.o = o, .eod = -1, .out = calloc((size_t)o->samples, sizeof *j.out)};
    struct checkpoint *ck = NULL;
    int rc = j.out ? 0 : err_set(e, ERR_NOMEM, "out of memory");

    if (rc == 0 && !o->load)
        rc = err_set(e, ERR_ARG, "--load is needed");
    if (rc == 0 && o->tokenizer)
        rc = tokenizer_open(&j.tokenizer, o->tokenizer, o->pattern, e);
    if (rc == 0)
        rc = encode_prompt(&j, e);
    if (rc == 0)
        rc = checkpoint_open(&ck, o->load, o->step, e);
    if (rc == 0 && !ck)
        rc = err_set(e, ERR_IO, "no checkpoint in '%s'", o->load);
    if (rc == 0)
        rc = with_model(&j, ck, threads, e);
    checkpoint_close(ck);
    if (j.tokenizer)
        tokenizer_close(j.tokenizer);
    for (int64_t i = 0; j.out && i < o->samples; i++)
        buf_free(&j.out[i]);
    free(j.out);
    free(j.drawn);
    buf_free(&j.prompt);
    return rc;
}

int main(int argc, char **argv)
{
    struct options o = {.tokens = 128, .samples = 1, .temperature = 1, .top_p = 1, .penalty = 1, .seed = 1234, .eod = -1,
                        .step = CHECKPOINT_LAST};
    struct tool t = {
        .name = "generate",
        .usage = "--load DIR --tokenizer FILE [options]",
        .about = "text from a checkpoint",
        .details = "Prints the prompt and what the model writes after it, the first sample as it is drawn; several\n"
                   "samples are separated by a line of four dashes. Ids for which the tokenizer has no token are not\n"
                   "drawn. The same seed gives the same text on the same machine. Without a tokenizer, or with\n"
                   "--print-ids, the new token ids are printed.",
        .example = "seq 300 | sed 's/.*/{\"text\":\"the mill grinds & times\"}/' >mill.jsonl\n"
                   "quern tokenizer train -q --vocab-size 300 -o mill.json mill.jsonl\n"
                   "quern tokenize -q --tokenizer mill.json --append-eod --output-prefix mill mill.jsonl\n"
                   "quern train -q --vocab-size 300 --num-layers 2 --hidden-size 64 --num-attention-heads 4 \\\n"
                   "    --seq-length 16 --micro-batch-size 8 --train-iters 60 --lr 1e-2 --lr-decay-style cosine \\\n"
                   "    --data-path mill_text_document --split 90,10,0 --save mill\n"
                   "quern generate --load mill --tokenizer mill.json --prompt 'the mill' --temperature 0.5 --max-tokens 8",
    };
    struct opt opts[] = {
        OPT_HEAD("Generation"),
        OPT_FOLDER(0, "load", &o.load, "DIR", "the checkpoint's folder"),
        OPT_INT(0, "ckpt-step", &o.step, -1, INT64_MAX, "the checkpoint of this step; -1: the last whole one"),
        OPT_IN(0, "tokenizer", &o.tokenizer, "FILE", "tokenizer.json"),
        OPT_STR(0, "pattern", &o.pattern, "NAME", "how text is cut into pieces (default: what the tokenizer says)"),
        OPT_STR(0, "prompt", &o.prompt, "TEXT", "go on from here (default: the start of a document)"),
        OPT_STR(0, "prompt-ids", &o.ids, "IDS", "the prompt as token ids, separated by commas"),
        OPT_INT(0, "max-tokens", &o.tokens, 0, 1 << 24, "at most so many new tokens"),
        OPT_INT(0, "num-samples", &o.samples, 1, 1024, "so many texts"),
        OPT_NUM(0, "temperature", &o.temperature, 0, 100, "divides the logits; 0: always the likeliest token"),
        OPT_INT(0, "top-k", &o.top_k, 0, INT32_MAX, "only the k likeliest tokens; 0: all"),
        OPT_NUM(0, "top-p", &o.top_p, 0, 1, "only the likeliest tokens that make up this probability"),
        OPT_NUM(0, "repetition-penalty", &o.penalty, 0.01, 100,
                "divides logits above 0 of tokens that the text has, multiplies others; 1: no"),
        OPT_INT(0, "seed", &o.seed, 0, INT64_MAX, "of the random numbers"),
        {OPT_TYPE_INT, 0, "eod-id", "N", "the id that ends a text (default: the tokenizer's)", &o.eod, -1, INT32_MAX,
         0, 0, &o.eod_given, OPT_NAMES_NOTHING},
        OPT_FLAG(0, "print-ids", &o.print_ids, "print token ids"),
        OPT_FLAG(0, "bf16", &o.bf16, "compute in bf16"),
        OPT_ENUM(0, "device", &o.device, "auto|cpu|cuda", "where to run"),
        TOOL_OPTS(t),
        TOOL_JOBS(t),
        OPT_END,
    };
    struct err e;
    int n, code;

    threads_bound_spin(argv);
    n = tool_begin(&t, opts, argc, argv, &code);
    if (n > 0)
        code = tool_usage(&t, "it takes no operands: '%s'", argv[1]);
    if (n == 0)
        code = run(&o, threads_count(t.jobs, 1, 1), &e) < 0 ? tool_fail(&t, &e) : tool_end(&t, EXIT_FINE);
    return code;
}
