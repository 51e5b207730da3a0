/* Lists from files, and URLs: the first line is a URL, the rest a list.  A host must lie where
 * it should, every entry must be found again in its set, and at the front of itself in a trie. */
#include <stdlib.h>

#include "base/utf8.h"
#include "curate/filter/filter_lists.h"
#include "curate/filter/urls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(struct span text, word_set_form *form)
{
    struct word_set set = {0};
    struct word_trie trie = {0};
    struct buf b = {0};
    struct span w;
    size_t at = 0, n = 0;

    if (buf_put_span(&b, text) < 0 || word_set_take(&set, &b, form, NULL) < 0 || word_trie_build(&trie, &set, NULL) < 0)
        abort();
    while (word_set_next(&set, &at, &w)) {
        uint32_t node = 0;

        n++;
        if (!w.n || !word_set_has(&set, w) || !word_trie_may(&trie, w.p, w.p + w.n))
            abort();
        for (size_t i = 0; i < w.n; i++)
            if (!(node = word_trie_next(&trie, node, (unsigned char)w.p[i])))
                abort();
        if (!trie.ends[node] || (form && !url_has_subword(&trie, w)))
            abort();
    }
    if (n != set.n)
        abort();
    word_trie_free(&trie);
    word_set_free(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct url_host h;
    struct buf b = {0};
    struct span url, list;
    char license[512];
    const char *q;
    size_t n;

    if (utf8_repair((struct span){(const char *)data, size}, &b) < 0)
        return 0;
    q = b.n ? memchr(b.p, '\n', b.n) : NULL;
    url = (struct span){b.p, q ? (size_t)(q - b.p) : b.n};
    list = (struct span){q, q ? b.n - url.n : 0};
    n = url.n < sizeof license ? url.n : sizeof license;
    if (n && filter_license(memcpy(license, url.p, n), n) > n)
        abort();
    url_host(url, &h);
    if (h.registered.n > h.name.n || h.name.n > URL_HOST_MAX || url_authority(url).n > url.n)
        abort();
    check_list(list, NULL);
    check_list(list, word_set_alnum);
    buf_free(&b);
    return 0;
}
