/* Any bytes as an ablation: taken, its plans made, or refused with file and line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pipelines/ablation/ablation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool truth)
{
    if (!truth)
        abort();
}

/* A folder of its own: what is named there is not there, but for what the seeds name. */
static char folder[] = "/tmp/ablation_fuzz.XXXXXX";
static const char *const there[] = {"docs.jsonl", "held.jsonl"};

static void remove_folder(void)
{
    for (int i = 0; i < 2; i++)
        unlink(there[i]);
    rmdir(folder);
}

static void enter_folder(void)
{
    need(mkdtemp(folder) != NULL && chdir(folder) == 0 && atexit(remove_folder) == 0);
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(there[i], "w");

        need(f != NULL);
        fputs("{\"id\":\"a\",\"text\":\"the mill grinds the grain of all who live by the river there\"}\n", f);
        fclose(f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct ablation a;
    struct err e;
    char name[32];
    int rc;

    if (size && (memchr(data, '/', size) || memchr(data, '*', size) || memchr(data, '?', size)))
        return 0; /* a pattern could look through the whole disk */
    if (fd < 0) {
        enter_folder();
        fd = memfd_create("fuzz", 0);
    }
    need(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    rc = ablation_load(&a, name, &e);
    if (rc == 0)
        rc = ablation_plans(&a, &e);
    need(rc == 0 || (e.code < 0 && e.msg[0]));
    for (int v = 0; rc == 0 && v < a.n_variants; v++)
        need(a.variant[v].n_branches > 0 && a.variant[v].group < a.n_groups);
    ablation_free(&a);
    return 0;
}
