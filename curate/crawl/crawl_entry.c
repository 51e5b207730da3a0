#include "curate/crawl/crawl_entry.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/ascii.h"
#include "base/utf8.h"

const struct where_field crawl_fields[] = {
    [CRAWL_URL] = {"url", WHERE_TEXT},
    [CRAWL_HOST] = {"host", WHERE_TEXT},
    [CRAWL_DOMAIN] = {"domain", WHERE_TEXT},
    [CRAWL_TLD] = {"tld", WHERE_TEXT},
    [CRAWL_KEY] = {"key", WHERE_TEXT},
    [CRAWL_DATE] = {"date", WHERE_TEXT},
    [CRAWL_STATUS] = {"status", WHERE_NUMBER},
    [CRAWL_MIME] = {"mime", WHERE_TEXT},
    [CRAWL_MIME_TYPE] = {"mime_type", WHERE_TEXT},
    [CRAWL_LANG] = {"lang", WHERE_TEXT},
    [CRAWL_LANGS] = {"langs", WHERE_TEXT},
    [CRAWL_CHARSET] = {"charset", WHERE_TEXT},
    [CRAWL_LENGTH] = {"length", WHERE_NUMBER},
    [CRAWL_OFFSET] = {"offset", WHERE_NUMBER},
    [CRAWL_FILE] = {"file", WHERE_TEXT},
    [CRAWL_DIGEST] = {"digest", WHERE_TEXT},
    [CRAWL_TRUNCATED] = {"truncated", WHERE_TEXT},
    [CRAWL_REDIRECT] = {"redirect", WHERE_TEXT},
    [CRAWL_DUMP] = {"dump", WHERE_TEXT},
    [CRAWL_FIELDS] = {NULL, WHERE_ABSENT},
};

/* What indexes and lists call a field: of several the first counts that is there. */
static const struct {
    const char *key;
    enum crawl_field field;
} keys[] = {
    {"url", CRAWL_URL},
    {"file", CRAWL_FILE}, {"filename", CRAWL_FILE}, {"warc_filename", CRAWL_FILE},
    {"offset", CRAWL_OFFSET}, {"warc_record_offset", CRAWL_OFFSET},
    {"length", CRAWL_LENGTH}, {"warc_record_length", CRAWL_LENGTH},
    {"digest", CRAWL_DIGEST}, {"content_digest", CRAWL_DIGEST},
    {"status", CRAWL_STATUS}, {"fetch_status", CRAWL_STATUS},
    {"date", CRAWL_DATE}, {"fetch_time", CRAWL_DATE}, {"timestamp", CRAWL_DATE},
    {"mime-detected", CRAWL_MIME}, {"content_mime_detected", CRAWL_MIME}, {"mime", CRAWL_MIME_TYPE},
    {"content_mime_type", CRAWL_MIME_TYPE},
    {"langs", CRAWL_LANGS}, {"languages", CRAWL_LANGS}, {"content_languages", CRAWL_LANGS}, {"lang", CRAWL_LANG},
    {"charset", CRAWL_CHARSET}, {"content_charset", CRAWL_CHARSET},
    {"truncated", CRAWL_TRUNCATED}, {"content_truncated", CRAWL_TRUNCATED},
    {"redirect", CRAWL_REDIRECT}, {"fetch_redirect", CRAWL_REDIRECT},
    {"dump", CRAWL_DUMP},
    {"key", CRAWL_KEY}, {"url_surtkey", CRAWL_KEY}, {"urlkey", CRAWL_KEY},
    {"url_host_name", CRAWL_HOST}, {"url_host_registered_domain", CRAWL_DOMAIN},
    {"url_host_tld", CRAWL_TLD},
};
enum { KEYS = sizeof keys / sizeof *keys };

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for an entry");
}

static int find_key(struct span name)
{
    for (int i = 0; i < KEYS; i++)
        if (span_is(name, keys[i].key))
            return i;
    return -1;
}

