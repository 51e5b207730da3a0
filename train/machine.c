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

/* How many of the world's ranks have this rank's key and give what it gives. */
static int count_alike(const struct machine_ranks *m, const int64_t *all)
{
    int n = 0, me = m->world->rank;

    for (int r = 0; r < m->world->size; r++)
        n += m->key[r] == m->key[me] && (!all || all[r] == all[me]);
    return n;
}

int machine_open(struct machine_ranks *m, struct comm *world, struct err *e)
{
    int64_t key = machine_key(), mask = processors_key(), *masks = calloc((size_t)world->size, sizeof *masks);
    int rc = 0;

    *m = (struct machine_ranks){.world = world, .key = calloc((size_t)world->size, sizeof *m->key)};
    if (!m->key || !masks)
        rc = err_set(e, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = comm_all_gather(world, &key, m->key, 1, COMM_I64, e);
    if (rc == 0)
        rc = comm_all_gather(world, &mask, masks, 1, COMM_I64, e);
    if (rc == 0) {
        m->here = count_alike(m, NULL);
        m->alike = count_alike(m, masks);
    } else {
        machine_close(m);
    }
    free(masks);
    return rc;
}

void machine_close(struct machine_ranks *m)
{
    free(m->key);
    m->key = NULL;
}

int machine_sum(const struct machine_ranks *m, int64_t mine, int64_t *sum, struct err *e)
{
    int64_t *all = calloc((size_t)m->world->size, sizeof *all);
    int rc = all ? comm_all_gather(m->world, &mine, all, 1, COMM_I64, e) : err_set(e, ERR_NOMEM, "out of memory");

    *sum = 0;
    for (int r = 0; rc == 0 && r < m->world->size; r++)
        *sum += m->key[r] == m->key[m->world->rank] ? all[r] : 0;
    free(all);
    return rc;
}
