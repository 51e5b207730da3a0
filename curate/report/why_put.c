#include <inttypes.h>
#include <math.h>

#include "base/json.h"
#include "curate/report/reject.h"
#include "curate/report/rules.h"
#include "curate/report/why.h"

enum { SEEN_BYTES = 300 }; /* of an id or a rule that a person sees */

/* ---- lines for a person ---- */

static int put_num(struct buf *b, double v)
{
    return v == floor(v) && fabs(v) < 1e15 ? buf_printf(b, "%.0f", v) : json_put_num(b, v);
}

/* The value against the threshold, as far as there are both. */
static int put_numbers(struct buf *b, const struct why_hit *h)
{
    if (isnan(h->value))
        return 0;
    TRY(put_num(b, h->value));
    if (isnan(h->threshold))
        return 0;
    TRY(buf_puts(b, h->value > h->threshold ? " is above " : h->value < h->threshold ? " is below " : " reaches "));
    return put_num(b, h->threshold);
}

static int put_rule(struct buf *b, const struct why_hit *h)
{
    struct buf presets = {0};
    int rc = rule_put_presets(&presets, h->stage, h->rule);

    TRY(put_visible(b, h->stage, SEEN_BYTES));
    TRY(buf_puts(b, ", rule "));
    TRY(put_visible(b, h->rule, SEEN_BYTES));
    if (rc == 0 && presets.n)
        rc = buf_printf(b, " (%s)", presets.p);
    buf_free(&presets);
    return rc;
}

static int put_place(struct buf *b, const struct why_hit *h)
{
    TRY(put_visible(b, span_of(h->file), 0));
    return buf_printf(b, " at byte %" PRIu64, h->offset);
}

static int put_dropped(struct buf *b, const struct why_hit *h)
{
    struct stage_rule words = rule_words(h->stage, h->rule);
    size_t before;

    TRY(buf_puts(b, "dropped by "));
    TRY(put_rule(b, h));
    TRY(buf_puts(b, "\n    "));
    before = b->n;
    if (words.value || !isnan(h->threshold))
        TRY(put_numbers(b, h));
    if (words.value && b->n > before)
        TRY(buf_printf(b, ": %s", words.value));
    if (b->n > before)
        TRY(buf_puts(b, "\n    "));
    if (words.why)
        TRY(buf_printf(b, "%s\n    ", words.why));
    TRY(put_place(b, h));
    return buf_putc(b, '\n');
}

/* What became of the survivor, of its survivor, and so on: each once. */
static int put_chain(const struct why *w, const struct why_hit *h, struct buf *b)
{
    const struct why_hit *seen[WHY_CHAIN];
    size_t id;

    for (int n = 0; h && h->survivor.p; n++) {
        for (int i = 0; i < n; i++)
            if (seen[i] == h)
                return buf_puts(b, "    and so on in a circle\n");
        if (n == WHY_CHAIN)
            return buf_puts(b, "    and so on\n");
        seen[n] = h;
        TRY(buf_puts(b, rule_words(h->stage, h->rule).question ? "    its question " : "    its survivor "));
        TRY(put_visible(b, h->survivor, SEEN_BYTES));
        if (!why_survivor(w, h, &id))
            return buf_putc(b, '\n');
        if (!w->of[id]->first)
            return buf_puts(b, w->of[id]->cut ? " was not looked for\n" : " is named nowhere else\n");
        h = w->of[id]->first;
        TRY(buf_puts(b, h->kept ? " was kept, " : " was dropped by "));
        TRY(h->kept ? put_place(b, h) : put_rule(b, h));
        if (!h->kept && !isnan(h->value) && !isnan(h->threshold)) {
            TRY(buf_puts(b, ": "));
            TRY(put_numbers(b, h));
        }
        TRY(buf_putc(b, '\n'));
    }
    return 0;
}

int why_put_text(const struct why *w, size_t id, struct buf *b)
{
    const struct why_id *of = w->of[id];

    if (!of->first) {
        TRY(put_visible(b, w->ids.name[id], SEEN_BYTES));
        return buf_puts(b, ": not found\n");
    }
    for (const struct why_hit *h = of->first; h; h = h->next) {
        TRY(put_visible(b, w->ids.name[id], SEEN_BYTES));
        TRY(buf_puts(b, ": "));
        if (h->kept) {
            TRY(buf_puts(b, "kept, "));
            TRY(put_place(b, h));
            TRY(buf_putc(b, '\n'));
        } else {
            TRY(put_dropped(b, h));
            TRY(put_chain(w, h, b));
        }
    }
    return of->hits > WHY_HITS ? buf_printf(b, "    and %zu more lines of this id\n", of->hits - WHY_HITS) : 0;
}

/* ---- JSON ---- */

static int put_text_pair(struct buf *b, const char *key, struct span s)
{
    TRY(json_put_key(b, key));
    return s.p ? json_put_string(b, s) : buf_puts(b, "null");
}

static int put_num_pair(struct buf *b, const char *key, double v)
{
    TRY(json_put_key(b, key));
    return json_put_num(b, v);
}

/* A hit, with the fate of its survivor inside it, `depth` deep. */
static int put_hit_json(const struct why *w, const struct why_hit *h, int depth, struct buf *b);

static int put_hits_json(const struct why *w, size_t id, int depth, struct buf *b)
{
    const struct why_id *of = w->of[id];

    TRY(buf_puts(b, "{\"id\":"));
    TRY(json_put_string(b, w->ids.name[id]));
    TRY(json_put_key(b, "lines"));
    TRY(json_put_int(b, (int64_t)of->hits));
    if (of->cut)
        TRY(buf_puts(b, ",\"cut\":true"));
    TRY(json_put_key(b, "found"));
    TRY(buf_putc(b, '['));
    for (const struct why_hit *h = of->first; h; h = h->next) {
        TRY(h == of->first ? 0 : buf_putc(b, ','));
        TRY(put_hit_json(w, h, depth, b));
        if (depth) /* of a survivor the first line is enough */
            break;
    }
    return buf_puts(b, "]}");
}

static int put_fate_json(const struct why *w, const struct why_hit *h, int depth, struct buf *b)
{
    struct stage_rule words = rule_words(h->stage, h->rule);
    size_t id;

    TRY(put_text_pair(b, "stage", h->stage));
    TRY(put_text_pair(b, "rule", h->rule));
    TRY(put_num_pair(b, "value", h->value));
    TRY(put_num_pair(b, "threshold", h->threshold));
    if (words.value)
        TRY(put_text_pair(b, "meaning", span_of(words.value)));
    if (words.why)
        TRY(put_text_pair(b, "why", span_of(words.why)));
    if (!h->survivor.p)
        return 0;
    TRY(put_text_pair(b, words.question ? "question" : "survivor", h->survivor));
    if (depth == WHY_CHAIN || !why_survivor(w, h, &id))
        return 0;
    TRY(json_put_key(b, "then"));
    return put_hits_json(w, id, depth + 1, b);
}

static int put_hit_json(const struct why *w, const struct why_hit *h, int depth, struct buf *b)
{
    TRY(buf_puts(b, h->kept ? "{\"fate\":\"kept\"" : "{\"fate\":\"dropped\""));
    if (!h->kept)
        TRY(put_fate_json(w, h, depth, b));
    TRY(put_text_pair(b, "file", span_of(h->file)));
    TRY(json_put_key(b, "offset"));
    TRY(json_put_int(b, (int64_t)h->offset));
    return buf_putc(b, '}');
}

int why_put_json(const struct why *w, size_t id, struct buf *b)
{
    TRY(put_hits_json(w, id, 0, b));
    return buf_putc(b, '\n');
}
