#include "indexed_dataset/page_list.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/utf8.h"

void page_list_free(struct page_list *l)
{
    for (int k = 0; k < PAGE_NAMES; k++) {
        name_table_free(&l->of[k]);
        buf_free(&l->found[k]);
    }
}

static int add_name(struct page_list *l, enum page_names kind, struct span name, struct err *e)
{
    size_t number;
    int rc = name.n ? name_table_add(&l->of[kind], name, &number) : 0;

    if (rc == 1)
        rc = buf_putc(&l->found[kind], 0);
    return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for a list of pages") : 0;
}

int page_list_add(struct page_list *l, enum page_names kind, const struct opt_list *names, struct err *e)
{
    for (int i = 0; i < names->n; i++)
        TRY(add_name(l, kind, span_of(names->v[i]), e));
    return 0;
}

static int add_lines(struct page_list *l, enum page_names kind, struct span text, struct err *e)
{
    text = utf8_without_mark(text);
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        struct span line = {text.p, end ? (size_t)(end - text.p) : text.n};
        size_t whole = line.n + (end ? 1 : 0);

        if (span_ends(line, "\r"))
            line.n--;
        TRY(add_name(l, kind, line, e));
        text = (struct span){text.p + whole, text.n - whole};
    }
    return 0;
}

int page_list_read(struct page_list *l, enum page_names kind, const struct opt_list *files, struct err *e)
{
    struct buf text = {0};
    int rc = 0;

    for (int i = 0; i < files->n && rc == 0; i++) {
        buf_clear(&text);
        rc = file_read_all(files->v[i], PAGE_LIST_BYTES, &text, e);
        if (rc == 0)
            rc = add_lines(l, kind, buf_span(&text), e);
    }
    buf_free(&text);
    return rc;
}

bool page_list_find(struct page_list *l, struct span id, struct span url)
{
    const struct span name[PAGE_NAMES] = {id, url};
    size_t number;
    bool has = false;

    for (int k = 0; k < PAGE_NAMES; k++)
        if (name[k].n && name_table_find(&l->of[k], name[k], &number)) {
            __atomic_store_n(&l->found[k].p[number], 1, __ATOMIC_RELAXED);
            has = true;
        }
    return has;
}

void page_list_unfind(struct page_list *l)
{
    for (int k = 0; k < PAGE_NAMES; k++)
        for (size_t i = 0; i < l->found[k].n; i++)
            l->found[k].p[i] = 0;
}

int page_list_bits(struct page_list *l, const struct ledger *of, uint8_t **bits, uint64_t *n, struct err *e)
{
    uint64_t all = ledger_n_documents(of);
    struct ledger_document doc;

    *n = 0;
    *bits = calloc(all / 8 + 1, 1);
    if (!*bits)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (uint64_t d = 0; d < all; d++) {
        TRY(ledger_document(of, d, &doc, e));
        if (page_list_find(l, doc.id, doc.url)) {
            (*bits)[d / 8] |= (uint8_t)(1 << d % 8);
            ++*n;
        }
    }
    return 0;
}

bool page_list_missing(const struct page_list *l, size_t *at, struct span *name)
{
    for (; *at < l->of[PAGE_IDS].n + l->of[PAGE_URLS].n; ++*at) {
        bool url = *at >= l->of[PAGE_IDS].n;
        size_t i = url ? *at - l->of[PAGE_IDS].n : *at;
        const enum page_names k = url ? PAGE_URLS : PAGE_IDS;

        if (!l->found[k].p[i]) {
            *name = l->of[k].name[i];
            ++*at;
            return true;
        }
    }
    return false;
}