const char *crawl_field_called(enum crawl_field f, int i)
{
    for (int k = 0; k < KEYS; k++)
        if (keys[k].field == f && i-- == 0)
            return keys[k].key;
    return NULL;
}

/* Those that are tested. */
static uint32_t tested(const struct where_node *n)
{
    if (n->op == WHERE_AND || n->op == WHERE_OR)
        return tested(n->left) | tested(n->right);
    return n->op == WHERE_NOT ? tested(n->left) : UINT32_C(1) << n->which;
}

uint32_t crawl_fields_needed(const struct where *w)
{
    static const enum crawl_field rarely[] = {CRAWL_HOST, CRAWL_DOMAIN, CRAWL_TLD, CRAWL_KEY, CRAWL_TRUNCATED, CRAWL_REDIRECT};
    uint32_t all = (UINT32_C(1) << CRAWL_FIELDS) - 1;

    for (size_t i = 0; i < sizeof rarely / sizeof *rarely; i++)
        all &= ~(UINT32_C(1) << rarely[i]);
    return all | (w ? tested(where_root(w)) : 0);
}

bool crawl_column_needed(void *fields, struct span column)
{
    int k = find_key(column);

    return k >= 0 && *(const uint32_t *)fields >> keys[k].field & 1;
}

/* ---- reading ---- */

/* The text of a value.  c->own has room for it. */
static int text_of(struct crawl_entry *c, const struct json_field *f, struct span *text, struct err *e)
{
    size_t from = c->own.n;

    *text = f->raw;
    if (f->type == JSON_NUMBER)
        return 0;
    *text = (struct span){f->raw.p + 1, f->raw.n - 2};
    if (!text->n || !memchr(text->p, '\\', text->n))
        return 0;
    TRY(json_unescape(f->raw, &c->own, e));
    *text = (struct span){c->own.p + from, c->own.n - from};
    return 0;
}

bool crawl_read_count(struct span s, uint64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_digit((unsigned char)s.p[i]) || __builtin_mul_overflow(*v, 10, v) ||
            __builtin_add_overflow(*v, (uint64_t)(s.p[i] - '0'), v))
            return false;
    return s.n > 0 && *v <= INT64_MAX;
}

/* A timestamp of digits as a date of ISO 8601; what is none stays. */
static void settle_date(struct crawl_entry *c)
{
    struct span s = c->text[CRAWL_DATE];

    if (s.n != 14)
        return;
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_digit((unsigned char)s.p[i]))
            return;
    snprintf(c->date, sizeof c->date, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", s.p, s.p + 4, s.p + 6, s.p + 8, s.p + 10, s.p + 12);
    c->text[CRAWL_DATE] = span_of(c->date);
}

/* The crawl that a file of Common Crawl's belongs to, by its name: crawl-data/CC-MAIN-2024-10/segments/... */
static struct span dump_of(struct span file)
{
    static const char folder[] = "crawl-data/";
    struct span s = {file.p + sizeof folder - 1, 0};

    if (!span_starts(file, folder))
        return (struct span){NULL, 0};
    while (s.p + s.n < file.p + file.n && s.p[s.n] != '/')
        s.n++;
    return s.p + s.n < file.p + file.n ? s : (struct span){NULL, 0};
}

/* Fills in what follows from other fields, and checks what there has to be. */
static int settle(struct crawl_entry *c, struct err *e)
{
    static const enum crawl_field wanted[] = {CRAWL_FILE, CRAWL_OFFSET, CRAWL_LENGTH};
    struct span langs = c->text[CRAWL_LANGS];
    const char *comma = langs.n ? memchr(langs.p, ',', langs.n) : NULL;

    for (int i = 0; i < 3; i++)
        if (!c->text[wanted[i]].n)
            return err_set(e, ERR_FORMAT, "it has no %s", crawl_fields[wanted[i]].name);
    if (!crawl_read_count(c->text[CRAWL_OFFSET], &c->offset))
        return err_set(e, ERR_FORMAT, "its offset is no number of bytes");
    if (!crawl_read_count(c->text[CRAWL_LENGTH], &c->length) || c->length == 0 || c->length > INT64_MAX - c->offset)
        return err_set(e, ERR_FORMAT, "its length is no number of bytes");
    if (!c->text[CRAWL_MIME].p)
        c->text[CRAWL_MIME] = c->text[CRAWL_MIME_TYPE];
    if (!c->text[CRAWL_LANG].p && langs.p)
        c->text[CRAWL_LANG] = (struct span){langs.p, comma ? (size_t)(comma - langs.p) : langs.n};
    if (!c->text[CRAWL_DUMP].p)
        c->text[CRAWL_DUMP] = dump_of(c->text[CRAWL_FILE]);
    settle_date(c);
    return 1;
}

