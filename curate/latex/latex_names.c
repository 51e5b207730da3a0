/* Names that do the same stand together; environments have a brace before them.  Sources: the
 * manuals of LaTeX and of the packages. */
#include "curate/latex/latex_names.h"

#define LB_BOTH (LB_FIXED | LB_MATH)
#define T(names, text) {names, text, OP_TEXT, 0}

const struct latex_builtin latex_builtins[] = {
    {"newcommand renewcommand DeclareRobustCommand newrobustcmd renewrobustcmd", "c", OP_DEFINE, LB_BOTH},
    {"NewDocumentCommand RenewDocumentCommand DeclareDocumentCommand ProvideDocumentCommand "
     "NewExpandableDocumentCommand", "x", OP_DEFINE, LB_BOTH},
    {"def gdef edef xdef", "d", OP_DEFINE, LB_BOTH},
    {"NewDocumentEnvironment RenewDocumentEnvironment DeclareDocumentEnvironment", "ex", OP_DEFINE, LB_BOTH},
    {"newtheorem newmdtheoremenv spnewtheorem", "t", OP_DEFINE, LB_BOTH},
    {"long global outer protected expandafter noexpand unexpanded relax protect immediate ignorespaces unskip "
     "leavevmode null", "", OP_PREFIX, LB_BOTH},
    {"iftrue ifpdf ifPDFTeX ifpdftex", "t", OP_IF, LB_BOTH},
    {"iffalse ifinner ifxetex ifluatex ifXeTeX ifLuaTeX ifvtex iftutex ifvmode", "f", OP_IF, LB_BOTH},
    {"ifeof ifvoid ifhbox ifvbox", "r", OP_IF, LB_BOTH}, {"ifcat if ifx", "x", OP_IF, LB_BOTH},
    {"iftoggle ifbool @ifpackageloaded @ifclassloaded IfFileExists", "f", OP_CHOOSE, LB_BOTH},
    {"input include subfile subfileinclude import subimport InputIfFileExists loadglsentries", "", OP_INPUT, LB_BOTH},
    {"documentclass documentstyle LoadClass", "", OP_CLASS, LB_FIXED},
    {"selectlanguage setmainlanguage setdefaultlanguage", "", OP_LANGUAGE, LB_FIXED},
    {"name IEEEcompsocitemizethanks IEEEraisesectionheading IEEEcompsoctitleabstractindextext "
     "IEEEtitleabstractindextext fnum emphasize", "M", OP_ARGS, 0},
    {"and AND And", "", OP_AND, 0},
    {"color pagecolor bibitem cmidrule includepdf todo missingfigure lstinputlisting email ead fnmark address affiliation affil "
     "institute thanks tnotetext tnotemark orcid authornote authornotemark corref fnref urladdr curraddr "
     "dedicatory subjclass addbibresource ExecuteBibliographyOptions bibliography glsadd institution inst "
     "altaffiliation homepage collaboration altaffilmark altaffiltext authorrunning shortauthors shorttitle "
     "offprints mail icmlaffiliation icmlcorrespondingauthor affaddr numberofauthors conferenceinfo pubyear "
     "acmDOI copyrightyear acmYear acmConference acmISBN acmPrice acmJournal acmVolume acmNumber acmArticle "
     "acmMonth ccsdesc setcopyright received history pagerange journal volume pubmed lhead chead rhead lfoot "
     "cfoot rfoot fancyhead fancyfoot fancyhf pagestyle thispagestyle pagenumbering markright hypersetup geometry "
     "graphicspath DeclareGraphicsExtensions tikzset pgfplotsset sisetup captionsetup setlist theoremstyle "
     "bibliographystyle citestyle setcitestyle bibpunct newcounter hyphenation index glossary vphantom hphantom "
     "phantom special write16 typeout message errmessage includeonly nofiles linespread Needspace needspace "
     "stretch enlargethispage pdfinfo bookmark newlength newsavebox usebox AtBeginDocument AtEndDocument "
     "ProvidesPackage ProvidesClass ProvidesFile NeedsTeXFormat DeclareOption ExecuteOptions newfont cline "
     "theoremsymbol theorembodyfont theoremheaderfont shorthandoff shorthandon raisetag epsfbox epsffile psfig "
     "epsfig includegraphics includesvg plotone", "om", OP_ARGS, 0},
    {"part chapter addchap", "1", OP_SECTION, LB_FIXED}, {"section addsec beginsection", "2", OP_SECTION, LB_FIXED},
    {"paragraph subparagraph minisec", "", OP_RUNIN, LB_FIXED},
    {"footnote footnotetext blfootnote sidenote marginnote tablefootnote", "", OP_FOOTNOTE, LB_FIXED},
    {"caption subcaption bicaption subcaptionbox topcaption", "", OP_CAPTION, LB_FIXED},
    {"subfloat subfigure subtable", "o", OP_CAPTION, LB_FIXED},
    {"cite citep citet citealt citealp Cite Citep Citet parencite textcite autocite Parencite Textcite Autocite "
     "footcite supercite smartcite fullcite citeonline citen citenum onlinecite shortcite citeN citeNP citeA "
     "fullciteref parencites textcites cites autocites", "", OP_CITE, LB_BOTH},
    {"citeauthor citeyear citeyearpar citetitle citefullauthor Citeauthor citedate citeurl", "-", OP_CITE, LB_BOTH},
    {"ref vref labelcref sref fullref zref", "", OP_REF, LB_BOTH},
    {"cref Cref autoref zcref", "N", OP_REF, LB_BOTH}, {"nameref", "-", OP_REF, LB_BOTH},
    {"pageref vpageref cpageref Cpageref", "-", OP_REF, LB_BOTH},
    {"url path nolinkurl burl doi", "", OP_URL, LB_FIXED}, {"verb lstinline Verb", "o", OP_VERB, LB_FIXED},
    {"newacronym newabbreviation acrodef acro newacro DeclareAcronym", "d", OP_ACRONYM, LB_FIXED},
    {"gls glspl Gls Glspl GLS acrshort acs ac acp Ac Acp acfp acsp", "s", OP_ACRONYM, 0},
    {"acrfull acf acrlong acl glsdesc", "l", OP_ACRONYM, 0},
    {", ; : > space quad qquad enspace enskip thinspace nobreakspace thickspace medspace hfill hfil hss dotfill "
     "hrulefill", "", OP_SPACE, 0},
    {"! - / * + < maketitle tableofcontents listoffigures listoftables listofalgorithms printindex frontmatter "
     "mainmatter backmatter hline onecolumn makeindex makeglossary maketitlepage today qed qedhere qedsymbol "
     "nobreak allowbreak filbreak strut singlespacing doublespacing onehalfspacing raggedbottom flushbottom "
     "balance flushcolumns newblock ignorespacesafterend FloatBarrier thefootnote makebibliography linenumbers "
     "nolinenumbers pause peerreview IEEEpeerreviewmaketitle IEEEdisplaynontitleabstractindextext "
     "IEEEoverridecommandlockouts hrule vrule endfirsthead endhead endfoot endlastfoot firsthline lasthline "
     "dotsline obeylines obeyspaces hfilneg newtoks newbox newcount newdimen newskip newread newwrite "
     "phantomsection thepage printacknowledgments printglossaries printglossary bfdefault", "", OP_ARGS, 0},
    {"newline cr crcr tabularnewline", "1", OP_BREAK, LB_FIXED},
    {"linebreak nolinebreak pagebreak nopagebreak twocolumn printbibliography toprule midrule bottomrule "
     "displaybreak listoftodos printacronyms addlinespace morecmidrules HRule", "o", OP_ARGS, 0},
    {"par endgraf bigskip medskip smallskip newpage clearpage cleardoublepage eject vfill vfil goodbreak bigbreak "
     "medbreak smallbreak", "", OP_PAR, 0},
    {"textbf bold strong", "b", OP_FONT_ARG, 0}, {"emph textit textsl", "i", OP_FONT_ARG, 0},
    {"textrm textsf textsc textup textmd textnormal text textsuperscript textsubscript mbox fbox hbox vbox vtop "
     "vcenter underline uline MakeUppercase MakeLowercase uppercase lowercase centerline leftline rightline line "
     "llap rlap mathrm mathbf mathit mathsf mathtt mathcal alert structure so hl ul sout uwave textlf textln "
     "makecell thead shortstack textinit smaller larger textgreek foreignword", "n", OP_FONT_ARG, 0},
    {"it itshape em sl slshape", "i", OP_FONT, 0},
    {"rm sf sc rmfamily sffamily scshape upshape mdseries normalfont tiny scriptsize footnotesize small "
     "normalsize large Large LARGE huge Huge boldmath unboldmath centering raggedright raggedleft RaggedRight "
     "sloppy fussy frenchspacing nonfrenchspacing noindent indent", "n", OP_FONT, 0},
    {"setlength addtolength settowidth settoheight setcounter addtocounter newcolumntype counterwithout "
     "PassOptionsToPackage PackageWarning PackageError plottwo lstdefinestyle fontsize setkeys newglossaryentry "
     "DeclareMathSizes SetKwInput SetKwData SetKwFunction SetKw SetKwInOut AddToShortcode DeclareUnicodeCharacter "
     "newcites crefalias markboth whiledo addtocontents AtBeginEnvironment AtEndEnvironment "
     "BeforeBeginEnvironment AfterEndEnvironment crefformat crefrangeformat setbeamertemplate setbeamercolor "
     "setbeamerfont colorlet LetLtxMacro", "mm", OP_ARGS, 0},
    {"titlerunning newtoggle toggletrue togglefalse setbool booltrue boolfalse setstretch pgfplotstableread "
     "usetikzlibrary usepgfplotslibrary usetheme usecolortheme usefonttheme useinnertheme useoutertheme "
     "extracolsep noalign selectcolormodel everymath everydisplay write lstset fntext cortext bibdata bibstyle "
     "newglossary makenoidxglossaries fontfamily fontseries fontshape fontencoding keepXColumns IEEEauthorblockA "
     "authorblockA roman Roman alph Alph", "m", OP_ARGS, 0},
    {"definecolor addcontentsline crefname Crefname DeclareCaptionFormat contentsline providecolor apptocmd "
     "pretocmd", "mmm", OP_ARGS, 0},
    {"DeclareSymbolFont DeclareMathSymbol DeclareMathAccent patchcmd", "mmmm", OP_ARGS, 0},
    {"textcolor colorbox href scalebox rotatebox parbox", "omM", OP_ARGS, 0},
    {"foreignlanguage hyperlink hypertarget", "mM", OP_ARGS, 0},
    {"hyperref enquote marginpar MakeTextUppercase IEEEauthorblockN textquote authorblockN num ang si unit",
     "oM", OP_ARGS, 0},
    {"keywords kwd pacs PACS icmlkeywords subtitle acks dedicate terms blockquote tablecomments figurenote jel "
     "msc", "|M|", OP_ARGS, 0},
    {"only onslide uncover visible invisible temporal", "aM", OP_ARGS, 0},
    {"vskip hskip kern lower raise moveleft moveright hsize vsize parindent parskip baselineskip leftskip "
     "rightskip textwidth textheight oddsidemargin evensidemargin topmargin headheight headsep footskip columnsep "
     "tabcolsep arraycolsep arrayrulewidth itemsep parsep topsep partopsep fboxsep fboxrule abovecaptionskip "
     "belowcaptionskip abovedisplayskip belowdisplayskip abovedisplayshortskip belowdisplayshortskip voffset "
     "hoffset baselinestretch pretolerance tolerance hbadness vbadness hfuzz vfuzz emergencystretch penalty "
     "hyphenpenalty exhyphenpenalty widowpenalty clubpenalty magnification pageno linewidth columnwidth "
     "marginparwidth labelsep labelwidth leftmargin rightmargin itemindent listparindent textfloatsep floatsep "
     "intextsep unitlength skip mskip mkern tabskip smallskipamount medskipamount bigskipamount jot mathsurround "
     "thinmuskip medmuskip thickmuskip lineskip lineskiplimit splittopskip maxdepth overfullrule displaywidth "
     "topskip interlinepenalty pdfoutput pdfpagewidth pdfpageheight pdfminorversion errorcontextlines secnumdepth "
     "tocdepth uchyph showboxdepth", "d", OP_ARGS, 0},
    {"the number advance multiply divide catcode lccode uccode sfcode mathcode setbox font futurelet openin "
     "openout closein closeout read newinsert newmuskip countdef dimendef skipdef toksdef chardef mathchardef "
     "copy box everypar output afterassignment aftergroup fontname textfont scriptfont scriptscriptfont delcode "
     "delimiterfactor meaning string romannumeral", "", OP_DROP_NAME, 0},
    {"State STATE Statex", "'.", OP_ARGS, 0}, {"Comment COMMENT tcp tcc", "'_▷_M", OP_ARGS, 0},
    {"{itemize {compactitem {inparaitem {asparaitem {itemize* {tightitemize", "-o", OP_E_LIST, LB_FIXED},
    {"{enumerate {compactenum {inparaenum {asparaenum {enumerate* {easylist", "1o", OP_E_LIST, LB_FIXED},
    {"{description {compactdesc {basedescript", ":o", OP_E_LIST, LB_FIXED},
    {"{displaymath {equation {equation* {dmath {dmath*", "2", OP_E_MATH, LB_FIXED},
    {"{align {align* {gather {gather* {multline {multline* {eqnarray {eqnarray* {flalign {flalign* {alignat "
     "{alignat* {xalignat {xalignat* {IEEEeqnarray {IEEEeqnarray* {subeqnarray {subeqnarray* {dgroup {dgroup* "
     "{mathpar {prooftree", "3", OP_E_MATH, LB_FIXED},
    {"{SCfigure {SCfigure* {sidewaysfigure {sidewaysfigure* {floatingfigure {marginfigure {plate",
     "oo", OP_E_FIGURE, LB_FIXED},
    {"{table {table* {sidewaystable {sidewaystable* {margintable {SCtable {algorithm {algorithm* {algorithm2e "
     "{listing {listing* {codebox {program {algorithmic {algorithmicx {columns {tcolorbox {mdframed {framed "
     "{shaded {leftbar {boxedminipage", "|o", OP_E_PLAIN, LB_FIXED},
    {"{tabular {array {supertabular {longtable {xtabular {longtblr {tblr {tabu {deluxetable {deluxetable* "
     "{NiceTabular {planotable", "om", OP_E_TABLE, LB_FIXED},
    {"{tabular* {tabularx {tabulary", "mom", OP_E_TABLE, LB_FIXED},
    {"{verbatim {verbatim* {Verbatim* {BVerbatim {LVerbatim {spverbatim {verbatimtab", "", OP_E_CODE, LB_FIXED},
    {"{Verbatim {SaveVerbatim {lstlisting", "o", OP_E_CODE, LB_FIXED},
    {"{quote {quotation {quoting {displayquote", "o", OP_E_QUOTE, LB_FIXED},
    {"{comment {tikzpicture {pspicture {pspicture* {picture {pgfpicture {filecontents {filecontents* "
     "{thebibliography {CCSXML {scope {axis {forest {tikzcd {xy {filecontentshere {asy {asydef {feynman "
     "{feynmandiagram {circuitikz {thenomenclature {theindex {psmatrix {overpic {lrbox {chart {gnuplot {luacode "
     "{luacode* {pycode {sagesilent {biblist {references {diagram {fmffile {fmfgraph {fmfgraph* {mfpic {pdfpic "
     "{dot2tex {pgfonlayer {pgfscope {htmlonly {rawhtml {bibtex", "", OP_E_DROP, LB_FIXED},
    {"{center {flushleft {flushright {samepage {sloppypar {small {footnotesize {scriptsize {tiny {normalsize "
     "{large {Large {singlespace {doublespace {onehalfspace {landscape {titlepage {frontmatter {acknowledgments "
     "{acknowledgements {acknowledgment {acknowledgement {acks {hyphenrules {threeparttable {subequations "
     "{appendices {appendix {tablenotes {keywords {keyword {IEEEkeywords {AMS", "|", OP_E_PLAIN, LB_FIXED},
    {"{minipage {parcolumns {adjustbox", "|ooom", OP_E_PLAIN, LB_FIXED},
    {"{spacing {addmargin {otherlanguage {otherlanguage* {turn {rotate {column", "|m", OP_E_PLAIN, LB_FIXED},
    {"{subfigure {subtable {subfloat", "|om", OP_E_PLAIN, LB_FIXED},
    {"{block {alertblock {exampleblock", "|aM|", OP_E_PLAIN, LB_FIXED},
    {"{theorem {thm {Theorem", "Theorem", OP_E_THEOREM, 0}, {"{lemma {lem {Lemma", "Lemma", OP_E_THEOREM, 0},
    {"providecommand providerobustcmd", "p", OP_DEFINE, LB_BOTH}, {"let", "l", OP_DEFINE, LB_BOTH},
    {"lstnewenvironment newtcblisting newminted DefineVerbatimEnvironment", "v", OP_DEFINE, LB_BOTH},
    {"newenvironment renewenvironment", "e", OP_DEFINE, LB_BOTH}, {"newif", "i", OP_DEFINE, LB_BOTH},
    {"DeclareMathOperator", "o", OP_DEFINE, LB_BOTH}, {"ifmmode", "m", OP_IF, LB_BOTH},
    {"ifhmode", "h", OP_IF, LB_BOTH}, {"ifnum", "n", OP_IF, LB_BOTH}, {"ifodd", "o", OP_IF, LB_BOTH},
    {"ifdim", "d", OP_IF, LB_BOTH}, {"ifcase", "c", OP_IF, LB_BOTH}, {"ifdefined", "D", OP_IF, LB_BOTH},
    {"ifcsname", "C", OP_IF, LB_BOTH}, {"else or", "", OP_ELSE, LB_BOTH}, {"fi", "", OP_FI, LB_BOTH},
    {"ifthenelse", "e", OP_CHOOSE, LB_BOTH}, {"@ifundefined", "u", OP_CHOOSE, LB_BOTH},
    {"@ifnextchar kernel@ifnextchar", "n", OP_CHOOSE, LB_BOTH}, {"@ifstar", "s", OP_CHOOSE, LB_BOTH},
    {"ifblank ifstrempty", "b", OP_CHOOSE, LB_BOTH}, {"ifdef ifcsdef", "d", OP_CHOOSE, LB_BOTH},
    {"ifundef ifcsundef", "d!", OP_CHOOSE, LB_BOTH}, {"IfNoValueTF", "V", OP_CHOOSE, LB_BOTH},
    {"IfValueTF", "V!", OP_CHOOSE, LB_BOTH}, {"IfBooleanTF", "B", OP_CHOOSE, LB_BOTH},
    {"@firstoftwo", "1", OP_CHOOSE, LB_BOTH}, {"@secondoftwo", "2", OP_CHOOSE, LB_BOTH},
    {"IfNoValueT", "V1", OP_CHOOSE, LB_BOTH}, {"IfBooleanT", "B1", OP_CHOOSE, LB_BOTH},
    {"csname", "", OP_CSNAME, LB_BOTH}, {"endcsname", "", OP_ARGS, LB_BOTH}, {"@nameuse", "m", OP_CSNAME, LB_BOTH},
    {"mathchoice", "", OP_CHOICE, LB_BOTH}, {"mathpalette", "", OP_PREFIX, 0}, {"makeatletter", "1", OP_AT, LB_BOTH},
    {"makeatother", "", OP_AT, LB_BOTH}, {"begin", "", OP_BEGIN, LB_BOTH}, {"end", "", OP_END, LB_BOTH},
    {"begingroup bgroup", "", OP_OPEN, LB_MATH}, {"endgroup egroup", "", OP_CLOSE, LB_MATH},
    {"endinput", "", OP_ENDINPUT, LB_BOTH}, {"usepackage RequirePackage", "", OP_PACKAGE, LB_FIXED},
    {"title", "", OP_TITLE, LB_FIXED}, {"author icmlauthor", "", OP_AUTHOR, LB_FIXED},
    {"date", "", OP_DATE, LB_FIXED}, {"abstract", "", OP_ABSTRACT, LB_FIXED}, {"item", "", OP_ITEM, LB_BOTH},
    {"(", "", OP_MATH, LB_FIXED}, {"[", "2", OP_MATH, LB_FIXED}, {") ]", "", OP_ARGS, LB_FIXED},
    {"ensuremath", "", OP_ENSURE, LB_BOTH}, {"xspace", "", OP_XSPACE, LB_BOTH},
    {"numberwithin counterwithin", "w", OP_STEP, LB_FIXED}, {"appendix", "a", OP_STEP, LB_FIXED},
    {"stepcounter refstepcounter", "", OP_STEP, LB_BOTH}, {"bye", "", OP_FINISH, LB_FIXED},
    {"subsection frametitle", "3", OP_SECTION, LB_FIXED}, {"subsubsection framesubtitle", "4", OP_SECTION, LB_FIXED},
    {"footnotemark", "o", OP_ARGS, LB_MATH}, {"captionof", "m", OP_CAPTION, LB_FIXED},
    {"nocite", "om", OP_ARGS, LB_MATH}, {"eqref", "()", OP_REF, LB_BOTH}, {"label", "", OP_LABEL, LB_BOTH},
    {"MakeShortVerb DefineShortVerb lstMakeShortInline", "+", OP_SHORT_VERB, LB_FIXED},
    {"DeleteShortVerb UndefineShortVerb lstDeleteShortInline", "-", OP_SHORT_VERB, LB_FIXED},
    {"TeX", "TeX", OP_TEXT, LB_FIXED}, {"LaTeX", "LaTeX", OP_TEXT, LB_FIXED}, {"LaTeXe", "LaTeX2e", OP_TEXT, LB_FIXED},
    {"BibTeX", "BibTeX", OP_TEXT, LB_FIXED}, {"XeTeX", "XeTeX", OP_TEXT, LB_FIXED}, {"LuaTeX", "LuaTeX", OP_TEXT, LB_FIXED},
    {"XeLaTeX", "XeLaTeX", OP_TEXT, LB_FIXED}, {"LuaLaTeX", "LuaLaTeX", OP_TEXT, LB_FIXED},
    {"pdfTeX", "pdfTeX", OP_TEXT, LB_FIXED}, {"pdfLaTeX", "pdfLaTeX", OP_TEXT, LB_FIXED},
    {"mintinline", "om", OP_VERB, LB_FIXED}, {"_", "_", OP_TEXT, LB_FIXED}, {"%", "%", OP_TEXT, LB_FIXED},
    {"&", "&", OP_TEXT, LB_FIXED}, {"#", "#", OP_TEXT, LB_FIXED}, {"$", "$", OP_TEXT, LB_FIXED},
    {"{", "{", OP_TEXT, LB_FIXED}, {"}", "}", OP_TEXT, LB_FIXED}, {"'", "\u0301", OP_ACCENT, 0},
    {"`", "\u0300", OP_ACCENT, 0}, {"^", "\u0302", OP_ACCENT, 0}, {"\"", "\u0308", OP_ACCENT, 0},
    {"~", "\u0303", OP_ACCENT, 0}, {"=", "\u0304", OP_ACCENT, 0}, {".", "\u0307", OP_ACCENT, 0},
    {"u", "\u0306", OP_ACCENT, 0}, {"v", "\u030C", OP_ACCENT, 0}, {"H", "\u030B", OP_ACCENT, 0},
    {"c", "\u0327", OP_ACCENT, 0}, {"k", "\u0328", OP_ACCENT, 0}, {"r", "\u030A", OP_ACCENT, 0},
    {"d", "\u0323", OP_ACCENT, 0}, {"b", "\u0331", OP_ACCENT, 0}, {"t", "\u0361", OP_ACCENT, 0},
    {"textcommabelow", "\u0326", OP_ACCENT, 0}, {"C G", "\u030F", OP_ACCENT, 0}, {"U", "\u030E", OP_ACCENT, 0},
    {"\\", "", OP_BREAK, LB_FIXED}, {"hspace", "sm_", OP_ARGS, 0}, {"vspace addvspace", "sm", OP_ARGS, 0},
    {"char symbol", "", OP_CHAR, 0}, {"texttt code", "t", OP_FONT_ARG, 0}, {"bf bfseries", "b", OP_FONT, 0},
    {"tt ttfamily", "t", OP_FONT, 0}, {"lstdefinelanguage rule", "omm", OP_ARGS, 0},
    {"titleformat", "smommmmmm", OP_ARGS, 0}, {"titlespacing", "smmmm", OP_ARGS, 0},
    {"newtheoremstyle", "mmmmmmmmm", OP_ARGS, 0}, {"resizebox", "smmM", OP_ARGS, 0},
    {"fcolorbox multicolumn", "mmM", OP_ARGS, 0}, {"multirow", "omomoM", OP_ARGS, 0},
    {"texorpdfstring pdftooltip", "Mm", OP_ARGS, 0}, {"raisebox", "moooM", OP_ARGS, 0},
    {"makebox framebox", "ooM", OP_ARGS, 0}, {"lettrine", "oMM", OP_ARGS, 0},
    {"IEEEPARstart PARstart", "MM", OP_ARGS, 0}, {"epigraph", "|M_M|", OP_ARGS, 0},
    {"nonumber notag", "", OP_ARGS, LB_MATH}, {"SI qty", "oMo_M", OP_ARGS, 0},
    {"SIrange qtyrange", "oM–M", OP_ARGS, 0}, {"If IF", "'.if_M_then", OP_ARGS, 0},
    {"ElsIf ELSIF", "'.else_if_M_then", OP_ARGS, 0}, {"Else ELSE", "'.else", OP_ARGS, 0},
    {"EndIf ENDIF", "'.end_if", OP_ARGS, 0}, {"For FOR", "'.for_M_do", OP_ARGS, 0},
    {"ForAll FORALL", "'.for_all_M_do", OP_ARGS, 0}, {"EndFor ENDFOR", "'.end_for", OP_ARGS, 0},
    {"While WHILE", "'.while_M_do", OP_ARGS, 0}, {"EndWhile ENDWHILE", "'.end_while", OP_ARGS, 0},
    {"Repeat REPEAT", "'.repeat", OP_ARGS, 0}, {"Until UNTIL", "'.until_M", OP_ARGS, 0},
    {"Loop LOOP", "'.loop", OP_ARGS, 0}, {"EndLoop ENDLOOP", "'.end_loop", OP_ARGS, 0},
    {"Return", "'return_", OP_ARGS, 0}, {"RETURN", "'.return_", OP_ARGS, 0},
    {"Require REQUIRE", "'.Require:_", OP_ARGS, 0}, {"Ensure ENSURE", "'.Ensure:_", OP_ARGS, 0},
    {"Function", "'.function_MpM", OP_ARGS, 0}, {"EndFunction", "'.end_function", OP_ARGS, 0},
    {"Procedure", "'.procedure_MpM", OP_ARGS, 0}, {"EndProcedure", "'.end_procedure", OP_ARGS, 0},
    {"Call", "'MpM", OP_ARGS, 0}, {"INPUT", "'.Input:_", OP_ARGS, 0}, {"OUTPUT", "'.Output:_", OP_ARGS, 0},
    {"KwIn", "'.Input:_M", OP_ARGS, 0}, {"KwOut", "'.Output:_M", OP_ARGS, 0}, {"KwData", "'.Data:_M", OP_ARGS, 0},
    {"KwResult", "'.Result:_M", OP_ARGS, 0}, {"KwRet", "'.return_M", OP_ARGS, 0},
    {"SetAlgoLined DontPrintSemicolon", "'", OP_ARGS, 0}, {"{document", "", OP_E_DOCUMENT, LB_FIXED},
    {"{abstract {abstract*", "o", OP_E_ABSTRACT, LB_FIXED}, {"{labeling", ":om", OP_E_LIST, LB_FIXED},
    {"{list", "-mm", OP_E_LIST, LB_FIXED}, {"{trivlist", "-", OP_E_LIST, LB_FIXED},
    {"{math", "1", OP_E_MATH, LB_FIXED}, {"{figure {figure*", "o", OP_E_FIGURE, LB_FIXED},
    {"{wrapfigure {wrapfloat", "omom", OP_E_FIGURE, LB_FIXED}, {"{wraptable", "|omom", OP_E_PLAIN, LB_FIXED},
    {"{tabu* {NiceTabularX", "omom", OP_E_TABLE, LB_FIXED}, {"{halign", "", OP_E_TABLE, LB_FIXED},
    {"{minted", "om", OP_E_CODE, LB_FIXED}, {"{tcblisting {VerbatimOut", "m", OP_E_CODE, LB_FIXED},
    {"{alltt", "", OP_E_LINES, LB_FIXED}, {"{verse", "", OP_E_QUOTE, LB_FIXED},
    {"{multicols {multicols*", "|mo", OP_E_PLAIN, LB_FIXED}, {"{adjustwidth", "|mm", OP_E_PLAIN, LB_FIXED},
    {"{frame", "|aoo", OP_E_PLAIN, LB_FIXED}, {"{IEEEbiography", "|oM_", OP_E_PLAIN, LB_FIXED},
    {"{IEEEbiographynophoto", "|M_", OP_E_PLAIN, LB_FIXED}, {"{tabbing", "", OP_E_TABBING, LB_FIXED},
    {"{proposition {prop", "Proposition", OP_E_THEOREM, 0}, {"{corollary {cor", "Corollary", OP_E_THEOREM, 0},
    {"{definition {defn", "Definition", OP_E_THEOREM, 0}, {"{remark", "Remark", OP_E_THEOREM, 0},
    {"{example", "Example", OP_E_THEOREM, 0}, {"{conjecture", "Conjecture", OP_E_THEOREM, 0},
    {"{claim", "Claim", OP_E_THEOREM, 0}, {"{proof {Proof", "Proof", OP_E_THEOREM, 0},
    {"{exercise", "Exercise", OP_E_THEOREM, 0}, {"{fact", "Fact", OP_E_THEOREM, 0},
    {"{assumption", "Assumption", OP_E_THEOREM, 0}, {"{notation", "Notation", OP_E_THEOREM, 0},
    {"{observation", "Observation", OP_E_THEOREM, 0},
    T("euro texteuro EUR", "€"), T("textdegree degree degres", "°"), T("textmu textmicro micro", "µ"),
    T("ldots dots textellipsis dotsc", "…"), T("textquoteleft lq grq", "‘"),
    T("guillemotleft guillemetleft flqq", "«"), T("guillemotright guillemetright frqq", "»"),
    T("metre meter milli", "m"), T("ss", "ß"), T("SS", "ẞ"), T("o", "ø"), T("O", "Ø"), T("l", "ł"), T("L", "Ł"),
    T("ae", "æ"), T("AE", "Æ"), T("oe", "œ"), T("OE", "Œ"), T("aa", "å"), T("AA angstrom", "Å"), T("i", "ı"),
    T("j", "ȷ"), T("dh", "ð"), T("DH", "Ð"), T("th", "þ"), T("TH", "Þ"), T("dj", "đ"), T("DJ", "Đ"), T("ng", "ŋ"),
    T("NG", "Ŋ"), T("ij", "ĳ"), T("IJ", "Ĳ"), T("S textsection", "§"), T("P textparagraph", "¶"),
    T("dag textdagger", "†"), T("ddag textdaggerdbl", "‡"), T("copyright textcopyright", "©"),
    T("pounds textsterling", "£"), T("textregistered", "®"), T("texttrademark", "™"),
    T("celsius degreeCelsius", "°C"), T("textbullet", "•"), T("textperiodcentered", "·"), T("textendash", "–"),
    T("textemdash", "—"), T("textquoteright rq", "’"), T("textquotedblleft grqq", "“"), T("textquotedblright", "”"),
    T("og", "« "), T("fg", " »"), T("guilsinglleft", "‹"), T("guilsinglright", "›"), T("quotedblbase glqq", "„"),
    T("quotesinglbase glq", "‚"), T("textquotesingle", "'"), T("textquotedbl", "\""), T("textasciigrave", "`"),
    T("textbackslash backslash", "\\"), T("textasciitilde", "~"), T("textasciicircum tothe", "^"),
    T("textasciimacron", "¯"), T("textless", "<"), T("textgreater", ">"), T("textbar |", "|"), T("textbardbl", "‖"),
    T("textbraceleft", "{"), T("textbraceright", "}"), T("textunderscore", "_"), T("textdollar", "$"),
    T("textpercent percent", "%"), T("textyen", "¥"), T("textcent", "¢"), T("textcurrency", "¤"),
    T("textexclamdown", "¡"), T("textquestiondown", "¿"), T("textordfeminine", "ª"), T("textordmasculine", "º"),
    T("textonehalf", "½"), T("textonequarter", "¼"), T("textthreequarters", "¾"), T("texttimes", "×"),
    T("textdiv", "÷"), T("textpm", "±"), T("textlnot", "¬"), T("textminus", "−"), T("textonesuperior", "¹"),
    T("texttwosuperior squared", "²"), T("textthreesuperior cubed", "³"), T("textperthousand", "‰"),
    T("textrightarrow", "→"), T("textleftarrow", "←"), T("textmusicalnote", "♪"), T("textnumero no", "№"),
    T("textvisiblespace", "␣"), T("textasteriskcentered", "∗"), T("textohm ohm", "Ω"), T("textestimated", "℮"),
    T("textbrokenbar", "¦"), T("AmS", "AMS"), T("AmSLaTeX", "AMS-LaTeX"),
    T("AmSTeX", "AMS-TeX"), T("MF", "METAFONT"), T("MP", "MetaPost"), T("SLiTeX", "SliTeX"), T("PiC", "PiC"),
    T("PiCTeX", "PiCTeX"), T("ConTeXt", "ConTeXt"), T("eTeX", "eTeX"), T("AllTeX", "(La)TeX"),
    T("degr", "°"), T("arcmin", "′"), T("arcsec", "″"), T("micron", "µm"), T("sun", "☉"), T("earth", "⊕"),
    T("checkmark cmark", "✓"), T("xmark", "✗"), T("slash per", "/"), T("textcompwordmark", ""), T("numero", "No"),
    T("primo", "1o"), T("ier", "er"), T("iere", "re"), T("ieme", "e"), T("iemes", "es"), T("nd", "nd"),
    T("cdash", "--"), T("second", "s"), T("gram", "g"), T("ampere", "A"), T("kelvin", "K"), T("mole", "mol"),
    T("candela", "cd"), T("hertz", "Hz"), T("newton", "N"), T("pascal", "Pa"), T("joule", "J"), T("watt", "W"),
    T("coulomb", "C"), T("volt", "V"), T("farad", "F"), T("siemens", "S"), T("weber", "Wb"), T("tesla tera", "T"),
    T("henry", "H"), T("lumen", "lm"), T("lux", "lx"), T("becquerel", "Bq"), T("minute", "min"),
    T("hour hecto", "h"), T("day deci", "d"), T("liter", "L"), T("litre", "l"), T("electronvolt", "eV"),
    T("bar", "bar"), T("byte", "B"), T("bit", "bit"), T("kilogram", "kg"), T("kilo", "k"), T("mega", "M"),
    T("giga", "G"), T("peta", "P"), T("nano", "n"), T("pico", "p"), T("femto", "f"), T("centi", "c"),
    T("decibel", "dB"), T("dalton", "Da"), T("parsec", "pc"), T("arcsecond", "″"), T("arcminute", "′"),
    T("radian", "rad"), T("steradian", "sr"), T("inch", "in"),
};

