/* Any bytes as XML: cut into records and documents, in steps of any size, and read in each format. */
#include <stdint.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "curate/xml/word_styles.h"
#include "curate/xml/xml_cut.h"
#include "curate/xml/xml_text.h"
#include "tests/given_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void cut(const uint8_t *data, size_t size, const char *const *records)
{
    struct given_bytes b = {.all = {(const char *)data, size}, .step = size % 61 + 1,
                            .broken = size % 3 ? SIZE_MAX : size / 2, .ends = size / 2 & 1};
    const struct xml_input in = given_input(&b);
    struct xml_piece piece;
    struct xml_cut *c;
    struct err e;
    size_t calls = 0;
    int rc;

    if (xml_cut_open(&c, &in, records, 4096, &e) < 0)
        abort();
    while ((rc = xml_cut_next(c, &piece, &e)) != 0)
        if ((rc != 1 && rc != ERR_FORMAT) || ++calls > 4 * size + 3 || (rc == 1 && piece.record.n > 4096 + 200))
            abort(); /* it must move on, in bounds */
    xml_cut_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const items[] = {"row", "item", NULL};
    static const struct xml_format *const formats[] = {&xml_jats, &xml_tei, &xml_docbook, &xml_feed, &xml_patent, &xml_law,
                                                     &xml_xhtml, &xml_word, &xml_odt, &xml_core};
    static struct xml_text *x;
    static struct word_styles styles;
    struct xml_doc doc;
    struct err e;

    if (!x) {
        struct html_conf c;
        html_conf_init(&c);
        c.max_seconds = 0;
        if (xml_text_new(&x, &c, &e) < 0)
            abort();
    }
    cut(data, size, items);
    cut(data, size, NULL);
    word_styles_reset(&styles);
    if (word_styles_read(&styles, (struct span){(const char *)data, size}) < 0 ||
        word_styles_read_lists(&styles, (struct span){(const char *)data, size}) < 0)
        abort();
    xml_text_set_styles(x, size % 2 ? &styles : NULL);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct span s = {(const char *)data, size};
        if (xml_text_extract(x, formats[i], s, &doc, &e) < 0)
            continue;
        if (utf8_valid(s) && !utf8_valid(doc.text))
            abort();
    }
    return 0;
}
