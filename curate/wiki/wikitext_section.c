/* Sections that hold references and links alone. */
#include "curate/wiki/wikitext_parts.h"

enum {
    LINE_MAX_BYTES = 80, /* of text outside of links that a line may have */
    ITEM_MAX_BYTES = 300 /* the same of a list's item: a reference written by hand */
};

/* Headings of such sections, in the form of wiki_key. */
static const char *const headings =
    "|see also|references|reference|external links|external link|links|further reading|notes|footnotes|bibliography|"
    "sources|notes and references|references and notes|citations|works cited|literature|sources and references|"
    "notes and citations|additional reading|general references|related pages|other websites|"
    "siehe auch|weblinks|weblink|einzelnachweise|literatur|quellen|anmerkungen|fußnoten|belege|nachweise|"
    "einzelnachweise und anmerkungen|anmerkungen und einzelnachweise|quellen und einzelnachweise|"
    "voir aussi|articles connexes|article connexe|liens externes|lien externe|notes et références|références|"
    "bibliographie|annexes|notes, sources et références|sources et références|références et notes|"
    "véase también|referencias|enlaces externos|enlace externo|bibliografía|notas|notas y referencias|"
    "referencias y notas|fuentes|voci correlate|collegamenti esterni|altri progetti|note|bibliografia|"
    "ver também|referências|ligações externas|ligação externa|notas e referências|leitura adicional|"
    "zie ook|externe link|externe links|bronnen|referenties|literatuur|noten|voetnoten|"
    "bronnen, noten en referenties|bronnen, noten en/of referenties|"
    "zobacz też|przypisy|linki zewnętrzne|uwagi|см. также|примечания|ссылки|литература|источники|"
    "див. також|примітки|посилання|література|джерела|се ӑстӑр|se även|referenser|externa länkar|källor|noter|"
    "litteratur|fotnoter|vidare läsning|関連項目|脚注|外部リンク|参考文献|出典|注釈|参见|參見|參考文獻|外部链接|外部連結|"
    "参考资料|參考資料|注释|註釋|相关条目|相關條目|延伸阅读|延伸閱讀|資料來源|参看|參看|같이 보기|각주|외부 링크|참고 문헌|"
    "انظر أيضا|انظر أيضًا|مراجع|المراجع|وصلات خارجية|مصادر|المصادر|جستارهای وابسته|منابع|پیوند به بیرون|پانویس|"
    "ayrıca bakınız|kaynakça|dış bağlantılar|notlar|xem thêm|tham khảo|liên kết ngoài|chú thích|"
    "externí odkazy|literatura|související články|poznámky|odkazy|jegyzetek|források|további információk|"
    "kapcsolódó szócikkek|lásd még|lähteet|aiheesta muualla|katso myös|viitteet|kirjallisuutta|"
    "lihat pula|lihat juga|referensi|pranala luar|catatan kaki|rujukan|bacaan lanjutan|"
    "vegeu també|enllaços externs|se også|referanser|eksterne lenker|kilder|eksterne henvisninger|fodnoter|"
    "referencer|vezi și|referințe|legături externe|bibliografie|вижте също|източници|външни препратки|бележки|"
    "види још|референце|спољашње везе|ראו גם|קישורים חיצוניים|הערות שוליים|לקריאה נוספת|"
    "δείτε επίσης|παραπομπές|εξωτερικοί σύνδεσμοι|vidu ankaŭ|referencoj|eksteraj ligiloj|";

static bool is_reference_heading(struct span heading)
{
    char key[WIKI_KEY_MAX + 2];
    size_t n = wiki_key(heading, key + 1);

    if (!n)
        return false;
    key[0] = key[n + 1] = '|';
    return memmem(headings, strlen(headings), key, n + 2) != NULL;
}

/* Passes a line; the bytes of text in it that are in no link, template or tag. */
static size_t text_of_line(const struct wt *w, struct wt_range *r)
{
    size_t n = 0;
    char until = 0; /* ']' or '>' while inside an external link or a tag */

    for (;;) {
        const struct wt_node *node = wt_node_at(w, r);
        uint32_t to = node ? node->start : r->end;

        for (; r->at < to && w->t[r->at] != '\n'; r->at++) {
            char c = w->t[r->at];
            if (until)
                until = c == until ? 0 : until;
            else if (c == '[' || c == '<')
                until = c == '[' ? ']' : '>';
            else
                n++;
        }
        if (r->at < to || !node)
            return n;
        r->at = node->end;
        r->node = node->next;
    }
}

/* The level of the heading at p, or 0. */
static int heading_level(const char *p, const char *end)
{
    int level = 0;

    while (p + level < end && p[level] == '=')
        level++;
    return level > 6 ? 6 : level;
}

uint32_t wt_section_end(const struct wt *w, struct span heading, int level, struct wt_range r)
{
    if (!is_reference_heading(heading))
        return 0;
    while (r.at < r.end) {
        const char *p = w->t + r.at, *end = w->t + r.end;
        int deeper;
        bool item;

        if (*p == '\n') {
            r.at++;
            continue;
        }
        deeper = heading_level(p, end);
        if (deeper && deeper <= level)
            break;
        item = strchr("*#:;|!{", *p) != NULL;
        size_t n = text_of_line(w, &r);
        if (!deeper && n > (item ? ITEM_MAX_BYTES : LINE_MAX_BYTES))
            return 0;
    }
    return r.at;
}
