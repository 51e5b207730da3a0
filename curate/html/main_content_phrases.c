#include <string.h>

#include "curate/html/main_content_parts.h"

/* Short lines that are no part of the content, wherever they stand.  Spaces, case and
 * punctuation do not matter. */

/* The line is this, but for a few letters. */
static const char *const whole[] = {
    "advertisement", "advert", "sponsored", "read more", "more", "continue reading", "share",
    "share this", "share this article", "comments", "comment", "comments comments",
    "leave a comment", "leave a reply", "post a comment", "reply", "print", "tweet", "email",
    "like this", "loading", "log in", "sign up", "subscribe", "newsletter", "related",
    "related articles", "related posts", "related stories", "related content",
    "related topics", "recommended", "recommended for you", "most read", "most popular",
    "trending", "trending now", "dont miss", "must read", "tags", "topics", "back to top",
    "next", "previous", "skip to content", "text size", "something to consider", "watch",
    "view comments", "anzeige", "werbung", "weiterlesen", "mehr lesen", "mehr", "teilen",
    "artikel teilen", "kommentare", "kommentieren", "kommentar schreiben", "drucken",
    "auch interessant", "mehr zum artikel", "zum thema", "meistgelesen",
    "empfehlungen der redaktion", "empfehlungen aus der redaktion", "unsere empfehlungen",
    "ähnliche beiträge", "ähnliche artikel", "weitere artikel", "weitere beiträge",
    "weitere themen", "weitere meldungen", "schon gelesen", "schlagworte", "stichworte",
    "nach oben", "zurück", "externer inhalt", "bild anzeigen", "artikel bewerten",
    "das könnte dich auch interessieren", "das könnte sie auch interessieren",
    "noch keine bewertungen", "aktivieren", "zur startseite", "publicité", "lire la suite",
    "partager", "partager cet article", "commentaires", "vous aimerez aussi",
    "sur le même sujet", "à lire aussi", "articles liés", "à voir aussi", "voir aussi",
    "permalien", "publicidad", "leer más", "compartir", "comentarios", "más noticias",
    "te puede interesar", "le puede interesar", "te recomendamos", "relacionadas",
    "noticias relacionadas", "etiquetas", "publicidade", "leia mais", "compartilhar",
    "comentários", "leia também", "veja também", "pubblicità", "leggi tutto", "condividi",
    "commenti", "leggi anche", "potrebbe interessarti", "reklama", "czytaj więcej",
    "czytaj dalej", "udostępnij", "komentarze", "zobacz także", "czytaj także", "advertentie",
    "lees meer", "delen", "reacties", "lees ook", "annons", "läs mer", "dela", "läs också",
    "реклама", "читать далее", "поделиться", "комментарии", "читайте также", "похожие статьи",
    "広告", "シェア", "関連記事", "相关阅读", "相关新闻", "广告", "more stories", "more news", "more articles",
    "more on this topic", "more on this story", "more like this", "latest news",
    "latest posts", "latest articles", "latest stories", "recent posts", "recent articles",
    "popular posts", "popular articles", "popular now", "top stories", "similar articles",
    "similar posts", "similar products", "similar jobs", "you may also like",
    "you might also like", "you may also be interested in", "you might be interested in",
    "people also viewed", "customers also bought", "customers also viewed",
    "related products", "related questions", "related news",
    "related searches", "keep reading", "read next", "most viewed", "most commented",
    "editors picks", "what to read next", "up next", "from our partners", "sponsored content",
    "from around the web", "around the web", "explore more",
    "join the conversation", "who is online", "share this story", "neueste beiträge",
    "letzte beiträge", "ähnliche produkte", "ähnliche themen", "aktuelle nachrichten",
    "auch lesenswert", "meist gelesen", "weitere nachrichten", "das könnte sie interessieren",
    "das könnte ihnen auch gefallen", "les plus lus", "articles similaires",
    "dans la même rubrique", "sur le même thème", "lire également", "à lire également",
    "lo más leído", "más leídas", "artículos relacionados", "entradas relacionadas",
    "también te puede interesar", "articoli correlati", "potrebbe interessarti anche",
    "i più letti", "artigos relacionados", "mais lidas", "mais lidos",
    "notícias relacionadas", "posts relacionados", "gerelateerde artikelen", "meest gelezen",
    "powiązane artykuły", "polecane", "najczęściej czytane", "relaterade artiklar",
    "související články", "похожие записи", "популярное", "関連ニュース", "関連リンク", "おすすめ記事", "人気記事",
    "アクセスランキング", "あわせて読みたい", "相关推荐", "推荐阅读", "热门文章", "相關文章", "相關新聞", "関連商品", "관련기사",
    "많이 본 뉴스", "أخبار ذات صلة", "مقالات ذات صلة", "اقرأ أيضا", "اقرأ أيضًا",
    "ilgili haberler", "benzer yazılar", "مطالب مرتبط"};

