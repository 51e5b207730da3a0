/* quern tokenizer: train, encode, decode, chat, info, measure, verify. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/node.h"
#include "base/tool.h"
#include "base/utf8.h"
#include "tokenize/chat.h"
#include "tokenize/jinja.h"
#include "tokenize/line_text.h"
#include "tokenize/measure.h"
#include "tokenize/tokenizer.h"
#include "tokenize/train_conf.h"

static struct {
    const char *tokenizer, *against, *key, *columns, *chat, *chat_date, *by, *stats;
    struct opt_list measure;
    struct tokenizer_settings settings;
    bool jsonl, allow_special;
    int loss;
    struct train_conf train;
} o = {.key = "text", .chat = "auto", .by = "lang", .train = TRAIN_CONF_INIT};

enum { INPUT_MAX = INT32_MAX };

static int no_memory(const struct tool *t)
{
    struct err e;
    err_set(&e, ERR_NOMEM, "out of memory");
    return tool_fail(t, &e);
}

/* ---- encode ---- */

static void put_ids(struct buf *out, const uint32_t *ids, size_t n, const char *between)
{
    size_t gap = strlen(between);

    for (size_t i = 0; i < n; i++) {
        char digits[12];
        int at = sizeof digits;
        uint32_t v = ids[i];
        do
            digits[--at] = (char)('0' + v % 10);
        while (v /= 10);
        if (i)
            buf_put(out, between, gap);
        buf_put(out, digits + at, sizeof digits - (size_t)at);
    }
}

/* Writes to standard output what was put into text.  1: it takes no more, as tool_end() will say; ERR_NOMEM: a put failed. */
static int write_out(struct buf *text, struct err *e)
{
    int rc;

    if (text->failed)
        return err_set(e, text->failed, "out of memory for the output");
    rc = fwrite(text->p, 1, text->n, stdout) < text->n;
    buf_clear(text);
    return rc;
}

static void report_bad(const struct line *x, const struct err *e)
{
    log_skipped(x->file, x->offset, e->msg);
}

/* What makes lines of output of lines of input, and its own. */
struct by_line {
    int (*make)(struct by_line *x, const struct line *line, struct line_reader *r, struct buf *out, struct err *e);
    struct encoder *enc; /* encode */
    struct buf ids;
    struct chat *chat; /* chat */
    struct chat_text text;
};

/* Each line of the input to a line of output; what is no text, or one that it cannot be done with, is named and has none. */
static int each_line(const struct tool *t, struct by_line *x, char **paths, int n_paths, struct err *e)
{
    int code = EXIT_FINE, rc;
    struct lines_in in = LINES_OF_TEXTS(LINES_JSON, paths, n_paths);
    struct line_block b = {0};
    struct line_reader r = {0};
    struct buf out = {0};

    in.columns = o.columns;
    rc = lines_check(&in, NULL, e);
    if (rc == 0)
        rc = line_reader_init(&r, e);
    while (rc == 0 && (rc = lines_fill(&in, &b, e)) == 0 && b.n) {
        for (size_t i = 0; i < b.n && rc == 0; i++) {
            rc = x->make(x, &b.line[i], &r, &out, e);
            if (rc == ERR_FORMAT || rc == ERR_LIMIT) {
                report_bad(&b.line[i], e);
                code = EXIT_SOME_BAD;
                rc = 0;
            }
        }
        if (rc == 0)
            rc = write_out(&out, e);
    }
    lines_close(&in);
    line_block_free(&b);
    line_reader_free(&r);
    buf_free(&out);
    return rc < 0 ? tool_fail(t, e) : tool_end(t, code);
}

/* A text's ids, as a JSON array. */
static int encode_line(struct by_line *x, const struct line *line, struct line_reader *r, struct buf *out, struct err *e)
{
    struct span text;

    buf_clear(&x->ids);
    TRY(line_text(line, o.key, r, &text, e));
    TRY(encoder_encode(x->enc, text, o.allow_special ? ENCODER_SPECIAL : 0, 4, &x->ids, e));
    buf_putc(out, '[');
    put_ids(out, (const uint32_t *)(const void *)x->ids.p, x->ids.n / 4, ",");
    return buf_puts(out, "]\n") < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}

