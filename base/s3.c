#include "base/s3.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/http.h"
#include "base/s3_settings.h"
#include "base/s3_sign.h"

enum { BEFORE = 600 }; /* seconds before they expire at which keys are asked for anew */

struct s3_object {
    struct buf url; /* with a NUL behind it */
    size_t host, path; /* where these begin in it */
    char region[64];
    bool nobody; /* the last request was not signed */
};

/* Keys that were lent to the process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct s3_keys lent;
static bool asked;

bool s3_is_address(const char *name)
{
    return strncasecmp(name, "s3://", 5) == 0;
}

/* Keys that a container or the machine lends, asked for before they expire.  The caller has the lock. */
static int borrow(struct err *e)
{
    struct s3_keys k;
    int64_t now = (int64_t)time(NULL);
    int rc;

    if (asked && (!lent.expires || now < lent.expires - BEFORE))
        return 0;
    rc = s3_keys_ask(&k, e);
    if (rc < 0 && asked && now < lent.expires)
        return 0; /* they are good for a while yet */
    TRY(rc);
    asked = true;
    lent = k;
    return 0;
}

/* The keys as they are now: those of the user's settings, which may be renewed while we run, or lent ones. */
static int keys_now(struct s3_keys *k, struct err *e)
{
    struct s3_settings s;
    int rc = s3_settings_read(&s, e);

    TRY(rc);
    *k = s.keys;
    if (!k->access[0]) {
        pthread_mutex_lock(&lock);
        rc = borrow(e);
        *k = lent;
        pthread_mutex_unlock(&lock);
    }
    if (k->access[0])
        prctl(PR_SET_DUMPABLE, 0);
    explicit_bzero(&s, sizeof s);
    return rc;
}

/* Whether a name is one of a bucket: letters, digits, dots, hyphens (and _ of old ones), 3 to 63 of them. */
static bool is_bucket(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]) && !(i && strchr(".-_", s.p[i])))
            return false;
    return s.n >= 3 && s.n <= 63;
}

static bool is_path(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
            return false;
    return s.n > 0;
}

/* Puts together where the object is. */
static int put_url(struct s3_object *o, const struct s3_settings *s, struct span bucket, const char *key)
{
    const char *at = s->endpoint, *region = s->region, *slash = NULL;
    size_t n = strlen(at);
    bool in_host = !n && !memchr(bucket.p, '.', bucket.n) && !memchr(bucket.p, '_', bucket.n);

    while (n && at[n - 1] == '/')
        n--;
    o->host = n ? (size_t)(strstr(at, "//") + 2 - at) : strlen("https://");
    if (n)
        TRY(buf_put(&o->url, at, n));
    else
        TRY(buf_printf(&o->url, "https://%.*s%ss3.%s.amazonaws.com%s", in_host ? (int)bucket.n : 0, bucket.p,
                       in_host ? "." : "", region, strncmp(region, "cn-", 3) == 0 ? ".cn" : ""));
    if (n)
        slash = memchr(at + o->host, '/', n - o->host);
    o->path = slash ? (size_t)(slash - at) : o->url.n;
    if (!in_host)
        TRY(buf_printf(&o->url, "/%.*s", (int)bucket.n, bucket.p));
    TRY(buf_putc(&o->url, '/'));
    TRY(s3_encode(&o->url, key, "/"));
    snprintf(o->region, sizeof o->region, "%s", region);
    return buf_putc(&o->url, '\0');
}

/* Whether an endpoint can be one. */
static bool is_endpoint(const char *s)
{
    size_t scheme = strncmp(s, "https://", 8) == 0 ? 8 : strncmp(s, "http://", 7) == 0 ? 7 : 0;

    for (const char *p = s; *p; p++)
        if (*p <= ' ' || *p >= 0x7f || strchr("?#@", *p))
            return false;
    return !*s || (scheme && s[scheme] && s[scheme] != '/');
}

