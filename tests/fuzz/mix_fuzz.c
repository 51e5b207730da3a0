/* Any text as a list of splits, and as a plan of sources (read from a file). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "curate/mix/mix_out.h"
#include "curate/mix/mix_sources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    char path[64];
    struct mix_splits splits;
    struct mix_sources sources = {0};
    struct mix_out *out;
    struct mix_conf c;
    struct err e;
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (mix_splits_parse(&splits, text, &e) == 0) {
        struct mix_out_conf conf = {text, &splits, 2, 0};
        for (int i = 0; i <= 10; i++)
            if (mix_splits_at(&splits, i / 10.5) >= splits.n)
                abort();
        if (mix_out_open(&out, &conf, &e) == 0)
            mix_out_close(out);
    }
    mix_splits_parse(&splits, NULL, &e);
    if (mix_out_open(&out, &(struct mix_out_conf){text, &splits, 2, 0}, &e) == 0)
        mix_out_close(out);
    mix_conf_init(&c);
    if (fd < 0)
        fd = memfd_create("fuzz", 0);
    if (fd < 0 || ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    c.plan = path;
    c.n_inputs = 0;
    if (mix_sources_read(&sources, &c, &e) == 0)
        for (int i = 0; i < sources.n; i++)
            if (!(sources.v[i].weight > 0) || sources.v[i].n_files < 1)
                abort();
    mix_sources_free(&sources);
    free(text);
    return 0;
}
