#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
    va_list ap;

    if (!e)
        return code;
    e->code = code;
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    return code;
}

int err_sys(struct err *e, int code, const char *fmt, ...)
{
    int saved = errno;
    char why[128];
    va_list ap;
    int n;

    if (saved == ENOMEM)
        code = ERR_NOMEM;
    if (!e)
        return code;
    e->code = code;
    va_start(ap, fmt);
    n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof e->msg) /* GNU's strerror_r: returns the text */
        snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %s",
                 strerror_r(saved, why, sizeof why));
    return code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char old[sizeof e->msg];
    va_list ap;
    int n;

    if (!e)
        return 0;
    memcpy(old, e->msg, sizeof old);
    va_start(ap, fmt);
    n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof e->msg)
        snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %s", old);
    return e->code;
}