/* A conversation's text, and from which to which byte answers are: ["text", [from, to], ...]. */
static int chat_line(struct by_line *x, const struct line *line, struct line_reader *r, struct buf *out, struct err *e)
{
    const struct jinja_range *range;
    struct span json;

    TRY(line_json(line, &json, e));
    TRY(chat_render(x->chat, json, !o.loss, &r->chat_room, &x->text, e));
    range = (const struct jinja_range *)(const void *)x->text.answers.p;
    buf_putc(out, '[');
    json_put_string(out, buf_span(&x->text.text));
    for (size_t k = 0; k < x->text.answers.n / sizeof *range && !o.loss; k++)
        buf_printf(out, ",[%zu,%zu]", range[k].from, range[k].to);
    return buf_puts(out, "]\n") < 0 ? err_set(e, ERR_NOMEM, "out of memory") : 0;
}

static int chat(const struct tool *t, const struct tokenizer *tok, char **paths, int n_paths)
{
    struct by_line x = {.make = chat_line};
    struct err e;
    int code;

    (void)tok;
    if (chat_open(&x.chat, o.chat, o.tokenizer, o.chat_date, &e) < 0)
        return tool_fail(t, &e);
    code = each_line(t, &x, paths, n_paths, &e);
    chat_close(x.chat);
    chat_text_free(&x.text);
    return code;
}

static int encode(const struct tool *t, const struct tokenizer *tok, char **paths, int n_paths)
{
    struct encoder *enc = encoder_new(tok);
    struct buf text = {0}, ids = {0}, out = {0};
    int flags = o.allow_special ? ENCODER_SPECIAL : 0, code;
    struct err e;

    if (!enc)
        return no_memory(t);
    if (o.jsonl) {
        struct by_line x = {.make = encode_line, .enc = enc};

        code = each_line(t, &x, paths, n_paths, &e);
        buf_free(&x.ids);
    } else if (n_paths > 1) {
        code = tool_usage(t, "encode takes one file (or --jsonl)");
    } else if (file_read_all(n_paths ? paths[0] : "-", INPUT_MAX, &text, &e) < 0 ||
               encoder_encode(enc, buf_span(&text), flags, 4, &ids, &e) < 0) {
        code = tool_fail(t, &e);
    } else {
        put_ids(&out, (const uint32_t *)(const void *)ids.p, ids.n / 4, " ");
        buf_putc(&out, '\n');
        code = write_out(&out, &e) < 0 ? tool_fail(t, &e) : tool_end(t, EXIT_FINE);
    }
    if (encoder_specials_seen(enc))
        log_msg(LOG_INFO, "%" PRIu64 " special tokens in the text were encoded as plain text (--allow-special)",
                encoder_specials_seen(enc));
    encoder_free(enc);
    buf_free(&text);
    buf_free(&ids);
    buf_free(&out);
    return code;
}

/* ---- decode ---- */

/* Numbers with any of the characters of `between` around them, appended to ids. */
static int parse_ids(struct span s, const char *between, struct buf *ids, struct err *e)
{
    for (size_t i = 0; i < s.n;) {
        uint64_t v = 0;
        size_t begin = i;
        uint32_t id;
        if (strchr(between, s.p[i]) && s.p[i]) {
            i++;
            continue;
        }
        while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9' && v <= UINT32_MAX)
            v = v * 10 + (uint64_t)(s.p[i++] - '0');
        if (i == begin || v > UINT32_MAX)
            return err_set(e, ERR_FORMAT, "byte %zu is no part of an id", begin);
        id = (uint32_t)v;
        if (buf_put(ids, &id, sizeof id) < 0)
            return err_set(e, ERR_NOMEM, "out of memory");
    }
    return 0;
}

/* A line with the text as a JSON string, which is UTF-8: U+FFFD where the bytes are not. */
static int put_json_text(struct buf *out, struct span text)
{
    struct buf repaired = {0};
    int rc = utf8_valid(text) ? 0 : utf8_repair(text, &repaired);

    if (rc == 0)
        rc = json_put_string(out, repaired.n ? buf_span(&repaired) : text);
    buf_free(&repaired);
    return rc < 0 ? rc : buf_putc(out, '\n');
}

