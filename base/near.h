/* base/near.h -- the name that somebody may have meant who typed another one.
 *
 *     struct near n = near_to(typed);
 *     for each name: near_try(&n, name);
 *     err_set(e, ERR_ARG, "no stage '%s'%s", typed, near_say(&n, "", buf, sizeof buf));
 */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct near {
    struct span typed;
    const char *best; /* NULL: no name is near */
    size_t distance;  /* of best: letters left out, put in, changed, or two that changed places */
};

struct near near_to(struct span typed);
/* Looks at a name, which is borrowed.  Of equally near ones the first counts.  Near is a
 * distance of a third of the letters at most; nearest is a name that what was typed begins. */
void near_try(struct near *n, const char *name);
/* "; did you mean 'PREFIXbest'?" in buf, "" if no name is near. */
const char *near_say(const struct near *n, const char *prefix, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif
