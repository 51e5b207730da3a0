/* bench/gpu_train/gpu_train.h -- what the files of gpu_train_bench share: a device, memory with numbers, rows of the table. */
#ifndef BENCH_GPU_TRAIN_H
#define BENCH_GPU_TRAIN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda.h"
#include "kernels/device.h"
#include "train/plan_device.h"

extern struct device *dev;
extern struct err err;
extern struct cuda_info info;                 /* zeros where kernels run on the CPU */
extern int64_t tokens;                        /* rows of the matrices */
extern double copy_rate, peak, peak_fp8;      /* bytes a second of a copy; FLOP/s of large products */
extern int failed;                            /* rows of the job under way that did not run */

/* Ends the program unless rc is 0, with what err says. */
void must(int rc);

enum { PLACES = 8 };
extern void *place[PLACES]; /* of place_bytes each; NULL before take and after give */
extern size_t place_bytes;
void take_places(void); /* device_put_numbers in each, whatever was there */
void give_places(void);
/* For products in FP8: E4M3 in places 0 and 1, E5M2 in place 5, converted as training does from the bf16 of places 7 and 3; the
 * scale and what becomes of the largest are the first two floats of place 6, 1 / scale stands FP8_ALIGN bytes behind them. */
void put_fp8(void);
/* n integers (host NULL: memory was wanting, which ends the program) to the beginning of place[7]. */
void put_integers(const int32_t *host, int64_t n);

/* What is timed: queues an op with the numbers n. */
typedef int job_fn(const int64_t *n);
/* Seconds of the best run; < 0: it does not run. */
double best_of(job_fn *run, const int64_t *n);
/* Times it and prints its row: bytes against a copy's, flops against `of`. */
void row(const char *op, const char *shape, job_fn *run, const int64_t *n, double bytes, double flops, double of);
void job(const char *op, const char *shape, job_fn *run, const int64_t *n, double bytes, double flops); /* of: peak */
int run_copy(const int64_t *n); /* n: bytes */
/* The next row is that op of plans, with these sizes: its planned seconds stand in the row, and the measured ones go to the file
 * that $QUERN_DEVICE_FILE names, for quern train --plan-device. */
void stands_for(enum plan_op op, struct plan_dims d);
extern struct plan_machine machine; /* as planned; rates of 0: none is known like this one */

/* FLOP/s of a large product. */
double measure_peak(bool fp8);

/* Subjects, each a list of rows. */
void bench_products(int64_t fp8);
void bench_fp8_casts(int64_t none);
void bench_blocks(int64_t none);
void bench_attentions(int64_t none);
void bench_by_memory(int64_t none);
void bench_experts(int64_t none);

/* Whole steps of a model, with as many layers as fit. */
enum bench_model { GPT2_124M, GPT2_124M_NANOGPT, GPT2_124M_LLMC, GPT2_350M, GPT2_774M, GPT2_1_5B, LLAMA_1B, LLAMA_7B, MIXTRAL };
/* In bf16, in FP8 with delayed scales, in FP8 by blocks; in bf16 by ways that give the same bits, and launch by launch. */
enum bench_how { BF16, FP8, BLOCKS, DETERMINISTIC, NO_GRAPHS };
/* Updates of 8 micro-batches, whose passes are one launch each where the model allows it. */
void bench_step(enum bench_model which, enum bench_how how, const char *name);

#endif
