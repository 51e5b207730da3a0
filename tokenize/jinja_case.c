/* Upper and lower case: ASCII here, all else by ICU. */
#include "base/ascii.h"
#include "tokenize/jinja_parts.h"

#if HAVE_ICU

#include <unicode/uchar.h>
#include <unicode/ustring.h>

/* Through UTF-16, of which an upper or lower text has at most three times the units. */
static int change_any(struct jinja_run *r, struct span s, enum jinja_case how, struct jinja_value *out)
{
    struct buf wide = {.max = 8 * (size_t)JINJA_TEXT}, text = {.max = JINJA_TEXT};
    int32_t n = 0, m = 0, size = 0, bytes = 0;
    UErrorCode status = U_ZERO_ERROR;
    size_t units = s.n + 1;
    UChar *a, *b, *c;

    if (s.n > INT32_MAX / 32 || buf_reserve(&wide, 7 * units * sizeof *a) < 0 || buf_reserve(&text, 9 * units) < 0) {
        buf_free(&wide);
        buf_free(&text);
        return jinja_no_memory(r);
    }
    a = (UChar *)(void *)wide.p;
    b = a + units;
    c = b + 3 * units;
    u_strFromUTF8(a, (int32_t)units, &n, s.p, (int32_t)s.n, &status);
    if (how == JINJA_UPPER) {
        size = u_strToUpper(c, (int32_t)(3 * units), a, n, "", &status);
    } else {
        m = u_strToLower(b, (int32_t)(3 * units), a, n, "", &status);
        for (int32_t i = 0; i < m; i++)
            if (how != JINJA_LOWER &&
                (i == 0 || (how == JINJA_TITLE && (u_isUWhiteSpace(b[i - 1]) || u_strchr(u"-([{<", b[i - 1])))))
                size += u_strToUpper(c + size, (int32_t)(3 * units) - size, b + i, 1, "", &status);
            else
                c[size++] = b[i];
    }
    u_strToUTF8(text.p, (int32_t)(9 * units), &bytes, c, size, &status);
    text.n = U_SUCCESS(status) ? (size_t)bytes : 0;
    buf_free(&wide);
    if (U_FAILURE(status)) {
        buf_free(&text);
        return jinja_error(r, 0, "a text whose case cannot be changed");
    }
    return jinja_take(r, &text, out);
}

#else

static int change_any(struct jinja_run *r, struct span s, enum jinja_case how, struct jinja_value *out)
{
    (void)s, (void)how, (void)out;
    return jinja_error(r, 0, "the case of a text beyond ASCII needs ICU, which this build does without");
}

#endif

/* Of a title the words begin behind white space, which is Python's, and -([{<, as Jinja's do. */
int jinja_change_case(struct jinja_run *r, struct span s, enum jinja_case how, struct jinja_value *out)
{
    struct buf text = {.max = JINJA_TEXT};
    char last = ' ';

    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] >= 0x80)
            return change_any(r, s, how, out);
    for (size_t i = 0; i < s.n; i++) {
        bool begins = i == 0 || (how == JINJA_TITLE && last && strchr("\t\n\v\f\r\x1c\x1d\x1e\x1f -([{<", last));
        bool upper = how == JINJA_UPPER || (how != JINJA_LOWER && begins);

        last = s.p[i];
        if (upper ? ascii_is_lower((unsigned char)last) : ascii_is_upper((unsigned char)last))
            buf_putc(&text, last ^ 0x20);
        else
            buf_putc(&text, last);
    }
    return jinja_take(r, &text, out);
}
