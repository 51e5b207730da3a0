/* curate/latex/latex_engine.h -- the state of a document on its way.  Inside latex_*.c only.
 *
 * Input is a stack of frames: files, macro bodies, arguments.  An argument is not copied into a
 * body but is a piece of input with the arguments that it was itself written among, so expanding
 * costs no copies.  A frame may say what is to be done at its end, and so a command that writes
 * its argument somewhere else needs no recursion.
 *
 * What is called int and not said otherwise returns 0, or ERR_NOMEM or ERR_LIMIT, which end the
 * document; faults of the source are passed over.
 */
#ifndef CURATE_LATEX_ENGINE_H
#define CURATE_LATEX_ENGINE_H

#include "curate/html/html_date.h"
#include "curate/latex/latex.h"
#include "curate/latex/latex_out.h"

/* ---- macros ---- */

struct latex_env;
struct latex_arg {
    struct span text;
    const struct latex_env *env; /* what #1 in text means; NULL: nothing */
    bool at;                     /* '@' is a letter in text */
};
struct latex_env {
    int n;
    struct latex_arg arg[];
};

enum latex_kind { LATEX_MACRO, LATEX_BUILTIN, LATEX_CHARACTER, LATEX_ENVIRONMENT, LATEX_THEOREM, LATEX_IF, LATEX_SET_IF };

struct latex_builtin {
    const char *names; /* that do this, with a space between; of environments with '{' before */
    const char *sig;
    uint8_t op;
    uint8_t flags;
};
enum {
    LB_FIXED = 1, /* documents cannot redefine it */
    LB_MATH = 2   /* does something in mathematics too */
};

struct latex_def {
    enum latex_kind kind;
    bool at, value, shown; /* '@' in body; of a LATEX_IF; body has environments or dollars in it */
    uint8_t n;             /* arguments */
    const char *types;     /* of arguments: m, o, s, t (a token), d (delimited); NULL: all m */
    const struct span *given; /* for o: the default; for t: the token; for d: opening and closing */
    struct span pattern;   /* of \def with delimiters, else empty */
    struct span name, body, end; /* end: of an environment; LATEX_THEOREM: body is the heading,
                                    end the counter; LATEX_SET_IF: end is the name of the LATEX_IF */
    const struct latex_builtin *builtin;
};

/* ---- input ---- */

enum {
    LE_FILE = 1,
    LE_HARD = 2,   /* arguments do not reach beyond its end */
    LE_GROUP = 4,  /* at the end: groups down to .groups are closed */
    LE_OUT = 8,    /*   writing goes on to .out */
    LE_BREAK = 16, /*   a paragraph ends */
    LE_LINE = 32,  /*   a line ends */
    LE_DOLLAR = 64, /*  the formula ends */
    LE_AT = 128,   /* '@' is a letter */
    LE_TEXT = 256  /* at the end: .tail is written */
};
struct latex_frame {
    const char *p, *end;
    const struct latex_env *env;
    struct latex_out *out;
    const char *tail;
    uint32_t flags;
    int groups, opens;
};

/* An open group: what its end restores. */
struct latex_group {
    int undo, marks;
    bool tt, brace;
    struct latex_out *out; /* of the marks */
};

/* An open environment. */
struct latex_open {
    struct span name;
    const struct latex_def *def;
    const struct latex_env *env; /* of a document's own, for its end */
    struct latex_out *out;
    int groups, columns, number;
    uint8_t op;
    bool boxed; /* a table inside a row */
};

enum { LATEX_FRAMES = 4096, LATEX_GROUPS = 8192, LATEX_OPENS = 512, LATEX_FILES = 32 };

