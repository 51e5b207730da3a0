#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tokenize/tasks/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory with these bytes, and its name. */
static int file_of(const char *before, struct span text, char path[32])
{
    int fd = memfd_create("task", 0);
    size_t n = strlen(before);

    if (fd < 0 || write(fd, before, n) != (ssize_t)n || write(fd, text.p, text.n) != (ssize_t)text.n)
        abort();
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

/* Bytes up to a zero as a task's file, behind the name of its data, which are the others: requests are what a model takes, and
 * scores of any answers are shares. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tokenizer *tokenizer;
    const struct task_settings s = {.shots = -1, .limit = 5, .seed = 1, .length = 16};
    const uint8_t *zero = memchr(data, 0, size);
    size_t n = zero ? (size_t)(zero - data) : size;
    char docs[32], yaml[32], head[160];
    int rows = file_of("", (struct span){(const char *)data + n + (zero != NULL), size - n - (zero != NULL)}, docs), text;
    struct task *t;
    struct err e;

    if (!tokenizer && tokenizer_open(&tokenizer, "tests/data/tasks/model/tokenizer.json", NULL, &e) < 0)
        abort();
    snprintf(head, sizeof head, "dataset_path: json\ndataset_kwargs: {data_files: {test: %s}}\ntest_split: test\n", docs);
    text = file_of(head, (struct span){(const char *)data, n}, yaml);
    if (task_open(&t, yaml, tokenizer, &s, &e) == 0) {
        const struct task_request *r;
        int64_t requests = task_requests(t, &r);
        struct task_answer *a = calloc((size_t)requests + 1, sizeof *a);
        struct task_score scores[TASK_SCORES];
        int k;

        for (int64_t i = 0; i < requests; i++) {
            if (r[i].from < 1 || r[i].from >= r[i].n + (task_writes(t) > 0) || r[i].n > s.length + 1 || r[i].ids[r[i].n - 1] < 0)
                abort();
            a[i] = (struct task_answer){-1.5 - (double)(i % 3), i % 2, r[i].ids, r[i].n};
        }
        k = task_score(t, a, scores, NULL, &e);
        for (int i = 0; i < k; i++)
            if (scores[i].better_higher && !(scores[i].value >= 0 && scores[i].value <= 1))
                abort();
        free(a);
        task_close(t);
    }
    close(rows);
    close(text);
    return 0;
}
