#!/usr/bin/env bash
# Main content on pages of kinds that led extractors astray: an exit dialog in a class that says content, classes that hold
# CSS comments, a hidden dialog longer than the article, an article in several parts, a live feed beside it.
# shellcheck source=tests/lib.sh
. "$ROOT/tests/lib.sh"

sentences=('The council met to talk about the old bridge over the river, which has been closed since the storm in spring.'
    'Engineers had found cracks in two of its pillars, and nobody could say how long the others would hold under traffic.'
    'A new one would cost some twelve million, of which the county would pay a third if work begins before the new year.'
    'Shopkeepers on the north bank said that they had lost half of their customers, who drive to the next town instead.'
    'The mayor promised that buses would go every ten minutes from the autumn on, and that pupils would ride free.'
    'In the end the plan was accepted with nine votes against four, and the first drawings are due in a month.')
# paragraphs FROM TO: of the article, each with its number in all sentences: what others say word for word would go.
paragraphs() {
    local i
    for ((i = $1; i <= $2; i++)); do
        echo "<p>Paragraph $i: ${sentences[i % 6]} Of item $i: ${sentences[(i + 1) % 6]} And to $i: ${sentences[(i + 2) % 6]}</p>"
    done
}
# times N TEXT: text N times.
times() { for ((n = 0; n < $1; n++)); do echo "$2"; done; }
page() {
    echo "<!doctype html><html lang=en><head><title>The old bridge - Bridge Times</title></head><body>
<header><a href=/>Home</a><nav><ul><li><a href=/n>News</a><li><a href=/s>Sports</a></ul></nav></header>
$1<footer><p>Copyright the Bridge Times. All rights reserved.</p><a href=/privacy>Privacy</a></footer></body></html>"
}
# holds NAME PARAGRAPHS: the page has all of the article's paragraphs.
holds() {
    quern extract -q "$1.html" >"$1.jsonl"
    equal "$1: the whole article" "$(grep -o 'Paragraph [0-9]*:' "$1.jsonl" | wc -l)" "$2"
}
# lacks NAME FILE TEXT: the file does not have the text.
lacks() { equal "$1" "$(grep -cF -- "$3" "$2")" 0; }
head='<h1>The old bridge</h1>'
offer='<p>OFFER: join more than ten thousand readers who get our best stories of the week straight to their inbox on Fridays.</p>'
leave="<div class=content-nav-section><h3>Wait, before you go!</h3>$offer$offer<form><input name=mail><button>Join</button></form></div>"
more="<ul>$(times 6 '<li><a href=/x>Another story of the paper about something else</a>')</ul>"

page "<main><article>$head$(paragraphs 1 6)</article></main>$leave" >exit-behind.html
page "<main>$leave<article>$head$(paragraphs 1 6)</article></main>" >exit-before.html
page "<main class='/* page footer and sidebar: none */ mx-auto'><div class='prose /* nav, related, comments */ [&>p]:mt-4 /* hidden
 on print */'>$head$(paragraphs 1 6)</div></main><div class='/* article body */ grid'><h3>More stories</h3>$more</div>" >comments.html
page "<main><article>$head<div class=article-body>$(paragraphs 1 4)</div><div class=ad-slot><span>Advertisement</span></div>
<aside><a href=/x>Read also: how bridges are built</a></aside><div class='article-body continued'>$(paragraphs 5 19)</div></article>
</main>" >parts.html
page "<main><article>$head$(paragraphs 1 4)<h3>More from the Bridge Times</h3><p>Subscribe today.</p>$(paragraphs 5 19)</article>
</main>" >offer.html
page "<main><article>$head$(paragraphs 1 4)</article><div class=related-content>$(paragraphs 5 19)</div></main>" >names.html
page "<main><article>$head$(paragraphs 1 4)</article></main><div role=dialog aria-hidden=true style='display:none' class=modal>
<h2>Your privacy</h2>$(times 9 '<p>CONSENT: we and our partners store information on a device, such as cookies, and process personal
 data, such as unique identifiers, for personalised advertising and measurement of content.</p>')<button>Accept</button></div>" \
    >dialog.html
page "<main><article>$head$(paragraphs 1 6)</article><section class=live-feed><h2>Live updates</h2><ol>$(times 12 '<li><time>10:04
</time><p>LIVE: police say that a road in another town is closed after a lorry lost its load of apples on the hill.</p>')</ol>
</section></main>" >live.html

for p in exit-behind exit-before comments; do holds $p 6; done
lacks 'exit-behind: no offer' exit-behind.jsonl OFFER
lacks 'exit-before: no offer' exit-before.jsonl OFFER
lacks 'comments: no other stories' comments.jsonl 'Another story'
for p in parts offer names; do holds $p 19; done
lacks 'parts: nothing between them' parts.jsonl Advertisement
# The dialog and the feed stay too: the article is not taken for less than they are.
holds dialog 4
holds live 6
finish
