#include "tokenize/corpus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/file_kind.h"

enum { BLOCK = 1 << 17, LINE_MAX_BYTES = 1 << 30 };

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a block of input");
}

static double bytes_between(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) : 0;
}

int corpus_cut_keys(char *list, const char *keys[CORPUS_MAX_KEYS])
{
    int n = 0;

    for (char *p = list; p;) {
        char *comma = strchr(p, ',');
        if (comma)
            *comma = '\0';
        if (!*p || n == CORPUS_MAX_KEYS)
            return 0;
        for (int k = 0; k < n; k++)
            if (strcmp(keys[k], p) == 0)
                return 0;
        keys[n++] = p;
        p = comma ? comma + 1 : NULL;
    }
    return n;
}

double corpus_size(char *const *paths, int n_paths, const struct corpus_range *range)
{
    double sum = 0;

    if (!paths)
        return NAN;
    for (int i = 0; i < n_paths; i++) {
        struct stat s;
        uint64_t size;
        int rc = strcmp(paths[i], "-") == 0 ? fstat(STDIN_FILENO, &s) : stat(paths[i], &s);
        if (rc < 0 || !S_ISREG(s.st_mode))
            return NAN;
        size = (uint64_t)s.st_size;
        sum += range ? bytes_between(range[i].from, range[i].to < size ? range[i].to : size) : (double)size;
    }
    return sum;
}

int corpus_open(struct corpus *c, char *const *paths, int n_paths, enum corpus_form form, const char *key,
                struct err *e)
{
    static char dash[] = "-";
    static char *const standard_input[] = {dash};

    *c = (struct corpus){.paths = n_paths ? paths : standard_input, .n_paths = n_paths ? n_paths : 1,
                         .form = form, .key = key};
    for (int i = 0; i < c->n_paths; i++) {
        struct file_in *in;
        int rc;
        if (strcmp(c->paths[i], "-") == 0)
            continue;
        TRY(file_open(&in, c->paths[i], e));
        rc = file_kind_check(in, e);
        file_close(in);
        TRY(rc);
    }
    return 0;
}

void corpus_close(struct corpus *c)
{
    if (c->in)
        file_close(c->in);
    c->in = NULL;
    buf_free(&c->rest);
}

void corpus_block_free(struct corpus_block *b)
{
    buf_free(&b->bytes);
    buf_free(&b->lines);
    buf_free(&b->faults);
}

static int add_line(struct corpus *c, struct corpus_block *b, struct span line, uint64_t offset, const char *fault,
                    struct err *e)
{
    struct corpus_line x = {c->paths[c->at], offset, line, c->plain, 0};

    if (fault) {
        x.why = (int)b->faults.n + 1;
        if (buf_put(&b->faults, fault, strlen(fault) + 1) < 0)
            return no_memory(e);
    }
    if (buf_put(&b->lines, &x, sizeof x) < 0)
        return no_memory(e);
    b->n++;
    return 0;
}

/* Reads up to BLOCK more.  c->ended at the end of the file; damage becomes a faulty line. */
static int read_more(struct corpus *c, struct corpus_block *b, struct err *e)
{
    ssize_t n;

    if (buf_reserve(&b->bytes, BLOCK + JSON_PADDING) < 0)
        return no_memory(e);
    n = file_read(c->in, b->bytes.p + b->bytes.n, BLOCK, e);
    if (n == ERR_FORMAT || n == ERR_LIMIT || n == ERR_UNSUPPORTED) {
        c->damaged = c->ended = true;
        c->damages++;
        return add_line(c, b, (struct span){NULL, 0}, file_tell(c->in), e->msg, e);
    }
    if (n < 0)
        return (int)n;
    b->bytes.n += (size_t)n;
    c->ended = n == 0;
    return 0;
}