static int decode(const struct tool *t, const struct tokenizer *tok, char **paths, int n_paths)
{
    const char *path = n_paths ? paths[0] : "-";
    struct buf in = {0}, ids = {0}, text = {0}, out = {0};
    int code = EXIT_FINE, rc;
    struct err e;

    if (n_paths > 1)
        return tool_usage(t, "decode takes one file");
    rc = file_read_all(path, INPUT_MAX, &in, &e);
    for (size_t at = 0; rc == 0 && (at < in.n || (at == 0 && !o.jsonl));) {
        const char *nl = o.jsonl ? memchr(in.p + at, '\n', in.n - at) : NULL;
        struct span line = {in.p + at, (nl ? (size_t)(nl - in.p) : in.n) - at};
        buf_clear(&ids);
        buf_clear(&text);
        rc = parse_ids(line, o.jsonl ? " \t\r[]," : " \t\r\n", &ids, &e);
        if (rc == 0)
            rc = tokenizer_decode(tok, (const uint32_t *)(const void *)ids.p, ids.n / 4, &text, &e);
        if (rc == ERR_FORMAT && o.jsonl) {
            log_skipped(path, at, e.msg);
            code = EXIT_SOME_BAD;
            rc = 0;
        } else if (rc < 0) {
            err_wrap(&e, "'%s'", path);
        } else if (!o.jsonl) {
            buf_put_span(&out, buf_span(&text));
        } else if (put_json_text(&out, buf_span(&text)) < 0) {
            rc = err_set(&e, ERR_NOMEM, "out of memory");
        }
        at = nl ? (size_t)(nl + 1 - in.p) : in.n;
        if (!nl)
            break;
    }
    if (rc == 0)
        rc = write_out(&out, &e);
    buf_free(&in);
    buf_free(&ids);
    buf_free(&text);
    buf_free(&out);
    return rc < 0 ? tool_fail(t, &e) : tool_end(t, code);
}

/* ---- info, verify ---- */

static int info(const struct tool *t, const struct tokenizer *tok, char **paths, int n_paths)
{
    struct tokenizer_facts f;
    struct err e;
    int64_t eod = tokenizer_eod(tok);

    (void)paths, (void)n_paths;
    if (tokenizer_prepare(tok, &e) < 0)
        return tool_fail(t, &e);
    f = tokenizer_facts(tok);
    printf("format      %s\nvocabulary  %" PRIu32 " (%" PRIu32 " tokens, %" PRIu32 " of them added)\n"
           "merges      %" PRIu32 "\nnormalizer  %s\npattern     %s\n            %s\nunicode     %s\n",
           f.format, tokenizer_vocab_size(tok), f.tokens, f.added, f.merges, f.normalizer, f.pattern_name, f.pattern,
           tokenizer_unicode());
    if (eod >= 0) {
        struct span s = tokenizer_bytes(tok, (uint32_t)eod);
        printf("eod         %" PRId64 " %.*s (%s)\n", eod, (int)s.n, s.p, tokenizer_eod_from(tok));
    }
    if (f.sentencepiece)
        printf("ids         of SentencePiece %s\n", f.sentencepiece);
    printf("dataset     %s\n", tokenizer_vocab_size(tok) < 65500 ? "u16" : "i32");
    return tool_end(t, EXIT_FINE);
}

/* The ids of text against those wanted: 1 equal; 0 not, and the message says where: ids stand for the bytes from there on. */
static int compare(const struct tokenizer *tok, struct encoder *enc, struct span text, const struct buf *want,
                   struct buf *ids, struct err *e)
{
    const uint32_t *w = (const uint32_t *)(const void *)want->p, *g;
    size_t n = want->n / 4, m, i = 0;
    struct buf head = {0}, ours = {0}, theirs = {0};

    buf_clear(ids);
    TRY(encoder_encode(enc, text, o.allow_special ? ENCODER_SPECIAL : 0, 4, ids, e));
    g = (const uint32_t *)(const void *)ids->p;
    m = ids->n / 4;
    while (i < n && i < m && w[i] == g[i])
        i++;
    if (i == n && i == m)
        return 1;
    if (i)
        tokenizer_decode(tok, g, i, &head, NULL);
    put_ids(&ours, g + i, m - i < 8 ? m - i : 8, " ");
    put_ids(&theirs, w + i, n - i < 8 ? n - i : 8, " ");
    err_set(e, ERR_FORMAT, "id %zu differs (byte %zu as decoded): ours %.*s, theirs %.*s", i, head.n, (int)ours.n,
            ours.n ? ours.p : "", (int)theirs.n, theirs.n ? theirs.p : "");
    buf_free(&head);
    buf_free(&ours);
    buf_free(&theirs);
    return 0;
}

/* Lines of files, one after another. */
struct cursor {
    struct lines_in in;
    struct line_block b;
    size_t i;
    bool any; /* i is the line last given */
};

