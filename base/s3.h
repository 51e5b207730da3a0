/* base/s3.h -- objects in S3 and stores like it, by addresses s3://BUCKET/KEY: where they are, and what a request for them needs.
 *
 * As of AWS's tools, from the environment or the profile's section ($AWS_PROFILE, else "default") of $AWS_CONFIG_FILE
 * [~/.aws/config] and $AWS_SHARED_CREDENTIALS_FILE [~/.aws/credentials]:
 *   endpoint  AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, endpoint_url; else that of AWS for the region
 *   region    AWS_REGION, AWS_DEFAULT_REGION, region; else us-east-1
 *   keys      AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; aws_access_key_id and so on; those of a container
 *             (AWS_CONTAINER_CREDENTIALS_*) or a machine (its metadata, unless AWS_EC2_METADATA_DISABLED); else none, and
 *             requests are not signed: objects that everybody may read
 * The environment stands before the files.  Under an endpoint of its own the bucket stands in the path; with AWS in the
 * host's name, but for one with dots.  No secret comes into messages, and a process that has one leaves no core file.
 */
#ifndef BASE_S3_H
#define BASE_S3_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The SHA-256 of nothing, as a request without a body gives it. */
#define S3_NO_PAYLOAD "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct s3_object;

/* Whether a name begins with s3://. */
bool s3_is_address(const char *name);
/* ERR_ARG: the address is none, or the endpoint; ERR_NOMEM, ERR_IO (a file of the user's settings). */
int s3_find(struct s3_object **o, const char *address, struct err *e);
/* Where it is; encoded. */
const char *s3_url(const struct s3_object *o);
struct s3_header;
/* Appends what a request sent now has in its head, "NAME: VALUE" with a NUL behind each; query as it is sent, "" for none;
 * payload: the SHA-256 of the body, in hexadecimal; more: one that it has as well (x-amz-...), or NULL.  Without keys `more`
 * alone.  Keys that are lent are asked for anew when they are about to expire.  ERR_NOMEM, ERR_IO, ERR_UNSUPPORTED. */
int s3_headers(struct s3_object *o, const char *method, const char *query, const char *payload,
               const struct s3_header *more, struct buf *b, struct err *e);
/* What else to say when it was not to be had: for messages. */
const char *s3_why_not(const struct s3_object *o);
void s3_free(struct s3_object *o);

#ifdef __cplusplus
}
#endif
#endif
