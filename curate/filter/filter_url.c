/* The rules on URLs of datatrove 0.10 (url_filter.py), with lists from files. */
#include "curate/filter/filter_preset.h"

struct url {
    unsigned have;
    struct span text;
    struct url_host host;
};

static const struct url *see(struct filter_text *t)
{
    struct url *u = t->own;

    if (filter_first(&u->have, 1)) {
        u->text = filter_field(t, "url");
        if (!u->text.n && t->rc == 0)
            filter_fail(t, err_set(t->err, ERR_FORMAT, "no url"), "a url");
        url_host(u->text, &u->host);
    }
    return u;
}

static double domain(struct filter_text *t, int whole)
{
    const struct url *u = see(t);

    return word_set_has(&t->lists->urls.domains, whole ? u->host.name : u->host.registered);
}

static double listed(struct filter_text *t, int arg)
{
    (void)arg;
    return word_set_has(&t->lists->urls.urls, see(t)->text);
}

static double words(struct filter_text *t, int soft)
{
    const struct url_lists *l = &t->lists->urls;

    return (double)url_count_words(soft ? &l->soft_words : &l->words, see(t)->text);
}

static double subword(struct filter_text *t, int arg)
{
    (void)arg;
    return url_has_subword(&t->lists->urls.subwords, see(t)->text);
}

static const struct rule rules[] = {
    {RULE("domain", domain, 0, RULE_ABOVE, 0, "1 if the registered domain is listed"), .needs = NEEDS_URL_DOMAINS},
    {RULE("subdomain", domain, 1, RULE_ABOVE, 0, "1 if the host is listed"), .needs = NEEDS_URL_DOMAINS},
    {RULE("url", listed, 0, RULE_ABOVE, 0, "1 if the URL is listed"), .needs = NEEDS_URL_BLOCKLIST, .key = "url_listed"},
    {RULE("hard_blacklisted", words, 0, RULE_ABOVE, 0, "words of the URL that are listed"), .needs = NEEDS_BANNED_WORDS},
    {RULE("soft_blacklisted", words, 1, RULE_REACHES, 2,
          "different words of the URL that are listed"), .needs = NEEDS_SOFT_WORDS},
    {RULE("blacklisted_subword", subword, 0, RULE_ABOVE, 0,
          "1 if a listed word stands in the URL"), .needs = NEEDS_BANNED_SUBWORDS},
    {0},
};

const struct preset filter_url = {
    .name = "url",
    .source = "datatrove 0.10 URLFilter; Penedo et al. 2023",
    .rules = rules,
    .size = sizeof(struct url),
};
