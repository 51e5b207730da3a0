// The C++ under base/json.h.  simdjson's first stage validates UTF-8 and strings and
// finds the tokens; it is the part of simdjson that is as fast for one long string as
// for many small tokens.  Its second stage would copy every string and refuse integers
// above 64 bits, so json.c has its own.
#include "base/json_shim.h"
#include "base/mem.h"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>

namespace {
// simdjson looks which implementation is the best when the first is asked for, and ends the process if it gets no memory
// then.  So it is asked before main(), where the loader could not go on either.
struct best_implementation {
    best_implementation()
    {
        simdjson::get_active_implementation() = simdjson::get_available_implementations().detect_best_supported();
    }
} best_implementation;
} // namespace

struct json_scanner {
    std::unique_ptr<simdjson::internal::dom_parser_implementation> impl;
};

extern "C" struct json_scanner *json_scanner_new(void)
{
    auto *s = new (std::nothrow) json_scanner;
    if (s && simdjson::get_active_implementation()->create_dom_parser_implementation(0, 1, s->impl)) {
        delete s;
        return nullptr;
    }
    return s;
}

extern "C" void json_scanner_free(struct json_scanner *s)
{
    delete s;
}

extern "C" enum json_scan_result json_scan(struct json_scanner *s, const char *p, size_t n,
                                           const uint32_t **at, uint32_t *count)
{
    if (n == 0)
        return JSON_SCAN_EMPTY;
    if (n >= simdjson::SIMDJSON_MAXSIZE_BYTES)
        return JSON_SCAN_TOO_LONG;
    if (n > s->impl->capacity()) {
        size_t cap = n < simdjson::SIMDJSON_MAXSIZE_BYTES / 2 ? n + n / 2 + 4096 : simdjson::SIMDJSON_MAXSIZE_BYTES;
        if (s->impl->set_capacity(cap))
            return JSON_SCAN_NOMEM;
        mem_large(s->impl->structural_indexes.get(), n * sizeof(uint32_t));
    }
    switch (s->impl->stage1(reinterpret_cast<const uint8_t *>(p), n, simdjson::stage1_mode::regular)) {
    case simdjson::SUCCESS:
        *at = s->impl->structural_indexes.get();
        *count = s->impl->n_structural_indexes;
        return JSON_SCAN_OK;
    case simdjson::UNESCAPED_CHARS:
        return JSON_SCAN_CONTROL;
    case simdjson::UNCLOSED_STRING:
        return JSON_SCAN_UNCLOSED;
    case simdjson::UTF8_ERROR:
        return JSON_SCAN_UTF8;
    case simdjson::CAPACITY:
        return JSON_SCAN_TOO_LONG;
    default:
        return JSON_SCAN_EMPTY;
    }
}

extern "C" bool json_valid_utf8(const char *p, size_t n)
{
    return simdjson::validate_utf8(p, n);
}

extern "C" size_t json_format_double(char out[32], double v)
{
    return static_cast<size_t>(std::to_chars(out, out + 32, v).ptr - out);
}

extern "C" double json_parse_double(const char *p, size_t n)
{
    double v = 0;
    auto r = std::from_chars(p, p + n, v);
    if (r.ec != std::errc::result_out_of_range)
        return v;
    // Too large or too small: charconv leaves v alone.  Such a number has an exponent,
    // or hundreds of digits before the point.
    const char *e = p;
    while (e < p + n && *e != 'e' && *e != 'E')
        e++;
    bool tiny = (e < p + n && e[1] == '-') || (e == p + n && (p[*p == '-'] == '0' || p[*p == '-'] == '.'));
    v = tiny ? 0.0 : HUGE_VAL;
    return *p == '-' ? -v : v;
}
