#include "curate/html/content_features_parts.h"

#include <stdlib.h>

#include "base/ascii.h"
#include "base/hash.h"

enum { WORDS_MAX = 30, NAME_MAX_WORDS = 48 }; /* longer texts and values say little by a word */

/* ---- features ---- */

unsigned content_score_level(int s)
{
    s += CONTENT_LEVELS / 2;
    return s < 0 ? 0 : s >= CONTENT_LEVELS ? CONTENT_LEVELS - 1 : (unsigned)s;
}

/* ---- tokens ---- */

uint32_t content_lexicon_slot(const struct content_lexicon *l, uint32_t hash)
{
    uint32_t i = (hash ^ hash >> 15) & (CONTENT_LEXICON_SLOTS - 1);

    while (l->hash[i] && l->hash[i] != hash)
        i = (i + 1) & (CONTENT_LEXICON_SLOTS - 1);
    return i;
}

/* Where the bit of a hash is; the bit itself is hash % 64. */
static uint32_t known_at(uint32_t hash)
{
    return (hash >> 6 ^ hash >> 16) % (sizeof((struct content_lexicon *)0)->known / sizeof(uint64_t));
}

void content_lexicon_put(struct content_lexicon *l, uint32_t hash, int score, unsigned token)
{
    uint32_t i = content_lexicon_slot(l, hash);

    l->known[known_at(hash)] |= 1ull << hash % 64;
    l->hash[i] = hash;
    l->score[i] = (int8_t)score;
    l->token[i] = (uint16_t)token;
}

int content_see(struct content_reader *r, uint32_t hash, uint32_t where)
{
    const struct content_lexicon *l = r->lexicon;
    uint32_t i;

    hash += !hash;
    if (r->p->seen)
        r->p->seen(r->p->arg, hash, where);
    if (!(l->known[known_at(hash)] >> hash % 64 & 1))
        return 0;
    i = content_lexicon_slot(l, hash);
    if (l->token[i])
        r->p->page[CONTENT_PAGE_NUMBERS + l->token[i] - 1] = 1;
    return l->score[i];
}

static void class_score(struct content_memo *at, int s)
{
    at->sum = (int16_t)(at->sum + s);
    if (abs(s) > abs(at->own))
        at->own = (int8_t)s;
    if (s < at->low)
        at->low = (int8_t)s;
    if (s > at->high)
        at->high = (int8_t)s;
}

/* The words of a value of class, id, role ...: what stands between separators and changes of case, and the names
 * themselves, without digits. */
static void read_value(struct content_reader *r, struct content_memo *at, struct span v, uint32_t node)
{
    const char *p = v.p, *end = v.p + v.n;
    int left = NAME_MAX_WORDS;

    while (p < end && left > 0) {
        uint32_t name = CONTENT_OF_CLASS ^ 0xFF, word = CONTENT_OF_CLASS;
        int n = 0, n_words = 0;
        bool lower = false;
        for (; p < end && !ascii_is_html_space(*p); p++) {
            bool letter = ascii_is_letter((unsigned char)*p), is_upper = letter && !(*p & 0x20);
            if (n && (!letter || (lower && is_upper))) {
                if (n > 1 && left-- > 0)
                    class_score(at, content_see(r, word, node));
                n_words++;
                n = 0;
                word = CONTENT_OF_CLASS;
            }
            lower = letter && !is_upper;
            if (!letter)
                continue;
            word = html_name_hash(word, (char)(*p | 0x20));
            name = html_name_hash(name, (char)(*p | 0x20));
            n++;
        }
        if (n > 1 && left-- > 0)
            class_score(at, content_see(r, word, node));
        if (n_words && left-- > 0)
            class_score(at, content_see(r, name, node));
        p++;
    }
}

/* A class without its digits, as a hash. */
static uint32_t hash_class(struct span class)
{
    uint32_t hash = HTML_NAME_HASH_START;

    for (size_t i = 0; i < class.n; i++)
        if (!ascii_is_digit((unsigned char)class.p[i]))
            hash = html_name_hash(hash, class.p[i]);
    return hash;
}

