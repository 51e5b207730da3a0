/* curate/language/cld2.h -- Compact Language Detector 2 (libcld2) behind a C face. */
#ifndef CURATE_CLD2_H
#define CURATE_CLD2_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cld2_result {
    const char *code; /* CLD2's own code of the top language; static */
    int percent;      /* 0..100: its share of the text that was recognised as letters */
    bool reliable;    /* clearly more likely than the second */
};

/* Looks at valid UTF-8 as plain text.  Thread-safe.  False when memory is out. */
bool cld2_detect(const char *text, size_t n, struct cld2_result *r);
/* CLD2's codes, one for each i from 0 on; NULL behind the last. */
const char *cld2_code(int i);

#ifdef __cplusplus
}
#endif
#endif
