/* tests/temp_folder.h -- a folder for the files of a test program: made by make_dir, and removed with its files
 * by remove_dir, as the set-up and the end of a group, or of a test. */
#ifndef TESTS_TEMP_FOLDER_H
#define TESTS_TEMP_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/quern-test-XXXXXX";

/* The path of a file in it, good for the next seven calls. */
static inline const char *at(const char *name)
{
    static char path[8][512];
    static int i;
    i = (i + 1) % 8;
    snprintf(path[i], sizeof path[i], "%s/%s", dir, name);
    return path[i];
}

/* Makes a file of n bytes. */
static inline void spew(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline int make_dir(void **s)
{
    (void)s;
    memcpy(dir + sizeof dir - sizeof "XXXXXX", "XXXXXX", sizeof "XXXXXX"); /* once more, for the next test */
    return mkdtemp(dir) ? 0 : -1;
}
static inline int remove_dir(void **s)
{
    char cmd[64];

    (void)s;
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    return system(cmd);
}

#endif
