/* tests/failing_calls.h -- calls of the system that fail when a test says so.  A program that is linked with
 * -Wl,--wrap=CALL for each of them (Makefile: FAILING) counts quern's own calls, of all threads, but no library's. */
#ifndef TESTS_FAILING_CALLS_H
#define TESTS_FAILING_CALLS_H

#include <stdbool.h>

/* From here on the n-th call, from 1, fails with this errno; 0: each write to a file writes a part of what it
 * should, and nothing fails. */
void failing_arm(long n, int error);
/* No call fails any more.  Its name; NULL: there were fewer. */
const char *failing_disarm(void);

#endif
