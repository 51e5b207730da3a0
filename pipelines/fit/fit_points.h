/* pipelines/fit/fit_points.h -- measured losses that fits are made of: of mixtures, or of sizes of models and numbers of tokens.
 *
 * JSON lines; a line {"weights": {"web": 0.7, "books": 0.3}, "losses": {"prose": 3.1, "code": 2.2}} is a mixture, with
 * "loss": 3.1 in place of "losses" where there is one; {"params": 1e6, "tokens": 2e7, "loss": 4.2} a size.  More keys may stand
 * there.  What quern ablate --stats wrote is taken as mixtures too: those of its variants that have weights, each seed a
 * point, of the evaluations whose scores are better the lower they are.
 */
#ifndef PIPELINES_FIT_POINTS_H
#define PIPELINES_FIT_POINTS_H

#include "base/err.h"
#include "base/mem.h"

enum {
    FIT_SOURCES = 64,
    FIT_TARGETS = 64,
    FIT_POINTS = 10000,
    FIT_NAME = 1000,         /* bytes of a name of a source or target, at most */
    FIT_FILE_MOST = 64 << 20 /* bytes of a file */
};

/* Points are in the order of the files.  Weights of a point are 0 where it does not name a source, and sum to 1. */
struct mix_points {
    struct arena arena;
    const char *source[FIT_SOURCES], *target[FIT_TARGETS];
    int sources, targets, n;
    double *weight; /* (n, sources) */
    double *loss;   /* (n, targets), positive */
    int *mixture;   /* (n) which mixture, from 0 in the order in which they come: points with equal weights have one */
    int mixtures;
};

struct scale_points {
    int n;
    double *params, *tokens, *loss; /* (n) positive */
};

/* Reads files one after another.  *p is to be freed whatever comes back.  ERR_FORMAT names file and line and says what is wrong
 * there; ERR_LIMIT, ERR_IO, ERR_NOMEM. */
int mix_points_read(struct mix_points *p, const char *const *files, int n, struct err *e);
void mix_points_free(struct mix_points *p);
int scale_points_read(struct scale_points *p, const char *const *files, int n, struct err *e);
/* Of points of one size and one number of tokens only the first with the lowest loss stays. */
void scale_points_keep_lowest(struct scale_points *p);
void scale_points_free(struct scale_points *p);
#endif
