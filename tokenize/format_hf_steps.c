/* Normalisers, pre-tokenizers and decoders of a tokenizer.json. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "tokenize/format_hf.h"

struct hf_place hf_place(const char *text)
{
    struct hf_place p;

    snprintf(p.text, sizeof p.text, "%s", text);
    return p;
}

/* The place of an entry of the map at a place. */
static struct hf_place hf_key(const struct hf_place *at, const char *key)
{
    struct hf_place p;

    snprintf(p.text, sizeof p.text, "%.150s.%.40s", at->text, key);
    return p;
}

struct hf_place hf_item(const struct hf_place *at, const char *list, size_t i)
{
    struct hf_place p;

    snprintf(p.text, sizeof p.text, "%.140s.%.30s[%zu]", at->text, list, i);
    return p;
}

bool hf_is_null(const struct node *n)
{
    return !n || n->type == NODE_NULL;
}

/* The "type" of n, or "". */
static const char *hf_type(const struct node *n)
{
    const char *s = node_str(n, "type");
    return s ? s : "";
}

int hf_only_keys(const struct node *map, const char *names, const struct hf_place *at, struct err *e)
{
    if (map->type != NODE_MAP)
        return err_set(e, ERR_FORMAT, "%s is no object", at->text);
    for (const struct node *x = map->child; x; x = x->next) {
        const char *w = names;
        bool found = false;
        while (*w && !found) {
            size_t n = strcspn(w, "|");
            found = x->key.n == n && memcmp(x->key.p, w, n) == 0;
            w += n + (w[n] == '|');
        }
        if (!found)
            return err_set(e, ERR_UNSUPPORTED, "%s has '%.*s', which is unknown here", at->text,
                           x->key.n > 60 ? 60 : (int)x->key.n, x->key.p);
    }
    return 0;
}

static int unknown_value(const struct hf_place *at, const char *key, const char *value, struct err *e)
{
    return err_set(e, ERR_UNSUPPORTED, "%s.%s '%.60s' is unknown here", at->text, key, value ? value : "");
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a tokenizer");
}

/* An owned copy. */
static int copy(struct span from, struct span *to, struct err *e)
{
    char *p = malloc(from.n + 1);

    if (!p)
        return no_memory(e);
    memcpy(p, from.p, from.n);
    p[from.n] = '\0';
    free((void *)(uintptr_t)to->p);
    to->p = p;
    to->n = from.n;
    return 0;
}

/* The string at a key; when it must be one character, exactly that. */
static int read_text(const struct node *n, const char *key, bool one, struct span *to, const struct hf_place *at,
                     struct err *e)
{
    const struct node *x = node_get(n, key);
    size_t chars = 0;

    if (!x || x->type != NODE_STR)
        return err_set(e, ERR_FORMAT, "%s.%s is no string", at->text, key);
    for (size_t i = 0; i < x->str.n; i++)
        chars += ((unsigned char)x->str.p[i] & 0xC0) != 0x80;
    if (one && chars != 1)
        return err_set(e, ERR_FORMAT, "%s.%s is not one character", at->text, key);
    return copy(x->str, to, e);
}

/* {"String": ...} or {"Regex": ...}. */
static int read_pattern(struct step *s, const struct node *n, const struct hf_place *at, struct err *e)
{
    const struct node *pattern = node_get(n, "pattern");
    const char *regex = node_str(pattern, "Regex");
    struct hf_place here = hf_key(at, "pattern");

    if (!regex)
        return read_text(pattern, "String", false, &s->text, &here, e);
    s->is_regex = true;
    return split_find_expression(&s->split, regex, true, e) < 0 ? err_wrap(e, "%s", here.text) : 0;
}

static int read_behavior(struct step *s, const struct node *n, const char *fallback, const struct hf_place *at,
                         struct err *e)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    const char *name = node_str(n, "behavior");

    for (int i = 0; i < 5; i++)
        if (strcmp(name ? name : fallback, names[i]) == 0) {
            s->behavior = (enum step_behavior)i;
            return 0;
        }
    return unknown_value(at, "behavior", name, e);
}