/* JSON or plain text?  Needs the first bytes of the file; ERR_FORMAT: it is neither. */
static int find_form(struct corpus *c, const struct corpus_block *b, struct err *e)
{
    size_t i = 0, head = b->bytes.n < FILE_KIND_BYTES ? b->bytes.n : FILE_KIND_BYTES;

    if (c->offset == 0)
        TRY(file_kind_refuse(file_name(c->in), buf_span(&b->bytes), e));
    while (i < b->bytes.n && memchr(" \t\r\n", b->bytes.p[i], 4))
        i++;
    c->plain = c->form == CORPUS_AUTO && i < b->bytes.n && b->bytes.p[i] != '{' && b->bytes.p[i] != '"';
    c->started = true;
    if (c->plain && head && memchr(b->bytes.p, '\0', head))
        return err_set(e, ERR_FORMAT, "'%s' holds binary data: neither JSON lines nor text", file_name(c->in));
    return 0;
}

static bool is_blank(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!memchr(" \t\r", s.p[i], 3))
            return false;
    return true;
}

/* Cuts b->bytes into lines; what is unfinished waits in c->rest. */
static int cut_lines(struct corpus *c, struct corpus_block *b, struct err *e)
{
    const char *p = b->bytes.p, *end = p + b->bytes.n;

    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p)), *q = nl ? nl : end;
        struct span line = {p, (size_t)(q - p)};
        if (c->offset + (uint64_t)(p - b->bytes.p) >= c->to) {
            c->ended = true;
            c->damaged = false;
            end = p;
            break;
        }
        if (!nl && !c->ended)
            break;
        TRY(failure_find(line, e));
        if (c->plain)
            line.n += nl != NULL;
        if (c->plain || !is_blank(line))
            TRY(add_line(c, b, line, c->offset + (uint64_t)(p - b->bytes.p), NULL, e));
        p = nl ? nl + 1 : end;
    }
    if (p < end && buf_put(&c->rest, p, (size_t)(end - p)) < 0)
        return no_memory(e);
    c->offset += (uint64_t)(p - b->bytes.p);
    return 0;
}

/* Passes over a line that is longer than the bound, which fills b. */
static int skip_long_line(struct corpus *c, struct corpus_block *b, struct err *e)
{
    uint64_t start = c->offset;
    char why[80];

    snprintf(why, sizeof why, "the line is longer than %d bytes", LINE_MAX_BYTES);
    while (!c->ended) {
        const char *nl = memchr(b->bytes.p, '\n', b->bytes.n);
        if (nl) {
            size_t used = (size_t)(nl + 1 - b->bytes.p);
            c->offset += used;
            if (buf_put(&c->rest, nl + 1, b->bytes.n - used) < 0)
                return no_memory(e);
            break;
        }
        c->offset += b->bytes.n;
        buf_free(&b->bytes);
        TRY(read_more(c, b, e));
    }
    buf_free(&b->bytes);
    return add_line(c, b, (struct span){NULL, 0}, start, why, e);
}

static int open_file(struct corpus *c, struct err *e)
{
    c->offset = c->damages = 0;
    c->to = c->range ? c->range[c->at].to : UINT64_MAX;
    c->started = c->ended = c->damaged = false;
    TRY(file_open(&c->in, c->paths[c->at], e));
    file_set_threads(c->in, c->threads > 1 ? c->threads : 1);
    return 0;
}

/* Opens the next file and goes to the first line of its range. */
static int begin_file(struct corpus *c, struct err *e)
{
    char byte = 0;
    ssize_t n;

    TRY(open_file(c, e));
    if (!c->range || !c->range[c->at].from)
        return 1;
    c->offset = c->range[c->at].from - 1; /* a line may end just before the range */
    n = file_seek(c->in, c->offset, e);
    if (n == 0)
        return err_set(e, ERR_ARG, "'%s' is no plain file: no part of it can be taken", c->paths[c->at]);
    for (; n > 0 && byte != '\n'; c->offset += n > 0)
        n = file_read(c->in, &byte, 1, e);
    return n < 0 ? (int)n : 1;
}

