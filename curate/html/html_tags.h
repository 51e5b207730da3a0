/* curate/html/html_tags.h -- the element and attribute names that the parser and the
 * extractor know, with what the HTML standard says of each.
 */
#ifndef CURATE_HTML_TAGS_H
#define CURATE_HTML_TAGS_H

#include <stdint.h>

#include "base/mem.h"

enum {
    TAG_BLOCK = 1,    /* a line of its own in text */
    TAG_SPECIAL = 2,  /* the standard's "special": inline end tags do not reach past it */
    TAG_VOID = 4,     /* no content, no end tag */
    TAG_FORMAT = 8,   /* "formatting": may be closed across blocks */
    TAG_RAW = 16,     /* content is text up to the end tag, entities untouched */
    TAG_RCDATA = 32,  /* the same, entities decoded */
    TAG_ENDS_P = 64,  /* its start closes an open p */
    TAG_HEAD = 128,   /* can stand in head */
    TAG_SCOPE = 256,  /* end tags do not reach past it */
    TAG_TABLE = 512,  /* table, tbody, tr ...: only rows and cells belong directly into it */
    TAG_HEADING = 1024,
    TAG_BREAKOUT = 2048 /* ends svg and math when it starts inside */
};

#define TAG_B (TAG_BLOCK | TAG_SPECIAL | TAG_ENDS_P)
#define TAG_I (TAG_FORMAT | TAG_BREAKOUT)

/* name, flags */
#define HTML_TAGS(X) \
    X(html, TAG_BLOCK | TAG_SPECIAL | TAG_SCOPE) X(head, TAG_BLOCK | TAG_SPECIAL) \
    X(body, TAG_BLOCK | TAG_SPECIAL | TAG_BREAKOUT) \
    X(title, TAG_SPECIAL | TAG_RCDATA | TAG_HEAD) X(base, TAG_SPECIAL | TAG_VOID | TAG_HEAD) \
    X(link, TAG_SPECIAL | TAG_VOID | TAG_HEAD) X(meta, TAG_SPECIAL | TAG_VOID | TAG_HEAD) \
    X(style, TAG_SPECIAL | TAG_RAW | TAG_HEAD) X(script, TAG_SPECIAL | TAG_RAW | TAG_HEAD) \
    X(noscript, TAG_SPECIAL | TAG_SCOPE | TAG_RAW | TAG_HEAD) \
    X(template, TAG_SPECIAL | TAG_SCOPE | TAG_HEAD) \
    X(a, TAG_FORMAT) X(b, TAG_I) X(big, TAG_I) X(code, TAG_I) X(em, TAG_I) X(font, TAG_FORMAT) \
    X(i, TAG_I) X(nobr, TAG_I) X(s, TAG_I) X(small, TAG_I) X(strike, TAG_I) X(strong, TAG_I) \
    X(tt, TAG_I) X(u, TAG_I) \
    X(abbr, 0) X(acronym, 0) X(bdi, 0) X(bdo, 0) X(cite, 0) X(data, 0) X(del, 0) X(dfn, 0) \
    X(ins, 0) X(kbd, 0) X(label, 0) X(map, 0) X(mark, 0) X(meter, 0) X(output, 0) \
    X(picture, 0) X(progress, 0) X(q, 0) X(rb, 0) X(rp, 0) X(rt, 0) X(rtc, 0) \
    X(ruby, TAG_BREAKOUT) X(samp, 0) X(slot, 0) X(span, TAG_BREAKOUT) X(sub, TAG_BREAKOUT) \
    X(sup, TAG_BREAKOUT) X(time, 0) X(var, TAG_BREAKOUT) \
    X(audio, 0) X(canvas, 0) X(video, 0) X(datalist, 0) X(svg, 0) X(math, 0) \
    X(object, TAG_SPECIAL | TAG_SCOPE) X(applet, TAG_SPECIAL | TAG_SCOPE) \
    X(marquee, TAG_SPECIAL | TAG_SCOPE) \
    X(button, TAG_SPECIAL) X(select, TAG_SPECIAL) X(option, TAG_BLOCK) X(optgroup, TAG_BLOCK) \
    X(textarea, TAG_SPECIAL | TAG_RCDATA | TAG_BLOCK) X(iframe, TAG_SPECIAL | TAG_RAW) \
    X(noembed, TAG_SPECIAL | TAG_RAW) X(noframes, TAG_SPECIAL | TAG_RAW | TAG_HEAD) \
    X(xmp, TAG_B | TAG_RAW) X(plaintext, TAG_B | TAG_RAW) \
    X(area, TAG_SPECIAL | TAG_VOID) X(br, TAG_SPECIAL | TAG_VOID | TAG_BREAKOUT) \
    X(embed, TAG_SPECIAL | TAG_VOID | TAG_BREAKOUT) X(input, TAG_SPECIAL | TAG_VOID) \
    X(img, TAG_SPECIAL | TAG_VOID | TAG_BREAKOUT) X(param, TAG_SPECIAL | TAG_VOID) \
    X(source, TAG_SPECIAL | TAG_VOID) X(track, TAG_SPECIAL | TAG_VOID) \
    X(wbr, TAG_SPECIAL | TAG_VOID) X(frame, TAG_SPECIAL | TAG_VOID) \
    X(hr, TAG_B | TAG_VOID | TAG_BREAKOUT) \
    X(address, TAG_B) X(article, TAG_B) X(aside, TAG_B) X(blockquote, TAG_B | TAG_BREAKOUT) \
    X(center, TAG_B | TAG_BREAKOUT) X(dd, TAG_B | TAG_BREAKOUT) X(details, TAG_B) \
    X(dialog, TAG_B) X(dir, TAG_B) X(div, TAG_B | TAG_BREAKOUT) X(dl, TAG_B | TAG_BREAKOUT) \
    X(dt, TAG_B | TAG_BREAKOUT) X(fieldset, TAG_B) X(figcaption, TAG_B) X(figure, TAG_B) \
    X(footer, TAG_B) X(form, TAG_B) X(frameset, TAG_BLOCK | TAG_SPECIAL) \
    X(h1, TAG_B | TAG_HEADING | TAG_BREAKOUT) X(h2, TAG_B | TAG_HEADING | TAG_BREAKOUT) \
    X(h3, TAG_B | TAG_HEADING | TAG_BREAKOUT) X(h4, TAG_B | TAG_HEADING | TAG_BREAKOUT) \
    X(h5, TAG_B | TAG_HEADING | TAG_BREAKOUT) X(h6, TAG_B | TAG_HEADING | TAG_BREAKOUT) \
    X(header, TAG_B) X(hgroup, TAG_B) X(legend, TAG_BLOCK) X(li, TAG_B | TAG_BREAKOUT) \
    X(listing, TAG_B) X(main, TAG_B) X(menu, TAG_B | TAG_BREAKOUT) X(nav, TAG_B) \
    X(ol, TAG_B | TAG_BREAKOUT) X(p, TAG_B | TAG_BREAKOUT) X(pre, TAG_B | TAG_BREAKOUT) \
    X(search, TAG_B) X(section, TAG_B) X(summary, TAG_B) X(ul, TAG_B | TAG_BREAKOUT) \
    X(table, TAG_B | TAG_SCOPE | TAG_TABLE | TAG_BREAKOUT) \
    X(caption, TAG_BLOCK | TAG_SPECIAL | TAG_SCOPE) X(colgroup, TAG_SPECIAL) \
    X(col, TAG_SPECIAL | TAG_VOID) X(tbody, TAG_BLOCK | TAG_SPECIAL | TAG_TABLE) \
    X(thead, TAG_BLOCK | TAG_SPECIAL | TAG_TABLE) X(tfoot, TAG_BLOCK | TAG_SPECIAL | TAG_TABLE) \
    X(tr, TAG_BLOCK | TAG_SPECIAL | TAG_TABLE) X(td, TAG_BLOCK | TAG_SPECIAL | TAG_SCOPE) \
    X(th, TAG_BLOCK | TAG_SPECIAL | TAG_SCOPE) \
    X(annotation, 0) X(foreignobject, TAG_BLOCK | TAG_SCOPE) X(desc, TAG_SCOPE) \
    X(mtext, TAG_SCOPE)