/* What the value of an attribute of a node says; good until the next is asked for. */
static const struct content_memo *value_says(struct content_reader *r, const struct html_attr *a, uint32_t node)
{
    struct span v = {r->t->src.p + a->off, a->len};
    uint64_t key = hash_xxh3_64_seed(v, a->name);
    struct content_memo *memo = &r->p->memo[key % CONTENT_MEMO];

    if (memo->key != key || r->p->seen) {
        *memo = (struct content_memo){.key = key, .hints = content_value_hints(r->words, a->name, v),
                                      .like = a->name == ATTR_class ? hash_class(v) : HTML_NAME_HASH_START};
        read_value(r, memo, v, node);
    }
    return memo;
}

/* Fills r->at with what the attributes of node i say. */
static void read_attributes(struct content_reader *r, uint32_t i)
{
    const struct html_node *n = &r->t->node[i];
    struct content_memo *at = &r->at;

    *at = (struct content_memo){.like = n->tag};
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        const struct html_attr *a = &r->t->attr[n->first + k];
        const struct content_memo *v;

        if (!content_names(a->name) || !a->len)
            continue;
        v = value_says(r, a, i);
        at->hints |= a->name == ATTR_id && content_is_slug(r->t, i, a) ? 0 : v->hints;
        at->sum = (int16_t)(at->sum + v->sum);
        at->own = abs(v->own) > abs(at->own) ? v->own : at->own;
        at->low = v->low < at->low ? v->low : at->low;
        at->high = v->high > at->high ? v->high : at->high;
        at->like = v->like != HTML_NAME_HASH_START ? content_mix(at->like, v->like) : at->like;
    }
}

/* ---- elements ---- */

/* Bits of content_node.tags, in the order of the features from CF_NAV on. */
static const uint32_t tag_bits[HTML_N_TAGS] = {
#define BIT(name) (1u << (CF_##name - CF_NAV))
    [HTML_nav] = BIT(NAV), [HTML_header] = BIT(HEADER), [HTML_footer] = BIT(FOOTER), [HTML_aside] = BIT(ASIDE),
    [HTML_article] = BIT(IN_ARTICLE), [HTML_main] = BIT(MAIN), [HTML_section] = BIT(SECTION), [HTML_form] = BIT(FORM),
    [HTML_fieldset] = BIT(FORM), [HTML_button] = BIT(BUTTON), [HTML_label] = BIT(BUTTON), [HTML_textarea] = BIT(BUTTON),
    [HTML_dialog] = BIT(DIALOG), [HTML_figure] = BIT(FIGURE), [HTML_blockquote] = BIT(QUOTE),
    [HTML_noscript] = BIT(NOSCRIPT), [HTML_details] = BIT(DETAILS), [HTML_summary] = BIT(DETAILS),
    [HTML_pre] = BIT(CODE), [HTML_code] = BIT(CODE), [HTML_b] = BIT(BOLD), [HTML_strong] = BIT(BOLD),
    [HTML_time] = BIT(TIME),
};

/* How CF_TAG numbers the elements that blocks stand in; headings first. */
const uint8_t content_tag_order[HTML_N_TAGS] = {
    [HTML_h1] = 1, [HTML_h2] = 2, [HTML_h3] = 3, [HTML_h4] = 4, [HTML_h5] = 5, [HTML_h6] = 6, [HTML_p] = 10,
    [HTML_blockquote] = 11, [HTML_pre] = 12, [HTML_dd] = 13, [HTML_dt] = 14, [HTML_li] = 15, [HTML_td] = 16,
    [HTML_th] = 17, [HTML_div] = 18, [HTML_section] = 19, [HTML_article] = 20, [HTML_figcaption] = 21,
    [HTML_address] = 22, [HTML_header] = 23, [HTML_form] = 24, [HTML_footer] = 25, [HTML_nav] = 26, [HTML_body] = 27,
};

static bool is_block(const struct html_tree *t, uint32_t i)
{
    return html_tag_flags[t->node[i].tag] & TAG_BLOCK;
}

