/* tests/simt.h -- runs the source of a CUDA kernel on the CPU, for tests of its logic.
 *
 * g++ -x c++ -fno-strict-aliasing -include tests/simt.h kernels/NAME.cu
 *
 * Each CUDA thread of a block is a fiber; one operating-system thread runs them all, block after
 * block.  A fiber runs until it waits: for its block at __syncthreads, for lanes of its warp at
 * a shuffle, vote or __syncwarp.  Warps run depth first: one goes on until all of its lanes
 * wait for the block, so warps are as far apart as a GPU may let them get, and a missing
 * barrier gives wrong results.  The order of blocks, warps and lanes is ascending, descending
 * or random (simt_order).  With the thread sanitizer each CUDA thread is one of its fibers, ordered
 * with others only by what orders them on a GPU, so that a race inside a block is reported
 * in whatever order they run; blocks are ordered one after the other there.
 *
 * Asynchronous copies into shared memory (cp.async) come at the last moment, when their thread waits
 * for them; until then NaN is there, so what reads too early, or still needs what was there, is wrong.
 *
 * What stops the program, with a message: a lane that is not in the mask it gives, a
 * shuffle from a lane outside the mask, lanes of one call that give different masks or make
 * different calls, threads of a block at different __syncthreads, threads that wait forever, and a thread that ends
 * before its copies have come; a launch that no GPU would start (tests/simt_launch.cpp); memory that is not the kernel's, or not
 * the host's (tests/simt_memory.h); an address that is not aligned to what is read or written there, in code compiled with
 * -fsanitize=alignment.
 *
 * Instructions that CUDA C++ has no words for are those of tests/ptx.h.
 *
 * Not modelled: clusters and the bulk copies, memory of another order
 * than program order, races between blocks.
 */
#ifndef TESTS_SIMT_H
#define TESTS_SIMT_H

#ifdef __cplusplus
#define SIMT 1

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <functional>
#include <mutex>
#include <type_traits>

#include "tests/ptx.h"
#include "tests/sanitized.h"
#include "tests/simt_memory.h"

#if TSAN
#include <sanitizer/tsan_interface.h>
/* The scheduler's own memory is shared by all fibers: not for the sanitizer's eyes. */
#define SIMT_INNER __attribute__((no_sanitize("thread"), noinline)) inline
#else
#define SIMT_INNER inline
#endif
#if ASAN
#include <sanitizer/asan_interface.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

