#include <stdlib.h>

#include "tokenize/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* By every template: ranges of answers are within the text, one behind the other. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct chat_text c = {0};
    struct err e;

    for (int t = 1; t <= 7; t++)
        if (chat_render(chat_template_of(t), (struct span){(const char *)data, size}, &a, &c, &e) == 0) {
            const struct chat_range *r = (const struct chat_range *)(const void *)c.answers.p;
            size_t at = 0;

            for (size_t n = c.answers.n / sizeof *r; n; n--, at = r->to, r++)
                if (r->from < at || r->to < r->from || r->to > c.text.n)
                    abort();
        }
    chat_text_free(&c);
    arena_free(&a);
    return 0;
}
