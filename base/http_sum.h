/* base/http_sum.h -- what a server says that an object's bytes sum up to, and whether those that came do.
 *
 * Sources: Amazon S3, "Checking object integrity" (x-amz-checksum-*: of the whole object, not of its parts); Google Cloud Storage
 * (x-goog-hash); RFC 9530 (Repr-Digest) and RFC 3230 (Digest) with SHA-256; RFC 1864 (Content-MD5); Hugging Face's
 * X-Linked-ETag, the SHA-256 of a file that it redirects to.  The cheapest that is given is taken; CRCs alone without nettle.
 */
#ifndef BASE_HTTP_SUM_H
#define BASE_HTTP_SUM_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct http_sum;

/* Begins a sum that the answer states; header gives the value of one of its headers, "" for none, valid until the next call.
 * NULL: it states none, or memory is short. */
struct http_sum *http_sum_begin(const char *(*header)(const void *arg, const char *name), const void *arg);
/* The next bytes. */
void http_sum_add(struct http_sum *s, const void *p, size_t n);
/* Whether all that was added has the sum; no more may be added then. */
bool http_sum_holds(struct http_sum *s);
/* The header that stated it. */
const char *http_sum_header(const struct http_sum *s);
void http_sum_free(struct http_sum *s);

#ifdef __cplusplus
}
#endif
#endif
