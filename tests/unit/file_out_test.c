/* Files that are written: whole or not at all, alone and in groups; full disks, killed writers, links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_group.h"
#include "base/rng.h"
#include "base/spill.h"
#include "tests/temp_folder.h"

/* Temporary files that name has in its folder. */
static int parts(const char *path)
{
    char folder[512];
    const char *name = strrchr(at(path), '/') + 1;
    DIR *d = opendir(dirname(strcpy(folder, at(path))));
    struct dirent *x;
    size_t n = strlen(name);
    int count = 0;

    while ((x = readdir(d)))
        count += x->d_name[0] == '.' && strncmp(x->d_name + 1, name, n) == 0 && x->d_name[1 + n] == '.' &&
                 strcmp(x->d_name + strlen(x->d_name) - 5, ".part") == 0;
    closedir(d);
    return count;
}

static void output_appears_only_when_whole(void **s)
{
    struct buf got = {0};
    struct file_out *o, *o2;
    struct stat st;
    struct err e;

    (void)s;
    assert_int_equal(file_write_all(at("out"), span_of("old"), &e), 0);
    assert_int_equal(file_create(&o, at("out"), 0, &e), 0);
    assert_int_equal(file_write(o, "new", 3, &e), 0);
    assert_int_equal(file_create(&o2, at("out"), 0, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "another process"));
    assert_int_equal(parts("out"), 1);
    file_abort(o);
    assert_int_equal(parts("out"), 0);
    assert_int_equal(file_read_all(at("out"), 100, &got, &e), 0);
    assert_string_equal(got.p, "old");

    assert_int_equal(symlink("out", at("link")), 0);
    assert_int_equal(file_write_all(at("link"), span_of("through a link"), &e), 0);
    buf_clear(&got);
    assert_int_equal(file_read_all(at("out"), 100, &got, &e), 0);
    assert_string_equal(got.p, "through a link");
    assert_int_equal(lstat(at("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));

    assert_int_equal(file_create(&o, dir, 0, &e), ERR_IO);
    assert_int_equal(file_create(&o, at("no/such/folder"), 0, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "no/such/folder"));
    file_abort(NULL);
    buf_free(&got);
}

static void a_killed_writer_leaves_no_final_name(void **s)
{
    struct stat st;
    int status, fds[2];
    char c;
    pid_t pid;

    (void)s;
    assert_int_equal(pipe(fds) | mkdir(at("own"), 0777), 0);
    pid = fork();
    if (pid == 0) {
        struct file_out *o;
        char big[1 << 16] = {0};
        if (file_create(&o, at("own/killed"), 0, NULL) < 0)
            _exit(1);
        for (int i = 0; i < 100; i++)
            file_write(o, big, sizeof big, NULL);
        if (write(fds[1], "x", 1) != 1)
            _exit(1);
        pause();
    }
    assert_int_equal(read(fds[0], &c, 1), 1);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    close(fds[0]);
    close(fds[1]);
    assert_true(stat(at("own/killed"), &st) < 0);
    assert_int_equal(parts("own/killed"), 1);
    spew(at("own/.killed.part"), "what a run can go on with", 25);
    spew(at("own/.killed.backup-of-me.part"), "somebody's own", 14);
    assert_int_equal(file_write_all(at("own/other"), span_of("not the one that was killed"), NULL), 0);
    assert_int_equal(parts("own/killed"), 3);
    assert_int_equal(file_write_all(at("own/killed"), span_of("rerun"), NULL), 0);
    assert_int_equal(parts("own/killed"), 2); /* the two that are not its own */
    assert_int_equal(unlink(at("own/.killed.part")) | unlink(at("own/.killed.backup-of-me.part")), 0);
    assert_int_equal(unlink(at("own/killed")) | unlink(at("own/other")) | rmdir(at("own")), 0);
}

static void a_full_disk_is_told_and_leaves_nothing(void **s)
{
    static const char *const names[] = {"full", "full.gz", "full.zst"};
    struct rlimit old, small;
    struct spill aside;
    struct buf text = {0};
    struct rng_mt r;
    struct file_out *o;
    struct stat st;
    struct err e;
    char want[600];
    int rc;

    (void)s;
    for (rng_mt_seed(&r, 7); text.n < 3 << 20;) { /* compressed it is too large, too */
        uint32_t noise = rng_mt_u32(&r);
        assert_int_equal(buf_put(&text, &noise, sizeof noise), 0);
    }
    assert_int_equal(file_create(&o, "/dev/full", 0, &e), 0);
    rc = file_write(o, text.p, text.n, &e);
    assert_int_equal(rc, ERR_IO);
    assert_non_null(strstr(e.msg, "cannot write '/dev/full': No space left"));
    assert_int_equal(file_write(o, "x", 1, &e), ERR_IO);
    assert_int_equal(file_commit(o, &e), ERR_IO);
    assert_int_equal(file_create(&o, "/dev/full", 0, &e), 0);
    assert_int_equal(file_write(o, "short", 5, &e), 0);
    assert_int_equal(file_commit(o, &e), ERR_IO); /* only the last flush finds out */
    assert_non_null(strstr(e.msg, "No space left"));

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){1 << 18, old.rlim_max};
    for (int i = 0; i < 3; i++) {
        setrlimit(RLIMIT_FSIZE, &small);
        assert_int_equal(file_create(&o, at(names[i]), 0, &e), 0);
        rc = file_write(o, text.p, text.n, &e);
        if (rc == 0)
            rc = file_commit(o, &e);
        else
            file_abort(o);
        setrlimit(RLIMIT_FSIZE, &old);
        assert_int_equal(rc, ERR_IO);
        assert_true(stat(at(names[i]), &st) < 0);
        assert_non_null(strstr(e.msg, names[i]));
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(parts(names[i]), 0);
    /* What has no name is told by its folder. */
    setrlimit(RLIMIT_FSIZE, &small);
    assert_int_equal(spill_open(&aside, at("."), 1 << 10, &e), 0);
    rc = spill_put(&aside, text.p, text.n, &e);
    setrlimit(RLIMIT_FSIZE, &old);
    spill_close(&aside);
    assert_int_equal(rc, ERR_IO);
    snprintf(want, sizeof want, "cannot write a temporary file in '%.*s': ", (int)strlen(at(".")) - 2, at("."));
    assert_memory_equal(e.msg, want, strlen(want));
    buf_free(&text);
}

/* A name that anybody can guess is used only for what is ours: nobody's link, and no second name of another file. */
static void a_planted_temporary_name_is_refused(void **s)
{
    struct buf got = {0};
    struct file_out *o;
    struct err e;

    (void)s;
    spew(at("victim"), "precious", 8);
    assert_int_equal(symlink("victim", at(".grown.part")), 0);
    assert_int_equal(file_resume(&o, at("grown"), 0, &e), ERR_IO);
    assert_non_null(strstr(e.msg, ".grown.part"));
    unlink(at(".grown.part"));
    assert_int_equal(link(at("victim"), at(".grown.part")), 0);
    assert_int_equal(file_resume(&o, at("grown"), 0, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "no file of our own"));
    unlink(at(".grown.part"));
    assert_int_equal(mkfifo(at(".grown.part"), 0600), 0);
    assert_int_equal(file_resume(&o, at("grown"), 0, &e), ERR_IO);
    unlink(at(".grown.part"));
    assert_int_equal(file_read_all(at("victim"), 100, &got, &e), 0);
    assert_string_equal(got.p, "precious");
    buf_free(&got);
}

static void a_replaced_file_keeps_its_mode(void **s)
{
    struct stat st;
    mode_t old = umask(022);

    (void)s;
    spew(at("mode"), "x", 1);
    for (unsigned mode = 0600; mode <= 0640; mode += 040) {
        assert_int_equal(chmod(at("mode"), mode), 0);
        assert_int_equal(file_write_all(at("mode"), span_of("new"), NULL), 0);
        assert_int_equal(stat(at("mode"), &st), 0);
        assert_int_equal(st.st_mode & 07777, mode);
    }
    assert_int_equal(file_write_all(at("new-mode"), span_of("new"), NULL), 0);
    assert_int_equal(stat(at("new-mode"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    umask(old);
}

/* A link that leads nowhere yet stays, and what it points to is made. */
static void a_link_to_what_is_not_there_stays(void **s)
{
    struct buf got = {0};
    struct stat st;

    (void)s;
    assert_int_equal(symlink("to-come", at("dangling")), 0);
    assert_int_equal(file_write_all(at("dangling"), span_of("made"), NULL), 0);
    assert_int_equal(lstat(at("dangling"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(file_read_all(at("to-come"), 100, &got, NULL), 0);
    assert_string_equal(got.p, "made");
    buf_free(&got);
}

/* Of writers that begin at the same moment one goes on, and the others are told. */
static void one_of_many_writers_goes_on(void **s)
{
    enum { WRITERS = 8 };
    int ready[2], go[2], done = 0;
    pid_t pid[WRITERS];
    char c;

    (void)s;
    assert_int_equal(pipe(ready) | pipe(go), 0);
    for (int i = 0; i < WRITERS; i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            struct file_out *o;

            close(go[1]);
            if (read(go[0], &c, 1) != 0) /* until all have begun */
                _exit(2);
            if (file_create(&o, at("raced"), 0, NULL) < 0)
                _exit(1);
            if (write(ready[1], "x", 1) != 1)
                _exit(2);
            sleep(60);
            _exit(2);
        }
    }
    close(go[0]);
    close(go[1]);
    for (int left = WRITERS - 1; left; left--) { /* all but one end by themselves */
        int status;
        pid_t p = waitpid(-1, &status, 0);

        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        for (int i = 0; i < WRITERS; i++)
            pid[i] = pid[i] == p ? 0 : pid[i];
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    for (int i = 0; i < WRITERS; i++)
        if (pid[i]) {
            kill(pid[i], SIGKILL);
            waitpid(pid[i], NULL, 0);
            done++;
        }
    assert_int_equal(done, 1);
    close(ready[0]);
    close(ready[1]);
}

/* Not only by the first output in a folder. */
static void another_writer_is_seen_by_each_output(void **s)
{
    struct file_out *o;
    struct err e;
    int ready[2], end[2], status;
    char c;
    pid_t pid;

    (void)s;
    assert_int_equal(file_write_all(at("first"), span_of("here"), &e), 0);
    assert_int_equal(pipe(ready) | pipe(end), 0);
    pid = fork();
    if (pid == 0) {
        bool begun = file_create(&o, at("other's"), 0, NULL) == 0;

        close(end[1]);
        if (write(ready[1], begun ? "y" : "n", 1) != 1 || read(end[0], &c, 1) != 0)
            _exit(1);
        _exit(file_commit(o, NULL) < 0);
    }
    close(end[0]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(c, 'y');
    assert_int_equal(file_create(&o, at("other's"), 0, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "another process"));
    assert_int_equal(file_publish_link(at("first"), at("other's"), true, &e), ERR_IO);
    assert_non_null(strstr(e.msg, "another process"));
    assert_int_equal(file_write_all(at("ours"), span_of("x"), &e), 0);
    close(end[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(file_write_all(at("other's"), span_of("ours"), &e), 0); /* once it has ended */
    close(ready[0]);
    close(ready[1]);
}

/* Files of a group appear together, or none does. */
static void a_group_of_files_appears_together(void **s)
{
    struct err e;

    (void)s;
    for (int whole = 0; whole < 2; whole++) {
        struct file_group g = {0}, stage = {0};
        struct file_out *f;

        assert_int_equal(file_create(&f, at("group-a"), 0, &e), 0);
        assert_int_equal(file_write(f, "a", 1, &e), 0);
        assert_int_equal(file_group_add(&stage, f, &e), 0);
        assert_int_equal(file_group_join(&g, &stage, &e), 0);
        assert_int_equal(file_group_write(&g, at("group-b"), (struct span){"bb", 2}, &e), 0);
        assert_int_equal(file_group_write(&g, at("no/such/folder/c"), (struct span){"c", 1}, &e), ERR_IO);
        assert_int_not_equal(access(at("group-a"), F_OK), 0);
        assert_int_not_equal(access(at("group-b"), F_OK), 0);
        if (whole)
            assert_int_equal(file_group_commit(&g, &e), 0);
        else
            file_group_abort(&g);
        assert_int_equal(access(at("group-a"), F_OK) == 0, whole);
        assert_int_equal(access(at("group-b"), F_OK) == 0, whole);
    }
    unlink(at("group-a"));
    unlink(at("group-b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_of_files_appears_together),
        cmocka_unit_test(output_appears_only_when_whole),
        cmocka_unit_test(a_killed_writer_leaves_no_final_name),
        cmocka_unit_test(a_full_disk_is_told_and_leaves_nothing),
        cmocka_unit_test(a_planted_temporary_name_is_refused),
        cmocka_unit_test(a_replaced_file_keeps_its_mode),
        cmocka_unit_test(a_link_to_what_is_not_there_stays),
        cmocka_unit_test(one_of_many_writers_goes_on),
        cmocka_unit_test(another_writer_is_seen_by_each_output),
    };
    return cmocka_run_group_tests_name("file_out", tests, make_dir, remove_dir);
}
