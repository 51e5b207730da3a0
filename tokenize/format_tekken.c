/* Mistral's tekken.json: ranks as base64 in "vocab", the pattern and the counts in "config".  The first ids are special
 * tokens, then come the ranks. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/node.h"
#include "tokenize/format_hf.h"
#include "tokenize/format_rows.h"

/* The file may list more ranks than the model uses, n. */
static int read_ranks(struct tokenizer *t, struct row_reader *rows, uint32_t n, uint32_t specials, struct err *e)
{
    struct buf bytes = {0};
    struct row x;
    int rc = vocab_reserve(&t->vocab, n, e);

    for (uint32_t i = 0; i < n && rc == 0; i++) {
        buf_clear(&bytes);
        if ((rc = row_reader_get(rows, i, &x, e)) < 0)
            break;
        if (x.kind != HF_ROW_NUMBER || x.integer != i || !base64_decode(x.text, &bytes) || !bytes.n)
            rc = err_set(e, ERR_FORMAT, "vocab[%u] is not the token_bytes of rank %u", i, i);
        else
            rc = vocab_put(&t->vocab, specials + i, buf_span(&bytes), e);
    }
    buf_free(&bytes);
    TRY(rc);
    TRY(vocab_index(&t->vocab, e));
    for (uint32_t i = 0; i < n && t->vocab.twins; i++)
        if (vocab_find(&t->vocab, vocab_get(&t->vocab, specials + i)) != specials + i)
            return err_set(e, ERR_FORMAT, "vocab[%u] is there twice", i);
    return 0;
}

/* Named ones, and the others as Mistral names them: <SPECIAL_7>. */
static int add_specials(struct tokenizer *t, const struct node *list, uint32_t n, struct err *e)
{
    static const char *const usual[] = {"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]",
        "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]",
        "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"};
    bool listed = !hf_is_null(list);

    for (const struct node *x = listed ? list->child : NULL; x; x = x->next) {
        const struct node *text = node_get(x, "token_str");
        int64_t rank = node_int(x, "rank", -1);
        if (!text || text->type != NODE_STR || !text->str.n || rank < 0 || rank >= n)
            return err_set(e, ERR_FORMAT, "special_tokens has one without token_str or rank");
        TRY(format_add_token(t, &(struct added_token){.text = text->str, .id = (uint32_t)rank, .special = true}, e));
    }
    for (uint32_t id = 0; id < n; id++) {
        char name[40];
        if (vocab_get(&t->vocab, id).p)
            continue;
        snprintf(name, sizeof name, "<SPECIAL_%u>", id);
        TRY(format_add_token(t, &(struct added_token){
            .text = span_of(!listed && id < sizeof usual / sizeof *usual ? usual[id] : name), .id = id, .special = true}, e));
    }
    return 0;
}

static int read_root(struct tokenizer *t, const struct node *root, const char *pattern, struct err *e)
{
    const struct node *config = node_get(root, "config"), *list = node_get(root, "vocab");
    const struct node *named = node_get(root, "special_tokens");
    int64_t specials = node_int(config, "default_num_special_tokens", -1);
    int64_t size = node_int(config, "default_vocab_size", -1);
    const char *regex = node_str(config, "pattern"), *version = node_str(config, "version");
    struct hf_place top = hf_place("the file"), at = hf_place("config");
    struct row_reader rows;
    int rc;

    TRY(hf_only_keys(root, "config|vocab|special_tokens|multimodal|image|audio|model_settings_builder|version|type", &top, e));
    TRY(hf_only_keys(config, "pattern|num_vocab_tokens|default_vocab_size|default_num_special_tokens|version", &at, e));
    if (!hf_is_list(list) || specials < 0 || size <= specials || size > VOCAB_MAX_ID || !regex)
        return err_set(e, ERR_FORMAT, "config has no pattern, default_vocab_size or default_num_special_tokens that hold");
    if (hf_is_null(named) && version && *version && strtol(version + 1, NULL, 10) > 7)
        return err_set(e, ERR_FORMAT, "it has no special_tokens, though its version is %s", version);
    t->whole_first = true;
    rc = pattern ? split_find(&t->split, pattern, e) : split_find_expression(&t->split, regex, false, e);
    if (rc == 0 && list->count < size - specials)
        rc = err_set(e, ERR_FORMAT, "vocab has %lld ranks, not %lld", (long long)list->count, (long long)(size - specials));
    if (rc == 0 && (rc = row_reader_begin(&rows, list, e)) == 0) {
        rc = read_ranks(t, &rows, (uint32_t)(size - specials), (uint32_t)specials, e);
        row_reader_free(&rows);
    }
    if (rc == 0)
        rc = bpe_set_bytes(&t->bpe, &t->vocab, e);
    if (rc == 0)
        rc = ranks_later_begin(t, 0, NULL, NULL, e);
    return rc < 0 ? rc : add_specials(t, named, (uint32_t)specials, e);
}

bool format_is_tekken(const struct node *root)
{
    return node_get(root, "config") && node_get(root, "vocab");
}

int format_read_tekken(struct tokenizer *t, const struct node *root, const char *pattern, struct err *e)
{
    t->format = "tekken.json (Mistral)";
    return read_root(t, root, pattern, e);
}
