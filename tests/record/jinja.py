#!/usr/bin/env python3
"""What Jinja, as transformers runs it, makes of small templates: tests/data/tokenizer/jinja.jsonl, for tests/unit/jinja_test.c.

    pip install transformers jinja2;  python tests/record/jinja.py >tests/data/tokenizer/jinja.jsonl
    python tests/record/jinja.py --compare FOLDER

Lines {"template": ..., "text": ...}, or "error": true where it raises; all are rendered with VARIABLES, a line of its own at the
top.  With --compare: build/bin/quern-tokenizer chat is held against transformers on conversations of all shapes, for each
template (*.jinja) of a folder, such as trl/chat_templates of TRL.
"""
import datetime
import glob
import json
import random
import shutil
import subprocess
import sys
import tempfile

from transformers.utils.chat_template_utils import _compile_jinja_template as compiled

VARIABLES = {
    "n": 7, "m": -3, "f": 2.5, "s": "The Mill", "u": "été 中文 ß", "empty": "", "none": None, "yes": True, "no": False,
    "list": [3, 1, 2], "words": ["b", "A", "c"], "map": {"b": 1, "A": "two", "c": [1, {"d": None}]},
    "rows": [{"k": "x", "v": 2}, {"k": "y", "v": 1}, {"k": "x"}], "quotes": "it's \"q\"\\\n\t", "nested": [[1, 2], [3, 4]],
}
EXPRESSIONS = """
1 + 2 * 3 - 4 // 3 % 2|7 // -2|-7 % 3|7 / 2|6 / 3|2 ** 10|2 ** -1|-2 ** 2|1.0|1e20|1e16|1e15|0.1 + 0.2|1e-5|0.0001|-0.0|100000000000000000.0
'a' ~ 1 ~ none ~ true ~ 2.50|s + '!'|s * 2|list + [4]|(1, 2)|[1, 'a', none, true, 1.5]|{'a': 1, 'b': [quotes]}|quotes|[quotes]|[u]|()|(1)|(1,)
s[0]|s[-1]|s[1:4]|s[::-1]|s[:-2]|u[1:3]|u[-1]|u[::2]|list[1]|list[-1]|list[5]|list[1:]|list[::-1]|list[5:1:-2]|s[10]|u|length
map.b|map['A']|map.c[1].d|map.nothing|map['nothing']|map.get('b')|map.get('z')|map.get('z', 5)|nothing|map.nothing.more|nothing.more
n == 7|n == 7.0|'a' == 'a'|'a' < 'b'|'B' < 'a'|[1, 2] < [1, 3]|n != 7|n > 3 and n < 10|n > 3 or nothing.x|not n|not none|none == false|true == 1
'M' in s|'x' not in s|1 in list|'b' in map|1 in map|'' in s|n if n > 3 else m|n if n < 3|'a' if no else 'b' if yes else 'c'
s;upper|s;lower|u;upper|u;title|'a-b c(d';title|u;capitalize|'  x y ';trim|'xxyxx';trim('x')|s;replace('l', 'LL')|s;replace('l', 'L', 1)|s;length
list;sort|words;sort|words;sort(reverse=true)|words;sort(case_sensitive=true)|rows;map(attribute='k');list|rows;map(attribute='v', default=0);list|list;sort(reverse=true);join('-')
rows;selectattr('k', 'equalto', 'x');list|rows;selectattr('v');list;length|rows;rejectattr('v', 'defined');list|list;select('odd');list|list;reject('odd');list|words;map('upper');join
list;first|list;last|[];first|s;first|list;join(', ')|rows;join(',', attribute='k')|list;max|list;min|[];max|list;reverse;list|s;reverse|words;unique;list|['a', 'A'];unique;list
map;items;list|map;dictsort|map;list|s;list|map.items();list|map.keys();list|map.values();list|map;length|map;tojson|map;tojson(indent=2)|[];tojson|{};tojson(indent=2)
list;tojson(indent=4)|quotes;tojson|u;tojson|f;tojson|none;tojson|yes;tojson|1e20;tojson|{'b': 1, 'a': {'d': 1, 'c': 2}};tojson(sort_keys=true)|nested;tojson(indent=1)
nothing;default('d')|empty;default('d')|empty;default('d', true)|none;default('d')|nothing;d|'12';int|'x';int|'x';int(5)|' 7 ';int|3.9;int|'3.9';int|'2.5';float|'x';float|m;abs|2.5;string;length
s;indent|'a\\nb\\n\\nc';indent|'a\\nb';indent(2, true)|'a\\n\\nb';indent(2, blank=true)|'a\\nb\\n';indent(3)|s.split()|' a  b c '.split()|'a,b,,c'.split(',')|'a,b,c'.split(',', 1)|' a b  c '.split(none, 1)
'a b'.split(' ')|''.split(',')|''.split()|s.startswith('The')|s.endswith('x')|s.startswith(('a', 'T'))|'xxaxx'.strip('x')|' a '.lstrip()|' a '.rstrip()|'abcab'.find('ca')|u.find('中')|'abc'.find('z')
','.join(words)|s.upper()|s.lower()|u.capitalize()|s.replace('M', 'm')|'aaa'.replace('a', 'b', 2)|s.nothing()|list.append(4)
n is defined|nothing is defined|nothing is undefined|n is none|none is none|s is string|n is string|n is number|f is number|yes is number|n is integer|yes is integer|f is float|yes is boolean|yes is true|no is false|n is true
map is mapping|list is mapping|list is sequence|s is sequence|map is sequence|list is iterable|n is iterable|nothing is iterable|n is odd|n is even|n is divisibleby(7)|n is divisibleby 2|n is not divisibleby 2|n is eq 7|n is ne 7|n is lt 8|n is ge(8)|n is in list|1 is in list|s is upper|'ABC' is upper|'abc' is lower|range is callable
range(3);list|range(2, 8, 3);list|range(5, 0, -2);list|range(0);list|namespace(a=1).a|dict(a=1, b=2)|raise_exception('no')|"a" "b" 'c'|'\\u00e9\\x41\\n'|"\\'"|1_000|nothing + 1|n + 'a'|1 / 0|n % 0|[1] + 1|none + 1|-s|n.x|n[0]|s.x
1 if nothing else 2|nothing ~ 'x'|[nothing]|nothing == nothing|not nothing|nothing or 5|none or 0 or ''|n and s|(n, s);last|('a' ~ 'b');upper|-n;abs|2 + n;string;length|n is defined and s is string|not n is defined
""".replace("|length\n", ";length\n")
TEMPLATES = [
    "{% for x in list %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}",
    "{% for x in list %}\n  {% if x == 1 %}\n    one\n  {% elif x == 2 %}\n    two\n  {% else %}\n    more\n  {% endif %}\n{% endfor %}\nend\n",
    "{%- for x in list -%}\n  {{- x -}}\n{%- endfor -%}\n",
    "a\n  {%+ if yes %}\n b\n  {% endif +%}\n c\n",
    "a {# a comment #}\n  {# another\n#}\nb {#- c -#}\n d\n\n",
    "{{ 'x' }}\n{{ 'y' }}\n",
    "  {{ n }}  \n  {{- n }}  {{ n -}}  \n z",
    "{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in map %}{{ k }}{% endfor %}{% for c in u %}<{{ c }}>{% endfor %}",
    "{% for x in list if x > 1 %}{{ loop.index0 }}{{ x }}{% else %}none{% endfor %}",
    "{% for x in [] %}{{ x }}{% else %}none{% endfor %}{% for x in nothing %}x{% else %}y{% endfor %}",
    "{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in list %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}!",
    "{% for a, b in nested %}{{ a }}-{{ b }} {% endfor %}{% for r in nested %}{% for c in r %}{{ loop.index }}{{ c }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% for x in list %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}{{ loop.first }}{{ loop.revindex }}{% endfor %}",
    "{% set x = 1 %}{% for y in list %}{% set x = x + y %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for y in list %}{% set ns.x = ns.x + y %}{% endfor %}{{ ns.x }}",
    "{% if yes %}{% set z = 5 %}{% endif %}{{ z }}{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t }}",
    "{% set x %}a{{ n }}\n b{% endset %}[{{ x }}]{{ x|length }}",
    "{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(1, c=n) }}|{{ m(b=5, a=6) }}|{{ m() }}",
    "{% set g = 'G' %}{% macro m(x) %}{{ g }}{{ x }}{{ y }}{% endmacro %}{% for y in list %}{{ m(y) }}{% endfor %}",
    "{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(4)|trim }}",
    "{% macro m(x) %}{% set x = x + 1 %}{{ x }}{% endmacro %}{{ m(1) }}{{ m(1) }}{{ x }}",
    "{% macro m(xs) %}{% for x in xs %}{{ x }}{% if x == 1 %}{% break %}{% endif %}{% endfor %}{% endmacro %}{% for x in list %}{{ m(list) }};{% endfor %}",
    "{% generation %}a{{ n }}{% endgeneration %}b{% for x in list %}{% generation %}{{ x }}{% endgeneration %},{% endfor %}",
    "{% set q = [] %}{% for x in list %}{% set q = q + [x] %}{% endfor %}{{ q }}",
    "{{ {'a': {'b': 1}}.a.b }}{{ {'a': 1}['a'] }}{{ [1, 2][1] }}{{ {} }}",
    "{{ '{{ x }}' }}{{ \"{% y %}\" }}",
    "{% if n > 3 and not (s == 'x' or no) and 'a' in words %}y{% else %}n{% endif %}",
    "{%if n%}\r\na\r\n{%endif%}\r\nb",
    "{% set c = 'x' if no else none %}{{ c }}{{ c is none }}",
    "{{ s.split(' ')[0] }}{{ s.split('l')|last }}{{ (s ~ u)[4:] | trim }}",
    "{% set messages = rows[1:] %}{{ messages|length }}{{ messages[0]['k'] }}{{ rows[-1].v is defined }}",
]


