/* curate/html/content_features.h -- a page cut into blocks, and what is known of each: the input of the models that say
 * what is content and of what kind a page is (curate/html/content_model.h).
 *
 * A block is a run of text without a block's border: what a reader sees as a line, a paragraph, a cell.  All features are
 * numbers from 0 to CONTENT_LEVELS - 1, computed in integers, so that they are the same everywhere.  Lengths are in
 * columns (docs/extract.md) and logarithmic, four steps an octave; shares are sixtieths.
 */
#ifndef CURATE_CONTENT_FEATURES_H
#define CURATE_CONTENT_FEATURES_H

#include "curate/html/html_ld.h"
#include "curate/html/main_content.h"

enum { CONTENT_LEVELS = 64, CONTENT_SCALES = 4, CONTENT_NEAR = 4, CONTENT_HINTS = 18, CONTENT_TOKENS = 256 };

enum content_kind {
    CONTENT_ARTICLE, CONTENT_COLLECTION, CONTENT_DOCUMENTATION, CONTENT_FORUM, CONTENT_LISTING, CONTENT_PRODUCT,
    CONTENT_SERVICE, CONTENT_KINDS
};

/* Features of a block. */
#define CONTENT_BLOCK_FEATURES(X) \
    /* its text */ \
    X(LEN) X(WORDS) X(LINK) X(LINKS) X(COMMAS) X(STOPS) X(END) X(DIGITS) X(UPPER) X(WORD_LEN) X(BARS) X(CURRENCY) \
    X(START) X(PHRASE) X(TITLE) X(COPIES) \
    /* where it stands */ \
    X(TAG) X(HEADING) X(DEPTH) X(TEXT_BEFORE) X(BLOCKS_BEFORE) X(BLOCKS_BEHIND) X(HEADLINE) X(FROM_HEADLINE) \
    X(LAST_HEADING) X(FROM_HEADING) X(RELATED) X(IN_MAIN) X(IN_HALF) X(ARTICLE) X(LISTS) X(TABLES) \
    /* elements around it */ \
    X(NAV) X(HEADER) X(FOOTER) X(ASIDE) X(IN_ARTICLE) X(MAIN) X(SECTION) X(FORM) X(BUTTON) X(DIALOG) X(FIGURE) X(QUOTE) \
    X(NOSCRIPT) X(DETAILS) X(HIDDEN) X(CODE) X(BOLD) X(TIME) \
    /* words of classes around it */ \
    X(CLASS_OWN) X(CLASS_SUM) X(CLASS_LOW) X(CLASS_HIGH) \
    /* words of its text */ \
    X(TEXT_SUM) X(TEXT_LOW) X(TEXT_HIGH) X(LINE) \
    /* blocks with the same tags and classes around them */ \
    X(LIKE_N) X(LIKE_LEN) X(LIKE_LINK) X(LIKE_SHARE) X(SAME_N) X(SAME_LEN) X(SAME_LINK) X(SAME_SHARE) \
    /* the blocks from five before to five behind it */ \
    X(AROUND_TEXT) X(AROUND_LINK) X(AROUND_PARA) \
    /* the last heading, the last one above that, the blocks up to the next one; copies before it */ \
    X(HEAD_SUM) X(HEAD_LINE) X(HEAD_CLASS) X(OVER_SUM) X(OVER_LINE) X(OVER_CLASS) X(PART_TEXT) X(PART_LINK) X(PART_PARA) \
    X(PART_BLOCKS) X(COPY_BEFORE) \
    /* the share of its words that the page states as data, by enum ld_role; 62: too short to tell, 63: none stated */ \
    X(LD_BODY) X(LD_REPLY) X(LD_DESCRIPTION) X(LD_TEASER) X(LD_REVIEW) \
    /* the page */ \
    X(PAGE_TEXT) X(PAGE_LINK) X(PAGE_PARA) X(PAGE_BLOCKS) X(PAGE_ARTICLES) X(PAGE_LD)

enum content_feature {
#define X(name) CF_##name,
    CONTENT_BLOCK_FEATURES(X)
#undef X
    CF_SCALE,                                     /* six for each of the larger boxes around it */
    CF_NEAR = CF_SCALE + 6 * CONTENT_SCALES,      /* five for each of two blocks before and two behind */
    CF_HINT = CF_NEAR + 5 * CONTENT_NEAR,         /* enum HINT_..: 0 none, 1 around it, 2 near it */
    CF_KIND = CF_HINT + CONTENT_HINTS,            /* what the page is, by enum content_kind: set by content_model */
    CF_FIRST = CF_KIND + CONTENT_KINDS,           /* stage 2: scores of stage 1, of itself and around it */
    CONTENT_FIRST = 17,
    CONTENT_FEATURES = CF_FIRST + CONTENT_FIRST
};

/* Features of a page: numbers, then one for each of the tokens that the lexicon marks. */
enum { CONTENT_PAGE_NUMBERS = 40, CONTENT_PAGE_FEATURES = CONTENT_PAGE_NUMBERS + CONTENT_TOKENS };

/* What training has learned of words in classes, texts, addresses and metadata: by hash, a score (positive: content,
 * eighths of a natural logarithm of the odds) and 1 + the number of a page's token, 0 for none. */
