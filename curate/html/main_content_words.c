#include <string.h>

#include "base/ascii.h"
#include "curate/html/main_content_parts.h"

/* Where in a class name a word must stand to mean something. */
enum where { ANY, FIRST, WHOLE };

/* Words are what stands between separators and changes of case in the names of class, id,
 * role and itemprop, in lower case.  "whole": the name is this word alone, but for
 * separators, so that "visually-hidden" is "visuallyhidden". */
static const struct {
    uint32_t hint;
    enum where where;
    const char *words;
} vocabulary[] = {
    {HINT_ARTICLE, ANY,
     "article story post entry news blog recipe artikel articulo articolo artigo beitrag noticia "
     "notizia nyhet artykul clanek cikk haber makale statia meldung"},
    {HINT_BODY, ANY,
     "body content text copy inhalt contenu contenido conteudo contenuto corps corpo cuerpo "
     "texte texto testo tekst tresc obsah tartalom icerik innehold innehall sisalto prose main "
     "richtext wysiwyg rte markdown"},
    {HINT_ROOT, ANY,
     "articlebody articlecontent articletext articlemain storybody storytext storycontent "
     "entrycontent entrybody entrytext postcontent postbody posttext postentry bodytext bodycopy "
     "maintext maincontent newstext newsbody newscontent contentbody fulltext pagecontent "
     "blogcontent blogpost contenttext storyline articlepage artikeltext artikelinhalt "
     "reviewbody recipeinstructions singlecontent bodycontent"},
    {HINT_NAV, ANY,
     "nav navbar navi navigation menu submenu topmenu mainmenu breadcrumb breadcrumbs pager "
     "pagination paging paginator skiplink sitemap toolbar navbox crumbs crumb hnav pagenav "
     "prevnext prev nextprev menubar tablist noprint navlinks langswitch headerlink editsection "
     "catlinks brotkrumen navegacion menue"},
    {HINT_NAV, WHOLE,
     "skip jump language languages lang langs directory toc skiptocontent tabs"},
    {HINT_SIDE, ANY,
     "sidebar sidebars rightrail leftrail sidecol marginalie seitenleiste rightcol rightcolumn "
     "sidecontent"},
    {HINT_SIDE, WHOLE,
     "aside rail widget widgets complementary tertiary barra"},
    {HINT_FOOT, ANY,
     "footer colophon impressum footnav pagefooter sitefooter fusszeile rodape copyright"},
    {HINT_FOOT, WHOLE,
     "foot legal disclaimer disclosure contentinfo bottom"},
    {HINT_COMMENT, ANY,
     "comment comments commentlist commenting disqus respond replies kommentar kommentare "
     "kommentarer commentaire commentaires comentario comentarios commenti commento reacties "
     "reactie livefyre fbcomments opiniones hozzaszolas yorumlar leserbriefe usercomments "
     "trackback trackbacks pingback pings"},
    {HINT_COMMENT, WHOLE,
     "reply discussion reactions opinie yorum isso"},
    {HINT_SHARE, ANY,
     "share shares sharing sharebar social socials facebook twitter whatsapp pinterest addthis "
     "sharedaddy addtoany jssocials teilen partager compartir condividi delen sociallinks "
     "socialmedia shariff articletools sharethis shareaholic"},
    {HINT_SHARE, WHOLE,
     "follow bookmark tools like likes"},
    {HINT_RELATED, ANY,
     "similar relatedposts relatedarticles relatedstories relatedcontent relatednews relatedlinks relateditems "
     "relatedtopics related relacionadas relacionados relacionado recommended recommendation recommendations "
     "recommend mostread mostpopular outbrain taboola promo promos readmore readalso upnext "
     "trending morelinks seealso plista zergnet mgid linkbox verwandt weiterlesen correlati "
     "correlate connexes hotnews moreon othernews yarpp crosslinks topstories"},
    {HINT_RELATED, WHOLE,
     "popular promoted sponsored suggested suggestions further latest recent topics "
     "liees"},
    {HINT_TEASER, ANY,
     "teaser teasers teasertext"},
    {HINT_AD, ANY,
     "adbox advert adverts advertising advertisement dfp adsense adsbygoogle werbung publicite "
     "publicidad publicidade reklam reklama pubblicita adslot adunit advertorial werbeanzeige "
     "googlead"},
    {HINT_AD, FIRST,
     "ad ads anzeige anzeigen banner sponsor affiliate gpt annonce"},
    {HINT_FORM, ANY,
     "newsletter subscribe subscription signup signin login popup captcha searchform donate donation optin"},
    {HINT_FORM, FIRST,
     "modal overlay lightbox poll"},
    {HINT_CONSENT, ANY,
     "cookiebar cookiebanner cookieconsent cookienotice cookielaw cookiebot cookiedialog cookiepolicy onetrust "
     "cybot cybotcookiebotdialog usercentrics didomi quantcast truste trustarc cmplz complianz borlabscookie "
     "borlabs moove iubenda klaro termly osano consentmanager tarteaucitron cmpbox cmp2 cmpwrapper "
     "privacymanager gdprbanner gdprcookie"},
    {HINT_CONSENT, FIRST, "cookie cookies consent gdpr"},
    {HINT_CONSENT, WHOLE, "ccwindow ccbanner spmessage"},
    {HINT_FORM, WHOLE,
     "search register registration dialog feedback quiz survey abo rating ratings "
     "vote votes toast print cta"},
    {HINT_NOTICE, WHOLE, "alert notice contact"},
    {HINT_META, ANY,
     "metadata byline bylines dateline timestamp tagcloud taglist posttags postmeta entrymeta "
     "articlemeta pubdate authorbox readtime publishdate datepublished"},
    {HINT_META, ANY, "userinfo postprofile postfoot posthead userdetails useraction votecount votecell"},
    {HINT_META, WHOLE, "signature"},
    {HINT_META, FIRST,
     "author authors autor auteur meta tags keywords"},
    {HINT_META, WHOLE,
     "tag categories credit credits posted published kategorien schlagworte etiquetas bio infos "
     "datum datetime fecha writer reporter contributor date time"},
    {HINT_CAPTION, ANY,
     "caption captions figcaption imagecaption bildunterschrift wpcaption legende bildtext "
     "imgdescription didascalia"},
    {HINT_FOLD, ANY, "accordion collapse collapsible tabpane tabcontent tabpanel faq expandable"},
    {HINT_FOLD, WHOLE, "pane panel answer toggle moretext morecontent"},
    {HINT_HIDDEN, WHOLE,
     "hidden sronly visuallyhidden screenreader screenreadertext displaynone invisible offscreen "
     "hide linenos lineno gutter linenumbers visibilityhidden"},
};

