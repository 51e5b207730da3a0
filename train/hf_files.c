/* The files of a folder of transformers. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/node.h"
#include "train/hf.h"

enum { FILES_MAX = 4096, INDEX_MAX = 1 << 28 };

struct placed {
    const struct safetensor *tensor;
    int file;
};

struct hf_files {
    struct arena arena;
    struct file_map *maps;
    struct safetensors *files;
    const char **names;
    int n;
    struct placed *tensors; /* of all files, by name; of one name in the order of files */
    int n_tensors;
};

int hf_index_parse(struct arena *a, const char *what, struct span text, const char ***files, int *n, struct err *e)
{
    const struct node *map;
    struct node *root;

    *n = 0;
    if (node_parse_json(a, text, &root, e) < 0)
        return err_wrap(e, "%s", what);
    map = node_get(root, "weight_map");
    if (!map || map->type != NODE_MAP || !map->count)
        return err_set(e, ERR_FORMAT, "%s: no weight_map", what);
    *files = arena_calloc(a, FILES_MAX, sizeof **files);
    if (!*files)
        return err_set(e, ERR_NOMEM, "out of memory");
    for (const struct node *f = map->child; f; f = f->next) {
        int i = 0;

        if (f->type != NODE_STR || !f->str.n || strlen(f->str.p) != f->str.n || memchr(f->str.p, '/', f->str.n) || f->str.n > 200)
            return err_set(e, ERR_FORMAT, "%s: '%s' is in no file with a name", what, f->key.p);
        while (i < *n && strcmp((*files)[i], f->str.p) != 0)
            i++;
        if (i == FILES_MAX)
            return err_set(e, ERR_LIMIT, "%s: more than %d files", what, FILES_MAX);
        (*files)[i] = f->str.p;
        *n += i == *n;
    }
    return 0;
}

/* Every tensor of the index stands in the file that it says. */
static int check_index(const struct hf_files *h, const char *what, struct span text, struct err *e)
{
    struct arena a = {0};
    struct node *root;
    int rc = node_parse_json(&a, text, &root, e);

    for (const struct node *f = rc < 0 ? NULL : node_get(root, "weight_map")->child; f && rc == 0; f = f->next) {
        const char *file = "";
        bool there = hf_files_tensor(h, hf_files_find(h, f->key.p), &file);

        if (strcmp(file, f->str.p) != 0)
            rc = err_set(e, ERR_FORMAT, "%s: '%s' is not in '%s', as it says, but %s%s", what, f->key.p, f->str.p,
                         there ? "in " : "nowhere", file);
    }
    arena_free(&a);
    return rc;
}

static int order(struct span a, struct span b)
{
    int c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static int by_name(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    int c = order(a->tensor->name, b->tensor->name);

    return c ? c : a->file - b->file;
}

static int sort_tensors(struct hf_files *h, struct err *e)
{
    size_t n = 0;

    for (int f = 0; f < h->n; f++)
        n += (size_t)h->files[f].n;
    h->tensors = n > INT_MAX ? NULL : arena_calloc(&h->arena, n + 1, sizeof *h->tensors);
    if (!h->tensors)
        return err_set(e, ERR_NOMEM, "no memory for the names of %zu tensors", n);
    for (int f = 0; f < h->n; f++)
        for (int i = 0; i < h->files[f].n; i++)
            h->tensors[h->n_tensors++] = (struct placed){&h->files[f].v[i], f};
    qsort(h->tensors, n, sizeof *h->tensors, by_name);
    return 0;
}

static int no_files(const char *dir, struct err *e)
{
    static const char *const pickles[] = {"pytorch_model.bin", "pytorch_model.bin.index.json"};
    char path[4352];

    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, pickles[i]);
        if (access(path, F_OK) == 0)
            return err_set(e, ERR_UNSUPPORTED, "%s: a pickle is not read here; transformers writes its weights as safetensors:"
                           " AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(ANOTHER)", path);
    }
    return err_set(e, ERR_IO, "%s: neither model.safetensors nor model.safetensors.index.json", dir);
}

static int open_files(struct hf_files *h, const char *dir, struct err *e)
{
    static const char *single[] = {"model.safetensors"};
    const char **names = single;
    struct buf text = {0};
    char path[4352], index[4352];
    int n = 1, rc = 0;
    bool sharded;

    snprintf(index, sizeof index, "%s/model.safetensors.index.json", dir);
    snprintf(path, sizeof path, "%s/%s", dir, single[0]);
    sharded = access(path, F_OK) < 0 && access(index, F_OK) == 0; /* in transformers' order */
    if (!sharded && access(path, F_OK) < 0)
        return no_files(dir, e);
    if (sharded) {
        rc = file_read_all(index, INDEX_MAX, &text, e);
        if (rc == 0)
            rc = hf_index_parse(&h->arena, index, buf_span(&text), &names, &n, e);
    }
    if (rc == 0) {
        h->names = names;
        h->maps = arena_calloc(&h->arena, (size_t)n, sizeof *h->maps);
        h->files = arena_calloc(&h->arena, (size_t)n, sizeof *h->files);
        if (!h->maps || !h->files)
            rc = err_set(e, ERR_NOMEM, "out of memory");
    }
    for (int i = 0; rc == 0 && i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        rc = safetensors_map(&h->maps[i], path, e);
        h->n += rc == 0;
        if (rc == 0)
            rc = safetensors_parse(&h->arena, path, (struct span){(const char *)h->maps[i].p, h->maps[i].n}, &h->files[i], e);
    }
    if (rc == 0)
        rc = sort_tensors(h, e);
    if (rc == 0 && sharded)
        rc = check_index(h, index, buf_span(&text), e);
    buf_free(&text);
    return rc;
}

int hf_files_open(struct hf_files **out, const char *dir, struct err *e)
{
    struct hf_files *h = calloc(1, sizeof *h);
    int rc;

    if (!h)
        return err_set(e, ERR_NOMEM, "out of memory");
    rc = open_files(h, dir, e);
    if (rc < 0) {
        hf_files_close(h);
        return rc;
    }
    *out = h;
    return 0;
}

void hf_files_close(struct hf_files *h)
{
    if (!h)
        return;
    for (int i = 0; i < h->n; i++)
        file_map_close(&h->maps[i]);
    arena_free(&h->arena);
    free(h);
}

int hf_files_find(const struct hf_files *h, const char *name)
{
    int low = 0, high = h->n_tensors; /* the first that is not before name is in low .. high */

    while (low < high) {
        int mid = low + (high - low) / 2;

        if (order(h->tensors[mid].tensor->name, span_of(name)) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < h->n_tensors && span_is(h->tensors[low].tensor->name, name) ? low : -1;
}

const struct safetensor *hf_files_tensor(const struct hf_files *h, int i, const char **file)
{
    if (i < 0 || i >= h->n_tensors)
        return NULL;
    *file = h->names[h->tensors[i].file];
    return h->tensors[i].tensor;
}
