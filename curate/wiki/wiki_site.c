#include "curate/wiki/wiki_site.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "curate/xml/xml_reader.h"

/* Names of namespaces that exports do not list: English ones work everywhere; the others are
 * aliases, and names that were used before.  In the form of wiki_key. */
static const struct { int key; const char *names; } aliases[] = {
    {WIKI_MEDIA, "media"},
    {WIKI_TEMPLATE, "template"},
    {WIKI_FILE,
     "file|image|bild|datei|fichier|imagen|archivo|immagine|bestand|afbeelding|ficheiro|imagem|arquivo|файл|"
     "изображение|зображення|плик|plik|grafika|fil|tiedosto|kuva|kép|fájl|soubor|obrázok|súbor|画像|ファイル|文件|檔案|"
     "档案|图像|圖像|파일|그림|صورة|ملف|پرونده|تصویر|קובץ|תמונה|αρχείο|εικόνα|hình|tập tin|berkas|gambar|ไฟล์|ภาพ|चित्र|"
     "картинка|выява|слика|датотека|slika|datoteka|fișier|imagine|fitxer|imatge|attēls|vaizdas|fail|pilt|dosiero|"
     "fitxategi|irudi|imaxe|dosya|resim|şəkil|fayl|պատկեր|სურათი|ფაილი|সেত্র|চিত্র|படிமம்|దస్త్రం|ചിത്രം|പ്രമാണം"},
    {WIKI_CATEGORY,
     "category|kategorie|catégorie|categoría|categoria|categorie|kategoria|категория|категорія|kategori|分类|分類|"
     "カテゴリ|분류|تصنيف|رده|קטגוריה|κατηγορία|thể loại|kategória|luokka|kategorija|หมวดหมู่|श्रेणी|катэгорыя|"
     "կատեգորիա|კატეგორია|kateqoriya|kategoriya|kategorio|kategooria|категорија|вид|বিষয়শ্রেণী|பகுப்பு|వర్గం|വർഗ്ഗം"},
};

/* Prefixes of Wikipedias, in order. */
static const char languages[] =
    "aa ab ace ady af ak als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa ay az azb "
    "ba ban bar bat-smg bbc bcl be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo bpy br bs btm bug "
    "bxr ca cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy da dag de dga din diq dsb "
    "dtp dty dv dz ee el eml en eo es et eu ext fa fat ff fi fiu-vro fj fo fon fr frp frr fur fy ga gag "
    "gan gcr gd gl glk gn gom gor got gpe gu guc gur guw gv ha hak haw he hi hif ho hr hsb ht hu hy hyw "
    "hz ia iba id ie ig igl ii ik ilo inh io is it iu ja jam jbo jv ka kaa kab kbd kbp kcg kg kge ki kj "
    "kk kl km kn knc ko koi kr krc ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln lo "
    "lrc lt ltg lv lzh mad mai map-bms mdf mg mh mhr mi min mk ml mn mni mnw mos mr mrj ms mt mus mwl "
    "my myv mzn na nah nan nap nb nds nds-nl ne new ng nia nl nn no nov nqo nr nrm nso nup nv ny oc olo "
    "om or os pa pag pam pap pcd pcm pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro roa-rup "
    "roa-tara rsk ru rue rup rw sa sah sat sc scn sco sd se sg sgs sh shi shn si simple sk skr sl sm "
    "smn sn so sq sr srn ss st stq su sv sw syl szl szy ta tay tcy tdd te tet tg th ti tig tk tl tly tn "
    "to tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo vro wa war wo wuu xal xh "
    "xmf yi yo yue za zea zgh zh zh-classical zh-min-nan zh-yue zu ";

size_t wiki_key(struct span name, char key[WIKI_KEY_MAX])
{
    const char *p = name.p, *end = name.p + name.n;
    bool blank = false;
    size_t n = 0;

    while (p < end) {
        uint32_t c;
        int k = 1;

        if ((unsigned char)*p < 0x80)
            c = (unsigned char)*p;
        else
            k = utf8_next(p, end, &c);
        p += k;
        if (c == ' ' || c == '_' || c == '\n' || c == '\t' || c == 0xA0) {
            blank = n > 0;
            continue;
        }
        if (n + 5 > WIKI_KEY_MAX)
            return 0;
        if (blank)
            key[n++] = ' ';
        blank = false;
        if ((c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x391 && c <= 0x3A9) ||
            (c >= 0x410 && c <= 0x42F))
            c += 32;
        else if (c >= 0x400 && c <= 0x40F)
            c += 80;
        else if (c >= 0x531 && c <= 0x556)
            c += 48;
        else if (c >= 0x100 && c <= 0x17F && c != 0x130 && c != 0x138 && c != 0x149 && c != 0x178 && c != 0x17F) {
            bool odd_is_upper = (c >= 0x139 && c <= 0x148) || c >= 0x179;
            if ((c & 1) == odd_is_upper)
                c++;
        }
        n += (size_t)utf8_put(key + n, c);
    }
    return n;
}

/* Whether one of the words, set apart by sep, is key. */
static bool among(const char *words, char sep, struct span key)
{
    while (*words) {
        const char *to = strchr(words, sep);
        size_t n = to ? (size_t)(to - words) : strlen(words);
        if (n == key.n && memcmp(words, key.p, n) == 0)
            return true;
        words += n + (to != NULL);
    }
    return false;
}

