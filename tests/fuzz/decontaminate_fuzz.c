/* Any bytes as an evaluation set; then, made valid, as a question and as a document through
 * every method: a document that is the question must be found, what is found must lie
 * where the hit says, and curator's cutting must end. */
#include <stdlib.h>

#include "base/json.h"
#include "base/utf8.h"
#include "curate/decontaminate/decontaminate_method.h"
#include "curate/decontaminate/decontaminate_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct eval_fields fields = {"id", "task", "question", "answer", "passage"};

static void parse(const uint8_t *data, size_t size)
{
    struct eval_set set = {0};
    struct buf b = {0};
    struct err e;

    if (buf_put(&b, data, size) < 0 || buf_reserve(&b, JSON_PADDING) < 0)
        abort();
    if (eval_set_parse(&set, "set.jsonl", buf_span(&b), &fields, &e) == 0)
        for (size_t i = 0; i < set.n; i++)
            if (set.v[i].question > set.v[i].text.n || !set.v[i].id.p)
                abort();
    eval_set_free(&set);
    buf_free(&b);
}

static bool inside(struct span part, struct span whole)
{
    return part.p >= whole.p && part.p + part.n <= whole.p + whole.n;
}

static void run(const struct eval_method *m, const struct decontaminate_conf *c, const struct eval_set *set,
                struct span text, bool must_find)
{
    struct arena a = {0};
    struct eval_hits hits = {0};
    struct err e;
    void *state, *thread;

    if (m->open(&state, c, set, &e) < 0 || m->thread_open(state, &thread, &e) < 0)
        abort();
    for (int round = 0; round < 2; round++) {
        hits.n = 0;
        if (m->find(state, thread, text, &a, &hits, &e) < 0)
            abort();
        for (size_t i = 0; i < hits.n; i++)
            if (hits.v[i].placed && (!inside(hits.v[i].text, text) ||
                                     !inside(hits.v[i].part, set->v[hits.v[i].item].text)))
                abort();
        if (must_find && !hits.n)
            abort();
    }
    m->thread_close(state, thread);
    m->close(state);
    free(hits.v);
    arena_free(&a);
}

static void cut(const struct decontaminate_conf *c, struct eval_set *set, struct span text)
{
    struct arena a = {0};
    struct stage s;
    struct verdict v = {0};
    struct span note = {0}, reply = {0};
    struct doc d;
    struct err e;
    void *thread;

    doc_init(&d, &a);
    if (decontaminate_curator_open(&s, c, set, &e) < 0 || s.ops->thread_open(s.state, &thread, &e) < 0 ||
        doc_set_string(&d, "text", text) < 0 || s.ops->work(s.state, thread, &d, &v, &note, &e) < 0 ||
        s.ops->commit(s.state, note, &v, &reply, &a, &e) < 0 || s.ops->judge(s.state, 0, &v, &reply, &a, &e) < 0 ||
        (reply.p && s.ops->apply(s.state, thread, &d, reply, &v, &e) < 0))
        abort();
    if (!utf8_valid(d.text))
        abort();
    s.ops->thread_close(s.state, thread);
    s.ops->close(s.state);
    arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct eval_item item[2] = {{.id = {"a", 1}}, {.id = {"b", 1}}};
    struct eval_set set = {.v = item, .n = 2};
    struct decontaminate_conf c;
    struct hashed_words ws = {0};
    struct buf b = {0};
    struct span all;
    struct err e;
    size_t half;

    parse(data, size);
    if (utf8_repair((struct span){(const char *)data, size}, &b) < 0)
        return 0;
    all = (struct span){b.p ? b.p : "", b.n};
    for (half = b.n / 2; half < b.n && ((unsigned char)b.p[half] & 0x80);) /* a byte parts question and answer */
        half++;
    item[0].text = item[1].passage = (struct span){all.p, half};
    item[0].question = half;
    item[1].text = all;
    item[1].question = half;
    decontaminate_conf_init(&c);
    c.min_words = 2;
    c.words = 8;
    c.cut = c.min_piece = 3;
    if (hashed_words_plain(&ws, item[0].text, &e) < 0)
        abort();
    run(&eval_method_quern, &c, &set, all, ws.n >= 8);
    c.words = 3;
    run(&eval_method_datatrove, &c, &set, all, false);
    run(&eval_method_decon, &c, &set, all, false);
    cut(&c, &set, all);
    hashed_words_free(&ws);
    buf_free(&b);
    return 0;
}
