#include "base/sha256.h"

#include <string.h>

#if HAVE_NETTLE
#include <nettle/sha2.h>

bool sha256_is_built(void)
{
    return true;
}

void sha256_of(const struct span *part, int n, uint8_t sum[SHA256_SUM])
{
    struct sha256_ctx c;

    sha256_init(&c);
    for (int i = 0; i < n; i++)
        sha256_update(&c, part[i].n, (const uint8_t *)part[i].p);
    sha256_digest(&c, SHA256_SUM, sum);
}
#else
bool sha256_is_built(void)
{
    return false;
}

void sha256_of(const struct span *part, int n, uint8_t sum[SHA256_SUM])
{
    (void)part;
    (void)n;
    memset(sum, 0, SHA256_SUM);
}
#endif

void sha256_hex(const uint8_t sum[SHA256_SUM], char hex[2 * SHA256_SUM + 1])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < SHA256_SUM; i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[2 * SHA256_SUM] = '\0';
}
