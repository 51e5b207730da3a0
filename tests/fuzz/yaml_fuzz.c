#include "base/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct node *root;
    struct err e;

    node_parse_yaml(&a, (struct span){(const char *)data, size}, &root, &e);
    arena_free(&a);
    return 0;
}
