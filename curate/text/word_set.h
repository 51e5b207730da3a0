/* curate/text/word_set.h -- sets of strings from files, as big as block lists come.
 *
 * A file has an entry a line; white space around it, empty lines and lines that begin
 * with # do not count.  gzip and zstd are read as such.  Lookup compares the bytes of
 * the entry: nothing is found by a hash alone.  About 12 bytes an entry beside the text.
 */
#ifndef CURATE_WORD_SET_H
#define CURATE_WORD_SET_H

#include "base/err.h"
#include "base/mem.h"

struct word_set {
    struct buf text;
    uint32_t *slot; /* 1 + offset in text of an entry, which ends at a newline; 0: free */
    uint32_t *tag;  /* 32 bits of its hash */
    uint32_t mask;
    size_t n; /* entries that differ */
};

/* What is stored of an entry (n bytes at p, changed in place): returns its new length,
 * 0 to leave it out. */
typedef size_t word_set_form(char *p, size_t n);
/* Lower-case letters and digits of ASCII; nothing else stays. */
size_t word_set_alnum(char *p, size_t n);

/* Reads path; form may be NULL.  ERR_IO, ERR_FORMAT (damaged; not UTF-8, with the line),
 * ERR_LIMIT (4 GiB), ERR_NOMEM.  Start with zeroes. */
int word_set_load(struct word_set *s, const char *path, word_set_form *form, struct err *e);
/* The same from text, which is taken over (and empty afterwards). */
int word_set_take(struct word_set *s, struct buf *text, word_set_form *form, struct err *e);
bool word_set_has(const struct word_set *s, struct span word);
/* The next entry from *at on, which starts at 0; entries come once each, in no order of
 * meaning.  False at the end. */
bool word_set_next(const struct word_set *s, size_t *at, struct span *word);
void word_set_free(struct word_set *s);
#endif
