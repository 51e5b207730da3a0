#include "tokenize/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "tokenize/jinja.h"

/* What all templates that are built in do; each says before how. */
#define COMMON                                                                                                                 \
    "{{- begin }}{% if system and messages[0].role != 'system' %}{{- open ~ 'system' ~ middle ~ system ~ close }}{% endif %}"  \
    "{% for m in messages %}{% set role = 'assistant' if m.role == 'model' else m.role %}"                                     \
    "{% if role not in names %}" NO_ROLE("role") "{% endif %}"                                                                 \
    "{% set content = m.content | trim if trims else m.content %}"                                                             \
    "{% if role == 'assistant' %}{{- open ~ names[role] ~ (middle if not said) }}"                                             \
    "{% generation %}{{- said ~ content ~ close }}{% endgeneration %}"                                                         \
    "{% else %}{{- open ~ names[role] ~ middle ~ content ~ close }}{% endif %}{% endfor %}"                                    \
    "{% if add_generation_prompt %}{{- open ~ names['assistant'] ~ middle }}{% endif %}"
#define ROLES "{% set names = {'system': 'system', 'user': 'user', 'assistant': 'assistant'} %}"
#define AROUND(open, middle, close) "{% set open = '" open "' %}{% set middle = '" middle "' %}{% set close = '" close "' %}"
#define IM AROUND("<|im_start|>", "\\n", "<|im_end|>\\n")

#define NO_ROLE(role) "{{- raise_exception(\"--chat-template has no role '\" ~ " role " ~ \"'\") }}"

/* Words of the system, all of them, come first; of an answer its thoughts are left out. */
#define DEEPSEEK                                                                                                               \
    "{% set all = namespace(system='') %}{% for m in messages if m.role == 'system' %}"                                        \
    "{% set all.system = all.system ~ ('' if loop.first else '\\n\\n') ~ m.content %}{% endfor %}"                             \
    "{{- '<\uff5cbegin\u2581of\u2581sentence\uff5c>' ~ all.system }}{% for m in messages %}"                                    \
    "{% if m.role == 'user' %}{{- '<\uff5cUser\uff5c>' ~ m.content }}{% elif m.role == 'assistant' %}"                         \
    "{% generation %}{{- '<\uff5cAssistant\uff5c>' ~ m.content.split('</think>')[-1] ~ "                                      \
    "'<\uff5cend\u2581of\u2581sentence\uff5c>' }}{% endgeneration %}{% elif m.role != 'system' %}" NO_ROLE("m.role")            \
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{- '<\uff5cAssistant\uff5c>' }}{% endif %}"
/* gpt-oss's: the system's words are the developer's; thoughts stand with the last answer alone, which ends the conversation. */
#define HARMONY                                                                                                                \
    "{% if strftime_now is not defined %}"                                                                                     \
    "{{- raise_exception('--chat-template harmony says the date: --chat-date names none') }}{% endif %}"                       \
    "{{- '<|start|>system<|message|>' ~ (model_identity or 'You are ChatGPT, a large language model trained by OpenAI.') ~ "   \
    "'\\nKnowledge cutoff: 2024-06\\nCurrent date: ' ~ strftime_now('%Y-%m-%d') ~ '\\n\\nReasoning: ' ~ "                      \
    "(reasoning_effort or 'medium') ~ '\\n\\n# Valid channels: analysis, commentary, final. "                                  \
    "Channel must be included for every message.<|end|>' }}{% for m in messages %}"                                            \
    "{% if loop.first and m.role in ['system', 'developer'] %}{% if m.content %}"                                              \
    "{{- '<|start|>developer<|message|># Instructions\\n\\n' ~ m.content ~ '\\n\\n<|end|>' }}{% endif %}"                      \
    "{% elif m.role == 'user' %}{{- '<|start|>user<|message|>' ~ m.content ~ '<|end|>' }}{% elif m.role == 'assistant' %}"     \
    "{% set last = loop.last and not add_generation_prompt %}{% generation %}{% if last and m.thinking %}"                     \
    "{{- '<|start|>assistant<|channel|>analysis<|message|>' ~ m.thinking ~ '<|end|>' }}{% endif %}"                            \
    "{{- '<|start|>assistant<|channel|>final<|message|>' ~ m.content ~ ('<|return|>' if last else '<|end|>') }}"               \
    "{% endgeneration %}{% else %}" NO_ROLE("m.role") "{% endif %}{% endfor %}"                                                \
    "{% if add_generation_prompt %}{{- '<|start|>assistant' }}{% endif %}"

