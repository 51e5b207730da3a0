/* bindings/call.h -- what calls of the public functions share. */
#ifndef BINDINGS_CALL_H
#define BINDINGS_CALL_H

#include "base/err.h"
#include "bindings/quern.h"

/* Gives the caller why its call failed; e may be NULL.  Returns the code. */
int call_failed(quern_error *e, const struct err *why);
/* The same of what a caller passed that cannot be. */
int call_refused(quern_error *e, const char *what);
/* Copies settings that begin with their size into to, of size bytes: what the caller's lacks is 0.  from NULL: all is 0. */
int call_settings(void *to, size_t size, const void *from, quern_error *e);

#endif
