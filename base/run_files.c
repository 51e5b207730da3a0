#include "base/run_files.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/http.h"
#include "base/mem.h"

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for the names of files");
}

void run_files_free(struct run_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->v[i].what);
        free(f->v[i].name);
        free(f->v[i].real);
    }
    free(f->v);
    free(f->standard);
    *f = (struct run_files){0};
}

/* ---- naming ---- */

/* Adds a file; st NULL: it is not there. */
static int add(struct run_files *f, const char *what, const char *name, bool writes, const struct stat *st, struct err *e)
{
    struct run_file x = {.what = strdup(what), .name = strdup(name), .writes = writes, .there = st != NULL};

    if (st) {
        x.dev = st->st_dev;
        x.ino = st->st_ino;
        x.tree = S_ISDIR(st->st_mode);
    }
    x.real = file_resolve(name);
    if (!x.real && errno != ENOMEM) /* its folder is not there yet */
        x.real = strdup(name);
    if (!x.what || !x.name || !x.real || mem_grow(&f->v, &f->cap, f->n + 1, sizeof *f->v) < 0) {
        free(x.what);
        free(x.name);
        free(x.real);
        return no_memory(e);
    }
    f->v[f->n++] = x;
    return 0;
}

/* Adds each file that a pattern matches; none may. */
static int add_pattern(struct run_files *f, const char *what, const char *pattern, bool writes, struct err *e)
{
    struct stat st;
    glob_t g;
    int rc = glob(pattern, 0, NULL, &g) == GLOB_NOSPACE ? no_memory(e) : 0;

    for (size_t i = 0; rc == 0 && i < g.gl_pathc; i++)
        if (stat(g.gl_pathv[i], &st) == 0 && S_ISREG(st.st_mode))
            rc = add(f, what, g.gl_pathv[i], writes, &st, e);
    globfree(&g);
    return rc;
}

/* Whether a name means standard input: "-", or the pipe that it is by another name, as /dev/stdin. */
static bool is_standard(const char *name, const struct stat *st)
{
    struct stat in;

    if (strcmp(name, "-") == 0)
        return true;
    return S_ISFIFO(st->st_mode) && fstat(STDIN_FILENO, &in) == 0 && in.st_dev == st->st_dev && in.st_ino == st->st_ino;
}