enum { WORD_MAX = 24, N_LINES = sizeof vocabulary / sizeof *vocabulary };

/* A slot holds line * 2^11 + offset of the word in the line, plus 1. */
static const char *slot_word(unsigned slot, unsigned *line)
{
    *line = (slot - 1) >> 11;
    return vocabulary[*line].words + ((slot - 1) & 0x7FF);
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
            w->slot[i] = (line << 11 | (unsigned)(word - s)) + 1;
        }
    }
    content_phrases_init(w);
}

/* The hints of a word that stands at most there (ANY is the weakest place). */
static uint32_t find_word(const struct content_words *w, const char *word, size_t n, uint32_t h,
                          enum where place)
{
    unsigned line;

    for (uint32_t i = start_of(h); w->slot[i]; i = (i + 1) & 1023) {
        const char *s = slot_word(w->slot[i], &line);
        if (*s == *word && strncmp(s, word, n) == 0 && (s[n] == ' ' || s[n] == '\0'))
            return vocabulary[line].where <= place ? vocabulary[line].hint : 0;
    }
    return 0;
}

/* A class name that says what is elsewhere on the page, or what a post is filed under. */
static bool is_state(const char *p, const char *end)
{
    static const char *const prefix[] = {"has-", "no-", "is-", "with-", "without-", "tag-",
                                         "category-", "js-", "hide-", "show-", "post-format-"};
    if (!strchr("hniwtcjsp", *p))
        return false;
    for (unsigned k = 0; k < sizeof prefix / sizeof *prefix; k++) {
        if (*p != prefix[k][0])
            continue;
        size_t n = strlen(prefix[k]);
        if ((size_t)(end - p) > n && memcmp(p, prefix[k], n) == 0)
            return true;
    }
    return (size_t)(end - p) > 3 && (memcmp(p, "is", 2) == 0 || memcmp(p, "has", 3) == 0) &&
           ascii_is_upper(p[p[0] == 'i' ? 2 : 3]);
}