struct latex_worker {
    struct latex_conf conf;
    const struct latex_files *files;
    struct latex_table *table;
    struct arena kept, args; /* definitions; arguments, until input is in a file again */
    struct latex_frame frame[LATEX_FRAMES];
    int n_frames, n_files;
    int users; /* frames and open environments that hold arguments */
    struct latex_group group[LATEX_GROUPS];
    int n_groups;
    struct latex_open open[LATEX_OPENS];
    int n_opens;
    struct latex_out body, notes, loose, cells, field, nowhere, *out;
    struct buf title, author, date, m, tmp;
    struct html_dates dates;
    struct span title_source, author_source[64], date_source;
    int n_authors, n_notes, n_cites;
    struct span lang;
    int64_t expansions; /* left */
    int64_t work;       /* bytes that may yet be looked at */
    int math, math_braces, math_nest; /* 0, or the kind; open braces; environments in it */
    struct span math_env;  /* the environment that is the formula, or empty */
    bool math_word;     /* a control word was written: a letter needs a space before it */
    int running;        /* depth of latex_run */
    bool tt, at, style, preamble, ended, author_mode, t1;
    struct err *e;
    bool special[256];  /* bytes that end a run of plain text */
    char short_verb;    /* code stands between two of these; 0: there is none */
    struct latex_refs *refs;
};

/* ---- latex_input.c ---- */

int latex_push(struct latex_worker *w, struct latex_arg a, uint32_t flags);
struct latex_frame *latex_top(struct latex_worker *w);
/* Makes the top frame have a byte at p, as far as arguments may reach: false at the end. */
bool latex_more(struct latex_worker *w);
/* Passes over white space and comments, but not an empty line. */
void latex_skip_space(struct latex_worker *w);
/* At '%': passes over the line, its end, and the white space that begins the next. */
void latex_skip_comment(struct latex_frame *f);
/* Reads the name behind a backslash at f->p; leaves p behind it. */
struct span latex_name(struct latex_worker *w, struct latex_frame *f);
/* As latex_name, then passes over the spaces that a control word swallows. */
struct span latex_command_name(struct latex_worker *w, struct latex_frame *f);
/* An argument: a group without its braces, or a token. */
struct latex_arg latex_arg(struct latex_worker *w);
/* An argument in brackets.  False: there is none. */
bool latex_optional(struct latex_worker *w, struct latex_arg *a);
bool latex_delimited(struct latex_worker *w, char open, char close, struct latex_arg *a);
bool latex_star(struct latex_worker *w, char star);
/* Passes over all {..} and [..] that follow directly. */
void latex_drop_arguments(struct latex_worker *w);
/* The text of an argument with parameters put in, in the arena of definitions. */
struct span latex_flat(struct latex_worker *w, struct latex_arg a);
/* As latex_flat, without white space at the ends. */
struct span latex_flat_word(struct latex_worker *w, struct latex_arg a);
extern const struct latex_env latex_no_arguments;
/* Puts the rest of the top frame, an argument or body, and of the body below it into one frame, so
 * that delimiters are found across.  False: it cannot be done. */
bool latex_join(struct latex_worker *w);
/* Reads and drops a dimension or number with what may stand before it. */
void latex_skip_dimension(struct latex_worker *w);
int latex_read_number(struct latex_worker *w, int64_t *v);
/* Takes a character, of as many bytes as it has. */
struct span latex_character(struct latex_frame *f);
/* The end of the group that begins at p (behind its brace); end if there is none. */
const char *latex_group_end(struct latex_worker *w, const char *p, const char *end);
int latex_limit(struct latex_worker *w, const char *what);
struct span latex_trim(struct span s);

/* ---- latex_table.c ---- */

int latex_table_new(struct latex_table **t);
void latex_table_free(struct latex_table *t);
void latex_table_reset(struct latex_table *t);
const struct latex_def *latex_lookup(struct latex_worker *w, struct span name);
/* Of an environment: its name is looked up with '{' before it. */
const struct latex_def *latex_lookup_env(struct latex_worker *w, struct span name);
const struct latex_builtin *latex_builtin_of(const struct latex_def *d);
/* name and what d points to must be in the kept arena or in a file. */
int latex_define(struct latex_worker *w, struct span name, const struct latex_def *d);
int latex_undo(struct latex_worker *w, int to); /* definitions made since */
int latex_undo_mark(struct latex_worker *w);

/* ---- latex_macro.c ---- */

/* Expands a macro whose name has just been read. */
int latex_expand(struct latex_worker *w, const struct latex_def *d);
/* The same of the environment that was opened last. */
int latex_expand_env(struct latex_worker *w, const struct latex_def *d);
/* Runs a command that defines something: op of a builtin. */
int latex_definition(struct latex_worker *w, const struct latex_builtin *b);

/* ---- latex_if.c ---- */

