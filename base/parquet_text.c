/* Values as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/json_shim.h"
#include "base/parquet.h"

enum { DECIMAL_BYTES_MAX = 64, JULIAN_EPOCH = 2440588 };

static int put_base64(struct buf *b, struct span s)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)s.p;

    TRY(buf_puts(b, "{\"base64\":\""));
    TRY(buf_reserve(b, s.n / 3 * 4 + 8));
    for (size_t i = 0; i < s.n; i += 3) {
        size_t n = s.n - i < 3 ? s.n - i : 3;
        uint32_t v = (uint32_t)p[i] << 16 | (n > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (n > 2 ? p[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            b->p[b->n++] = k <= n ? digit[v >> (18 - 6 * k) & 63] : '=';
    }
    return buf_puts(b, "\"}");
}

static int put_text(struct buf *b, struct span s)
{
    return json_valid_utf8(s.p, s.n) ? json_put_string(b, s) : put_base64(b, s);
}

/* Numbers as they are stored, from the lowest byte on. */
static int64_t load_int(struct span s)
{
    int64_t v = 0;
    int32_t w;

    if (s.n == 4) {
        memcpy(&w, s.p, 4);
        return w;
    }
    memcpy(&v, s.p, 8);
    return v;
}

/* The digits of a number of n bytes from the highest on, in two's complement; its sign in *negative.  Returns how many there
 * are; they end at digit + size. */
static size_t big_digits(struct span s, char *digit, size_t size, bool *negative)
{
    uint8_t v[DECIMAL_BYTES_MAX];
    size_t at = 0, k = size;

    memcpy(v, s.p, s.n);
    *negative = s.n && v[0] & 0x80;
    for (size_t i = s.n, carry = 1; *negative && i-- > 0;) {
        v[i] = (uint8_t)~v[i];
        v[i] = (uint8_t)(v[i] + carry);
        carry = carry && v[i] == 0;
    }
    while (at < s.n) {
        unsigned rest = 0;
        for (size_t i = at; i < s.n; i++) {
            rest = rest << 8 | v[i];
            v[i] = (uint8_t)(rest / 10);
            rest %= 10;
        }
        digit[--k] = (char)('0' + rest);
        while (at < s.n && v[at] == 0)
            at++;
    }
    return size - k;
}

static int put_decimal(struct buf *b, const struct parquet_node *leaf, struct span value)
{
    char digit[1024 + DECIMAL_BYTES_MAX * 3], swapped[8];
    size_t n, scale = (size_t)leaf->scale;
    bool negative;

    if (leaf->type == PARQUET_INT32 || leaf->type == PARQUET_INT64) {
        for (size_t i = 0; i < value.n; i++)
            swapped[i] = value.p[value.n - 1 - i];
        value.p = swapped;
    }
    if (value.n > DECIMAL_BYTES_MAX)
        return put_base64(b, value);
    n = big_digits(value, digit, sizeof digit, &negative);
    while (n <= scale) /* a digit before the point at least */
        digit[sizeof digit - ++n] = '0';
    if (negative)
        TRY(buf_putc(b, '-'));
    TRY(buf_put(b, digit + sizeof digit - n, n - scale));
    return scale ? buf_printf(b, ".%.*s", (int)scale, digit + sizeof digit - scale) : 0;
}

