#include "base/s3_sign.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sha256.h"

enum { BLOCK = 64, PAIRS = 64 }; /* bytes that SHA-256 takes at a time; parameters of a query */

/* HMAC (RFC 2104) of s under key. */
static void hmac(struct span key, struct span s, uint8_t out[SHA256_SUM])
{
    uint8_t inner[BLOCK] = {0}, outer[BLOCK], sum[SHA256_SUM];

    if (key.n > BLOCK)
        sha256_of(&key, 1, inner);
    else
        memcpy(inner, key.p, key.n);
    for (int i = 0; i < BLOCK; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    sha256_of((struct span[]){{(const char *)inner, BLOCK}, s}, 2, sum);
    sha256_of((struct span[]){{(const char *)outer, BLOCK}, {(const char *)sum, SHA256_SUM}}, 2, out);
    memset(inner, 0, sizeof inner);
    memset(outer, 0, sizeof outer);
}

static int by_span(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    int order = memcmp(x[0].p, y[0].p, x[0].n < y[0].n ? x[0].n : y[0].n);

    if (order || x[0].n != y[0].n)
        return order ? order : x[0].n < y[0].n ? -1 : 1;
    order = memcmp(x[1].p, y[1].p, x[1].n < y[1].n ? x[1].n : y[1].n);
    return order ? order : (x[1].n > y[1].n) - (x[1].n < y[1].n);
}

/* Appends the parameters in order, each with an =. */
static int put_query(struct buf *b, const char *query)
{
    struct span pair[PAIRS][2]; /* name, value */
    int n = 0;

    for (const char *p = query; *p; p += strspn(p, "&")) {
        size_t all = strcspn(p, "&"), name = strcspn(p, "=&");
        if (n == PAIRS)
            return ERR_ARG;
        pair[n][0] = (struct span){p, name};
        pair[n++][1] = (struct span){p + name + (name < all), all - name - (name < all)};
        p += all;
    }
    qsort(pair, (size_t)n, sizeof *pair, by_span);
    for (int i = 0; i < n; i++) {
        if (i)
            TRY(buf_putc(b, '&'));
        TRY(buf_put_span(b, pair[i][0]));
        TRY(buf_putc(b, '='));
        TRY(buf_put_span(b, pair[i][1]));
    }
    return buf_putc(b, '\n');
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct s3_header *)a)->name, ((const struct s3_header *)b)->name);
}

/* A value without spaces at its ends, and with one where there were several. */
static int put_value(struct buf *b, const char *s)
{
    for (s += strspn(s, " \t\r\n"); *s;) {
        size_t n = strcspn(s, " \t\r\n");
        TRY(buf_put(b, s, n));
        s += n;
        s += strspn(s, " \t\r\n");
        if (*s)
            TRY(buf_putc(b, ' '));
    }
    return 0;
}

static int put_names(struct buf *b, const struct s3_request *r)
{
    for (int i = 0; i < r->headers; i++)
        TRY(buf_printf(b, "%s%s", i ? ";" : "", r->header[i].name));
    return 0;
}

/* Appends the request as it is signed: its headers are in order. */
static int put_request(struct buf *b, const struct s3_request *r)
{
    TRY(buf_printf(b, "%s\n%s\n", r->method, r->path));
    TRY(put_query(b, r->query));
    for (int i = 0; i < r->headers; i++) {
        TRY(buf_printf(b, "%s:", r->header[i].name));
        TRY(put_value(b, r->header[i].value));
        TRY(buf_putc(b, '\n'));
    }
    TRY(buf_putc(b, '\n'));
    TRY(put_names(b, r));
    return buf_printf(b, "\n%s", r->payload);
}

/* The key of a day, a region and S3. */
static void day_key(const struct s3_request *r, const char *time, uint8_t key[SHA256_SUM], struct buf *secret)
{
    struct span k = {(const char *)key, SHA256_SUM};

    hmac(buf_span(secret), (struct span){time, 8}, key);
    hmac(k, span_of(r->region), key);
    hmac(k, span_of("s3"), key);
    hmac(k, span_of("aws4_request"), key);
}

static int sign(const struct s3_request *r, const char *time, struct buf *text, struct buf *secret, struct buf *out)
{
    uint8_t sum[SHA256_SUM], key[SHA256_SUM];
    char hex[2 * SHA256_SUM + 1];
    struct span whole;

    TRY(put_request(text, r));
    whole = buf_span(text);
    sha256_of(&whole, 1, sum);
    sha256_hex(sum, hex);
    buf_clear(text);
    TRY(buf_printf(text, "AWS4-HMAC-SHA256\n%s\n%.8s/%s/s3/aws4_request\n%s", time, time, r->region, hex));
    TRY(buf_printf(secret, "AWS4%s", r->secret_key));
    day_key(r, time, key, secret);
    hmac((struct span){(const char *)key, SHA256_SUM}, buf_span(text), sum);
    sha256_hex(sum, hex);
    TRY(buf_printf(out, "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/s3/aws4_request, SignedHeaders=", r->access_key, time,
                   r->region));
    TRY(put_names(out, r));
    return buf_printf(out, ", Signature=%s", hex);
}

int s3_sign(const struct s3_request *given, struct buf *authorization, struct err *e)
{
    struct buf text = {0}, secret = {0};
    struct s3_request r = *given;
    const char *time = NULL;
    int rc;

    if (!sha256_is_built())
        return err_set(e, ERR_UNSUPPORTED, "s3: this quern was built without SHA-256 (nettle)");
    qsort(r.header, (size_t)r.headers, sizeof *r.header, by_name);
    for (int i = 0; i < r.headers; i++)
        if (strcmp(r.header[i].name, "x-amz-date") == 0)
            time = r.header[i].value;
    rc = time && strlen(time) >= 8 ? sign(&r, time, &text, &secret, authorization) : ERR_ARG;
    if (secret.n)
        memset(secret.p, 0, secret.n);
    buf_free(&secret);
    buf_free(&text);
    return rc == 0 ? 0 : rc == ERR_ARG ? err_set(e, ERR_ARG, "s3: a request that cannot be signed")
                                       : err_set(e, ERR_NOMEM, "out of memory for a signature");
}

void s3_time(int64_t seconds, char to[S3_TIME])
{
    time_t t = (time_t)seconds;
    struct tm tm;

    gmtime_r(&t, &tm);
    strftime(to, S3_TIME, "%Y%m%dT%H%M%SZ", &tm);
}

int s3_encode(struct buf *b, const char *s, const char *safe)
{
    for (; *s; s++)
        TRY(isalnum((unsigned char)*s) || strchr("-._~", *s) || strchr(safe, *s) ? buf_putc(b, *s)
                                                                                  : buf_printf(b, "%%%02X", (unsigned char)*s));
    return 0;
}
