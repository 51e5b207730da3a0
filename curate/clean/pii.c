#include "curate/clean/pii.h"

#include "curate/clean/pii_scan.h"

const char *const pii_names[PII_KINDS] = {"email", "ip", "ipv6", "phone", "card", "iban"};
static const char *const labels[PII_KINDS] = {"EMAIL_ADDRESS", "IP_ADDRESS", "IP_ADDRESS",
                                              "PHONE_NUMBER",  "CREDIT_CARD", "IBAN_CODE"};
enum { ALL = (1 << PII_KINDS) - 1, EMAIL = 1 << PII_EMAIL, NUMBERS = ALL & ~EMAIL };

/* datatrove's, in its order. */
static const char *const emails[] = {"email@example.com", "firstname.lastname@example.org"};
static const char *const ips[] = {"22.214.171.124", "126.96.36.199", "188.8.131.52",
                                  "184.108.40.206", "220.127.116.11", "18.104.22.168"};

/* ---- what to replace, and with what ---- */

static int add_kinds(struct pii *p, const char *names, struct err *e)
{
    while (*names) {
        size_t n = strcspn(names, ",");
        struct span name = {names, n};
        unsigned bits = span_is(name, "all") ? ALL : 0;

        for (int k = 0; k < PII_KINDS; k++)
            if (span_is(name, pii_names[k]))
                bits |= 1u << k;
        if (!bits)
            return err_set(e, ERR_ARG, "no kind of personal data is called '%.*s': there are email, ip, ipv6, "
                           "phone, card, iban, all", (int)(n < 40 ? n : 40), names);
        p->kinds |= bits;
        names += n + (names[n] == ',');
    }
    return 0;
}

static int make_tag(struct pii *p, int kind, const char *form, struct err *e)
{
    const char *at = strstr(form, "KIND");
    size_t before = at ? (size_t)(at - form) : strlen(form), n = strlen(labels[kind]);
    const char *behind = at ? at + 4 : form + before;

    if (!at)
        n = 0;
    if (before + n + strlen(behind) >= PII_TAG_MAX)
        return err_set(e, ERR_ARG, "a tag for personal data of more than %d bytes", PII_TAG_MAX - 20);
    memcpy(p->tag[kind], form, before);
    memcpy(p->tag[kind] + before, labels[kind], n);
    memcpy(p->tag[kind] + before + n, behind, strlen(behind) + 1);
    return 0;
}

int pii_init(struct pii *p, const struct pii_conf *conf, struct err *e)
{
    const char *form = conf->tag ? conf->tag : PII_TAG;

    memset(p, 0, sizeof *p);
    if (conf->kinds)
        TRY(add_kinds(p, conf->kinds, e));
    p->datatrove = conf->preset == PII_PRESET_DATATROVE;
    if (p->datatrove && conf->kinds && strcmp(conf->kinds, "all") == 0)
        p->kinds &= ~(EMAIL | 1u << PII_IP);
    if (p->datatrove && (p->kinds & (EMAIL | 1u << PII_IP)))
        return err_set(e, ERR_ARG, "the preset datatrove replaces e-mail and IP addresses itself");
    if (strchr(form, '@') || strpbrk(form, "0123456789"))
        return err_set(e, ERR_ARG, "the tag '%s' could itself be taken for personal data", form);
    for (int k = 0; k < PII_KINDS; k++)
        TRY(make_tag(p, k, form, e));
    return 0;
}

/* ---- replacing ---- */

/* Replaces what next finds: by the tag of its kind, or by the n replacements in turn. */
static int replace(const struct pii *p, pii_next *next, const char *const *in_turn, size_t n, struct span *s,
                   struct buf *out, uint64_t count[PII_KINDS])
{
    struct pii_match m;
    size_t done = 0, turn = 0;

    while (next(p->kinds, *s, done, &m)) {
        if (!done)
            buf_clear(out);
        TRY(buf_put(out, s->p + done, m.start - done));
        TRY(buf_puts(out, n ? in_turn[turn++ % n] : p->tag[m.kind]));
        count[m.kind]++;
        done = m.end;
    }
    if (!done)
        return 0;
    TRY(buf_put(out, s->p + done, s->n - done));
    *s = buf_span(out);
    return 0;
}

int pii_replace(const struct pii *p, struct buf *a, struct buf *b, struct span text, struct span *out,
                uint64_t count[PII_KINDS])
{
    *out = text;
    if (p->datatrove) {
        TRY(replace(p, pii_next_email_datatrove, emails, sizeof emails / sizeof *emails, out, a, count));
        TRY(replace(p, pii_next_ip_datatrove, ips, sizeof ips / sizeof *ips, out, b, count));
        if (p->kinds & NUMBERS)
            TRY(replace(p, pii_next_number, NULL, 0, out, out->p == a->p ? b : a, count));
        return 0;
    }
    if (p->kinds & EMAIL)
        TRY(replace(p, pii_next_email, NULL, 0, out, a, count));
    if (p->kinds & NUMBERS)
        TRY(replace(p, pii_next_number, NULL, 0, out, b, count));
    return 0;
}