/* Days since 1970 as a date of the Gregorian calendar, in astronomical years (0 is 1 BC), signed where ISO 8601 wants it.
 * Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
static int put_days(struct buf *b, int64_t days)
{
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, year;
    unsigned doe = (unsigned)(z - era * 146097), yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    unsigned day = doy - (153 * mp + 2) / 5 + 1, month = mp < 10 ? mp + 3 : mp - 9;

    year = (int64_t)yoe + era * 400 + (month <= 2);
    if (year < 0 || year > 9999)
        return buf_printf(b, "%c%06" PRId64 "-%02u-%02u", year < 0 ? '-' : '+', year < 0 ? -year : year, month, day);
    return buf_printf(b, "%04" PRId64 "-%02u-%02u", year, month, day);
}

/* A time of day: no fraction where there is none, else of 6 digits, or 9 where they are needed. */
static int put_clock(struct buf *b, int64_t second, int64_t nanos)
{
    TRY(buf_printf(b, "%02d:%02d:%02d", (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60)));
    if (nanos % 1000)
        return buf_printf(b, ".%09d", (int)nanos);
    return nanos ? buf_printf(b, ".%06d", (int)(nanos / 1000)) : 0;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int put_time(struct buf *b, const struct parquet_node *leaf, struct span value)
{
    int64_t v = leaf->type == PARQUET_INT96 ? 0 : load_int(value), per = 1, day, second, nanos;

    for (int i = 0; i < leaf->scale; i++)
        per *= 10;
    if (leaf->type == PARQUET_INT96) { /* nanoseconds of the day, and a Julian day */
        int64_t n = load_int((struct span){value.p, 8});
        second = floor_div(n, 1000000000);
        nanos = n - second * 1000000000;
        day = (int64_t)(uint32_t)load_int((struct span){value.p + 8, 4}) - JULIAN_EPOCH;
    } else {
        second = floor_div(v, per);
        nanos = (v - second * per) * (1000000000 / per);
        day = 0;
    }
    if (leaf->meaning == PARQUET_TIME && (second < 0 || second > 86400)) /* no time of a day */
        return json_put_int(b, v);
    TRY(buf_putc(b, '"'));
    if (leaf->meaning == PARQUET_TIMESTAMP) {
        int64_t more = floor_div(second, 86400);
        TRY(put_days(b, day + more));
        TRY(buf_putc(b, 'T'));
        second -= more * 86400;
    }
    TRY(put_clock(b, second, nanos));
    return buf_puts(b, leaf->meaning == PARQUET_TIMESTAMP && leaf->utc ? "Z\"" : "\"");
}

static int put_uuid(struct buf *b, struct span v)
{
    TRY(buf_putc(b, '"'));
    for (size_t i = 0; i < v.n; i++)
        TRY(buf_printf(b, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", (unsigned char)v.p[i]));
    return buf_putc(b, '"');
}

static double half(struct span v)
{
    unsigned h = (unsigned char)v.p[0] | (unsigned)(unsigned char)v.p[1] << 8, exponent = h >> 10 & 31, m = h & 1023;
    double x = exponent == 31 ? (m ? NAN : INFINITY) : exponent ? ldexp(m + 1024, (int)exponent - 25) : ldexp(m, -24);

    return h >> 15 ? -x : x;
}

static int put_interval(struct buf *b, struct span v)
{
    uint32_t part[3];

    memcpy(part, v.p, sizeof part);
    return buf_printf(b, "{\"months\":%" PRIu32 ",\"days\":%" PRIu32 ",\"milliseconds\":%" PRIu32 "}", part[0], part[1], part[2]);
}

static int put_raw(struct buf *b, const struct parquet_node *leaf, struct span value)
{
    double d;
    float f;

    switch (leaf->type) {
    case PARQUET_BOOLEAN: return buf_puts(b, value.p[0] ? "true" : "false");
    case PARQUET_FLOAT: memcpy(&f, value.p, sizeof f); return json_put_num(b, f);
    case PARQUET_DOUBLE: memcpy(&d, value.p, sizeof d); return json_put_num(b, d);
    case PARQUET_INT32:
    case PARQUET_INT64: return json_put_int(b, load_int(value));
    default: return put_text(b, value);
    }
}

int parquet_put_value(struct buf *b, const struct parquet_node *leaf, struct span value)
{
    switch (leaf->meaning) {
    case PARQUET_STRING:
    case PARQUET_JSON: return put_text(b, value);
    case PARQUET_UNSIGNED:
        return buf_printf(b, "%" PRIu64, value.n == 4 ? (uint64_t)(uint32_t)load_int(value) : (uint64_t)load_int(value));
    case PARQUET_DECIMAL: return put_decimal(b, leaf, value);
    case PARQUET_DATE:
        TRY(buf_putc(b, '"'));
        TRY(put_days(b, load_int(value)));
        return buf_putc(b, '"');
    case PARQUET_TIME:
    case PARQUET_TIMESTAMP: return put_time(b, leaf, value);
    case PARQUET_UUID: return put_uuid(b, value);
    case PARQUET_HALF: return json_put_num(b, half(value));
    case PARQUET_INTERVAL: return put_interval(b, value);
    case PARQUET_RAW: break;
    }
    return put_raw(b, leaf, value);
}