/* said: an answer begins with it, not behind `middle`. */
static const struct {
    const char *name, *text;
} built_in[] = {
    {"plain", NULL},
    {"chatml", ROLES IM COMMON},
    {"qwen2.5", ROLES IM
     "{% set said = '\\n' %}{% set system = 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' %}" COMMON},
    {"llama3", ROLES AROUND("<|start_header_id|>", "<|end_header_id|>\\n\\n", "<|eot_id|>")
     "{% set begin = '<|begin_of_text|>' %}{% set trims = true %}" COMMON},
    {"gemma", AROUND("<start_of_turn>", "\\n", "<end_of_turn>\\n")
     "{% set names = {'user': 'user', 'assistant': 'model'} %}{% set begin = '<bos>' %}{% set trims = true %}" COMMON},
    {"phi3", ROLES AROUND("<|", "|>\\n", "<|end|>\\n") COMMON},
    {"zephyr", ROLES AROUND("<|", "|>\\n", "</s>\\n") COMMON},
    {"deepseek", DEEPSEEK},
    {"harmony", HARMONY},
};

enum { TEMPLATE_MAX = 16 << 20, TOKENS = 32, VARIABLES = 64 };

struct chat {
    struct jinja *jinja; /* NULL: plain */
    bool texts;          /* contents are texts alone */
    struct arena arena;  /* of the tokens */
    struct jinja_var token[TOKENS];
    int n_tokens;
    char date[16];
    uint64_t hash;
};

/* ---- opening ---- */

/* FOLDER/NAME beside the tokenizer, which is a file in the folder or the folder; false: there is none. */
static bool beside(const char *tokenizer, const char *name, char *path, size_t room)
{
    const char *slash = strrchr(tokenizer, '/');
    struct stat s;
    bool folder = stat(tokenizer, &s) == 0 && S_ISDIR(s.st_mode);
    int n = folder ? (int)strlen(tokenizer) : slash ? (int)(slash - tokenizer) : 1;

    n = snprintf(path, room, "%.*s/%s", n, folder || slash ? tokenizer : ".", name);
    return n > 0 && (size_t)n < room && access(path, F_OK) == 0;
}

/* The tokens that the configuration names: texts, or objects with a content. */
static void take_tokens(struct chat *c, const struct node *config)
{
    for (const struct node *x = config->type == NODE_MAP ? config->child : NULL; x && c->n_tokens < TOKENS; x = x->next) {
        const struct node *text = x->type == NODE_MAP ? node_get(x, "content") : x;

        if (text && text->type == NODE_STR && span_ends(x->key, "_token"))
            c->token[c->n_tokens++] = (struct jinja_var){x->key.p, text};
    }
}

/* The template of a configuration: a text, or of a list of {"name", "template"} the default. */
static struct span template_of(const struct node *config)
{
    const struct node *x = node_get(config, "chat_template"), *chosen = x;

    if (x && x->type == NODE_LIST) {
        chosen = NULL;
        for (const struct node *one = x->child; one; one = one->next) {
            const char *name = node_str(one, "name");

            if (name && strcmp(name, "default") == 0)
                chosen = node_get(one, "template");
        }
    }
    return chosen && chosen->type == NODE_STR ? chosen->str : (struct span){NULL, 0};
}

static int read_template(struct chat *c, const char *name, const char *tokenizer, struct buf *file, struct span *text,
                         struct err *e)
{
    struct node *config = NULL;
    char path[4096];

    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (strcmp(name, built_in[i].name) == 0) {
            *text = span_of(built_in[i].text);
            c->texts = true;
            return 0;
        }
    if (tokenizer && beside(tokenizer, "tokenizer_config.json", path, sizeof path)) {
        TRY(node_load_json(&c->arena, path, &config, e));
        take_tokens(c, config);
    }
    if (strcmp(name, "auto") != 0) {
        if (access(name, F_OK) != 0)
            return err_set(e, ERR_ARG, "--chat-template %s: no file, and none of " CHAT_NAMES ", auto", name);
        snprintf(path, sizeof path, "%s", name);
    } else if (!tokenizer || !beside(tokenizer, "chat_template.jinja", path, sizeof path)) {
        *text = config ? template_of(config) : (struct span){NULL, 0};
        return text->p ? 0
                       : err_set(e, ERR_ARG,
                                 "--chat-template auto: there is neither chat_template.jinja nor a tokenizer_config.json"
                                 " with a chat_template beside the tokenizer");
    }
    TRY(file_read_all(path, TEMPLATE_MAX, file, e));
    *text = buf_span(file);
    return 0;
}

