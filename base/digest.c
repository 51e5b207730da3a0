#include "base/digest.h"

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

uint64_t digest_sha1_32(struct span s)
{
    uint8_t sum[SHA1_DIGEST_SIZE];

    sha1(s, sum);
    return sum[0] | (uint64_t)sum[1] << 8 | (uint64_t)sum[2] << 16 | (uint64_t)sum[3] << 24;
}

/* The value of a digit in base 2^bits: hexadecimal, base32, base64 and its URL kind. */
static int digit(char c, int bits)
{
    int lower = c >= 'a' && c <= 'z', letter = lower ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' : -1;
    int number = c >= '0' && c <= '9' ? c - '0' : -1;

    if (bits == 4)
        return number >= 0 ? number : letter < 6 && letter >= 0 ? letter + 10 : -1;
    if (bits == 5)
        return letter >= 0 ? letter : number >= 2 && number <= 7 ? number - 2 + 26 : -1;
    if (letter >= 0)
        return letter + 26 * lower;
    return number >= 0 ? number + 52 : c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

enum digest_match digest_check(struct span stated, struct span s)
{
    uint8_t want[SHA1_DIGEST_SIZE + 1], sum[SHA1_DIGEST_SIZE];
    unsigned held = 0, n_held = 0, n = 0;
    int bits;

    if (stated.n < 5 || strncasecmp(stated.p, "sha1:", 5) != 0)
        return DIGEST_UNKNOWN;
    stated.p += 5;
    stated.n -= 5;
    while (stated.n && stated.p[stated.n - 1] == '=')
        stated.n--;
    bits = stated.n == 40 ? 4 : stated.n == 32 ? 5 : stated.n == 27 ? 6 : 0;
    if (bits == 0)
        return DIGEST_UNKNOWN;
    for (size_t i = 0; i < stated.n; i++) {
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
