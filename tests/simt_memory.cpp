#include "tests/simt_memory.h"

#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>

namespace {

enum : size_t { PAGE = 4096, LARGE = 1 << 20, LEAST = (size_t)1 << 28, FIRST = 1 << 20 }; // FIRST: what is before it is ours too
#if TSAN
enum : size_t { MOST = (size_t)2 << 30 }; // it keeps a shadow of all
#else
enum : size_t { MOST = (size_t)64 << 30 };
#endif

struct block {
    size_t pages, first, bytes; // of the range; where it begins in them
};

/* Two ranges of the same size: addresses, and what they stand for.  By where their pages begin in them. */
struct ranges {
    char *shown, *real;
    size_t size, next = FIRST;
    std::map<size_t, block> blocks;
    std::map<uintptr_t, size_t> pinned;
    std::mutex lock;
};

ranges &memory()
{
    static ranges *all = new ranges(); // never taken away: threads may end after the program does
    return *all;
}

// A word that is a number is to look like no address: where the lower half of one is no small number.
void *reserve(size_t size, uintptr_t about)
{
    void *p = mmap((void *)about, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool reserved(ranges &m)
{
    for (size_t size = MOST; !m.real && size >= LEAST; size /= 2) {
        m.shown = (char *)reserve(size, 0x3a5ac3000000);
        m.real = m.shown ? (char *)reserve(size, 0x3c5ac3000000) : NULL;
        if (!m.real && m.shown)
            munmap(m.shown, size);
        m.size = size;
    }
    return m.real != NULL;
}

// Where `pages` are free, from the last block on, so that what was freed is not used again at once; m.size: nowhere.
size_t find(ranges &m, size_t pages)
{
    for (int round = 0; round < 2; round++) {
        size_t at = round ? (size_t)FIRST : m.next;
        for (auto b = m.blocks.lower_bound(at); b != m.blocks.end() && b->first < at + pages; ++b)
            at = b->first + b->second.pages;
        if (at + pages <= m.size)
            return at;
    }
    return m.size;
}

[[noreturn]] __attribute__((format(printf, 1, 2))) void stop(const char *fmt, ...)
{
    char text[700];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "simt: %s\n", text);
    abort();
}

// The block that `at` bytes into a range lie in or, if they lie in none, are near to; or end().
std::map<size_t, block>::iterator near(ranges &m, size_t at)
{
    auto after = m.blocks.upper_bound(at);

    if (after != m.blocks.begin()) {
        auto before = std::prev(after);
        size_t end = before->first + before->second.pages;
        if (after == m.blocks.end() || at < end || at - end < after->first - at)
            return before;
    }
    return after;
}

// Where so many bytes into a range are, in words.
const char *described(size_t at, char text[simt::WORDS])
{
    ranges &m = memory();
    auto b = near(m, at);

    if (b == m.blocks.end())
        return "where no memory of the device is";
    long long off = (long long)at - (long long)(b->first + b->second.first), bytes = (long long)b->second.bytes;
    snprintf(text, simt::WORDS, "byte %lld of a block of %lld bytes%s", off, bytes,
             off < 0 || off >= bytes ? ", or what was freed beside it" : "");
    return text;
}

bool inside(const void *p, const char *range)
{
    return range && (size_t)((const char *)p - range) < memory().size;
}

bool pinned(const void *p, size_t bytes)
{
    ranges &m = memory();
    std::lock_guard<std::mutex> hold(m.lock);
    auto b = m.pinned.upper_bound((uintptr_t)p);

    if (b == m.pinned.begin())
        return false;
    --b;
    return (uintptr_t)p - b->first <= b->second && bytes <= b->second - ((uintptr_t)p - b->first);
}

// Argument number i as the launch has it.
std::string written(const simt::site &of, int i)
{
    const char *p = of.arguments, *from = p;
    int depth = 0;

    for (; *p; p++) {
        depth += (*p == '(' || *p == '[' || *p == '{') - (*p == ')' || *p == ']' || *p == '}');
        if (*p == ',' && depth == 0) {
            if (i-- == 0)
                break;
            from = p + 1;
        }
    }
    while (*from == ' ')
        from++;
    return std::string(from, (size_t)(p - from));
}

/* ---- who touches what is not his ---- */

struct sigaction before;

void fault(int, siginfo_t *info, void *)
{
    ranges &m = memory();
    const char *at = (const char *)info->si_addr, *who = "a copy, or a library's stand-in";
    const simt::site *of = simt::m.of;
    bool running = simt::running && of;
    char words[simt::WORDS], where[simt::WORDS];

    if (running)
        who = simt::name_of(*of, words);
    if (inside(at, m.shown) && !running)
        stop("the host touches memory of the device, %p: %s", at, described((size_t)(at - m.shown), where));
    if (inside(at, m.shown))
        stop("%s follows an address of the device that it has not from its arguments, %p: %s", who, at,
             described((size_t)(at - m.shown), where));
    if (inside(at, m.real))
        stop("%s touches what is not there: %s", who, described((size_t)(at - m.real), where));
    if (running && info->si_code == SI_KERNEL)
        stop("%s follows a pointer to the host's memory, within one of its arguments: %s", who, of->arguments);
    sigaction(SIGSEGV, &before, NULL); // not ours: as it would have been
}

/* ---- arguments ---- */

// Whether it is an address of the host's, as far as can be seen.
bool of_the_host(uintptr_t word)
{
    return word >= (uintptr_t)0x500000000000 && word < (uintptr_t)1 << 47 && (uint32_t)word >= 1 << 20 &&
           msync((void *)(word & ~(uintptr_t)(PAGE - 1)), 1, MS_ASYNC) == 0;
}

} // namespace

extern "C" void simt_watch(void)
{
    struct sigaction now = {}, was;

    now.sa_sigaction = fault;
    now.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &now, &was);
    if (was.sa_sigaction != fault)
        before = was;
}

