# shellcheck shell=bash
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"

# text NAME FILE WANT [OPTION...]: the whole text of the one document made of a file.
text() {
    local name=$1 file=$2 want=$3 got
    shift 3
    got=$(quern extract -q "$@" "$file" 2>&1 | sed 's/.*"text":"\(.*\)"}$/\1/')
    equal "$name" "$got" "$want"
}
# is NAME SOURCE WANT [OPTION...]: the same of a source, without the line end behind it.
is() {
    local name=$1 want=$3
    printf '%s\n' "$2" >is.tex
    shift 3
    text "$name" is.tex "${want:+$want\\n}" "$@"
}

cat >paper.tex <<'EOF'
\documentclass{article}
\usepackage[english]{babel}
\usepackage{xspace}
\newcommand{\both}[2][first]{(#1, #2)}
\def\pair#1;#2.{<#1|#2>}
\newcommand\R{\ensuremath{\mathbb{R}}\xspace}
\DeclareMathOperator{\Hom}{Hom}
\newtheorem{thm}{Theorem}[section]
\newenvironment{boxed}[1]{\textbf{#1:} }{ (end)}
\title{A \emph{short} title\thanks{No part of it.}}
\author{John Doe$^1$ \and Jane R\"oe\\ University}
\date{March 3, 2021}
\begin{document}
\maketitle
\begin{abstract}What it says.\end{abstract}
\section{First \& last}\label{sec}
Macros \both{x} and \both[y]{z}, \pair a;b. over \R and $\Hom(\R, x)$. % a comment
Seen in~\cite{a,b}, then \citep[p.~3]{b}; ``quoted'' --- na\"{\i}ve, \'e, \c{c}, \ss, \o{}.
A note\footnote{Of \textbf{notes}.} here.

Section~\ref{sec}, Theorem~\ref{t}, none~(\ref{nowhere}), Eq.~\eqref{e}.
\begin{thm}[Big]\label{t} Then \begin{equation}\label{e} a=\Hom b \end{equation} holds.\end{thm}
\begin{boxed}{Box}inside\end{boxed}
\begin{itemize}\item one \item[(b)] two \begin{enumerate}\item deep\end{enumerate}\end{itemize}
\begin{figure}\includegraphics[width=3cm]{a}\caption{What it \emph{shows}.}\end{figure}
\begin{tabular}{l|r}\hline A & B \\ 1 & \multicolumn{1}{c}{2} \\\end{tabular}
\begin{verbatim}
x = 1 % y
  \both
\end{verbatim}
\iffalse hidden \else shown \fi \verb|a_%b| \url{http://h/%20_x} \href{http://h}{link}
\begin{thebibliography}{9}\bibitem{a} A.\end{thebibliography}
\end{document}
behind
EOF
check 'a document' quern extract -q paper.tex -o a.jsonl
has 'title, date, language, authors' a.jsonl \
    '{"id":"paper.tex","url":"","title":"A short title","date":"2021-03-03","lang":"en","author":"John Doe, Jane Röe","text":'
text 'its text' paper.tex 'Abstract\n\nWhat it says.\n\nFirst & last\n\nMacros (first, x) and (y, z), <a|b> over $\\mathbb{R}$ and $\\operatorname{Hom}(\\mathbb{R}, x)$. Seen in [1, 2], then [2]; “quoted” — naïve, é, ç, ß, ø. A note here.\n\nOf notes.\n\nSection 1, Theorem 1.1, none, Eq. (1).\n\nTheorem 1.1 (Big). Then\n$$a=\\operatorname{Hom}b$$\nholds.\n\nBox: inside (end)\n\n- one\n- (b) two\n  - deep\n\nWhat it shows.\n\nA | B\n1 | 2\n\nx = 1 % y\n  \\both\n\nshown a_%b http://h/%20_x link\n'
text 'as Markdown' paper.tex '## Abstract\n\nWhat it says.\n\n## First & last\n\nMacros (first, x) and (y, z), <a|b> over $\\mathbb{R}$ and $\\operatorname{Hom}(\\mathbb{R}, x)$. Seen in [1, 2], then [2]; “quoted” — naïve, é, ç, ß, ø. A note[^1] here.\n\n[^1]: Of **notes**.\n\nSection 1, Theorem 1.1, none, Eq. (1).\n\n**Theorem 1.1 (Big).** Then\n$$a=\\operatorname{Hom}b$$\nholds.\n\n**Box:** inside (end)\n\n- one\n- (b) two\n  1. deep\n\nWhat it *shows*.\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n\n```\nx = 1 % y\n  \\both\n```\n\nshown `a_%b` http://h/%20_x link\n' --format markdown

# macros
is 'a macro in a macro' '\newcommand\a[1]{<\b{#1}>}\newcommand\b[1]{[#1]}\a{x\a{y}}' '<[x<[y]>]>'
is 'defined by a macro' '\newcommand\make[1]{\newcommand\made[1]{#1-##1}}\make{p}\made{q}' 'p-q'
is 'local to a group' '\def\x{1}{\def\x{2}\x}\x' '21'
is '\let keeps what was' '\def\x{1}\let\y\x\def\x{2}\x\y' '21'
is 'a control word and a letter' '\newcommand\al[1]{\alpha#1}$\al{x}$' '$\\alpha x$'
is 'conditionals' '\newif\ifdraft\drafttrue\ifdraft yes\else no\fi\draftfalse\ifdraft yes\else no\fi' 'yesno'
is 'nested ones are passed over' '\iffalse a\iftrue b\else c\fi d\else e\fi f' 'ef'
is 'the next character decides' '\makeatletter\def\p{\@ifnextchar[{\q}{\q[d]}}\def\q[#1]#2{#1#2}\p{x}\p[y]{z}\makeatother' 'dxyz'
is 'formulas as written' '\newcommand\R{\mathbb R}$x\in\R$' '$x\\in\\R$' --latex-math source
is 'no formulas' 'Let $x$ be \[ y \] so.' 'Let be\nso.' --latex-math none
is 'old font switches' 'a {\bf b} {\it c}' 'a **b** *c*' --format markdown
is 'what is not known goes, its text stays' 'a \unknown{b} \setunknown{c}{d} e' 'a b e'
is 'no preamble needed' '\section{S} Text.' 'S\n\nText.'
is 'empty lines make paragraphs' 'a
% comment
b

c%
d' 'a b\n\ncd'

# charsets
printf '\\documentclass{a}\\usepackage[latin1]{inputenc}\\begin{document}\351t\351\\end{document}' >latin1.tex
text 'latin1' latin1.tex 'été\n'
printf 'one\rtwo\r\rthree\r' >mac.tex
text 'line ends of a Macintosh' mac.tex 'one two\n\nthree\n'

# files and archives
mkdir -p e/sec
printf '\\documentclass{a}\\input{macros}\\begin{document}\\include{sec/one}\\input sec/two\n\\input{../out}\\input{none}end\\end{document}' >e/main.tex
printf '\\newcommand\\m{M}' >e/macros.tex
printf 'One \\m. ' >e/sec/one.tex
printf 'Two. ' >e/sec/two.tex
printf 'outside' >out.tex
text 'files beside it, but none outside' e/main.tex 'One M. Two. end\n'
tar -C e --format=ustar -cf u.tar main.tex macros.tex sec
tar -C e --format=pax -czf p.tar.gz ./sec ./macros.tex ./main.tex
long=$(printf 'd%.0s' {1..120})
mkdir -p "g/$long"
cp -r e/* "g/$long"
tar -C g --format=gnu -cf g.tar "$long"
for f in u.tar p.tar.gz g.tar; do text "an e-print, $f" $f 'One M. Two. end\n'; done
quern extract -q u.tar p.tar.gz g.tar >t.jsonl
has 'its id is the archive and the main file' t.jsonl '{"id":"u.tar/main.tex"'
has 'a name of more than 100 bytes' t.jsonl "{\"id\":\"g.tar/$long/main.tex\""
gzip -c latin1.tex >paper-0001.gz
text 'a gzip file without a name' paper-0001.gz 'été\n'
mkdir many
cp p.tar.gz many/2001.1.gz
cp paper-0001.gz many/2001.2.gz
printf '%%auto-ignore\nThis paper has been withdrawn.' | gzip >many/2001.3.gz
printf 'x' >many/2001.4.pdf
printf 'not gzip at all' >many/2001.5.gz
tar --sort=name -cf many.tar many
quern extract many.tar >m.jsonl 2>err --rejects r.jsonl
equal 'an archive of e-prints, one of them bad' "$?" 1
equal 'has a document for each' "$(sed 's/","url.*//' m.jsonl | tr '\n' ' ')" '{"id":"many.tar/many/2001.1.gz {"id":"many.tar/many/2001.2.gz '
has 'a withdrawn one is dropped' r.jsonl '"rule":"withdrawn"'
has 'what is bad is named' err 'no gzip file'
quern extract -q -j4 many.tar many.tar >four.jsonl 2>/dev/null
cat m.jsonl m.jsonl >two.jsonl
same 'the same bytes for any number of threads' two.jsonl four.jsonl

# faults and bounds
head -c 2000 u.tar >cut.tar
status 'a tar archive cut short' 1 quern extract cut.tar
has 'is named' err "'cut.tar' at byte 2000: the tar archive is cut short"
{ head -c 512 /dev/urandom; tar -C e -cf - main.tex; } | tail -c +1 >noise.tar
status 'a .tar that is none' 1 quern extract noise.tar
printf '\\def\\a{\\a\\a}\\a' >endless.tex
status 'an endless macro' 1 quern extract endless.tex
has 'is a bad record' err 'LaTeX: more than the bound of'
is 'one that doubles' '\def\a{x\b\b}\def\b{\c\c}\def\c{\d\d}\def\d{\e\e}\def\e{\f\f}\def\f{\g\g}\def\g{xxxxxxxx}\a' "$(printf 'x%.0s' {1..513})"
printf '{%.0s' {1..100000} >deep.tex
status 'a hundred thousand groups' 1 quern extract deep.tex
has 'are too many' err 'LaTeX: more than the bound of groups in groups'
is 'what is not closed' 'a \textbf{b $c \begin{itemize} \item d' 'a b $c$\n\n- d'
finish