const size_t latex_n_builtins = sizeof latex_builtins / sizeof *latex_builtins;

const char *latex_language(struct span name)
{
    static const char *const codes[][2] = {
        {"english", "en"}, {"american", "en"}, {"british", "en"}, {"USenglish", "en"}, {"UKenglish", "en"},
        {"canadian", "en"}, {"australian", "en"}, {"french", "fr"}, {"francais", "fr"}, {"frenchb", "fr"},
        {"acadian", "fr"}, {"german", "de"}, {"ngerman", "de"}, {"austrian", "de"}, {"naustrian", "de"},
        {"nswissgerman", "de"}, {"spanish", "es"}, {"italian", "it"}, {"portuguese", "pt"}, {"brazil", "pt"},
        {"brazilian", "pt"}, {"portuges", "pt"}, {"dutch", "nl"}, {"danish", "da"}, {"swedish", "sv"},
        {"norsk", "no"}, {"nynorsk", "nn"}, {"finnish", "fi"}, {"polish", "pl"}, {"czech", "cs"}, {"slovak", "sk"},
        {"slovene", "sl"}, {"slovenian", "sl"}, {"croatian", "hr"}, {"serbian", "sr"}, {"hungarian", "hu"},
        {"magyar", "hu"}, {"romanian", "ro"}, {"bulgarian", "bg"}, {"russian", "ru"}, {"ukrainian", "uk"},
        {"belarusian", "be"}, {"greek", "el"}, {"turkish", "tr"}, {"catalan", "ca"}, {"galician", "gl"},
        {"basque", "eu"}, {"breton", "br"}, {"welsh", "cy"}, {"irish", "ga"}, {"scottish", "gd"}, {"icelandic", "is"},
        {"estonian", "et"}, {"latvian", "lv"}, {"lithuanian", "lt"}, {"latin", "la"}, {"esperanto", "eo"},
        {"hebrew", "he"}, {"arabic", "ar"}, {"persian", "fa"}, {"farsi", "fa"}, {"vietnamese", "vi"},
        {"indonesian", "id"}, {"bahasa", "id"}, {"malay", "ms"}, {"hindi", "hi"}, {"japanese", "ja"},
        {"chinese", "zh"}, {"korean", "ko"}, {"thai", "th"}, {"afrikaans", "af"}, {"albanian", "sq"},
        {"macedonian", "mk"},
    };

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (span_is(name, codes[i][0]))
            return codes[i][1];
    return NULL;
}
