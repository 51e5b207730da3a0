/* indexed_dataset/md5.h -- MD5 (RFC 1321), for Megatron's cache names only. */
#ifndef INDEXED_DATASET_MD5_H
#define INDEXED_DATASET_MD5_H

#include "base/mem.h"

/* 32 hexadecimal digits and a NUL. */
void md5_hex(struct span s, char out[33]);
#endif
