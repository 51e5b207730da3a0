/* Cutting, step by step. */
#include "base/utf8.h"
#include "tokenize/model.h"
#include "tokenize/steps_find.h"

/* What becomes of the parts: each piece that stays ends where it says in ends. */
static int put_parts(struct span text, struct step_match *m, size_t n, enum step_behavior behavior, struct strings *out)
{
    size_t begin = 0;

    for (size_t i = 0; i < n; i++) {
        bool joins;
        if (behavior == BEHAVIOR_REMOVED && m[i].match) {
            begin = m[i].end;
            continue;
        }
        /* Whether the next part goes on with this piece. */
        joins = i + 1 < n && ((behavior == BEHAVIOR_CONTIGUOUS && m[i].match == m[i + 1].match) ||
                              (behavior == BEHAVIOR_PREVIOUS && m[i + 1].match && !m[i].match) ||
                              (behavior == BEHAVIOR_NEXT && m[i].match && !m[i + 1].match));
        if (joins || m[i].end == begin)
            continue;
        TRY(buf_put(&out->text, text.p + begin, m[i].end - begin));
        TRY(strings_end(out));
        begin = m[i].end;
    }
    return 0;
}

static int cut_piece(const struct step *s, struct step_scratch *w, struct span text, struct strings *out, struct err *e)
{
    enum step_behavior behavior = s->behavior;
    struct step_match *m;
    size_t n;

    TRY(steps_find(s, text, &w->matches, e));
    m = (struct step_match *)(void *)w->matches.p;
    n = w->matches.n / sizeof *m;
    if (s->kind == STEP_WHITESPACE || s->kind == STEP_BERT_SPLIT || s->kind == STEP_WHITESPACE_SPLIT) {
        bool keep = s->kind != STEP_WHITESPACE_SPLIT; /* what is found stays, all else goes */
        for (size_t i = 0; i < n; i++)
            m[i].match ^= keep;
        behavior = BEHAVIOR_REMOVED;
    }
    for (size_t i = 0; i < n && s->invert; i++)
        m[i].match = !m[i].match;
    return put_parts(text, m, n, behavior, out);
}

static bool is_mark(struct span mark, const char *p, const char *end)
{
    return *p == *mark.p && (size_t)(end - p) >= mark.n && memcmp(p, mark.p, mark.n) == 0;
}

static int metaspace(const struct step *s, struct span text, bool first, struct strings *out)
{
    struct span mark = s->text;
    size_t begin = out->text.n;
    const char *p = text.p, *end = text.p + text.n;
    char *o;

    if (!(text.n && (*p == ' ' || is_mark(mark, p, end))) && (s->scheme == SCHEME_ALWAYS || (s->scheme == SCHEME_FIRST && first)))
        TRY(buf_put_span(&out->text, mark));
    TRY(buf_reserve(&out->text, text.n * mark.n));
    o = out->text.p + out->text.n;
    while (p < end) {
        if (*p != ' ' && !is_mark(mark, p, end)) {
            *o++ = *p++;
            continue;
        }
        out->text.n = (size_t)(o - out->text.p);
        if (s->single && out->text.n > begin)
            TRY(strings_end(out));
        p += *p == ' ' ? 1 : mark.n;
        memcpy(o, mark.p, mark.n);
        o += mark.n;
    }
    out->text.n = (size_t)(o - out->text.p);
    return out->text.n > begin ? strings_end(out) : 0;
}

static int byte_level(const struct step *s, struct step_scratch *w, struct span text, bool map, struct strings *out,
                      struct err *e)
{
    struct strings raw = {0};
    int rc = 0;

    buf_clear(&w->work);
    if (s->prefix_space && text.n && *text.p != ' ')
        rc = buf_putc(&w->work, ' ');
    if (rc == 0 && w->work.n && (rc = buf_put_span(&w->work, text)) == 0)
        text = buf_span(&w->work);
    if (rc == 0 && s->regex)
        rc = cut_piece(s, w, text, map ? &raw : out, e);
    if (rc == 0 && !s->regex && text.n) {
        rc = buf_put_span(map ? &raw.text : &out->text, text);
        if (rc == 0)
            rc = strings_end(map ? &raw : out);
    }
    for (size_t i = 0; i < strings_n(&raw) && rc == 0; i++) {
        rc = format_map_bytes(strings_get(&raw, i), &out->text);
        if (rc == 0)
            rc = strings_end(out);
    }
    strings_free(&raw);
    return rc;
}

/* Mapped pieces to bytes, in place: they become shorter. */
static int unmap(struct strings *s, struct step_scratch *w)
{
    uint32_t *ends = (uint32_t *)(void *)s->ends.p;

    buf_clear(&w->work);
    for (size_t i = 0, n = strings_n(s), begin = 0; i < n; i++) {
        struct span piece = {s->text.p + begin, ends[i] - begin};
        begin = ends[i];
        TRY(format_unmap_bytes(piece, &w->work));
        ends[i] = (uint32_t)w->work.n;
    }
    buf_clear(&s->text);
    return buf_put_span(&s->text, buf_span(&w->work));
}

int steps_cut(const struct steps *s, struct step_scratch *w, struct span text, bool first, bool mapped,
              struct strings *out, struct err *e)
{
    struct strings *to = &w->other, swap;
    bool is_mapped = false;
    int rc;

    strings_clear(out);
    rc = buf_put_span(&out->text, text);
    if (rc == 0 && text.n)
        rc = strings_end(out);
    for (size_t k = 0; k < s->n && rc == 0; k++) {
        const struct step *x = &s->v[k];
        bool map = x->kind == STEP_BYTE_LEVEL && (mapped || k + 1 < s->n), lost = false;
        strings_clear(to);
        for (size_t i = 0, n = strings_n(out); i < n && rc == 0; i++) {
            struct span piece = strings_get(out, i);
            if (x->kind == STEP_METASPACE)
                rc = metaspace(x, piece, first && i == 0, to);
            else if (x->kind == STEP_BYTE_LEVEL)
                rc = byte_level(x, w, piece, map, to, e);
            else
                rc = cut_piece(x, w, piece, to, e);
            lost |= i == 0 && x->kind != STEP_METASPACE && x->kind != STEP_BYTE_LEVEL &&
                    (!strings_n(to) || strings_get(to, 0).p[0] != piece.p[0]);
        }
        first &= !lost;
        is_mapped |= map;
        swap = *out;
        *out = *to;
        *to = swap;
    }
    if (rc == 0 && is_mapped && !mapped)
        rc = unmap(out, w);
    return rc == ERR_NOMEM ? err_set(e, rc, "out of memory for a text") : rc < 0 ? rc : 0;
}