enum { CONTENT_LEXICON_SLOTS = 1 << 13 };
struct content_lexicon {
    uint32_t hash[CONTENT_LEXICON_SLOTS]; /* 0: empty */
    int8_t score[CONTENT_LEXICON_SLOTS];
    uint16_t token[CONTENT_LEXICON_SLOTS];
    uint64_t known[1 << 10]; /* a bit for what a hash ends with: most tokens are not in it, which needs no look at hash */
    uint64_t lanes[256]; /* what a byte of text counts as */
    uint8_t letter[256]; /* of a word: the byte in small letters; 0: none; 1: as what follows says */
};
void content_lexicon_init(struct content_lexicon *l);
/* The slot of a token, or the empty one (score and token 0) where it is to stand. */
uint32_t content_lexicon_slot(const struct content_lexicon *l, uint32_t hash);
/* Enters a token, or changes it; at most half of the slots may be taken. */
void content_lexicon_put(struct content_lexicon *l, uint32_t hash, int score, unsigned token);

/* What an element is and what stands below it; nothing is known of text by itself but `own`, which content_keep_blocks
 * sets.  Sums leave out what is skipped. */
struct content_node {
    uint32_t hints, near, under; /* HINT_..: its own; those of it and two elements around it; of all around it */
    uint32_t tags;               /* of elements around it: bits of content_features.c */
    uint32_t text, link, para, blocks;
    uint32_t bigger;             /* the nearest element around it that has more blocks */
    uint32_t like;               /* hash of its tag and classes */
    uint64_t first;              /* of stage 1: probability times columns, summed */
    int16_t sum;                 /* of scores of words of classes, those further out less */
    int8_t own, low, high;
    uint8_t depth, lists, tables;
};

struct content_block {
    uint32_t first, last; /* text nodes */
    uint32_t node;        /* the block element that it stands in */
    uint32_t text, link, words, links;
    uint32_t like, same;  /* hashes: tag and class of its element and one around it; of four */
    uint32_t copy;        /* of its text */
    uint32_t main;        /* number of the article that it stands in, 0 none */
    uint32_t head, over;  /* the block of the last heading, and of the last one of a higher level; its own where there is none */
    int8_t text_sum, text_low, text_high, line; /* scores */
    uint8_t shape[10];    /* CF_COMMAS ... */
};

/* Runs of three words of what a page states as data. */
struct content_gram {
    uint32_t hash; /* 0: empty */
    uint8_t roles; /* bits of enum ld_role */
    bool shown;    /* a block has it too */
};
struct content_grams {
    struct content_gram *slot;
    uint32_t n, mask; /* n 0: none, the table is not set up */
    uint8_t roles;    /* that have any */
    size_t cap;
};

/* What the blocks say that are to be kept. */
struct content_repeats {
    uint32_t *gram; /* runs of three words, block by block */
    struct content_said {
        uint32_t block, from, n; /* its grams */
    } *said;
    struct content_times {
        uint32_t hash, n; /* how often it is said; hash 0: empty */
    } *slot;
    size_t cap_grams, cap_said, cap_slots;
    uint32_t n_grams, n_said, mask;
};

/* A page taken apart.  Zero to start; memory is kept from page to page. */
struct content_page {
    struct content_node *node;
    struct content_block *block;
    uint32_t n_blocks;
    uint8_t *feature; /* CONTENT_FEATURES rows of `stride` bytes, a block a column */
    size_t stride;    /* a multiple of 64, at least n_blocks */
    uint8_t page[CONTENT_PAGE_FEATURES];
    uint32_t text; /* columns of all blocks */
    int32_t *score; /* by block: what the model says, CONTENT_ONE a unit of log odds */

    size_t cap_nodes, cap_blocks, cap_features, cap_like, cap_scores;
    struct content_like *likes;
    uint32_t like_mask;
    struct content_memo *memo;
    struct html_ld ld;
    struct content_grams grams; /* of ld */
    struct content_repeats repeats;
    /* For training: called with each token's hash and the node (below n_nodes) or block (behind) that it is of. */
    void (*seen)(void *arg, uint32_t hash, uint32_t where);
    void *arg;
};

/* Cuts the page into blocks and fills features but CF_KIND and CF_FIRST.  skip: by node, 1 for what is no text
 * (scripts); url: the page's, may be empty; title: may be empty.  Linear in the page.  ERR_NOMEM. */
int content_page_read(struct content_page *p, const struct html_tree *t, const struct content_words *words,
                      const struct content_lexicon *lexicon, const uint8_t *skip, struct span title, struct span url);
/* Where the part of the page ends that begins with block i: before the next heading; each block before the first one is a
 * part of its own. */
uint32_t content_part_end(const struct content_page *p, uint32_t i);
/* For stage 2: of each block the mean probability of those alike, by text, as a feature.  Once a page. */
void content_like_means(struct content_page *p, uint8_t *like, uint8_t *same);
/* Whether the document's own texts (before LD_TEASER) are mostly in no block, and longer than the blocks from cut on;
 * false where several things are described. */
bool content_is_elsewhere(const struct content_page *p, int32_t cut);
/* Sets the score of blocks from cut on to INT32_MIN whose words, 20 or more, are nearly all said by others that stay, the
 * longest block first and of equal ones the last; code stays.  Not for documentation: it says the same for each of several
 * languages.  ERR_NOMEM. */
int content_drop_repeats(struct content_page *p, const struct html_tree *t, const struct content_lexicon *lexicon,
                         const uint8_t *skip, int32_t cut);
void content_page_free(struct content_page *p);

/* Quarters of an octave of n, and sixtieths of a in b, as features. */
static inline unsigned content_log(uint32_t n)
{
    unsigned top;

    if (n < 2)
        return n;
    top = 31 - (unsigned)__builtin_clz(n);
    unsigned step = top * 4 - 2 + (top > 1 ? n >> (top - 2) & 3 : (n & 1) * 2);
    return step < CONTENT_LEVELS ? step : CONTENT_LEVELS - 1;
}

static inline unsigned content_share(uint64_t a, uint64_t b)
{
    return b ? a >= b ? 61 : (unsigned)(a * 60 / b) + (a > 0) : 63;
}
#endif
