/* base/err.h -- how a library function says what went wrong.
 *
 * Every function that can fail returns 0 (or a count >= 0) on success and one of
 * the negative codes below on failure, after filling the caller's struct err.
 * Callers that know more put their context in front with err_wrap().  Library
 * code never prints and never exits.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#ifdef __cplusplus
extern "C" {
#endif

enum err_code {
    ERR_NOMEM = -1,       /* out of memory */
    ERR_IO = -2,          /* the system refused a read, write, open, rename ... */
    ERR_FORMAT = -3,      /* outside bytes are not what they should be */
    ERR_ARG = -4,         /* the user or caller asked for something impossible */
    ERR_UNSUPPORTED = -5, /* well-formed, but quern cannot do it (says what) */
    ERR_LIMIT = -6,       /* a stated bound (bytes, nodes, time) was reached */
    ERR_DEVICE = -7,      /* the accelerator or its driver failed */
    ERR_STOPPED = -8,     /* cancelled: another thread failed, or a signal came */
    ERR_CLOSED = -9       /* nobody reads standard output any more */
};

/* Owned by the caller, no heap inside.  A long message is cut, never overrun. */
struct err {
    int code;
    char msg[508];
};

/* Sets code and message and returns code, so that `return err_set(...)` works.
 * e may be NULL: then only the code comes back. */
int err_set(struct err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As err_set, and appends ": " and the text of errno as it was at the call.  Where that is a shortage of memory the code
 * is ERR_NOMEM, whatever the caller says: it is no fault of what was read or written. */
int err_sys(struct err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the message; the code stays.  Returns the code
 * (ERR_ARG's callers can `return err_wrap(...)`), or 0 when e is NULL. */
int err_wrap(struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Passes a failure on.  Only where nothing has to be released. */
#define TRY(call)                                                              \
    do {                                                                       \
        int try_rc_ = (call);                                                  \
        if (try_rc_ < 0)                                                       \
            return try_rc_;                                                    \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
