# quern.h as libquern(3): comments become text, declarations stand as they are.
# awk -v version=0.2.0 -f bindings/man.awk bindings/quern.h
function text(line)
{
    gsub(/\\/, "\\e", line)
    gsub(/-/, "\\-", line)
    if (line ~ /^[.']/)
        line = "\\&" line
    print line
}
function code(line)
{
    if (!in_code)
        print ".PP\n.nf"
    in_code = 1
    sub(/^QUERN_API /, "", line)
    text(line)
}
function prose(line)
{
    if (in_code)
        print ".fi"
    if (!in_prose || in_code)
        print ".PP"
    in_code = 0
    in_prose = 1
    if (line ~ /^  - /) {
        print ".IP \\(bu 2"
        line = substr(line, 5)
    }
    sub(/^ +/, "", line)
    if (line == "")
        print ".PP"
    else
        text(line)
}
NR == 1 {
    printf ".TH LIBQUERN 3 \"\" \"quern %s\" \"quern\"\n.SH NAME\nlibquern \\- tokenizers and indexed datasets for any program\n", version
    print ".SH SYNOPSIS\n.B #include <quern.h>\n.PP\ncc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs quern)\n.SH DESCRIPTION"
    head = 1
    next
}
/^#|^extern "C"|^}$/ { next }
# The head of the file.
head && /^ \*\// { head = 0; in_prose = 0; next }
head { sub(/^ \* ?/, ""); prose($0); next }
/^\/\* ---- / {
    if (in_code)
        print ".fi"
    in_code = 0
    gsub(/^\/\* ---- | ---- \*\/$/, "")
    print ".SH " toupper($0)
    next
}
# A comment before what it is about.
/^\/\*/ || comment {
    comment = $0 !~ /\*\/$/
    sub(/^(\/\*| \*) ?/, "")
    sub(/ ?\*\/$/, "")
    prose($0)
    if (!comment)
        in_prose = 0
    next
}
/^$/ { if (in_code) print ".fi"; in_code = 0; next }
{ code($0) }
END { if (in_code) print ".fi" }
