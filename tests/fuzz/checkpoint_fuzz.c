/* Any bytes as a safetensors file, whose tensors are taken for slices of larger ones, as config.json and
 * index.json of transformers and, sealed with the right checksum, as metadata. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "train/hf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The tensors of a file as slices: what they are said to cover can be put together from them. */
static void fuzz_slices(struct arena *a, const struct safetensors *st)
{
    struct slices s = {.v = arena_calloc(a, (size_t)st->n + 1, sizeof *s.v)};
    struct err e;

    for (; s.v && s.n < st->n; s.n++)
        if (slice_parse(a, "fuzz", &st->v[s.n], &s.v[s.n], &e) < 0)
            return;
    if (!s.v || slices_sort(&s, "fuzz", &e) < 0)
        return;
    for (int i = 0, n; i < s.n; i += n) {
        struct piece p = s.v[i].at;

        slices_find(&s, p.part, p.name, &n);
        p.row = p.shape[0] / 3;
        p.rows = p.shape[0] - p.row;
        p.col = piece_width(&p) / 2;
        p.cols = piece_width(&p) - p.col;
        p.ld = p.cols;
        p.data = calloc((size_t)(p.rows * p.cols), sizeof(float));
        if (!p.data || slices_load(&s, "fuzz", NULL, &p, 1, &e) < 0)
            abort();
        free(p.data);
    }
}

/* Reads every byte that the table says a tensor has. */
static void fuzz_safetensors(struct span file)
{
    struct arena a = {.max = 64 << 20};
    struct safetensors st;
    struct err e;
    volatile uint64_t sum = 0;

    if (safetensors_parse(&a, "fuzz", file, &st, &e) == 0) {
        for (int i = 0; i < st.n; i++)
            sum += hash_xxh3_64(st.v[i].data) + (uint64_t)st.v[i].name.p[st.v[i].name.n];
        fuzz_slices(&a, &st);
    }
    (void)sum;
    arena_free(&a);
}

static void fuzz_metadata(struct span text)
{
    struct arena a = {.max = 64 << 20};
    struct checkpoint_info info;
    const struct node *files;
    struct buf b = {0};
    struct err e;
    volatile size_t sum = 0;

    checkpoint_parse_metadata(&a, "fuzz", text, &info, &files, &e);
    /* The seal would stop nearly everything: put the right one behind the bytes. */
    if (buf_put_span(&b, text) == 0 &&
        buf_printf(&b, ",\"xxh3\":\"%016llx\"}\n", (unsigned long long)hash_xxh3_64(text)) == 0 &&
        checkpoint_parse_metadata(&a, "fuzz", buf_span(&b), &info, &files, &e) == 0)
        for (int i = 0; i < info.n_args; i++)
            sum += strlen(info.args[i].name) + strlen(info.args[i].text);
    (void)sum;
    buf_free(&b);
    arena_free(&a);
}

static void fuzz_hf(struct span text)
{
    struct arena a = {.max = 64 << 20};
    struct hf_piece piece[HF_PIECES];
    struct model_config m;
    const struct hf_family *family;
    const char **files;
    struct params p;
    struct buf b = {0};
    struct err e;
    volatile size_t sum = 0;
    int n;

    if (hf_index_parse(&a, "fuzz", text, &files, &n, &e) == 0)
        for (int i = 0; i < n; i++)
            sum += strlen(files[i]);
    (void)sum;
    arena_free(&a);
    if (hf_config_parse("fuzz", text, 128, &m, &family, &e) < 0 || m.layers * (1 + m.experts) > 1000 ||
        params_init(&p, &m, NULL, &e) < 0)
        return;
    for (int i = 0; i < p.n; i++)
        if (hf_pieces(&m, family, &p, i, piece) < 1)
            abort();
    params_free(&p);
    if (hf_family_of(&m, &family, &e) == 0 && hf_config_put(&b, &m, family, "float32") == 0 &&
        hf_config_parse("fuzz", buf_span(&b), 128, &m, &family, &e) < 0)
        abort(); /* what we write we can read */
    buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1); /* of the very size, so that a byte too far is seen */

    if (!copy)
        abort();
    for (size_t i = 0; i < size; i++)
        copy[i] = (char)data[i];
    fuzz_safetensors((struct span){copy, size});
    fuzz_metadata((struct span){copy, size});
    fuzz_hf((struct span){copy, size});
    free(copy);
    return 0;
}
