/* curate/clean/pii.h -- personal data: e-mail addresses, IP addresses, telephone numbers, payment
 * cards, bank accounts, replaced by tags.
 *
 * Every rule is a scanner that looks at each byte a bounded number of times, so the time is
 * linear on any input.  Text without '@' and without digits costs a search for these.
 */
#ifndef CURATE_PII_H
#define CURATE_PII_H

#include "base/err.h"
#include "base/mem.h"

enum pii_kind {
    PII_EMAIL,
    PII_IP,    /* version 4, public addresses only */
    PII_IPV6,  /* global unicast addresses only */
    PII_PHONE, /* +CC..., North American with its punctuation, any behind a word such as "Tel." */
    PII_CARD,  /* a known issuer's digits and length, Luhn's check digit */
    PII_IBAN,  /* a country's length, check digits mod 97 */
    PII_KINDS
};
extern const char *const pii_names[PII_KINDS]; /* as in options and statistics */

enum pii_preset { PII_PRESET_NONE, PII_PRESET_DATATROVE };

struct pii_conf {
    const char *kinds; /* names with commas between them, or "all"; NULL: none */
    int preset;        /* enum pii_preset.  DATATROVE: e-mail and IP addresses as
                          PIIFormatter of datatrove 0.10 finds and replaces them, the
                          replacements in turn from the first one on in each text */
    const char *tag;   /* what to put; KIND in it becomes EMAIL_ADDRESS, IP_ADDRESS,
                          PHONE_NUMBER, CREDIT_CARD, IBAN_CODE */
};
#define PII_TAG "|||KIND|||"

enum { PII_TAG_MAX = 200 };
struct pii {
    unsigned kinds; /* by bits */
    bool datatrove;
    char tag[PII_KINDS][PII_TAG_MAX];
};
/* ERR_ARG: an unknown kind, a kind that the preset has too, a tag too long or one that
 * would be found again. */
int pii_init(struct pii *p, const struct pii_conf *conf, struct err *e);

/* Replaces what it finds in text (well-formed UTF-8), adds to count[kind] how often.  *out
 * is text itself if nothing was found, else bytes in a or b.  ERR_NOMEM. */
int pii_replace(const struct pii *p, struct buf *a, struct buf *b, struct span text, struct span *out,
                uint64_t count[PII_KINDS]);
#endif
