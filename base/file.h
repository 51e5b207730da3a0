/* base/file.h -- byte streams in and out, compressed or not.
 *
 * Input: plain, gzip (many members), zstd and lz4 (many frames, skippable ones too), bzip2 and xz
 * (many streams, xz's padding too; below, a member is any of these), told apart by the first
 * bytes, never by the name.  The dictionary that a .warc.zst has in its first frame is used; an
 * xz stream may take 1 GiB of memory.  What a build has no library for (bzip2, xz, lz4) opens,
 * and says so when it is read.  A Parquet file is its rows as JSON lines, a member being a row group; what cannot seek
 * is put aside in $TMPDIR first (docs/parquet.md).  "-" is standard input; http:// and https:// begin
 * addresses (base/http.h), which are no names to write; s3:// those of objects (base/s3.h), which are
 * (base/s3_write.h).  Output: plain, or compressed by the
 * name's ending (.gz, .zst, .parquet); it appears under its final name only when file_commit() has made it
 * whole: written beside it under a temporary name, flushed, fsynced, renamed.  "-" is standard
 * output.
 * Messages name the file, the offset and the reason.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum file_codec { FILE_PLAIN, FILE_GZIP, FILE_ZSTD, FILE_BZ2, FILE_XZ, FILE_LZ4, FILE_PARQUET };

/* ---- input ---- */

struct file_in;

/* ERR_IO: it cannot be read.  Of an address nothing is asked, but one with a password in it is ERR_ARG. */
int file_check_readable(const char *path, struct err *e);

/* Opens path for reading.  A directory, a missing file and an unreadable one are ERR_IO with the name.  Standard input is never
 * closed.  As an address is opened too, path is a name that a user gave, or one below a folder that is there; of an address
 * file_name is what stands before its query. */
int file_open(struct file_in **f, const char *path, struct err *e);
/* As file_open, over bytes in memory (tests, fuzzers); name is for messages.  The
 * bytes must outlive f. */
int file_open_mem(struct file_in **f, const char *name, struct span bytes, struct err *e);
/* As file_open, of a regular file in folder ("": the working one) or below: a link or a ".." that leaves the folder is
 * ERR_IO and not followed.  Messages have both names. */
int file_open_beneath(struct file_in **f, const char *folder, const char *name, struct err *e);
/* As file_open, of size stored bytes that read gives (at most n of them; 0: the end), such as a file within an archive.  What
 * read answers below 0 is passed on, and read again after file_skip_member.  arg must outlive f. */
int file_open_stream(struct file_in **f, const char *name, uint64_t size,
                     ssize_t (*read)(void *arg, void *p, size_t n, struct err *e), void *arg, struct err *e);
/* The next at most n decompressed bytes.  0 is the end; short reads happen.
 * A damaged or truncated member is ERR_FORMAT with file and offset of the member;
 * what had been decoded before was given out by earlier reads; one that asks for more
 * memory than is allowed is ERR_LIMIT, one that this build cannot decode ERR_UNSUPPORTED.
 * After these file_skip_member() goes on. */
ssize_t file_read(struct file_in *f, void *p, size_t n, struct err *e);
/* After a damaged member: searches forward from behind its first byte for the next
 * position where a member can begin; a pipe is searched from where it stands.  1
 * found (reading there may fail again), 0 end of file. */
int file_skip_member(struct file_in *f, struct err *e);

/* Lets up to n threads (the caller's is one) decode, from before the first read on; they start
 * when there is work for them and end with file_close().  Only bzip2 is divided, block by
 * block, and Parquet, by row groups; the bytes are the same for any n.  Memory of bzip2: 4 n blocks are
 * held, at most 4 MiB stored and 6 MiB decoded each (bzip2 -9 of text: 0.25 and 1 MiB); of Parquet by at most four
 * threads: 96 MiB of lines, and for each thread what reading takes. */
void file_set_threads(struct file_in *f, int n);
/* Of Parquet these columns alone are read: names with commas between, which outlive f.  From before the first read on; NULL: all.
 * A file that lacks one of them cannot be read. */
void file_set_columns(struct file_in *f, const char *names);

enum file_codec file_codec(const struct file_in *f);
const char *file_name(const struct file_in *f);
/* Offset in the file of the member being read (compressed), or of the next byte
 * (plain); and the count of decompressed bytes given out so far. */
uint64_t file_member_offset(const struct file_in *f);
uint64_t file_tell(const struct file_in *f);
/* Size of the file as stored, 0 if unknown (a pipe): for progress. */
uint64_t file_size(const struct file_in *f);
/* Bytes of the file as stored that have been consumed: for progress. */
uint64_t file_consumed(const struct file_in *f);
/* Of an address: what tells this state of the object from others (http_state); else "". */
const char *file_state(const struct file_in *f);
/* Goes to an offset of a plain file or object, before anything has been read.  1; 0: this one has to be
 * read up to there (it is compressed, a pipe, or in memory). */
int file_seek(struct file_in *f, uint64_t offset, struct err *e);
void file_close(struct file_in *f);

/* ---- output ---- */

struct file_out;

/* Starts writing path.  Until it is whole it is DIR/.NAME.WORD.part with a random word; what a killed run left of that is
 * removed by the next that writes the name.  A file that is replaced gives its mode, and its owner where that can be; a link
 * stays, and what it points to is replaced.  What is there and is no regular file (a device, a pipe, whatever links lead
 * there) is written in place, and so is the file that standard output or standard error goes to.  Two writers of one name at
 * a time: the second fails.  .gz is written in members of 1 MiB, .zst as one frame with a checksum.  level: the codec's, 0
 * for its default.  ERR_IO; ERR_CLOSED when a pipe at standard output has no reader any more. */
