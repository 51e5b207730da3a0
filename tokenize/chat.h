/* tokenize/chat.h -- conversations to text, by the chat templates that models were tuned with, and which of it is answers.
 *
 * A document has "messages", each a role (system, user, assistant) and a content, or "prompt" and "completion", both texts or
 * both lists of messages.  Templates are a small table; Jinja is not read.
 */
#ifndef TOKENIZE_CHAT_H
#define TOKENIZE_CHAT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

/* The names, as OPT_ENUM takes them; the first is none. */
#define CHAT_TEMPLATES "none|plain|chatml|qwen2.5|llama3|gemma|phi3|zephyr"

struct chat_template;
/* Of the index of a name; NULL: none. */
const struct chat_template *chat_template_of(int index);

/* A document as text. */
struct chat_text {
    struct buf text;
    struct buf answers; /* struct chat_range, in order: the bytes that an assistant said, or a completion */
    bool ends;          /* what follows the text, an end of document, belongs to an answer */
};
struct chat_range {
    size_t from, to;
};
void chat_text_free(struct chat_text *c);

/* The document that a line of JSON holds; a is room for it, emptied first.  ERR_FORMAT says what is wrong with it. */
int chat_render(const struct chat_template *t, struct span line, struct arena *a, struct chat_text *out, struct err *e);
#endif
