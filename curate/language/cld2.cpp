#include "curate/language/cld2.h"

#include <climits>
#include <cstdio>

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

/* libcld2 has the code and tables for 83 languages; libcld2_full has nothing but larger
 * tables under the same names, for 160.  The larger ones count if they come first in the
 * order of linking, and they are linked only if something here asks for one of them. */
namespace CLD2 {
struct CLD2TableSummary;
extern const CLD2TableSummary kQuad_obj;
}
static const void *const volatile cld2_full_tables __attribute__((used)) = &CLD2::kQuad_obj;

extern "C" bool cld2_detect(const char *text, size_t n, struct cld2_result *r)
{
    CLD2::CLDHints hints = {nullptr, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
    CLD2::Language top[3];
    double score[3];
    int percent[3], bytes = 0;
    bool reliable = false;

    try {
        CLD2::ExtDetectLanguageSummary(text, n > INT_MAX / 2 ? INT_MAX / 2 : static_cast<int>(n), true, &hints, 0,
                                       top, percent, score, nullptr, &bytes, &reliable);
    } catch (...) {
        return false;
    }
    r->code = CLD2::LanguageCode(top[0]);
    r->percent = percent[0];
    r->reliable = reliable;
    return true;
}

extern "C" const char *cld2_code(int i)
{
    return i >= 0 && i < CLD2::NUM_LANGUAGES ? CLD2::LanguageCode(static_cast<CLD2::Language>(i)) : nullptr;
}
