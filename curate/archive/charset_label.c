/* Labels: WHATWG Encoding, "Names and labels", but for iso-8859-16, which ICU does not
 * have; and a few more that the web has. */
#include "curate/archive/charset_label.h"

static const struct charset_entry entries[] = {
    {"utf-8", "UTF-8", CHARSET_UTF8,
     " utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8 utf-8n utf8mb4 "},
    {"utf-16le", "UTF-16LE", CHARSET_UTF16,
     " utf-16le utf-16 utf16 csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff "},
    {"utf-16be", "UTF-16BE", CHARSET_UTF16, " utf-16be unicodefffe "},
    {"windows-1252", "ibm-5348_P100-1997", CHARSET_BYTE,
     " windows-1252 ansi_x3.4-1968 ascii us-ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 "
     "iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 latin-1 x-cp1252 win-1252 ansi "},
    {"windows-1250", "ibm-5346_P100-1998", CHARSET_BYTE, " windows-1250 cp1250 x-cp1250 win-1250 "},
    {"windows-1251", "ibm-5347_P100-1998", CHARSET_BYTE, " windows-1251 cp1251 x-cp1251 win-1251 cp-1251 "},
    {"windows-1253", "ibm-5349_P100-1998", CHARSET_BYTE, " windows-1253 cp1253 x-cp1253 "},
    {"windows-1254", "ibm-5350_P100-1998", CHARSET_BYTE,
     " windows-1254 cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 "
     "iso_8859-9:1989 l5 latin5 x-cp1254 "},
    {"windows-1255", "ibm-9447_P100-2002", CHARSET_BYTE, " windows-1255 cp1255 x-cp1255 "},
    {"windows-1256", "ibm-9448_X100-2005", CHARSET_BYTE, " windows-1256 cp1256 x-cp1256 "},
    {"windows-1257", "ibm-9449_P100-2002", CHARSET_BYTE, " windows-1257 cp1257 x-cp1257 "},
    {"windows-1258", "ibm-5354_P100-1998", CHARSET_BYTE, " windows-1258 cp1258 x-cp1258 "},
    {"windows-874", "windows-874-2000", CHARSET_BYTE,
     " windows-874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 tis620 cp874 "},
    {"iso-8859-2", "ibm-912_P100-1995", CHARSET_BYTE,
     " iso-8859-2 csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2 "},
    {"iso-8859-3", "ibm-913_P100-2000", CHARSET_BYTE,
     " iso-8859-3 csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3 "},
    {"iso-8859-4", "ibm-914_P100-1995", CHARSET_BYTE,
     " iso-8859-4 csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4 "},
    {"iso-8859-5", "ibm-915_P100-1995", CHARSET_BYTE,
     " iso-8859-5 csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988 "},
    {"iso-8859-6", "ibm-1089_P100-1995", CHARSET_BYTE,
     " iso-8859-6 arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e "
     "iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987 "},
    {"iso-8859-7", "ibm-9005_X110-2007", CHARSET_BYTE,
     " iso-8859-7 csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
     "iso_8859-7:1987 sun_eu_greek "},
    {"iso-8859-8", "ibm-5012_P100-1999", CHARSET_BYTE,
     " iso-8859-8 csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 "
     "iso_8859-8:1988 visual iso-8859-8-i csiso88598i logical "},
    {"iso-8859-10", "iso-8859_10-1998", CHARSET_BYTE,
     " iso-8859-10 csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6 "},
    {"iso-8859-13", "ibm-921_P100-1995", CHARSET_BYTE, " iso-8859-13 iso8859-13 iso885913 "},
    {"iso-8859-14", "iso-8859_14-1998", CHARSET_BYTE, " iso-8859-14 iso8859-14 iso885914 "},
    {"iso-8859-15", "ibm-923_P100-1998", CHARSET_BYTE,
     " iso-8859-15 csisolatin9 iso8859-15 iso885915 iso_8859-15 l9 latin9 latin-9 "},
    {"koi8-r", "ibm-878_P100-1996", CHARSET_BYTE, " koi8-r cskoi8r koi koi8 koi8_r "},
    {"koi8-u", "ibm-1168_P100-2002", CHARSET_BYTE, " koi8-u koi8-ru "},
    {"ibm866", "ibm-866_P100-1995", CHARSET_BYTE, " ibm866 866 cp866 csibm866 cp-866 "},
    {"macintosh", "macos-0_2-10.2", CHARSET_BYTE, " macintosh csmacintosh mac x-mac-roman "},
    {"x-mac-cyrillic", "macos-7_3-10.2", CHARSET_BYTE, " x-mac-cyrillic x-mac-ukrainian "},
    {"gbk", "gb18030", CHARSET_MULTI,
     " gbk chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk cp936 "},
    {"gb18030", "gb18030", CHARSET_MULTI, " gb18030 "},
    {"big5", "ibm-1375_P100-2008", CHARSET_MULTI, " big5 big5-hkscs cn-big5 csbig5 x-x-big5 cp950 "},
    {"euc-jp", "euc-jp-2007", CHARSET_MULTI, " euc-jp cseucpkdfmtjapanese x-euc-jp eucjp "},
    {"iso-2022-jp", "ISO-2022-JP-2", CHARSET_MULTI, " iso-2022-jp csiso2022jp "},
    {"shift_jis", "ibm-943_P15A-2003", CHARSET_MULTI,
     " shift_jis csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis cp932 "},
    {"euc-kr", "windows-949-2000", CHARSET_MULTI,
     " euc-kr cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 "
     "windows-949 euckr cp949 "},
    {"hz-gb-2312", "HZ", CHARSET_MULTI, " hz-gb-2312 "},
    {"iso-2022-kr", "ISO-2022-KR", CHARSET_MULTI, " iso-2022-kr csiso2022kr "},
    {"iso-2022-cn", "ISO-2022-CN", CHARSET_MULTI, " iso-2022-cn iso-2022-cn-ext "},
};

static bool is_wrapping(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '"' || c == '\'';
}

const struct charset_entry *charset_entry_of(struct span label)
{
    char key[40];
    size_t n = 0;

    while (label.n && is_wrapping(label.p[0]))
        label.p++, label.n--;
    while (label.n && is_wrapping(label.p[label.n - 1]))
        label.n--;
    if (label.n == 0 || label.n > sizeof key - 3)
        return NULL;
    key[n++] = ' ';
    for (size_t i = 0; i < label.n; i++) {
        char c = label.p[i];
        if (c <= ' ' || c > '~')
            return NULL;
        key[n++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    key[n++] = ' ';
    key[n] = '\0';
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (strstr(entries[i].labels, key))
            return &entries[i];
    return NULL;
}
