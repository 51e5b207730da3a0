#include "tokenize/normal.h"

#include "base/utf8.h"

/* Form C leaves what is below U+0300, the others ASCII: true if no byte begins a later character. */
static bool is_plain(enum normal_form form, struct span s)
{
    unsigned char limit = form == NORMAL_NFC ? 0xCC : 0x80;
    size_t i = 0;
    unsigned char most = 0;

    for (; i + 64 <= s.n; i += 64) {
        for (size_t j = 0; j < 64; j++) {
            unsigned char c = (unsigned char)s.p[i + j];
            most = c > most ? c : most;
        }
        if (most >= limit)
            return false;
    }
    for (; i < s.n; i++)
        if ((unsigned char)s.p[i] >= limit)
            return false;
    return true;
}

#if HAVE_ICU

#include <pthread.h>
#include <unicode/uchar.h>
#include <unicode/uset.h>
#include <unicode/ustring.h>

#include "base/icu_normal.h"

/* ICU's forms, and those of Unicode 9.0 only; they live as long as the process. */
static struct {
    const UNormalizer2 *now[4], *then[4];
    UErrorCode code;
    /* A bit for each of these characters: form C leaves it, whatever is around it that has the bit too. */
    uint64_t steady[0x20000 / 64];
} forms;

/* Characters that are in form C and do not combine. */
static void find_steady(void)
{
    for (UChar32 cp = 0; cp < (UChar32)sizeof forms.steady * 8; cp++)
        if (u_getIntPropertyValue(cp, UCHAR_NFC_QUICK_CHECK) == UNORM_YES && !u_getCombiningClass(cp))
            forms.steady[cp / 64] |= (uint64_t)1 << cp % 64;
}

/* True if s is well-formed and has nothing but such characters, so that form C leaves it. */
static bool is_steady(struct span s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *end = s.p + s.n;

    pthread_once(&once, find_steady); /* takes longer than many a text */
    for (const char *p = s.p; p < end;) {
        uint32_t cp;
        int n;
        struct span near = {p, end - p < 64 ? (size_t)(end - p) : 64};
        if (is_plain(NORMAL_NFD, near)) { /* ASCII */
            p += near.n;
            continue;
        }
        for (const char *stop = p + near.n; p < stop; p += n) {
            n = utf8_next(p, end, &cp);
            if (cp >= sizeof forms.steady * 8 || !(forms.steady[cp / 64] >> cp % 64 & 1) ||
                (cp == 0xFFFD && (n != 3 || memcmp(p, "\xef\xbf\xbd", 3) != 0)))
                return false;
        }
    }
    return true;
}

static void open_forms(void)
{
    static const UChar pattern[] = u"[:age=9.0:]";
    USet *old = uset_openPattern(pattern, -1, &forms.code);

    forms.now[NORMAL_NFC] = unorm2_getNFCInstance(&forms.code);
    forms.now[NORMAL_NFD] = unorm2_getNFDInstance(&forms.code);
    forms.now[NORMAL_NFKC] = unorm2_getNFKCInstance(&forms.code);
    forms.now[NORMAL_NFKD] = unorm2_getNFKDInstance(&forms.code);
    if (U_FAILURE(forms.code))
        return;
    uset_freeze(old);
    for (int i = 0; i < 4; i++)
        forms.then[i] = unorm2_openFiltered(forms.now[i], old, &forms.code); /* refers to the set */
}

int normal_ready(struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_forms);
    return U_FAILURE(forms.code) ? err_set(e, ERR_UNSUPPORTED, "ICU cannot normalise: %s", u_errorName(forms.code))
                                 : 0;
}

