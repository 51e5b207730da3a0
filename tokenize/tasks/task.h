/* tokenize/tasks/task.h -- tasks of evaluation: what a model is asked, and what its answers are worth.
 *
 * A task is a YAML file as lm-evaluation-harness has them, over local data; what of it is known stands in docs/evaluation.md.
 * Its questions become requests, ids of which the last ones are scored; whoever has a model answers these, and the task makes
 * metrics of the answers.  A request is for a model as the harness gives it: the same text, cut into tokens at the same place,
 * shortened from the left to what the model takes.
 *
 * Source: EleutherAI's lm-evaluation-harness 0.4.13.
 */
#ifndef TOKENIZE_TASKS_TASK_H
#define TOKENIZE_TASKS_TASK_H

#include "base/err.h"
#include "base/file.h"
#include "tokenize/tokenizer.h"

struct task;

struct task_settings {
    int64_t shots; /* examples before each question; -1: as many as the task says */
    int64_t limit; /* its first questions; 0: all */
    int64_t seed;  /* by which examples are drawn */
    int64_t length; /* tokens that the model sees at most */
    const char *bos; /* the token before each text; NULL: none, and what has nothing before it follows an end of document */
};

/* How likely are ids[from .. n) behind those before them?  from > 0.  Of a task that has texts written, from is n: what comes
 * next? */
struct task_request {
    const int32_t *ids;
    int64_t n, from;
};
struct task_answer {
    double likelihood; /* the natural logarithm */
    bool greedy;       /* whether each was the likeliest token; of requests of a task that asks for it */
    const int32_t *ids; /* what was written, n of them */
    int64_t n;
};

/* Reads a task and its data, and makes its requests.  ERR_FORMAT, ERR_ARG, ERR_UNSUPPORTED name the file, and the line or the
 * question; ERR_LIMIT: a continuation is longer than what the model sees.  The tokenizer must outlive the task. */
int task_open(struct task **t, const char *path, const struct tokenizer *tokenizer, const struct task_settings *s, struct err *e);
void task_close(struct task *t); /* NULL is fine */

/* What a task's file says of itself: its name (or the path), and the files that it is read from: itself, what it includes, all
 * its data, there or not.  In a's memory.  Errors as of task_open, but for those of data. */
struct task_about {
    const char *name;
    const char **file;
    int n_files;
};
int task_about(struct task_about *t, const char *path, struct arena *a, struct err *e);

const char *task_name(const struct task *t);
int64_t task_questions(const struct task *t);
/* Its requests, which are t's; whether answers have to say what is greedy. */
int64_t task_requests(const struct task *t, const struct task_request **r);
bool task_asks_greedy(const struct task *t);
/* At most so many tokens are to be written for each request, the likeliest each time; 0: likelihoods are wanted. */
int64_t task_writes(const struct task *t);
/* 1: a text of n tokens is whole, more would be cut off; 0: not yet; ERR_NOMEM. */
int task_ends(const struct task *t, const int32_t *ids, int64_t n, struct err *e);

/* What a metric is over all questions. */
struct task_score {
    const char *metric;
    double value;
    double error; /* the standard error of value; NaN: it has none */
    bool better_higher;
};
enum { TASK_SCORES = 8 };
/* Scores of the answers (as many as requests), in the task's order; how many, at most TASK_SCORES.  records, unless NULL, gets a
 * line of JSON a question.  ERR_LIMIT: an answer is not finite; ERR_IO, ERR_NOMEM. */
int task_score(const struct task *t, const struct task_answer *a, struct task_score scores[TASK_SCORES], struct file_out *records,
               struct err *e);
/* What a task says of guessing: its metadata's random_baseline, else for multiple choice the mean of one over the number of
 * choices, else 0. */
double task_chance(const struct task *t);

#endif
