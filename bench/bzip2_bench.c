/* Reads a file to its end: bzip2_bench FILE THREADS.  Prints how many bytes it holds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

int main(int argc, char **argv)
{
    static char out[256 << 10];
    struct file_in *f;
    struct err e;
    ssize_t n;

    if (argc != 3 || file_open(&f, argv[1], &e) < 0)
        return 2;
    file_set_threads(f, atoi(argv[2]));
    while ((n = file_read(f, out, sizeof out, &e)) > 0)
        ;
    if (n < 0)
        fprintf(stderr, "bzip2_bench: %s\n", e.msg);
    printf("%" PRIu64 "\n", file_tell(f));
    file_close(f);
    return n < 0;
}
