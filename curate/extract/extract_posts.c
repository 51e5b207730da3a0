/* A format: Posts.xml of a Stack Exchange dump.  A document is a question, with its answers by score; an answer whose question
 * is missing, and what is neither, is one by itself.
 *
 * Source: meta.stackexchange.com/questions/2677, the schema of the public data dump. */
#include <inttypes.h>
#include <stdlib.h>

#include "curate/extract/extract_xml.h"
#include "curate/xml/posts.h"

static const char *const rows[] = {"row", NULL};

/* A post's row in an item. */
struct row {
    uint64_t offset;
    struct span bytes;
};

struct posts_item {
    struct extract_item item;
    struct span label;
    int n;
    struct row *row; /* behind the struct, and their bytes behind these */
};

static enum extract_match probe(const struct extract_input *in)
{
    struct buf narrow = {0};
    struct span attrs, start = extract_xml_start(in, &narrow);
    bool it = extract_xml_begins(start) && span_is(xml_root(start, &attrs), "posts");

    buf_free(&narrow);
    return it ? EXTRACT_SURE : EXTRACT_NO;
}

/* ---- reading ---- */

struct posts_source {
    struct xml_cut *cut; /* NULL: all rows were read */
    struct posts *posts;
    struct buf label;
};

static void close_source(struct extract_input *in, void *reader)
{
    struct posts_source *s = reader;

    (void)in;
    if (!s)
        return;
    xml_cut_close(s->cut);
    posts_free(s->posts);
    buf_free(&s->label);
    free(s);
}

static int open_source(struct extract_input *in, void **reader, struct err *e)
{
    struct posts_source *s = *reader = calloc(1, sizeof *s);
    int rc;

    if (!s)
        return err_set(e, ERR_NOMEM, "out of memory for posts");
    rc = posts_new(&s->posts, e);
    if (rc == 0)
        rc = extract_xml_cut(in, rows, &s->cut, e);
    if (rc < 0)
        close_source(in, s);
    return rc;
}

/* The number that an attribute of the row holds; without one, otherwise. */
static int64_t number_of(const struct xml_reader *r, const char *name, int64_t otherwise)
{
    struct span v = xml_attr(r, name);
    int64_t n = 0;
    size_t i = v.n && *v.p == '-';

    if (v.n == i)
        return otherwise;
    for (; i < v.n; i++) {
        if (v.p[i] < '0' || v.p[i] > '9' || n > INT64_MAX / 10 - 1)
            return otherwise;
        n = n * 10 + (v.p[i] - '0');
    }
    return *v.p == '-' ? -n : n;
}

/* Takes a row to the posts.  ERR_FORMAT: it has no number. */
static int add_row(struct posts_source *s, const char *path, const struct xml_piece *piece, struct err *e)
{
    struct xml_reader r = {0};
    struct post post = {.offset = piece->offset, .rank = INT32_MIN};
    int64_t id, parent, score;

    xml_reader_begin(&r, piece->record);
    xml_next(&r);
    id = number_of(&r, "Id", -1);
    parent = xml_attr_is(&r, "PostTypeId", "2") ? number_of(&r, "ParentId", -1) : -1;
    if (id < 0)
        return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": a row without a number", path, piece->offset);
    post.id = (uint64_t)id;
    post.group = parent >= 0 ? (uint64_t)parent : post.id;
    if (parent >= 0) {
        score = number_of(&r, "Score", 0);
        post.rank = score > INT32_MAX ? -INT32_MAX : score < -INT32_MAX ? INT32_MAX : (int32_t)-score;
    }
    return posts_add(s->posts, post, piece->record, e);
}

static int read_rows(struct posts_source *s, const char *path, struct err *e)
{
    struct xml_piece piece;
    int rc;

    while ((rc = xml_cut_next(s->cut, &piece, e)) == 1) {
        if (!s->label.n && buf_put_span(&s->label, extract_xml_label(&piece)) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for posts");
        TRY(add_row(s, path, &piece, e));
    }
    if (rc < 0)
        return rc;
    xml_cut_close(s->cut);
    s->cut = NULL;
    return 0;
}

static struct posts_item *new_item(size_t n_rows, size_t n_bytes, struct span label)
{
    struct posts_item *it = calloc(1, sizeof *it + n_rows * sizeof(struct row) + n_bytes + label.n);
    char *at;

    if (!it)
        return NULL;
    it->row = (struct row *)(it + 1);
    at = (char *)(it->row + n_rows);
    it->label = extract_pack(&at, label);
    return it;
}

/* The posts of the group that is next, put together. */
static int next_group(struct extract_input *in, struct posts_source *s, struct extract_item **item, struct err *e)
{
    struct buf bytes = {.max = (size_t)in->conf->max_page}, list = {0};
    struct post post;
    uint64_t group = 0, first = 0;
    size_t n = 0;
    bool cut = false;
    int rc;

    while ((rc = posts_peek(s->posts, &post, e)) == 1 && (n == 0 || post.group == group)) {
        struct row r = {post.offset, {NULL, post.n}};
        group = post.group;
        first = n++ ? first : post.offset;
        cut |= bytes.n + post.n > bytes.max;
        if (!cut && (buf_reserve(&bytes, post.n) < 0 || buf_put(&list, &r, sizeof r) < 0)) {
            rc = err_set(e, ERR_NOMEM, "out of memory for posts");
            break;
        }
        rc = posts_take(s->posts, cut ? NULL : bytes.p + bytes.n, e);
        if (rc < 0)
            break;
        bytes.n += cut ? 0 : post.n;
    }
    if (rc >= 0 && cut)
        rc = err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": question %" PRIu64 " and its answers are longer than %zu bytes",
                     in->path, first, group, bytes.max);
    if (rc >= 0 && n) {
        struct posts_item *it = new_item(n, bytes.n, buf_span(&s->label));
        rc = it ? 1 : err_set(e, ERR_NOMEM, "out of memory for posts");
        if (it) {
            char *at = (char *)(it->row + n) + it->label.n;
            memcpy(it->row, list.p, list.n);
            memcpy(at, bytes.p, bytes.n);
            for (size_t i = 0; i < n; at += it->row[i++].bytes.n)
                it->row[i].bytes.p = at;
            it->n = (int)n;
            it->item.offset = first;
            it->item.size = bytes.n;
            *item = &it->item;
        }
    }
    buf_free(&bytes);
    buf_free(&list);
    return rc;
}