/* The next line: 1, 0 at the end, or an error. */
static int cursor_next(struct cursor *l, const struct line **x, struct err *e)
{
    if (l->any)
        l->i++;
    while (l->i >= l->b.n) {
        TRY(lines_fill(&l->in, &l->b, e));
        l->i = 0;
        if (!l->b.n)
            return 0;
    }
    l->any = true;
    *x = &l->b.line[l->i];
    return (*x)->fault ? err_set(e, ERR_FORMAT, "%s", (*x)->fault) : 1;
}

static void cursor_close(struct cursor *l)
{
    lines_close(&l->in);
    line_block_free(&l->b);
}

/* One line {"text", "ids"}: its text, and its ids appended. */
static int read_pair(struct arena *a, struct span line, struct span *text, struct buf *want, struct err *e)
{
    const struct node *t, *ids;
    struct node *n;

    TRY(node_parse_json(a, line, &n, e));
    t = node_get(n, "text");
    ids = node_get(n, "ids");
    if (!t || t->type != NODE_STR || !ids || ids->type != NODE_LIST)
        return err_set(e, ERR_FORMAT, "no \"text\" and \"ids\"");
    *text = t->str;
    for (const struct node *x = ids->child; x; x = x->next) {
        uint32_t id = x->type == NODE_INT && x->integer >= 0 ? (uint32_t)x->integer : UINT32_MAX;
        if (buf_put(want, &id, sizeof id) < 0)
            return err_set(e, ERR_NOMEM, "out of memory");
    }
    return 0;
}

/* Each document of `texts` against its line of ids, or (without `texts`) each line's text against its ids. */
static int verify_all(const struct tokenizer *tok, struct encoder *enc, struct cursor *texts, struct cursor *ids,
                      uint64_t counts[2], struct err *e)
{
    const struct line *x = NULL, *doc = NULL;
    struct line_reader r = {0};
    struct buf want = {0}, got = {0};
    struct arena a = {0};
    uint64_t number = 0;
    int rc = line_reader_init(&r, e), more = 0;

    while (rc >= 0 && (more = rc = cursor_next(ids, &x, e)) > 0) {
        struct span text = {NULL, 0};
        buf_clear(&want);
        arena_reset(&a);
        if (!texts) {
            rc = read_pair(&a, x->text, &text, &want, e);
        } else if ((rc = parse_ids(x->text, " \t\r\n[],", &want, e)) == 0) {
            rc = cursor_next(texts, &doc, e);
            rc = rc > 0 ? line_text(doc, o.key, &r, &text, e)
                 : rc ? rc : err_set(e, ERR_FORMAT, "there are more lines of ids than documents");
        }
        if (rc == 0)
            rc = compare(tok, enc, text, &want, &got, e);
        if (rc < 0)
            break;
        counts[rc]++;
        if (rc == 0 && counts[0] <= 10)
            log_msg(LOG_WARN, "'%s', document %" PRIu64 ", offset %" PRIu64 ": %s", x->file, number, x->offset, e->msg);
        number++;
    }
    if (rc < 0 && x && x->file)
        err_wrap(e, "'%s', offset %" PRIu64, x->file, x->offset);
    if (rc == 0 && more == 0 && texts && (rc = cursor_next(texts, &doc, e)) > 0)
        rc = err_set(e, ERR_FORMAT, "'%s' has a document without ids at offset %" PRIu64, doc->file, doc->offset);
    line_reader_free(&r);
    buf_free(&want);
    buf_free(&got);
    arena_free(&a);
    return rc;
}

