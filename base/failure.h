/* base/failure.h -- how a tool that fails tells the next one in a pipe.
 *
 * A shell gives the next tool the end of the stream and nothing else, so half a stream would look whole.  A tool that writes
 * JSON lines to a pipe therefore ends it, when it fails, with one line of its own:
 *     {"quern_failed":{"tool":"quern-clean","reason":"cannot open 'missing.jsonl': No such file or directory"}}
 * Whoever reads JSON lines here fails at that line.
 */
#ifndef BASE_FAILURE_H
#define BASE_FAILURE_H

#include "base/err.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends the line.  ERR_NOMEM. */
int failure_put(struct buf *b, const char *tool, const char *reason);
/* 0, or ERR_IO when this line of input is one: who failed and why. */
int failure_find(struct span line, struct err *e);
/* Ends standard output with the line, if it is a pipe.  in_line: what was written last did not end a line. */
void failure_end(const char *tool, const char *reason, bool in_line);
/* As failure_end with a line that is there already.  Async-signal-safe. */
void failure_end_with(struct span line, bool in_line);

#ifdef __cplusplus
}
#endif
#endif
