/* Any bytes as a LaTeX document that may input itself, in each form. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "curate/latex/latex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int find(void *arg, struct span name, struct span *utf8, struct err *e)
{
    (void)e;
    *utf8 = *(const struct span *)arg;
    return name.n < 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct latex_worker *worker[3];
    static const int format[3] = {HTML_TEXT, HTML_MARKDOWN, HTML_TEXT};

    for (int i = 0; i < 3; i++) {
        struct buf text = {0};
        struct latex_doc doc;
        struct latex_conf c;
        struct err e;
        latex_conf_init(&c);
        c.format = format[i];
        c.math = i;
        c.max_bytes = 1 << 18;
        c.max_expansions = 5000;
        if (!worker[i] && latex_worker_new(&worker[i], &c, &e) < 0)
            abort();
        if (utf8_repair((struct span){(const char *)data, size}, &text) < 0)
            abort();
        /* A copy of the very size, so that a byte read too far is seen. */
        char *copy = malloc(text.n ? text.n : 1);
        if (copy && text.n)
            memcpy(copy, text.p, text.n);
        struct span utf8 = {copy, text.n};
        int rc = latex_extract(worker[i], utf8, &(struct latex_files){find, &utf8}, &doc, &e);
        if (rc < 0 && rc != ERR_LIMIT)
            abort();
        if (rc == 0 && (!utf8_valid(doc.title) || !utf8_valid(doc.author) || !utf8_valid(doc.text)))
            abort();
        free(copy);
        buf_free(&text);
    }
    return 0;
}
