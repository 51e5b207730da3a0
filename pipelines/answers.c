#include "pipelines/answers.h"

#include <inttypes.h>

enum { PART_MAX = 1 << 30 }; /* bytes; no stage says as much */

struct answer {
    double value, threshold;
    uint64_t drop, rule_n;
    uint64_t survivor_n, reply_n; /* 1 + the length; 0: there is none */
};

int answer_write(struct file_out *out, struct buf *b, const struct verdict *v, struct span reply, struct err *e)
{
    struct answer h = {v->value, v->threshold, v->drop, v->rule ? strlen(v->rule) : 0,
                       v->survivor.p ? 1 + v->survivor.n : 0, reply.p ? 1 + reply.n : 0};

    buf_clear(b);
    if (buf_put(b, &h, sizeof h) < 0 || buf_put(b, v->rule, h.rule_n) < 0 || buf_put_span(b, v->survivor) < 0 ||
        buf_put_span(b, reply) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for an answer");
    return file_write(out, b->p, b->n, e);
}

static int read_span(FILE *in, uint64_t n, struct span *s, struct arena *a, struct err *e)
{
    char *p;

    if (n > PART_MAX)
        return err_set(e, ERR_FORMAT, "the file of answers is damaged");
    p = arena_alloc(a, n + 1);
    if (!p)
        return err_set(e, ERR_NOMEM, "out of memory for an answer of %" PRIu64 " bytes", n);
    if (n && fread(p, 1, n, in) != n)
        return err_set(e, ERR_FORMAT, "the file of answers ends too soon");
    p[n] = '\0';
    *s = (struct span){p, n};
    return 0;
}

int answer_read(FILE *in, struct verdict *v, struct span *reply, struct arena *a, struct err *e)
{
    struct answer h;
    struct span rule = {0};

    if (fread(&h, sizeof h, 1, in) != 1)
        return err_set(e, ERR_FORMAT, "the file of answers ends too soon");
    *v = (struct verdict){.drop = h.drop, .value = h.value, .threshold = h.threshold};
    TRY(read_span(in, h.rule_n, &rule, a, e));
    v->rule = rule.p;
    if (h.survivor_n)
        TRY(read_span(in, h.survivor_n - 1, &v->survivor, a, e));
    if (h.reply_n)
        TRY(read_span(in, h.reply_n - 1, reply, a, e));
    return 0;
}
