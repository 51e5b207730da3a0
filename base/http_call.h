/* base/http_call.h -- a request with a body and a short answer: what the parts of an upload and a machine's metadata take. */
#ifndef BASE_HTTP_CALL_H
#define BASE_HTTP_CALL_H

#include "base/err.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct http_call {
    const char *method, *url;
    struct span headers; /* "NAME: VALUE", a NUL behind each */
    struct span body;
    int seconds;         /* to wait for a connection, and for a byte, at most */
    const char *wanted;  /* a header of the answer; NULL: none */
    /* The answer: */
    long status;
    struct buf answer;   /* a NUL behind it; the caller frees it.  More than its max is ERR_LIMIT */
    char header[256];    /* the one that is wanted; "": it has none, or a longer one */
    long after;          /* seconds to wait before the next try, if the server says so; else 0 */
    bool may_pass;       /* of a failure, or of the status: another time's luck */
};

/* Asks once; redirects are not followed.  0: there is an answer, whatever its status.  ERR_IO with libcurl's word, ERR_NOMEM,
 * ERR_LIMIT, ERR_UNSUPPORTED. */
int http_call(struct http_call *c, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
