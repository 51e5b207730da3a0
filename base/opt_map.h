/* base/opt_map.h -- options from a configuration file: a map of their names to values. */
#ifndef BASE_OPT_MAP_H
#define BASE_OPT_MAP_H

#include "base/node.h"
#include "base/opt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the options that map names, as opt_set would; those with `given` that were given already stay as they
 * are.  A LIST takes a list; a STR takes one too, joined by commas.  A NULL map sets nothing.  what: whose
 * settings they are, for messages.  Texts live in map's arena or in a.  ERR_FORMAT names the file and the line. */
int opt_set_map(const struct opt *opts, const char *what, const struct node *map, const char *file, struct arena *a,
                struct err *e);

#ifdef __cplusplus
}
#endif
#endif
