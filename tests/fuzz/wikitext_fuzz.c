/* Any bytes as wikitext: nodes found, HTML and text written, in both forms. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "curate/wiki/wikitext.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wikitext *worker[2];
    struct wiki_site site = {.name = {"W", 1}, .lang = {size & 1 ? "zh" : "en", 2}};
    struct span text;
    struct err e;
    bool cut;

    for (int i = 0; i < 2; i++) {
        struct html_conf c;
        html_conf_init(&c);
        c.format = i ? HTML_MARKDOWN : HTML_TEXT;
        c.max_nodes = 5000;
        if (!worker[i] && wikitext_new(&worker[i], &c, &e) < 0)
            abort();
        /* A copy of the very size, so that a byte read too far is seen. */
        char *copy = malloc(size ? size : 1);
        if (!copy)
            abort();
        memcpy(copy, data, size);
        if (wikitext_extract(worker[i], &site, (struct span){"T", 1}, (struct span){copy, size}, &text, &cut, &e) < 0)
            abort();
        free(copy);
    }
    return 0;
}
