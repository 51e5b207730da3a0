#include "curate/mix/mix_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

struct split_out {
    struct file_out *file;
    uint64_t docs, expected; /* so far, and in all */
    int64_t shard;           /* the one that is open; -1: none yet */
    uint64_t shard_docs, shard_bytes;
};

struct mix_out {
    struct mix_out_conf c;
    struct split_out split[MIX_MAX_SPLITS];
    struct buf list;
};

/* ---- splits ---- */

static int parse_one(struct mix_splits *s, const char *text, size_t n, struct err *e)
{
    const char *equals = memchr(text, '=', n);
    size_t name = equals ? (size_t)(equals - text) : 0;
    char number[32], *end;
    double part;

    if (!name || name >= sizeof s->name[0] || n - name - 1 >= sizeof number)
        return err_set(e, ERR_ARG, "'%.*s' is no split: write name=fraction", (int)n, text);
    if (s->n == MIX_MAX_SPLITS)
        return err_set(e, ERR_ARG, "more than %d splits", MIX_MAX_SPLITS);
    memcpy(s->name[s->n], text, name);
    memcpy(number, equals + 1, n - name - 1);
    number[n - name - 1] = '\0';
    part = strtod(number, &end);
    if (end == number || *end || !(part > 0 && part <= 1))
        return err_set(e, ERR_ARG, "the fraction of '%.*s' must be above 0 and at most 1", (int)n, text);
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->name[i], s->name[s->n]) == 0)
            return err_set(e, ERR_ARG, "two splits are called '%s'", s->name[i]);
    s->until[s->n] = part + (s->n ? s->until[s->n - 1] : 0);
    s->n++;
    return 0;
}

int mix_splits_parse(struct mix_splits *s, const char *text, struct err *e)
{
    *s = (struct mix_splits){.n = 0};
    for (const char *p = text; p && *p;) {
        size_t n = strcspn(p, ",");
        TRY(parse_one(s, p, n, e));
        p += n + (p[n] == ',');
    }
    if (text && (!s->n || fabs(s->until[s->n - 1] - 1) > 1e-9))
        return err_set(e, ERR_ARG, "the fractions of '%s' do not add up to 1", text);
    s->n = s->n ? s->n : 1;
    s->until[s->n - 1] = 1;
    return 0;
}

int mix_splits_at(const struct mix_splits *s, double at)
{
    int i = 0;

    while (i < s->n - 1 && at >= s->until[i])
        i++;
    return i;
}

/* ---- names ---- */

