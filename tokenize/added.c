#include "tokenize/added.h"

#include "base/utf8.h"
#include "tokenize/hf_table.h"
#include "tokenize/ucd.h"

struct id_key {
    char p[4];
};

static struct id_key id_key(uint32_t id)
{
    return (struct id_key){{(char)(id >> 24), (char)(id >> 16), (char)(id >> 8), (char)id}};
}

static const struct added_token *token_of(const struct added *a, int32_t place)
{
    return place == TRIE_NONE ? NULL : (const struct added_token *)(const void *)a->list.p + place;
}

/* Notes that a token may begin with these two bytes. */
static void note(struct added_set *s, unsigned b, unsigned c)
{
    const unsigned byte[2] = {b, c};

    s->next[b / 8][c] |= (uint8_t)(1 << b % 8);
    for (int k = 0; k < 2; k++) {
        s->low[k][byte[k] & 15] |= s->group[b];
        s->high[k][byte[k] >> 4] |= s->group[b];
    }
}

static int add_text(struct added_set *s, struct span text, int32_t place, struct err *e)
{
    unsigned b = (unsigned char)text.p[0];

    if (trie_find(&s->texts, text.p, text.n) != TRIE_NONE)
        return 0;
    if (!s->group[b]) {
        s->group[b] = (uint8_t)(1 << s->firsts);
        s->firsts = (s->firsts + 1) % 8;
    }
    /* A token of one byte goes with any byte behind it. */
    for (unsigned c = text.n > 1 ? (unsigned char)text.p[1] : 0; c < 256; c += text.n > 1 ? 256 : 1)
        note(s, b, c);
    return trie_add(&s->texts, text, place, e);
}

int added_add(struct added *a, const struct added_token *token, struct err *e)
{
    int32_t place = (int32_t)(a->list.n / sizeof *token);
    const struct added_token *same = added_get(a, token->id);
    struct id_key key = id_key(token->id);
    struct added_token copy = *token;

    if (!same || (same->normalized && !token->normalized))
        TRY(trie_add(&a->ids, (struct span){key.p, sizeof key.p}, place, e));
    copy.text = arena_dup(&a->texts, token->text);
    if (!copy.text.p || buf_put(&a->list, &copy, sizeof copy) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for added tokens");
    return add_text(&a->set[token->normalized], copy.text, place, e);
}

size_t added_skip_space(struct span text, size_t at)
{
    while (at < text.n) {
        uint32_t cp;
        int n = utf8_next(text.p + at, text.p + text.n, &cp);
        if (!(ucd_class(cp) & UCD_SPACE))
            break;
        at += (size_t)n;
    }
    return at;
}

size_t added_skip_space_back(struct span text, size_t at, size_t least)
{
    while (at > least) {
        size_t b = at - 1;
        uint32_t cp;
        while (b > least && ((unsigned char)text.p[b] & 0xC0) == 0x80)
            b--;
        if (b + (size_t)utf8_next(text.p + b, text.p + at, &cp) != at || !(ucd_class(cp) & UCD_SPACE))
            break;
        at = b;
    }
    return at;
}

/* True if neither a word ends at begin nor one starts at end. */
static bool is_single(struct span text, size_t begin, size_t end)
{
    size_t b = begin;
    uint32_t cp;

    if (end < text.n) {
        utf8_next(text.p + end, text.p + text.n, &cp);
        if (hf_class(cp) & HF_WORD)
            return false;
    }
    while (b > 0 && b + 4 > begin && ((unsigned char)text.p[--b] & 0xC0) == 0x80)
        ;
    if (begin == 0)
        return true;
    utf8_next(text.p + b, text.p + begin, &cp);
    return !(hf_class(cp) & HF_WORD);
}

size_t added_candidate_slow(const struct added_set *s, struct span text, size_t at)
{
    for (; at < text.n; at++) {
        unsigned b = (unsigned char)text.p[at];
        if (at + 1 < text.n ? s->next[b / 8][(unsigned char)text.p[at + 1]] >> b % 8 & 1 : s->group[b])
            break;
    }
    return at < text.n ? at : text.n;
}

bool added_find(const struct added *a, bool normalized, struct span text, size_t from, size_t from_text,
                struct added_match *m)
{
    const struct added_set *s = &a->set[normalized];
    const struct added_token *t = NULL;
    size_t at = from, n = 0;

    if (trie_is_empty(&s->texts))
        return false;
    for (;; at++) {
        at = ISA_PICK(added_candidate)(s, text, at);
        if (at >= text.n)
            return false;
        if (!(t = token_of(a, trie_longest(&s->texts, text.p + at, text.n - at, &n))))
            continue;
        if (!t->single_word || is_single(text, at, at + n))
            break;
        at += n - 1;
    }
    m->token = t;
    m->begin = t->lstrip ? from_text < at ? added_skip_space_back(text, at, from_text) : from_text : at;
    m->next = at + n;
    m->end = t->rstrip ? added_skip_space(text, m->next) : m->next;
    return true;
}

const struct added_token *added_get(const struct added *a, uint32_t id)
{
    struct id_key key = id_key(id);

    return token_of(a, trie_find(&a->ids, key.p, sizeof key.p));
}

const struct added_token *added_special(const struct added *a, struct span text)
{
    const struct added_token *found = NULL;
    size_t n;

    for (const struct added_token *t = added_list(a, &n), *end = t + n; t < end; t++)
        if (t->special && span_eq(t->text, text) && (!found || found->normalized > t->normalized))
            found = t;
    return found;
}

void added_free(struct added *a)
{
    for (int k = 0; k < 2; k++)
        trie_free(&a->set[k].texts);
    trie_free(&a->ids);
    buf_free(&a->list);
    arena_free(&a->texts);
    memset(a, 0, sizeof *a);
}
