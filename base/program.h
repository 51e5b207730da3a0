/* base/program.h -- where the programs of quern are. */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

#include <stddef.h>

/* The path of quern-NAME beside this program, or the bare name for PATH. */
void program_path(const char *name, char *path, size_t size);
#endif
