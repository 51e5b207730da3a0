# Reads what cuobjdump says of kernels and prints what kernels/sass.inc has of each, with tabs:
#     file  kernel  threads  registers  shared  stack  blocks  instructions  loop  hmma  mufu  bar  wide  half  narrow  local
# A line "FILE name" begins a source; then come -res-usage, -elf (which says how many threads a block has) and -sass.
# Without -sass, a row ends with the blocks.  arch: sm_90 or another of LIMITS.
#
# `blocks` are those that a multiprocessor holds at once.  `instructions` are all but NOPs.  `loop` and what follows are counted
# along the hot path: once through each loop that accesses global memory by 16 bytes a thread or stores 8, in kernels without wide
# accesses through those that access it by 8, in kernels of the tensor cores through those with their instructions.  Of the ways
# through a loop the hot one has most such loads, then most instructions of tensor cores, fewest narrower loads and narrow stores
# (ends of rows go element by element), most stores by 8 bytes, most MUFU (elements that count, not those beyond an end), fewest
# instructions (dropout is off).  A kernel without such a loop is counted from its entry to its exit, one without such accesses once through
# its longest loop.  `wide`, `half`, `narrow`: accesses of global memory by 16, 8 and fewer bytes a thread; `local`: all
# instructions that access local memory.

BEGIN {
    WORTHS = 6
    # Of a multiprocessor: warps, blocks, KiB of shared memory.
    LIMITS["sm_80"] = "64 32 164"; LIMITS["sm_90"] = LIMITS["sm_100"] = "64 32 228"; LIMITS["sm_120"] = "48 24 100"
    split(LIMITS[arch], limit, " ")
}

function hex(s,    i, v) {
    s = tolower(s)
    sub(/^0x/, "", s)
    v = 0
    for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
    return v
}
function least(a, b) { return a < b ? a : b }
function up(x, unit) { return int((x + unit - 1) / unit) * unit }

# Blocks of a multiprocessor: four times 16 Ki registers, in units of 8 a thread; shared memory in units of 128 bytes, of which the
# system takes 1 KiB a block.
function resident(threads, regs, shared,    warps, blocks) {
    warps = up(threads, 32) / 32
    blocks = least(limit[2], int(limit[1] / warps))
    if (regs) blocks = least(blocks, int(int(16384 / (up(regs, 8) * 32)) * 4 / warps))
    return least(blocks, int(limit[3] * 1024 / (up(shared, 128) + 1024)))
}

# ---- the graph of basic blocks; instructions are 1 .. n ----

