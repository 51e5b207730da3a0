/* Any bytes as a safetensors file and, sealed with the right checksum, as metadata. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "train/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every byte that the table says a tensor has. */
static void fuzz_safetensors(struct span file)
{
    struct arena a = {.max = 64 << 20};
    struct safetensors st;
    struct err e;
    volatile uint64_t sum = 0;

    if (safetensors_parse(&a, "fuzz", file, &st, &e) == 0)
        for (int i = 0; i < st.n; i++)
            sum += hash_xxh3_64(st.v[i].data) + (uint64_t)st.v[i].name.p[st.v[i].name.n];
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
    buf_free(&b);
    arena_free(&a);
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
    free(copy);
    return 0;
}
