#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <iconv.h>

#include "base/utf8.h"
#include "curate/archive/charset.h"
#include "curate/archive/charset_label.h"

static struct charset *c;

static int open_one(void **state)
{
    struct err e;

    (void)state;
    return charset_new(&c, &e);
}

static int close_one(void **state)
{
    (void)state;
    charset_free(c);
    return 0;
}

static void expect_n(struct span page, const char *label, const char *want, const char *charset)
{
    struct span utf8;
    const char *name;
    struct err e;

    assert_int_equal(charset_decode(c, page, span_of(label), true, &utf8, &name, &e), 0);
    assert_true(utf8_valid(utf8));
    assert_string_equal(name, charset);
    assert_int_equal(utf8.n, strlen(want));
    assert_memory_equal(utf8.p ? utf8.p : "", want, utf8.n);
}

static void expect(const char *page, const char *label, const char *want, const char *charset)
{
    expect_n(span_of(page), label, want, charset);
}

static void test_labels(void **state)
{
    static const struct {
        const char *label, *name;
    } cases[] = {
        {"latin1", "windows-1252"}, {"ISO-8859-1", "windows-1252"}, {"us-ascii", "windows-1252"},
        {" UTF8 ", "utf-8"},        {"\"gb2312\"", "gbk"},          {"x-sjis", "shift_jis"},
        {"ks_c_5601-1987", "euc-kr"}, {"TIS-620", "windows-874"},   {"iso-8859-9", "windows-1254"},
        {"unicode", "utf-16le"},    {"x-mac-roman", "macintosh"},   {"big5-hkscs", "big5"},
        {"", NULL},                 {"nonsense", NULL},             {"utf-8 latin1", NULL},
        {"a-label-that-is-longer-than-any-that-there-is", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct charset_entry *entry = charset_entry_of(span_of(cases[i].label));
        if (cases[i].name)
            assert_string_equal(entry->name, cases[i].name);
        else
            assert_null(entry);
    }
}

/* One character of each encoding, so that each converter is opened and is the right one. */
static void test_each_encoding(void **state)
{
    static const struct {
        const char *label, *bytes, *want;
    } cases[] = {
        {"windows-1250", "\x9A\xB9", "šą"},     {"windows-1251", "\xCF\xF0", "Пр"},
        {"windows-1252", "\x80\xE9", "€é"},     {"windows-1253", "\xE1\xA2", "αΆ"},
        {"windows-1254", "\xFD\xF0", "ığ"},     {"windows-1255", "\xF9\xE9", "שי"},
        {"windows-1256", "\xC7\xE1", "ال"},     {"windows-1257", "\xE0\xF0", "ąš"},
        {"windows-1258", "\xE3\xFD", "ăư"},     {"windows-874", "\xA1\xD2", "กา"},
        {"iso-8859-2", "\xB9\xB1", "šą"},       {"iso-8859-3", "\xE6\xFD", "ĉŭ"},
        {"iso-8859-4", "\xB1\xB9", "ąš"},       {"iso-8859-5", "\xBF\xE0", "Пр"},
        {"iso-8859-6", "\xC7\xE4", "ال"},       {"iso-8859-7", "\xE1\xB6", "αΆ"},
        {"iso-8859-8", "\xF9\xE9", "שי"},       {"iso-8859-10", "\xB1\xBA", "ąš"},
        {"iso-8859-13", "\xE0\xF0", "ąš"},      {"iso-8859-14", "\xF0\xFE", "ŵŷ"},
        {"iso-8859-15", "\xA4\xBD", "€œ"},
        {"koi8-r", "\xF0\xD2", "Пр"},           {"koi8-u", "\xA4\xA6", "єі"},
        {"ibm866", "\x8F\xE0", "Пр"},           {"macintosh", "\x8E\xDB", "é€"},
        {"x-mac-cyrillic", "\x8F\xF0", "Пр"},   {"gbk", "\xD6\xD0\xCE\xC4", "中文"},
        {"gb18030", "\x81\x39\xEF\x38", "㐉"},  {"big5", "\xA4\xA4\xA4\xE5", "中文"},
        {"euc-jp", "\xC6\xFC\xCB\xDC", "日本"}, {"shift_jis", "\x93\xFA\x96\x7B\x87\x40", "日本①"},
        {"iso-2022-jp", "\x1B$BF|K\\\x1B(B", "日本"}, {"euc-kr", "\xC7\xD1\x81\x41", "한갂"},
        {"hz-gb-2312", "~{VPND~}", "中文"},     {"iso-2022-kr", "\x1B$)C\x0E" "GQ\x0F", "한"},
        {"utf-8", "\xE4\xB8\xAD", "中"},        {"iso-2022-cn", "\x1B$)A\x0E" "VP\x0F", "中"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(cases[i].bytes, cases[i].label, cases[i].want, cases[i].label);
    expect_n((struct span){"a\0\x2D\x4E", 4}, "utf-16le", "a中", "utf-16le");
    expect_n((struct span){"\0a\x4E\x2D", 4}, "utf-16be", "a中", "utf-16be");
}

static void test_marks(void **state)
{
    (void)state;
    expect("\xEF\xBB\xBF<p>é", "latin1", "<p>é", "utf-8");
    expect_n((struct span){"\xFF\xFE<\0p\0>\0\xE9\0", 10}, "utf-8", "<p>é", "utf-16le");
    expect_n((struct span){"\xFE\xFF\0<\0p\0>\0\xE9", 10}, "utf-8", "<p>é", "utf-16be");
    expect("\xEF\xBB\xBF", "", "", "utf-8");
    expect("", "", "", "utf-8");
}

static void test_distrust(void **state)
{
    static const char text[] = "<p>水车磨坊在小河边上";
    static const char *const labels[] = {"gb2312", "gbk", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr", "iso-2022-jp"};

    (void)state;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        expect(text, labels[i], text, "utf-8"); /* UTF-8, whatever is said */
    expect("\xC1\xAA\xCD\xA8", "gb2312", "联通", "gbk"); /* valid as UTF-8 by chance */
}

static void test_prescan(void **state)
{
    static const struct {
        const char *page, *label; /* NULL: none */
    } cases[] = {
        {"<html><head><meta charset=koi8-r>", "koi8-r"},
        {"<META CHARSET = 'KOI8-R' >", "KOI8-R"},
        {"<meta name=x content='text/html; charset=koi8-r'>", NULL},
        {"<meta http-equiv=Content-Type content=\"text/html; charset=koi8-r\">", "koi8-r"},
        {"<meta content='text/html;charset = \"koi8-r\"' http-equiv='content-type'/>", "koi8-r"},
        {"<!-- <meta charset=koi8-r> --><meta charset=ibm866>", "ibm866"},
        {"<title x='<meta charset=koi8-r>'></title><meta charset=ibm866>", "ibm866"},
        {"<metal charset=koi8-r>", NULL},
        {"<meta charset=nonsense><meta charset=koi8-r>", "koi8-r"},
        {"<?xml version=\"1.0\" encoding=\"koi8-r\"?><html>", "koi8-r"},
        {"<?xml version='1.0' encoding = 'koi8-r'?><html><meta charset=ibm866>", "ibm866"},
        {"<meta charset=koi8-r", "koi8-r"},
        {"<meta charset", NULL}, {"<meta", NULL}, {"<", NULL}, {"", NULL}, {"<!--", NULL}, {"</", NULL},
        {"<a href=\"x", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct span s = charset_prescan(span_of(cases[i].page));
        if (cases[i].label)
            assert_true(span_is(s, cases[i].label));
        else
            assert_null(s.p);
    }
}

static void test_order(void **state)
{
    (void)state;
    /* the header goes before the page */
    expect("<meta charset=iso-8859-2>\xB1", "iso-8859-15", "<meta charset=iso-8859-2>±", "iso-8859-15");
    expect("<meta charset=iso-8859-2>\xB1", "", "<meta charset=iso-8859-2>ą", "iso-8859-2");
    expect("<meta charset=iso-8859-2>\xB1", "nonsense", "<meta charset=iso-8859-2>ą", "iso-8859-2");
    /* a page that could be read to its <meta> is not UTF-16 */
    expect("<meta charset=utf-16>é", "", "<meta charset=utf-16>é", "utf-8");
    /* bytes against a label */
    expect("é", "iso-8859-1", "é", "utf-8");
    expect("plain", "iso-8859-1", "plain", "utf-8");
    expect("\xF0\xD2\xC1\xD7\xC1 \xDE\xC5\xCC\xCF\xD7\xC5\xCB\xC1 \xC9 \xC5\xC7\xCF "
           "\xD3\xD7\xCF\xC2\xCF\xC4\xD9", "utf-8",
           "Права человека и его свободы", "koi8-r");
    expect("中文中文\xFF" "中文", "utf-8", "中文中文\xEF\xBF\xBD中文", "utf-8");
    expect("<meta charset=koi8-r>\xF0\xD2", "utf-8", "<meta charset=koi8-r>Пр", "koi8-r");
    /* multi-byte text that happens to be UTF-8 stays what its label says */
    expect("\xC1\xAA\xCD\xA8", "gbk", "联通", "gbk");
}

static void test_cleaning(void **state)
{
    (void)state;
    expect_n((struct span){"a\0b\0c", 5}, "utf-8", "abc", "utf-8");
    expect_n((struct span){"a\0\xE9", 3}, "windows-1252", "aé", "windows-1252");
    expect("\xC3", "utf-8", "Ã", "windows-1252");
    expect("a\xC3", "shift_jis", "aﾃ", "shift_jis");
    expect("a\x81", "shift_jis", "a\xEF\xBF\xBD", "shift_jis");
}

static void test_long(void **state)
{
    struct buf page = {0}, want = {0};
    struct span utf8;
    const char *name;
    struct err e;

    (void)state;
    for (int i = 0; i < 100000; i++) { /* over many pivots, and three bytes for each two */
        buf_puts(&page, "\xD6\xD0\xCE\xC4.");
        buf_puts(&want, "中文.");
    }
    assert_int_equal(charset_decode(c, buf_span(&page), span_of("gbk"), true, &utf8, &name, &e), 0);
    assert_true(span_eq(utf8, buf_span(&want)));
    buf_free(&page);
    buf_free(&want);
}

static void test_detection(void **state)
{
    (void)state;
    expect("\x1B$BF|K\\8l$G$9!#\x1B(B", "", "日本語です。", "iso-2022-jp");
    expect_n((struct span){"<\0p\0>\0a\0b\0c\0", 12}, "", "<p>abc", "utf-16le");
    expect_n((struct span){"\0<\0p\0>\0a\0b\0c", 12}, "", "<p>abc", "utf-16be");
    expect("<p>Schöne Grüße aus München", "", "<p>Schöne Grüße aus München", "utf-8");
    expect("<p>Sch\xF6ne Gr\xFC\xDF" "e aus M\xFCnchen", "", "<p>Schöne Grüße aus München", "windows-1252");
    expect("<p>\xD7\xE5\xEB\xEE\xE2\xE5\xF7\xE5\xF1\xF2\xE2\xEE \xE8 \xE5\xE3\xEE \xEF\xF0\xE0\xE2\xE0",
           "", "<p>Человечество и его права", "windows-1251");
}

/* Text without a label, as a crawler meets it. */
static void detects(const char *charset, const char *want)
{
    char bytes[2000], *in = (char *)(uintptr_t)want, *out = bytes;
    size_t left = strlen(want), room = sizeof bytes;
    iconv_t cd = iconv_open(charset, "UTF-8");
    struct span utf8;
    const char *name;
    struct err e;

    assert_true(cd != (iconv_t)-1);
    assert_true(iconv(cd, &in, &left, &out, &room) != (size_t)-1);
    iconv_close(cd);
    assert_int_equal(charset_decode(c, (struct span){bytes, (size_t)(out - bytes)}, (struct span){NULL, 0}, true, &utf8,
                                    &name, &e), 0);
    if (!span_is(utf8, want))
        print_message("%s taken for %s: %.*s\n", charset, name, (int)utf8.n, utf8.p);
    assert_true(span_is(utf8, want));
}

static void test_languages(void **state)
{
    static const char russian[] =
        "Вчера вечером мы долго гуляли по набережной и говорили о погоде, а потом пошёл дождь.";

    (void)state;
    detects("WINDOWS-1251", russian);
    detects("KOI8-R", russian);
    detects("IBM866", russian);
    detects("ISO-8859-5", russian);
    detects("MAC-CYRILLIC",
            "Вчера моя семья гуляла по набережной, говоря о погоде, пока я стоял у причала, размышляя.");
    detects("KOI8-U", "Учора ввечері ми довго гуляли набережною й говорили про погоду, а її він не бачив.");
    detects("WINDOWS-1250", "Včera večer jsme dlouho šli po nábřeží a mluvili o počasí, ještě že nepršelo.");
    detects("ISO-8859-2",
            "Wczoraj wieczorem długo spacerowaliśmy po nabrzeżu i rozmawialiśmy o pogodzie, aż spadł deszcz.");
    detects("WINDOWS-1252", "It was “late”, she said, but we didn’t mind – the café was still open.");
    detects("WINDOWS-1252", "Hier soir nous nous sommes promenés longtemps près de la rivière, où il a plu.");
    detects("MACINTOSH", "Hier soir nous nous sommes promenés longtemps près de la rivière, où il a plu, même à côté.");
    detects("WINDOWS-1254", "Dün akşam rıhtımda uzun süre yürüdük, havadan konuştuk, sonra yağmur yağdı.");
    detects("WINDOWS-1257", "Vakar vakare ilgai vaikščiojome krantine ir kalbėjomės apie orą, o paskui ėmė lyti.");
    detects("WINDOWS-1253", "Χθες το βράδυ περπατήσαμε πολλή ώρα στην προκυμαία και μιλούσαμε για τον καιρό.");
    detects("WINDOWS-1255", "אתמול בערב טיילנו זמן רב על הטיילת ודיברנו על מזג האוויר");
    detects("WINDOWS-1256", "مشينا مساء أمس طويلا على رصيف الميناء وتحدثنا عن الطقس ثم نزل المطر");
    detects("TIS-620", "เมื่อวานตอนเย็นเราเดินเล่นริมน้ำกันนานและคุยกันเรื่องอากาศ");
    detects("SHIFT_JIS", "昨日の夕方、私たちは長いあいだ岸壁を歩きながら天気の話をした。そのあと雨が降った。");
    detects("EUC-JP", "昨日の夕方、私たちは長いあいだ岸壁を歩きながら天気の話をした。そのあと雨が降った。");
    detects("GBK", "昨天晚上我们在码头上走了很久，一边走一边谈论天气，后来下起了雨。");
    detects("BIG5", "昨天晚上我們在碼頭上走了很久，一邊走一邊談論天氣，後來下起了雨。");
    detects("EUC-KR", "어제 저녁 우리는 부두를 오래 걸으며 날씨 이야기를 했고 그 뒤에 비가 내렸다.");
    detects("GB18030", "เมื่อวานตอนเย็นเราเดินเล่นริมน้ำกันนาน");
    /* UTF-8 with a byte that is none stays UTF-8 */
    expect("Schöne Grüße aus \xFF München", "", "Schöne Grüße aus \xEF\xBF\xBD München", "utf-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),   cmocka_unit_test(test_each_encoding), cmocka_unit_test(test_marks),
        cmocka_unit_test(test_distrust),
        cmocka_unit_test(test_prescan),  cmocka_unit_test(test_order),         cmocka_unit_test(test_cleaning),
        cmocka_unit_test(test_long),     cmocka_unit_test(test_detection),     cmocka_unit_test(test_languages),
    };
    return cmocka_run_group_tests_name("charset", tests, open_one, close_one);
}