# Counts an instruction as one of block b.
function count(b, op,    bytes) {
    size[b]++
    if (op ~ /^(LDG|LD\.|STG|ST\.)/) { # LDGSTS is cp.async
        bytes = op ~ /\.128/ ? 16 : op ~ /\.64/ ? 8 : 4
        if (bytes == 16) wide[b]++
        else if (bytes == 8) half[b]++
        else narrow[b]++
        if (bytes == 16 && op ~ /^LD/) wide_loads[b]++
        if (bytes == 8 && op ~ /^LD/) half_loads[b]++
        if (bytes == 8 && op ~ /^ST/) half_stores[b]++
    }
    if (op ~ /^[HIQ]G?MMA/) hmma[b]++
    if (op ~ /^MUFU/) mufu[b]++
    if (op ~ /^BAR/) bar[b]++
    if (op ~ /^(LDL|STL)/) local_n++
}
function edge(from, to) {
    if (to == "" || index(succ[from], " " to " ")) return
    succ[from] = (succ[from] == "" ? " " : succ[from]) to " "
    pred[to] = (pred[to] == "" ? " " : pred[to]) from " "
}
# Where the BSYNC i goes on: with the next instruction if a BSSY of its barrier says so, else where the last one before it says.
function joins(i,    k, to) {
    to = i + 1
    for (k = 1; k <= n; k++) {
        if (kind[k] != "BSSY" || barrier[k] != barrier[i]) continue
        if (target[k] == i || target[k] == i + 1) return i + 1
        if (k < i) to = target[k]
    }
    return to
}
# Cuts instructions into blocks and joins these.
function cut(    i, b, begins, next_one) {
    for (i = 1; i <= n; i++)
        if (target[i] != "") target[i] = target[i] in number ? number[target[i]] : n + 1
    for (i = 1; i <= n; i++)
        if (kind[i] == "BSYNC") target[i] = joins(i)
    begins[1] = 1
    for (i = 1; i <= n; i++)
        if (kind[i] != "" && kind[i] != "BSSY") { begins[i + 1] = 1; begins[target[i]] = 1 }
    blocks_n = 0
    for (i = 1; i <= n; i++) {
        if (i in begins) blocks_n++
        block_of[i] = blocks_n
        count(blocks_n, opcode[i])
    }
    for (i = 1; i <= n; i++) {
        if (i < n && block_of[i + 1] == block_of[i]) continue
        b = block_of[i]
        next_one = i < n ? block_of[i + 1] : ""
        if ((kind[i] == "BRA" || kind[i] == "BSYNC") && target[i] <= n) edge(b, block_of[target[i]])
        if (kind[i] == "" || kind[i] == "BSSY" || guarded[i]) edge(b, next_one)
    }
}
# Blocks that are reached, in postorder; edges that go back to a block on the way to them, which is the head of a loop.
function walk(    b, top, stack, at, list, k, s) {
    stack[top = 1] = 1
    seen[1] = 1
    while (top) {
        b = stack[top]
        k = split(succ[b], list, " ")
        if (++at[b] > k) { seen[b] = 2; post[++posts] = b; top--; continue }
        s = list[at[b]]
        if (seen[s] == 1) {
            back[b, s] = 1
            if (!(s in members)) { members[s] = 0; heads[++loops] = s }
        } else if (!seen[s]) {
            seen[s] = 1
            stack[++top] = s
        }
    }
}
# Takes block b into the loop with head h; stack grows by it.
function enter(h, b) {
    if (!seen[b] || (h, b) in inside) return
    inside[h, b] = 1
    members[h]++
    if (b != h) todo[++todo_n] = b
}
# The blocks of each loop: those that lead back to its head; owner[b] is the head of the smallest loop that b is of.
function nest(    i, h, b, k, j, list) {
    for (i = 1; i <= loops; i++) {
        h = heads[i]
        enter(h, h)
        for (b = 1; b <= blocks_n; b++)
            if ((b, h) in back) enter(h, b)
        while (todo_n) {
            k = split(pred[todo[todo_n--]], list, " ")
            for (j = 1; j <= k; j++) enter(h, list[j])
        }
    }
    for (b = 1; b <= blocks_n; b++)
        for (i = 1; i <= loops; i++) {
            h = heads[i]
            if ((h, b) in inside && (!(b in owner) || members[h] < members[owner[b]])) owner[b] = h
        }
}

# ---- the hot path ----

# What makes a way through block b better, the first thing first.
function worth(b, what) {
    if (what == 1) return by_wide ? wide_loads[b] : half_loads[b]
    if (what == 2) return hmma[b]
    if (what == 3) return -(narrow[b] + (by_wide ? half_loads[b] : 0))
    if (what == 4) return half_stores[b]
    if (what == 5) return mufu[b]
    return -size[b]
}
# Whether the way on from block a is better than that from b.
function better(a, b,    i) {
    for (i = 1; i <= WORTHS; i++)
        if (far[a, i] != far[b, i]) return far[a, i] > far[b, i]
    return 0
}
# The best way on from each block to an exit (h is "") or back to the head h.
function ways(h,    i, j, b, s, k, list, best, ends) {
    split("", far); split("", leads); split("", on)
    for (i = 1; i <= posts; i++) {
        b = post[i]
        if (h != "" && !((h, b) in inside)) continue
        best = ""
        ends = h == "" ? succ[b] == "" : (b, h) in back
        k = split(succ[b], list, " ")
        for (j = 1; j <= k; j++) {
            s = list[j]
            if (!((b, s) in back) && s in leads && (best == "" || better(s, best))) best = s
        }
        if (best == "" && !ends) continue
        if (ends && best != "" && far[best, 1] + far[best, 2] == 0) best = ""
        leads[b] = 1
        on[b] = best
        for (j = 1; j <= WORTHS; j++) far[b, j] = worth(b, j) + (best == "" ? 0 : far[best, j])
    }
}
# Whether block b has what makes a loop count.
function counts(b) { return mma ? hmma[b] : by_wide ? wide[b] + half_stores[b] : half[b] }
# Adds the blocks on that way to hot[], each once; if they make the loop one that counts, or always.  What the way is long.
function follow(h, always,    b, n_way, way, i, long) {
    ways(h)
    for (b = h == "" ? 1 : h; b in leads; b = on[b]) {
        way[++n_way] = b
        long += size[b]
        if ((h == "" || owner[b] == h) && counts(b)) always = 1
    }
    for (i = 1; always && i <= n_way; i++) {
        b = way[i]
        if (b in taken) continue
        taken[b] = 1
        hot["loop"] += size[b]; hot["hmma"] += hmma[b]; hot["mufu"] += mufu[b]; hot["bar"] += bar[b]
        hot["wide"] += wide[b]; hot["half"] += half[b]; hot["narrow"] += narrow[b]
    }
    return long
}
function hottest(    i, b, long, longest, any) {
    split("", hot); split("", taken)
    mma = by_wide = 0
    for (b = 1; b <= blocks_n; b++) {
        mma += hmma[b]
        by_wide += wide[b]
        any += wide[b] + half[b]
    }
    for (i = 1; i <= loops; i++) {
        long = follow(heads[i], 0)
        if (long > longest) longest = long
    }
    if (hot["loop"]) return
    if (any || !longest) follow("", 1)
    else hot["loop"] = longest
}

