/* Compressed files: reads everything, member by member and across, over the damage. */
#include <stdlib.h>

#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 32 << 20 }; /* bombs: what is read of one */

static void read_all(struct span bytes, bool members)
{
    static char out[1 << 16];
    struct file_in *f;
    struct err e;
    size_t got = 0;

    if (file_open_mem(&f, "mem", bytes, &e) < 0)
        abort();
    file_stop_at_members(f, members);
    for (int i = 0; i < 1000; i++) {
        ssize_t k;
        while (got < OUT_MAX && (k = file_read(f, out, sizeof out, &e)) > 0)
            got += (size_t)k;
        if (got >= OUT_MAX)
            break;
        if (k < 0) {
            if (e.code != k || !e.msg[0])
                abort();
            if (file_skip_member(f, &e) != 1)
                break;
        } else if (!members || file_next_member(f, &e) != 1) {
            break;
        }
        if (file_member_offset(f) > bytes.n || file_consumed(f) > bytes.n)
            abort();
    }
    file_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span s = {(const char *)data, size};

    read_all(s, false);
    read_all(s, true);
    return 0;
}
