/* Units of texts in many scripts: cases, and any characters against normalising the whole text first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unicode/ustring.h>

#include "base/rng.h"
#include "curate/dedup/minhash_preset.h"
#include "curate/dedup/minhash_text.h"
#include "tests/plain_units.h"

static struct shingler *open_units(void)
{
    struct shingler *sh;
    struct err e;

    assert_int_equal(shingler_new(&sh, minhash_preset_find("quern2"), 0, &e), 0);
    return sh;
}

static void units_are(struct shingler *sh, const char *text, const char *want)
{
    const uint64_t *hash;
    size_t count;
    struct err e;

    assert_int_equal(shingler_run(sh, span_of(text), &hash, &count, &e), 0);
    if (!span_is(shingler_words(sh), want))
        fail_msg("'%s' is '%.*s', not '%s'", text, (int)shingler_words(sh).n, shingler_words(sh).p, want);
}

static void units_of_each_script(void **s)
{
    struct shingler *sh = open_units();

    (void)s;
    units_are(sh, "Don't_stop: 3.14 CAFÉ!", "don t stop 3 14 café");
    units_are(sh, "", "");
    units_are(sh, " .,- ", "");
    units_are(sh, "Straße STRASSE ﬁne ＡＢＣ１ ½ Ⅷ", "strasse strasse fine abc1 1 2 viii");
    units_are(sh, "ΣΟΦΟΣ σοφός İx", "σοφοσ σοφόσ i̇x");
    units_are(sh, "co\xc2\xadoperate na\xe2\x80\x8dïve", "cooperate naïve");
    units_are(sh, "हिन्दी की किताबें।", "हिन्दी की किताबें");
    units_are(sh, "كِتَابٌ، جديد", "كِتَابٌ جديد");
    units_are(sh, "한국어를 배운다.", "한국어를 배운다");
    units_are(sh, "我们去北京。", "我 们 去 北 京");
    units_are(sh, "买iPhone手机15部", "买 iphone 手 机 15 部");
    units_are(sh, "コーヒーを飲む", "コ ー ヒ ー を 飲 む");
    units_are(sh, "ｺｰﾋｰ ｶﾞ", "コ ー ヒ ー ガ");
    units_are(sh, "ชื่อ น้ำ 2 แก้ว", "ชื่ อ น้ํ า 2 แ ก้ ว");
    units_are(sh, "ខ្ញុំ", "ខ្ ញុំ");
    units_are(sh, "བཀྲ་ཤིས", "བཀྲ ཤིས");
    units_are(sh, "㌖ﷺ", "キ ロ メ ー ト ル صلى الله عليه وسلم");
    units_are(sh, "=\xcc\xb8 e\xcc\x81 \xcc\x81x", "é \xcc\x81x");
    units_are(sh, "中\xcc\x81国a\xcc\x81", "中\xcc\x81 国 á");
    shingler_free(sh);
}

static void a_change_of_vowel_signs_is_seen(void **s)
{
    struct shingler *sh = open_units();
    const uint64_t *hash;
    uint64_t first;
    size_t count;
    struct err e;

    (void)s;
    assert_int_equal(shingler_run(sh, span_of("हिन्दी की किताबें"), &hash, &count, &e), 0);
    assert_int_equal(count, 1);
    first = hash[0];
    assert_int_equal(shingler_run(sh, span_of("हुन्दु का कूतोबै"), &hash, &count, &e), 0);
    assert_int_equal(count, 1);
    assert_true(hash[0] != first);
    shingler_free(sh);
}

/* ---- any characters ---- */

enum { LONGEST = 40, ROOM = 32 * LONGEST };

static size_t to_utf8(const UChar *u, int32_t n, char *out)
{
    UErrorCode status = U_ZERO_ERROR;
    int32_t len = 0;

    u_strToUTF8(out, 6 * ROOM, &len, u, n, &status);
    assert_true(U_SUCCESS(status));
    return (size_t)len;
}

static size_t plainly(const UChar *u, int32_t n, char *out)
{
    UChar folded[ROOM];
    long len = plain_units(u, n, folded, ROOM, out);

    assert_true(len >= 0);
    return (size_t)len;
}

