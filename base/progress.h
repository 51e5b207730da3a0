/* base/progress.h -- how far a run is: one changing line for a person, or JSON lines for a program.
 *
 * A tool says where it stands as often as it likes (progress_show); this decides what is printed.  On a terminal that is
 * one line that replaces itself, at most 6 times a second, cut at the terminal's width.  With `--progress json` it is one
 * JSON object a line on standard error, one a second and a last one; messages there begin with the tool's name, so a
 * line that begins with a brace is one of these.  The rate is that since the first call, over the whole run: a tool
 * that goes over its input several times counts all of it in one total, so that neither rate nor end jump back.
 */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum progress_form { PROGRESS_AUTO, PROGRESS_JSON, PROGRESS_NONE }; /* as the words of PROGRESS_WORDS */
#define PROGRESS_WORDS "auto|json|none"
#define PROGRESS_HELP "how far the run is, on standard error: a line on a terminal, or JSON lines"

/* Something that is counted beside what is done: {"dropped", 12}. */
struct progress_count {
    const char *name;
    double value;
};
enum { PROGRESS_COUNTS = 8 };

struct progress {
    const char *phase; /* what is being done, such as "pass 1 of 3"; NULL: there is only one thing */
    const char *input; /* the file in hand; NULL: none, or not known */
    const char *unit;  /* what done and total count, such as "steps"; NULL: bytes */
    double done, total; /* of the whole run; total 0: not known (a pipe) */
    struct progress_count count[PROGRESS_COUNTS]; /* up to the first without a name */
};

/* What is printed from now on; at the start it is PROGRESS_AUTO.  tool: as in messages, lives as long as the run. */
void progress_init(const char *tool, enum progress_form form);
/* Whether what progress_show is told now would be used.  Cheap: for callers that have to work for what they say.  Any
 * thread. */
bool progress_due(void);
/* Says where the run stands; p and its strings are not kept.  Safe from any thread. */
void progress_show(const struct progress *p);
/* Wipes the line, or prints the last object if there is one that was not printed.  Call before the last message. */
void progress_end(void);

/* As progress_show prints it, `seconds` after the first call, when `first` of p->done was there already.  For tests too.
 * progress_put_json appends a line; progress_put_line none, and whatever could steer a terminal is a '?'.  ERR_NOMEM. */
int progress_put_line(struct buf *b, const struct progress *p, double first, double seconds);
int progress_put_json(struct buf *b, const char *tool, const struct progress *p, double first, double seconds);

#ifdef __cplusplus
}
#endif
#endif
