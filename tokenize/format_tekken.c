/* Mistral's tekken.json: ranks as base64 in "vocab", the pattern and the counts in "config".  The first ids are special
 * tokens, then come the ranks. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/node.h"
#include "tokenize/format_hf.h"

static int read_rank(struct tokenizer *t, const struct node *x, size_t i, uint32_t specials, struct buf *bytes,
                     struct err *e)
{
    const struct node *token = node_get(x, "token_bytes");
    int64_t rank = node_int(x, "rank", -1);

    buf_clear(bytes);
    if (!token || token->type != NODE_STR || rank != (int64_t)i || !base64_decode(token->str, bytes) ||
        !bytes->n)
        return err_set(e, ERR_FORMAT, "vocab[%zu] is not the token_bytes of rank %zu", i, i);
    if (vocab_find(&t->vocab, buf_span(bytes)) >= 0)
        return err_set(e, ERR_FORMAT, "vocab[%zu] is there twice", i);
    return vocab_add(&t->vocab, specials + (uint32_t)i, buf_span(bytes), e);
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
    struct buf bytes = {0};
    size_t i = 0;
    int rc;

    TRY(hf_only_keys(root, "config|vocab|special_tokens|multimodal|image|audio|model_settings_builder|version|type", &top, e));
    TRY(hf_only_keys(config, "pattern|num_vocab_tokens|default_vocab_size|default_num_special_tokens|version", &at, e));
    if (!list || list->type != NODE_LIST || specials < 0 || size <= specials || size > VOCAB_MAX_ID || !regex)
        return err_set(e, ERR_FORMAT, "config has no pattern, default_vocab_size or default_num_special_tokens that hold");
    if (hf_is_null(named) && version && *version && strtol(version + 1, NULL, 10) > 7)
        return err_set(e, ERR_FORMAT, "it has no special_tokens, though its version is %s", version);
    t->whole_first = true;
    rc = pattern ? split_find(&t->split, pattern, e) : split_find_expression(&t->split, regex, false, e);
    /* The file may list more ranks than the model uses. */
    for (const struct node *x = list->child; x && rc == 0 && (int64_t)i < size - specials; x = x->next, i++)
        rc = read_rank(t, x, i, (uint32_t)specials, &bytes, e);
    buf_free(&bytes);
    if (rc == 0 && (int64_t)i < size - specials)
        rc = err_set(e, ERR_FORMAT, "vocab has %zu ranks, not %lld", i, (long long)(size - specials));
    if (rc == 0)
        rc = bpe_set_bytes(&t->bpe, &t->vocab, e);
    if (rc == 0)
        rc = ranks_later_begin(t, 0, NULL, e);
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
