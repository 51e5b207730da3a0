#include "bindings/call.h"

#include <string.h>

#include "base/log.h"
#include "base/version.h"

_Static_assert(sizeof(quern_error) == sizeof(struct err), "an error is passed on as it is");
_Static_assert((int)QUERN_MEMORY == ERR_NOMEM && (int)QUERN_IO == ERR_IO && (int)QUERN_FORMAT == ERR_FORMAT &&
                   (int)QUERN_ARGUMENT == ERR_ARG && (int)QUERN_UNSUPPORTED == ERR_UNSUPPORTED && (int)QUERN_LIMIT == ERR_LIMIT,
               "codes are passed on as they are");

/* The library's own copy of base/log.c: within a program of others nothing is printed. */
__attribute__((constructor)) static void say_nothing(void)
{
    log_init(NULL, LOG_NONE);
}

const char *quern_version(void)
{
    return QUERN_VERSION;
}

int call_failed(quern_error *e, const struct err *why)
{
    if (e)
        memcpy(e, why, sizeof *e);
    return why->code;
}

int call_refused(quern_error *e, const char *what)
{
    struct err why;

    err_set(&why, ERR_ARG, "%s", what);
    return call_failed(e, &why);
}

int call_settings(void *to, size_t size, const void *from, quern_error *e)
{
    size_t theirs;

    memset(to, 0, size);
    if (!from)
        return 0;
    memcpy(&theirs, from, sizeof theirs);
    if (theirs < sizeof theirs || theirs > size)
        return call_refused(e, "the settings begin with no size that this version of the library knows");
    memcpy(to, from, theirs);
    return 0;
}
