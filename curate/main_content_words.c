#include <string.h>

#include "curate/main_content.h"

/* Each line: hint, words.  Words are what stands between separators and changes of case
 * in class, id, role and itemprop, in lower case. */
static const struct {
    uint32_t hint;
    const char *words;
} vocabulary[] = {
    {HINT_ARTICLE, "article story post entry news blog recipe artikel articulo articolo artigo beitrag "
                   "noticia notizia nyhet artykul clanek cikk haber makale statia meldung"},
    {HINT_BODY, "body content text copy inhalt contenu contenido conteudo contenuto corps corpo cuerpo "
                "texte texto testo tekst tresc obsah tartalom icerik innehold innehall sisalto prose main "
                "richtext wysiwyg rte markdown"},
    {HINT_ROOT, "articlebody articlecontent articletext articlemain storybody storytext storycontent "
                "entrycontent entrybody entrytext postcontent postbody posttext postentry bodytext "
                "bodycopy maintext maincontent newstext newsbody newscontent contentbody fulltext "
                "pagecontent blogcontent blogpost contenttext storyline articlepage artikeltext "
                "artikelinhalt reviewbody recipeinstructions singlecontent bodycontent"},
    {HINT_NAV, "nav navbar navi navigation menu submenu topmenu mainmenu breadcrumb breadcrumbs pager "
               "pagination paging paginator skiplink skip sitemap toolbar navbox crumbs crumb hnav "
               "pagenav prevnext menubar tablist noprint navlinks langs langswitch language jump "
               "directory headerlink editsection catlinks brotkrumen navegacion menue"},
    {HINT_SIDE, "sidebar sidebars aside rail rightrail leftrail widget widgets sidecol marginalie "
                "complementary seitenleiste rightcol rightcolumn tertiary barra sidecontent"},
    {HINT_FOOT, "footer foot copyright colophon impressum legal disclaimer disclosure contentinfo "
                "footnav pagefooter sitefooter bottom fusszeile rodape"},
    {HINT_COMMENT, "comment comments commentlist commenting disqus respond replies reply kommentar "
                   "kommentare kommentarer commentaire commentaires comentario comentarios commenti "
                   "commento reacties reactie livefyre fbcomments discussion opiniones opinie hozzaszolas "
                   "yorum yorumlar remark52 isso leserbriefe usercomments reactions trackback "
                   "trackbacks pingback pings"},
    {HINT_SHARE, "share shares sharing sharebar social socials facebook twitter whatsapp pinterest follow "
                 "addthis sharedaddy addtoany jssocials teilen partager compartir condividi delen "
                 "sociallinks socialmedia shariff bookmark tools articletools like likes sharethis "
                 "shareaholic"},
    {HINT_RELATED, "related relacionadas relacionados relacionado recommended recommendation "
                   "recommendations recommend popular trending mostread mostpopular teaser teasers "
                   "outbrain taboola promo promos promoted sponsored readmore readalso similar upnext "
                   "suggested suggestions further morelinks seealso plista zergnet mgid latest recent "
                   "linkbox topics verwandt weiterlesen correlati correlate liees connexes "
                   "interessant hotnews moreon othernews yarpp jp crosslinks topstories"},
    {HINT_AD, "ad ads adbox advert adverts advertising advertisement sponsor dfp adsense adsbygoogle werbung "
              "anzeige anzeigen publicite publicidad publicidade reklam reklama annonce pubblicita banner "
              "adslot adunit advertorial affiliate werbeanzeige googlead gpt"},
    {HINT_FORM, "newsletter subscribe subscription signup signin login register registration paywall "
                "modal popup overlay cookie cookies cookiebar cookiebanner consent gdpr captcha search searchform "
                "donate donation cta lightbox dialog optin feedback contact alert notice poll quiz "
                "survey abo rating ratings vote votes toast print"},
    {HINT_META, "meta metadata byline bylines author authors dateline timestamp tags tag categories "
                "keywords credit credits postmeta entrymeta articlemeta posted published pubdate autor "
                "auteur kategorien schlagworte etiquetas bio authorbox tagcloud taglist infos posttags "
                "readtime datum publishdate datetime fecha datepublished writer reporter contributor"},
    {HINT_CAPTION, "caption captions figcaption imagecaption bildunterschrift wpcaption legende bildtext "
                   "didascalia"},
    {HINT_HIDDEN, "hidden sronly visuallyhidden screenreader screenreadertext displaynone invisible offscreen "
                  "hide linenos lineno gutter linenumbers"},
    {HINT_TITLE, "title headline heading titel titulo titre headlines"},
    {HINT_HEAD, "header head masthead topbar siteheader pageheader"},
    {HINT_LIST, "list listing lists grid items archive cards card feed tiles carousel slider gallery swiper index"},
};

