#include "train/plan_device.h"

#include <string.h>
#include <strings.h>

/* Data sheets (dense FLOP/s), and what of them is known to be reached: the largest products of cuBLASLt on normal numbers, where
 * power bounds them, and copies.  Calculated and published, not measured by quern. */
struct device_sheet {
    const char *name;
    double flops[PLAN_TYPES], reach[PLAN_TYPES]; /* bf16, FP8, fp32 */
    double bytes, copy;
    int processors;
    double clock;
    double memory, node, network;
};
static const struct device_sheet sheets[] = {
    {"a100", {312e12, 0, 19.5e12}, {0.86, 0, 0.8}, 2.039e12, 0.88, 108, 1.41e9, 80e9, 300e9, 25e9},
    {"h100", {989e12, 1979e12, 67e12}, {0.75, 0.63, 0.8}, 3.35e12, 0.9, 132, 1.75e9, 80e9, 450e9, 50e9},
    {"h200", {989e12, 1979e12, 67e12}, {0.75, 0.63, 0.8}, 4.8e12, 0.9, 132, 1.75e9, 141e9, 450e9, 50e9},
    {"b200", {2250e12, 4500e12, 75e12}, {0.72, 0.62, 0.8}, 8e12, 0.9, 148, 1.85e9, 180e9, 900e9, 50e9},
};
/* A multiprocessor issues for four warps at once, of which waiting takes a share; an op begins and ends while little runs. */
#define ISSUED_A_CLOCK (4 * 0.9)
#define LAUNCH_SECONDS 2e-6

const char *plan_machine_names(void)
{
    return "a100, h100, h200, b200";
}

static const struct device_sheet *sheet_named(const char *name)
{
    for (size_t i = 0; i < sizeof sheets / sizeof *sheets; i++)
        if (strcasestr(name, sheets[i].name))
            return &sheets[i];
    return NULL;
}

bool plan_machine_named(struct plan_machine *m, const char *name)
{
    const struct device_sheet *s = sheet_named(name);

    if (!s)
        return false;
    *m = (struct plan_machine){
        .rates = {.bytes = s->bytes, .copy = s->copy, .issue = s->processors * s->clock * ISSUED_A_CLOCK,
                  .launch = LAUNCH_SECONDS, .processors = s->processors},
        .memory = s->memory, .node = 8, .node_bandwidth = s->node, .network_bandwidth = s->network,
    };
    memcpy(m->rates.flops, s->flops, sizeof s->flops);
    memcpy(m->rates.reach, s->reach, sizeof s->reach);
    plan_count_instructions(&m->rates);
    return true;
}
