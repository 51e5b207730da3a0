/* Any bytes as an account, as documents and as statistics: no crash, a page without markup of
 * theirs, JSON that is JSON. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/node.h"
#include "curate/report/report.h"
#include "curate/report/why.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool fine)
{
    if (!fine)
        abort();
}

/* Every < begins a tag that the page itself has, and nothing controls. */
static void check_page(const struct buf *b)
{
    static const char *const markup[] = {"<script", "<img", "<a ", "<iframe", "<object", "<link"};

    for (size_t i = 0; i < sizeof markup / sizeof *markup; i++)
        need(!memmem(b->p, b->n, markup[i], strlen(markup[i])));
    for (size_t i = 0; i < b->n; i++)
        need((unsigned char)b->p[i] >= 0x20 || b->p[i] == '\n' || b->p[i] == '\t');
}

static void check_json(struct span line)
{
    struct arena a = {0};
    struct node *root;
    struct err e;

    need(node_parse_json(&a, line, &root, &e) == 0);
    arena_free(&a);
}

static void try_report(char **file, bool stats)
{
    struct report_conf conf = {.rejects = file, .input = file, .docs = file, .n_rejects = 1, .n_input = 1, .n_docs = 1,
                               .stats = file, .n_stats = stats, .jobs = 1, .examples = 2, .title = "t"};
    struct report r;
    struct buf b = {0};
    struct err e;

    if (report_read(&r, &conf, &e) == 0) {
        need(report_put(&r, &conf, &b) == 0);
        check_page(&b);
    }
    report_free(&r);
    buf_free(&b);
}

static void try_stats(char **file, const char *by)
{
    struct corpus_conf conf;
    struct corpus_stats c;
    struct buf b = {0};
    struct err e;

    corpus_conf_init(&conf);
    conf.inputs = file;
    conf.n_inputs = 1;
    conf.by = by;
    conf.max_hosts = 2;
    if (corpus_read(&c, &conf, &e) == 0) {
        need(corpus_put_json(&c, &conf, &b) == 0);
        check_json(buf_span(&b));
        need(corpus_put_text(&c, &conf, &b) == 0);
    }
    corpus_free(&c);
    buf_free(&b);
}

static void try_why(char **file)
{
    struct why w = {0};
    struct buf b = {0};
    struct err e;

    need(why_ask(&w, span_of("a"), &e) == 0 && why_ask(&w, span_of("\xC3\xA9"), &e) == 0);
    if (why_search(&w, &(struct why_conf){file, file, 1, 1, true}, &e) == 0)
        for (size_t i = 0; i < w.asked; i++) {
            need(why_put_text(&w, i, &b) == 0);
            buf_clear(&b);
            need(why_put_json(&w, i, &b) == 0);
            check_json(buf_span(&b));
        }
    why_free(&w);
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    char name[32], *file[] = {name};

    if (fd < 0) {
        log_init("fuzz", LOG_ERROR);
        fd = memfd_create("fuzz", 0);
    }
    need(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    try_report(file, size && data[0] == '{' && memmem(data, size, "\"stages\"", 8));
    try_stats(file, size % 8 ? NULL : "host");
    try_why(file);
    return 0;
}