extern "C" void *simt_memory_new(size_t bytes)
{
    ranges &m = memory();
    std::lock_guard<std::mutex> hold(m.lock);
    size_t align = bytes >= LARGE ? (size_t)PAGE : 256, used = (bytes + align - 1) / align * align;
    size_t pages = (used + PAGE - 1) / PAGE * PAGE, at;

    simt_watch();
    if (bytes > MOST || !reserved(m) || (at = find(m, pages + PAGE)) == m.size)
        return NULL;
    if (pages && mprotect(m.real + at, pages, PROT_READ | PROT_WRITE) != 0)
        return NULL;
#if ASAN
    ASAN_UNPOISON_MEMORY_REGION(m.real + at, pages);
#endif
    memset(m.real + at, 0xff, pages);
#if ASAN
    ASAN_POISON_MEMORY_REGION(m.real + at, pages - used);
    ASAN_POISON_MEMORY_REGION(m.real + at + pages - used + bytes, used - bytes);
#endif
    m.blocks[at] = {pages + PAGE, pages - used, bytes};
    m.next = at + pages + PAGE;
    return m.shown + at + pages - used;
}

extern "C" void simt_memory_free(void *p)
{
    ranges &m = memory();
    std::lock_guard<std::mutex> hold(m.lock);
    size_t at = (size_t)((char *)p - m.shown);
    auto b = m.blocks.upper_bound(at);

    if (!p)
        return;
    if (!inside(p, m.shown) || b == m.blocks.begin() || (--b)->first + b->second.first != at)
        stop("%p is freed, which is no block of the device", p);
    if (b->second.pages > PAGE) {
        madvise(m.real + b->first, b->second.pages - PAGE, MADV_DONTNEED);
        mprotect(m.real + b->first, b->second.pages - PAGE, PROT_NONE);
    }
    m.blocks.erase(b);
}

extern "C" void *simt_pinned_new(size_t bytes)
{
    ranges &m = memory();
    void *p = aligned_alloc(256, bytes / 256 * 256 + 256);
    std::lock_guard<std::mutex> hold(m.lock);

    if (!p)
        return NULL;
    memset(p, 0xff, bytes);
    m.pinned[(uintptr_t)p] = bytes;
    return p;
}

extern "C" void simt_pinned_free(void *p)
{
    ranges &m = memory();

    {
        std::lock_guard<std::mutex> hold(m.lock);
        if (p && !m.pinned.erase((uintptr_t)p))
            stop("%p is freed, which is no pinned memory", p);
    }
    free(p);
}

extern "C" void *simt_place(const void *p, size_t bytes, const char *what)
{
    ranges &m = memory();
    size_t at = (size_t)((const char *)p - m.shown);
    char where[simt::WORDS];

    if (!p || pinned(p, bytes))
        return const_cast<void *>(p);
    if (!inside(p, m.shown))
        stop("%s: %p is no memory of the device", what, p);
    std::lock_guard<std::mutex> hold(m.lock);
    auto b = m.blocks.upper_bound(at);
    size_t off = b == m.blocks.begin() ? 0 : at - (--b)->first - b->second.first;
    if (b == m.blocks.end() || at < b->first + b->second.first || off > b->second.bytes || bytes > b->second.bytes - off)
        stop("%s: %zu bytes at %p are not within a block: %s", what, bytes, p, described(at, where));
    return m.real + at;
}

extern "C" void *simt_place_host(const void *p, const char *what)
{
    if (inside(p, memory().shown))
        stop("%s: %p is no memory of the host", what, p);
    return const_cast<void *>(p);
}

void simt::pass_bytes(const site &of, int i, void *value, size_t bytes, bool pointer)
{
    const ranges &all = memory();
    char words[WORDS];

    for (size_t at = 0; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, (char *)value + at, sizeof word);
        if (inside((void *)word, all.shown))
            word = (uintptr_t)(all.real + ((char *)word - all.shown));
        else if (pointer && word && !pinned((void *)word, 0))
            stop("%s is given a pointer that is none of the device's: argument %d, %s", name_of(of, words), i + 1,
                 written(of, i).c_str());
        else if (!pointer && of_the_host(word) && !pinned((void *)word, 0))
            word |= (uintptr_t)1 << 62; // where nothing can be
        memcpy((char *)value + at, &word, sizeof word);
    }
}

/* ---- alignment: what code compiled with -fsanitize=alignment calls ---- */

namespace {
struct type_name {
    uint16_t kind, info;
    char name[1];
};
struct misaligned {
    const char *file;
    uint32_t line, column;
    const type_name *type;
    unsigned char log_alignment, what;
};
} // namespace

// A program that has the sanitizer's own takes that.
extern "C" __attribute__((weak)) void __ubsan_handle_type_mismatch_v1_abort(const misaligned *d, uintptr_t at);
extern "C" void __ubsan_handle_type_mismatch_v1_abort(const misaligned *d, uintptr_t at)
{
    bool running = simt::running && simt::m.of;
    char words[simt::WORDS];

    stop("%s touches %s at %s:%u, %u bytes off its alignment of %u", running ? simt::name_of(*simt::m.of, words) : "the host",
         d->type->name, d->file, d->line, (unsigned)(at & ((1u << d->log_alignment) - 1)), 1u << d->log_alignment);
}
