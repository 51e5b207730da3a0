/* tokenize/tasks/parts.h -- inside of tokenize/tasks/ alone. */
#ifndef TOKENIZE_TASKS_PARTS_H
#define TOKENIZE_TASKS_PARTS_H

#include "base/rng.h"
#include "tokenize/jinja.h"
#include "tokenize/tasks/task.h"

enum task_kind { TASK_CHOICE, TASK_LIKELIHOOD, TASK_ROLLING, TASK_WRITING, TASK_KINDS };
enum task_metric {
    METRIC_ACC, METRIC_ACC_NORM, METRIC_ACC_BYTES, METRIC_ACC_TOKENS, METRIC_EXACT, METRIC_MUTUAL, METRIC_PERPLEXITY,
    METRIC_WORD_PERPLEXITY, METRIC_BYTE_PERPLEXITY, METRIC_BITS_PER_BYTE, METRICS
};

/* The lines of the files of a split, as objects. */
struct task_docs {
    struct node **doc;
    int64_t n;
    bool open;
};

/* What makes a text, a list or a number of a document: a template, the name of a field, or a constant. */
struct task_field {
    const struct node *value; /* NULL: there is none */
    struct jinja *template;   /* of a text that is no field's name; NULL: it is, or is no text */
};
struct task_fields {
    struct task_field text, target, choice;
    struct span target_delimiter, fewshot_delimiter;
};

enum { CONF_FILES = 8 }; /* that include one another */

struct task_conf {
    struct arena arena;
    const struct node *root[CONF_FILES]; /* the file and what it includes, what counts first */
    char *path[CONF_FILES];
    int n;
    const char *name;
    enum task_kind kind;
    bool metric[METRICS];
    enum task_metric order[METRICS];
    int n_metrics;
    int64_t shots;
    double chance; /* NaN: not said */
};

/* Reads the file and what it includes, and refuses what is not known. */
int task_conf_open(struct task_conf *c, const char *path, struct err *e);
void task_conf_close(struct task_conf *c);
/* What stands under a key; under key of fewshot_config.  NULL: nothing, or null. */
const struct node *task_conf_get(const struct task_conf *c, const char *key);
const struct node *task_conf_fewshot(const struct task_conf *c, const char *key);
/* ERR_FORMAT that names the file and the line of n. */
int task_conf_error(const struct task_conf *c, const struct node *n, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
const char *task_metric_name(enum task_metric m);

/* Reads the files of a split into d: dataset_kwargs.data_files of c; and a list of objects. */
int task_docs_read(struct task_docs *d, const struct task_conf *c, struct arena *a, const char *split, struct err *e);
int task_docs_list(struct task_docs *d, const struct node *list, struct arena *a, struct err *e);

/* A value as Python writes it (a text in quotes, a whole number, True, False, None, a list or a tuple of such) as a node in a.
 * ERR_FORMAT: it is none. */
int task_literal(struct arena *a, struct span text, struct node **n, struct err *e);

/* A question as texts, in an arena. */
struct task_pair {
    struct span context, continuation;
};
struct task_question {
    struct task_pair *pair; /* (pairs) of which a request is made each */
    int64_t pairs;
    struct span *choice;    /* (choices) */
    int64_t choices;
    int64_t *gold;          /* (golds) indices of right choices; -1: none of the choices */
    int64_t golds;
    struct span target;     /* of a text whose likelihood is wanted: itself */
    struct span *right;     /* (rights) the texts that are right where one is to be written */
    int64_t rights;
};

struct task_maker {
    const struct task_conf *conf;
    struct task_docs docs, examples;
    struct task_field describe;
    struct task_fields own, shot;
    struct span *feature; /* (features) the fields that some document has */
    int64_t features;
    bool excludes, first, several; /* examples are not the question; are the first ones; the choices are the questions */
    int64_t shots;
    struct rng_mt rng;
    struct arena arena;
};
/* Reads the data of a task and parses its templates. */
int task_maker_open(struct task_maker *m, const struct task_conf *c, const struct task_settings *s, struct err *e);
void task_maker_close(struct task_maker *m);
/* Question i; to be called for 0, 1, ... in turn, since examples are drawn. */
int task_maker_question(struct task_maker *m, int64_t i, struct arena *a, struct task_question *q, struct err *e);

/* What of a question its score needs. */
struct task_kept {
    int64_t first, requests; /* of the task's requests */
    int64_t choices, lengths; /* lengths: where those of its choices begin */
    int64_t golds, gold;      /* gold: where its right choices begin */
    int64_t words, bytes;     /* of a text whose likelihood is wanted */
    struct span *right;       /* (rights) as in the question, in the task's arena */
    int64_t rights;
};

/* Of a task that has texts written: what ends them, what is compared, and how (judge.c). */
struct task_judge;
/* *j is to be closed whatever comes back. */
int task_judge_open(struct task_judge **j, struct task_conf *c, struct err *e);
void task_judge_close(struct task_judge *j); /* NULL is fine */
int64_t task_judge_most(const struct task_judge *j); /* tokens */
/* Its metrics: a filter each. */
int task_judge_metrics(const struct task_judge *j);
const char *task_judge_metric(const struct task_judge *j, int i);
/* Cuts text where it ends; whether it did. */
bool task_judge_cut(const struct task_judge *j, struct span *text);
/* What a filter makes of text, in a; and whether a text is one of those that are right. */
int task_judge_filtered(const struct task_judge *j, int filter, struct arena *a, struct span *text, struct err *e);
int task_judge_right(const struct task_judge *j, struct arena *a, struct span text, const struct span *gold, int64_t golds,
                     bool *right, struct err *e);

struct task {
    struct task_conf conf;
    struct task_judge *judge; /* NULL: likelihoods are wanted */
    const struct tokenizer *tokenizer;
    uint8_t *special;    /* the bit of each special token */
    struct arena arena;
    struct buf ids;      /* int32_t */
    struct buf requests; /* struct task_request, whose ids follow one another */
    struct buf kept;     /* struct task_kept */
    struct buf lengths;  /* int64_t: characters and bytes of each choice */
    struct buf golds;    /* int64_t */
    int64_t questions;
};

/* The text that n ids stand for, without special tokens, cut where it ends; whether it does. */
int task_text(const struct task *t, const int32_t *ids, int64_t n, struct buf *text, bool *whole, struct err *e);

#endif