/* Takes the fields of an object beside those that are there. */
static int take_fields(struct crawl_entry *c, struct span object, struct err *e)
{
    const struct json_field *f;
    int rank[CRAWL_FIELDS], n;

    if (!c->json && !(c->json = json_reader_new()))
        return no_memory(e);
    n = json_read_object(c->json, object, &f, e);
    if (n < 0)
        return n;
    buf_clear(&c->own);
    if (buf_reserve(&c->own, object.n + 1) < 0) /* so that texts in it stay where they are */
        return no_memory(e);
    for (int i = 0; i < CRAWL_FIELDS; i++)
        rank[i] = c->text[i].p ? -1 : KEYS;
    for (int i = 0; i < n; i++) {
        int k = find_key(f[i].key);

        if (k < 0 || k >= rank[keys[k].field] || (f[i].type != JSON_STRING && f[i].type != JSON_NUMBER))
            continue;
        rank[keys[k].field] = k;
        TRY(text_of(c, &f[i], &c->text[keys[k].field], e));
    }
    return settle(c, e);
}

static void clear(struct crawl_entry *c)
{
    memset(c->text, 0, sizeof c->text);
    c->hosted = c->registered = false;
}

int crawl_entry_json(struct crawl_entry *c, struct span object, struct err *e)
{
    clear(c);
    return take_fields(c, object, e);
}

int crawl_entry_cdxj(struct crawl_entry *c, struct span line, struct err *e)
{
    const char *end = line.p + line.n, *key_end, *stamp_end;

    clear(c);
    if (line.n == 0 || line.p[0] == '!' || line.p[0] == ' ')
        return 0;
    key_end = memchr(line.p, ' ', line.n);
    stamp_end = key_end ? memchr(key_end + 1, ' ', (size_t)(end - key_end - 1)) : NULL;
    if (!stamp_end || stamp_end + 1 == end || stamp_end[1] != '{')
        return err_set(e, ERR_FORMAT, "it is no line of CDXJ: KEY TIMESTAMP {...}");
    c->text[CRAWL_KEY] = (struct span){line.p, (size_t)(key_end - line.p)};
    c->text[CRAWL_DATE] = (struct span){key_end + 1, (size_t)(stamp_end - key_end - 1)};
    return take_fields(c, (struct span){stamp_end + 1, (size_t)(end - stamp_end - 1)}, e);
}

void crawl_entry_free(struct crawl_entry *c)
{
    json_reader_free(c->json);
    buf_free(&c->own);
}

/* ---- conditions ---- */

/* The host of its URL, in small letters, without user and port. */
static void find_host(struct crawl_entry *c)
{
    struct span s = url_authority(c->text[CRAWL_URL]);
    const char *at = s.n ? memrchr(s.p, '@', s.n) : NULL, *colon;

    c->hosted = true;
    if (c->text[CRAWL_HOST].p)
        return;
    if (at)
        s = (struct span){at + 1, s.n - (size_t)(at + 1 - s.p)};
    colon = s.n && s.p[0] != '[' ? memchr(s.p, ':', s.n) : NULL;
    if (colon)
        s.n = (size_t)(colon - s.p);
    if (s.n == 0 || s.n > URL_HOST_MAX)
        return;
    for (size_t i = 0; i < s.n; i++)
        c->host[i] = (char)(ascii_is_upper((unsigned char)s.p[i]) ? s.p[i] | 32 : s.p[i]);
    c->text[CRAWL_HOST] = (struct span){c->host, s.n};
}

