#include "curate/archive/http.h"

#include <stdlib.h>
#include <strings.h>

#include <brotli/decode.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#include "base/ascii.h"

enum { STEP = 64 << 10, CHUNK_LINE_MAX = 4096 };

struct http_decoder {
    z_stream z;
    bool z_open;
    ZSTD_DCtx *zstd;
    struct buf out[2]; /* the last coding's output and the next one's */
};

/* ---- heads ---- */

static struct span trim(struct span s)
{
    while (s.n && ascii_is_space(s.p[0]))
        s.p++, s.n--;
    while (s.n && ascii_is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Splits at commas, passes over empty pieces.  False at the end. */
static bool next_token(struct span *list, struct span *token)
{
    do {
        const char *comma = list->n ? memchr(list->p, ',', list->n) : NULL;
        size_t n = comma ? (size_t)(comma - list->p) : list->n;
        if (list->n == 0)
            return false;
        *token = trim((struct span){list->p, n});
        n += comma != NULL;
        list->p += n;
        list->n -= n;
    } while (token->n == 0);
    return true;
}

static void add_codings(struct http_head *h, struct span list)
{
    struct span t;

    while (next_token(&list, &t)) {
        if (span_is_nocase(t, "chunked"))
            h->chunked = true;
        else if (!span_is_nocase(t, "identity") && h->n_codings < HTTP_CODINGS)
            h->coding[h->n_codings++] = t;
    }
}

/* The status of "HTTP/1.1 200 OK"; 0 if the line is none. */
static int parse_status(struct span line)
{
    const char *p = line.p, *end = line.p + line.n;
    int status = 0, digits = 0;

    if (line.n < 8 || strncasecmp(p, "HTTP/", 5) != 0)
        return 0;
    for (p += 5; p < end && *p != ' ' && *p != '\t'; p++)
        ;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    for (; p < end && *p >= '0' && *p <= '9' && digits < 3; p++, digits++)
        status = status * 10 + (*p - '0');
    return digits == 3 ? status : 0;
}

/* One line from p, with its newline; *line without it.  Returns what follows. */
static const char *take_line(const char *p, const char *end, struct span *line)
{
    const char *nl = memchr(p, '\n', (size_t)(end - p));

    *line = (struct span){p, (size_t)((nl ? nl : end) - p)};
    if (line->n && line->p[line->n - 1] == '\r')
        line->n--;
    return nl ? nl + 1 : end;
}

/* One field from p on: its name and value, both empty for a line that is none.  Returns what follows; *last: it was the
 * empty line that ends the head. */
static const char *take_field(const char *p, const char *end, struct span *name, struct span *value, bool *last)
{
    const char *colon;
    struct span line, rest;

    p = take_line(p, end, &line);
    *last = line.n == 0;
    *name = *value = (struct span){p, 0};
    if (*last)
        return p;
    while (p < end && (*p == ' ' || *p == '\t')) { /* folded */
        p = take_line(p, end, &rest);
        line.n = (size_t)(rest.p + rest.n - line.p);
    }
    colon = memchr(line.p, ':', line.n);
    if (!colon)
        return p;
    *name = trim((struct span){line.p, (size_t)(colon - line.p)});
    *value = trim((struct span){colon + 1, (size_t)(line.p + line.n - colon - 1)});
    return p;
}

/* One head at the block's start: 0 if there is none. */
static size_t parse_one(struct span block, struct http_head *h)
{
    const char *p = block.p, *end = block.n ? p + block.n : p;
    struct span name, value, transfer = {0};
    bool last = false;

    *h = (struct http_head){0};
    if (block.n == 0)
        return 0;
    p = take_line(p, end, &value);
    h->status = parse_status(value);
    if (h->status == 0)
        return 0;
    h->start = (size_t)(p - block.p);
    while (p < end && !last) {
        p = take_field(p, end, &name, &value, &last);
        if (span_is_nocase(name, "Content-Type") && !h->mime.n)
            h->mime = value;
        else if (span_is_nocase(name, "Content-Encoding"))
            add_codings(h, value);
        else if (span_is_nocase(name, "Transfer-Encoding"))
            transfer = value;
    }
    add_codings(h, transfer); /* they were applied last */
    h->length = (size_t)(p - block.p);
    return h->length;
}

bool http_field(struct span block, const struct http_head *h, const char *name, size_t *at, struct span *value)
{
    const char *end = block.p + h->length, *p = block.p + (*at ? *at : h->start);
    struct span this;
    bool last = false;

    while (h->status && p < end && !last) {
        p = take_field(p, end, &this, value, &last);
        if (!last && span_is_nocase(this, name)) {
            *at = (size_t)(p - block.p);
            return true;
        }
    }
    return false;
}

struct span http_link(struct span value, const char *rel)
{
    const char *p = value.p, *end = p + value.n;

    while (p < end && (p = memchr(p, '<', (size_t)(end - p)))) {
        const char *close = memchr(p, '>', (size_t)(end - p)), *next;
        struct span target, rels;
        if (!close)
            break;
        target = trim((struct span){p + 1, (size_t)(close - p - 1)});
        next = memchr(close, '<', (size_t)(end - close));
        next = next ? next : end;
        while (next > close && strchr(" ,", next[-1]))
            next--;
        rels = http_parameter((struct span){close, (size_t)(next - close)}, "rel");
        for (p = close + 1; rels.n;) { /* words of rel="next canonical" */
            const char *gap = memchr(rels.p, ' ', rels.n);
            struct span word = {rels.p, gap ? (size_t)(gap - rels.p) : rels.n};
            if (span_is_nocase(word, rel))
                return target;
            rels.p += word.n + (gap != NULL);
            rels.n -= word.n + (gap != NULL);
        }
    }
    return (struct span){NULL, 0};
}

void http_parse_head(struct span block, struct http_head *h)
{
    struct http_head next;
    size_t n = parse_one(block, h);

    while (h->status >= 100 && h->status < 200) {
        struct span rest = {block.p + n, block.n - n};
        size_t k = parse_one(rest, &next);
        if (k == 0)
            return;
        *h = next;
        h->start += n;
        h->length = n += k;
    }
}

void http_move_head(struct http_head *h, struct span block, const char *to)
{
    if (h->mime.p)
        h->mime.p = to + (h->mime.p - block.p);
    for (int i = 0; i < h->n_codings; i++)
        h->coding[i].p = to + (h->coding[i].p - block.p);
}

void http_media_type(struct span mime, char *out, size_t size)
{
    size_t n = 0;

    mime = trim(mime);
    while (n < mime.n && n + 1 < size && mime.p[n] != ';' && mime.p[n] != ',' && !ascii_is_space(mime.p[n])) {
        char c = mime.p[n];
        out[n++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    out[n] = '\0';
    if (!strchr(out, '/'))
        out[0] = '\0';
}

struct span http_parameter(struct span mime, const char *name)
{
    struct span none = {0};
    const char *p = mime.p, *end = mime.n ? mime.p + mime.n : mime.p;

    while (p < end) {
        const char *semi = memchr(p, ';', (size_t)(end - p)), *eq;
        struct span value;
        if (!semi)
            return none;
        p = semi + 1;
        semi = memchr(p, ';', (size_t)(end - p));
        eq = memchr(p, '=', (size_t)((semi ? semi : end) - p));
        if (!eq || !span_is_nocase(trim((struct span){p, (size_t)(eq - p)}), name))
            continue;
        value = trim((struct span){eq + 1, (size_t)((semi ? semi : end) - eq - 1)});
        while (value.n && (value.p[0] == '"' || value.p[0] == '\''))
            value.p++, value.n--;
        while (value.n && (value.p[value.n - 1] == '"' || value.p[value.n - 1] == '\''))
            value.n--;
        return trim(value);
    }
    return none;
}

/* ---- chunks ---- */

/* Reads a chunk's size line at p.  Returns what follows it, or NULL if it is none. */
static const char *chunk_size(const char *p, const char *end, size_t *size)
{
    size_t n = 0;
    int digits = 0;

    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    for (; p < end; p++, digits++) {
        int v = ascii_hex(*p);

        if (v < 0)
            break;
        if (n > SIZE_MAX >> 5)
            return NULL;
        n = n << 4 | (size_t)v;
    }
    if (digits == 0)
        return NULL;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (p < end && *p == ';') { /* an extension */
        const char *nl = memchr(p, '\n', end - p < CHUNK_LINE_MAX ? (size_t)(end - p) : CHUNK_LINE_MAX);
        if (!nl)
            return NULL;
        p = nl;
    }
    if (p < end && *p == '\r')
        p++;
    if (p < end && *p != '\n')
        return NULL;
    *size = n;
    return p < end ? p + 1 : p;
}

/* Undoes chunked into out.  False: the body is not chunked. */
static int undo_chunks(struct span body, struct buf *out, const char **fault)
{
    const char *p = body.p, *end = p + body.n;

    for (bool first = true;; first = false) {
        size_t n;
        const char *data = chunk_size(p, end, &n);
        if (!data && first && body.n) {
            *fault = "the body is not chunked as its head says";
            return buf_put_span(out, body);
        }
        if (!data || (n && data == end)) {
            *fault = "the chunked body is cut short or damaged";
            return 0;
        }
        if (n == 0)
            return 0;
        p = data;
        if (n > (size_t)(end - p)) {
            *fault = "the chunked body is cut short or damaged";
            n = (size_t)(end - p);
        }
        TRY(buf_put(out, p, n));
        p += n;
        if (p < end && *p == '\r')
            p++;
        if (p < end && *p == '\n')
            p++;
    }
}

/* ---- content codings: what a decoder says of its input ---- */

enum outcome { WHOLE, CUT, DAMAGED };

/* One deflate stream in a wrapping; *used: bytes of it. */
static int inflate_one(struct http_decoder *d, struct span in, int wrapping, struct buf *out,
                       size_t *used, enum outcome *what)
{
    z_stream *z = &d->z;
    int r = d->z_open ? inflateReset2(z, wrapping) : inflateInit2(z, wrapping);

    if (r != Z_OK)
        return ERR_NOMEM;
    d->z_open = true;
    z->next_in = (const Bytef *)in.p;
    z->avail_in = (uInt)in.n; /* a block is shorter than 4 GiB */
    do {
        size_t room;
        int rc = buf_reserve(out, 1);
        if (rc < 0)
            return rc;
        (void)(buf_reserve(out, STEP) < 0); /* near the bound there is less */
        room = out->cap - out->n - 1;
        if (out->max && room > out->max - out->n)
            room = out->max - out->n;
        room = room < 1u << 30 ? room : 1u << 30;
        z->next_out = (Bytef *)out->p + out->n;
        z->avail_out = (uInt)room;
        r = inflate(z, Z_NO_FLUSH);
        out->n += room - z->avail_out;
        if (r == Z_MEM_ERROR)
            return ERR_NOMEM;
    } while (r == Z_OK && (z->avail_in || z->avail_out == 0));
    *used = in.n - z->avail_in;
    *what = r == Z_STREAM_END ? WHOLE : r == Z_OK || r == Z_BUF_ERROR ? CUT : DAMAGED;
    return 0;
}

static bool gzip_magic(struct span s)
{
    return s.n >= 3 && (unsigned char)s.p[0] == 0x1f && (unsigned char)s.p[1] == 0x8b && s.p[2] == 8;
}

/* All members; what stands behind the last is dropped. */
static int undo_gzip(struct http_decoder *d, struct span in, struct buf *out, enum outcome *what)
{
    *what = DAMAGED;
    while (gzip_magic(in)) {
        size_t used;
        TRY(inflate_one(d, in, 15 + 16, out, &used, what));
        if (*what != WHOLE)
            break;
        in.p += used;
        in.n -= used;
    }
    return 0;
}

/* "deflate" is a zlib stream by the letter of the standard, a raw one by some servers. */
static int undo_deflate(struct http_decoder *d, struct span in, struct buf *out, enum outcome *what)
{
    const unsigned char *p = (const unsigned char *)in.p;
    size_t used;

    *what = DAMAGED;
    if (in.n < 2)
        return 0;
    if (gzip_magic(in))
        return undo_gzip(d, in, out, what);
    if ((p[0] & 15) == 8 && (p[0] << 8 | p[1]) % 31 == 0) {
        TRY(inflate_one(d, in, 15, out, &used, what));
        if (*what != DAMAGED || out->n)
            return 0;
    }
    return inflate_one(d, in, -15, out, &used, what);
}

static int undo_brotli(struct span in, struct buf *out, enum outcome *what)
{
    BrotliDecoderState *b = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    const uint8_t *next = (const uint8_t *)in.p;
    size_t left = in.n;
    BrotliDecoderResult r;
    int rc = b ? 0 : ERR_NOMEM;

    while (rc == 0) {
        size_t room = 0;
        r = BrotliDecoderDecompressStream(b, &left, &next, &room, NULL, NULL);
        const uint8_t *p = BrotliDecoderTakeOutput(b, &room);
        rc = buf_put(out, p, room);
        if (r == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT || BrotliDecoderHasMoreOutput(b))
            continue;
        *what = r == BROTLI_DECODER_RESULT_SUCCESS ? WHOLE
              : r == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT ? CUT : DAMAGED;
        break;
    }
    BrotliDecoderDestroyInstance(b);
    return rc;
}

static int undo_zstd(struct http_decoder *d, struct span in, struct buf *out, enum outcome *what)
{
    ZSTD_inBuffer i = {in.p, in.n, 0};
    size_t r = 0;

    if (!d->zstd && !(d->zstd = ZSTD_createDCtx()))
        return ERR_NOMEM;
    ZSTD_DCtx_reset(d->zstd, ZSTD_reset_session_only);
    for (;;) {
        size_t before = i.pos;
        int rc = buf_reserve(out, 1);
        if (rc < 0)
            return rc;
        (void)(buf_reserve(out, STEP) < 0);
        size_t room = out->cap - out->n - 1;
        if (out->max && room > out->max - out->n)
            room = out->max - out->n;
        ZSTD_outBuffer o = {out->p + out->n, room, 0};
        r = ZSTD_decompressStream(d->zstd, &o, &i);
        out->n += o.pos;
        if (ZSTD_isError(r) || (i.pos == i.size && o.pos < o.size) || (i.pos == before && o.pos == 0))
            break;
    }
    *what = ZSTD_isError(r) ? DAMAGED : r == 0 ? WHOLE : CUT;
    return 0;
}

/* Whether the bytes look like text: then a decoder's failure means that the head lied. */
static bool looks_like_text(struct span s)
{
    size_t n = s.n < 512 ? s.n : 512;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 && !ascii_is_space((char)c) && c != '\f' && c != 0x1b)
            return false;
    }
    return true;
}

static int undo_coding(struct http_decoder *d, struct span name, struct span in, struct buf *out,
                       bool *as_is, const char **fault)
{
    enum outcome what = DAMAGED;

    *as_is = false;
    if (span_is_nocase(name, "gzip") || span_is_nocase(name, "x-gzip"))
        TRY(undo_gzip(d, in, out, &what));
    else if (span_is_nocase(name, "deflate"))
        TRY(undo_deflate(d, in, out, &what));
    else if (span_is_nocase(name, "br"))
        TRY(undo_brotli(in, out, &what));
    else if (span_is_nocase(name, "zstd"))
        TRY(undo_zstd(d, in, out, &what));
    else {
        *as_is = true;
        *fault = "unknown content coding";
        return 0;
    }
    if (what == WHOLE)
        return 0;
    if (what == DAMAGED && (out->n == 0 || looks_like_text(in))) {
        *as_is = true;
        *fault = "the body is not coded as its head says";
    } else {
        *fault = what == CUT ? "the coded body is cut short" : "the coded body is damaged";
    }
    return 0;
}

int http_decode(struct http_decoder *d, const struct http_head *h, struct span body, size_t max,
                struct span *entity, const char **fault, struct err *e)
{
    const char *what = NULL;
    struct span now = body;
    int rc = 0, side = 0;

    if (h->chunked) {
        d->out[side].max = body.n + 1; /* coded, it may be larger than its entity */
        buf_clear(&d->out[side]);
        rc = undo_chunks(body, &d->out[side], &what);
        now = buf_span(&d->out[side]);
    }
    for (int i = h->n_codings - 1; i >= 0 && rc == 0 && now.n; i--) {
        bool as_is;
        side = !side;
        d->out[side].max = max + 1; /* so that one of max bytes can be told from a longer one */
        buf_clear(&d->out[side]);
        rc = undo_coding(d, h->coding[i], now, &d->out[side], &as_is, &what);
        if (rc == 0 && !as_is)
            now = buf_span(&d->out[side]);
        else
            side = !side;
    }
    if (rc == 0 && now.n > max)
        rc = ERR_LIMIT;
    if (rc == ERR_LIMIT)
        return err_set(e, rc, "the page is larger than %zu bytes", max);
    if (rc < 0)
        return err_set(e, rc, "out of memory for a page");
    *entity = now;
    if (fault)
        *fault = what;
    return 0;
}

int http_decoder_new(struct http_decoder **d, struct err *e)
{
    *d = calloc(1, sizeof **d);
    return *d ? 0 : err_set(e, ERR_NOMEM, "out of memory for a decoder");
}

void http_decoder_free(struct http_decoder *d)
{
    if (!d)
        return;
    if (d->z_open)
        inflateEnd(&d->z);
    ZSTD_freeDCtx(d->zstd);
    buf_free(&d->out[0]);
    buf_free(&d->out[1]);
    free(d);
}
