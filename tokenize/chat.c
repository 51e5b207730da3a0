#include "tokenize/chat.h"

#include <string.h>

#include "base/json.h"
#include "base/node.h"

enum role { SYSTEM, USER, ASSISTANT, ROLES };
static const char *const role_name[ROLES] = {"system", "user", "assistant"};

/* What stands around a content; before NULL: the template has no such role. */
struct around {
    const char *before, *after;
};

struct chat_template {
    const char *begin;           /* of the whole text */
    struct around role[ROLES];
    const char *said;            /* between what stands before an assistant's content and that: the first of its answer */
    const char *system;          /* when the first message is none of the system's; NULL: nothing */
    bool trims;                  /* contents lose white space at both ends */
};

#define IM(role) {"<|im_start|>" role "\n", "<|im_end|>\n"}
#define HEADER(role) {"<|start_header_id|>" role "<|end_header_id|>\n\n", "<|eot_id|>"}
#define TURN(role) {"<start_of_turn>" role "\n", "<end_of_turn>\n"}

/* In the order of CHAT_TEMPLATES, from plain on. */
static const struct chat_template templates[] = {
    {"", {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}}, "", NULL, false},
    {"", {IM("system"), IM("user"), IM("assistant")}, "", NULL, false},
    {"", {IM("system"), IM("user"), {"<|im_start|>assistant", "<|im_end|>\n"}}, "\n",
     "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", false},
    {"<|begin_of_text|>", {HEADER("system"), HEADER("user"), HEADER("assistant")}, "", NULL, true},
    {"<bos>", {{NULL, NULL}, TURN("user"), TURN("model")}, "", NULL, true},
    {"", {{"<|system|>\n", "<|end|>\n"}, {"<|user|>\n", "<|end|>\n"}, {"<|assistant|>\n", "<|end|>\n"}}, "", NULL, false},
    {"", {{"<|system|>\n", "</s>\n"}, {"<|user|>\n", "</s>\n"}, {"<|assistant|>\n", "</s>\n"}}, "", NULL, false},
};

const struct chat_template *chat_template_of(int index)
{
    return index > 0 ? &templates[index - 1] : NULL;
}

void chat_text_free(struct chat_text *c)
{
    buf_free(&c->text);
    buf_free(&c->answers);
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for a conversation");
}

/* Python's str.strip of ASCII white space, as Jinja's trim does it. */
static struct span trimmed(struct span s)
{
    while (s.n && strchr(" \t\n\r\v\f", s.p[0]) && s.p[0])
        s.p++, s.n--;
    while (s.n && s.p[s.n - 1] && strchr(" \t\n\r\v\f", s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Appends a content with what stands around it; answers: it counts as one. */
static int put_message(const struct chat_template *t, enum role role, struct span content, bool answers, struct chat_text *out,
                       struct err *e)
{
    struct chat_range range;

    if (buf_puts(&out->text, t->role[role].before) < 0)
        return no_memory(e);
    range.from = out->text.n;
    if ((role == ASSISTANT && buf_puts(&out->text, t->said) < 0) ||
        buf_put_span(&out->text, t->trims ? trimmed(content) : content) < 0 || buf_puts(&out->text, t->role[role].after) < 0)
        return no_memory(e);
    range.to = out->text.n;
    out->ends = answers && role == ASSISTANT;
    return out->ends && buf_put(&out->answers, &range, sizeof range) < 0 ? no_memory(e) : 0;
}

static int put_node(const struct chat_template *t, const struct node *m, bool answers, struct chat_text *out, struct err *e)
{
    const struct node *content = node_get(m, "content");
    const char *name = node_str(m, "role");
    int role = 0;

    if (!name || !content || content->type != NODE_STR)
        return err_set(e, ERR_FORMAT, "a message without role or content of text");
    if (strcmp(name, "model") == 0) /* as Gemma calls it */
        role = ASSISTANT;
    else
        while (role < ROLES && strcmp(role_name[role], name) != 0)
            role++;
    if (role == ROLES || !t->role[role].before)
        return err_set(e, ERR_FORMAT, "--chat-template has no role '%.40s'", name);
    return put_message(t, (enum role)role, content->str, answers, out, e);
}

/* Appends a list of messages; first: the text begins with them. */
static int put_list(const struct chat_template *t, const struct node *list, bool first, bool answers, struct chat_text *out,
                    struct err *e)
{
    const char *name = list->child ? node_str(list->child, "role") : NULL;

    if (!t->role[USER].before)
        return err_set(e, ERR_FORMAT, "messages need another --chat-template than plain");
    if (!list->child)
        return err_set(e, ERR_FORMAT, "a conversation without messages");
    if (first && buf_puts(&out->text, t->begin) < 0)
        return no_memory(e);
    if (first && t->system && !(name && strcmp(name, role_name[SYSTEM]) == 0))
        TRY(put_message(t, SYSTEM, span_of(t->system), false, out, e));
    for (const struct node *m = list->child; m; m = m->next)
        TRY(put_node(t, m, answers, out, e));
    return 0;
}

/* Both texts, as they are. */
static int put_pair(struct span prompt, struct span completion, struct chat_text *out, struct err *e)
{
    struct chat_range range = {prompt.n, prompt.n + completion.n};

    if (buf_put_span(&out->text, prompt) < 0 || buf_put_span(&out->text, completion) < 0 ||
        buf_put(&out->answers, &range, sizeof range) < 0)
        return no_memory(e);
    out->ends = true;
    return 0;
}

int chat_render(const struct chat_template *t, struct span line, struct arena *a, struct chat_text *out, struct err *e)
{
    const struct node *messages, *prompt, *completion;
    struct node *root;

    arena_reset(a);
    buf_clear(&out->text);
    buf_clear(&out->answers);
    out->ends = false;
    TRY(node_parse_json(a, json_without_mark(line), &root, e));
    messages = node_get(root, "messages");
    prompt = node_get(root, "prompt");
    completion = node_get(root, "completion");
    if (messages && messages->type == NODE_LIST)
        return put_list(t, messages, true, true, out, e);
    if (!prompt || !completion || prompt->type != completion->type ||
        (prompt->type != NODE_STR && prompt->type != NODE_LIST))
        return err_set(e, ERR_FORMAT, "neither \"messages\" nor \"prompt\" and \"completion\"");
    if (prompt->type == NODE_STR)
        return put_pair(prompt->str, completion->str, out, e);
    TRY(put_list(t, prompt, true, false, out, e));
    return put_list(t, completion, false, true, out, e);
}
