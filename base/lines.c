#include "base/lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/failure.h"
#include "base/file_kind.h"
#include "base/json.h"

enum { READ_BYTES = 256 << 10 };

static size_t block_bytes(const struct lines_in *l)
{
    return l->block_bytes ? l->block_bytes : LINES_BLOCK;
}

static uint64_t max_line(const struct lines_in *l)
{
    return l->max_line ? l->max_line : LINES_MAX_LINE;
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a block of input");
}

static uint64_t bytes_between(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

/* ---- blocks ---- */

void line_block_reset(struct line_block *b)
{
    arena_reset(&b->faults);
    buf_clear_most(&b->bytes, 8 * (size_t)LINES_BLOCK);
    b->n = 0;
    b->size = 0;
}

void line_block_free(struct line_block *b)
{
    arena_free(&b->faults);
    buf_free(&b->bytes);
    free(b->line);
    *b = (struct line_block){0};
}

static int add_line(struct line_block *b, struct line x, struct err *e)
{
    if (mem_grow(&b->line, &b->cap, b->n + 1, sizeof *b->line) < 0)
        return no_memory(e);
    b->line[b->n++] = x;
    return 0;
}

static int add_fault(struct line_block *b, const char *file, uint64_t offset, const char *why, struct err *e)
{
    struct line x = {.file = file, .offset = offset, .fault = arena_dup(&b->faults, span_of(why)).p};

    return x.fault ? add_line(b, x, e) : no_memory(e);
}

/* ---- files ---- */

bool lines_is_pipe(const char *path)
{
    struct stat st;

    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

int lines_check(struct lines_in *l, uint64_t *size, struct err *e)
{
    static char dash[] = "-";
    static char *const standard_input[] = {dash};
    uint64_t sum = 0;
    bool known = true;

    if (l->n_paths == 0) {
        l->paths = standard_input;
        l->n_paths = 1;
    }
    for (int i = 0; i < l->n_paths; i++) {
        const struct lines_range *r = l->range ? &l->range[i] : NULL;
        struct file_in *in;
        uint64_t all;
        int rc;

        if (lines_is_pipe(l->paths[i])) { /* to open it is to read it */
            known = false;
            continue;
        }
        TRY(file_open(&in, l->paths[i], e));
        all = file_size(in);
        sum += r ? bytes_between(r->from, r->to < all ? r->to : all) : all;
        rc = file_kind_check(in, e);
        file_close(in);
        TRY(rc);
    }
    if (size)
        *size = known ? sum : 0;
    return 0;
}

static int open_file(struct lines_in *l, struct err *e)
{
    int at = l->now.at;

    l->now.offset = l->now.damages = 0;
    l->to = l->range ? l->range[at].to : UINT64_MAX;
    l->formed = l->ended = l->broken = false;
    buf_clear(&l->rest);
    TRY(file_open(&l->in, l->paths[at], e));
    snprintf(l->state, sizeof l->state, "%s", file_state(l->in));
    file_set_threads(l->in, l->threads > 1 ? l->threads : 1);
    file_set_columns(l->in, l->columns);
    return 0;
}

/* Opens the next file and goes to the first line of its range.  1, or 0 when there is none. */
static int begin_file(struct lines_in *l, struct err *e)
{
    uint64_t from;
    char byte = 0;
    ssize_t n;

    if (l->now.at == l->n_paths)
        return 0;
    TRY(open_file(l, e));
    from = l->range ? l->range[l->now.at].from : 0;
    if (!from)
        return 1;
    l->now.offset = from - 1; /* a line may end just before the range */
    n = file_seek(l->in, l->now.offset, e);
    if (n == 0)
        return err_set(e, ERR_ARG, "'%s' is no plain file: no part of it can be taken", l->paths[l->now.at]);
    for (; n > 0 && byte != '\n'; l->now.offset += n > 0)
        n = file_read(l->in, &byte, 1, e);
    return n < 0 ? (int)n : 1;
}

static uint64_t consumed_of_file(const struct lines_in *l)
{
    uint64_t at = file_consumed(l->in);

    return bytes_between(l->range ? l->range[l->now.at].from : 0, at < l->to ? at : l->to);
}

uint64_t lines_consumed(const struct lines_in *l)
{
    return l->passed + (l->in ? consumed_of_file(l) : 0);
}

void lines_close(struct lines_in *l)
{
    if (l->in)
        file_close(l->in);
    l->in = NULL;
    buf_free(&l->rest);
}

static int next_file(struct lines_in *l, struct err *e)
{
    if (l->in) {
        l->passed += consumed_of_file(l);
        file_close(l->in);
        l->in = NULL;
        l->now.at++;
    }
    return begin_file(l, e);
}

/* ---- reading ---- */

/* What file_read says of damage that file_skip_member passes. */
static bool is_damage(ssize_t rc)
{
    return rc == ERR_FORMAT || rc == ERR_LIMIT || rc == ERR_UNSUPPORTED;
}

/* Reads more into b->bytes, JSON_PADDING behind.  At the end l->ended, at damage l->broken is set. */
static int read_some(struct lines_in *l, struct line_block *b, struct err *e)
{
    bool first = file_tell(l->in) == 0;
    ssize_t n;

    if (buf_reserve(&b->bytes, READ_BYTES + JSON_PADDING) < 0)
        return no_memory(e);
    n = file_read(l->in, b->bytes.p + b->bytes.n, READ_BYTES, e);
    if (is_damage(n)) {
        l->damage = *e;
        l->broken = true;
        return 0;
    }
    if (n < 0)
        return (int)n;
    if (first)
        TRY(file_kind_refuse(file_name(l->in), (struct span){b->bytes.p + b->bytes.n, (size_t)n}, e));
    b->bytes.n += (size_t)n;
    l->ended = n == 0;
    return 0;
}

/* JSON or plain text?  By the bytes that a file begins with. */
static int find_form(struct lines_in *l, struct span start, struct err *e)
{
    size_t i = 0;

    while (i < start.n && memchr(" \t\r\n", start.p[i], 4))
        i++;
    l->plain = l->form == LINES_AUTO && i < start.n && start.p[i] != '{' && start.p[i] != '"';
    l->formed = true;
    if (l->plain && memchr(start.p, '\0', start.n < FILE_KIND_BYTES ? start.n : FILE_KIND_BYTES))
        return err_set(e, ERR_FORMAT, "'%s' holds binary data: neither JSON lines nor text", file_name(l->in));
    return 0;
}

/* Passes over the damage that stands behind the last whole line. */
static int pass_damage(struct lines_in *l, struct line_block *b, struct err *e)
{
    int rc = add_fault(b, NULL, 0, l->damage.msg, e);

    if (rc == 0)
        rc = file_skip_member(l->in, e);
    if (rc < 0)
        return rc;
    l->broken = false;
    l->ended = rc == 0;
    l->now.offset = file_tell(l->in);
    l->now.damages++;
    return 0;
}

static int add_too_long(struct lines_in *l, struct line_block *b, uint64_t offset, struct err *e)
{
    char why[80];

    snprintf(why, sizeof why, "the line is longer than %" PRIu64 " bytes", max_line(l));
    return add_fault(b, l->paths[l->now.at], offset, why, e);
}

/* Passes over a line above the bound, which fills b; what follows it goes to rest. */
static int skip_long_line(struct lines_in *l, struct line_block *b, struct err *e)
{
    uint64_t start = l->now.offset;
    char *nl = NULL;

    while (b->bytes.n && !(nl = memchr(b->bytes.p, '\n', b->bytes.n))) {
        l->now.offset += b->bytes.n;
        buf_clear(&b->bytes);
        TRY(read_some(l, b, e));
    }
    if (nl) {
        size_t used = (size_t)(nl + 1 - b->bytes.p);
        l->now.offset += used;
        if (buf_put(&l->rest, nl + 1, b->bytes.n - used) < 0)
            return no_memory(e);
    }
    buf_clear(&b->bytes);
    return add_too_long(l, b, start, e);
}

static bool is_blank(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!memchr(" \t\r", s.p[i], 3))
            return false;
    return true;
}

static int take_line(struct lines_in *l, struct line_block *b, struct span text, uint64_t offset, struct err *e)
{
    if (!l->plain && is_blank(text))
        return 0;
    TRY(failure_find(text, e));
    return add_line(b, (struct line){.file = l->paths[l->now.at], .offset = offset, .text = text, .plain = l->plain}, e);
}

/* Cuts b->bytes into lines, up to the first that ends at block_bytes or behind; what follows goes to rest, but for a line that
 * damage has cut.  One above the bound is a block by itself, as it is where it is not read at once. */
static int cut_lines(struct lines_in *l, struct line_block *b, struct err *e)
{
    const char *start = b->bytes.p, *p = start, *end = start + b->bytes.n;
    bool is_long = false;

    while (p < end && !is_long && (size_t)(p - start) < block_bytes(l)) {
        const char *nl = memchr(p, '\n', (size_t)(end - p)), *q = nl ? nl : end;
        uint64_t offset = l->now.offset + (uint64_t)(p - start);
        if (offset >= l->to || (!nl && !l->ended))
            break;
        is_long = (uint64_t)(q - p) > max_line(l);
        if (is_long && p > start)
            break;
        TRY(is_long ? add_too_long(l, b, offset, e)
                    : take_line(l, b, (struct span){p, (size_t)(q - p) + (l->plain && nl)}, offset, e));
        p = nl ? nl + 1 : end;
    }
    b->size = (uint64_t)(p - start);
    l->now.offset += b->size;
    if (p == end || (l->broken && !memchr(p, '\n', (size_t)(end - p)))) /* what there is the damage has cut */
        return 0;
    return buf_put(&l->rest, p, (size_t)(end - p)) < 0 ? no_memory(e) : 0;
}

/* A block of lines of the open file; may be empty at its end, or before damage. */
static int fill_from_file(struct lines_in *l, struct line_block *b, struct err *e)
{
    size_t looked = 0, whole = 0; /* bytes that were searched; those of whole lines */

    if (buf_reserve(&b->bytes, l->rest.n + JSON_PADDING) < 0 || buf_put_span(&b->bytes, buf_span(&l->rest)) < 0)
        return no_memory(e);
    buf_clear(&l->rest);
    for (;;) {
        const char *nl = b->bytes.n > looked ? memrchr(b->bytes.p + looked, '\n', b->bytes.n - looked) : NULL;

        whole = nl ? (size_t)(nl + 1 - b->bytes.p) : whole;
        looked = b->bytes.n;
        if (whole >= block_bytes(l) || l->ended || l->broken)
            break;
        if (b->bytes.n - whole > max_line(l)) {
            if (!whole)
                return skip_long_line(l, b, e);
            break;
        }
        TRY(read_some(l, b, e));
    }
    if (!l->formed && b->bytes.n) /* damage may stand before the first byte */
        TRY(find_form(l, buf_span(&b->bytes), e));
    return cut_lines(l, b, e);
}

int lines_fill(struct lines_in *l, struct line_block *b, struct err *e)
{
    line_block_reset(b);
    while (b->n == 0) {
        int rc = 1;

        if (l->in && l->broken && !l->rest.n)
            rc = pass_damage(l, b, e);
        else if (l->in && l->now.offset < l->to && (!l->ended || l->rest.n))
            rc = fill_from_file(l, b, e);
        else if ((rc = next_file(l, e)) == 0)
            break;
        if (rc < 0)
            return rc;
        if (b->n == 0)
            line_block_reset(b);
    }
    b->next = l->now;
    return 0;
}

/* ---- going on ---- */

/* Reads on in what was just opened to a place in it, over the damages before it. */
static int read_up_to(struct lines_in *l, const struct lines_place *p, struct err *e)
{
    char *scratch = malloc(READ_BYTES);
    int rc = scratch ? 1 : no_memory(e);

    while (rc > 0 && (l->now.damages < p->damages || file_tell(l->in) < p->offset)) {
        uint64_t left = bytes_between(file_tell(l->in), p->offset);
        ssize_t n = file_read(l->in, scratch, left == 0 ? 1 : left < READ_BYTES ? (size_t)left : READ_BYTES, e);

        if (is_damage(n)) {
            rc = file_skip_member(l->in, e);
            l->ended = rc == 0;
            l->now.damages++;
        } else if (n <= 0) {
            rc = (int)n;
        }
    }
    free(scratch);
    if (rc >= 0 && (file_tell(l->in) != p->offset || l->now.damages != p->damages))
        rc = err_set(e, ERR_FORMAT, "'%s' is not the file that was read before", l->paths[p->at]);
    return rc < 0 ? rc : 0;
}

int lines_goto(struct lines_in *l, const struct lines_place *p, struct err *e)
{
    int rc;

    if (p->at < 0 || p->at >= l->n_paths)
        return err_set(e, ERR_ARG, "there is no file %d", p->at);
    l->passed = 0;
    for (int i = 0; i < p->at; i++) { /* for progress alone: what is no file on disk counts nothing */
        const struct lines_range *r = l->range ? &l->range[i] : NULL;
        struct stat st;
        uint64_t all = stat(l->paths[i], &st) == 0 ? (uint64_t)st.st_size : 0;
        l->passed += r ? bytes_between(r->from, r->to < all ? r->to : all) : all;
    }
    l->now.at = p->at;
    TRY(open_file(l, e));
    rc = p->damages ? 0 : file_seek(l->in, p->offset, e);
    if (rc == 0)
        TRY(read_up_to(l, p, e));
    if (rc < 0)
        return rc;
    l->now.offset = p->offset;
    return 0;
}
