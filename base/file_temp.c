#include "base/file_temp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"

enum {
    WORD = FILE_TEMP_WORD,
    FOLDERS = 8 /* whose leftovers are remembered */
};

/* ---- names ---- */

/* How much of the last part of a name a temporary one has: names end at 255 bytes. */
static int base_length(const char *base)
{
    size_t n = strlen(base), most = NAME_MAX - sizeof "...part" - WORD;
    return (int)(n < most ? n : most);
}

static bool is_word(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= 'a' && s[i] <= 'z')))
            return false;
    return n == WORD;
}

static void random_word(char word[WORD + 1])
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    unsigned char r[WORD] = {0};

    if (getrandom(r, sizeof r, 0) < 0) /* then O_EXCL alone keeps names apart */
        memset(r, getpid() & 0xff, sizeof r);
    for (int i = 0; i < WORD; i++)
        word[i] = letters[r[i] % (sizeof letters - 1)];
    word[WORD] = '\0';
}

char *file_temp_name(const char *path, bool random)
{
    size_t dir = file_base_at(path);
    char word[WORD + 1] = "", *name;

    if (random)
        random_word(word);
    return asprintf(&name, "%.*s.%.*s%s%s.part", (int)dir, path, base_length(path + dir), path + dir, random ? "." : "", word) < 0
               ? NULL : name;
}

/* Whether s, which ends a name, is ".WORD.part". */
static bool ends_temp(const char *s)
{
    return strlen(s) == WORD + sizeof "..part" - 1 && s[0] == '.' && is_word(s + 1, WORD) && strcmp(s + 1 + WORD, ".part") == 0;
}

/* ---- what killed runs left ---- */

/* Looks at one name in the folder.  1: somebody is writing it; 0: nobody is, and what a killed run left is removed unless
 * it is under the name from which a run goes on. */
static int look_at(int folder, const char *name, bool fixed)
{
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), writes = 0;
    struct stat st;

    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            if (!fixed)
                unlinkat(folder, name, 0);
        } else {
            writes = errno == EWOULDBLOCK;
        }
    }
    close(fd);
    return writes;
}

/* A folder, and the names of all temporary files, each with its NUL, that were there when this process first wrote to it. */
struct folder {
    dev_t dev;
    ino_t ino;
    struct buf names;
};
static struct {
    pthread_mutex_t lock;
    struct folder folder[FOLDERS];
    unsigned n; /* so far: the oldest gives way */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Puts the names of temporary files in the folder into names.  Without memory some are not there: they stay. */
static void list_temps(int folder, struct buf *names)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *x;

    if (!d && fd >= 0)
        close(fd);
    while (d && (x = readdir(d))) {
        size_t n = strlen(x->d_name);
        if (x->d_name[0] == '.' && n > WORD + sizeof "..part" - 1 && ends_temp(x->d_name + n - (WORD + sizeof "..part" - 1)))
            (void)buf_put(names, x->d_name, n + 1);
    }
    if (d)
        closedir(d);
}

/* Looks at those of the names that are temporary ones of base, but own.  Whether somebody is writing one. */
static bool look_at_temps(int folder, const struct buf *names, const char *base, const char *own)
{
    size_t k = (size_t)base_length(base);
    bool writes = false;

    for (const char *s = names->p; names->n && s < names->p + names->n && !writes; s += strlen(s) + 1)
        if (strncmp(s + 1, base, k) == 0 && ends_temp(s + 1 + k) && strcmp(s, own) != 0)
            writes = look_at(folder, s, false);
    return writes;
}

/* The same for what was there when this process first wrote to the folder. */
static bool look_at_first(int folder, const char *base, const char *own)
{
    struct folder *f = NULL;
    struct stat st;
    bool writes;

    if (fstat(folder, &st) < 0)
        return false;
    pthread_mutex_lock(&seen.lock);
    for (unsigned i = 0; i < FOLDERS && i < seen.n && !f; i++)
        if (seen.folder[i].dev == st.st_dev && seen.folder[i].ino == st.st_ino)
            f = &seen.folder[i];
    if (!f) {
        f = &seen.folder[seen.n++ % FOLDERS];
        buf_free(&f->names);
        f->dev = st.st_dev;
        f->ino = st.st_ino;
        list_temps(folder, &f->names);
    }
    writes = look_at_temps(folder, &f->names, base, own);
    pthread_mutex_unlock(&seen.lock);
    return writes;
}

/* ---- who else writes ---- */

/* Whether all who use the folder share this kernel, and with it the locks on folders. */
static bool is_local(int folder)
{
    static const long kinds[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, F2FS_SUPER_MAGIC,
                                 OVERLAYFS_SUPER_MAGIC, 0x2fc12fc1 /* ZFS */};
    struct statfs s;

    if (fstatfs(folder, &s) < 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((long)s.f_type == kinds[i])
            return true;
    return false;
}

/* Claims a name in a folder by a shared lock, which needs no right to write: on the byte that is the name's hash, as long
 * as the descriptor is open.  1: another has claimed it too; 0: none has; -1: there are no such locks. */
static int claim_name(int folder, const char *base)
{
    struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)(hash_xxh3_64(span_of(base)) >> 2), .l_len = 1};

    if (!is_local(folder) || fcntl(folder, F_OFD_SETLK, &l) < 0)
        return -1;
    l.l_type = F_WRLCK;
    l.l_pid = 0;
    return fcntl(folder, F_OFD_GETLK, &l) < 0 ? -1 : l.l_type != F_UNLCK;
}

bool file_temp_others(const char *path, const char *own, int *claim)
{
    size_t dir = file_base_at(path);
    const char *base = path + dir, *mine = own + file_base_at(own);
    char *folder = strndup(path, dir), *fixed = file_temp_name(base, false);
    int others = -1;
    bool writes = false;

    *claim = folder && fixed ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (*claim >= 0) {
        others = claim_name(*claim, base);
        writes = others == 1 || look_at(*claim, fixed, true);
        if (others < 0) { /* the folder alone tells */
            struct buf names = {0};
            list_temps(*claim, &names);
            writes = look_at_temps(*claim, &names, base, mine) || writes;
            buf_free(&names);
        } else if (!writes) {
            writes = look_at_first(*claim, base, mine);
        }
    }
    free(folder);
    free(fixed);
    return writes;
}
