// What no GPU would launch is refused (tests/simt.h comes first in this file): by the number of threads that the kernel is
// compiled for, and by the shared memory that its block needs, which the program's table of symbols tells.
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "tests/simt_memory.h"

namespace {

/* Bytes of a block's shared memory, unless cudaFuncSetAttribute was called, which nothing here does (then 227 KiB), and of a
 * kernel's arguments.  Source: NVIDIA, CUDA C++ Programming Guide, "Compute Capabilities". */
enum : size_t { SHARED = 48 << 10, PARAMETERS = 4096 };

struct kernel {
    std::string name;
    int threads;   // at most, __launch_bounds__; 0: not known
    size_t shared; // of its own
};

/* Of the file that holds a kernel: its functions by address, its variables within functions by name. */
struct symbols {
    std::map<uintptr_t, std::string> function;
    std::map<std::string, size_t> variable;
};

void add(symbols &all, uintptr_t base, const char *name, const Elf64_Sym &s)
{
    int type = ELF64_ST_TYPE(s.st_info);

    if (type == STT_FUNC && s.st_value)
        all.function[base + s.st_value] = name;
    if (type == STT_OBJECT && strncmp(name, "_ZZ", 3) == 0)
        all.variable[name] = s.st_size;
}

void read_table(symbols &all, uintptr_t base, const char *file, size_t bytes)
{
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)file;
    const Elf64_Shdr *s = (const Elf64_Shdr *)(file + h->e_shoff);

    for (int i = 0; i < h->e_shnum && h->e_shoff + (size_t)h->e_shnum * sizeof *s <= bytes; i++)
        for (size_t k = 0; s[i].sh_type == SHT_SYMTAB && k < s[i].sh_size / sizeof(Elf64_Sym); k++) {
            const Elf64_Sym &one = ((const Elf64_Sym *)(file + s[i].sh_offset))[k];
            add(all, base, file + s[s[i].sh_link].sh_offset + one.st_name, one);
        }
}

const symbols &symbols_of(const void *kernel)
{
    static std::map<const void *, symbols> files;
    Dl_info where = {};
    struct stat st;
    int fd;

    dladdr(kernel, &where);
    auto known = files.find(where.dli_fbase);
    if (known != files.end())
        return known->second;
    symbols &all = files[where.dli_fbase];
    fd = where.dli_fname ? open(where.dli_fname, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && (size_t)st.st_size > sizeof(Elf64_Ehdr)) {
        void *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            read_table(all, (uintptr_t)where.dli_fbase, (const char *)file, (size_t)st.st_size);
            munmap(file, (size_t)st.st_size);
        }
    }
    if (fd >= 0)
        close(fd);
    return all;
}

// The variables of a function are called after it: _ZZ, its name without _Z, E, their own.  The address sanitizer makes them
// larger.
size_t shared_of(const symbols &all, const std::string &name)
{
    std::string prefix = "_ZZ" + name.substr(name.size() < 2 ? 0 : 2) + "E";
    size_t bytes = 0;

#if ASAN
    return 0;
#endif
    auto v = all.variable.lower_bound(prefix);
    for (; v != all.variable.end() && v->first.compare(0, prefix.size(), prefix) == 0; ++v)
        bytes += v->second;
    return bytes;
}

std::string demangled(const std::string &name)
{
    char *plain = abi::__cxa_demangle(name.c_str(), NULL, NULL, NULL);
    std::string r = plain ? plain : name;

    free(plain);
    return r.compare(0, 5, "void ") ? r : r.substr(5);
}

// __launch_bounds__ puts a no-op for each warp in front of the kernel.
int threads_of(const void *entry)
{
    static const unsigned char endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
    const unsigned char *p = (const unsigned char *)entry;
    int warps = 0;

    p += memcmp(p, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;
    while (p[warps] == 0x90)
        warps++;
    return warps * 32;
}

const kernel &known(const void *entry)
{
    static std::map<const void *, kernel> kernels;
    static std::mutex lock;
    std::lock_guard<std::mutex> hold(lock);
    auto k = kernels.find(entry);

    if (k != kernels.end())
        return k->second;
    const symbols &all = symbols_of(entry);
    auto f = all.function.find((uintptr_t)entry);
    kernel &one = kernels[entry];
    one.threads = threads_of(entry);
    if (f != all.function.end()) {
        one.name = demangled(f->second);
        one.shared = shared_of(all, f->second);
    }
    return one;
}

[[noreturn]] void refuse(const simt::site &of, const char *what, long long is, long long most)
{
    char words[simt::WORDS];

    fprintf(stderr, "simt: %s cannot be launched with %s: %lld of %lld at most\n", simt::name_of(of, words), what, is, most);
    abort();
}

void at_most(const simt::site &of, const char *what, unsigned long long is, unsigned long long most)
{
    if (is > most)
        refuse(of, what, (long long)is, (long long)most);
}

} // namespace

const char *simt::name_of(const site &of, char words[WORDS])
{
    const std::string &name = known(of.kernel).name;

    snprintf(words, WORDS, "%s, launched at %s:%d,", name.empty() ? "a kernel" : name.c_str(), of.file, of.line);
    return words;
}

void simt::check_launch(const site &of, dim3 grid, dim3 block, size_t dynamic, size_t parameters)
{
    const kernel &k = known(of.kernel);
    unsigned long long threads = (unsigned long long)block.x * block.y * block.z;

    if (!threads || !grid.x || !grid.y || !grid.z)
        refuse(of, "an empty grid or block, of so many threads a block", (long long)threads, MOST);
    at_most(of, "so many blocks", grid.x, 0x7fffffff);
    at_most(of, "so many blocks in y", grid.y, 65535);
    at_most(of, "so many blocks in z", grid.z, 65535);
    at_most(of, "so many threads in z", block.z, 64);
    at_most(of, "so many threads a block", threads, MOST);
#if defined(SIMT_BOUNDS)
    at_most(of, "more threads a block than its __launch_bounds__", threads, (unsigned long long)k.threads);
#endif
    at_most(of, "so many bytes of arguments", parameters, PARAMETERS);
    at_most(of, "so many bytes of shared memory", k.shared + dynamic, SHARED);
}
