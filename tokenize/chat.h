/* tokenize/chat.h -- conversations to text, by the chat templates that models were tuned with, and which of it is answers.
 *
 * A document has "messages", or "prompt" and "completion", both texts or both lists of messages.  A template is Jinja
 * (tokenize/jinja.h); some are built in.  Beside the messages it has the document's "tools", "documents" and what is in its
 * "chat_template_kwargs", add_generation_prompt, and the tokens that tokenizer_config.json names (bos_token and so on).
 *
 * Which bytes are answers a template says by {% generation %}.  Of one that does not, an answer is what a conversation that ends
 * with it has behind the same conversation before it, with its generation prompt; both must begin as the whole does.
 */
#ifndef TOKENIZE_CHAT_H
#define TOKENIZE_CHAT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

#define CHAT_NAMES "plain, chatml, qwen2.5, llama3, gemma, phi3, zephyr, deepseek, harmony"

struct chat;
/* name: one of CHAT_NAMES; a file of Jinja; or auto: chat_template.jinja beside the tokenizer at this path, else the
 * chat_template of its tokenizer_config.json, of several the one called default.  date (YYYY-MM-DD) is strftime_now's, or NULL.
 * ERR_ARG: there is none. */
int chat_open(struct chat **c, const char *name, const char *tokenizer, const char *date, struct err *e);
void chat_close(struct chat *c);
/* What it was opened by: the template's text, the tokens, the date. */
uint64_t chat_hash(const struct chat *c);

/* A document as text. */
struct chat_text {
    struct buf text;
    struct buf answers; /* struct jinja_range, in order: the bytes that an assistant said, or a completion */
    bool ends;          /* what follows the text, an end of document, belongs to an answer */
};
void chat_text_free(struct chat_text *c);

/* The document that a line of JSON holds; a is room for it, emptied first.  answers: they are wanted.  By any thread.
 * ERR_FORMAT says what is wrong with it. */
int chat_render(const struct chat *c, struct span line, bool answers, struct arena *a, struct chat_text *out, struct err *e);
#endif