/* The line begins with this and is short. */
static const char *const first[] = {
    "read also", "also read", "read next", "read more", "you may also", "you might also",
    "filed under", "tagged", "posted in", "posted by", "posted on", "this entry was posted",
    "photo by", "photo credit", "photo", "photograph by", "photos", "image credit", "image source",
    "image", "getty images", "follow us", "follow our", "sign up for", "subscribe to",
    "get the latest", "share on", "share this", "last updated", "updated", "published on",
    "published by", "all rights reserved", "copyright", "\xC2\xA9", "reading time", "click here to",
    "file photo", "picture", "lesen sie auch", "lesen sie mehr", "lesen sie hier", "lesen sie dazu",
    "lies auch", "mehr dazu", "mehr zum thema", "auch interessant", "foto", "fotos", "bild",
    "bilder", "bildquelle", "titelbild", "abbildung", "bildnachweis", "folge uns", "folgen sie uns",
    "abonnieren sie", "das könnte", "aktualisiert", "zuletzt aktualisiert", "veröffentlicht am",
    "erstellt am", "lesezeit", "alle rechte vorbehalten", "artikel bewerten", "bloggern gefällt",
    "weitere beiträge", "weitere artikel", "quellenangaben", "crédit photo", "crédits photo",
    "lire aussi", "à lire", "lire également", "suivez", "abonnez", "publié le", "mis à jour",
    "vous pourriez", "partager sur", "lee también", "lea también", "lea además", "puedes ver",
    "mira también", "síguenos", "suscríbete", "publicado el", "te puede interesar", "foto de",
    "compartir en", "leia também", "tempo de leitura", "publicado em", "leggi anche",
    "pubblicato il", "czytaj też", "czytaj także", "zobacz też", "fot", "lees ook",
    "läs också", "читайте также", "фото", "опубликовано",
    "источник фото"};

/* A heading of a section begins with this: what follows is of other pages, or of the site. */
static const char *const heads[] = {
    "more from", "more by", "more stories", "more articles", "more news", "more posts", "also on", "you may also",
    "you might also", "sign up for", "sign up to", "subscribe to", "get our newsletter", "join our newsletter",
    "das könnte", "mehr von", "mehr aus", "weitere artikel", "weitere beiträge", "weitere meldungen",
    "weitere nachrichten", "weitere news", "ähnliche artikel", "ähnliche beiträge", "lesen sie auch",
    "plus d articles", "vous aimerez", "abonnez vous", "más noticias", "más artículos", "te puede interesar",
    "también te puede", "potrebbe interessar", "leggi anche", "mais notícias", "leia também", "veja também",
    "lees ook", "meer nieuws", "czytaj także", "zobacz także", "läs också", "читайте также"};

enum { SLACK = 4, FIRST_MAX = 110 };

/* Letters of phrase that key begins with, 0 if it does not. */
static size_t matched(const char *phrase, const char *key, size_t n)
{
    size_t k = 0;

    for (const char *p = phrase; *p; p++) {
        if (*p == ' ')
            continue;
        if (k == n || key[k] != *p)
            return 0;
        k++;
    }
    return k;
}

enum {
    N_WHOLE = sizeof whole / sizeof *whole,
    N_FIRST = sizeof first / sizeof *first,
    N_HEADS = sizeof heads / sizeof *heads
};
_Static_assert(N_WHOLE < (int)CONTENT_PHRASES_MAX && N_FIRST < (int)CONTENT_PHRASES_MAX, "room");

static void chain(struct content_phrases *c, const char *const *phrase, unsigned n)
{
    for (unsigned i = n; i-- > 0;) {
        uint16_t *head = &c->head[(unsigned char)phrase[i][0]];

        c->next[i + 1] = *head;
        *head = (uint16_t)(i + 1);
    }
}

void content_phrases_init(struct content_words *w)
{
    chain(&w->whole, whole, N_WHOLE);
    chain(&w->first, first, N_FIRST);
}

static bool is_whole(const struct content_words *w, const char *key, size_t n, size_t slack)
{
    size_t k;

    for (unsigned i = w->whole.head[(unsigned char)key[0]]; i; i = w->whole.next[i])
        if ((k = matched(whole[i - 1], key, n)) && n <= k + slack)
            return true;
    return false;
}

bool content_phrase_head(const struct content_words *w, const char *key, size_t n)
{
    for (unsigned i = 0; i < N_HEADS; i++)
        if (matched(heads[i], key, n))
            return true;
    while (n > 1 && key[n - 1] >= '0' && key[n - 1] <= '9')
        n--; /* "Comments (12)" */
    return is_whole(w, key, n, 0);
}

bool content_phrase(const struct content_words *w, const char *key, size_t n, bool labelled)
{
    size_t k;

    if (is_whole(w, key, n, SLACK))
        return true;
    if (n > FIRST_MAX)
        return false;
    for (unsigned i = w->first.head[(unsigned char)key[0]]; i; i = w->first.next[i])
        if ((k = matched(first[i - 1], key, n)) && (labelled || strchr(first[i - 1], ' ')))
            return true;
    return false;
}
