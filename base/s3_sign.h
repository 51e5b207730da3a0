/* base/s3_sign.h -- signatures of requests to S3.
 *
 * Source: AWS, "Signature Version 4 signing process" (S3's variant: the path is encoded once and not normalised); values as of
 * botocore's S3SigV4Auth.
 */
#ifndef BASE_S3_SIGN_H
#define BASE_S3_SIGN_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { S3_TIME = 17 }; /* "20130524T000000Z" and a NUL */

struct s3_header {
    const char *name, *value; /* the name in lower case */
};

struct s3_request {
    const char *method;
    const char *path;  /* as it stands in the URL: encoded, from the first slash on */
    const char *query; /* the same, without its question mark; "": none */
    struct s3_header header[8]; /* those that are signed, host and x-amz-date among them */
    int headers;
    const char *payload; /* the value of x-amz-content-sha256 */
    const char *region;
    const char *access_key, *secret_key;
};

/* Appends the value of the header Authorization.  ERR_NOMEM; ERR_UNSUPPORTED in a build without nettle. */
int s3_sign(const struct s3_request *r, struct buf *authorization, struct err *e);
/* The value of x-amz-date at a time, in seconds since 1970. */
void s3_time(int64_t seconds, char to[S3_TIME]);
/* Appends s as a part of a URL: of its bytes, letters, digits, -._~ and those of `safe` stand for themselves. */
int s3_encode(struct buf *b, const char *s, const char *safe);

#ifdef __cplusplus
}
#endif
#endif