static int verify(const struct tool *t, const struct tokenizer *tok, char **paths, int n_paths)
{
    struct encoder *enc = encoder_new(tok);
    struct cursor texts = {.in = LINES_OF_TEXTS(LINES_AUTO, paths, n_paths)}, ids = {0};
    uint64_t counts[2] = {0, 0};
    struct err e;
    char *path = (char *)(uintptr_t)o.against;
    int rc;

    ids.in = LINES_OF_TEXTS(n_paths ? LINES_AUTO : LINES_JSON, &path, 1);
    rc = lines_check(&ids.in, NULL, &e);
    if (rc == 0 && n_paths)
        rc = lines_check(&texts.in, NULL, &e);
    if (rc == 0 && !enc)
        rc = err_set(&e, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = verify_all(tok, enc, n_paths ? &texts : NULL, &ids, counts, &e);
    cursor_close(&ids);
    cursor_close(&texts);
    encoder_free(enc);
    if (rc < 0)
        return tool_fail(t, &e);
    printf("%" PRIu64 " texts have the same ids, %" PRIu64 " differ\n", counts[1], counts[0]);
    return tool_end(t, counts[0] ? EXIT_SOME_BAD : EXIT_FINE);
}

/* ---- measure ---- */

/* Measures texts: a table to `to`, and what --stats asks for.  The exit status, or an error. */
static int measure_texts(const struct tool *t, const struct tokenizer *tok, const char *const *paths, int n, FILE *to,
                         struct err *e)
{
    struct measure_options x = {.key = o.key, .columns = o.columns, .by = o.by,
                                .stats = o.stats, .threads = tool_jobs(t), .bad = report_bad};
    struct buf table = {0};
    uint64_t bad;
    int rc = measure_report(tok, paths, n, &x, &table, &bad, e);

    if (rc == 0)
        fwrite(table.p, 1, table.n, to);
    buf_free(&table);
    return rc < 0 ? rc : bad ? EXIT_SOME_BAD : EXIT_FINE;
}

static int measure(const struct tool *t, const struct tokenizer *tok, char **paths, int n_paths)
{
    struct err e;
    int rc = measure_texts(t, tok, (const char *const *)paths, n_paths, stdout, &e);

    return rc < 0 ? tool_fail(t, &e) : tool_end(t, rc);
}

/* ---- train ---- */

/* Measures the texts of --measure with what was made, to standard error. */
static int measure_made(const struct tool *t, const char *made, struct err *e)
{
    struct tokenizer *tok;
    int rc;

    if (o.train.ranks == made && !o.settings.pattern)
        o.settings.pattern = "gpt2";
    TRY(tokenizer_open_as(&tok, made, &o.settings, e));
    rc = measure_texts(t, tok, o.measure.v, o.measure.n, stderr, e);
    tokenizer_close(tok);
    return rc;
}

static int train(const struct tool *t, char **paths, int n_paths)
{
    struct train_options x = train_conf_options(&o.train);
    const char *made = x.output ? x.output : x.folder ? x.folder : x.ranks ? x.ranks : x.spm;
    struct train_result r;
    struct err e;
    int rc = EXIT_FINE;

    x.pattern = o.settings.pattern;
    x.key = o.key;
    x.columns = o.columns;
    x.threads = tool_jobs(t);
    x.bad = report_bad;
    if (!made)
        return tool_usage(t, "train needs -o, --vocab-merges, --ranks or --sentencepiece-model");
    if (train_conf_account(&o.train, tool_files(), &e) < 0 || train_tokenizer(paths, n_paths, &x, &r, &e) < 0)
        return tool_fail(t, &e);
    log_msg(LOG_INFO, "%" PRIu64 " texts, %" PRIu64 " bytes, %" PRIu64 " distinct words: %" PRIu32 " tokens, %" PRIu32
                      " merges in '%s'",
            r.texts, r.bytes, r.words, r.tokens, r.merges, made);
    if (r.tokens < x.vocab_size)
        log_msg(LOG_WARN, "the corpus has no more to make tokens of: %" PRIu32 ", not %" PRIu32, r.tokens,
                x.vocab_size);
    if (r.bad)
        log_msg(LOG_WARN, "%" PRIu64 " lines were bad and were skipped", r.bad);
    if (o.measure.n && (rc = measure_made(t, made, &e)) < 0)
        return tool_fail(t, &e);
    return tool_end(t, r.bad ? EXIT_SOME_BAD : rc);
}

/* What argv[1] asks for; n arguments are there. */
static int act(struct tool *t, char **argv, int n)
{
    static const struct {
        const char *name;
        int (*run)(const struct tool *t, const struct tokenizer *tok, char **paths, int n_paths);
    } actions[] = {{"encode", encode}, {"decode", decode}, {"info", info},
                   {"measure", measure}, {"verify", verify}, {"chat", chat}};
    struct tokenizer *tok;
    struct err e;
    size_t i = 0;
    int code;

    t->json_lines = o.jsonl;
    if (n && strcmp(argv[1], "train") == 0)
        return train(t, argv + 2, n - 1);
    while (n && i < sizeof actions / sizeof *actions && strcmp(argv[1], actions[i].name) != 0)
        i++;
    if (!n || i == sizeof actions / sizeof *actions)
        return tool_usage(t, "what to do? train, encode, decode, chat, info, measure or verify");
    if (!o.tokenizer && actions[i].run == info && n == 2)
        o.tokenizer = argv[2];
    if (!o.tokenizer)
        return tool_usage(t, "%s needs --tokenizer", argv[1]);
    if (actions[i].run == verify && !o.against)
        return tool_usage(t, "verify needs --against");
    if (tokenizer_open_as(&tok, o.tokenizer, &o.settings, &e) < 0)
        return tool_fail(t, &e);
    code = actions[i].run(t, tok, argv + 2, n - 1);
    tokenizer_close(tok);
    return code;
}

int main(int argc, char **argv)
{
    struct tool t = {
        .name = "tokenizer",
        .usage = "train|encode|decode|chat|info|measure|verify [options] [FILE...]",
        .operands = OPT_NAMES_INPUT,
        .action = true,
        .about = "train a tokenizer; encode and decode with it; look into it",
        .details =
            "train makes a byte-level BPE tokenizer.json from JSON lines (\"text\") or plain text (each line a "
            "text), with the merges that Hugging Face's trainer finds, or another kind (--model).  encode prints the ids of a "
            "text (standard input by default) separated by spaces; with --jsonl, of each line, a document or a JSON "
            "string, as a JSON array.  decode is the reverse.  chat prints the text that a chat template makes of each line, a "
            "conversation as quern tokenize takes it, and from which byte to which its answers are, as a JSON "
            "array.  info says what a tokenizer is.  measure says how short it makes texts: bytes, characters "
            "and words for tokens, by language.  verify compares with recorded ids.\n\n"
            "A tokenizer is a tokenizer.json, a tekken.json, a SentencePiece .model, a folder with a tokenizer.json or with "
            "vocab.json and merges.txt or encoder.json and vocab.bpe, or a tiktoken rank file.\n\n"
            "Bytes that are not UTF-8 are encoded as they are: decode gives them back.",
        .example = "echo 'The mill grinds the grain, the grain feeds the mill.' >text.txt\n"
                   "quern tokenizer train --vocab-size 270 -o tokenizer.json text.txt\n"
                   "quern tokenizer encode --tokenizer tokenizer.json text.txt",
    };
    const struct opt opts[] = {
        OPT_HEAD("All but train"),
        OPT_IN(0, "tokenizer", &o.tokenizer, "PATH", "the tokenizer"),
        OPT_STR(0, "pattern", &o.settings.pattern, "NAME",
                "how text is cut: gpt2, cl100k, llama3, qwen2, o200k, tekken, none, or an expression"),
        OPT_IN(0, "special-tokens-file", &o.settings.special_tokens, "FILE",
               "special tokens for ranks or vocab.json: a JSON object of tokens and ids, or a tokenizer_config.json"),
        OPT_STR(0, "eod-token", &o.settings.eod, "TOKEN", "info: the token that ends a document, or its id"),
        OPT_ENUM(0, "sentencepiece", &o.settings.sentencepiece, TOKENIZER_SPM_NAMES,
                 "the version (0.2.1 or before) whose ids a SentencePiece model gives"),
        OPT_STR(0, "chat-template", &o.chat, "NAME|FILE|auto", "chat: as for quern tokenize"),
        OPT_STR(0, "chat-date", &o.chat_date, "YYYY-MM-DD", "chat: the day that a template may ask for"),
        OPT_ENUM(0, "loss-on", &o.loss, "assistant|all", "chat: which bytes are answers, or all"),
        OPT_FLAG(0, "jsonl", &o.jsonl, "a line, a text"),
        LINES_OPTS(o),
        OPT_STR(0, "json-key", &o.key, "KEY", "where a document has its text"),
        OPT_FLAG(0, "allow-special", &o.allow_special, "special tokens in a text are special"),
        OPT_STR(0, "by", &o.by, "FIELD", "measure: the field of documents that numbers are given for each value of"),
        OPT_OUT(0, "stats", &o.stats, "FILE", "measure: write counts as JSON"),
        OPT_IN(0, "against", &o.against, "FILE",
                "verify: a line of ids for each document of FILE; without FILE, JSON lines with \"text\" and \"ids\""),
        OPT_HEAD("Training"),
        TRAIN_OPTS(o.train),
        OPT_FILES(0, "measure", &o.measure, "FILE", "measure texts with what was trained; may be repeated", OPT_NAMES_INPUT),
        TOOL_OPTS(t), TOOL_JOBS(t), OPT_END};
    int code, n = tool_begin(&t, opts, argc, argv, &code);

    if (n >= 0)
        code = act(&t, argv, n);
    opt_list_free(&o.train.specials);
    opt_list_free(&o.measure);
    return code;
}
