/* base/log.h -- messages and progress on standard error, a whole line at a time.
 *
 * Each is one write(2), so lines of tools that share standard error do not mix.  Names and data from outside may stand in
 * messages: what could steer a terminal is escaped (\n, \t, \xHH).
 * Errors that end the tool go through tool_fail(); this is for what happens on the
 * way: records skipped, files finished.  Safe from any thread.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum log_level { LOG_NONE = -1, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* prefix: "quern-filter".  Messages above level are not printed.  Called by
 * tool_begin; the default is no prefix and LOG_WARN. */
void log_init(const char *prefix, enum log_level level);
void log_msg(enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* An error, whatever the level, and text of our own that goes out with it (lines, each with its newline; may be NULL). */
void log_error_and(const char *after, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* From now on a message that nobody makes room for within a tenth of a second is left out: for a tool that was told to end, whose
 * reader may have stopped to read.  Also one that waits already.  Async-signal-safe. */
void log_no_wait(void);

/* A bad record that is skipped: its file and the byte where it begins (file NULL: it has none), and what is wrong.  Of a run
 * the first LOG_SKIPPED_MAX are named; the others are counted, or named too where LOG_DEBUG is printed. */
enum { LOG_SKIPPED_MAX = 20 };
void log_skipped(const char *file, uint64_t offset, const char *why);
/* Says how many were not named; tool_end and tool_fail call it. */
void log_skipped_end(void);

/* One changing line for a person who waits.  Nothing is printed unless standard
 * error is a terminal and the level allows LOG_INFO; at most 6 times a second. */
void log_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Wipes the line; call before the last message. */
void log_progress_end(void);

/* Seconds on a clock that never goes back. */
double log_seconds(void);

#ifdef __cplusplus
}
#endif
#endif
