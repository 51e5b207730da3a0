# shellcheck shell=bash
# Pages made to be slow or large, in the current folder.
repeat() { awk -v s="$1" -v n="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", s }'; }
# shellcheck disable=SC2034
hostile_pages=(levels attributes names span unclosed)

{ repeat '<div>' 100000; echo deep; } >levels.html
{ printf '<p '; repeat 'data-a=1 ' 1000000; echo '>text'; } >attributes.html
{ printf '<p '; awk 'BEGIN { for (i = 0; i < 1000000; i++) printf "a%d=x ", i }'; echo '>text'; } >names.html
echo '<table><tr><td rowspan=9000000000000000 colspan=9000000000000000>a<td>b</table>' >span.html
{ repeat '<p><b><i><div><span><font>' 20000; echo text; } >unclosed.html
repeat '<p>some words of a page that goes on and on</p>' 4500000 >long.html # 200 MB, refused unless asked for
