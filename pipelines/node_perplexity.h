/* pipelines/node_perplexity.h -- the stage "perplexity" (curate/language/perplexity.h) with a tokenizer, whose pieces are the
 * words of the language model.
 *
 * Here, as curation knows no tokenizers.  Pieces are looked up by their numbers, which stand beside the tokenizer's ids, so a
 * text's pieces are never put together to a line and taken apart again.
 */
#ifndef PIPELINES_NODE_PERPLEXITY_H
#define PIPELINES_NODE_PERPLEXITY_H

#include "curate/language/perplexity.h"
#include "tokenize/tokenizer.h"

struct lm_conf {
    struct perplexity_conf lm;
    const char *tokenizer; /* a SentencePiece model; NULL: words are what white space divides */
    struct tokenizer_settings settings;
};
void lm_conf_init(struct lm_conf *c);
#define LM_OPTS(c)                                                                                                  \
    PERPLEXITY_OPTS((c).lm),                                                                                        \
    OPT_IN(0, "tokenizer", &(c).tokenizer, "FILE", "SentencePiece model whose pieces are the words"), \
    OPT_ENUM(0, "sentencepiece", &(c).settings.sentencepiece, TOKENIZER_SPM_NAMES, "whose pieces: see quern tokenizer")

/* ERR_UNSUPPORTED: a tokenizer of another kind; errors of tokenizer_open_as and perplexity_stage_open. */
int lm_stage_open(struct stage *s, const struct lm_conf *c, struct err *e);
#endif