/* The file of a split and shard (shard -1: a pattern as in the shell for all of them).  has: which of them the pattern names. */
static int make_name(const struct mix_out_conf *c, int split, int64_t shard, struct buf *b, bool has[2], struct err *e)
{
    const bool any = shard < 0;

    has[0] = has[1] = false;
    for (const char *p = c->pattern; *p; p++) {
        int width = 0, rc;
        if (*p != '%') {
            rc = buf_putc(b, *p);
        } else if (*++p == '%') {
            rc = buf_putc(b, '%');
        } else if (*p == 's') {
            has[0] = true;
            rc = buf_puts(b, c->splits->name[split]);
        } else {
            for (; *p >= '0' && *p <= '9' && width < 100; p++)
                width = 10 * width + (*p - '0');
            if (*p != 'd' || width > 20)
                return err_set(e, ERR_ARG, "in '%s' only %%s, %%d, %%05d and %%%% have a meaning", c->pattern);
            has[1] = true;
            rc = any ? buf_puts(b, "[0-9]*") : buf_printf(b, "%0*lld", width, (long long)shard);
        }
        if (rc < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a name");
    }
    return 0;
}

static bool is_sharded(const struct mix_out_conf *c)
{
    return c->shards > 0 || c->shard_size > 0;
}

static int check(const struct mix_out_conf *c, struct err *e)
{
    struct buf b = {0};
    bool has[2];
    int rc = make_name(c, 0, 0, &b, has, e);

    buf_free(&b);
    TRY(rc);
    if (c->shards > 0 && c->shard_size > 0)
        return err_set(e, ERR_ARG, "either a number of shards or their size");
    if (has[0] && c->splits->n == 1)
        return err_set(e, ERR_ARG, "'%s' names splits, and there are none", c->pattern);
    if (!has[0] && c->splits->n > 1)
        return err_set(e, ERR_ARG, "'%s' must have %%s where the split's name goes", c->pattern);
    if (has[1] && !is_sharded(c))
        return err_set(e, ERR_ARG, "'%s' numbers shards, and there are none", c->pattern);
    if (!has[1] && is_sharded(c))
        return err_set(e, ERR_ARG, "'%s' must have %%05d where the shard's number goes", c->pattern);
    return 0;
}

int mix_out_open(struct mix_out **out, const struct mix_out_conf *c, struct err *e)
{
    struct mix_out *o = calloc(1, sizeof *o);
    int rc;

    *out = o;
    if (!o)
        return err_set(e, ERR_NOMEM, "out of memory");
    o->c = *c;
    if (!o->c.pattern)
        o->c.pattern = "-";
    for (int i = 0; i < MIX_MAX_SPLITS; i++)
        o->split[i].shard = -1;
    rc = check(&o->c, e);
    if (rc < 0) {
        free(o);
        *out = NULL;
    }
    return rc;
}

int mix_out_names(const struct mix_out_conf *c, struct run_files *files, struct err *e)
{
    int64_t first = c->shard_size > 0 ? -1 : 0, end = c->shards > 0 ? c->shards : first + 1;
    struct buf b = {0};
    bool has[2];
    int rc = 0;

    if (!c->pattern || (c->splits->n == 1 && !is_sharded(c))) /* the name alone, as the option has it */
        return 0;
    for (int i = 0; i < c->splits->n; i++)
        for (int64_t k = first; k < end && rc == 0; k++) {
            buf_clear(&b);
            rc = make_name(c, i, k, &b, has, e);
            if (rc == 0)
                rc = (k < 0 ? run_writes_pattern : run_writes)(files, "--output", b.p, e);
        }
    buf_free(&b);
    return rc;
}

void mix_out_expect(struct mix_out *o, const uint64_t docs[MIX_MAX_SPLITS])
{
    for (int i = 0; i < MIX_MAX_SPLITS; i++)
        o->split[i].expected = docs[i];
}

/* ---- files ---- */

static int list_file(struct mix_out *o, const char *name, int i)
{
    struct split_out *s = &o->split[i];

    TRY(buf_puts(&o->list, o->list.n ? ",{" : "{"));
    TRY(json_put_key(&o->list, "file"));
    TRY(json_put_string(&o->list, span_of(name)));
    if (o->c.splits->n > 1) {
        TRY(json_put_key(&o->list, "split"));
        TRY(json_put_string(&o->list, span_of(o->c.splits->name[i])));
    }
    TRY(json_put_key(&o->list, "documents"));
    TRY(json_put_int(&o->list, (int64_t)s->shard_docs));
    TRY(json_put_key(&o->list, "bytes"));
    TRY(json_put_int(&o->list, (int64_t)s->shard_bytes));
    return buf_putc(&o->list, '}');
}

static int close_shard(struct mix_out *o, int i, struct err *e)
{
    struct file_out *f = o->split[i].file;

    if (!f)
        return 0;
    if (list_file(o, file_out_name(f), i) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the list of files");
    o->split[i].file = NULL;
    o->split[i].shard_docs = o->split[i].shard_bytes = 0;
    return file_commit(f, e);
}

static int open_shard(struct mix_out *o, int i, int64_t shard, struct err *e)
{
    struct buf b = {0};
    bool has[2];
    int rc = close_shard(o, i, e);

    if (rc == 0)
        rc = make_name(&o->c, i, shard, &b, has, e);
    if (rc == 0)
        rc = file_create(&o->split[i].file, b.p, 0, e);
    o->split[i].shard = shard;
    buf_free(&b);
    return rc;
}

/* Opens the shards up to this one. */
static int go_to(struct mix_out *o, int i, int64_t shard, struct err *e)
{
    while (o->split[i].shard < shard)
        TRY(open_shard(o, i, o->split[i].shard + 1, e));
    return 0;
}

int mix_out_put(struct mix_out *o, int i, struct span line, struct err *e)
{
    struct split_out *s = &o->split[i];
    int64_t shard = s->shard < 0 ? 0 : s->shard;

    if (o->c.shards > 0)
        shard = (int64_t)((unsigned __int128)s->docs * (uint64_t)o->c.shards / s->expected);
    else if (o->c.shard_size > 0 && s->shard_docs && s->shard_bytes + line.n > (uint64_t)o->c.shard_size)
        shard++;
    TRY(go_to(o, i, shard, e));
    s->docs++;
    s->shard_docs++;
    s->shard_bytes += line.n;
    return file_write(s->file, line.p, line.n, e);
}

/* Warns of the file that would be the shard after the last one: whoever takes all that the pattern names takes it too.  The
 * shards have their names by now, so nothing here is a failure. */
static void look_behind(const struct mix_out *o, int i)
{
    struct buf b = {0};
    struct err ignored;
    bool has[2];

    if (make_name(&o->c, i, o->split[i].shard + 1, &b, has, &ignored) == 0 && has[1] && access(b.p, F_OK) == 0)
        log_msg(LOG_WARN, "'%s' is of another run: this one has %lld shards, from 0", b.p, (long long)o->split[i].shard + 1);
    buf_free(&b);
}

int mix_out_finish(struct mix_out *o, struct err *e)
{
    for (int i = 0; i < o->c.splits->n; i++) {
        TRY(go_to(o, i, o->c.shards > 0 ? o->c.shards - 1 : 0, e));
        TRY(close_shard(o, i, e));
        look_behind(o, i);
    }
    return 0;
}

int mix_out_list(const struct mix_out *o, struct buf *json)
{
    TRY(buf_putc(json, '['));
    TRY(buf_put(json, o->list.p, o->list.n));
    return buf_putc(json, ']');
}

void mix_out_close(struct mix_out *o)
{
    if (!o)
        return;
    for (int i = 0; i < MIX_MAX_SPLITS; i++)
        file_abort(o->split[i].file);
    buf_free(&o->list);
    free(o);
}
