/* curate/latex/latex_names.h -- the commands and environments that are known.  Inside latex_*.c only. */
#ifndef CURATE_LATEX_NAMES_H
#define CURATE_LATEX_NAMES_H

#include "curate/latex/latex_engine.h"

/* What a command does; how it reads its sig. */
enum latex_op {
    OP_ARGS,    /* arguments: s star, o [..], p (..), a <..>, m {..}, d dimension: dropped; M, O written;
                   _ space, . line, | paragraph: written there */
    OP_TEXT,    /* writes sig */
    OP_ACCENT,  /* sig: the combining character */
    OP_SPACE, OP_BREAK, OP_PAR,
    OP_CHAR,    /* \char"41 */
    OP_FONT_ARG, OP_FONT, /* sig: b, i, t, or other */
    OP_SECTION, /* sig: the level */
    OP_RUNIN, OP_FOOTNOTE, OP_CAPTION, OP_CITE,
    OP_REF,     /* sig: what stands around the number */
    OP_LABEL, OP_URL, OP_VERB, OP_SHORT_VERB,
    OP_DEFINE,  /* sig: see latex_definition */
    OP_PREFIX, OP_IF, OP_ELSE, OP_FI, OP_CHOOSE, OP_CSNAME, OP_CHOICE, OP_AT,
    OP_BEGIN, OP_END, OP_OPEN, OP_CLOSE,
    OP_INPUT, OP_ENDINPUT, OP_CLASS, OP_PACKAGE, OP_LANGUAGE,
    OP_TITLE, OP_AUTHOR, OP_DATE, OP_AND, OP_DROP_NAME, OP_ABSTRACT, OP_ACRONYM,
    OP_ITEM, OP_MATH, OP_ENSURE, OP_XSPACE, OP_STEP, OP_FINISH,
    OP_E_PLAIN, /* environments; sig: arguments, as of OP_ARGS */
    OP_E_DROP, OP_E_CODE, OP_E_LIST, OP_E_MATH, OP_E_TABLE, OP_E_FIGURE, OP_E_QUOTE, OP_E_ABSTRACT, OP_E_THEOREM,
    OP_E_DOCUMENT, OP_E_TABBING, OP_E_LINES
};

extern const struct latex_builtin latex_builtins[];
extern const size_t latex_n_builtins;

/* The ISO 639 code of babel's name for a language, or NULL. */
const char *latex_language(struct span name);
#endif
