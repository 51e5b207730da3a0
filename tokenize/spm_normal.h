/* tokenize/spm_normal.h -- text as SentencePiece's models want it: rules for characters
 * applied, white space single and written U+2581. */
#ifndef TOKENIZE_SPM_NORMAL_H
#define TOKENIZE_SPM_NORMAL_H

#include "base/isa.h"
#include "tokenize/charsmap.h"
#include "tokenize/marks.h"
#include "tokenize/trie.h"

/* Zero-initialise, fill in, then spm_normal_finish. */
struct spm_normal {
    struct charsmap map;
    struct trie user; /* pieces that stay as they are */
    bool has_user;
    bool dummy_prefix, remove_extra, escape, suffix;
    /* made by spm_normal_finish */
    uint8_t plain[128]; /* before another ASCII byte or the end it stays what it is */
    uint8_t before[256]; /* first bytes of characters before which it does, all of ASCII among them */
    uint8_t plain_two[2048]; /* characters of two bytes, by code point: so do they before these and the end */
};

void spm_normal_finish(struct spm_normal *s);
void spm_normal_free(struct spm_normal *s);
/* Appends text so normalised.  Bytes that are not UTF-8 become U+FFFD each.  ERR_NOMEM. */
int spm_normalize(const struct spm_normal *s, struct span text, struct buf *out, struct err *e);

/* Takes plain text off `in`, `most` bytes at most and not the last ones; *space: a space came last.  o has room for three bytes
 * for each of `most`.  Returns the end of what it wrote. */
ISA_DECLARE(char *, spm_put_plain, (const struct spm_normal *s, struct span *in, size_t most, char *o, bool *space));

#endif
