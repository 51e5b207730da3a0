#include "curate/html/content_features_parts.h"

#include "base/ascii.h"

/* Words of an address, of a generator's name: what stands between other characters than letters. */
static void read_words(struct content_reader *r, struct span s, uint32_t of)
{
    uint32_t word = CONTENT_OF_META + of;
    int n = 0;

    for (size_t k = 0; k <= s.n && k < 300; k++) {
        char c = k < s.n ? s.p[k] : ' ';
        if (ascii_is_upper(c) || ascii_is_lower(c)) {
            word = html_name_hash(word, (char)(c | 0x20));
            n++;
            continue;
        }
        if (n > 1)
            content_see(r, word, 0);
        n = 0;
        word = CONTENT_OF_META + of;
    }
}

/* The types that JSON-LD names. */
static void read_types(struct content_reader *r, struct span s)
{
    static const char key[] = "\"@type\"";
    const char *p = s.p, *end = s.p + s.n;

    for (int n = 0; n < 200 && (p = memmem(p, (size_t)(end - p), key, sizeof key - 1)); n++) {
        p += sizeof key - 1;
        while (p < end && (ascii_is_html_space(*p) || *p == ':' || *p == '['))
            p++;
        if (p == end || *p != '"')
            continue;
        p++;
        const char *to = memchr(p, '"', (size_t)(end - p));
        if (to && to - p < 40)
            read_words(r, (struct span){p, (size_t)(to - p)}, 1);
    }
}

static void read_meta(struct content_reader *r, uint32_t i)
{
    const struct html_tree *t = r->t;
    struct span name = html_attr_raw(t, i, ATTR_name, NULL), property = html_attr_raw(t, i, ATTR_property, NULL);
    struct span content = html_attr_raw(t, i, ATTR_content, NULL);

    if (span_is(name, "generator"))
        read_words(r, content, 2);
    else if (span_is(property, "og:type"))
        read_words(r, content, 3);
}

/* Counts of elements, tokens of metadata and address, and what the blocks are like. */
void content_read_whole(struct content_reader *r, struct span url)
{
    static const uint8_t counted[] = {HTML_article, HTML_h1, HTML_h2, HTML_h3, HTML_p, HTML_li, HTML_table, HTML_tr,
                                      HTML_pre, HTML_form, HTML_input, HTML_img, HTML_time, HTML_a, HTML_button,
                                      HTML_select, HTML_dl, HTML_blockquote, HTML_nav, HTML_section, HTML_code,
                                      HTML_iframe, HTML_video};
    struct content_page *p = r->p;
    const struct html_tree *t = r->t;
    const struct content_node *all = &p->node[0];
    uint32_t tags[HTML_N_TAGS] = {0}, n = 0, money = 0, longs = 0, longest = 0, slashes = 0, digits = 0;
    uint8_t *to = p->page;
    struct content_like most = {.n = 0};

    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const struct html_node *node = &t->node[i];
        tags[node->tag]++;
        if (node->tag == HTML_meta)
            read_meta(r, i);
        else if (node->tag == HTML_script && node->end > i + 1)
            read_types(r, html_text(t, i + 1));
    }
    for (uint32_t i = 0; i < t->n_attrs; i++) {
        const struct html_attr *a = &t->attr[i];
        struct span type = {t->src.p + a->off, a->len};
        const char *slash = a->name == ATTR_itemtype && a->len ? memrchr(type.p, '/', type.n) : NULL;
        if (slash)
            read_words(r, (struct span){slash, type.n - (size_t)(slash - type.p)}, 1);
    }
    const char *path = url.n ? memmem(url.p, url.n, "://", 3) : NULL;
    path = path ? memchr(path + 3, '/', url.n - (size_t)(path + 3 - url.p)) : NULL;
    if (path)
        url = (struct span){path, url.n - (size_t)(path - url.p)};
    else
        url.n = 0;
    read_words(r, url, 4);
    for (size_t k = 0; k < url.n; k++) {
        slashes += url.p[k] == '/';
        digits += ascii_is_digit(url.p[k]);
    }
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const struct content_block *b = &p->block[i];
        money += b->shape[7] > 0;
        longs += b->text >= 200;
        longest = b->text > longest ? b->text : longest;
        const struct content_like *l = content_find_like(p, b->same, CONTENT_SAME);
        if (l->n > 2 && l->text - l->link > most.text - most.link)
            most = *l;
    }
    to[n++] = (uint8_t)content_log(all->text);
    to[n++] = (uint8_t)content_share(all->link, all->text);
    to[n++] = (uint8_t)content_log(all->blocks);
    to[n++] = (uint8_t)content_share(all->para, all->text);
    for (size_t k = 0; k < sizeof counted; k++)
        to[n++] = (uint8_t)content_log(tags[counted[k]]);
    to[n++] = (uint8_t)content_share(most.text, all->text);
    to[n++] = (uint8_t)content_log(most.n);
    to[n++] = (uint8_t)content_log(most.n ? most.text / most.n : 0);
    to[n++] = (uint8_t)content_log(all->blocks ? all->text / all->blocks : 0);
    to[n++] = (uint8_t)content_log(money);
    to[n++] = (uint8_t)content_log(longs);
    to[n++] = (uint8_t)content_log(longest);
    to[n++] = (uint8_t)content_log(slashes);
    to[n++] = (uint8_t)content_log(digits);
    to[n++] = (uint8_t)content_log((uint32_t)(url.n < 1000 ? url.n : 1000));
    to[n++] = (uint8_t)content_log((uint32_t)r->n_title);
}