/* The last label of a host; an address of numbers has none. */
static struct span last_label(struct span host)
{
    const char *dot = host.n ? memrchr(host.p, '.', host.n) : NULL;
    struct span s = dot ? (struct span){dot + 1, host.n - (size_t)(dot + 1 - host.p)} : host;

    return !s.n || ascii_is_digit((unsigned char)s.p[0]) || s.p[0] == '[' ? (struct span){NULL, 0} : s;
}

static void find_domain(struct crawl_entry *c)
{
    c->registered = true;
    if (c->text[CRAWL_DOMAIN].p && c->text[CRAWL_TLD].p)
        return;
    find_host(c);
    if (!c->text[CRAWL_HOST].n)
        return;
    url_host(c->text[CRAWL_HOST], &c->parts);
    if (c->parts.registered.n && !c->text[CRAWL_DOMAIN].p)
        c->text[CRAWL_DOMAIN] = c->parts.registered;
    if (!c->text[CRAWL_TLD].p)
        c->text[CRAWL_TLD] = last_label(c->text[CRAWL_HOST]);
}

static int get_field(void *entry, const struct where_node *test, struct where_value *v, struct err *e)
{
    struct crawl_entry *c = entry;
    uint64_t n;

    (void)e;
    if (test->which == CRAWL_HOST && !c->hosted)
        find_host(c);
    if ((test->which == CRAWL_DOMAIN || test->which == CRAWL_TLD) && !c->registered)
        find_domain(c);
    v->text = c->text[test->which];
    v->type = v->text.p ? test->type : WHERE_ABSENT;
    if (v->type != WHERE_NUMBER)
        return 0;
    if (crawl_read_count(v->text, &n))
        v->number = (double)n;
    else
        v->type = WHERE_ABSENT; /* "-" */
    return 0;
}

int crawl_entry_meets(struct crawl_entry *c, const struct where *w, struct err *e)
{
    return where_meets(w, get_field, c, e);
}

/* ---- lists ---- */

static int put_text(struct buf *b, const char *key, struct span s, const char *before)
{
    if (!s.n || !utf8_valid(s))
        return 0;
    TRY(json_put_key(b, key));
    if (!*before)
        return json_put_string(b, s);
    return buf_printf(b, "\"%s%.*s\"", before, (int)s.n, s.p);
}

/* A SHA-1 in base32 without a word in front of it, as Common Crawl's indexes have them. */
static bool is_bare_sha1(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_upper((unsigned char)s.p[i]) && !(s.p[i] >= '2' && s.p[i] <= '7'))
            return false;
    return s.n == 32;
}

int crawl_entry_put(struct crawl_entry *c, struct buf *b)
{
    const struct span *t = c->text;
    uint64_t status;

    TRY(buf_putc(b, '{'));
    TRY(put_text(b, "url", t[CRAWL_URL], ""));
    TRY(put_text(b, "file", t[CRAWL_FILE], ""));
    TRY(json_put_count(b, "offset", c->offset));
    TRY(json_put_count(b, "length", c->length));
    TRY(put_text(b, "digest", t[CRAWL_DIGEST], is_bare_sha1(t[CRAWL_DIGEST]) ? "sha1:" : ""));
    TRY(put_text(b, "date", t[CRAWL_DATE], ""));
    if (crawl_read_count(t[CRAWL_STATUS], &status))
        TRY(json_put_count(b, "status", status));
    TRY(put_text(b, "mime", t[CRAWL_MIME], ""));
    TRY(put_text(b, "lang", t[CRAWL_LANG], ""));
    if (t[CRAWL_LANGS].n > t[CRAWL_LANG].n)
        TRY(put_text(b, "langs", t[CRAWL_LANGS], ""));
    TRY(put_text(b, "charset", t[CRAWL_CHARSET], ""));
    TRY(put_text(b, "dump", t[CRAWL_DUMP], ""));
    return buf_puts(b, "}\n");
}