int chat_open(struct chat **out, const char *name, const char *tokenizer, const char *date, struct err *e)
{
    struct chat *c = *out = calloc(1, sizeof *c);
    struct buf file = {0}, what = {0};
    struct span text = {NULL, 0};
    int rc;

    if (!c)
        return err_set(e, ERR_NOMEM, "out of memory");
    snprintf(c->date, sizeof c->date, "%s", date ? date : "");
    rc = read_template(c, name, tokenizer, &file, &text, e);
    if (rc == 0 && text.p && (rc = jinja_new(&c->jinja, text, JINJA_CHAT, e)) < 0)
        err_wrap(e, "--chat-template %s", name);
    buf_put_span(&what, text);
    for (int i = 0; i < c->n_tokens; i++)
        buf_printf(&what, "\n%s=%s", c->token[i].name, c->token[i].value->str.p);
    if (rc == 0 && buf_printf(&what, "\n%s", c->date) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    c->hash = hash_xxh3_64(buf_span(&what));
    buf_free(&what);
    buf_free(&file);
    if (rc < 0) {
        chat_close(c);
        *out = NULL;
    }
    return rc;
}

void chat_close(struct chat *c)
{
    if (!c)
        return;
    jinja_free(c->jinja);
    arena_free(&c->arena);
    free(c);
}

uint64_t chat_hash(const struct chat *c) { return c->hash; }

void chat_text_free(struct chat_text *c)
{
    buf_free(&c->text);
    buf_free(&c->answers);
}

/* ---- a document ---- */

static int no_memory(struct err *e) { return err_set(e, ERR_NOMEM, "out of memory for a conversation"); }

/* A conversation on its way. */
struct talk {
    const struct chat *c;
    const struct node *root;
    struct node *message; /* copies, chained */
    int64_t n, prompt;    /* messages; how many of them are the prompt */
    struct arena *a;
    struct err *e;
};

/* The text of the first n messages. */
static int text_of(struct talk *t, int64_t n, bool prompts, struct buf *text, struct buf *ranges)
{
    static const char *const given[] = {"tools", "documents"};
    const struct node *more = node_get(t->root, "chat_template_kwargs");
    struct node list = {.type = NODE_LIST, .child = t->message, .count = n}, prompt = {.type = NODE_BOOL, .integer = prompts},
                none = {.type = NODE_NULL};
    struct jinja_var v[VARIABLES] = {{"messages", &list}, {"add_generation_prompt", &prompt}};
    struct node *last = &t->message[n - 1], *behind = last->next;
    int k = 2, rc;

    for (int i = 0; i < 2; i++) {
        const struct node *x = node_get(t->root, given[i]);

        v[k++] = (struct jinja_var){given[i], x ? x : &none};
    }
    for (int i = 0; i < t->c->n_tokens; i++)
        v[k++] = t->c->token[i];
    for (const struct node *x = more && more->type == NODE_MAP ? more->child : NULL; x && k < VARIABLES; x = x->next)
        v[k++] = (struct jinja_var){x->key.p, x};
    last->next = NULL;
    rc = jinja_render(t->c->jinja, v, k, t->c->date[0] ? t->c->date : NULL, t->a, text, ranges, t->e);
    last->next = behind;
    return rc;
}

/* How many bytes the text of the first n messages has, of which the whole text must begin with. */
static int begins_with(struct talk *t, int64_t n, bool prompts, const struct buf *whole, size_t *bytes)
{
    struct buf text = {0}, ranges = {0};
    int rc = n ? text_of(t, n, prompts, &text, &ranges) : 0;

    *bytes = text.n;
    if (rc == 0 && (text.n > whole->n || (text.n && memcmp(text.p, whole->p, text.n) != 0)))
        rc = err_set(t->e, ERR_FORMAT,
                     "the template writes the beginning of a conversation otherwise than the whole, so that it is not"
                     " known which of it is answers: --loss-on all, or a template with {%% generation %%}");
    buf_free(&text);
    buf_free(&ranges);
    return rc;
}

static bool answers(const struct node *message)
{
    const char *role = node_str(message, "role");

    return role && (strcmp(role, "assistant") == 0 || strcmp(role, "model") == 0);
}

/* Of a template that does not say which bytes are answers. */
static int find_answers(struct talk *t, struct chat_text *out)
{
    for (int64_t i = t->prompt; i < t->n; i++) {
        struct jinja_range range;

        if (!answers(&t->message[i]))
            continue;
        if (i == 0)
            return err_set(t->e, ERR_FORMAT, "a conversation that begins with an answer");
        TRY(begins_with(t, i, true, &out->text, &range.from));
        TRY(begins_with(t, i + 1, false, &out->text, &range.to));
        if (range.to > range.from && buf_put(&out->answers, &range, sizeof range) < 0)
            return no_memory(t->e);
    }
    return 0;
}

/* Of one that does: but for those of the prompt. */
static int drop_prompt(struct talk *t, struct chat_text *out)
{
    struct jinja_range *v = (struct jinja_range *)(void *)out->answers.p;
    size_t n = out->answers.n / sizeof *v, kept = 0, from;

    if (!t->prompt)
        return 0;
    TRY(begins_with(t, t->prompt, false, &out->text, &from));
    for (size_t i = 0; i < n; i++)
        if (v[i].from >= from)
            v[kept++] = v[i];
    out->answers.n = kept * sizeof *v;
    return 0;
}

static int add_messages(struct talk *t, const struct node *list)
{
    for (const struct node *m = list->child; m; m = m->next) {
        const struct node *content = node_get(m, "content");

        if (!node_str(m, "role") || (t->c->texts && (!content || content->type != NODE_STR)))
            return err_set(t->e, ERR_FORMAT, "a message without role or content of text");
        t->message[t->n] = *m;
        t->message[t->n].next = NULL;
        if (t->n)
            t->message[t->n - 1].next = &t->message[t->n];
        t->n++;
    }
    return 0;
}

/* Messages, or those of a prompt and of a completion. */
static int converse(const struct chat *c, const struct node *root, const struct node *first, const struct node *then, bool wanted,
                    struct arena *a, struct chat_text *out, struct err *e)
{
    struct talk t = {.c = c, .root = root, .a = a, .e = e};

    if (!c->jinja)
        return err_set(e, ERR_FORMAT, "messages need another --chat-template than plain");
    if (first->count + (then ? then->count : 0) == 0)
        return err_set(e, ERR_FORMAT, "a conversation without messages");
    t.message = arena_calloc(a, (size_t)(first->count + (then ? then->count : 0)), sizeof *t.message);
    if (!t.message)
        return no_memory(e);
    TRY(add_messages(&t, first));
    t.prompt = then ? t.n : 0;
    if (then)
        TRY(add_messages(&t, then));
    TRY(text_of(&t, t.n, false, &out->text, &out->answers));
    out->ends = answers(&t.message[t.n - 1]) && t.n > t.prompt;
    if (!wanted)
        return 0;
    return jinja_marks(c->jinja) ? drop_prompt(&t, out) : find_answers(&t, out);
}

/* Both texts, as they are. */
static int put_pair(struct span prompt, struct span completion, struct chat_text *out, struct err *e)
{
    struct jinja_range range = {prompt.n, prompt.n + completion.n};

    if (buf_put_span(&out->text, prompt) < 0 || buf_put_span(&out->text, completion) < 0 ||
        buf_put(&out->answers, &range, sizeof range) < 0)
        return no_memory(e);
    out->ends = true;
    return 0;
}

int chat_render(const struct chat *c, struct span line, bool wanted, struct arena *a, struct chat_text *out, struct err *e)
{
    const struct node *messages, *prompt, *completion;
    struct node *root;

    arena_reset(a);
    buf_clear(&out->text);
    buf_clear(&out->answers);
    out->ends = false;
    TRY(node_parse_json(a, utf8_without_mark(line), &root, e));
    messages = node_get(root, "messages");
    prompt = node_get(root, "prompt");
    completion = node_get(root, "completion");
    if (messages && messages->type == NODE_LIST)
        return converse(c, root, messages, NULL, wanted, a, out, e);
    if (!prompt || !completion || prompt->type != completion->type ||
        (prompt->type != NODE_STR && prompt->type != NODE_LIST))
        return err_set(e, ERR_FORMAT, "neither \"messages\" nor \"prompt\" and \"completion\"");
    if (prompt->type == NODE_STR)
        return put_pair(prompt->str, completion->str, out, e);
    return converse(c, root, prompt, completion, wanted, a, out, e);
}
