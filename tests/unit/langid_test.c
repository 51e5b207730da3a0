/* Languages by CLD2. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "curate/language/cld2.h"
#include "curate/language/langid.h"
#include "curate/language/langid_model.h"

static void languages_of_plain_sentences(void **s)
{
    static const struct {
        const char *text, *code;
    } cases[] = {
        {"The mill stands by the river, and the miller knows everyone who comes.", "en"},
        {"Die Mühle steht am Fluss, und der Müller kennt alle, die zu ihm kommen.", "de"},
        {"Le moulin est au bord de la rivière et le meunier connaît tout le monde.", "fr"},
        {"הטחנה עומדת ליד הנהר והטוחן מכיר את כל מי שבא אליו.", "he"},
        {"老磨坊在河邊已經三百年了,村裡的人還把糧食帶來磨。", "zh"},
        {"Мельница стоит у реки, и мельник знает всех.", "ru"},
        {"Tsohuwar niƙa tana bakin kogi, kuma mai niƙa ya san duk wanda ya zo wurinsa.", "ha"},
        {"", "und"},
        {"12345 67890", "und"},
    };
    struct langid l;
    struct err e;

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(langid_detect(span_of(cases[i].text), &l, &e), 0);
        assert_true(span_is(l.code, cases[i].code));
        assert_true(span_is(l.code, "und") ? l.score == 0 : l.score > 0.65 && l.score <= 1);
    }
}

static void codes_are_iso(void **s)
{
    const char *code;
    int n = 0;

    (void)s;
    assert_string_equal(langid_iso("iw"), "he");
    assert_string_equal(langid_iso("jw"), "jv");
    assert_string_equal(langid_iso("zh-Hant"), "zh");
    assert_string_equal(langid_iso("xx-Latn"), "und");
    assert_string_equal(langid_iso("zzp"), "und");
    for (; (code = cld2_code(n)) != NULL; n++)
        assert_true(strlen(langid_iso(code)) == 2 || strlen(langid_iso(code)) == 3);
    assert_true(n > 500);
}

static int open_keep(struct stage *st, const char *keep, struct err *e)
{
    struct langid_conf conf;

    langid_conf_init(&conf);
    conf.keep = keep;
    return langid_stage_open(st, &conf, e);
}

static void keep_is_checked(void **s)
{
    static const char *const bad[] = {"", "xx", "en,", "en:", "en:2", "en:-1", "en:x", "en:nan", "english", "un"};
    struct stage st;
    struct err e;

    (void)s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int rc = open_keep(&st, bad[i], &e);
        if (strcmp(bad[i], "en,") == 0) { /* a comma at the end does no harm */
            assert_int_equal(rc, 0);
            st.ops->close(st.state);
        } else {
            assert_int_equal(rc, ERR_ARG);
        }
    }
}

static void other_languages_are_dropped(void **s)
{
    struct arena a = {0};
    struct stage st;
    struct err e;
    struct verdict v = {0};
    struct doc d;
    void *thread;
    struct span note = {0};

    (void)s;
    assert_int_equal(open_keep(&st, "de,en:1", &e), 0);
    assert_int_equal(st.ops->thread_open(st.state, &thread, &e), 0);
    doc_init(&d, &a);
    doc_set_string(&d, "text", span_of("Le moulin se trouve au bord de la rivière et le meunier est là."));
    assert_int_equal(st.ops->work(st.state, thread, &d, &v, &note, &e), 0);
    assert_true(v.drop);
    assert_string_equal(v.rule, "lang");
    assert_true(span_is(doc_string(&d, "lang"), "fr"));
    v = (struct verdict){0};
    doc_set_string(&d, "text", span_of("The mill stands by the river, and the miller knows all."));
    assert_int_equal(st.ops->work(st.state, thread, &d, &v, &note, &e), 0);
    assert_true(v.drop); /* no text gets all of its bytes */
    assert_string_equal(v.rule, "lang_score");
    assert_true(v.threshold == 1 && v.value < 1);
    st.ops->thread_close(st.state, thread);
    st.ops->close(st.state);
    arena_free(&a);
}

static void codes_of_models_are_iso(void **s)
{
    static const char *const cases[][2] = {
        {"eng", "en"}, {"cmn", "zh"}, {"nob", "no"}, {"aar", "aa"}, {"zul", "zu"}, {"als", "sq"},
        {"gsw", "gsw"}, {"en", "en"}, {"zzz", "zzz"}, {"aaa", "aaa"}, {"", ""}, {"englisch", "englisch"},
    };

    (void)s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(span_is(langid_short_code(span_of(cases[i][0])), cases[i][1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(languages_of_plain_sentences),
        cmocka_unit_test(codes_are_iso),
        cmocka_unit_test(codes_of_models_are_iso),
        cmocka_unit_test(keep_is_checked),
        cmocka_unit_test(other_languages_are_dropped),
    };
    return cmocka_run_group_tests_name("langid", tests, NULL, NULL);
}