static int next(struct extract_input *in, void *reader, struct extract_item **item, struct err *e)
{
    struct posts_source *s = reader;

    if (s->cut)
        TRY(read_rows(s, in->path, e));
    return next_group(in, s, item, e);
}

/* ---- making documents ---- */

struct posts_maker {
    struct xml_maker xml; /* first: extract_xml_close takes it */
    struct buf html, title, field[XML_FIELDS]; /* title: of the post, HTML without elements */
};

static int maker_open(const struct extract_conf *c, struct extract_counts *n, void **maker, struct err *e)
{
    return extract_xml_open(sizeof(struct posts_maker), c, n, maker, e);
}

static void maker_close(void *maker)
{
    struct posts_maker *m = maker;

    buf_free(&m->html);
    buf_free(&m->title);
    for (int i = 0; i < XML_FIELDS; i++)
        buf_free(&m->field[i]);
    extract_xml_close(m);
}

/* "<a><b>" or "|a|b|" as "a, b". */
static int put_tags(struct span tags, struct buf *out)
{
    for (size_t i = 0; i < tags.n; i++) {
        bool mark = strchr("<>|", tags.p[i]) != NULL;
        if (mark && out->n && i + 1 < tags.n && !strchr("<>|", tags.p[i + 1]))
            TRY(buf_puts(out, ", "));
        if (!mark)
            TRY(buf_putc(out, tags.p[i]));
    }
    return 0;
}

/* The fields of the first post are the document's. */
static int read_fields(struct posts_maker *m, const struct xml_reader *r)
{
    static const struct {
        const char *name;
        enum xml_field field;
    } attrs[] = {{"Id", XML_ID}, {"CreationDate", XML_DATE}, {"OwnerDisplayName", XML_AUTHOR}, {"ContentLicense", XML_LICENSE}};

    for (int i = 0; i < XML_FIELDS; i++)
        buf_clear(&m->field[i]);
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
        TRY(xml_attr_text(r, attrs[i].name, &m->field[attrs[i].field]));
    TRY(xml_put_text(buf_span(&m->title), false, &m->field[XML_TITLE]));
    buf_clear(&m->html);
    TRY(xml_attr_text(r, "Tags", &m->html));
    return put_tags(buf_span(&m->html), &m->field[XML_KEYWORDS]);
}

/* A post's title, if it has one, and its body, in HTML. */
static int put_post(struct posts_maker *m, const struct xml_reader *r)
{
    buf_clear(&m->html);
    if (m->title.n) {
        TRY(buf_puts(&m->html, "<h1>"));
        for (size_t i = 0; i < m->title.n; i++)
            TRY(m->title.p[i] == '<' ? buf_puts(&m->html, "&lt;") : buf_putc(&m->html, m->title.p[i]));
        TRY(buf_puts(&m->html, "</h1>"));
    }
    return xml_attr_text(r, "Body", &m->html) < 0 ? ERR_NOMEM : 0;
}

static int make(void *maker, const struct extract_item *item, struct doc *d, struct verdict *v, struct err *e)
{
    struct posts_maker *m = maker;
    const struct posts_item *it = (const struct posts_item *)item;
    struct xml_doc x;
    struct xml_reader r = {0};
    struct span utf8;
    int64_t score = 0;

    (void)v;
    xml_text_begin(m->xml.text);
    for (int i = 0; i < it->n; i++) {
        TRY(extract_xml_decode(&m->xml, it->row[i].bytes, it->label, false, &utf8, e));
        extract_count(&m->xml.counts->xml_bytes, utf8.n);
        xml_reader_begin(&r, utf8);
        xml_next(&r);
        if (i == 0)
            score = number_of(&r, "Score", 0);
        buf_clear(&m->title);
        if (xml_attr_text(&r, "Title", &m->title) < 0 || (i == 0 && read_fields(m, &r) < 0) || put_post(m, &r) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a document");
        TRY(xml_text_html(m->xml.text, buf_span(&m->html), e));
    }
    TRY(xml_text_end(m->xml.text, &x, e));
    for (int i = 0; i < XML_FIELDS; i++)
        x.field[i] = buf_span(&m->field[i]);
    TRY(extract_xml_fields(&m->xml, item, &x, d, e));
    if (doc_set_num(d, "score", (double)score) < 0 || doc_set_num(d, "answers", it->n - 1) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a document");
    return 0;
}

const struct extract_format extract_posts = {
    .stat = "posts_files",
    .probe = probe,
    .open = open_source,
    .next = next,
    .close = close_source,
    .maker_open = maker_open,
    .maker_close = maker_close,
    .make = make,
};