enum { WORD_MAX = 24, N_LINES = sizeof vocabulary / sizeof *vocabulary };

/* A slot holds line * 2^12 + offset of the word in the line, plus 1. */
static const char *slot_word(unsigned slot, uint32_t *hint)
{
    *hint = vocabulary[(slot - 1) >> 11].hint;
    return vocabulary[(slot - 1) >> 11].words + ((slot - 1) & 0x7FF);
}

static uint32_t start_of(uint32_t h)
{
    return (h ^ h >> 13) & 1023;
}

void content_words_init(struct content_words *w)
{
    memset(w, 0, sizeof *w);
    for (unsigned line = 0; line < N_LINES; line++) {
        const char *s = vocabulary[line].words;
        for (const char *p = s; *p;) {
            uint32_t h = HTML_NAME_HASH_START;
            const char *word = p;
            for (; *p && *p != ' '; p++)
                h = html_name_hash(h, *p);
            p += *p == ' ';
            uint32_t i = start_of(h);
            while (w->slot[i])
                i = (i + 1) & 1023;
            w->slot[i] = (uint16_t)((line << 11 | (unsigned)(word - s)) + 1);
        }
    }
}

static uint32_t find_word(const struct content_words *w, const char *word, size_t n, uint32_t h)
{
    uint32_t hint;

    for (uint32_t i = start_of(h); w->slot[i]; i = (i + 1) & 1023) {
        const char *s = slot_word(w->slot[i], &hint);
        if (strncmp(s, word, n) == 0 && (s[n] == ' ' || s[n] == '\0'))
            return hint;
    }
    return 0;
}

static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* A class name that says what is elsewhere on the page, or what a post is filed under. */
static bool is_state(const char *p, const char *end)
{
    static const char *const prefix[] = {"has-", "no-", "is-", "with-", "without-", "tag-",
                                         "category-", "js-", "hide-", "show-", "post-format-"};
    for (unsigned k = 0; k < sizeof prefix / sizeof *prefix; k++) {
        size_t n = strlen(prefix[k]);
        if ((size_t)(end - p) > n && memcmp(p, prefix[k], n) == 0)
            return true;
    }
    return false;
}

static uint32_t value_hints(const struct content_words *w, struct span v)
{
    const char *p = v.p, *end = v.p + v.n;
    uint32_t hints = 0;

    while (p < end) {
        const char *token_end = p;
        while (token_end < end && *token_end != ' ' && *token_end != '\n' && *token_end != '\t')
            token_end++;
        if (is_state(p, token_end))
            p = token_end;
        while (p < token_end) {
            char word[WORD_MAX];
            uint32_t h = HTML_NAME_HASH_START;
            size_t n = 0;
            bool lower = false;
            for (; p < token_end && (is_lower(*p) || is_upper(*p) || is_digit(*p)); p++) {
                if (lower && is_upper(*p))
                    break;
                lower = is_lower(*p);
                char c = is_upper(*p) ? (char)(*p | 0x20) : *p;
                if (n < WORD_MAX)
                    word[n] = c;
                n++;
                h = html_name_hash(h, c);
            }
            if (n > 1 && n <= WORD_MAX)
                hints |= find_word(w, word, n, h);
            if (p < token_end && !is_upper(*p))
                p++;
        }
        p = token_end < end ? token_end + 1 : end;
    }
    return hints;
}

uint32_t content_hints(const struct content_words *w, const struct html_tree *t, uint32_t i)
{
    const struct html_node *n = &t->node[i];
    uint32_t hints = 0;

    for (uint32_t k = 0; k < n->n_attrs; k++) {
        const struct html_attr *a = &t->attr[n->first + k];
        if (a->name == ATTR_class || a->name == ATTR_id || a->name == ATTR_role ||
            a->name == ATTR_itemprop || a->name == ATTR_data_testid ||
            a->name == ATTR_data_component)
            hints |= value_hints(w, (struct span){t->src.p + a->off, a->len});
    }
    return hints;
}
