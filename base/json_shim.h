/* base/json_shim.h -- what json.c takes from C++: simdjson's first stage, and the
 * charconv conversions (shortest, and blind to the locale). */
#ifndef BASE_JSON_SHIM_H
#define BASE_JSON_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum json_scan_result {
    JSON_SCAN_OK,
    JSON_SCAN_EMPTY,
    JSON_SCAN_UTF8,     /* not valid UTF-8 */
    JSON_SCAN_UNCLOSED, /* a string does not end */
    JSON_SCAN_CONTROL,  /* a byte below 0x20 in a string */
    JSON_SCAN_TOO_LONG, /* 4 GiB or more */
    JSON_SCAN_NOMEM
};

struct json_scanner;
/* NULL when memory is out. */
struct json_scanner *json_scanner_new(void);
void json_scanner_free(struct json_scanner *s);
/* Finds the first byte of every token: brackets, colons, commas, opening quotes, and
 * anything else that stands outside strings.  The positions belong to s until the
 * next call.  Takes 4 bytes of memory a token, 4 of address space a byte. */
enum json_scan_result json_scan(struct json_scanner *s, const char *p, size_t n,
                                const uint32_t **at, uint32_t *count);

bool json_valid_utf8(const char *p, size_t n);

/* Writes at most 32 bytes, the shortest that read back as v (finite); returns their
 * number. */
size_t json_format_double(char out[32], double v);
/* The number that p[0..n) is, a valid JSON number.  Too large gives infinity. */
double json_parse_double(const char *p, size_t n);

#ifdef __cplusplus
}
#endif
#endif