/* A character of a kind that meets others: ASCII, marks, jamo, scripts, what goes away, what becomes several, any. */
static UChar32 some_char(struct rng_mt *r)
{
    static const UChar32 from[][2] = {{' ', '~'},     {0x300, 0x345},  {0x1100, 0x11ff}, {0xac00, 0xac40}, {0x900, 0x97f},
                                      {0xe00, 0xe5b}, {0x3040, 0x30ff}, {0x4e00, 0x4e20}, {0xff61, 0xff9f}, {0x200b, 0x200f},
                                      {0xfb00, 0xfdff}, {0xc0, 0x24f}, {0x600, 0x660}, {0x1000, 0x109f}, {0xf40, 0xfbc},
                                      {0xa0, 0x10ffff}};
    const UChar32 *range = from[rng_mt_u64(r) % (sizeof from / sizeof *from)];
    UChar32 c = range[0] + (UChar32)(rng_mt_u64(r) % (uint64_t)(range[1] - range[0] + 1));

    return U_IS_SURROGATE(c) ? 'a' : c;
}

static void units_are_those_of_the_whole_text_in_normal_form(void **s)
{
    static char text[6 * ROOM], want[6 * ROOM], other[6 * ROOM];
    struct shingler *sh = open_units();
    UErrorCode status = U_ZERO_ERROR;
    const UNormalizer2 *nfd = unorm2_getNFDInstance(&status);
    struct rng_mt r;
    struct err e;

    (void)s;
    rng_mt_seed(&r, 5);
    for (int i = 0; i < 30000; i++) {
        int32_t n = 0, m, chars = 1 + (int32_t)(rng_mt_u64(&r) % 30);
        UChar u[2 * LONGEST], d[ROOM];
        const uint64_t *hash;
        size_t count, len;
        struct span got;

        for (int k = 0; k < chars; k++) {
            UChar32 c = some_char(&r);
            U16_APPEND_UNSAFE(u, n, c);
        }
        len = plainly(u, n, want);
        assert_int_equal(shingler_run(sh, (struct span){text, to_utf8(u, n, text)}, &hash, &count, &e), 0);
        got = shingler_words(sh);
        if (got.n != len || memcmp(got.p, want, len) != 0)
            fail_msg("text %d, '%s': '%.*s', not '%.*s'", i, text, (int)got.n, got.p, (int)len, want);
        m = unorm2_normalize(nfd, u, n, d, ROOM, &status);
        assert_true(U_SUCCESS(status));
        len = plainly(d, m, want);
        assert_int_equal(shingler_run(sh, (struct span){other, to_utf8(d, m, other)}, &hash, &count, &e), 0);
        got = shingler_words(sh);
        if (got.n != len || memcmp(got.p, want, len) != 0)
            fail_msg("text %d in NFD, '%s': '%.*s', not '%.*s'", i, other, (int)got.n, got.p, (int)len, want);
    }
    shingler_free(sh);
}

/* Thousands of marks on a letter cost no more than their bytes, and all are there. */
static void very_many_marks_are_taken(void **s)
{
    enum { MARKS = 200000 };
    struct shingler *sh = open_units();
    char *text = malloc(2 * MARKS + 3);
    const uint64_t *hash;
    size_t count;
    struct err e;

    (void)s;
    text[0] = 'q';
    for (int i = 0; i < MARKS; i++)
        memcpy(text + 1 + 2 * i, i % 2 ? "\xcc\x96" : "\xcc\x8d", 2);
    assert_int_equal(shingler_run(sh, (struct span){text, 2 * MARKS + 1}, &hash, &count, &e), 0);
    assert_int_equal(count, 1);
    assert_int_equal(shingler_words(sh).n, 2 * MARKS + 1);
    free(text);
    shingler_free(sh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_of_each_script),
        cmocka_unit_test(a_change_of_vowel_signs_is_seen),
        cmocka_unit_test(units_are_those_of_the_whole_text_in_normal_form),
        cmocka_unit_test(very_many_marks_are_taken),
    };
    return cmocka_run_group_tests_name("minhash_units", tests, NULL, NULL);
}
