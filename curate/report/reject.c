#include "curate/report/reject.h"

#include <inttypes.h>
#include <math.h>

#include "base/json_shim.h"
#include "base/log.h"
#include "base/utf8.h"

int reject_reader_open(struct reject_reader *r, struct err *e)
{
    *r = (struct reject_reader){.json = json_reader_new()};
    return r->json ? 0 : err_set(e, ERR_NOMEM, "out of memory");
}

void reject_reader_close(struct reject_reader *r)
{
    json_reader_free(r->json);
    arena_free(&r->arena);
}

static int take_string(struct reject_reader *r, const struct json_field *f, struct span *out, struct err *e)
{
    struct buf b = {0};
    int rc;

    if (f->type != JSON_STRING)
        return err_set(e, ERR_FORMAT, "\"%.*s\" is no string", (int)f->key.n, f->key.p);
    if (!memchr(f->raw.p, '\\', f->raw.n)) {
        *out = (struct span){f->raw.p + 1, f->raw.n - 2};
        return 0;
    }
    rc = json_unescape(f->raw, &b, e);
    if (rc == 0) {
        *out = arena_dup(&r->arena, buf_span(&b));
        if (!out->p)
            rc = err_set(e, ERR_NOMEM, "out of memory for a line");
    }
    buf_free(&b);
    return rc;
}

static int take_field(struct reject_reader *r, const struct json_field *f, struct reject *out, struct err *e)
{
    static const char *const names[] = {"id", "stage", "rule", "survivor"};
    struct span *const to[] = {&out->id, &out->stage, &out->rule, &out->survivor};

    for (int i = 0; i < 4; i++)
        if (span_is(f->key, names[i]) && !(i == 3 && f->type == JSON_NULL))
            return take_string(r, f, to[i], e);
    if (f->type == JSON_NUMBER && span_is(f->key, "value"))
        out->value = json_parse_double(f->raw.p, f->raw.n);
    if (f->type == JSON_NUMBER && span_is(f->key, "threshold"))
        out->threshold = json_parse_double(f->raw.p, f->raw.n);
    return 0;
}

int reject_parse(struct reject_reader *r, struct span line, struct reject *out, struct err *e)
{
    const struct json_field *f;
    int n = json_read_object(r->json, line, &f, e);

    TRY(n);
    arena_reset(&r->arena);
    *out = (struct reject){.value = NAN, .threshold = NAN};
    for (int i = 0; i < n; i++)
        TRY(take_field(r, &f[i], out, e));
    if (!out->id.p || !out->stage.p || !out->rule.p)
        return err_set(e, ERR_FORMAT, "no account of a dropped document: it lacks id, stage or rule");
    return 0;
}

/* ---- lines ---- */

static void say_bad(const struct item *it, const char *why, uint64_t *bad)
{
    if (!bad)
        return;
    (*bad)++;
    log_skipped(it->file, it->offset, why);
}

static int read_block(const struct feed_block *b, line_seen *seen, void *to, uint64_t *bad, struct err *e)
{
    for (int i = 0; i < b->n; i++) {
        const struct item *it = &b->item[i];
        int rc = 0;

        if (it->bad)
            say_bad(it, it->bad, bad);
        else
            rc = seen(to, it, e);
        if (rc == ERR_FORMAT)
            say_bad(it, e->msg, bad);
        else
            TRY(rc);
    }
    return 0;
}

int lines_read(char *const *files, int n, line_seen *seen, void *to, uint64_t *bad, struct err *e)
{
    struct feed f = {.lines = {.paths = files, .n_paths = n}};
    struct feed_block b = {0};
    int rc = 0;

    while (rc == 0 && n && (rc = feed_fill(&f, &b, e)) == 0 && b.n) {
        rc = read_block(&b, seen, to, bad, e);
        log_progress("%.1f MB read", (double)lines_consumed(&f.lines) / 1e6);
    }
    feed_close(&f);
    block_free(&b);
    return rc;
}

bool line_may_be(struct span line, const struct name_table *ids)
{
    static const char start[] = "{\"id\":\"";
    const char *p = line.p + sizeof start - 1, *end;
    size_t number;

    if (line.n < sizeof start || memcmp(line.p, start, sizeof start - 1) != 0)
        return true;
    end = memchr(p, '"', line.n - (sizeof start - 1));
    if (!end || memchr(p, '\\', (size_t)(end - p)))
        return true;
    return name_table_find(ids, (struct span){p, (size_t)(end - p)}, &number);
}

/* ---- for a terminal ---- */

static bool is_visible(uint32_t c)
{
    return c >= 0x20 && !(c >= 0x7F && c < 0xA0) && c != 0x61C && !(c >= 0x200B && c <= 0x200F) &&
           !(c >= 0x2028 && c <= 0x202E) && !(c >= 0x2060 && c <= 0x206F) && c != 0xFEFF;
}

int put_visible(struct buf *b, struct span s, size_t most)
{
    const char *p = s.p, *end = s.n ? s.p + s.n : s.p;

    while (p < end && !(most && (size_t)(p - s.p) >= most)) {
        uint32_t c;
        int n = utf8_next(p, end, &c);

        if (is_visible(c))
            TRY(buf_put(b, p, (size_t)n));
        else
            TRY(buf_printf(b, "\\u%04x", (unsigned)c));
        p += n;
    }
    return p < end ? buf_printf(b, "... (%zu bytes)", s.n) : 0;
}
