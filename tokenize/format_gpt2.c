/* vocab.json + merges.txt (encoder.json + vocab.bpe). */
#include "base/json_shim.h"
#include "base/node.h"
#include "tokenize/model.h"

/* "left right" from p on, all characters standing for bytes and a newline behind; NULL: it is not so or too long. */
static const char *read_simple_line(const char *p, const char *end, struct merge_batch *b)
{
    char *out = b->line[b->n].bytes;
    size_t n = 0, left = 0;

    for (; p < end && *p != '\n'; n++) {
        uint8_t c = (uint8_t)*p++;
        int byte;
        if (c == ' ' && n && !left) {
            left = n--;
            continue;
        }
        if (c >= 0x80 && (p == end || (c & 0xE0) != 0xC0 || (*p & 0xC0) != 0x80))
            return NULL;
        byte = c < 0x80 ? format_byte_of(c) : c < 0xC2 ? -1 : format_byte_of((uint32_t)(c & 0x1F) << 6 | (*p++ & 0x3F));
        if (byte < 0 || n == MERGE_ROOM)
            return NULL;
        out[n] = (char)byte;
    }
    if (p == end || !left || left == n)
        return NULL;
    b->line[b->n].left = (uint8_t)left;
    b->line[b->n].n = (uint8_t)n;
    return p + 1;
}

/* A line of any kind: 1, its two tokens, which are in `parts`; 0: it is none. */
static int read_line(struct span text, long line, struct buf *parts, struct span *left, struct span *right, struct err *e)
{
    const char *gap;
    size_t cut;

    if (text.n && text.p[text.n - 1] == '\r')
        text.n--;
    if (text.n == 0 || (line == 1 && text.n > 8 && memcmp(text.p, "#version", 8) == 0))
        return 0;
    gap = memchr(text.p, ' ', text.n);
    cut = gap ? (size_t)(gap - text.p) : 0;
    if (!cut || cut == text.n - 1 || memchr(gap + 1, ' ', text.n - cut - 1))
        return err_set(e, ERR_FORMAT, "line %ld is not two tokens with a space between", line);
    buf_clear(parts);
    if (format_unmap_bytes((struct span){text.p, cut}, parts) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    text = (struct span){gap + 1, text.n - cut - 1};
    cut = parts->n;
    if (format_unmap_bytes(text, parts) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for merges");
    *left = (struct span){parts->p, cut};
    *right = (struct span){parts->p + cut, parts->n - cut};
    return 1;
}

/* The line from p on, without its end. */
static struct span line_at(const char *p, const char *end)
{
    const char *eol = memchr(p, '\n', (size_t)(end - p));

    return (struct span){p, (size_t)((eol ? eol : end) - p)};
}

/* Merges that are looked for when they are needed (ranks_later.h): 1; 0: they are not such, or something is wrong. */
static int read_later(struct tokenizer *t, struct span text, struct err *e)
{
    const char *p = text.p, *end = text.p + text.n;
    struct merge_notes notes = {0};
    struct buf parts = {0};
    int rc = 1;

    for (long line = 1; p < end && rc > 0; line++) {
        struct span s = line_at(p, end), left, right;
        if ((rc = read_line(s, line, &parts, &left, &right, e)) > 0)
            rc = merge_notes_put(&notes, t, left, right, e);
        else if (rc == 0)
            rc = 1;
        p = s.p + s.n < end ? s.p + s.n + 1 : end;
    }
    if (rc > 0)
        rc = merge_notes_end(&notes, t, e);
    merge_notes_free(&notes);
    buf_free(&parts);
    return rc == ERR_FORMAT ? 0 : rc;
}

/* Lines "left right"; the first may be "#version: 0.2". */
static int read_merges(struct tokenizer *t, struct span text, struct buf *scratch, struct err *e)
{
    const char *p = text.p, *end = text.p + text.n;
    struct merge_batch b = {.n = 0};
    struct buf parts = {0};
    uint32_t rank = 0;
    int rc;

    TRY(rc = read_later(t, text, e));
    if (rc > 0)
        return 0;
    for (long line = 1; p < end && rc == 0; line++) {
        const char *next = line > 1 ? read_simple_line(p, end, &b) : NULL;
        struct span s, left, right;
        if (next) {
            rc = merge_batch_next(t, &b, rank++, scratch, e);
            p = next;
            continue;
        }
        s = line_at(p, end);
        rc = merge_batch_add(t, &b, scratch, e);
        if (rc == 0 && (rc = read_line(s, line, &parts, &left, &right, e)) > 0)
            rc = format_add_merge(t, left, right, 0, rank++, scratch, e);
        p = s.p + s.n < end ? s.p + s.n + 1 : end;
    }
    if (rc == 0)
        rc = merge_batch_add(t, &b, scratch, e);
    buf_free(&parts);
    return rc;
}

static int read_vocab(struct tokenizer *t, struct span vocab, struct err *e)
{
    struct json_scanner *s = json_scanner_new();
    struct arena a = {0};
    struct node *root;
    int rc = s ? node_parse_json_rows(&a, s, vocab, NULL, &root, e) : err_set(e, ERR_NOMEM, "out of memory for a vocabulary");

    if (rc == 0 && (rc = format_read_vocab(t, root, e)) == ERR_FORMAT && root->type == NODE_ROWS) {
        vocab_free(&t->vocab);
        rc = node_parse_json(&a, vocab, &root, e);
        rc = rc < 0 ? rc : format_read_vocab(t, root, e);
    }
    json_scanner_free(s);
    arena_free(&a);
    return rc;
}

int format_read_gpt2(struct tokenizer *t, const char *vocab_name, struct span vocab, const char *merges_name,
                     struct span merges, const char *pattern, struct err *e)
{
    struct buf scratch = {0};
    int64_t eod;
    int rc = read_vocab(t, vocab, e);

    t->format = "vocab and merges (GPT-2)";
    if (rc == 0)
        rc = bpe_set_bytes(&t->bpe, &t->vocab, e);
    if (rc < 0) {
        err_wrap(e, "'%s'", vocab_name);
    } else if ((rc = read_merges(t, merges, &scratch, e)) < 0) {
        err_wrap(e, "'%s'", merges_name);
    } else {
        rc = split_find(&t->split, pattern ? pattern : "gpt2", e);
        eod = vocab_find(&t->vocab, span_of("<|endoftext|>"));
        if (rc == 0 && eod >= 0)
            rc = format_add_token(t, &(struct added_token){.text = span_of("<|endoftext|>"), .id = (uint32_t)eod,
                                                           .special = true}, e);
    }
    buf_free(&scratch);
    return rc;
}