static int read_metaspace(struct step *s, const struct node *n, const struct hf_place *at, struct err *e)
{
    const char *scheme = node_str(n, "prepend_scheme");
    bool prefix = node_bool(n, "add_prefix_space", true);

    TRY(hf_only_keys(n, "type|replacement|add_prefix_space|prepend_scheme|split|str_rep", at, e));
    TRY(read_text(n, "replacement", true, &s->text, at, e));
    s->single = node_bool(n, "split", true);
    if (!scheme)
        scheme = prefix ? "always" : "never";
    s->scheme = strcmp(scheme, "always") == 0 ? SCHEME_ALWAYS : strcmp(scheme, "first") == 0 ? SCHEME_FIRST : SCHEME_NEVER;
    if (s->scheme == SCHEME_NEVER && strcmp(scheme, "never") != 0)
        return unknown_value(at, "prepend_scheme", scheme, e);
    if (!prefix)
        s->scheme = SCHEME_NEVER;
    return 0;
}

static int read_byte_level(struct step *s, const struct node *n, const struct hf_place *at, struct err *e)
{
    TRY(hf_only_keys(n, "type|add_prefix_space|trim_offsets|use_regex", at, e));
    s->prefix_space = node_bool(n, "add_prefix_space", true);
    s->regex = s->is_regex = node_bool(n, "use_regex", true);
    s->behavior = BEHAVIOR_ISOLATED;
    return s->regex ? split_find(&s->split, "gpt2", e) : 0;
}

static int read_list(struct steps *s, const struct node *n, const char *key, const struct hf_place *at,
                     int (*read)(struct steps *, const struct node *, const struct hf_place *, struct err *),
                     struct err *e)
{
    const struct node *list = node_get(n, key);
    size_t i = 0;

    if (!list || list->type != NODE_LIST)
        return err_set(e, ERR_FORMAT, "%s.%s is no list", at->text, key);
    for (const struct node *x = list->child; x; x = x->next, i++) {
        struct hf_place here = hf_item(at, key, i);
        TRY(read(s, x, &here, e));
    }
    return 0;
}

static int read_bert(struct step *s, const struct node *n, const struct hf_place *at, struct err *e)
{
    TRY(hf_only_keys(n, "type|clean_text|handle_chinese_chars|strip_accents|lowercase", at, e));
    s->clean = node_bool(n, "clean_text", true);
    s->chinese = node_bool(n, "handle_chinese_chars", true);
    s->lowercase = node_bool(n, "lowercase", true);
    s->accents = node_bool(n, "strip_accents", s->lowercase);
    return 0;
}

static int read_precompiled(struct step *s, const struct node *n, const struct hf_place *at, struct err *e)
{
    const struct node *map = node_get(n, "precompiled_charsmap");
    struct buf blob = {0};
    int rc;

    TRY(hf_only_keys(n, "type|precompiled_charsmap", at, e));
    if (hf_is_null(map))
        return 0;
    if (map->type != NODE_STR || !base64_decode(map->str, &blob))
        rc = err_set(e, ERR_FORMAT, "%s.precompiled_charsmap is no base64", at->text);
    else if ((rc = charsmap_read(&s->map, buf_span(&blob), e)) < 0)
        err_wrap(e, "%s", at->text);
    buf_free(&blob);
    return rc;
}

/* Kinds without settings, by type. */
static int plain_kind(const char *type)
{
    static const struct {
        const char *type;
        enum step_kind kind;
    } kinds[] = {{"NFC", STEP_NFC}, {"NFD", STEP_NFD}, {"NFKC", STEP_NFKC}, {"NFKD", STEP_NFKD},
                 {"Lowercase", STEP_LOWERCASE}, {"StripAccents", STEP_STRIP_ACCENTS}, {"Nmt", STEP_NMT}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].type, type) == 0)
            return (int)kinds[i].kind;
    return -1;
}

