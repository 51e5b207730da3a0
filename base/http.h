/* base/http.h -- objects behind addresses (http://, https://, and s3:// of base/s3.h), read by ranges through libcurl.
 *
 * Bytes come as they are asked for: a connection and some 640 KiB of memory a reader, whatever the object's size.  A connection
 * that is cut, and the answers 408, 425, 429, 500, 502, 503 and 504 (Retry-After is obeyed), are tried again after waits that
 * double from a tenth of a second to half a minute, and reading goes on at the byte where it stood.  Each answer must be of the
 * object that was begun: the same ETag (a strong one) or Last-Modified, and the same length; one that is not is an error, and so
 * is a cut where the server gives neither.  When no byte has come for QUERN_HTTP_TIMEOUT seconds of waiting (300 unless the
 * environment says otherwise) in spite of all that, reading fails.  A connection that is silent for a quarter of it is given
 * up and made anew; a tenth of it is enough where a host is not known or refuses connections.
 * At most 5 redirects are followed, none from https to http, and none of S3.  An address with a user or password in it is
 * refused.  In messages an address ends before its query, which may hold a signature.  HF_TOKEN goes to
 * https://huggingface.co/ alone.
 *
 * libcurl (7.85 or newer) is opened at run time (base/curl_api.h).  Without it, or built without its headers, an address is
 * ERR_UNSUPPORTED by name.  Only names that a user gave may come here, none that was found in data.
 */
#ifndef BASE_HTTP_H
#define BASE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HTTP_STATE_MAX = 512 }; /* bytes of http_state */

/* One thread at a time uses it. */
struct http;

/* Whether a name is an address, and no file: it begins with http://, https:// or s3://. */
bool http_is_address(const char *name);
/* ERR_ARG: it has a user or password in it, which is never used, nor said. */
int http_check(const char *address, struct err *e);
/* What stands behind a user and password: all of it, if there are none. */
const char *http_bare(const char *address);
/* What messages call it: of the web, without its query; of one with a user in it the scheme alone.  The caller frees it; NULL:
 * out of memory. */
char *http_name(const char *address);
/* How many bytes of an address these are, its first; of any other name all. */
int http_name_length(const char *address);

/* Opens an address: the n bytes from offset on (UINT64_MAX: up to the end), and waits for the server's answer.  Fewer come where
 * the object ends before; offset may be its end, but not beyond.  ERR_ARG, ERR_UNSUPPORTED, ERR_NOMEM; ERR_IO with the address,
 * the offset and the server's status or libcurl's word. */
int http_open(struct http **h, const char *address, uint64_t offset, uint64_t n, struct err *e);
/* Without an object yet: http_turn is to follow.  ERR_UNSUPPORTED, ERR_NOMEM. */
int http_new(struct http **h, struct err *e);
/* Turns to another object: as http_open, over the same connection if the host is the same and all that was asked for has been
 * read.  After a failure h can be turned again, or closed. */
int http_turn(struct http *h, const char *address, uint64_t offset, uint64_t n, struct err *e);
/* Whether what failed last did so because the offset lies behind the object's end. */
bool http_is_beyond(const struct http *h);
/* Instead of what is left: the n bytes from offset on of the same object.  The next read asks for them, over the same
 * connection if all that was asked for has been read. */
void http_go(struct http *h, uint64_t offset, uint64_t n);
/* The next at most n bytes; 0: the end.  Errors as of http_open. */
ssize_t http_read(struct http *h, void *p, size_t n, struct err *e);
/* Bytes of the whole object; 0: none, or the server does not say. */
uint64_t http_size(const struct http *h);
/* What tells this state of the object from others: the strong ETag, else Last-Modified; "": the server gives neither. */
const char *http_state(const struct http *h);
void http_close(struct http *h);

/* The value of a Content-Range header: its first and last byte and the length of the whole, UINT64_MAX where it is not given.
 * "bytes * /N" (of status 416): first and last are UINT64_MAX.  False: it is none, or makes no sense. */
bool http_parse_range(const char *value, uint64_t *first, uint64_t *last, uint64_t *whole);

#ifdef __cplusplus
}
#endif
#endif