namespace simt {

enum state : uint8_t { FRESH, READY, AT_BARRIER, AT_WARP, DONE };
enum call : uint8_t { SYNC, SHUFFLE, BALLOT };
enum { STACK = 256 << 10, MOST = 1024, COPIES = 64 };

/* A copy that is on its way. */
struct copy {
    void *to;
    const void *from; /* NULL: zeros */
    int bytes;
    unsigned set;
};

struct fiber {
    void *stack;
#if defined(__x86_64__)
    void *sp;
#else
    ucontext_t context;
#endif
    void *sanitizer;
    uint3 tid;
    int number; /* in the block */
    state at;
    call what; /* at a warp's call */
    uint32_t mask;
    int from;
    uint64_t value, result;
    copy on_its_way[COPIES];
    int copies;
    unsigned sets; /* of copies that have ended */
};

struct simt_machine {
    fiber thread[MOST];
    fiber scheduler;
    fiber *now;
    int n, live, at_barrier, barrier_line;
    unsigned barriers;
    uint3 block;
    dim3 block_dim, grid_dim;
    void (*body)(const void *);
    const void *argument;
    const site *of; /* the launch, if it is one that LAUNCH makes */
    unsigned char *dynamic;
    size_t dynamic_bytes;
    int order; /* 0 ascending, 1 descending, 2 random */
    uint64_t random;
    unsigned calls[MOST / 32][32]; /* done, by warp and first lane of the mask */
    char start, end, barrier[2], warp[MOST / 32][32][2]; /* what the sanitizer synchronises on */
};
inline simt_machine m;
/* This thread of the program runs a kernel. */
inline thread_local bool running;

[[noreturn]] SIMT_INNER void fail(const char *what, int a, int b)
{
    fprintf(stderr, "simt: ");
    fprintf(stderr, what, a, b);
    fprintf(stderr, " (block %u %u %u)\n", m.block.x, m.block.y, m.block.z);
    abort();
}

SIMT_INNER void acquire(char *p)
{
#if TSAN
    __tsan_acquire(p);
#else
    (void)p;
#endif
}
SIMT_INNER void release(char *p)
{
#if TSAN
    __tsan_release(p);
#else
    (void)p;
#endif
}

/* ---- switching ---- */

#if defined(__x86_64__)
/* Saves the registers that a callee must keep on the stack, and goes on with another. */
extern "C" void simt_switch(void **save, void *to);
asm(".weak simt_switch\n"
    "simt_switch:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
    "    movq %rsp, (%rdi)\n    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    ret\n");
#endif

SIMT_INNER void go(fiber *from, fiber *to)
{
#if TSAN
    __tsan_switch_to_fiber(to->sanitizer, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(__x86_64__)
    simt_switch(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
}

SIMT_INNER void wait(state why)
{
    m.now->at = why;
    go(m.now, &m.scheduler);
}

/* ---- the block's barrier ---- */

SIMT_INNER void open_barrier()
{
    for (int i = 0; i < m.n; i++)
        if (m.thread[i].at == AT_BARRIER)
            m.thread[i].at = READY;
    m.at_barrier = 0;
    m.barriers++;
}

SIMT_INNER void barrier(int line)
{
    char *sync = &m.barrier[m.barriers & 1];

    if (m.at_barrier == 0)
        m.barrier_line = line;
    else if (m.barrier_line != line)
        fail("threads of a block wait at different __syncthreads, lines %d and %d", m.barrier_line, line);
    release(sync);
    if (++m.at_barrier == m.live)
        open_barrier();
    else
        wait(AT_BARRIER);
    acquire(sync);
}

/* ---- the warp's calls ---- */

/* The call that lane `one` waits in, if all living lanes of its mask have come: gives each its result. */
SIMT_INNER void complete(fiber *warp, int lanes, int one)
{
    uint32_t mask = warp[one].mask;
    uint64_t ballot = 0;

    for (int i = 0; i < lanes; i++) {
        const fiber *f = &warp[i];
        if (!(mask >> i & 1) || f->at == DONE)
            continue;
        if (f->at != AT_WARP || f->mask != mask)
            return;
        if (f->what != warp[one].what)
            fail("lanes %d and %d of a warp make different calls", one, i);
        ballot |= (uint64_t)(f->value != 0) << i;
    }
    for (int i = 0; i < lanes; i++) {
        fiber *f = &warp[i];
        if (!(mask >> i & 1) || f->at == DONE)
            continue;
        if (f->what == SHUFFLE && (f->from >= lanes || !(mask >> f->from & 1) || warp[f->from].at == DONE))
            fail("lane %d shuffles from lane %d, which is not in the call", i, f->from);
        f->result = f->what == SHUFFLE ? warp[f->from].value : ballot;
    }
    for (int i = 0; i < lanes; i++)
        if (mask >> i & 1 && warp[i].at != DONE)
            warp[i].at = READY;
    m.calls[warp->number / 32][__builtin_ctz(mask)]++;
}

SIMT_INNER uint64_t warp_call(call what, uint32_t mask, uint64_t value, int from)
{
    fiber *f = m.now, *warp = &m.thread[f->number & ~31];
    int lane = f->number & 31, lanes = m.n - (f->number & ~31) < 32 ? m.n & 31 : 32;
    int w = f->number / 32, first = mask ? __builtin_ctz(mask) : 0;
    char *sync = &m.warp[w][first][m.calls[w][first] & 1];

    if (!(mask >> lane & 1))
        fail("lane %d is not in the mask that it gives, %x", lane, (int)mask);
    release(sync);
    f->what = what;
    f->mask = mask;
    f->value = value;
    f->from = from;
    f->at = AT_WARP;
    complete(warp, lanes, lane);
    if (f->at == AT_WARP)
        go(f, &m.scheduler);
    f->at = READY;
    acquire(sync);
    return f->result;
}

/* ---- asynchronous copies ---- */

inline void copy_begin(void *to, const void *from, int bytes)
{
    fiber *f = m.now;

    if (f->copies == COPIES)
        fail("thread %d has more than %d copies on their way", f->number, COPIES);
    if ((uintptr_t)to % (unsigned)bytes || (uintptr_t)from % (unsigned)bytes)
        fail("thread %d copies %d bytes that are not aligned", f->number, bytes);
    f->on_its_way[f->copies++] = {to, from, bytes, f->sets};
    memset(to, 0xff, (size_t)bytes);
}

/* What ldmatrix reads: 16 bytes. */
inline void whole_row(const void *row)
{
    if ((uintptr_t)row % 16)
        fail("thread %d reads a row of a matrix that is not aligned to %d bytes", m.now->number, 16);
}

inline void copy_commit() { m.now->sets++; }

/* Those of all the thread's sets come but of the last `but`, and, but being 0, those of no set. */
inline void copy_wait_but(unsigned but)
{
    fiber *f = m.now;
    int left = 0;

    for (int i = 0; i < f->copies; i++) {
        const copy c = f->on_its_way[i];
        if (but && c.set + but >= f->sets)
            f->on_its_way[left++] = c;
        else if (c.from)
            memcpy(c.to, c.from, (size_t)c.bytes);
        else
            memset(c.to, 0, (size_t)c.bytes);
    }
    f->copies = left;
}

/* All of the thread's come. */
inline void copy_wait() { copy_wait_but(0); }

/* ---- a block ---- */

SIMT_INNER void entry()
{
    fiber *f, *warp;

    acquire(&m.start);
    m.body(m.argument);
    release(&m.end);
    f = m.now;
    if (f->copies)
        fail("thread %d ends with %d copies on their way", f->number, f->copies);
    warp = &m.thread[f->number & ~31];
    f->at = DONE;
    m.live--;
    if (m.at_barrier && m.at_barrier == m.live)
        open_barrier();
    for (int i = 0; i < 32 && (f->number & ~31) + i < m.n; i++)
        if (warp[i].at == AT_WARP)
            complete(warp, m.n - (f->number & ~31) < 32 ? m.n & 31 : 32, i);
    go(f, &m.scheduler);
    abort();
}

SIMT_INNER void prepare(fiber *f)
{
    if (!f->stack) {
        f->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (f->stack == MAP_FAILED)
            fail("no memory for a stack", 0, 0);
        mprotect(f->stack, 4096, PROT_NONE);
    }
#if ASAN
    ASAN_UNPOISON_MEMORY_REGION((char *)f->stack + 4096, STACK - 4096);
#endif
#if TSAN
    if (!f->sanitizer)
        f->sanitizer = __tsan_create_fiber(0);
#endif
#if defined(__x86_64__)
    void **top = (void **)((char *)f->stack + STACK - 64);
    *--top = NULL; /* entry never returns; the stack is as after a call */
    *--top = (void *)entry;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    f->sp = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = NULL;
    makecontext(&f->context, (void (*)())entry, 0);
#endif
}

SIMT_INNER int random_below(int n)
{
    m.random = m.random * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((m.random >> 33) % (uint64_t)n);
}

/* order[] becomes 0 .. n - 1 in the order asked for. */
SIMT_INNER void arrange(int *order, int n)
{
    for (int i = 0; i < n; i++)
        order[i] = m.order == 1 ? n - 1 - i : i;
    for (int i = n - 1; i > 0 && m.order == 2; i--) {
        int j = random_below(i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

/* Runs a warp until no lane of it can go on; false: none could. */
SIMT_INNER bool run_warp(int w)
{
    int lanes = m.n - w * 32 < 32 ? m.n - w * 32 : 32, order[32];
    bool any = false;

    for (bool more = true; more;) {
        more = false;
        arrange(order, lanes);
        for (int i = 0; i < lanes; i++) {
            fiber *f = &m.thread[w * 32 + order[i]];
            if (f->at != FRESH && f->at != READY)
                continue;
            if (f->at == FRESH)
                prepare(f);
            f->at = READY;
            m.now = f;
            go(&m.scheduler, f);
            any = more = true;
        }
    }
    return any;
}

SIMT_INNER void run_block()
{
    int warps = (m.n + 31) / 32, order[MOST / 32];

    m.live = m.n;
    m.at_barrier = 0;
    for (int i = 0; i < m.n; i++) {
        fiber *f = &m.thread[i];
        unsigned x = (unsigned)i % m.block_dim.x, yz = (unsigned)i / m.block_dim.x;
        f->tid = {x, yz % m.block_dim.y, yz / m.block_dim.y};
        f->number = i;
        f->at = FRESH;
        f->copies = 0;
        f->sets = 0;
    }
    release(&m.start);
    while (m.live) {
        bool any = false;
        arrange(order, warps);
        for (int i = 0; i < warps; i++)
            any |= run_warp(order[i]);
        if (!any)
            fail("%d threads wait forever, %d of them at __syncthreads", m.live, m.at_barrier);
    }
    acquire(&m.end);
}

/* ---- a grid ---- */

template <class F> void body_of(const void *f) { (*static_cast<const F *>(f))(); }

SIMT_INNER void run_grid(dim3 grid, dim3 block, size_t dynamic_bytes)
{
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;

    m.n = (int)(block.x * block.y * block.z);
    if (blocks == 0 || m.n == 0 || m.n > MOST)
        fail("a launch with %d threads a block cannot be, or the grid is empty", m.n, 0);
    running = true;
    m.block_dim = block;
    m.grid_dim = grid;
    m.dynamic_bytes = dynamic_bytes;
    m.dynamic = (unsigned char *)aligned_alloc(128, (dynamic_bytes + 128) / 128 * 128);
#if TSAN
    m.scheduler.sanitizer = __tsan_get_current_fiber();
#endif
    for (uint64_t i = 0; i < blocks; i++) {
        uint64_t b = m.order == 1 ? blocks - 1 - i : i;
        m.block = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        memset(m.dynamic, 0xff, dynamic_bytes); /* NaN, or a number out of all bounds */
        run_block();
    }
    free(m.dynamic);
    running = false;
}

template <class F> void launch(const site *of, dim3 grid, dim3 block, size_t dynamic_bytes, const F &f)
{
    m.body = body_of<F>;
    m.argument = &f;
    m.of = of;
    run_grid(grid, block, dynamic_bytes);
}

/* tests/simt_launch.cpp: stops the program where no GPU would launch this. */
void check_launch(const site &of, dim3 grid, dim3 block, size_t dynamic, size_t parameters);

/* Takes work that a GPU would queue; unset, it is done at once. */
inline void (*queue)(std::function<void()> work);
/* How often there was some.  Whether it is being recorded, and how many recordings there are: no scratch that they know may
 * go. */
inline long queued;
inline bool recording;
inline int recordings;

/* Several threads may queue work, as on a GPU; here they take turns. */
inline std::recursive_mutex turn;

inline void in_stream(std::function<void()> work)
{
    std::lock_guard<std::recursive_mutex> mine(turn);

    queued++;
    if (queue)
        queue(work);
    else
        work();
}

template <class T> void pass(const site &of, int i, T &value)
{
    static_assert(std::is_trivially_copyable<T>::value, "a launch copies the bytes of its arguments");
    if (alignof(T) >= sizeof(void *))
        pass_bytes(of, i, &value, sizeof value, std::is_pointer<T>::value);
}

/* A kernel with its grid; called, it keeps the arguments' values, as a launch does, with the device's addresses as the kernel
 * needs them. */
template <class... P> struct launcher {
    void (*kernel)(P...);
    dim3 grid, block;
    size_t dynamic;
    site of;
    void operator()(P... p) const
    {
        std::lock_guard<std::recursive_mutex> mine(turn);
        launcher l = *this;
        int i = 0;

        l.of.kernel = (const void *)kernel;
        check_launch(l.of, grid, block, dynamic, (sizeof p + ... + 0));
        (pass(l.of, i++, p), ...);
        in_stream([=] { launch(&l.of, l.grid, l.block, l.dynamic, [&] { l.kernel(p...); }); });
    }
};
template <class... P> launcher<P...> launcher_of(void (*kernel)(P...), dim3 grid, dim3 block, size_t dynamic, site of)
{
    return {kernel, grid, block, dynamic, of};
}

SIMT_INNER uint3 tid() { return m.now->tid; }
SIMT_INNER uint3 block_at() { return m.block; }
SIMT_INNER dim3 block_size() { return m.block_dim; }
SIMT_INNER dim3 grid_size() { return m.grid_dim; }
SIMT_INNER int lane() { return m.now->number & 31; }

template <class T> T shuffle(uint32_t mask, T v, int from)
{
    uint64_t bits = 0;

    static_assert(sizeof v <= sizeof bits, "shuffles are of 8 bytes at most");
    memcpy(&bits, &v, sizeof v);
    bits = warp_call(SHUFFLE, mask, bits, from);
    memcpy(&v, &bits, sizeof v);
    return v;
}
/* The other lane if it is in the caller's group of `width`, else the caller itself. */
inline int within(int to, int width)
{
    return to >= 0 && to / width == lane() / width ? to : lane();
}

template <class T, class F> T change(T *p, F f)
{
    T old = __atomic_load_n(p, __ATOMIC_RELAXED), v;

    do
        v = f(old);
    while (!__atomic_compare_exchange_n(p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
template <class T> using same = typename std::common_type<T>::type; /* no deduction from this argument */

} // namespace simt

/* 0: ascending; 1: descending; 2: random from the seed. */
inline void simt_order(int order, uint64_t seed)
{
    simt::m.order = order;
    simt::m.random = seed;
}

/* ---- CUDA's words ---- */

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#if defined(__x86_64__) && !defined(__clang__)
/* A no-op for each warp in front of the kernel, where tests/simt_launch.cpp counts them. */
#define SIMT_BOUNDS 1
#define SIMT_FIRST(a, ...) a
#define __launch_bounds__(...) __attribute__((patchable_function_entry((SIMT_FIRST(__VA_ARGS__, 0)) / 32)))
#else
#define __launch_bounds__(...)
#endif
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define SIMT_DYNAMIC_SHARED(T, name) T *name = (T *)simt::m.dynamic
/* At once, on memory of the host. */
#define SIMT_LAUNCH(kernel, grid, block, dynamic, ...) \
    simt::launch(NULL, grid, block, dynamic, [&] { kernel(__VA_ARGS__); })
#define SIMT_LAUNCHER(kernel, grid, block, dynamic, ...) \
    simt::launcher_of((kernel), grid, block, dynamic, {__FILE__, __LINE__, #__VA_ARGS__, NULL})
#define LAUNCH(kernel, grid, block, dev, ...) ((void)(dev), SIMT_LAUNCHER(kernel, grid, block, 0, __VA_ARGS__)(__VA_ARGS__))

#define threadIdx (simt::tid())
#define blockIdx (simt::block_at())
#define blockDim (simt::block_size())
#define gridDim (simt::grid_size())
#define warpSize 32
#define __syncthreads() simt::barrier(__LINE__)

inline void __syncwarp(unsigned mask = ~0u) { simt::warp_call(simt::SYNC, mask, 0, 0); }
inline unsigned __ballot_sync(unsigned mask, int p) { return (unsigned)simt::warp_call(simt::BALLOT, mask, p != 0, 0); }
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }
template <class T> T __shfl_sync(unsigned mask, T v, int from, int width = 32)
{
    return simt::shuffle(mask, v, simt::lane() / width * width + from % width);
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int with, int width = 32)
{
    return simt::shuffle(mask, v, simt::within(simt::lane() ^ with, width));
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32)
{
    return simt::shuffle(mask, v, simt::within(simt::lane() + (int)by, width));
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32)
{
    return simt::shuffle(mask, v, simt::within(simt::lane() - (int)by, width));
}

template <class T> T atomicAdd(T *p, simt::same<T> v) { return simt::change(p, [=](T o) { return (T)(o + v); }); }
template <class T> T atomicMin(T *p, simt::same<T> v) { return simt::change(p, [=](T o) { return o < v ? o : v; }); }
template <class T> T atomicMax(T *p, simt::same<T> v) { return simt::change(p, [=](T o) { return o > v ? o : v; }); }
template <class T> T atomicOr(T *p, simt::same<T> v) { return simt::change(p, [=](T o) { return (T)(o | v); }); }
template <class T> T atomicExch(T *p, simt::same<T> v) { return simt::change(p, [=](T) { return v; }); }
template <class T> T atomicCAS(T *p, simt::same<T> want, simt::same<T> v)
{
    return simt::change(p, [=](T o) { return o == want ? v : o; });
}
inline void __threadfence() { __asm__ volatile("" ::: "memory"); } /* one thread runs them all */

inline unsigned __float_as_uint(float x)
{
    unsigned u;
    memcpy(&u, &x, 4);
    return u;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which) { return ptx_prmt_b32(a, b, which); }
inline float __uint_as_float(unsigned u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}
template <class T> T __ldg(const T *p) { return *p; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline uint64_t __umul64hi(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}

#endif
#endif
