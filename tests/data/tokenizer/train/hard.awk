# awk -v kind=words|long|same|chinese|code -f hard.awk: a text that is hard to train on, the same each time.
function below(n) {
    seed = seed * 16807 % 2147483647
    return int(seed / 2147483647 * n)
}
function letters(n, s) {
    for (s = ""; n > 0; n--)
        s = s substr("abcdefghijklmnopqrstuvwxyz", 1 + below(26), 1)
    return s
}
BEGIN {
    seed = 1
    if (kind == "words") # hardly one comes twice
        for (i = 1; i <= 40000; i++)
            printf "%s%s", letters(3 + below(10)), i % 12 ? " " : "\n"
    if (kind == "long")
        for (i = 0; i < 600; i++)
            printf "%s", letters(100)
    if (kind == "same")
        for (i = 0; i < 3001; i++)
            printf "a"
    if (kind == "chinese") { # no spaces; the first characters most often
        n = split("的 一 是 不 了 人 我 在 有 他 这 中 大 来 上 国 个 到 说 们 为 子 和 你 地 出 道 也 时 年 得 就 那 要 下 以 生 会 自 着 去 之 过 家 学 对 可 她 里 后", c, " ")
        for (i = 1; i <= 20000; i++)
            printf "%s%s", c[1 + below(1 + below(n))], i % 97 ? "" : i % 2 ? "。\n" : "、"
    }
    if (kind == "code") {
        n = split("if for while return int char size_t ( ) { } ; , = == != -> ++ [i] 0 1 0x7f x y n count name.next \"text\" // /* */", c, " ")
        for (i = 1; i <= 12000; i++)
            printf "%s%s", c[1 + below(n)] (below(3) ? "" : "_" letters(1 + below(3))), below(6) ? (below(3) ? " " : "") : "\n" substr("            ", 1, 4 * below(4))
    }
}