/* What is handed down the tree. */
void content_read_nodes(struct content_reader *r)
{
    const struct html_tree *t = r->t;
    struct content_node *node = r->p->node;

    node[0] = (struct content_node){.like = HTML_html};
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const struct html_node *n = &t->node[i];
        const struct content_node *up = &node[n->parent];
        struct content_node *at = &node[i];
        if (n->tag == HTML_text)
            continue; /* its parent speaks for it */
        if (r->skip[i]) {
            for (uint32_t k = i; k < n->end; k++)
                node[k] = (struct content_node){.depth = 0};
            i = n->end - 1;
            continue;
        }
        *at = *up;
        at->text = at->link = at->para = at->blocks = 0;
        if (n->n_attrs)
            read_attributes(r, i);
        else
            r->at = (struct content_memo){.like = n->tag};
        at->hints = r->at.hints;
        at->near = at->hints | up->hints | node[t->node[n->parent].parent].hints;
        at->under |= at->hints;
        at->tags |= tag_bits[n->tag] | (n->n_attrs && content_is_hidden(t, i) ? BIT(HIDDEN) : 0);
        at->like = r->at.like;
        at->own = r->at.own;
        at->sum = (int16_t)(up->sum * 3 / 4 + r->at.sum);
        at->low = r->at.low < up->low ? r->at.low : up->low;
        at->high = r->at.high > up->high ? r->at.high : up->high;
        at->depth = (uint8_t)(up->depth + (up->depth < 255));
        at->lists = (uint8_t)(up->lists + ((n->tag == HTML_ul || n->tag == HTML_ol) && up->lists < 63));
        at->tables = (uint8_t)(up->tables + (n->tag == HTML_table && up->tables < 63));
    }
}

/* ---- blocks ---- */

/* What a byte counts as, a byte of the sum for each: letters, capitals, digits, commas, stops, bars, signs of money,
 * columns. */
enum { LETTER, CAPITAL, DIGIT, COMMA, STOP, BAR, MONEY, COLUMN };
struct counts {
    uint32_t n[8];
};

void content_lexicon_init(struct content_lexicon *x)
{
    memset(x, 0, sizeof *x);
    for (int c = 0; c < 256; c++) {
        bool upper = c < 0x80 && ascii_is_upper((char)c), digit = c < 0x80 && ascii_is_digit((char)c);
        uint64_t is[8] = {[LETTER] = upper || (c < 0x80 && ascii_is_lower((char)c)) || c >= 0xC0,
                          [CAPITAL] = upper,
                          [DIGIT] = digit,
                          [COMMA] = c == ',' || c == ';',
                          [STOP] = c == '.' || c == '!' || c == '?',
                          [BAR] = c == '|' || c == '/' || c == '>' || c == '@',
                          [MONEY] = c == '$',
                          [COLUMN] = (c > ' ' && c < 0x80) + (c >= 0xC0) + (c >= 0xE3 && c < 0xF0)};
        for (int k = 0; k < 8; k++)
            x->lanes[c] |= is[k] << 8 * k;
        if (upper || digit || c >= 0x80 || ascii_is_lower((char)c))
            x->letter[c] = (uint8_t)(c == 0xE2 || c == 0xC2 ? 1 : c < 0x80 ? c | 0x20 : c);
        else
            x->letter[c] = c == '<' || c == '&';
    }
}

static void count_bytes(const uint64_t lanes[256], struct span s, struct counts *c)
{
    const unsigned char *p = (const unsigned char *)s.p, *end = p + s.n;
    unsigned any = 0;

    while (p < end) {
        const unsigned char *to = end - p > 120 ? p + 120 : end;
        uint64_t sum = 0;
        for (; p < to; p++) {
            sum += lanes[*p];
            any |= *p;
        }
        for (int k = 0; k < 8; k++)
            c->n[k] += sum >> 8 * k & 0xFF;
    }
    if (any < 0x80)
        return;
    for (p = (const unsigned char *)s.p; (p = memchr(p, 0xE2, (size_t)(end - p))) && end - p > 2; p++)
        c->n[MONEY] += p[1] == 0x82 && p[2] == 0xAC; /* the euro sign */
    for (p = (const unsigned char *)s.p; (p = memchr(p, 0xC2, (size_t)(end - p))) && end - p > 1; p++)
        c->n[MONEY] += p[1] == 0xA3 || p[1] == 0xA5;
}