static int reads_standard(struct run_files *f, const char *what, struct err *e)
{
    struct stat st;

    if (f->standard)
        return err_set(e, ERR_ARG, "%s and %s are both standard input, which can be read once", f->standard, what);
    f->standard = strdup(what);
    if (!f->standard)
        return no_memory(e);
    if (fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    return add(f, what, "/dev/stdin", false, &st, e);
}

static int reads(struct run_files *f, const char *what, const char *name, bool tree, struct err *e)
{
    struct stat st = {0};
    bool there = stat(name, &st) == 0;

    if (is_standard(name, &st))
        return reads_standard(f, what, e);
    if (!there)
        return strpbrk(name, "*?[") ? add_pattern(f, what, name, false, e) : 0;
    return S_ISREG(st.st_mode) || (tree && S_ISDIR(st.st_mode)) ? add(f, what, name, false, &st, e) : 0;
}

int run_reads(struct run_files *f, const char *what, const char *name, struct err *e)
{
    return reads(f, what, name, false, e);
}

int run_reads_tree(struct run_files *f, const char *what, const char *name, struct err *e)
{
    return reads(f, what, name, true, e);
}

int run_writes(struct run_files *f, const char *what, const char *name, struct err *e)
{
    struct stat st;
    size_t n = strlen(name);

    if (strcmp(name, "-") == 0 || !n || name[n - 1] == '/') /* a folder */
        return 0;
    if (file_check_suffix(name, e) < 0) {
        err_wrap(e, "%s", what);
        return ERR_ARG;
    }
    if (stat(name, &st) < 0)
        return add(f, what, name, true, NULL, e);
    return S_ISREG(st.st_mode) ? add(f, what, name, true, &st, e) : 0;
}

int run_writes_pattern(struct run_files *f, const char *what, const char *pattern, struct err *e)
{
    return add_pattern(f, what, pattern, true, e);
}

/* The files of an indexed dataset, which may be named by one of them. */
static int prefix(struct run_files *f, const char *what, const char *name, bool writes, struct err *e)
{
    static const char *const endings[] = {".bin", ".idx", ".sum.json", ".ledger"};
    size_t n = strlen(name);
    int rc = 0;

    if (n > 4 && (strcmp(name + n - 4, ".bin") == 0 || strcmp(name + n - 4, ".idx") == 0))
        n -= 4;
    for (size_t i = 0; i < sizeof endings / sizeof *endings && rc == 0; i++) {
        char *path;
        if (asprintf(&path, "%.*s%s", (int)n, name, endings[i]) < 0)
            return no_memory(e);
        rc = (writes ? run_writes : run_reads)(f, what, path, e);
        free(path);
    }
    return rc;
}

/* What is mapped, or gone on with in place, is no address. */
static int check_is_here(enum opt_names kind, const char *what, const char *name, struct err *e)
{
    if ((kind != OPT_NAMES_FOLDER && kind != OPT_NAMES_PREFIX && kind != OPT_NAMES_OUT_PREFIX) || !http_is_address(name))
        return 0;
    return err_set(e, ERR_ARG, "%s: '%.*s' is an address; this has to be a file or a folder here", what, http_name_length(name),
                   name);
}

int run_names(struct run_files *f, enum opt_names kind, const char *what, const char *name, struct err *e)
{
    const char *colon;

    TRY(check_is_here(kind, what, name, e));
    switch (kind) {
    case OPT_NAMES_INPUT: return run_reads(f, what, name, e);
    case OPT_NAMES_TREE: return run_reads_tree(f, what, name, e);
    case OPT_NAMES_TAGGED:
        colon = strchr(name, ':');
        return run_reads(f, what, colon ? colon + 1 : name, e);
    case OPT_NAMES_PREFIX: return prefix(f, what, name, false, e);
    case OPT_NAMES_OUTPUT:
    case OPT_NAMES_DOCUMENTS: return run_writes(f, what, name, e);
    case OPT_NAMES_OUT_PREFIX: return prefix(f, what, name, true, e);
    default: return 0;
    }
}

int run_names_opts(struct run_files *f, const struct opt *opts, const char *before, struct err *e)
{
    for (const struct opt *o = opts; o->type != OPT_TYPE_END; o++) {
        const struct opt_list *list = o->value;
        const char *const *name = o->value;
        char what[128];

        if (o->names == OPT_NAMES_NOTHING)
            continue;
        snprintf(what, sizeof what, "%s%s", before, o->name);
        if (o->type == OPT_TYPE_STR && *name)
            TRY(run_names(f, o->names, what, *name, e));
        for (int i = 0; o->type == OPT_TYPE_LIST && i < list->n; i++)
            TRY(run_names(f, o->names, what, list->v[i], e));
    }
    return 0;
}

/* ---- clashes ---- */

/* Whether two entries are one file. */
static int by_file(const void *a, const void *b)
{
    const struct run_file *x = *(const struct run_file *const *)a, *y = *(const struct run_file *const *)b;

    if (x->there != y->there)
        return x->there ? -1 : 1;
    if (!x->there)
        return strcmp(x->real, y->real);
    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static int by_file_and_place(const void *a, const void *b)
{
    const struct run_file *x = *(const struct run_file *const *)a, *y = *(const struct run_file *const *)b;
    int order = by_file(a, b);

    return order ? order : x < y ? -1 : x > y;
}

/* Two entries that are one file: w is written (or, NULL, it is where standard output goes), other read or written. */
struct clash {
    const struct run_file *w, *other;
};

/* Takes over the clash among v[0..n), which are one file, if it comes before the one that c has.  Several outputs may go where
 * standard output goes: nothing is replaced there. */
static void look(struct clash *c, struct run_file *const *v, size_t n, const struct stat *out)
{
    bool standard = out && v[0]->there && v[0]->dev == out->st_dev && v[0]->ino == out->st_ino;
    const struct run_file *w = NULL, *again = NULL, *r = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct run_file **first = !v[i]->writes ? &r : !w ? &w : &again;
        *first = *first ? *first : v[i];
    }
    if (standard)
        again = NULL;
    if (!again && !r)
        return;
    if ((w || standard) && (!c->other || (w ? w : r) < (c->w ? c->w : c->other)))
        *c = (struct clash){w, again ? again : r};
}

static int say(const struct clash *c, struct err *e)
{
    const struct run_file *w = c->w, *o = c->other;

    if (!o)
        return 0;
    if (!w)
        return err_set(e, ERR_ARG, "standard output goes to a file that is read too: %s '%s'", o->what, o->name);
    if (o->writes)
        return err_set(e, ERR_ARG, "%s '%s' and %s '%s' are one file", w->what, w->name, o->what, o->name);
    return err_set(e, ERR_ARG, "%s '%s' is a file that is read too: %s '%s'", w->what, w->name, o->what, o->name);
}

/* What is written must not stand in a folder that is read, if it is there already and so is read with it. */
static int check_trees(const struct run_files *f, struct err *e)
{
    for (size_t t = 0; t < f->n; t++) {
        const struct run_file *tree = &f->v[t];
        size_t n = strlen(tree->real);

        for (size_t i = 0; tree->tree && i < f->n; i++) {
            const struct run_file *w = &f->v[i];
            if (w->writes && w->there && strncmp(w->real, tree->real, n) == 0 && (w->real[n] == '/' || n == 1))
                return err_set(e, ERR_ARG, "%s '%s' stands in a folder that is read: %s '%s'", w->what, w->name, tree->what,
                               tree->name);
        }
    }
    return 0;
}

int run_files_check(const struct run_files *f, struct err *e)
{
    struct run_file **v = malloc((f->n + 1) * sizeof(*v));
    struct clash first = {NULL, NULL};
    struct stat out;
    bool to_file = fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode);
    int rc = v ? 0 : no_memory(e);

    for (size_t i = 0; i < f->n && rc == 0; i++)
        v[i] = &f->v[i];
    if (rc == 0 && f->n)
        qsort(v, f->n, sizeof(*v), by_file_and_place);
    for (size_t i = 0, k; i < f->n && rc == 0; i = k) {
        for (k = i + 1; k < f->n && by_file(&v[i], &v[k]) == 0;)
            k++;
        look(&first, v + i, k - i, to_file ? &out : NULL);
    }
    free(v);
    if (rc == 0)
        rc = say(&first, e);
    return rc < 0 ? rc : check_trees(f, e);
}

int run_files_not_in(const struct run_files *f, const char *what, const char *folder, struct err *e)
{
    char *real = file_resolve(folder);
    size_t n = real ? strlen(real) : 0;
    int rc = 0;

    for (size_t i = 0; real && i < f->n && rc == 0; i++)
        if (strncmp(f->v[i].real, real, n) == 0 && f->v[i].real[n] == '/' && !strchr(f->v[i].real + n + 1, '/'))
            rc = err_set(e, ERR_ARG, "%s '%s' has to be a folder of its own: %s '%s' stands there", what, folder, f->v[i].what,
                         f->v[i].name);
    free(real);
    return rc;
}
