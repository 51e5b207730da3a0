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
    struct html_tree tree;
    struct content_scratch scratch;
    struct content_model *model; /* HTML_MAIN */
    struct content_page page;
    struct justext *justext;
    uint8_t *skip;
    size_t skip_size;
    struct buf text, base;
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
    content_scratch_free(&w->scratch);
    content_page_free(&w->page);
    free(w->model);
    justext_free(w->justext);
    free(w->skip);
    buf_free(&w->text);
    buf_free(&w->base);
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

/* Skips what the model does not find to be content; where it finds none the rules decide. */
static int mark_by_model(struct html_worker *w, struct html_page *page)
{
    struct html_tree *t = &w->tree;
    struct content_page *p = &w->page;
    int share;

    memset(w->skip, 0, t->n_nodes);
    content_skip_silent(t, w->skip);
    TRY(content_page_read(p, t, &w->words, &w->model->lexicon, w->skip, page->title, page->canonical));
    page->kind = content_kind_names[content_model_kind(w->model, p, &share)];
    page->kind_score = share / 1000.0;
    content_model_score(w->model, p, t);
    return content_keep_blocks(p, t, content_cut(p), w->skip) ? 0 : mark_by_rules(w, page);
}

static int make_text(struct html_worker *w, struct html_page *page)
{
    struct html_tree *t = &w->tree;

    if (w->skip_size < t->n_nodes) {
        free(w->skip);
        w->skip_size = t->n_nodes + t->n_nodes / 2;
        w->skip = malloc(w->skip_size);
        if (!w->skip) {
            w->skip_size = 0;
            return ERR_NOMEM;
        }
    }
    buf_clear(&w->text);
    if (w->justext)
        TRY(justext_mark(w->justext, t, page->lang, w->skip));
    else if (w->model && t->n_nodes <= CONTENT_NODES_MAX)
        TRY(mark_by_model(w, page));
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

    *out = (struct html_page){.truncated = cut};
    if (!utf8.n)
        utf8.p = "";
    if (cut)
        utf8.n = (size_t)w->conf.max_bytes;
    TRY(html_tree_parse(&w->tree, &w->names, utf8, (uint32_t)w->conf.max_nodes, deadline(&w->conf), e));
    if (html_url_base(&w->tree, url, &w->base) < 0 ||
        html_meta_read(&w->meta, &w->tree, buf_span(&w->base), out) < 0 || make_text(w, out) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the text of a page");
    out->text = buf_span(&w->text);
    out->truncated = cut || w->tree.truncated;
    return 0;
}