def render(template):
    try:
        return {"template": template, "text": compiled(template).render(**json.loads(json.dumps(VARIABLES)))}
    except Exception:  # whatever Jinja, Python or the template raises
        return {"template": template, "error": True}


def conversations():
    r = random.Random(1)
    words = "the mill grinds grain été 中文 <b> \"q\" it's a\\b \n new  \t".split(" ")
    w = lambda n: " ".join(r.choice(words) for _ in range(r.randint(1, n)))  # noqa: E731
    tool = {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": {
        "type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "Where"}, "days": {"type": "integer"},
            "unit": {"type": "string", "enum": ["c", "f"]}, "more": {"type": "array", "items": {"type": "string"}}}}}}
    for i in range(40):
        m = [{"role": "system", "content": w(6)}] if i % 3 == 0 else []
        for k in range(1 + i % 3):
            m.append({"role": "user", "content": " " * (i % 4 == 0) + w(9)})
            a = {"role": "assistant", "content": w(20) + "\n" * (i % 5 == 0)}
            if i % 7 == 3:
                a["content"] = "<think>\n" + w(5) + "\n</think>\n\n" + a["content"]
            if i % 7 in (4, 5):
                a["reasoning_content" if i % 7 == 4 else "thinking"] = w(5)
            if i % 6 == 5 and k == 0:
                arguments = {"city": w(2), "days": 3, "x": [1, 2.5, None, True]}
                a["tool_calls"] = [{"type": "function", "id": "call_12345", "function": {"name": "weather", "arguments": arguments}}]
                a["content"] = "" if i % 12 == 5 else a["content"]
                m += [a, {"role": "tool", "name": "weather", "tool_call_id": "call_12345", "content": '{"t": 21}'}]
                a = {"role": "assistant", "content": w(5)}
            m.append(a)
        if i % 11 == 7:
            m[-1]["content"] = [{"type": "text", "text": w(4)}, {"type": "text", "text": w(4)}]
        c = {"messages": m[:-1] if i % 9 == 8 else m, "tools": [tool] if i % 4 == 1 else None,
             "chat_template_kwargs": {"add_generation_prompt": i % 5 == 1}}
        if i % 10 == 7:
            c["chat_template_kwargs"]["enable_thinking"] = False
        yield c


