#include "pipelines/note_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "curate/stream/stage.h"

enum { READ = 1 << 18 /* bytes at a time */ };

int note_file_open(struct note_file *f, const char *path, struct err *e)
{
    struct stat st;
    int rc;

    *f = (struct note_file){.file.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (f->file.fd < 0 || fstat(f->file.fd, &st) < 0) {
        rc = err_sys(e, ERR_IO, "cannot open '%s'", path);
    } else {
        f->left = f->file.size = (uint64_t)st.st_size;
        rc = spill_reader_open(&f->in, &f->file, 0, f->left, READ, e);
    }
    if (rc < 0)
        note_file_close(f);
    return rc;
}

int note_file_next(struct note_file *f, bool heads, struct err *e)
{
    uint64_t head[2], n;

    f->rest = (struct spill_part){0};
    if (!f->left)
        return 0;
    if (f->left < sizeof head)
        return err_set(e, ERR_FORMAT, "notes end within one");
    TRY(spill_next(&f->in, head, sizeof head, e));
    f->left -= sizeof head;
    n = heads && head[0] >= NOTE_LONG ? NOTE_HEAD : head[0];
    if (head[0] > f->left || -head[0] % 16 > f->left - head[0])
        return err_set(e, ERR_FORMAT, "notes end within one");
    f->left -= head[0] + -head[0] % 16;
    buf_clear_most(&f->note, NOTE_LONG);
    if (buf_reserve(&f->note, n) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for a note of %zu bytes", (size_t)n);
    f->note.n = n;
    TRY(spill_next(&f->in, f->note.p, n, e));
    if (n < head[0])
        f->rest = (struct spill_part){&f->file, spill_skip(&f->in, head[0] - n), head[0] - n};
    spill_skip(&f->in, -head[0] % 16);
    return 1;
}

void note_file_close(struct note_file *f)
{
    spill_reader_close(&f->in);
    spill_close(&f->file);
    buf_free(&f->note);
}
