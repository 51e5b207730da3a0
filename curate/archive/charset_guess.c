#include "curate/archive/charset_guess.h"

#include <math.h>
#include <stdlib.h>

#include <unicode/uchar.h>
#include <unicode/ucnv.h>

#include "base/utf8.h"

/* Lower-case letters beyond ASCII, the most frequent first. */
static const char *const alphabets[] = {
    "", /* English and its quotation marks; must be first */
    "üäöß", "éèàêçûîôâœùïë", "óíáéñúü", "ãçáéíóêõàâúô", "èàùòìé", "ëéïóöüè", "äåöé",
    "øåæéö", "ðíáþéöóúýæ", "àéèíòóçïúü", "ëç", "áéíóú", "łęążóśćńź", "íáěéčšřžýůúóťďň",
    "áíéčýžšúľťóäôňďŕĺ", "áéöóőíüúű", "ăîţşâ", "ščžćđ", "ėšųžąįūčę",
    "āīēšūņļķžčģ", "äõüöšž", "ıüşçğöâî",
    "đ\u0301\u0300\u0323êáàôưâơă\u0309\u0303óéúùè", "ħżġċàù", "ĝĉŝŭĵĥ", "ŵŷâêôî",
    "οατειηνσρκπυλςμίόάθέγωδήφύχώβξζψϊ",
    "оеаинтсрвлкмдпуяыьгзбчй" "хжшюцщэфъё", /* Russian, Ukrainian, Bulgarian, */
    "оанивтріеклсумдпьязгбчй" "хжїцшюєфщґ",
    "аиоетнрвсдпклзмяъгубчц" "щжйхшфюь",
    "анірцеяксводлуытпмзгчб" "ьўжшхёэйюф", /* Belarusian, Serbian, Macedonian */
    "аоиенрстјувкдмплзгбшч" "цжћљхњђфџ",
    "аоиетнрсвдклпмузгјбшч" "цжќхњљфѓџѕ",
    "יוהלארתבשמםנדכחפעקגצזטןסךףץ",
    "الينموترةبعدكقسفهأحجىشطصخضذإئثغءزظؤآ",
    "ایرندهموتبسشکزلفگخقآعپجحطچصغضظثژئذ",
    "านรอกเงมยลวดทสตะปบคห"
    "แจพชขใไโผซถณธฎศภุูิี่้ัืำ์็",
};
enum { LANGUAGES = sizeof alphabets / sizeof *alphabets, CHARSETS = 24 };

/* In order of what is likelier on the web; prior: the logarithm of how much. */
static const struct {
    const char *label;
    double prior;
} candidates[CHARSETS] = {
    {"windows-1252", 0}, {"windows-1251", -2}, {"windows-1250", -2}, {"iso-8859-2", -4},
    {"windows-1256", -2}, {"windows-1254", -2}, {"windows-1253", -2}, {"windows-1255", -2},
    {"windows-874", -2}, {"windows-1257", -4}, {"koi8-r", -4}, {"iso-8859-7", -4},
    {"iso-8859-15", -6}, {"iso-8859-5", -8}, {"iso-8859-6", -6}, {"iso-8859-8", -6},
    {"koi8-u", -6}, {"windows-1258", -6}, {"iso-8859-13", -8}, {"iso-8859-4", -10},
    {"iso-8859-3", -10}, {"ibm866", -10}, {"macintosh", -8}, {"x-mac-cyrillic", -8},
};

/* Probabilities of what is no letter of the language. */
#define P_MARK 0.004       /* quotation marks, dashes and their like */
#define P_MARK_ENGLISH 0.1 /* the only bytes beyond ASCII that English has */
#define P_QUOTE_ENGLISH 0.4
#define P_OTHER_LETTER 2e-4
#define P_SYMBOL 5e-5
#define P_NOTHING 1e-7
#define UPPER 0.08 /* capitals to small letters */

struct charset_guess {
    const struct charset_entry *entry[CHARSETS];
    float logp[CHARSETS][LANGUAGES][128];
};