static bool is_region(const char *s)
{
    return *s && s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

int s3_find(struct s3_object **out, const char *address, struct err *e)
{
    const char *name = address + 5;
    struct span bucket = {name, strcspn(name, "/")};
    const char *key = name + bucket.n + (name[bucket.n] == '/');
    struct s3_settings settings;
    struct s3_object *o;
    int rc;

    *out = NULL;
    if (!is_bucket(bucket) || !is_path(span_of(key)))
        return err_set(e, ERR_ARG, "'%.*s' is no address of an object: s3://BUCKET/KEY", http_name_length(address), address);
    o = calloc(1, sizeof *o);
    if (!o)
        return err_set(e, ERR_NOMEM, "out of memory for an address");
    rc = s3_settings_read(&settings, e);
    if (rc == 0 && !is_endpoint(settings.endpoint))
        rc = err_set(e, ERR_ARG, "s3: the endpoint '%.200s' is no address of a host, or one with a user",
                     http_bare(settings.endpoint));
    if (rc == 0 && !is_region(settings.region))
        rc = err_set(e, ERR_ARG, "s3: '%.60s' is no region", settings.region);
    if (rc == 0 && put_url(o, &settings, bucket, key) < 0)
        rc = err_set(e, ERR_NOMEM, "out of memory for an address");
    explicit_bzero(&settings.keys, sizeof settings.keys);
    if (rc < 0)
        s3_free(o);
    else
        *out = o;
    return rc;
}

const char *s3_url(const struct s3_object *o)
{
    return o->url.p;
}

/* The host as a request's head has it: without a port that is the scheme's own. */
static struct span host(const struct s3_object *o)
{
    struct span s = {o->url.p + o->host, strcspn(o->url.p + o->host, "/")};
    const char *own = o->url.p[4] == 's' ? ":443" : ":80";

    if (span_ends(s, own))
        s.n -= strlen(own);
    return s;
}

int s3_headers(struct s3_object *o, const char *method, const char *query, const char *payload,
               const struct s3_header *more, struct buf *b, struct err *e)
{
    char time_now[S3_TIME], name[S3_NAME + 64];
    struct buf signature = {0};
    struct s3_keys k;
    struct s3_request r = {.method = method, .path = o->url.p + o->path, .query = query, .payload = payload, .region = o->region,
                           .access_key = k.access, .secret_key = k.secret};
    int rc = keys_now(&k, e);

    TRY(rc);
    o->nobody = !k.access[0];
    if (o->nobody && more)
        rc = buf_printf(b, "%s: %s", more->name, more->value) < 0 || buf_putc(b, '\0') < 0 ? ERR_NOMEM : 0;
    if (o->nobody)
        return rc < 0 ? err_set(e, ERR_NOMEM, "out of memory for a request") : 0;
    s3_time((int64_t)time(NULL), time_now);
    snprintf(name, sizeof name, "%.*s", (int)host(o).n, host(o).p);
    r.header[r.headers++] = (struct s3_header){"host", name};
    r.header[r.headers++] = (struct s3_header){"x-amz-content-sha256", payload};
    r.header[r.headers++] = (struct s3_header){"x-amz-date", time_now};
    if (k.token[0])
        r.header[r.headers++] = (struct s3_header){"x-amz-security-token", k.token};
    if (more)
        r.header[r.headers++] = *more;
    rc = s3_sign(&r, &signature, e);
    for (int i = 1; i < r.headers && rc == 0; i++)
        rc = buf_printf(b, "%s: %s", r.header[i].name, r.header[i].value) < 0 || buf_putc(b, '\0') < 0 ? ERR_NOMEM : 0;
    if (rc == 0)
        rc = buf_printf(b, "Authorization: %.*s", (int)signature.n, signature.p) < 0 || buf_putc(b, '\0') < 0 ? ERR_NOMEM : 0;
    buf_free(&signature);
    explicit_bzero(&k, sizeof k);
    return rc == ERR_NOMEM ? err_set(e, ERR_NOMEM, "out of memory for a request") : rc;
}

const char *s3_why_not(const struct s3_object *o)
{
    return o->nobody ? "; no credentials were found, and it was asked for without" : "";
}

void s3_free(struct s3_object *o)
{
    if (!o)
        return;
    buf_free(&o->url);
    free(o);
}
