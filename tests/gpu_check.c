/* Runs every op of the CUDA backend against its CPU twin, on the GPU.  make gpu-check */
#include <stdio.h>

#include "tests/twins.h"

int main(void)
{
    struct twins t = {.scale = 50};
    int passed = 0, failed = 0;
    struct err e;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (device_open_dedup(&t.other, "cuda", 0, NULL, &e) < 0 || device_open_dedup(&t.cpu, "cpu", 0, NULL, &e) < 0) {
        printf("not ok - open the GPU: %s\n0 passed, 1 failed\n", e.msg);
        return 1;
    }
    printf("# %s against %s\n", t.other->name, t.cpu->name);
    for (const struct twins_case *c = twins_cases; c->name; c++) {
        t.wrong[0] = '\0';
        c->run(&t);
        passed += !t.wrong[0];
        failed += t.wrong[0] != 0;
        if (t.wrong[0])
            printf("not ok - %s: %s\n", c->name, t.wrong);
        else
            printf("ok - %s\n", c->name);
    }
    device_close(t.other);
    device_close(t.cpu);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
