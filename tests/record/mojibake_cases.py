#!/usr/bin/env python3
"""Writes tests/data/clean/mojibake.jsonl: short sentences in many scripts, damaged, and what
ftfy 6.3.1 makes of each with the settings of tests/record/mojibake_peer.py (a setting that
leaves the text as it is has no field).  Run from the repository root; needs ftfy."""
import json
import random

from mojibake_peer import SETTINGS, damage

SENTENCES = """The café’s naïve résumé — “déjà vu”, she said… €5
Où est l’hôtel? À la gare, bien sûr: ça coûte 12 € l’été.
Größere Mühe für schöne Straßen in München – „ja“.
El niño añadió más piñas; ¿cuántas? ¡Muchísimas!
Não há solução: às vezes, àquela hora, é à mão.
Zażółć gęślą jaźń, proszę!
Příliš žluťoučký kůň úpěl ďábelské ódy.
Árvíztűrő tükörfúrógép
Šķērsām ūdeņiem; žąsų čiulpiančių
Şişli’de İğde ağacı çok güzel ığdır
Съешь ещё этих мягких французских булок № 5
Ґанок і їжак, єдність — «так»
Ταχίστη αλώπηξ βαφής ψημένη γη, δρασκελίζει
Ђорђе и Љиљана њежно џекну
שלום עולם, מה שלומך?
مرحبا بالعالم، كيف حالك؟
नमस्ते दुनिया, कैसे हो?
สวัสดีชาวโลก
你好，世界！“引号”……
こんにちは、世界。ﾊﾝｶｸ ＦＵＬＬ
안녕하세요 세계
Tiếng Việt: đường phố đẹp
fluﬃest ﬁsh ĳs Ǆ
½ × 3² ≈ 4½ ± 0.5° √2 ≤ ∞
💩 👩‍💻 🇩🇪 ✔ ★ ♥
Plain words &amp; entities: &eacute;&NTILDE;&#x2019;&#150;&nosuch;
┌──┐ │░▒│ └──┘ ║═╬
œuvre Œdipe cœur sœur œ
¯\\_(ツ)_/¯ (◕‿◕) ò_ó Ò‿Ó
5 £, 7 ¥, 8 ¢, § 12, ¶ 3, ©2020 ®""".split("\n")

rng = random.Random(7)
seen, out = set(), []
for sentence in SENTENCES:
    for i in range(9):
        text = damage(sentence, rng) if i else sentence
        if text in seen or len(text) > 160:
            continue
        seen.add(text)
        d = {"text": text}
        for name, _, peer in SETTINGS:
            fixed = peer(text)
            if fixed != text:
                d[name] = fixed
        out.append(json.dumps(d, ensure_ascii=False))
with open("tests/data/clean/mojibake.jsonl", "w", encoding="utf-8") as f:
    f.write("\n".join(out) + "\n")