int wiki_site_namespace(const struct wiki_site *s, struct span prefix)
{
    char buf[WIKI_KEY_MAX];
    struct span key = {buf, wiki_key(prefix, buf)};

    if (!key.n)
        return WIKI_NONE;
    for (int i = 0; i < s->n_ns; i++)
        if (span_eq(s->ns[i].name, key))
            return s->ns[i].key;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (among(aliases[i].names, '|', key))
            return aliases[i].key;
    return WIKI_NONE;
}

bool wiki_is_language(struct span prefix)
{
    if (prefix.n < 2 || prefix.n > 12)
        return false;
    for (size_t i = 0; i < prefix.n; i++)
        if (!((prefix.p[i] >= 'a' && prefix.p[i] <= 'z') || prefix.p[i] == '-'))
            return false;
    return among(languages, ' ', prefix);
}

int wiki_site_url(const struct wiki_site *s, struct span title, struct buf *out)
{
    TRY(buf_put_span(out, s->base));
    if (!s->base.n)
        return 0;
    for (size_t i = 0; i < title.n; i++) {
        unsigned char c = (unsigned char)title.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     (c && strchr("-_.;@$!*(),/~:", c));
        TRY(c == ' ' ? buf_putc(out, '_') : plain ? buf_putc(out, (char)c) : buf_printf(out, "%%%02X", c));
    }
    return 0;
}

/* ---- the head of an export ---- */

/* The language that a Wikipedia's host names, where the export does not say it. */
static struct span language_of(struct span base)
{
    static const struct { const char *host, *lang; } odd[] = {
        {"simple", "en"}, {"als", "gsw"}, {"bat-smg", "sgs"}, {"be-x-old", "be-tarask"}, {"fiu-vro", "vro"},
        {"no", "nb"}, {"roa-rup", "rup"}, {"zh-classical", "lzh"}, {"zh-min-nan", "nan"}, {"zh-yue", "yue"}};
    const char *p = base.n ? memmem(base.p, base.n, "//", 2) : NULL, *dot;
    struct span host;

    if (!p)
        return (struct span){NULL, 0};
    p += 2;
    dot = memchr(p, '.', (size_t)(base.p + base.n - p));
    host = (struct span){p, dot ? (size_t)(dot - p) : 0};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (span_is(host, odd[i].host))
            return span_of(odd[i].lang);
    return wiki_is_language(host) ? host : (struct span){NULL, 0};
}

static int decoded(struct wiki_site *s, struct span raw, bool literal, struct span *out, struct err *e)
{
    struct buf b = {0};
    int rc = xml_put_text(raw, literal, &b);

    *out = rc < 0 ? (struct span){NULL, 0} : arena_dup(&s->arena, buf_span(&b));
    buf_free(&b);
    return out->p ? 0 : err_set(e, ERR_NOMEM, "out of memory for a header");
}

static int add_namespace(struct wiki_site *s, const struct xml_reader *r, int key, struct err *e)
{
    char buf[WIKI_KEY_MAX];
    struct span name;
    struct wiki_namespace *more;

    TRY(decoded(s, r->text, r->literal, &name, e));
    name = (struct span){buf, wiki_key(name, buf)};
    if (!name.n)
        return 0;
    if ((s->n_ns & (s->n_ns - 1)) == 0) { /* full: grow to the next power of two */
        more = realloc(s->ns, (s->n_ns ? 2 * (size_t)s->n_ns : 1) * sizeof *more);
        if (!more)
            return err_set(e, ERR_NOMEM, "out of memory for a header");
        s->ns = more;
    }
    name = arena_dup(&s->arena, name);
    if (!name.p)
        return err_set(e, ERR_NOMEM, "out of memory for a header");
    s->ns[s->n_ns++] = (struct wiki_namespace){key, name};
    return 0;
}

static int take_text(struct wiki_site *s, const struct xml_reader *r, struct span element, int key, struct err *e)
{
    if (span_is(element, "sitename"))
        return decoded(s, r->text, r->literal, &s->name, e);
    if (span_is(element, "namespace"))
        return add_namespace(s, r, key, e);
    if (!span_is(element, "base"))
        return 0;
    TRY(decoded(s, r->text, r->literal, &s->base, e));
    while (s->base.n && s->base.p[s->base.n - 1] != '/')
        s->base.n--;
    return 0;
}

static int read_site(struct wiki_site *s, struct xml_reader *r, struct err *e)
{
    struct span element = {NULL, 0};
    enum xml_event ev;
    int key = 0;

    while ((ev = xml_next(r)) != XML_EV_END)
        if (ev == XML_EV_CLOSE) {
            element.n = 0;
        } else if (ev == XML_EV_TEXT) {
            TRY(take_text(s, r, element, key, e));
        } else if (!r->empty) {
            struct span number = xml_attr(r, "key"), lang = xml_attr(r, "lang");
            element = r->name;
            key = number.n ? (int)strtol(number.p, NULL, 10) : 0; /* a quote stands behind it */
            if (span_is(element, "mediawiki") && lang.n)
                TRY(decoded(s, lang, false, &s->lang, e));
        }
    return 0;
}

int wiki_site_parse(struct wiki_site *s, struct span head, struct err *e)
{
    struct xml_reader r = {0};
    int rc;

    arena_reset(&s->arena);
    free(s->ns);
    *s = (struct wiki_site){.arena = s->arena};
    if (!head.n)
        return 0;
    xml_reader_begin(&r, head);
    rc = read_site(s, &r, e);
    xml_reader_free(&r);
    if (rc == 0 && !s->lang.n)
        s->lang = language_of(s->base);
    return rc;
}

void wiki_site_free(struct wiki_site *s)
{
    arena_free(&s->arena);
    free(s->ns);
    *s = (struct wiki_site){.n_ns = 0};
}