int hf_read_normalizer(struct steps *s, const struct node *n, const struct hf_place *at, struct err *e)
{
    const char *type = hf_type(n);
    int plain = plain_kind(type);
    struct step *x;
    enum step_kind kind;

    if (hf_is_null(n))
        return 0;
    if (strcmp(type, "Sequence") == 0) {
        TRY(hf_only_keys(n, "type|normalizers", at, e));
        return read_list(s, n, "normalizers", at, hf_read_normalizer, e);
    }
    if (plain >= 0)
        kind = (enum step_kind)plain;
    else if (strcmp(type, "BertNormalizer") == 0)
        kind = STEP_BERT;
    else if (strcmp(type, "Replace") == 0)
        kind = STEP_REPLACE;
    else if (strcmp(type, "Prepend") == 0)
        kind = STEP_PREPEND;
    else if (strcmp(type, "Strip") == 0)
        kind = STEP_STRIP;
    else if (strcmp(type, "Precompiled") == 0)
        kind = STEP_PRECOMPILED;
    else if (strcmp(type, "ByteLevel") == 0)
        kind = STEP_BYTE_LEVEL;
    else
        return unknown_value(at, "type", type, e);
    if (!(x = steps_add(s, kind)))
        return no_memory(e);
    if (kind == STEP_BERT)
        return read_bert(x, n, at, e);
    if (kind == STEP_PRECOMPILED)
        return read_precompiled(x, n, at, e);
    if (kind == STEP_REPLACE) {
        TRY(hf_only_keys(n, "type|pattern|content", at, e));
        TRY(read_pattern(x, n, at, e));
        return read_text(n, "content", false, &x->content, at, e);
    }
    if (kind == STEP_PREPEND) {
        TRY(hf_only_keys(n, "type|prepend", at, e));
        return read_text(n, "prepend", false, &x->content, at, e);
    }
    x->left = node_bool(n, "strip_left", true);
    x->right = node_bool(n, "strip_right", true);
    return hf_only_keys(n, kind == STEP_STRIP ? "type|strip_left|strip_right" : "type", at, e);
}

static int read_split(struct step *s, const struct node *n, const struct hf_place *at, struct err *e)
{
    TRY(hf_only_keys(n, "type|pattern|behavior|invert", at, e));
    s->invert = node_bool(n, "invert", false);
    TRY(read_pattern(s, n, at, e));
    return read_behavior(s, n, "", at, e);
}