# ---- kernels and sources ----

function forget() {
    n = loops = posts = local_n = 0
    split("", size); split("", wide); split("", half); split("", narrow); split("", wide_loads); split("", half_loads); split("", half_stores); split("", hmma); split("", mufu)
    split("", bar); split("", succ); split("", pred); split("", back); split("", inside); split("", members); split("", owner)
    split("", seen); split("", target); split("", barrier); split("", kind); split("", guarded); split("", number)
}
function end_kernel() {
    if (kernel != "" && n) {
        cut(); walk(); nest(); hottest()
        code[kernel] = sprintf("%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d", n, hot["loop"], hot["hmma"], hot["mufu"], hot["bar"],
                               hot["wide"], hot["half"], hot["narrow"], local_n)
    }
    forget()
    kernel = ""
}
function end_file(    k) {
    end_kernel()
    for (k in regs)
        printf "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", file, k, threads[k], regs[k], shared[k], stack_of[k],
            threads[k] ? resident(threads[k], regs[k], shared[k]) : 0, code[k]
    split("", code); split("", threads); split("", regs); split("", shared); split("", stack_of)
}
/^FILE / { end_file(); file = $2; next }
END { end_file() }

/^[ \t]*Function : / { end_kernel(); kernel = $3; next }
/^[ \t]*Function [^ ]+:$/ { name = substr($2, 1, length($2) - 1); next }
/^ *REG:[0-9]+ / {
    for (i = 1; i <= NF; i++) {
        split($i, part, ":")
        if (part[1] == "REG") regs[name] = part[2]
        if (part[1] == "STACK") stack_of[name] = part[2]
        if (part[1] == "SHARED") shared[name] = part[2]
    }
    next
}
/^\.nv\.info\./ { info = substr($1, 10); next }
/EIATTR_MAX_THREADS/ { wanted = 1; next }
wanted && /Value:/ { threads[info] = hex($2) * hex($3) * hex($4); wanted = 0; next }

# An instruction: its address, guard, opcode, operands.
kernel != "" && /^ +\/\*[0-9a-f]+\*\/ / {
    address = hex(substr($1, 3, length($1) - 4))
    text = $0
    sub(/ *;.*/, "", text)
    sub(/^ +\/\*[0-9a-f]+\*\/ +/, "", text)
    words = split(text, word, " ")
    first = word[1] ~ /^@/ ? 2 : 1
    op = word[first]
    if (op == "NOP") { number[address] = n + 1; next }
    number[address] = ++n
    opcode[n] = op
    guarded[n] = first == 2
    if (op ~ /^(BRA|JMP)/) {
        kind[n] = "BRA"
        target[n] = hex(word[words])
        if (words > first + 1) guarded[n] = 1 # a predicate among the operands
    } else if (op ~ /^(EXIT|RET|BRX|JMX|KILL)/) {
        kind[n] = "EXIT"
    } else if (op ~ /^(BSSY|BSYNC)/) {
        kind[n] = op ~ /^BSSY/ ? "BSSY" : "BSYNC"
        barrier[n] = word[first + 1]
        sub(/,$/, "", barrier[n])
        if (kind[n] == "BSSY") target[n] = hex(word[words])
    }
}
