/* Any bytes as a plan, and as the configuration of the filters: taken, or refused with file and line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "curate/filter/filter.h"
#include "pipelines/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool truth)
{
    if (!truth)
        abort();
}

/* Its branches connected, with the plan itself as the input: it is there. */
static int settle(struct plan *p, struct run_files *files, struct buf *text, struct err *e)
{
    TRY(plan_settle(p, e));
    for (int i = 0; i < p->n_branches; i++)
        need(p->branch[i].first <= p->branch[i].last && p->branch[i].last <= p->n_stages);
    TRY(plan_files(p, files, e));
    return plan_describe(p, text, e);
}

static void load_plan(char *path)
{
    struct run_files files = {0};
    struct buf text = {0};
    struct plan p = {0};
    struct err e;
    int rc = plan_load(&p, path, &path, 1, &e);

    if (rc == 0)
        rc = settle(&p, &files, &text, &e);
    need(rc == 0 || (e.code < 0 && e.msg[0]));
    run_files_free(&files);
    buf_free(&text);
    plan_free(&p);
}

static void load_rules(const char *path)
{
    struct filter_conf c;
    struct stage s;
    struct err e;

    filter_conf_init(&c);
    c.presets = "gopher-quality,c4,fineweb";
    c.config = path;
    if (filter_stage_open(&s, &c, &e) < 0)
        need(e.code < 0 && e.msg[0]);
    else
        s.ops->close(s.state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    char name[32];

    if (size && (memchr(data, '/', size) || memchr(data, '*', size) || memchr(data, '?', size)))
        return 0; /* a pattern could look through the whole disk */
    if (fd < 0)
        fd = memfd_create("fuzz", 0);
    need(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    load_plan(name);
    load_rules(name);
    return 0;
}
