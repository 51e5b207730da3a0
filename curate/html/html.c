#include "curate/html/html.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "curate/html/content_model.h"
#include "curate/html/html_meta.h"
#include "curate/html/html_text.h"
#include "curate/html/html_tree.h"
#include "curate/html/html_url.h"
#include "curate/html/main_content_parts.h"

struct html_worker {
    struct html_conf conf;
    struct html_names names;
    struct content_words words;
    struct html_tree tree, stated; /* of the page; of texts that it has as data alone */
    struct content_scratch scratch;
    struct content_model *model; /* HTML_MAIN */
    struct content_page page;
    struct justext *justext;
    uint8_t *skip;
    size_t skip_size;
    struct buf text, base, stated_html;
    struct html_meta meta;
};

void html_conf_init(struct html_conf *c)
{
    *c = (struct html_conf){.extractor = HTML_MAIN,
                            .format = HTML_TEXT,
                            .max_bytes = 32 << 20,
                            .max_nodes = 2000000,
                            .max_seconds = 10};
    justext_conf_init(&c->justext);
}

int html_worker_new(struct html_worker **w, const struct html_conf *c, struct err *e)
{
    *w = calloc(1, sizeof **w);
    if (!*w)
        return err_set(e, ERR_NOMEM, "out of memory");
    (*w)->conf = *c;
    html_names_init(&(*w)->names);
    content_words_init(&(*w)->words);
    if (c->extractor == HTML_MAIN) {
        (*w)->model = malloc(sizeof *(*w)->model);
        if (!(*w)->model)
            return err_set(e, ERR_NOMEM, "out of memory");
        content_model_init((*w)->model);
    }
    return c->extractor == HTML_JUSTEXT ? justext_new(&(*w)->justext, &c->justext, e) : 0;
}

void html_worker_free(struct html_worker *w)
{
    if (!w)
        return;
    html_tree_free(&w->tree);
    html_tree_free(&w->stated);
    content_scratch_free(&w->scratch);
    content_page_free(&w->page);
    free(w->model);
    justext_free(w->justext);
    free(w->skip);
    buf_free(&w->text);
    buf_free(&w->base);
    buf_free(&w->stated_html);
    html_meta_free(&w->meta);
    free(w);
}

static double deadline(const struct html_conf *c)
{
    return c->max_seconds > 0 ? log_seconds() + c->max_seconds : 0;
}

const char *html_extractor_name(int extractor)
{
    static const char *const names[] = {content_model_name, "rules", "everything", "justext"};

    return names[extractor];
}

static int mark_by_rules(struct html_worker *w, const struct html_page *page)
{
    return content_mark(&w->words, &w->tree, w->conf.extractor != HTML_EVERYTHING, page->title, &w->scratch, w->skip);
}

/* A text that has no tags keeps its lines. */
static int put_stated(struct span s, struct buf *out)
{
    bool lines = !memmem(s.p, s.n, "</", 2) && !memmem(s.p, s.n, "<br", 3);

    TRY(buf_puts(out, "<div>"));
    for (size_t i = 0; i < s.n; i++)
        TRY(lines && s.p[i] == '\n' ? buf_puts(out, "<br>") : buf_putc(out, s.p[i]));
    return buf_puts(out, "</div>");
}

/* Makes a page of the document's own texts that this one has as data.  ERR_NOMEM, ERR_LIMIT. */
static int read_stated(struct html_worker *w, struct err *e)
{
    const struct html_ld *l = &w->page.ld;

    buf_clear(&w->stated_html);
    for (int i = 0; i < l->n_texts; i++)
        if (l->text[i].role < LD_TEASER && put_stated(html_ld_text(l, i), &w->stated_html) < 0)
            return ERR_NOMEM;
    return html_tree_parse(&w->stated, &w->names, buf_span(&w->stated_html), (uint32_t)w->conf.max_nodes,
                           deadline(&w->conf), e);
}

static int room_to_skip(struct html_worker *w, uint32_t n_nodes)
{
    if (w->skip_size >= n_nodes)
        return 0;
    free(w->skip);
    w->skip_size = n_nodes + n_nodes / 2;
    w->skip = malloc(w->skip_size);
    if (!w->skip)
        w->skip_size = 0;
    return w->skip ? 0 : ERR_NOMEM;
}

/* Skips what the model does not find to be content; of a page with little text where it finds none the rules decide.
 * *tree: what is to be written. */
static int mark_by_model(struct html_worker *w, struct html_page *page, const struct html_tree **tree, struct err *e)
{
    struct html_tree *t = &w->tree;
    struct content_page *p = &w->page;
    int32_t cut;
    int share;

    memset(w->skip, 0, t->n_nodes);
    content_skip_silent(t, w->skip);
    TRY(content_page_read(p, t, &w->words, &w->model->lexicon, w->skip, page->title, page->canonical));
    enum content_kind kind = content_model_kind(w->model, p, &share);
    page->kind = content_kind_names[kind];
    page->kind_score = share / 1000.0;
    page->data_faults = p->ld.faults;
    content_model_score(w->model, p, t);
    cut = content_cut(p);
    page->from_data = content_is_elsewhere(p, cut);
    if (page->from_data) {
        TRY(read_stated(w, e));
        TRY(room_to_skip(w, w->stated.n_nodes));
        memset(w->skip, 0, w->stated.n_nodes);
        content_skip_silent(&w->stated, w->skip);
        *tree = &w->stated;
        return 0;
    }
    if (kind != CONTENT_DOCUMENTATION)
        TRY(content_drop_repeats(p, t, &w->model->lexicon, w->skip, cut));
    return content_keep_blocks(p, t, cut, w->skip) == CONTENT_UNKNOWN ? mark_by_rules(w, page) : 0;
}

static int make_text(struct html_worker *w, struct html_page *page, struct err *e)
{
    const struct html_tree *t = &w->tree;

    buf_clear(&w->text);
    TRY(room_to_skip(w, t->n_nodes));
    if (w->justext)
        TRY(justext_mark(w->justext, t, page->lang, w->skip));
    else if (w->model && t->n_nodes <= CONTENT_NODES_MAX)
        TRY(mark_by_model(w, page, &t, e));
    else
        TRY(mark_by_rules(w, page));
    return html_text_write(t, w->skip,
                           &(struct html_text_conf){.markdown = w->conf.format == HTML_MARKDOWN,
                                                    .images = w->conf.images,
                                                    .base = buf_span(&w->base)},
                           &w->text);
}

int html_extract(struct html_worker *w, struct span utf8, struct span url,
                 struct html_page *out, struct err *e)
{
    bool cut = (int64_t)utf8.n > w->conf.max_bytes;
    int rc;

    *out = (struct html_page){.truncated = cut};
    if (!utf8.n)
        utf8.p = "";
    if (cut)
        utf8.n = (size_t)w->conf.max_bytes;
    TRY(html_tree_parse(&w->tree, &w->names, utf8, (uint32_t)w->conf.max_nodes, deadline(&w->conf), e));
    if (html_url_base(&w->tree, url, &w->base) < 0 || html_meta_read(&w->meta, &w->tree, buf_span(&w->base), out) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the text of a page");
    rc = make_text(w, out, e);
    if (rc < 0)
        return rc == ERR_LIMIT ? rc : err_set(e, ERR_NOMEM, "out of memory for the text of a page");
    out->text = buf_span(&w->text);
    out->truncated = cut || w->tree.truncated;
    return 0;
}
