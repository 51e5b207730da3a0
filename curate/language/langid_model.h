/* curate/language/langid_model.h -- languages by a fastText model: lid.176, GlotLID, OpenLID, NLLB's.
 *
 * A label is a code, or a code and a script: "__label__en", "__label__eng_Latn".
 */
#ifndef CURATE_LANGID_MODEL_H
#define CURATE_LANGID_MODEL_H

#include "curate/language/fasttext.h"
#include "curate/language/langid.h"

struct langid_model;

/* Errors of fasttext_open. */
int langid_model_open(struct langid_model **m, const char *path, struct err *e);
void langid_model_close(struct langid_model *m);

/* The language of a text, taken as one line.  score is fastText's, up to 1.00001; "und"
 * and 0 if the model knows nothing in it.  One scratch a thread; afterwards it has the
 * scores of all labels for fasttext_score.  ERR_NOMEM, ERR_UNSUPPORTED. */
int langid_model_detect(const struct langid_model *m, struct fasttext_scratch *s, struct span text,
                        struct langid *l, struct err *e);
const struct fasttext *langid_model_fasttext(const struct langid_model *m);

/* True if `name` means label i: the label itself, its code as langid answers it, or its
 * code as the model has it ("eng_Latn", "en", "eng"). */
bool langid_model_is(const struct langid_model *m, int i, struct span name);

/* A code of ISO 639-3 as langid answers it: the two letters of ISO 639-1 where there are,
 * else the code itself.  The usual members of a macrolanguage count as that (cmn zh, arb
 * ar, nob no). */
struct span langid_short_code(struct span iso3);
#endif
