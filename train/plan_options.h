/* train/plan_options.h -- quern train --plan: its options and its text. */
#ifndef TRAIN_PLAN_OPTIONS_H
#define TRAIN_PLAN_OPTIONS_H

#include "train/plan.h"

struct plan_options {
    bool plan;
    int64_t ranks, layouts, node;
    const char *device;
    double tflops, efficiency, memory, memory_bandwidth, node_bandwidth, network_bandwidth; /* 0: the device's */
};

/* Entries of an option table over p, a struct plan_options. */
#define PLAN_OPTS(p) \
    OPT_HEAD("Plan"), \
    OPT_FLAG(0, "plan", &(p).plan, "predict memory and time of a step, and train nothing"), \
    OPT_INT(0, "plan-ranks", &(p).ranks, 1, 1 << 24, "on so many devices"), \
    OPT_INT(0, "plan-layouts", &(p).layouts, 0, 1000, "propose so many layouts, the fastest first, with its flags"), \
    OPT_STR(0, "plan-device", &(p).device, "NAME", "a100, h100, h200 or b200, by data sheets; or the file of gpu-bench"), \
    OPT_NUM(0, "plan-tflops", &(p).tflops, 0, 1e9, "peak of a device"), \
    OPT_NUM(0, "plan-efficiency", &(p).efficiency, 0, 1, "share of it that the largest products reach"), \
    OPT_NUM(0, "plan-memory", &(p).memory, 0, 1e9, "GB of a device"), \
    OPT_NUM(0, "plan-memory-bandwidth", &(p).memory_bandwidth, 0, 1e9, "GB/s of its memory"), \
    OPT_INT(0, "plan-node", &(p).node, 0, 1 << 20, "devices of a node"), \
    OPT_NUM(0, "plan-node-bandwidth", &(p).node_bandwidth, 0, 1e9, "GB/s of a device to its node, one way"), \
    OPT_NUM(0, "plan-network-bandwidth", &(p).network_bandwidth, 0, 1e9, "GB/s of a device to other nodes, one way")

/* "h100" and a plan for 1 rank. */
void plan_options_init(struct plan_options *p);

/* Fills in what a plan does not need to be told (data, steps, learning rate), checks c, and appends the plan,
 * as lines, to out.  ERR_ARG names an option; the errors of train_config_check and plan_step. */
int plan_run(struct train_config *c, const struct plan_options *p, struct buf *out, struct err *e);

#endif
