#include "curate/digest.h"

#include <strings.h>

#include <nettle/sha1.h>

static void sha1(struct span s, uint8_t sum[SHA1_DIGEST_SIZE])
{
    struct sha1_ctx c;

    sha1_init(&c);
    sha1_update(&c, s.n, (const uint8_t *)s.p);
    sha1_digest(&c, SHA1_DIGEST_SIZE, sum);
}

void digest_sha1_hex(struct span s, char hex[DIGEST_HEX])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t sum[SHA1_DIGEST_SIZE];

    sha1(s, sum);
    for (int i = 0; i < SHA1_DIGEST_SIZE; i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[DIGEST_HEX - 1] = '\0';
}

/* The value of a digit in base 2^bits: RFC 4648's base32, or hexadecimal. */
static int digit(char c, int bits)
{
    int letter = c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' : -1;

    if (bits == 4)
        return c >= '0' && c <= '9' ? c - '0' : letter >= 0 && letter < 6 ? letter + 10 : -1;
    return letter >= 0 ? letter : c >= '2' && c <= '7' ? c - '2' + 26 : -1;
}

enum digest_match digest_check(struct span stated, struct span s)
{
    uint8_t want[SHA1_DIGEST_SIZE], sum[SHA1_DIGEST_SIZE];
    unsigned held = 0, n_held = 0, n = 0;
    int bits;

    if (stated.n < 5 || strncasecmp(stated.p, "sha1:", 5) != 0)
        return DIGEST_UNKNOWN;
    bits = stated.n == 5 + 32 ? 5 : 4;
    if (stated.n != 5 + 160 / (size_t)bits)
        return DIGEST_UNKNOWN;
    for (size_t i = 5; i < stated.n; i++) {
        int v = digit(stated.p[i], bits);
        if (v < 0)
            return DIGEST_UNKNOWN;
        held = held << bits | (unsigned)v;
        n_held += (unsigned)bits;
        if (n_held >= 8) {
            n_held -= 8;
            want[n++] = (uint8_t)(held >> n_held);
        }
    }
    sha1(s, sum);
    return memcmp(sum, want, sizeof sum) == 0 ? DIGEST_SAME : DIGEST_OTHER;
}
