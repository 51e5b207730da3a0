/* train/plan_device.h -- devices that plans know, and files of what one was measured to take. */
#ifndef TRAIN_PLAN_DEVICE_H
#define TRAIN_PLAN_DEVICE_H

#include "base/mem.h"
#include "train/plan_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A rank's device and what stands between ranks; bytes and seconds. */
struct plan_machine {
    struct plan_rates rates;
    double memory;            /* bytes */
    int64_t node;             /* ranks of a node */
    double node_bandwidth;    /* of a rank within its node, one way */
    double network_bandwidth; /* beyond it */
};

/* A known device, by its data sheet, eight in a node: "a100", "h100", "h200", "b200", or a text that contains one of these, in
 * capitals too ("NVIDIA H200"); its rates are calculated.  False: there is none in it. */
bool plan_machine_named(struct plan_machine *m, const char *name);
/* The names, with commas. */
const char *plan_machine_names(void);

/* A device as `make gpu-bench` measured it: lines of JSON,
 *     {"device":"NVIDIA H200","version":1}
 *     {"op":"layer norm","m":16384,"n":1600,"k":0,"d":0,"kv":0,"seconds":6.1e-05}
 * each of them an op of plan_ops.h in bf16, or in FP8, with its sizes.  An op takes by as much more than is calculated as it did
 * in the file, in the geometric mean of its lines; what has no line is calculated, with the rate of a copy if that has one.
 * measured becomes how many ops had one.  ERR_FORMAT names the line. */
int plan_device_parse(struct plan_machine *m, const char *what, struct span text, int *measured, struct err *e);
/* The same of a file of at most 16 MiB. */
int plan_device_load(struct plan_machine *m, const char *path, int *measured, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
