/* S3: signatures, addresses, credentials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/s3.h"
#include "base/s3_sign.h"
#include "base/sha256.h"
#include "tests/temp_folder.h"

/* The next field of a line up to `end`, which *p is moved behind. */
static char *field(char **p, char end)
{
    char *s = *p, *stop = strchr(s, end);

    *p = stop ? stop + 1 : s + strlen(s);
    if (stop)
        *stop = '\0';
    return s;
}

/* A line of the recorded signatures. */
static void check_line(char *p)
{
    struct s3_request r = {.method = field(&p, '\t'), .path = field(&p, '\t'), .query = field(&p, '\t')};
    struct buf got = {0};
    struct err e;
    char *headers;

    r.region = field(&p, '\t');
    r.access_key = field(&p, '\t');
    r.secret_key = field(&p, '\t');
    r.payload = field(&p, '\t');
    headers = field(&p, '\t');
    while (*headers) {
        char *value = field(&headers, '\x1f'), *name = field(&value, '=');
        r.header[r.headers++] = (struct s3_header){name, value};
    }
    assert_int_equal(s3_sign(&r, &got, &e), 0);
    assert_int_equal(buf_putc(&got, '\0'), 0);
    assert_string_equal(got.p, field(&p, '\n'));
    buf_free(&got);
}

static void signs_as_botocore(void **state)
{
    struct buf all = {0};
    struct err e;
    int n = 0;

    (void)state;
    if (!sha256_is_built())
        skip();
    assert_int_equal(file_read_all("tests/data/s3/signatures.tsv.zst", 1 << 22, &all, &e), 0);
    assert_int_equal(buf_putc(&all, '\0'), 0);
    for (char *p = all.p; *p; n++)
        check_line(field(&p, '\n'));
    assert_int_equal(n, 1000);
    buf_free(&all);
}

static void unset_all(void)
{
    static const char *const names[] = {
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/credentials", 1);
    setenv("AWS_CONFIG_FILE", "/nonexistent/config", 1);
}

static void check_url(const char *address, const char *url)
{
    struct s3_object *o;
    struct err e;

    assert_int_equal(s3_find(&o, address, &e), 0);
    assert_string_equal(s3_url(o), url);
    s3_free(o);
}

static void finds_objects(void **state)
{
    static const char *const wrong[] = {"s3://", "s3:///key", "s3://bucket", "s3://bucket/", "s3://Bu_cket!/k", "s3://b/k",
                                        "s3://.bucket/k", "s3://buc/ket\n"};
    struct s3_object *o;
    struct err e;

    (void)state;
    unset_all();
    check_url("s3://bucket/a/b c+é.gz", "https://bucket.s3.us-east-1.amazonaws.com/a/b%20c%2B%C3%A9.gz");
    check_url("s3://with.dots/a//../b?c#d", "https://s3.us-east-1.amazonaws.com/with.dots/a//../b%3Fc%23d");
    setenv("AWS_DEFAULT_REGION", "cn-north-1", 1);
    check_url("s3://bucket/a", "https://bucket.s3.cn-north-1.amazonaws.com.cn/a");
    setenv("AWS_REGION", "eu-west-1", 1);
    check_url("s3://bucket/a", "https://bucket.s3.eu-west-1.amazonaws.com/a");
    setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/", 1);
    check_url("s3://bucket/a", "http://127.0.0.1:9000/bucket/a");
    setenv("AWS_ENDPOINT_URL_S3", "https://store.example.org", 1);
    check_url("s3://bucket/a", "https://store.example.org/bucket/a");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(s3_find(&o, wrong[i], &e), ERR_ARG);
    setenv("AWS_ENDPOINT_URL_S3", "ftp://store.example.org", 1);
    assert_int_equal(s3_find(&o, "s3://bucket/a", &e), ERR_ARG);
    unset_all();
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* What a request for the object is signed with: "KEY REGION TOKEN". */
static void check_signer(const char *want)
{
    struct s3_object *o;
    struct buf b = {0};
    struct err e;
    char got[200], *s;
    const char *key, *token;

    assert_int_equal(s3_find(&o, "s3://bucket/a", &e), 0);
    assert_int_equal(s3_headers(o, "GET", "", S3_NO_PAYLOAD, NULL, &b, &e), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    for (size_t i = 0; i + 1 < b.n; i++)
        if (!b.p[i])
            b.p[i] = '\n';
    if (!strstr(b.p, "Credential=")) {
        assert_string_equal(want, "nobody");
    } else {
        key = strstr(b.p, "Credential=") + 11;
        token = strstr(b.p, "x-amz-security-token: ");
        snprintf(got, sizeof got, "%.*s", (int)strcspn(key, "/"), key);
        s = strchr(key, '/') + 10;
        snprintf(got + strlen(got), sizeof got - strlen(got), " %.*s", (int)strcspn(s, "/"), s);
        if (token)
            snprintf(got + strlen(got), sizeof got - strlen(got), " %.*s", (int)strcspn(token + 22, "\n"), token + 22);
        assert_string_equal(got, want);
    }
    buf_free(&b);
    s3_free(o);
}

static void finds_credentials(void **state)
{
    const char *credentials = at("credentials"), *config = at("config");

    (void)state;
    if (!sha256_is_built())
        skip();
    write_text(credentials, "# keys\n[other]\naws_access_key_id = O\naws_secret_access_key=o\n\n"
                            "[default]\n  aws_access_key_id=D\naws_secret_access_key = d/d+\naws_session_token = T==\n; end\n");
    write_text(config, "[default]\nregion = eu-north-1\ns3 =\n  region = none\n[profile other]\nregion=sa-east-1\n"
                       "endpoint_url = http://127.0.0.1:1\n[profile third]\naws_access_key_id = C\naws_secret_access_key = c\n");
    unset_all();
    check_signer("nobody");
    setenv("AWS_SHARED_CREDENTIALS_FILE", credentials, 1);
    setenv("AWS_CONFIG_FILE", config, 1);
    check_signer("D eu-north-1 T==");
    setenv("AWS_PROFILE", "other", 1);
    check_signer("O sa-east-1");
    check_url("s3://bucket/a", "http://127.0.0.1:1/bucket/a");
    setenv("AWS_PROFILE", "third", 1);
    check_signer("C us-east-1");
    setenv("AWS_ACCESS_KEY_ID", "E", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "e", 1);
    check_signer("E us-east-1");
    unset_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_as_botocore),
        cmocka_unit_test(finds_objects),
        cmocka_unit_test(finds_credentials),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
