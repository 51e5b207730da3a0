/* base/s3_settings.h -- what the environment and files of a user say of S3: base/s3.h names them. */
#ifndef BASE_S3_SETTINGS_H
#define BASE_S3_SETTINGS_H

#include <stdint.h>

#include "base/err.h"

enum { S3_SECRET = 4096, S3_NAME = 1024 }; /* bytes of a secret, of an endpoint or region, at most */

struct s3_keys {
    char access[256], secret[256], token[S3_SECRET]; /* access "": there are none; token "": it has none */
    int64_t expires; /* seconds since 1970; 0: they do not */
};

struct s3_settings {
    char region[64], endpoint[S3_NAME]; /* endpoint "": AWS's */
    struct s3_keys keys;
};

/* From the environment and the profile.  ERR_IO, ERR_NOMEM; ERR_UNSUPPORTED for a profile that gets its keys in another way. */
int s3_settings_read(struct s3_settings *s, struct err *e);
/* Keys that a container or a machine lends, if there is one that does; else keys->access is "".  ERR_IO, ERR_NOMEM,
 * ERR_FORMAT. */
int s3_keys_ask(struct s3_keys *keys, struct err *e);

#endif