/* Reads on to a place; a damage that was met before it is passed over. */
static int read_up_to(struct corpus *c, const struct corpus_place *p, struct err *e)
{
    char *scratch = malloc(BLOCK);
    int rc = scratch ? 0 : no_memory(e);

    while (rc == 0 && (c->damages < p->damages || file_tell(c->in) < p->offset)) {
        uint64_t left = p->offset - file_tell(c->in);
        ssize_t n;
        if (c->damaged && (rc = file_skip_member(c->in, e)) <= 0)
            break;
        c->damaged = false;
        rc = 0;
        n = file_read(c->in, scratch, left == 0 ? 1 : left < BLOCK ? (size_t)left : BLOCK, e);
        if (n == ERR_FORMAT || n == ERR_LIMIT || n == ERR_UNSUPPORTED) {
            c->damages++;
            c->damaged = c->ended = true;
        } else if (n <= 0) {
            rc = n < 0 ? (int)n : 1;
        }
    }
    free(scratch);
    if (rc >= 0 && file_tell(c->in) != p->offset)
        rc = err_set(e, ERR_FORMAT, "'%s' is not the file that was read before", c->paths[c->at]);
    return rc < 0 ? rc : 0;
}

int corpus_goto(struct corpus *c, const struct corpus_place *p, struct err *e)
{
    int rc;

    if (p->at < 0 || p->at >= c->n_paths)
        return err_set(e, ERR_ARG, "there is no file %d", p->at);
    c->at = p->at;
    c->passed = corpus_size(c->paths, c->at, c->range);
    TRY(open_file(c, e));
    rc = p->damages ? 0 : file_seek(c->in, p->offset, e);
    if (rc == 0)
        rc = read_up_to(c, p, e);
    c->offset = p->offset;
    return rc < 0 ? rc : 0;
}

/* Bytes as stored that have been read of the file in hand. */
static double consumed(const struct corpus *c)
{
    uint64_t at = file_consumed(c->in);

    return bytes_between(c->range ? c->range[c->at].from : 0, at < c->to ? at : c->to);
}

static int next_file(struct corpus *c, struct err *e)
{
    if (c->in && c->damaged) {
        int rc = file_skip_member(c->in, e);
        if (rc < 0)
            return rc;
        c->damaged = false;
        if (rc == 1) {
            c->ended = false;
            c->offset = file_tell(c->in);
            return 1;
        }
    }
    if (c->in) {
        c->passed += consumed(c);
        file_close(c->in);
        c->in = NULL;
        c->at++;
    }
    if (c->at == c->n_paths)
        return 0;
    return begin_file(c, e);
}

static int fill(struct corpus *c, struct corpus_block *b, struct err *e)
{
    bool whole = false; /* there is a newline */
    size_t looked = 0;

    if (buf_put_span(&b->bytes, buf_span(&c->rest)) < 0)
        return no_memory(e);
    buf_clear(&c->rest);
    while (!c->ended && (b->bytes.n < BLOCK || !whole)) {
        TRY(read_more(c, b, e));
        whole = whole || memchr(b->bytes.p + looked, '\n', b->bytes.n - looked);
        looked = b->bytes.n;
        if (!whole && !c->ended && b->bytes.n > LINE_MAX_BYTES)
            return skip_long_line(c, b, e);
    }
    if (!c->started)
        TRY(find_form(c, b, e));
    return cut_lines(c, b, e);
}

int corpus_fill(struct corpus *c, struct corpus_block *b, struct err *e)
{
    b->n = 0;
    buf_clear(&b->lines);
    buf_clear(&b->faults);
    while (b->n == 0) {
        if (!c->in || c->ended) {
            int rc = next_file(c, e);
            if (rc <= 0)
                return rc;
        }
        buf_clear(&b->bytes);
        if (b->bytes.cap > 16 * (size_t)BLOCK) /* one long line: give it back */
            buf_free(&b->bytes);
        TRY(fill(c, b, e));
    }
    b->next = (struct corpus_place){c->at, c->offset, c->damages};
    b->consumed = c->passed + consumed(c);
    return 0;
}

int corpus_reader_init(struct corpus_reader *r, struct err *e)
{
    *r = (struct corpus_reader){.json = json_reader_new()};
    return r->json ? 0 : err_set(e, ERR_NOMEM, "out of memory for a JSON reader");
}

