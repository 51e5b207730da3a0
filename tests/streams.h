/* tests/streams.h -- streams and events as a GPU has them, for devices of the tests: a stream is a thread that does one thing
 * after another, each a little late, so that whoever does not wait is found out.  The stream NULL is the calling thread. */
#ifndef TESTS_STREAMS_H
#define TESTS_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What tests/fake_nccl.c knows of one. */
struct test_stream {
    void (*push)(struct test_stream *s, void (*run)(void *), void *arg);
    void *(*place)(const void *p, size_t bytes, const char *what); /* tests/simt_memory.h; NULL: memory is the host's */
};
struct test_event;

struct test_stream *test_stream_new(void);
void test_stream_free(struct test_stream *s); /* after all in it is done; NULL is fine */
struct test_event *test_event_new(void);
void test_event_free(struct test_event *ev);
void test_event_record(struct test_event *ev, struct test_stream *s);
/* s goes on when what was recorded last has come. */
void test_event_after(struct test_event *ev, struct test_stream *s);
bool test_event_query(struct test_event *ev);

#ifdef __cplusplus
}
#endif
#endif
