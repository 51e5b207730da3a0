/* Personal data: what is found, what is not, and datatrove's outputs (tests/record/pii.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "curate/clean/pii.h"

static struct buf a, b;

static struct span run(const char *kinds, int preset, struct span in, uint64_t count[PII_KINDS])
{
    const struct pii_conf conf = {kinds, preset, "<KIND>"};
    struct pii p;
    struct span out;
    struct err e;

    assert_int_equal(pii_init(&p, &conf, &e), 0);
    assert_int_equal(pii_replace(&p, &a, &b, in, &out, count), 0);
    return out;
}

static void expect(const char *kinds, const char *in, const char *want)
{
    uint64_t count[PII_KINDS] = {0};
    struct span out = run(kinds, PII_PRESET_NONE, span_of(in), count);

    if (!span_is(out, want))
        fail_msg("'%s' became '%.*s', not '%s'", in, (int)out.n, out.p, want);
    if (strcmp(in, want) == 0)
        assert_ptr_equal(out.p, in);
}

static void stays(const char *text) { expect("all", text, text); }

static void email(void **s)
{
    (void)s;
    expect("email", "a@b.co, <x.y+z@mail.example.org>.", "<EMAIL_ADDRESS>, <<EMAIL_ADDRESS>>.");
    expect("email", "\xC3\xA9mile@d\xC3\xA9.fr m\xC3\xBCller@firma.de \xE5\x90\x8D" "a@b.jp",
           "\xC3\xA9mile@d\xC3\xA9.fr <EMAIL_ADDRESS> \xE5\x90\x8D<EMAIL_ADDRESS>");
    expect("email", "mailto:a@b.com?to=c@d.net", "mailto:<EMAIL_ADDRESS>?to=<EMAIL_ADDRESS>");
    expect("email", "a@b.com.1 'q@r.io' a@xn--80ak6aa92e.xn--p1ai",
           "<EMAIL_ADDRESS>.1 '<EMAIL_ADDRESS>' <EMAIL_ADDRESS>");
    expect("ip", "a@b.com", "a@b.com");
    stays("a@b icon@2x.png vue@2.6.js @name name@ @ a@.com a@b..com .@b.com a.@b.com");
}

static void ip(void **s)
{
    (void)s;
    expect("ip", "8.8.8.8 (1.1.1.1) 9.9.9.9:53 9.9.9.0/24.",
           "<IP_ADDRESS> (<IP_ADDRESS>) <IP_ADDRESS>:53 <IP_ADDRESS>/24.");
    expect("ipv6", "2a00:1450:4001:81b::200e, [2606:4700::1111]:80", "<IP_ADDRESS>, [<IP_ADDRESS>]:80");
    expect("ipv6", "at 2606:4700:0:1:2:3:4:5: yes", "at <IP_ADDRESS>: yes");
    stays("10.0.0.1 127.0.0.1 192.168.1.1 172.20.0.1 100.64.0.1 240.0.0.1 8.8.8 8.8.8.256 08.8.8.8 1.2.3.4.5");
    stays("version 8.8.8.8, v8.8.8.8 x8.8.8.8 2001:db8::1 fe80::1 ::1 12:30:45 std::string 2000:1:2");
}

static void phone(void **s)
{
    (void)s;
    expect("phone", "+44 20 7946 0958, +1 (212) 555-0123; tel:+4930123456",
           "<PHONE_NUMBER>, <PHONE_NUMBER>; tel:<PHONE_NUMBER>");
    expect("phone", "(212) 555-0123 212.555.0123 1-800-555-0199 (212)555-0123",
           "<PHONE_NUMBER> <PHONE_NUMBER> <PHONE_NUMBER> <PHONE_NUMBER>");
    expect("phone", "Tel.: 030 1234567, Fax (030) 123 456; t\xC3\xA9l. 01 23 45 67 89 phone 5551234",
           "Tel.: <PHONE_NUMBER>, Fax <PHONE_NUMBER>; t\xC3\xA9l. <PHONE_NUMBER> phone <PHONE_NUMBER>");
    expect("phone", "+49 (0)30 1234567", "<PHONE_NUMBER>");
    stays("1999-2005, 10,000,000 and 978-3-16-148410-0, 2023-05-06 12:30:45, 3.14159265358979, 123-456-7890, "
          "x+12345678 5+12345678 212-555-0123-4 1212-555-0123 tel 12 "
          "phones 12345678 tel1234567 a@firm.ph1234567 +1 100 000 0000 +0123456789");
}

static void card(void **s)
{
    (void)s;
    expect("card", "4111111111111111 4111 1111 1111 1111 12/25 5555-5555-5555-4444",
           "<CREDIT_CARD> <CREDIT_CARD> 12/25 <CREDIT_CARD>");
    expect("card", "378282246310005, 3782 822463 10005, 30569309025904, 6011111111111117, 3530111333300000",
           "<CREDIT_CARD>, <CREDIT_CARD>, <CREDIT_CARD>, <CREDIT_CARD>, <CREDIT_CARD>");
    stays("4111111111111112 4111 1111-1111 1111 41111111111111111 x4111111111111111 9111111111111111 "
          "0.4111111111111111 4111-1111-1111-1111-1111");
}

static void iban(void **s)
{
    (void)s;
    expect("iban", "GB29 NWBK 6016 1331 9268 19 DE89370400440532013000.", "<IBAN_CODE> <IBAN_CODE>.");
    expect("iban", "FR14 2004 1010 0505 0001 3M02 606", "<IBAN_CODE>");
    stays("GB29 NWBK 6016 1331 9268 18 XX29NWBK60161331926819 GB29NWBK6016133192681 GB29NWBK601613319268199 "
          "AGB29NWBK60161331926819 GB29NWBK");
}

static void together(void **s)
{
    uint64_t count[PII_KINDS] = {0};
    struct span out = run("all", PII_PRESET_NONE,
                          span_of("a@b.com 8.8.8.8 +44 20 7946 0958 4111111111111111 DE89370400440532013000 x@y.org"),
                          count);

    (void)s;
    assert_true(span_is(out, "<EMAIL_ADDRESS> <IP_ADDRESS> <PHONE_NUMBER> <CREDIT_CARD> <IBAN_CODE> <EMAIL_ADDRESS>"));
    assert_int_equal(count[PII_EMAIL], 2);
    assert_int_equal(count[PII_IP] + count[PII_PHONE] + count[PII_CARD] + count[PII_IBAN], 4);
    stays("");
    stays("nothing here");
}

static void settings_are_checked(void **s)
{
    const struct pii_conf unknown = {"email,shoe", 0, PII_TAG}, twice = {"email", PII_PRESET_DATATROVE, PII_TAG},
                          again = {"email", 0, "a@b"};
    struct pii p;
    struct err e;

    (void)s;
    assert_int_equal(pii_init(&p, &unknown, &e), ERR_ARG);
    assert_non_null(strstr(e.msg, "shoe"));
    assert_int_equal(pii_init(&p, &twice, &e), ERR_ARG);
    assert_int_equal(pii_init(&p, &again, &e), ERR_ARG);
}

static struct span string_of(const struct json_field *f, struct buf *out)
{
    struct err e;

    buf_clear(out);
    assert_int_equal(json_unescape(f->raw, out, &e), 0);
    return buf_span(out);
}

static void as_datatrove(void **s)
{
    FILE *f = fopen("tests/data/clean/pii_datatrove.jsonl", "r");
    struct json_reader *j = json_reader_new();
    struct buf text = {0}, want = {0};
    static char line[1 << 14];
    int n_lines = 0, changed = 0;

    (void)s;
    assert_non_null(f);
    while (fgets(line, sizeof line - JSON_PADDING, f)) {
        const struct json_field *field;
        uint64_t count[PII_KINDS] = {0};
        struct err e;
        struct span out;

        assert_int_equal(json_read_object(j, (struct span){line, strcspn(line, "\n")}, &field, &e), 2);
        string_of(&field[1], &want);
        out = run(NULL, PII_PRESET_DATATROVE, string_of(&field[0], &text), count);
        if (!span_eq(out, buf_span(&want)))
            fail_msg("'%.*s' became '%.*s'", (int)text.n, text.p, (int)out.n, out.p);
        changed += !span_eq(buf_span(&text), buf_span(&want));
        n_lines++;
    }
    assert_true(n_lines >= 300 && changed > 100);
    fclose(f);
    json_reader_free(j);
    buf_free(&text);
    buf_free(&want);
}

static int release(void **s)
{
    (void)s;
    buf_free(&a);
    buf_free(&b);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(email),    cmocka_unit_test(ip),   cmocka_unit_test(phone),
        cmocka_unit_test(card),     cmocka_unit_test(iban), cmocka_unit_test(together),
        cmocka_unit_test(settings_are_checked), cmocka_unit_test(as_datatrove),
    };
    return cmocka_run_group_tests_name("pii", tests, NULL, release);
}