enum html_tag {
    HTML_text,    /* not an element: a piece of text */
    HTML_unknown, /* an element of another name: inline */
#define X(name, flags) HTML_##name,
    HTML_TAGS(X)
#undef X
    HTML_N_TAGS
};

/* Enumerator, name. */
#define HTML_ATTRS(X) \
    X(id, "id") X(class, "class") X(href, "href") X(rel, "rel") X(role, "role") \
    X(style, "style") X(hidden, "hidden") X(aria_hidden, "aria-hidden") \
    X(itemprop, "itemprop") X(itemtype, "itemtype") X(property, "property") X(name, "name") \
    X(content, "content") X(datetime, "datetime") X(lang, "lang") X(xml_lang, "xml:lang") \
    X(alt, "alt") X(src, "src") X(type, "type") X(title, "title") X(start, "start") \
    X(encoding, "encoding") X(alttext, "alttext") X(http_equiv, "http-equiv") \
    X(aria_label, "aria-label") X(data_testid, "data-testid") X(data_component, "data-component")

enum html_attr_name {
    ATTR_none,
#define X(id, name) ATTR_##id,
    HTML_ATTRS(X)
#undef X
    HTML_N_ATTRS
};

extern const uint16_t html_tag_flags[HTML_N_TAGS];

/* Finds names by hash.  Fill once, then read from any thread. */
struct html_names {
    uint8_t tag[1024], attr[256];
};
void html_names_init(struct html_names *names);
/* name: n bytes in lower case, with html_name_hash() over them. */
enum html_tag html_tag_find(const struct html_names *names, const char *name, size_t n,
                            uint32_t hash);
enum html_attr_name html_attr_find(const struct html_names *names, const char *name, size_t n,
                                   uint32_t hash);
static inline uint32_t html_name_hash(uint32_t h, char c)
{
    return (h ^ (uint8_t)c) * 0x01000193u;
}
enum { HTML_NAME_HASH_START = 0x55555 };
#endif
