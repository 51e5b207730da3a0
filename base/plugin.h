/* base/plugin.h -- shared objects that are opened at run time, so that one build runs with
 * and without what they need. */
#ifndef BASE_PLUGIN_H
#define BASE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes to path where NAME is: the value of the environment variable env if that is set, else
 * the first that is there of ../lib/quern/NAME and ../lib/NAME beside the folder of the
 * program.  ERR_UNSUPPORTED: neither is; path is then the last that was tried. */
int plugin_find(const char *name, const char *env, char *path, size_t size, struct err *e);

/* Opens path and gives the address of symbol, which begins with an int that must be abi.  It
 * stays open; global: its symbols and its libraries' are seen by what they open in turn.
 * ERR_UNSUPPORTED with the reason; what names it for people. */
int plugin_open(const char *path, bool global, const char *what, const char *symbol, int abi,
                const void **table, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
