/* curate/filter/filter_preset.h -- what a preset is: a table of rules and what computes them.
 *
 * Inside the filter only.  A preset lives in a file of its own, filter_NAME.c, and is
 * entered in the list in filter.c.  Adding one needs nothing else, nor does a rule but its row: what
 * `quern why` and `quern report` say of it stands there too.
 */
#ifndef CURATE_FILTER_PRESET_H
#define CURATE_FILTER_PRESET_H

#include <math.h>

#include "curate/filter/filter_lists.h"
#include "curate/filter/filter_text.h"

/* What a rule does where it holds.  DROP: the document goes.  ANNOTATE: its signal is
 * written into the document, which stays.  STRIP: the line goes (rules on lines). */
enum filter_action { ACTION_DROP, ACTION_ANNOTATE, ACTION_STRIP };

/* A rule as configured. */
struct setting {
    double threshold; /* NAN: the rule is off */
    enum filter_action action;
    bool given; /* the configuration names the threshold */
    bool absent; /* what it needs is not there: it has no signal either */
};
#define RULE_OFF NAN

/* A rule's signal for the text t; arg is the rule's own (the n of n-grams).  NAN: it has
 * no value, and no rule drops for it.  A failure is left in t->rc (filter_fail). */
typedef double filter_signal(struct filter_text *t, int arg);

enum rule_kind {
    RULE_ABOVE,  /* drops if the signal is above the threshold */
    RULE_BELOW,  /* drops if it is below */
    RULE_REACHES, /* drops if it is the threshold or above */
    RULE_SETTING, /* drops nothing: a number that other rules use */
    RULE_SIGNAL   /* drops nothing: a signal alone, written when it is asked for */
};

struct rule {
    const char *name;
    filter_signal *signal; /* NULL: a setting */
    int arg;
    enum rule_kind kind;
    double threshold;
    /* It judges line by line: the preset itself looks at the setting, and the signal is the
     * number of lines.  action is what it does when nothing is configured. */
    bool lines;
    enum filter_action action;
    bool off; /* unless it is configured */
    const char *key; /* among the signals; NULL: the name.  That of the rule before: both
                        look at one signal, which is written once */
    enum filter_needs needs;
    /* The threshold where none is given, if it follows the document; NULL: it is fixed. */
    double (*limit)(struct filter_text *t, int arg);
    /* What the signal is, for a person who asks why a document went: "share of words with a letter".  NULL: what
     * the rule of this name in another preset says, which is asked in this one's place. */
    const char *words;
    /* Writes the signal as JSON where it is more than a number.  Errors of buf_put, or t->rc. */
    int (*put)(struct filter_text *t, int arg, struct buf *json);
};

#define RULE(name_, signal_, arg_, kind_, threshold_, words_) \
    .name = name_, .signal = signal_, .arg = arg_, .kind = kind_, .threshold = threshold_, .words = words_

/* Most rules that a preset may have. */
enum { MAX_RULES = 64 };

struct preset {
    const char *name, *source;
    const struct rule *rules; /* ends with a name of NULL; asked in this order */
    /* Its own state, one a thread, at t->own while the preset is asked.  Begins with
     * `unsigned have`, which is 0 for each new text (filter_first); all else starts as
     * zeroes and is kept.  Size 0: none. */
    size_t size;
    bool rounded; /* thresholds are held against signals of five decimal places */
    void (*free)(void *own); /* what the state holds, not the state; may be NULL */
    /* The text that the preset wants to see in place of the document's, before any rule.
     * NULL: as it is. */
    struct span (*prepared)(struct filter_text *t);
    /* The text that is left, for what follows; valid until t looks at another text.
     * NULL: the preset changes nothing. */
    struct span (*rewritten)(struct filter_text *t);
};

extern const struct preset filter_gopher_quality, filter_gopher_repetition, filter_c4, filter_fineweb,
    filter_nemo, filter_dolma, filter_dclm, filter_rpv2, filter_fineweb2, filter_url, filter_c4_badwords, filter_rights;
#endif
