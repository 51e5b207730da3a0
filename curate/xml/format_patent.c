/* Patents of the USPTO: grants and applications in Red Book XML (v4), PAP (2001 to 2004) and ST.32 (grants of 2001 to 2004).
 * Text is the title, the abstract, the description and the claims.
 *
 * Source: uspto.gov, Patent Grant and Application Full Text Data/XML, with their DTDs. */
#include "curate/xml/xml_text.h"

static const struct xml_rule rules[] = {
    {.name = "us-patent-grant", .role = XML_META_ATTR, .unless = "lang", .arg = XML_LANG},
    {.name = "us-patent-application", .role = XML_META_ATTR, .unless = "lang", .arg = XML_LANG},
    /* v4 */
    {.name = "us-bibliographic-data-grant", .role = XML_HIDE},
    {.name = "us-bibliographic-data-application", .role = XML_HIDE},
    {.name = "publication-reference"}, {.name = "document-id", .in = "publication-reference"},
    {.name = "country", .in = "document-id", .role = XML_TAG},
    {.name = "application-reference", .role = XML_SKIP}, {.name = "us-references-cited", .role = XML_SKIP},
    {.name = "references-cited", .role = XML_SKIP}, {.name = "priority-claims", .role = XML_SKIP},
    {.name = "us-related-documents", .role = XML_SKIP}, {.name = "related-documents", .role = XML_SKIP},
    {.name = "pct-or-regional-filing-data", .role = XML_SKIP}, {.name = "pct-or-regional-publishing-data", .role = XML_SKIP},
    {.name = "doc-number", .in = "document-id", .role = XML_META, .arg = XML_ID},
    {.name = "date", .in = "document-id", .role = XML_META, .arg = XML_DATE},
    {.name = "invention-title", .role = XML_META, .tag = "h1", .arg = XML_TITLE},
    {.name = "inventor", .role = XML_PERSON}, {.name = "us-applicants", .role = XML_TAG, .unless = "inventors"},
    {.name = "applicant", .role = XML_PERSON}, {.name = "us-applicant", .role = XML_PERSON, .unless = "inventors"},
    {.name = "agents", .role = XML_SKIP}, {.name = "assignees", .role = XML_HIDE}, {.name = "examiners", .role = XML_SKIP},
    {.name = "orgname", .in = "addressbook", .role = XML_META, .arg = XML_PUBLISHER},
    {.name = "last-name", .role = XML_META, .arg = XML_FAMILY}, {.name = "first-name", .role = XML_META, .arg = XML_GIVEN},
    {.name = "drawings", .role = XML_SKIP}, {.name = "abstract", .role = XML_SHOW, .tag = "div"},
    {.name = "heading", .tag = "h2"}, {.name = "p", .tag = "p"}, {.name = "description", .tag = "div"},
    {.name = "claims", .tag = "div"},
    {.name = "us-claim-statement", .tag = "p"}, {.name = "claim", .tag = "p"}, {.name = "claim-text", .tag = "div"},
    {.name = "ul", .tag = "ul"}, {.name = "ol", .tag = "ol"}, {.name = "li", .tag = "li"}, {.name = "dl", .tag = "dl"},
    {.name = "table", .tag = "table"}, {.name = "title", .in = "table", .tag = "caption"}, {.name = "thead", .tag = "thead"},
    {.name = "tbody", .tag = "tbody"}, {.name = "row", .tag = "tr"}, {.name = "entry", .tag = "td"},
    {.name = "b", .tag = "b"}, {.name = "i", .tag = "i"}, {.name = "sub", .tag = "sub"}, {.name = "sup", .tag = "sup"},
    {.name = "sub2", .tag = "sub"}, {.name = "sup2", .tag = "sup"}, {.name = "br", .role = XML_VOID, .tag = "br"},
    {.name = "math", .role = XML_MATH}, {.name = "in-line-formulae", .role = XML_SPACE},
    /* PAP */
    {.name = "subdoc-bibliographic-information", .role = XML_HIDE},
    {.name = "title-of-invention", .role = XML_META, .tag = "h1", .arg = XML_TITLE},
    {.name = "document-date", .in = "document-id", .role = XML_META, .arg = XML_DATE},
    {.name = "given-name", .role = XML_META, .arg = XML_GIVEN}, {.name = "family-name", .role = XML_META, .arg = XML_FAMILY},
    {.name = "first-named-inventor", .role = XML_PERSON}, {.name = "correspondence-address", .role = XML_SKIP},
    {.name = "domestic-filing-data", .role = XML_SKIP}, {.name = "continuity-data", .role = XML_SKIP},
    {.name = "subdoc-abstract", .role = XML_TAG, .tag = "div"}, {.name = "paragraph", .tag = "p"},
    {.name = "section", .role = XML_SECTION},
    {.name = "subdoc-drawings", .role = XML_SKIP}, {.name = "number", .in = "paragraph", .role = XML_SKIP},
    {.name = "bold", .tag = "b"}, {.name = "italic", .tag = "i"}, {.name = "image", .role = XML_SKIP},
    /* ST.32 */
    {.name = "SDOBI", .role = XML_HIDE}, {.name = "SDODR", .role = XML_SKIP},
    {.name = "B110", .role = XML_META, .arg = XML_ID}, {.name = "B140", .role = XML_META, .arg = XML_DATE},
    {.name = "B540", .role = XML_META, .tag = "h1", .arg = XML_TITLE}, {.name = "B721", .role = XML_PERSON},
    {.name = "FNM", .in = "NAM", .role = XML_META, .arg = XML_GIVEN},
    {.name = "SNM", .in = "NAM", .role = XML_META, .arg = XML_FAMILY},
    {.name = "B740", .role = XML_SKIP}, {.name = "B745", .role = XML_SKIP}, {.name = "B746", .role = XML_SKIP},
    {.name = "B747", .role = XML_SKIP}, {.name = "B748US", .role = XML_SKIP}, {.name = "B560", .role = XML_SKIP},
    {.name = "B500", .role = XML_TAG}, {.name = "B200", .role = XML_SKIP}, {.name = "B730", .role = XML_SKIP},
    {.name = "PARA", .tag = "p"}, {.name = "H", .tag = "h2"}, {.name = "CLM", .tag = "p"}, {.name = "CLMSTEP", .tag = "div"},
    {.name = "BOLD", .tag = "b"}, {.name = "ITALIC", .tag = "i"}, {.name = "SB", .tag = "sub"}, {.name = "SP", .tag = "sup"},
    {.name = "EMI", .role = XML_SKIP},
    {0},
};

const struct xml_format xml_patent = {.name = "patent", .rules = rules};
