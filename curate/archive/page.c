#include "curate/archive/page.h"

#include <strings.h>

#include "base/ascii.h"
#include "base/file_kind.h"

static const char *const kind_names[PAGE_KINDS] = {
    "html", "text", "untyped", "info", "request", "metadata", "revisit", "other_record", "status", "media_type",
};

const char *page_kind_name(enum page_kind kind)
{
    return kind_names[kind];
}

static enum page_kind kind_of_mime(struct span mime)
{
    char type[64];

    http_media_type(mime, type, sizeof type);
    if (strcmp(type, "text/html") == 0 || strcmp(type, "application/xhtml+xml") == 0 ||
        strcmp(type, "application/vnd.wap.xhtml+xml") == 0)
        return PAGE_HTML;
    if (strcmp(type, "text/plain") == 0)
        return PAGE_TEXT;
    if (!*type || strcmp(type, "unknown/unknown") == 0 || strcmp(type, "application/unknown") == 0 ||
        strcmp(type, "*/*") == 0)
        return PAGE_UNSURE;
    return PAGE_MEDIA;
}

static enum page_kind judge_response(const struct warc_record *r, struct http_head *head)
{
    http_parse_head(r->block, head);
    if (head->status)
        return head->status < 200 || head->status > 299 ? PAGE_STATUS : kind_of_mime(head->mime);
    if (r->arc)
        return kind_of_mime(r->mime);
    /* A response without its head: what HTTP it was cannot be told. */
    return span_starts_nocase(r->mime, "application/http") ? PAGE_UNSURE : kind_of_mime(r->mime);
}

enum page_kind page_judge(const struct warc_record *r, struct http_head *head)
{
    static const struct {
        const char *type;
        enum page_kind kind;
    } plain[] = {
        {"warcinfo", PAGE_INFO},     {"filedesc", PAGE_INFO},     {"request", PAGE_REQUEST},
        {"metadata", PAGE_METADATA}, {"revisit", PAGE_REVISIT},
    };

    *head = (struct http_head){0};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (span_is_nocase(r->type, plain[i].type))
            return plain[i].kind;
    if (span_is_nocase(r->type, "response") || span_is_nocase(r->type, "arc"))
        return judge_response(r, head);
    if (span_is_nocase(r->type, "resource")) /* wget keeps its manifest and log as such */
        return span_starts_nocase(r->uri, "metadata:") ? PAGE_METADATA : kind_of_mime(r->mime);
    if (span_is_nocase(r->type, "conversion"))
        return kind_of_mime(r->mime);
    return PAGE_OTHER_RECORD;
}

bool page_is_html(struct span s)
{
    static const char *const tags[] = {
        "!doctype html", "html", "head", "body", "title", "meta", "script", "style", "div", "h1", "h2", "p",
        "table", "a", "b", "br", "font", "iframe", "center", "article", "main", "section", "ul",
    };

    if (s.n > 3 && memcmp(s.p, "\xEF\xBB\xBF", 3) == 0)
        s.p += 3, s.n -= 3;
    while (s.n && ascii_is_html_space(s.p[0]))
        s.p++, s.n--;
    if (s.n > 1024)
        s.n = 1024;
    if (span_starts_nocase(s, "<!--"))
        return true;
    if (span_starts_nocase(s, "<?xml"))
        return memmem(s.p, s.n, "<html", 5) != NULL;
    for (size_t i = 0; i < sizeof tags / sizeof *tags && s.n && s.p[0] == '<'; i++) {
        struct span rest = {s.p + 1, s.n - 1};
        size_t n = strlen(tags[i]);
        if (span_starts_nocase(rest, tags[i]) && rest.n > n &&
            (ascii_is_html_space(rest.p[n]) || rest.p[n] == '>' || rest.p[n] == '/'))
            return true;
    }
    return false;
}

/* Whether a media type, which begins like one of these, holds no text. */
static bool is_binary_type(struct span mime)
{
    static const char *const types[] = {
        "image/", "audio/", "video/", "font/", "application/pdf", "application/zip", "application/gzip", "application/x-gzip",
        "application/x-tar", "application/x-bzip", "application/x-xz", "application/x-7z", "application/x-rar",
        "application/vnd.rar", "application/java-archive", "application/epub+zip", "application/msword", "application/vnd.ms-",
        "application/vnd.openxmlformats-", "application/x-executable", "application/x-sharedlib", "application/x-elf",
        "application/x-dosexec", "application/x-msdownload", "application/x-shockwave-flash", "application/x-font",
        "application/vnd.android.package-archive", "application/wasm", "application/ogg", "application/x-sqlite3",
        "application/x-java-applet", "application/vnd.apache.parquet",
    };
    char type[64];

    http_media_type(mime, type, sizeof type);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strncmp(type, types[i], strlen(types[i])) == 0)
            return strcmp(type, "image/svg+xml") != 0;
    return false;
}

bool page_is_binary(const struct page *page, struct span identified)
{
    enum { LOOKED_AT = 1445 };
    struct span start = {page->entity.p, page->entity.n < LOOKED_AT ? page->entity.n : LOOKED_AT};

    if (file_kind(start))
        return true;
    if (page_is_html(page->utf8))
        return false;
    return is_binary_type(identified) || (strncasecmp(page->charset, "utf-16", 6) != 0 && file_kind_is_binary(start));
}

int page_decode(struct page_reader *p, struct span block, const struct http_head *head, struct span mime,
                bool markup, size_t max, struct page *out, struct err *e)
{
    struct span body = {block.p + head->length, block.n - head->length};
    struct span label = http_parameter(head->status ? head->mime : mime, "charset");

    TRY(http_decode(p->http, head, body, max, &out->entity, &out->fault, e));
    out->declared = markup && !label.n && out->entity.n ? charset_prescan(out->entity) : (struct span){NULL, 0};
    return charset_decode(p->charset, out->entity, label, markup, &out->utf8, &out->charset, e);
}

int page_reader_open(struct page_reader *p, struct err *e)
{
    *p = (struct page_reader){0};
    TRY(http_decoder_new(&p->http, e));
    return charset_new(&p->charset, e);
}

void page_reader_close(struct page_reader *p)
{
    http_decoder_free(p->http);
    charset_free(p->charset);
    *p = (struct page_reader){0};
}
