/* pipelines/ablation/ablation_read.h -- inside ablations only: what reading and checking their files share. */
#ifndef PIPELINES_ABLATION_READ_H
#define PIPELINES_ABLATION_READ_H

#include "pipelines/ablation/ablation.h"

/* ERR_FORMAT with the file, the line, and what is wrong there. */
int ablation_wrong(const struct ablation *a, int line, struct err *e, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
int ablation_no_memory(struct err *e);

/* An empty node in the ablation's memory; key NULL: none.  NULL: out of memory. */
struct node *ablation_node(struct ablation *a, enum node_type type, int line, const char *key);
/* Puts a copy of a node, or a word, last into a list or map; with this key, unless that is NULL. */
int ablation_add(struct ablation *a, struct node *to, const struct node *n, const char *key, struct err *e);
int ablation_add_word(struct ablation *a, struct node *to, const char *key, const char *word, int line, struct err *e);
/* Whether a key is one of a list that ends with NULL. */
bool ablation_is_among(struct span key, const char *const *keys);

/* Checks the options of train, for the tokenizers of all variants. */
int ablation_read_model(struct ablation *a, const struct node *model, int line, struct err *e);
/* Checks what a variant's plan says by the plan itself, notes its inputs and makes its keys. */
int ablation_check_variant(struct ablation *a, struct ablation_variant *v, struct err *e);
#endif
