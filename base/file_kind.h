/* base/file_kind.h -- formats that are no text, told by their first bytes.
 *
 * For tools that read documents: a file of another kind is refused once, by its name, in place of a
 * bad record for each of its lines.
 */
#ifndef BASE_FILE_KIND_H
#define BASE_FILE_KIND_H

#include <stdbool.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"

enum { FILE_KIND_BYTES = 512 }; /* that are looked at */

/* "a PDF document": what bytes that begin like this (decompressed) are; NULL: text, or none of the
 * formats known. */
const char *file_kind(struct span start);
/* Whether they have one that no text has (a binary data byte in WHATWG's MIME sniffing; ESC, form feed are none). */
bool file_kind_is_binary(struct span start);

/* ERR_FORMAT when the file at path, which begins like this, cannot hold documents (JSON lines, plain text): it is of a kind
 * known, also one that quern extract reads; says what it is and what to do. */
int file_kind_refuse(const char *path, struct span start, struct err *e);
/* The same of a file that was just opened, if it is a plain one on disk (which is closed then): for refusing it before any
 * work.  What is compressed shows its kind when it is read. */
int file_kind_check(struct file_in *f, struct err *e);
#endif