int latex_conditional(struct latex_worker *w, char kind, struct span name, const struct latex_def *d);
/* Passes over the rest of a branch: to its \fi ('f'), or to an \else ('e') or \or ('o') of the
 * same conditional; 0: there is none. */
char latex_skip_branch(struct latex_worker *w, bool to_else);
int latex_choose(struct latex_worker *w, const struct latex_builtin *b); /* \ifthenelse and its like */

/* ---- latex_env.c ---- */

int latex_begin(struct latex_worker *w);
int latex_end(struct latex_worker *w);
int latex_close_to(struct latex_worker *w, int opens);
int latex_item(struct latex_worker *w);
int latex_cell(struct latex_worker *w);
int latex_row(struct latex_worker *w);
int latex_caption(struct latex_worker *w);
/* Code between two delimiters: \verb, \lstinline. */
int latex_verb(struct latex_worker *w, const struct latex_builtin *b);
int latex_verb_text(struct latex_worker *w);
void latex_short_verb(struct latex_worker *w, char c); /* 0: none any more */

/* ---- latex_math.c ---- */

/* kind: 1 inline, 2 display, 3 an environment of several lines. */
int latex_math_begin(struct latex_worker *w, int kind, struct span env);
int latex_math_end(struct latex_worker *w);
int latex_math_step(struct latex_worker *w);

/* ---- latex_text.c: commands, the argument being what the builtin's sig says ---- */

int latex_open_group(struct latex_worker *w, bool brace);
int latex_close_groups(struct latex_worker *w, int to);
int latex_end_frame(struct latex_worker *w);
int latex_par(struct latex_worker *w);
int latex_args(struct latex_worker *w, const char *sig);
int latex_footnote(struct latex_worker *w);
int latex_section(struct latex_worker *w, const struct latex_builtin *b);
int latex_run_in(struct latex_worker *w);
int latex_font(struct latex_worker *w, const struct latex_builtin *b, bool argument);
int latex_put_url(struct latex_worker *w);
int latex_put_character(struct latex_worker *w);
int latex_xspace(struct latex_worker *w);
int latex_csname(struct latex_worker *w, bool argument);
int latex_remember_author(struct latex_worker *w);
void latex_set_language(struct latex_worker *w, struct span s, bool last);
int latex_use_package(struct latex_worker *w, bool class);
int latex_input(struct latex_worker *w, struct span command);
int latex_acronym(struct latex_worker *w, const struct latex_builtin *b);
int latex_abstract(struct latex_worker *w);
int latex_accent(struct latex_worker *w, const char *combining);

/* ---- latex_command.c ---- */

int latex_command(struct latex_worker *w, const struct latex_builtin *b, struct span name);
/* Expands or runs the command whose backslash is at the top frame's p. */
int latex_control(struct latex_worker *w);
int latex_run_definition(struct latex_worker *w, const struct latex_def *d, struct span name);

/* ---- latex.c ---- */

/* Processes input until the frame that is now on top has ended. */
int latex_run(struct latex_worker *w);

/* ---- latex_ref.c ---- */

int latex_refs_new(struct latex_refs **r);
void latex_refs_free(struct latex_refs *r);
void latex_refs_reset(struct latex_refs *r);
/* Steps a counter by n, and makes it what the next \label names. */
int latex_step(struct latex_worker *w, struct span counter, int n);
/* Makes a counter; within: reset by that, if not empty; shared: the same as that. */
int latex_counter(struct latex_worker *w, struct span name, struct span within, struct span shared);
/* A counter as it is printed, until the next call. */
struct span latex_counter_text(struct latex_worker *w, struct span name);
void latex_appendix(struct latex_worker *w);
int latex_label(struct latex_worker *w, struct span label);
/* What the next \label names is called: "Theorem". */
void latex_kind(struct latex_worker *w, struct span kind);
/* Appends a stand-in for a label's number; latex_resolve puts the number there, or named
 * "Theorem 2.1". */
int latex_reference(struct latex_worker *w, struct span label, bool named, struct buf *b);
int latex_resolve(struct latex_worker *w, struct span from, struct buf *to);
/* Appends the number of a key of the bibliography, by first use. */
int latex_citation(struct latex_worker *w, struct span key, struct buf *b);
#endif