int file_create(struct file_out **f, const char *path, int level, struct err *e);
/* Makes a folder unless it is there; the one that it stands in must be.  Objects need none.  ERR_IO. */
int file_make_folder(const char *path, struct err *e);
/* Makes a folder and those that it stands in, as far as they are not there, on disk when it returns.  ERR_ARG, ERR_IO. */
int file_make_folders(const char *path, struct err *e);
/* How file_create compresses what has this name; .parquet: lines of JSON become a Parquet file (docs/parquet.md), which has to be
 * a regular one. */
enum file_codec file_codec_by_name(const char *path);
/* Rows of a row group in all Parquet files that this process begins from now on; 0: docs/parquet.md's.  To be called while no
 * other thread writes. */
void file_set_row_group(int64_t rows);
#define ROW_GROUP_HELP "rows of a row group of Parquet that is written; 0: 131072"
/* ERR_ARG when a name is an address of the web, or ends as that of a compression (or archive) that cannot be written.
 * file_create asks too. */
int file_check_suffix(const char *path, struct err *e);
int file_write(struct file_out *f, const void *p, size_t n, struct err *e);
/* As file_create, for bytes that are compressed already, if the name says so; and all bytes of the file `from` as they are
 * stored, copied by the kernel where that can be. */
int file_create_stored(struct file_out **f, const char *path, struct err *e);
int file_put_file(struct file_out *f, const char *from, struct err *e);
/* Publishes the file `from` as path as well, with no byte copied: the two are one file then.  1; 0 when it has to be copied
 * (another file system, or path is written in place).  sync: its folder is synced, and so what was published there before. */
int file_publish_link(const char *from, const char *path, bool sync, struct err *e);
/* Writes out and fsyncs everything; nothing can follow but file_commit(), which then
 * only renames: for several files that must appear together. */
int file_flush(struct file_out *f, struct err *e);
/* Flushes, fsyncs, renames, closes and frees f, whatever happens.  On failure
 * nothing stands under the final name that was not there before. */
int file_commit(struct file_out *f, struct err *e);
/* The same without a sync, for many files that nobody looks for before file_sync_disk has made all of them last: until then
 * a kill leaves what is whole under its name, but a power cut may leave less. */
int file_commit_unsynced(struct file_out *f, struct err *e);
/* Removes what was written and frees f.  NULL is fine. */
void file_abort(struct file_out *f);

/* For work that a killed run must be able to go on with, in plain files.  file_resume: as
 * file_create, but the temporary name is DIR/.NAME.part, and the first size bytes stay that another run left there;
 * ERR_FORMAT when there are fewer, ERR_IO when what is there is no plain file of this user, or of the folder's, with one
 * name.  file_sync: what was written so far is on disk; more may follow.  file_leave: closes and frees f (NULL is fine);
 * what was written stays. */
int file_resume(struct file_out **f, const char *path, uint64_t size, struct err *e);
int file_sync(struct file_out *f, struct err *e);
void file_leave(struct file_out *f);
/* Overwrites n bytes at an offset, and reads at most n back; of a plain file with a temporary name. */
int file_patch(struct file_out *f, uint64_t at, const void *p, size_t n, struct err *e);
ssize_t file_reread(struct file_out *f, uint64_t at, void *p, size_t n, struct err *e);
const char *file_out_name(const struct file_out *f);
/* For a signal that ends the program: removes the temporary files of this process, but for those of file_resume that have
 * been synced.  Async-signal-safe; outputs must not be used afterwards. */
void file_drop_unfinished(void);
/* Whether what was last written to standard output ended within a line.  Async-signal-safe. */
bool file_stdout_in_line(void);
/* The path that a name stands for once all links are followed; the last part need not be there yet.  The caller frees it.
 * NULL: errno says why. */
char *file_resolve(const char *path);
/* Bytes given to file_write so far. */
uint64_t file_out_tell(const struct file_out *f);

/* ---- whole files ---- */

/* Reads all of path, or what is left of f (decompressed), at most max bytes (else ERR_LIMIT), into b. */
int file_read_rest(struct file_in *f, size_t max, struct buf *b, struct err *e);
int file_read_all(const char *path, size_t max, struct buf *b, struct err *e);
/* Writes path atomically; NULL: to standard output, where tool_end finds what failed. */
int file_write_all(const char *path, struct span s, struct err *e);
/* fsyncs the folder that holds path, so that a rename in it lasts; the file itself; and whatever its file system has still to
 * write, for many files at once. */
int file_sync_parent(const char *path, struct err *e);
int file_sync_path(const char *path, struct err *e);
int file_sync_disk(const char *path, struct err *e);

/* A descriptor of an empty file without a name: made as START.XXXXXX, so in the folder of
 * start, and gone once it is closed, however the program ends.  ERR_IO. */
int file_nameless(const char *start, struct err *e);

/* A read-only mapping of a whole plain file.  An empty file maps to p == NULL.  The
 * process dies of SIGBUS if it reads what a failing disk or a file that was cut does not have. */
struct file_map {
    const uint8_t *p;
    size_t n;
};
int file_map_open(struct file_map *m, const char *path, struct err *e);
void file_map_close(struct file_map *m);
/* Gets n bytes at p, which lies in m, from disk before they are read, some MiB at a time: ERR_IO with the reason, to
 * be wrapped with the file's name, in place of SIGBUS (Linux 5.14 and newer; older ones do nothing here).
 * file_map_drop: until they are read again they are not counted as this process's memory. */
int file_map_fetch(const struct file_map *m, const void *p, size_t n, struct err *e);
void file_map_drop(const struct file_map *m, const void *p, size_t n);

#ifdef __cplusplus
}
#endif
#endif
