/* tokenize/format_hf.h -- the parts of a reader of tokenizer.json. */
#ifndef TOKENIZE_FORMAT_HF_H
#define TOKENIZE_FORMAT_HF_H

#include "base/node.h"
#include "tokenize/model.h"
#include "tokenize/normal.h"

/* Where in the file something is, for messages: "pre_tokenizer.pretokenizers[1]". */
struct hf_place {
    char text[200];
};
struct hf_place hf_place(const char *text);
struct hf_place hf_item(const struct hf_place *at, const char *list, size_t i);

bool hf_is_null(const struct node *n);
/* Fails on a key of map that is none of the words in names ("a|b|c"). */
int hf_only_keys(const struct node *map, const char *names, const struct hf_place *at, struct err *e);

/* Each appends the steps of n, whose place is given. */
int hf_read_normalizer(struct steps *s, const struct node *n, const struct hf_place *at, struct err *e);
int hf_read_pre_tokenizer(struct steps *s, const struct node *n, const struct hf_place *at, struct err *e);
int hf_read_decoder(struct steps *s, const struct node *n, const struct hf_place *at, struct err *e);
/* The model, for t->rules; *bytes: its vocabulary writes bytes as characters.  When every byte has its token
 * and nothing else forbids it, it is a model of bytes (MODEL_BYTES). */
int hf_read_model(struct tokenizer *t, const struct node *n, bool bytes, struct err *e);

/* tekken.json, which is JSON too (format_tekken.c). */
bool format_is_tekken(const struct node *root);
int format_read_tekken(struct tokenizer *t, const struct node *root, const char *pattern, struct err *e);

#endif
