/* For clang's analyzer, which sees one source at a time (tests/release/analyzers.sh): the functions of base/err.h return the
 * code that they are given, and memory that grew is there. */
#include "base/err.h"
#include "base/mem.h"
#define err_set(e, code, ...) ((err_set)(e, code, __VA_ARGS__), (code))
#define err_sys(e, code, ...) ((err_sys)(e, code, __VA_ARGS__), (code))
#define err_wrap(e, ...) ((err_wrap)(e, __VA_ARGS__), (e)->code)
#define mem_grow mem_grow_more
#define mem_room mem_room_more
