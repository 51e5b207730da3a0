/* curate/html/content_features_parts.h -- what the parts of reading a page into features share; nobody else includes it. */
#ifndef CURATE_CONTENT_FEATURES_PARTS_H
#define CURATE_CONTENT_FEATURES_PARTS_H

#include "curate/html/content_model.h"
#include "curate/html/main_content_parts.h"

/* What a token is of: its hash begins with this. */
enum {
    CONTENT_OF_CLASS = HTML_NAME_HASH_START, CONTENT_OF_TEXT = 0x1234567, CONTENT_OF_LINE = 0x2345671,
    CONTENT_OF_META = 0x3456712
};

/* Blocks alike, or of the same text. */
struct content_like {
    uint32_t hash, n, text, link; /* n 0: empty */
    uint64_t first;               /* as content_node.first */
};
enum content_alike { CONTENT_LIKE = 1, CONTENT_SAME, CONTENT_COPY, CONTENT_LIKES = 3 };

/* What the attributes of an element say, or the value of one, by its bytes: most come again. */
struct content_memo {
    uint64_t key;
    uint32_t hints, like;
    int16_t sum;
    int8_t own, low, high;
};
enum { CONTENT_MEMO = 1024 };

/* A page that is being read. */
struct content_reader {
    struct content_page *p;
    const struct html_tree *t;
    const struct content_words *words;
    const struct content_lexicon *lexicon;
    const uint8_t *skip;
    char title[CONTENT_KEY_MAX];
    size_t n_title;
    uint32_t n_articles;
    struct content_memo at; /* being made */
};

/* How CF_TAG numbers the elements that blocks stand in. */
extern const uint8_t content_tag_order[HTML_N_TAGS];

/* A score of the lexicon as a feature. */
unsigned content_score_level(int s);
/* Two hashes as one. */
static inline uint32_t content_mix(uint32_t a, uint32_t b)
{
    uint32_t h = (a ^ b * 0x9E3779B1u) * 0x85EBCA6Bu;

    return h ^ h >> 15;
}
/* Columns of a paragraph: a text that is long enough and not mostly links. */
uint32_t content_block_para(const struct content_block *b);

/* The score of a token, 0 if it is not known; notes it as one of the page's. */
int content_see(struct content_reader *r, uint32_t hash, uint32_t where);
/* Elements: what is handed down the tree; blocks; sums up the tree. */
void content_read_nodes(struct content_reader *r);
int content_read_blocks(struct content_reader *r);
void content_sum_nodes(struct content_reader *r);
/* The count of blocks alike. */
struct content_like *content_find_like(struct content_page *p, uint32_t hash, enum content_alike of);
/* Reads what the page states as data; then of each block the features from CF_LD_BODY on. */
int content_read_stated(struct content_reader *r);
void content_set_stated(struct content_reader *r);
/* Fills p->page: counts of elements, tokens of metadata and of the address, what the blocks are like. */
void content_read_whole(struct content_reader *r, struct span url);
#endif
