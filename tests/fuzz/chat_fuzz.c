#include <stdlib.h>

#include "tokenize/chat.h"
#include "tokenize/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* By every template: ranges of answers are within the text, one behind the other. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct chat_text c = {0};
    struct err e;

    for (int t = 0; t < 7; t++) {
        static const char *const names[] = {"plain", "chatml", "qwen2.5", "llama3", "gemma", "phi3", "zephyr"};
        static struct chat *chat[7];

        if (!chat[t] && chat_open(&chat[t], names[t], NULL, NULL, &e) < 0)
            abort();
        if (chat_render(chat[t], (struct span){(const char *)data, size}, true, &a, &c, &e) == 0) {
            const struct jinja_range *r = (const struct jinja_range *)(const void *)c.answers.p;
            size_t at = 0;

            for (size_t n = c.answers.n / sizeof *r; n; n--, at = r->to, r++)
                if (r->from < at || r->to < r->from || r->to > c.text.n)
                    abort();
        }
    }
    chat_text_free(&c);
    arena_free(&a);
    return 0;
}
