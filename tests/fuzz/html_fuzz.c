/* Any bytes as a page: parsed, content found, text and metadata written, in each form. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "curate/html/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct html_worker *worker[5];
    static const struct { enum html_extractor x; enum html_format f; } kinds[5] = {
        {HTML_MAIN, HTML_TEXT}, {HTML_MAIN, HTML_MARKDOWN}, {HTML_EVERYTHING, HTML_TEXT},
        {HTML_JUSTEXT, HTML_TEXT}, {HTML_RULES, HTML_TEXT}};

    for (int i = 0; i < 5; i++) {
        struct html_page page;
        struct html_conf c;
        struct err e;
        html_conf_init(&c);
        c.extractor = kinds[i].x;
        c.format = kinds[i].f;
        c.max_nodes = 5000;
        c.images = true;
        if (!worker[i] && html_worker_new(&worker[i], &c, &e) < 0)
            abort();
        /* A copy of the very size, so that a byte read too far is seen. */
        char *copy = malloc(size ? size : 1);
        for (size_t k = 0; copy && k < size; k++)
            copy[k] = (char)data[k];
        if (html_extract(worker[i], (struct span){copy, size},
                         (struct span){"http://e.org/a", 14}, &page, &e) < 0)
            abort();
        free(copy);
    }
    return 0;
}
