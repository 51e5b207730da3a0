/* Sums that servers state: each kind, forms of headers, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "base/http_sum.h"
#include "base/sha256.h"

static const char *const *headers; /* names and values in turns; NULL: the end */

static const char *header(const void *arg, const char *name)
{
    (void)arg;
    for (int i = 0; headers[i]; i += 2)
        if (strcasecmp(headers[i], name) == 0)
            return headers[i + 1];
    return "";
}

/* Which header states the sum of "123456789", given in two parts; NULL: none does. */
static const char *stated(const char *const *given)
{
    struct http_sum *s;
    const char *of;

    headers = given;
    s = http_sum_begin(header, NULL);
    if (!s)
        return NULL;
    http_sum_add(s, "1", 1);
    http_sum_add(s, "23456789", 8);
    of = http_sum_header(s);
    assert_true(http_sum_holds(s));
    http_sum_free(s);
    return of;
}

#define GIVEN(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The values of these nine bytes are those of the catalogue of CRCs and, for the rest, of coreutils. */
static void each_kind_holds(void **state)
{
    (void)state;
    assert_string_equal(stated(GIVEN("x-amz-checksum-crc32", "y/Q5Jg==")), "x-amz-checksum-crc32");
    assert_string_equal(stated(GIVEN("x-amz-checksum-crc32c", "4waSgw==")), "x-amz-checksum-crc32c");
    assert_string_equal(stated(GIVEN("x-amz-checksum-crc64nvme", "rosUhgp5mIg=")), "x-amz-checksum-crc64nvme");
    assert_string_equal(stated(GIVEN("x-goog-hash", "md5=AAAA, crc32c=4waSgw==")), "x-goog-hash");
    if (!sha256_is_built())
        skip();
    assert_string_equal(stated(GIVEN("Content-MD5", "JfnnlDI7RTiF9RgfG2JNCw==")), "Content-MD5");
    assert_string_equal(stated(GIVEN("x-goog-hash", "md5=JfnnlDI7RTiF9RgfG2JNCw==")), "x-goog-hash");
    assert_string_equal(stated(GIVEN("x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE=")), "x-amz-checksum-sha1");
    assert_string_equal(stated(GIVEN("repr-digest", "sha-512=:x:, SHA-256=:FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=:")),
                        "Repr-Digest");
    assert_string_equal(stated(GIVEN("X-Linked-ETag", "\"15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225\"")),
                        "X-Linked-ETag");
}

static void others_are_none(void **state)
{
    struct http_sum *s;

    (void)state;
    assert_null(stated(GIVEN("Content-Type", "text/plain")));
    assert_null(stated(GIVEN("x-amz-checksum-crc32", "y/Q5Jg==-3")));
    assert_null(stated(GIVEN("x-amz-checksum-crc32", "y/Q5")));
    assert_null(stated(GIVEN("x-amz-checksum-crc32c", "y/Q5Jg==Jg==", "Digest", "sha-256", "Repr-Digest", "sha-256=")));
    assert_null(stated(GIVEN("X-Linked-ETag", "\"15e2\"", "x-goog-hash", "crc32c")));
    headers = GIVEN("x-amz-checksum-crc32", "y/Q5Jw==");
    s = http_sum_begin(header, NULL);
    assert_non_null(s);
    http_sum_add(s, "123456789", 9);
    assert_false(http_sum_holds(s));
    http_sum_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_kind_holds), cmocka_unit_test(others_are_none)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
