#include "curate/html/html_tags.h"

#include <string.h>

const uint16_t html_tag_flags[HTML_N_TAGS] = {
    [HTML_text] = 0,
#define X(name, flags) [HTML_##name] = flags,
    HTML_TAGS(X)
#undef X
};

static const char *const tag_names[HTML_N_TAGS] = {
    [HTML_text] = "",
    [HTML_unknown] = "",
#define X(name, flags) [HTML_##name] = #name,
    HTML_TAGS(X)
#undef X
};

static const char *const attr_names[HTML_N_ATTRS] = {
    [ATTR_none] = "",
#define X(id, name) [ATTR_##id] = name,
    HTML_ATTRS(X)
#undef X
};

static const uint8_t tag_length[HTML_N_TAGS] = {
#define X(name, flags) [HTML_##name] = sizeof #name - 1,
    HTML_TAGS(X)
#undef X
};

static const uint8_t attr_length[HTML_N_ATTRS] = {
#define X(id, name) [ATTR_##id] = sizeof name - 1,
    HTML_ATTRS(X)
#undef X
};

static uint32_t hash_of(const char *name)
{
    uint32_t h = HTML_NAME_HASH_START;

    while (*name)
        h = html_name_hash(h, *name++);
    return h;
}

/* Open addressing; 0 is an empty slot. */
static void put(uint8_t *table, uint32_t mask, uint32_t hash, uint8_t value)
{
    uint32_t i = (hash ^ hash >> 15) & mask;

    while (table[i])
        i = (i + 1) & mask;
    table[i] = value;
}

static unsigned find(const uint8_t *table, uint32_t mask, uint32_t hash, const char *const *names, const uint8_t *length,
                     const char *name, size_t n)
{
    uint32_t i = (hash ^ hash >> 15) & mask;

    for (; table[i]; i = (i + 1) & mask)
        if (length[table[i]] == n && memcmp(names[table[i]], name, n) == 0)
            return table[i];
    return 0;
}

void html_names_init(struct html_names *names)
{
    memset(names, 0, sizeof *names);
    for (int i = HTML_unknown + 1; i < HTML_N_TAGS; i++)
        put(names->tag, sizeof names->tag - 1, hash_of(tag_names[i]), (uint8_t)i);
    for (int i = 1; i < HTML_N_ATTRS; i++)
        put(names->attr, sizeof names->attr - 1, hash_of(attr_names[i]), (uint8_t)i);
}

enum html_tag html_tag_find(const struct html_names *names, const char *name, size_t n,
                            uint32_t hash)
{
    unsigned i = find(names->tag, sizeof names->tag - 1, hash, tag_names, tag_length, name, n);

    return i ? (enum html_tag)i : HTML_unknown;
}

enum html_attr_name html_attr_find(const struct html_names *names, const char *name, size_t n,
                                   uint32_t hash)
{
    return (enum html_attr_name)find(names->attr, sizeof names->attr - 1, hash, attr_names, attr_length,
                                     name, n);
}
