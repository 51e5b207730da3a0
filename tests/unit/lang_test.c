/* Languages: codes, stop words, words as ICU cuts them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "curate/text/segment.h"

static void codes(void **s)
{
    static const char *const same[][2] = {{"de", "deu_Latn"}, {"pt", "pt-BR"}, {"nb", "no"},
                                           {"zh", "cmn"}, {"he", "iw"}, {"fa", "pes"}};

    (void)s;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_non_null(lang_find(span_of(same[i][0])));
        assert_ptr_equal(lang_find(span_of(same[i][0])), lang_find(span_of(same[i][1])));
    }
    assert_null(lang_find(span_of("tlh")));
    assert_null(lang_find(span_of("")));
    assert_null(lang_find(span_of("-")));
    assert_string_equal(lang_code(lang_english()), "en");
    assert_non_null(lang_at(30));
    assert_null(lang_at(31));
    assert_true(isnan(lang_number(lang_english(), LANG_NEW_LINE_RATIO)));
    assert_true(lang_number(lang_find(span_of("de")), LANG_TOP_4_GRAMS) == 0.137);
    for (int i = 1; lang_at(i); i++) /* every row has all its numbers, which fall with n */
        for (int k = LANG_DUP_5_GRAMS; k < LANG_DUP_10_GRAMS; k++)
            assert_true(lang_number(lang_at(i), k) > lang_number(lang_at(i), k + 1));
    for (int i = 1; lang_at(i); i++)
        assert_true(lang_number(lang_at(i), LANG_TOP_4_GRAMS) > 0.1);
}

static void stop_words(void **s)
{
    const struct lang *de = lang_find(span_of("de")), *ko = lang_find(span_of("ko"));

    (void)s;
    assert_int_equal(lang_stop_words(de, span_of("und")), 2);
    assert_int_equal(lang_stop_words(de, span_of("Und")), 0);
    assert_int_equal(lang_stop_words(de, span_of("hund")), 0);
    assert_int_not_equal(lang_stop_words(ko, span_of("인간의")), 0); /* an ending */
    assert_int_equal(lang_stop_words(ko, span_of("x")), 0);
    assert_int_equal(lang_stop_words(NULL, span_of("the")), 0);
    assert_true(lang_has_rpv2_stop_words(de) && !lang_has_rpv2_stop_words(ko));
    assert_true(lang_rpv2_stop_word(de, span_of("währenddessen")));
    assert_false(lang_rpv2_stop_word(de, span_of("Hund")));
}

static void words(void **s)
{
    static const struct {
        const char *lang, *text, *words;
    } cases[] = {
        {"en", "Don't  panic, it's 3.5%!\n", "Don't|panic|,|it's|3.5|%|!"},
        {"fr", "L'homme d\xE2\x80\x99\x61\x62or\x64 l' 'a", "L'|homme|d\xE2\x80\x99|abord|l|'|'|a"},
        {"de", "d'Annunzio", "d'Annunzio"},
        {"th", "มนุษย์ทั้งหลายเกิดมามีอิสระ", "มนุษย์|ทั้ง|หลาย|เกิด|มา|มี|อิสระ"},
        {"ja", "すべての人間は、生まれながら。", "すべて|の|人間|は|、|生まれながら|。"},
        {"zh", "人人生而自由 2", "人|人生|而|自由|2"},
        {"ko", "모든 인간은", "모든|인간은"},
        {"hi", "सभी मनुष्यों\xC2\xA0", "सभी|मनुष्यों"},
        {"de", " \t\xE3\x80\x80", ""},
        {"de", "", ""},
        {"de", "\xF0\x9F\x98\x80\xF0\x9D\x9F\x98 a", "\xF0\x9F\x98\x80|\xF0\x9D\x9F\x98|a"},
    };
    struct segmenter seg = {0};
    struct words ws = {0};
    struct err e;

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct span text = span_of(cases[i].text);
        struct buf b = {0};

        assert_int_equal(segment_split(&seg, lang_find(span_of(cases[i].lang)), text, &ws, &e), 0);
        for (size_t k = 0; k < ws.n; k++)
            assert_int_equal(buf_printf(&b, "%s%.*s", k ? "|" : "", (int)ws.w[k].len, text.p + ws.w[k].off), 0);
        if (!span_is(buf_span(&b), cases[i].words))
            fail_msg("'%s' is cut as '%.*s'", cases[i].text, (int)b.n, b.p);
        buf_free(&b);
    }
    segment_free(&seg);
    words_free(&ws);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes),
        cmocka_unit_test(stop_words),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
