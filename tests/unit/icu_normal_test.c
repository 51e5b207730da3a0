/* Normal forms of texts with very many marks: those of ICU, in time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unicode/unorm2.h>

#include "base/icu_normal.h"
#include "base/rng.h"

enum { UNITS = 4000, ROOM = 20 * UNITS };

static const UNormalizer2 *form_at(int i)
{
    UErrorCode code = U_ZERO_ERROR;
    const UNormalizer2 *form = i == 0   ? unorm2_getNFCInstance(&code)
                               : i == 1 ? unorm2_getNFDInstance(&code)
                               : i == 2 ? unorm2_getNFKCInstance(&code)
                                        : unorm2_getNFKDInstance(&code);

    assert_true(U_SUCCESS(code));
    return form;
}

/* Marks of some classes, of which some decompose or are starters that do, and now and then what is none. */
static UChar32 some_char(struct rng_mt *r, uint64_t others)
{
    static const UChar32 marks[] = {0x300, 0x301, 0x316, 0x323, 0x327, 0x344, 0x345, 0x334, 0xf71, 0xf73, 0xf75,
                                    0xf81, 0xf74, 0x3099, 0xff9e, 0x302a, 0x5b0, 0x64b, 0x93c, 0x1d165, 0x1d16d, 0x9be};
    static const UChar32 rest[] = {'a', 0xe9, 0x4e00, 0xac00, 0x1100, 0x1161, 0x11a8, 0xfb01, 0xfdfa, 0x1d15e, 0x9c7, 0xd800};

    if (rng_mt_u64(r) % others)
        return marks[rng_mt_u64(r) % (sizeof marks / sizeof *marks)];
    return rest[rng_mt_u64(r) % (sizeof rest / sizeof *rest)];
}

static void forms_are_those_of_icu(void **s)
{
    static UChar u[UNITS + 2], want[ROOM], got[ROOM];
    static const uint64_t others[] = {2, 30, 300, 2000, 100000};
    struct rng_mt r;

    (void)s;
    rng_mt_seed(&r, 3);
    for (int i = 0; i < 200; i++) {
        const UNormalizer2 *form = form_at(i % 4);
        UErrorCode code = U_ZERO_ERROR;
        int32_t n = 0, m, most = (int32_t)(rng_mt_u64(&r) % UNITS);

        while (n < most) {
            UChar32 c = some_char(&r, others[i / 4 % 5]);
            U16_APPEND_UNSAFE(u, n, c);
        }
        m = unorm2_normalize(form, u, n, want, ROOM, &code);
        assert_true(U_SUCCESS(code));
        assert_int_equal(icu_normalize(form, u, n, got, ROOM, &code), m);
        assert_true(U_SUCCESS(code) && memcmp(got, want, (size_t)m * sizeof *got) == 0);
        assert_int_equal(icu_normalize(form, u, n, got, m / 2, &code), m);
        assert_int_equal(code, m > m / 2 ? U_BUFFER_OVERFLOW_ERROR : U_ZERO_ERROR);
    }
}

/* ICU takes minutes. */
static void a_million_marks_are_put_in_order(void **s)
{
    enum { MARKS = 1000000 };
    UChar *u = malloc(MARKS * sizeof *u), *out = malloc(MARKS * sizeof *out);
    UErrorCode code = U_ZERO_ERROR;

    (void)s;
    for (int i = 0; i < MARKS; i++)
        u[i] = i % 2 ? 0x316 : 0x30d;
    assert_int_equal(icu_normalize(form_at(0), u, MARKS, out, MARKS, &code), MARKS);
    assert_true(out[MARKS / 2 - 1] == 0x316 && out[MARKS / 2] == 0x30d);
    free(u);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_those_of_icu),
        cmocka_unit_test(a_million_marks_are_put_in_order),
    };
    return cmocka_run_group_tests_name("icu_normal", tests, NULL, NULL);
}