int hf_read_pre_tokenizer(struct steps *s, const struct node *n, const struct hf_place *at, struct err *e)
{
    static const struct {
        const char *type;
        enum step_kind kind;
        const char *keys;
    } kinds[] = {{"Split", STEP_SPLIT, NULL},
                 {"ByteLevel", STEP_BYTE_LEVEL, NULL},
                 {"Metaspace", STEP_METASPACE, NULL},
                 {"CharDelimiterSplit", STEP_SPLIT, "type|delimiter"},
                 {"FixedLength", STEP_FIXED_LENGTH, "type|length"},
                 {"Digits", STEP_DIGITS, "type|individual_digits"},
                 {"Punctuation", STEP_PUNCTUATION, "type|behavior"},
                 {"Whitespace", STEP_WHITESPACE, "type"},
                 {"WhitespaceSplit", STEP_WHITESPACE_SPLIT, "type"},
                 {"BertPreTokenizer", STEP_BERT_SPLIT, "type"}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    const char *type = hf_type(n);
    struct step *x;
    size_t k = 0;

    if (hf_is_null(n))
        return 0;
    if (strcmp(type, "Sequence") == 0) {
        TRY(hf_only_keys(n, "type|pretokenizers", at, e));
        return read_list(s, n, "pretokenizers", at, hf_read_pre_tokenizer, e);
    }
    while (k < KINDS && strcmp(kinds[k].type, type) != 0)
        k++;
    if (k == KINDS)
        return unknown_value(at, "type", type, e);
    if (kinds[k].keys)
        TRY(hf_only_keys(n, kinds[k].keys, at, e));
    if (!(x = steps_add(s, kinds[k].kind)))
        return no_memory(e);
    if (k == 0)
        return read_split(x, n, at, e);
    if (x->kind == STEP_BYTE_LEVEL)
        return read_byte_level(x, n, at, e);
    if (x->kind == STEP_METASPACE)
        return read_metaspace(x, n, at, e);
    if (x->kind == STEP_SPLIT)
        return read_text(n, "delimiter", true, &x->text, at, e); /* REMOVED is 0 */
    if (x->kind == STEP_PUNCTUATION)
        return read_behavior(x, n, "Isolated", at, e);
    if (x->kind == STEP_DIGITS)
        x->behavior = node_bool(n, "individual_digits", false) ? BEHAVIOR_ISOLATED : BEHAVIOR_CONTIGUOUS;
    if (x->kind == STEP_FIXED_LENGTH) {
        int64_t length = node_int(n, "length", 5);
        if (length < 1)
            return err_set(e, ERR_FORMAT, "%s.length is below 1", at->text);
        x->start = (size_t)length;
        x->behavior = BEHAVIOR_ISOLATED;
    }
    return 0;
}

static int read_decoder_texts(struct step *x, const struct node *n, const struct hf_place *at, struct err *e)
{
    switch (x->kind) {
    case STEP_METASPACE:
        return read_metaspace(x, n, at, e);
    case STEP_REPLACE:
        TRY(hf_only_keys(n, "type|pattern|content", at, e));
        TRY(read_pattern(x, n, at, e));
        return read_text(n, "content", false, &x->content, at, e);
    case STEP_STRIP:
        TRY(hf_only_keys(n, "type|content|start|stop", at, e));
        x->start = (size_t)node_int(n, "start", 0);
        x->stop = (size_t)node_int(n, "stop", 0);
        return read_text(n, "content", true, &x->content, at, e);
    case STEP_WORDPIECE:
        TRY(hf_only_keys(n, "type|prefix|cleanup", at, e));
        x->clean = node_bool(n, "cleanup", true);
        return read_text(n, "prefix", false, &x->text, at, e);
    case STEP_BPE:
        TRY(hf_only_keys(n, "type|suffix", at, e));
        return read_text(n, "suffix", false, &x->text, at, e);
    case STEP_CTC:
        TRY(hf_only_keys(n, "type|pad_token|word_delimiter_token|cleanup", at, e));
        x->clean = node_bool(n, "cleanup", true);
        TRY(read_text(n, "word_delimiter_token", false, &x->content, at, e));
        return read_text(n, "pad_token", false, &x->text, at, e);
    default: /* ByteLevel, ByteFallback, Fuse: nothing of theirs bears on text */
        return 0;
    }
}

int hf_read_decoder(struct steps *s, const struct node *n, const struct hf_place *at, struct err *e)
{
    static const struct {
        const char *type;
        enum step_kind kind;
    } kinds[] = {{"ByteLevel", STEP_BYTE_LEVEL}, {"Metaspace", STEP_METASPACE}, {"ByteFallback", STEP_BYTE_FALLBACK},
                 {"Fuse", STEP_FUSE}, {"Strip", STEP_STRIP}, {"Replace", STEP_REPLACE}, {"WordPiece", STEP_WORDPIECE},
                 {"BPEDecoder", STEP_BPE}, {"CTC", STEP_CTC}};
    const char *type = hf_type(n);
    struct step *x;

    if (hf_is_null(n))
        return 0;
    if (strcmp(type, "Sequence") == 0) {
        TRY(hf_only_keys(n, "type|decoders", at, e));
        return read_list(s, n, "decoders", at, hf_read_decoder, e);
    }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(kinds[k].type, type) == 0) {
            if (!(x = steps_add(s, kinds[k].kind)))
                return no_memory(e);
            return read_decoder_texts(x, n, at, e);
        }
    return unknown_value(at, "type", type, e);
}