def compare(folder):
    all_of, same, raised = 0, 0, 0
    tokens = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    some = list(conversations())
    files = sorted(glob.glob(folder + "/*.jinja"))
    beside = tempfile.mkdtemp()
    shutil.copy("tests/data/train/sft/tokenizer.json", beside)
    json.dump(tokens, open(beside + "/tokenizer_config.json", "w"))
    for file in files:
        lines = "".join(json.dumps(c, ensure_ascii=False) + "\n" for c in some).encode()
        got = subprocess.run(["build/bin/quern-tokenizer", "chat", "-q", "--tokenizer", beside, "--chat-template", file, "--chat-date",
                              datetime.date.today().isoformat(), "--loss-on", "all"], input=lines, stdout=subprocess.PIPE)
        got = iter(json.loads(x)[0] for x in got.stdout.decode().split("\n") if x)
        template = compiled(open(file).read())
        for c in some:
            c = json.loads(json.dumps(c))
            more = c.pop("chat_template_kwargs")
            all_of += 1
            try:
                want = template.render(documents=None, **c, **more, **tokens)
            except Exception:  # it has no line then
                raised += 1
                continue
            same += next(got, None) == want
        same -= sum(1 for _ in got)  # a line too many
    print(f"{same} of {all_of - raised} texts of {len(files)} templates are the same; {raised} more are errors")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--compare"]:
        compare(sys.argv[2])
    else:
        print(json.dumps(VARIABLES, ensure_ascii=False))
        small = [x.replace(";", "|") for line in EXPRESSIONS.split("\n") if line for x in line.split("|")]
        for one in ["{{ " + x + " }}" for x in small] + TEMPLATES:
            print(json.dumps(render(one), ensure_ascii=False))