/* Runs of bytes above the blank, eight bytes at a time. */
static uint32_t count_words(struct span s)
{
    const uint64_t high = 0x8080808080808080u;
    uint64_t before = 0; /* whether the last byte was one, in the lowest byte */
    uint32_t n = 0;

    for (size_t i = 0; i < s.n; i += 8) {
        uint64_t v = 0; /* little-endian: the first byte lowest; what lies behind the end is blank */
        memcpy(&v, s.p + i, s.n - i < 8 ? s.n - i : 8);
        uint64_t word = (((v & ~high) + 0x5F5F5F5F5F5F5F5Fu) | v) & high;
        n += (uint32_t)__builtin_popcountll(word & ~(word << 8 | before));
        before = word >> 56;
    }
    return n;
}

/* What a text begins or ends with. */
static unsigned char_class(unsigned char c)
{
    return ascii_is_upper((char)c) ? 1 : ascii_is_lower((char)c) ? 2 : c >= '0' && c <= '9' ? 3 : c == '.' ? 4 :
           c == '!' || c == '?' ? 5 : c == ':' ? 6 : c == ',' || c == ';' ? 7 : c == ')' || c == '(' ? 8 :
           c == '"' || c == '\'' ? 9 : c == '-' || c == '*' ? 10 : c == '#' || c == '@' ? 11 : c >= 0x80 ? 12 : 13;
}

/* Words of a short text, and the line as a whole. */
static void read_line(struct content_reader *r, struct content_block *b, uint32_t where)
{
    const struct html_tree *t = r->t;
    uint32_t word = CONTENT_OF_TEXT, line = CONTENT_OF_LINE;
    int n = 0, sum = 0;

    for (uint32_t i = b->first; i <= b->last + 1; i++) {
        bool text = i <= b->last && t->node[i].tag == HTML_text && !r->skip[i];
        struct span s = text ? html_text(t, i) : (struct span){" ", i > b->last};
        for (size_t k = 0; k < s.n; k++) {
            char c = s.p[k];
            if (ascii_is_letter((unsigned char)c) || c < 0) {
                c = c < 0 ? c : (char)(c | 0x20);
                word = html_name_hash(word, c);
                line = html_name_hash(line, c);
                n++;
                continue;
            }
            if (n > 1) {
                int score = content_see(r, word, where);
                sum += score;
                b->text_low = score < b->text_low ? (int8_t)score : b->text_low;
                b->text_high = score > b->text_high ? (int8_t)score : b->text_high;
            }
            n = 0;
            word = CONTENT_OF_TEXT;
        }
    }
    b->text_sum = (int8_t)(sum < -100 ? -100 : sum > 100 ? 100 : sum);
    b->line = (int8_t)content_see(r, line, where);
}

uint32_t content_block_para(const struct content_block *b)
{
    return b->text >= PARA_MIN && b->link * 2 < b->text ? b->text - b->link : 0;
}

static void finish_block(struct content_reader *r, struct content_block *b, const struct counts *c)
{
    struct content_page *p = r->p;
    const struct html_tree *t = r->t;
    struct content_node *node = p->node;
    uint32_t up = t->node[b->node].parent, letters = c->n[LETTER] + !c->n[LETTER];
    struct span first = html_text(t, b->first), last = html_text(t, b->last);
    uint64_t copy = 0;

    while (first.n && (unsigned char)*first.p <= ' ')
        first.p++, first.n--;
    while (last.n && (unsigned char)last.p[last.n - 1] <= ' ')
        last.n--;
    b->same = b->like = content_mix(node[b->node].like, node[up].like);
    for (int k = 0; k < 2; k++)
        b->same = content_mix(b->same, node[up = t->node[up].parent].like);
    b->shape[0] = (uint8_t)content_log(c->n[COMMA]);
    b->shape[1] = (uint8_t)content_log(c->n[STOP]);
    b->shape[2] = (uint8_t)char_class(last.n ? (unsigned char)last.p[last.n - 1] : 0);
    b->shape[3] = (uint8_t)content_share(c->n[DIGIT], b->text);
    b->shape[4] = (uint8_t)content_share(c->n[CAPITAL], letters);
    b->shape[5] = (uint8_t)(b->words ? b->text * 4 / b->words < 63 ? b->text * 4 / b->words : 63 : 0);
    b->shape[6] = (uint8_t)content_log(c->n[BAR]);
    b->shape[7] = (uint8_t)content_log(c->n[MONEY]);
    b->shape[8] = (uint8_t)char_class(first.n ? (unsigned char)first.p[0] : 0);
    for (uint32_t i = b->first; i <= b->last; i++)
        if (t->node[i].tag == HTML_text && !r->skip[i])
            copy = hash_xxh3_64_seed(html_text(t, i), copy);
    b->copy = (uint32_t)(copy ^ copy >> 32);
    if (b->words <= WORDS_MAX)
        read_line(r, b, t->n_nodes + p->n_blocks);
    node[b->node].text += b->text;
    node[b->node].link += b->link;
    node[b->node].para += content_block_para(b);
    node[b->node].blocks++;
    p->text += b->text;
    p->block[p->n_blocks++] = *b;
}

