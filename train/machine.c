#include "train/machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

/* What ranks of one machine have in common; zeroed so that it can be hashed whole. */
struct identity {
    char host[256], boot[64];
};

static int64_t machine_key(void)
{
    struct identity id;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    memset(&id, 0, sizeof id);
    gethostname(id.host, sizeof id.host - 1);
    if (f && !fgets(id.boot, sizeof id.boot, f))
        id.boot[0] = '\0';
    if (f)
        fclose(f);
    return (int64_t)hash_xxh3_64((struct span){(const char *)&id, sizeof id});
}

static int64_t processors_key(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return (int64_t)hash_xxh3_64((struct span){(const char *)&set, sizeof set});
}

/* What all ranks of world give, to be freed. */
struct given {
    int64_t key, value;
};
static int gather(struct comm *world, struct given mine, struct given **all, struct err *e)
{
    *all = calloc((size_t)world->size, sizeof **all);
    if (!*all)
        return err_set(e, ERR_NOMEM, "out of memory");
    return comm_all_gather(world, &mine, *all, sizeof mine / sizeof(int64_t), COMM_I64, e);
}

int machine_open(struct machine_ranks *m, struct comm *world, struct err *e)
{
    const struct given mine = {machine_key(), processors_key()};
    struct given *all;
    int rc = gather(world, mine, &all, e);

    *m = (struct machine_ranks){.world = world, .key = mine.key};
    for (int r = 0; rc == 0 && r < world->size; r++) {
        m->here += all[r].key == mine.key;
        m->alike += all[r].key == mine.key && all[r].value == mine.value;
    }
    free(all);
    return rc;
}

int machine_sum(struct comm *world, int64_t key, int64_t mine, int64_t *sum, int *ranks, struct err *e)
{
    struct given *all;
    int rc = gather(world, (struct given){key, mine}, &all, e);

    *sum = *ranks = 0;
    for (int r = 0; rc == 0 && r < world->size; r++)
        if (all[r].key == key) {
            *sum += all[r].value;
            ++*ranks;
        }
    free(all);
    return rc;
}