void corpus_reader_free(struct corpus_reader *r)
{
    json_reader_free(r->json);
    buf_free(&r->object);
    buf_free(&r->text);
    chat_text_free(&r->chat);
    buf_free(&r->id);
    buf_free(&r->url);
    buf_free(&r->source);
    arena_free(&r->chat_room);
}

/* The fields of the object that a line holds; a line that is a string is one under "". */
static int read_line(struct corpus_reader *r, struct span line, bool *string, const struct json_field **f,
                     struct err *e)
{
    line = json_without_mark(line);
    while (line.n && memchr(" \t\r", line.p[0], 3))
        line.p++, line.n--;
    *string = line.n && line.p[0] == '"';
    if (*string) { /* the JSON reader wants an object */
        buf_clear(&r->object);
        if (buf_puts(&r->object, "{\"\":") < 0 || buf_put_span(&r->object, line) < 0 ||
            buf_putc(&r->object, '}') < 0 || buf_reserve(&r->object, JSON_PADDING) < 0)
            return no_memory(e);
        line = buf_span(&r->object);
    }
    return json_read_object(r->json, line, f, e);
}

static int find_string(const struct json_field *f, int n, const char *key, const char *hint, struct span *raw, struct err *e)
{
    for (int i = 0; i < n; i++) {
        if (!span_is(f[i].key, key))
            continue;
        if (f[i].type != JSON_STRING)
            return err_set(e, ERR_FORMAT, "\"%s\" is no string", key);
        *raw = f[i].raw;
        return 0;
    }
    return json_lacks_text(f, n, key, hint, e);
}

/* The texts of a line of JSON, which r->text has room for. */
static int read_texts(struct span line, const char *const *keys, int n, const char *hint, struct corpus_reader *r,
                      struct span *texts, struct err *e)
{
    const struct json_field *f;
    bool string;
    int fields;

    if (json_read_texts(line, keys, n, r->text.p, texts))
        return 0;
    fields = read_line(r, line, &string, &f, e);
    TRY(fields);
    for (int k = 0; k < n; k++)
        TRY(find_string(f, fields, string ? "" : keys[k], hint, &texts[k], e));
    for (int k = 0; k < n; k++) {
        size_t from = r->text.n;
        TRY(json_unescape(texts[k], &r->text, e));
        texts[k] = (struct span){r->text.p + from, r->text.n - from};
    }
    return 0;
}

/* The texts of line i; hint: how to name other keys. */
static int line_texts(const struct corpus_block *b, size_t i, const char *const *keys, int n, const char *hint,
                      struct corpus_reader *r, struct span *texts, struct err *e)
{
    const struct corpus_line *x = corpus_line(b, i);

    if (x->why)
        return err_set(e, ERR_FORMAT, "%s", b->faults.p + x->why - 1);
    for (int k = 0; k < n; k++)
        texts[k] = x->line;
    if (x->plain)
        return 0;
    buf_clear(&r->text);
    if (buf_reserve(&r->text, x->line.n + JSON_PADDING) < 0)
        return no_memory(e);
    return read_texts(x->line, keys, n, hint, r, texts, e);
}

int corpus_texts(const struct corpus_block *b, size_t i, const char *const *keys, int n, struct corpus_reader *r,
                 struct span *texts, struct err *e)
{
    return line_texts(b, i, keys, n, "; --json-keys names another", r, texts, e);
}

int corpus_text(const struct corpus *c, const struct corpus_block *b, size_t i, struct corpus_reader *r,
                struct span *text, struct err *e)
{
    return line_texts(b, i, &c->key, 1, "; --json-key names another", r, text, e);
}

int corpus_json(const struct corpus_block *b, size_t i, struct span *line, struct err *e)
{
    const struct corpus_line *x = corpus_line(b, i);

    if (x->why)
        return err_set(e, ERR_FORMAT, "%s", b->faults.p + x->why - 1);
    *line = x->line;
    return x->plain ? err_set(e, ERR_FORMAT, "no JSON") : 0;
}