/* Cuts the text into blocks: at borders of block elements, and where two <br> follow each other. */
int content_read_blocks(struct content_reader *r)
{
    struct content_page *p = r->p;
    const struct html_tree *t = r->t;
    struct content_block b = {0};
    struct counts c = {0};
    uint32_t breaks = 0, block = 0, block_end = t->n_nodes, link_end = 0, article = 0, article_end = 0;

    p->n_blocks = p->text = 0;
    for (uint32_t i = 1; i <= t->n_nodes; i++) {
        const struct html_node *n = &t->node[i];
        bool end = i == t->n_nodes, border = end;
        while (!end && i >= block_end) {
            block = t->node[block].parent;
            while (block && !is_block(t, block))
                block = t->node[block].parent;
            block_end = block ? t->node[block].end : t->n_nodes;
            border = true;
        }
        if (!end && n->tag != HTML_text && is_block(t, i)) {
            border = true;
            if (!r->skip[i] && n->end > i + 1) {
                block = i;
                block_end = n->end;
            }
        }
        breaks = !end && n->tag == HTML_br ? breaks + 1 : breaks;
        if ((border || breaks > 1) && b.text) {
            finish_block(r, &b, &c);
            b.text = 0;
        }
        if (end)
            break;
        if (r->skip[i]) {
            i = n->end - 1;
            continue;
        }
        if (n->tag == HTML_a && n->end > i + 1 && i >= link_end) {
            link_end = n->end;
            b.links++;
        }
        if (n->tag == HTML_article && i >= article_end) {
            article = ++r->n_articles;
            article_end = n->end;
        }
        if (n->tag != HTML_text || n->flags & HTML_SPACE)
            continue;
        struct span s = html_text(t, i);
        struct counts now = {0};
        count_bytes(r->lexicon->lanes, s, &now);
        if (!now.n[COLUMN])
            continue;
        if (!b.text) {
            uint32_t links = b.links && i < link_end;
            if (mem_grow(&p->block, &p->cap_blocks, p->n_blocks + 1, sizeof *p->block) < 0)
                return ERR_NOMEM;
            b = (struct content_block){.first = i, .node = block, .links = links, .main = i < article_end ? article : 0};
            c = (struct counts){0};
        }
        breaks = 0;
        b.last = i;
        b.text += now.n[COLUMN];
        b.link += n->flags & HTML_IN_LINK ? now.n[COLUMN] : 0;
        b.words += count_words(s);
        for (int k = 0; k < 8; k++)
            c.n[k] += now.n[k];
    }
    return 0;
}

/* Adds up what blocks have put into their elements, and finds the bigger element around each. */
void content_sum_nodes(struct content_reader *r)
{
    const struct html_tree *t = r->t;
    struct content_node *node = r->p->node;

    for (uint32_t i = t->n_nodes; i-- > 1;) {
        struct content_node *up = &node[t->node[i].parent];
        if (t->node[i].tag == HTML_text)
            continue;
        up->text += node[i].text;
        up->link += node[i].link;
        up->para += node[i].para;
        up->blocks += node[i].blocks;
    }
    node[0].bigger = 0;
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        uint32_t up = t->node[i].parent;
        if (t->node[i].tag != HTML_text)
            node[i].bigger = node[up].blocks > node[i].blocks ? up : node[up].bigger;
    }
}