static bool is_mark(UChar32 c)
{
    static const char marks[] = "\u00A0«»„“”‘’‚–—…•·§©®°№€£™›‹\u00AD¡¿";
    const char *p = marks, *end = marks + sizeof marks - 1;
    uint32_t m;

    while (p < end) {
        p += utf8_next(p, end, &m);
        if ((UChar32)m == c)
            return true;
    }
    return false;
}

/* The rank of c among the letters, or -1; *n: how many there are. */
static int rank_of(const char *letters, UChar32 c, int *n)
{
    const char *end = letters + strlen(letters);
    int rank = -1;
    uint32_t m;

    for (*n = 0; letters < end; ++*n) {
        letters += utf8_next(letters, end, &m);
        if ((UChar32)m == c && rank < 0)
            rank = *n;
    }
    return rank;
}

/* Letters fall off as one over their rank. */
static double letter_probability(const char *letters, UChar32 c)
{
    double sum = 0, p;
    UChar32 lower = u_tolower(c);
    int n, rank = rank_of(letters, lower, &n);

    if (rank < 0)
        return 0;
    for (int i = 0; i < n; i++)
        sum += 1 / (i + 3.0);
    p = 1 / (rank + 3.0) / sum;
    return lower == c ? p : p * UPPER;
}

static double probability(int language, UChar32 c)
{
    double p = letter_probability(alphabets[language], c);

    if (p > 0)
        return p;
    if (is_mark(c))
        return language ? P_MARK : c == 0x2019 ? P_QUOTE_ENGLISH : P_MARK_ENGLISH;
    if (!u_isdefined(c) || u_iscntrl(c) || c == 0xFFFD)
        return P_NOTHING;
    return u_isalpha(c) ? P_OTHER_LETTER : P_SYMBOL;
}

static bool fill_charset(struct charset_guess *g, int k)
{
    UErrorCode u = U_ZERO_ERROR;
    UConverter *cnv;

    g->entry[k] = charset_entry_of(span_of(candidates[k].label));
    cnv = ucnv_open(g->entry[k]->converter, &u);
    if (U_FAILURE(u))
        return false;
    for (int b = 0; b < 128; b++) {
        char byte = (char)(b + 128);
        UChar c[4] = {0};
        u = U_ZERO_ERROR;
        ucnv_reset(cnv);
        if (ucnv_toUChars(cnv, c, 4, &byte, 1, &u) != 1 || U_FAILURE(u))
            c[0] = 0xFFFD;
        for (int l = 0; l < LANGUAGES; l++)
            g->logp[k][l][b] = (float)log(probability(l, c[0]));
    }
    ucnv_close(cnv);
    return true;
}

struct charset_guess *charset_guess_new(void)
{
    struct charset_guess *g = malloc(sizeof *g);

    for (int k = 0; g && k < CHARSETS; k++)
        if (!fill_charset(g, k)) {
            free(g);
            g = NULL;
        }
    return g;
}

void charset_guess_free(struct charset_guess *g)
{
    free(g);
}

const struct charset_entry *charset_guess(const struct charset_guess *g, struct span text, double *score)
{
    uint32_t count[128] = {0};
    int byte[128] = {0}, n = 0; /* those that occur */
    size_t total = 0;
    double best = -HUGE_VAL;
    int best_k = 0;

    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] & 0x80) {
            count[text.p[i] & 0x7F]++;
            total++;
        }
    for (int b = 0; b < 128; b++)
        if (count[b])
            byte[n++] = b;
    for (int k = 0; k < CHARSETS; k++)
        for (int l = 0; l < LANGUAGES; l++) {
            double sum = candidates[k].prior;
            for (int i = 0; i < n; i++)
                sum += count[byte[i]] * (double)g->logp[k][l][byte[i]];
            if (sum > best) {
                best = sum;
                best_k = k;
            }
        }
    *score = total ? best / (double)total : 0;
    return g->entry[best_k];
}
