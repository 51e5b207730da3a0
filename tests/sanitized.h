/* tests/sanitized.h -- whether what includes it is compiled with a sanitizer: ASAN and TSAN are 0 or 1. */
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#elif __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define TSAN 1
#endif
#ifndef ASAN
#define ASAN 0
#endif
#ifndef TSAN
#define TSAN 0
#endif

#endif