/* One class name.  What stands behind "--" only varies it. */
static uint32_t name_hints(const struct content_words *w, const char *p, const char *end)
{
    char word[WORD_MAX], whole[WORD_MAX];
    uint32_t hints = 0, whole_hash = HTML_NAME_HASH_START;
    size_t whole_n = 0;
    int words = 0;

    if (end - p > 3 && p[1] == '-' && ascii_is_lower(*p)) /* c-, o-, l-: a kind of class */
        p += 2;
    while (p < end && !(*p == '-' && p + 1 < end && p[1] == '-')) {
        uint32_t h = HTML_NAME_HASH_START;
        size_t n = 0;
        bool lower = false;
        for (; p < end; p++) {
            bool letter = ascii_is_letter((unsigned char)*p), upper = letter && !(*p & 0x20);
            char c = (char)(*p | (letter ? 0x20 : 0));
            if (!(letter || ascii_is_digit((unsigned char)*p)) || (lower && upper))
                break;
            lower = letter && !upper;
            if (n < WORD_MAX)
                word[n] = c;
            if (whole_n < WORD_MAX)
                whole[whole_n] = c;
            n++;
            whole_n++;
            h = html_name_hash(h, c);
            whole_hash = html_name_hash(whole_hash, c);
        }
        if (n > 1 && n <= WORD_MAX)
            hints |= find_word(w, word, n, h, words ? ANY : FIRST);
        words += n > 0;
        if (p < end && !ascii_is_upper(*p))
            p++;
    }
    if (whole_n > 1 && whole_n <= WORD_MAX)
        hints |= find_word(w, whole, whole_n, whole_hash, WHOLE);
    return hints;
}

static uint32_t value_hints(const struct content_words *w, struct span v)
{
    const char *p = v.p, *end = v.p + v.n;
    uint32_t hints = 0;

    while (p < end) {
        const char *to = p;
        while (to < end && *to != ' ' && *to != '\n' && *to != '\t')
            to++;
        if (to > p && !is_state(p, to))
            hints |= name_hints(w, p, to);
        p = to + 1;
    }
    return hints;
}

uint32_t content_value_hints(const struct content_words *w, unsigned attr, struct span value)
{
    /* itemprop=comment: in a forum that is every answer. */
    return value_hints(w, value) & ~(attr == ATTR_itemprop ? (uint32_t)HINT_COMMENT : 0);
}

bool content_is_slug(const struct html_tree *t, uint32_t i, const struct html_attr *id)
{
    struct span class = html_attr_raw(t, i, ATTR_class, NULL);
    bool section = t->node[i].tag == HTML_section || html_tag_flags[t->node[i].tag] & TAG_HEADING ||
                   (class.n >= 4 && memcmp(class.p, "sect", 4) == 0);

    return section && memchr(t->src.p + id->off, '-', id->len);
}

uint32_t content_hints(const struct content_words *w, const struct html_tree *t, uint32_t i)
{
    const struct html_node *n = &t->node[i];
    uint32_t hints = 0;

    for (uint32_t k = 0; k < n->n_attrs; k++) {
        const struct html_attr *a = &t->attr[n->first + k];
        if (content_names(a->name) && !(a->name == ATTR_id && content_is_slug(t, i, a)))
            hints |= content_value_hints(w, a->name, (struct span){t->src.p + a->off, a->len});
    }
    return hints;
}
