/* base/file_temp.h -- the temporary files beside outputs: their names, what killed runs left of them, and who writes.
 *
 * For base/file_out.c.  An output NAME is DIR/.NAME.WORD.part until it is whole, with a random word, or DIR/.NAME.part if
 * a later run is to go on with it.  Whoever writes one holds a flock on it, by which others see that it is alive.
 */
#ifndef BASE_FILE_TEMP_H
#define BASE_FILE_TEMP_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { FILE_TEMP_WORD = 12 }; /* random characters */

/* Where the last part of a path begins. */
static inline size_t file_base_at(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash + 1 - path) : 0;
}

/* The name beside path, with a new random word or without one; names end at 255 bytes.  NULL: no memory. */
char *file_temp_name(const char *path, bool random);

/* Whether somebody else writes path, which has all links followed, too; own: the caller's temporary file, which is there.  What
 * a killed run left under a name with a word is removed, if it was there when this process first wrote to the folder.
 * *claim, which was -1, is to be closed when path is written: by that others see it without reading the folder.  Of two who
 * ask at once each may be told of the other. */
bool file_temp_others(const char *path, const char *own, int *claim);
#endif
