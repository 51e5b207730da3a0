#include "base/http_sum.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"

#if HAVE_NETTLE
#include <nettle/md5.h>
#include <nettle/nettle-meta.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#endif

enum kind {
    CRC32, CRC32C, CRC64NVME, CRCS,
    MD5 = CRCS, SHA1, SHA256,
#if HAVE_NETTLE
    KINDS
#else
    KINDS = CRCS
#endif
};
enum { SUM_MAX = 32 };

static const size_t sizes[] = {[CRC32] = 4, [CRC32C] = 4, [CRC64NVME] = 8, [MD5] = 16, [SHA1] = 20, [SHA256] = 32};
#if HAVE_NETTLE
static const struct nettle_hash *const hashes[] = {[MD5] = &nettle_md5, [SHA1] = &nettle_sha1, [SHA256] = &nettle_sha256};
#endif

/* In base64, but for the last; key: one of several sums in the value. */
static const struct stated {
    const char *header, *key;
    enum kind kind;
} all[] = {{"x-amz-checksum-crc64nvme", NULL, CRC64NVME}, {"x-amz-checksum-crc32c", NULL, CRC32C},
           {"x-amz-checksum-crc32", NULL, CRC32},         {"x-goog-hash", "crc32c", CRC32C},
           {"x-amz-checksum-sha1", NULL, SHA1},           {"x-amz-checksum-sha256", NULL, SHA256},
           {"Repr-Digest", "sha-256", SHA256},            {"Digest", "sha-256", SHA256},
           {"x-goog-hash", "md5", MD5},                   {"Content-MD5", NULL, MD5},
           {"X-Linked-ETag", NULL, SHA256}};

struct http_sum {
    const struct stated *of;
    uint8_t want[SUM_MAX];
    uint64_t crc, table[8][256]; /* [i]: a byte, and i zeros behind it */
#if HAVE_NETTLE
    union {
        struct md5_ctx md5;
        struct sha1_ctx sha1;
        struct sha256_ctx sha256;
    } state; /* of hashes[kind] */
#endif
};

/* ---- what is stated ---- */

/* The part of a value that belongs to a key, "KEY=..." or "KEY=:...:" up to a comma; n 0: there is none. */
static struct span value_of(const char *value, const char *key)
{
    size_t n = strlen(key);

    for (const char *p = value; *p; p += strcspn(p, ","), p += *p == ',') {
        p += strspn(p, " \t");
        if (strncasecmp(p, key, n) == 0 && p[n] == '=') {
            p += n + 1;
            p += *p == ':';
            return (struct span){p, strcspn(p, ":,; \t")};
        }
    }
    return (struct span){value, 0};
}

/* The 64 hexadecimal digits of an ETag. */
static bool take_hex(const char *value, uint8_t want[SUM_MAX])
{
    static const char digits[] = "0123456789abcdef";

    if (strspn(value + (*value == '"'), digits) != 2 * SUM_MAX)
        return false;
    value += *value == '"';
    for (int i = 0; i < SUM_MAX; i++)
        want[i] = (uint8_t)((strchr(digits, value[2 * i]) - digits) << 4 | (strchr(digits, value[2 * i + 1]) - digits));
    return true;
}

/* Whether a header states this kind of sum, and of the whole object: one of parts has "-N" behind it. */
static bool take(const struct stated *of, const char *value, uint8_t want[SUM_MAX])
{
    struct span s = of->key ? value_of(value, of->key) : (struct span){value, strcspn(value, " \t")};
    struct buf b = {0};
    bool found;

    if (of == &all[sizeof all / sizeof *all - 1])
        return take_hex(value, want);
    found = s.n && base64_decode(s, &b) && b.n == sizes[of->kind];
    if (found)
        memcpy(want, b.p, b.n);
    buf_free(&b);
    return found;
}

/* ---- sums ---- */

static void begin_crc(struct http_sum *s)
{
    static const uint64_t reflected[CRCS] = {0xEDB88320, 0x82F63B78, UINT64_C(0x9A6C9329AC4BC9B5)};

    for (unsigned i = 0; i < 256; i++) {
        s->table[0][i] = i;
        for (int k = 0; k < 8; k++)
            s->table[0][i] = s->table[0][i] >> 1 ^ (s->table[0][i] & 1 ? reflected[s->of->kind] : 0);
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            s->table[k][i] = s->table[k - 1][i] >> 8 ^ s->table[0][s->table[k - 1][i] & 255];
    s->crc = s->of->kind == CRC64NVME ? UINT64_MAX : UINT32_MAX;
}

/* Eight bytes at a time (Kounavis and Berry, "slicing by 8"). */
static void add_crc(struct http_sum *s, const uint8_t *p, size_t n)
{
    uint64_t c = s->crc, x;

    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&x, p, 8);
        x ^= c;
        c = 0;
        for (int k = 0; k < 8; k++)
            c ^= s->table[7 - k][x >> 8 * k & 255];
    }
    for (; n; n--)
        c = c >> 8 ^ s->table[0][(c ^ *p++) & 255];
    s->crc = c;
}

static void end_crc(const struct http_sum *s, uint8_t *sum)
{
    for (size_t n = sizes[s->of->kind], i = 0; i < n; i++)
        sum[i] = (uint8_t)(~s->crc >> 8 * (n - 1 - i));
}

struct http_sum *http_sum_begin(const char *(*header)(const void *arg, const char *name), const void *arg)
{
    struct http_sum *s = NULL;
    uint8_t want[SUM_MAX];
    size_t i = 0, n = sizeof all / sizeof *all;

    while (i < n && !(all[i].kind < KINDS && take(&all[i], header(arg, all[i].header), want)))
        i++;
    if (i < n)
        s = malloc(sizeof *s);
    if (!s)
        return NULL;
    s->of = &all[i];
    memcpy(s->want, want, sizeof want);
    if (s->of->kind < CRCS)
        begin_crc(s);
#if HAVE_NETTLE
    else
        hashes[s->of->kind]->init(&s->state);
#endif
    return s;
}

void http_sum_add(struct http_sum *s, const void *p, size_t n)
{
    if (s->of->kind < CRCS)
        add_crc(s, p, n);
#if HAVE_NETTLE
    else
        hashes[s->of->kind]->update(&s->state, n, p);
#endif
}

bool http_sum_holds(struct http_sum *s)
{
    uint8_t sum[SUM_MAX];

    if (s->of->kind < CRCS)
        end_crc(s, sum);
#if HAVE_NETTLE
    else
        hashes[s->of->kind]->digest(&s->state, sizes[s->of->kind], sum);
#endif
    return memcmp(sum, s->want, sizes[s->of->kind]) == 0;
}

const char *http_sum_header(const struct http_sum *s)
{
    return s->of->header;
}

void http_sum_free(struct http_sum *s)
{
    free(s);
}
