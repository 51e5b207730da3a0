/* tokenize/split_scan.h -- the length of the piece at p (p < end), pattern by pattern. */
#ifndef TOKENIZE_SPLIT_SCAN_H
#define TOKENIZE_SPLIT_SCAN_H

#include <stddef.h>
#include <stdint.h>

size_t split_scan_gpt2(const uint8_t *p, const uint8_t *end);
size_t split_scan_cl100k(const uint8_t *p, const uint8_t *end);
size_t split_scan_llama3(const uint8_t *p, const uint8_t *end);
size_t split_scan_qwen2(const uint8_t *p, const uint8_t *end);
size_t split_scan_o200k(const uint8_t *p, const uint8_t *end);
size_t split_scan_tekken(const uint8_t *p, const uint8_t *end);

#endif