/* Well-formed UTF-8 (repaired before) to a form through UTF-16. */
static int by_icu(enum normal_form form, struct span text, struct buf *b, struct span *out, struct err *e)
{
    UErrorCode code = U_ZERO_ERROR;
    struct buf u16 = {0}, normal = {0};
    int32_t n = 0, m = 0, bytes = 0;
    int rc = 0;

    if (text.n > INT32_MAX / 8)
        return err_set(e, ERR_LIMIT, "a text of %zu bytes is too long to normalise", text.n);
    if (buf_reserve(&u16, (text.n + 1) * sizeof(UChar)) < 0)
        goto nomem;
    u_strFromUTF8((UChar *)(void *)u16.p, (int32_t)text.n + 1, &n, text.p, (int32_t)text.n, &code);
    m = unorm2_spanQuickCheckYes(forms.now[form], (UChar *)(void *)u16.p, n, &code);
    if (U_SUCCESS(code) && m == n) {
        *out = text;
        goto done;
    }
    code = U_ZERO_ERROR;
    for (int64_t room = (int64_t)n * 3 + 1;; room = (int64_t)m + 1) {
        code = U_ZERO_ERROR;
        if (room > INT32_MAX / 4 || buf_reserve(&normal, (size_t)room * sizeof(UChar)) < 0)
            goto nomem;
        m = icu_normalize(forms.then[form], (UChar *)(void *)u16.p, n, (UChar *)(void *)normal.p, (int32_t)room, &code);
        if (code != U_BUFFER_OVERFLOW_ERROR)
            break;
    }
    if (U_SUCCESS(code)) {
        struct buf *to = b;
        struct buf copy = {0};
        if (text.p == b->p) /* the repaired text lies in b */
            to = &copy;
        if (buf_reserve(to, (size_t)m * 3 + 1) < 0)
            goto nomem;
        u_strToUTF8(to->p, m * 3 + 1, &bytes, (UChar *)(void *)normal.p, m, &code);
        to->n = (size_t)bytes;
        if (to == &copy) {
            buf_free(b);
            *b = copy;
        }
        *out = buf_span(b);
    }
    if (U_FAILURE(code))
        rc = err_set(e, ERR_FORMAT, "ICU cannot normalise a text: %s", u_errorName(code));
    goto done;
nomem:
    rc = err_set(e, ERR_NOMEM, "out of memory for a text");
done:
    buf_free(&u16);
    buf_free(&normal);
    return rc;
}

int normal_form(enum normal_form form, struct span text, struct buf *b, struct span *out, struct err *e)
{
    *out = text;
    if (is_plain(form, text))
        return 0;
    TRY(normal_ready(e));
    if (form == NORMAL_NFC && is_steady(text))
        return 0;
    if (!utf8_valid(text)) {
        buf_clear(b);
        if (utf8_repair(text, b) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for a text");
        text = *out = buf_span(b);
    }
    return by_icu(form, text, b, out, e);
}

size_t normal_extends(uint32_t cp, const char *p, const char *end)
{
    int32_t before = u_getIntPropertyValue((UChar32)cp, UCHAR_GRAPHEME_CLUSTER_BREAK);
    size_t n = 0;

    while (p + n < end && before != U_GCB_CONTROL && before != U_GCB_CR && before != U_GCB_LF) {
        uint32_t next;
        size_t k = (size_t)utf8_next(p + n, end, &next);
        int32_t x = u_getIntPropertyValue((UChar32)next, UCHAR_GRAPHEME_CLUSTER_BREAK);
        bool joins = x == U_GCB_EXTEND || x == U_GCB_ZWJ || x == U_GCB_SPACING_MARK ||
                     (before == U_GCB_PREPEND && x != U_GCB_CONTROL && x != U_GCB_CR && x != U_GCB_LF);
        if (!joins)
            break;
        before = x;
        n += k;
    }
    return n;
}

#else

size_t normal_extends(uint32_t cp, const char *p, const char *end)
{
    (void)cp, (void)p, (void)end;
    return 0;
}

int normal_ready(struct err *e)
{
    return err_set(e, ERR_UNSUPPORTED, "the normalizer needs ICU, which this build does without");
}

int normal_form(enum normal_form form, struct span text, struct buf *b, struct span *out, struct err *e)
{
    (void)b;
    *out = text;
    return is_plain(form, text) ? 0 : normal_ready(e);
}

#endif
