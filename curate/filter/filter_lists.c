#include "curate/filter/filter_lists.h"

#include <stdlib.h>

const char *filter_needs_name(enum filter_needs what)
{
    static const char *const names[N_NEEDS] = {
        [NEEDS_NOTHING] = "nothing",
        [NEEDS_MODEL] = "a model, which is not computed here",
        [NEEDS_URL_DOMAINS] = "--url-domains",
        [NEEDS_URL_BLOCKLIST] = "--url-blocklist",
        [NEEDS_BANNED_WORDS] = "--banned-words",
        [NEEDS_SOFT_WORDS] = "--soft-words",
        [NEEDS_BANNED_SUBWORDS] = "--banned-subwords",
        [NEEDS_BAD_WORDS] = "--bad-words",
        [NEEDS_LICENSES] = "--licenses",
        [NEEDS_LANG] = "--lang",
    };
    return names[what];
}

/* Leaves out what C4 allows, as it stands in too many words of Japanese and Chinese. */
static size_t but_allowed(char *p, size_t n)
{
    static const char *const allowed[] = {"sm", "グロ", "女の子", "性"};
    struct span w = {p, n};

    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (span_is(w, allowed[i]))
            return 0;
    return n;
}

/* CODE:FILE, or a FILE for all languages. */
static int load_bad_words(struct bad_words *b, const char *arg, struct err *e)
{
    size_t n = strspn(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_");
    struct word_set s = {0};
    int rc;

    *b = (struct bad_words){0};
    if (n && arg[n] == ':') {
        b->code = strndup(arg, n);
        if (!b->code)
            return err_set(e, ERR_NOMEM, "no memory for a filter");
        arg += n + 1;
    }
    TRY(word_set_load(&s, arg, but_allowed, e));
    rc = word_trie_build(&b->trie, &s, e);
    word_set_free(&s);
    return rc < 0 ? err_wrap(e, "'%s'", arg) : 0;
}

static int set_language(struct filter_lists *l, const char *code, struct err *e)
{
    l->lang = lang_english();
    l->have[NEEDS_LANG] = code != NULL;
    if (!code)
        return 0;
    l->lang_by_field = strcmp(code, "auto") == 0;
    if (l->lang_by_field)
        return 0;
    l->lang = lang_find(span_of(code));
    if (!l->lang) {
        char known[160] = "";
        for (int i = 0; lang_at(i); i++)
            snprintf(known + strlen(known), sizeof known - strlen(known), " %s", lang_code(lang_at(i)));
        return err_set(e, ERR_ARG, "--lang '%s' is not auto and none of%s", code, known);
    }
    return 0;
}

int filter_lists_open(struct filter_lists *l, const struct filter_conf *c, struct err *e)
{
    const char *const files[N_URL_LISTS] = {c->url_domains, c->url_blocklist, c->banned_words, c->soft_words,
                                            c->banned_subwords};

    *l = (struct filter_lists){.have = {[NEEDS_NOTHING] = true}};
    TRY(set_language(l, c->lang, e));
    for (int i = 0; i < N_URL_LISTS; i++) {
        if (files[i])
            TRY(url_lists_load(&l->urls, (enum url_list)i, files[i], e));
        l->have[NEEDS_URL_DOMAINS + i] = files[i] != NULL;
    }
    if (c->licenses)
        TRY(word_set_load(&l->licenses, c->licenses, filter_license, e));
    l->have[NEEDS_LICENSES] = c->licenses != NULL;
    l->have[NEEDS_BAD_WORDS] = c->bad_words.n > 0;
    l->bad = calloc((size_t)c->bad_words.n + 1, sizeof *l->bad);
    if (!l->bad)
        return err_set(e, ERR_NOMEM, "no memory for a filter");
    while (l->n_bad < c->bad_words.n) {
        l->n_bad++;
        TRY(load_bad_words(&l->bad[l->n_bad - 1], c->bad_words.v[l->n_bad - 1], e));
    }
    return 0;
}

void filter_lists_close(struct filter_lists *l)
{
    for (int i = 0; i < l->n_bad; i++) {
        free(l->bad[i].code);
        word_trie_free(&l->bad[i].trie);
    }
    free(l->bad);
    url_lists_free(&l->urls);
    word_set_free(&l->licenses);
    memset(l, 0, sizeof *l);
}
