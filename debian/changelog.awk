# CHANGELOG.md as Debian's changelog: "## VERSION (YYYY-MM-DD)" begins an entry, "- " a point of it.  What is not released yet
# has no date, and no entry.
function close_entry()
{
    if (date == "")
        return
    ("date -R -u -d " date) | getline stamp
    printf "\n -- %s  %s\n\n", who, stamp
}
/^## / {
    close_entry()
    date = substr($3, 2, 10)
    if (date == "")
        next
    printf "quern (%s) bookworm; urgency=medium\n\n", $2
    next
}
date == "" || /^$/ { next }
/^- / { print "  * " substr($0, 3); next }
/^  / { print "    " substr($0, 3); next }
{ print "  " $0 }
END { close_entry() }
