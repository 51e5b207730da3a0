# Fuzzers: everything again with clang, libFuzzer, and the sanitizers.  FUZZ_SECONDS=60 each; ONLY=json for some.  DEBUG_OPT=-O0
# halves their speed, and is compiled in less than half the time.
CLANG := $(filter ccache,$(CC)) clang
FUZZ := $(patsubst tests/fuzz/%.c,$B-fuzz/%,$(wildcard tests/fuzz/*_fuzz.c))
FUZZ_LIBS := $(ARCHIVES:$B/%=$B-fuzz/%)
fuzz: deps-build deps-dev                   ## every parser of outside bytes, FUZZ_SECONDS=60 each; ONLY=json for some
	-@$(STEP) 'building the fuzzers' $B/fuzz.log $(MAKE) $(JOBS) -k fuzzers
	@$(RUN) fuzz
fuzzers: $(FUZZ)
$(FUZZ): $B-fuzz/%: tests/fuzz/%.c fuzz-libs
	@rm -f $@; $(CLANG) $(CPPFLAGS) -std=c11 $(WARN) -g -fopenmp -fsanitize=fuzzer,address,undefined -MF $@.d -c $< -o $@.o
	@clang++ -fopenmp -fsanitize=fuzzer,address,undefined $@.o -Wl,--start-group $(FUZZ_LIBS) -Wl,--end-group $(LDLIBS) -o $@
fuzz-libs:
	@$(MAKE) --no-print-directory B=$B-fuzz CC="$(CLANG)" CXX="$(CLANG)++" DEBUG=1 SAN=fuzzer-no-link,address,undefined archives
archives: $(ARCHIVES)
.PHONY: fuzz fuzzers fuzz-libs archives
