/* tokenize/script.h -- the script that a character is of, for pieces that may not mix them.
 */
#ifndef TOKENIZE_SCRIPT_H
#define TOKENIZE_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

enum { SCRIPT_COMMON = 0, SCRIPT_INHERITED = 1 }; /* others have numbers of no meaning; kana are Han */

/* Runs of characters of one script, in order: the first one << 8 | the script's number; the first run begins at 0. */
extern const uint32_t script_runs[];
extern const size_t script_n_runs;

/* The script of a code point below 0x110000. */
uint8_t script_of(uint32_t cp);

#endif
