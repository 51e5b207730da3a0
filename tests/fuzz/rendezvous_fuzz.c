/* What comes in where ranks meet: the first bytes of a connection, in two pieces, and a list of nodes.  A hello that is taken
 * must be written as it was read. */
#include <stdlib.h>
#include <string.h>

#include "comm/rendezvous.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char text[RENDEZVOUS_HELLO], again[RENDEZVOUS_HELLO];
    const struct rendezvous r = {.size = 4, .job = 7};
    size_t n = size < sizeof text ? size : sizeof text, half = size ? data[size - 1] % (n + 1) : 0;
    struct rendezvous_hello h;
    char *list = malloc(size + 1), node[64];
    struct err e;

    if (!list)
        return 0;
    memcpy(text, data, n);
    if (rendezvous_get_hello(&h, &r, text, half, &e) >= 0 && rendezvous_get_hello(&h, &r, text, n, &e) == 1) {
        rendezvous_put_hello(again, &h);
        if (h.rank >= 4 || n < sizeof text || memcmp(text, again, sizeof text) != 0)
            abort();
    }
    memcpy(list, data, size);
    list[size] = '\0';
    if (rendezvous_first_node(list, node, sizeof node, &e) == 0 &&
        (!*node || strlen(node) >= sizeof node - 1 || strpbrk(node, "[],")))
        abort();
    free(list);
    return 0;
}
