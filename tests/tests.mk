# What tests need beside the commands, and the tiers: see tests/run.sh.
UNIT := $(patsubst %.c,$B/%,$(wildcard tests/unit/*_test.c))
SLOW := $(patsubst %.c,$B/%,$(wildcard tests/slow/*_test.c))
RANKS := $(patsubst %,$B/tests/%_ranks,comm checkpoint pipeline)
# In the place of libraries: NCCL, the second an old one; NVTX; the CUDA backend on the CPU.
FAKES := $B/tests/fake-nccl.so $B/tests/fake-nccl-old.so $B/tests/fake-profiler.so $B/tests/simt-cuda.so
BENCHES := $(patsubst %.c,$B/%,$(wildcard bench/*_bench.c))
RUN = B=$B bash tests/run.sh

check: deps-build                           ## install what is missing, build, and test: 5 minutes on two cores
	@$(STEP) 'building quern and its tests' $B/build.log $(MAKE) $(PARALLEL) tests
	@$(RUN) unit cli
check-all: deps-build deps-dev              ## and what takes longer: kills, layouts, the leanest build, a little fuzzing
	@$(STEP) 'building quern and its tests' $B/build.log $(MAKE) $(PARALLEL) tests slow-tests
	-@$(STEP) 'building the fuzzers' $B/fuzz.log $(MAKE) $(PARALLEL) -k fuzzers DEBUG_OPT=-O0
	@FUZZ_SECONDS=$(or $(SECONDS),3) $(RUN) unit cli slow fuzz
check-release: deps-build deps-dev          ## and what a release has to pass: each library missing, analyzers, sanitizers, fuzzing
	@$(STEP) 'building quern and its tests' $B/build.log $(MAKE) $(PARALLEL) tests slow-tests
	-@$(STEP) 'building the fuzzers' $B/fuzz.log $(MAKE) $(PARALLEL) -k fuzzers
	@FAULT_STEP=1 FUZZ_SECONDS=$(or $(SECONDS),60) $(RUN) unit cli slow fuzz release
record: all                                 ## make anew what tests/record recorded from other systems; ONLY=filter for some
	@B=$B bash tests/record/run.sh
test: tests                                 # what check runs, with what is installed
	@$(RUN) unit cli
slow-tests: $(SLOW) $B/tests/faults.so
tests: all $(UNIT) $(RANKS) $(FAKES) $B/tests/dedup_truth $B/tests/http_server $B/tests/gpu_check $B/bench/gpu_train_bench
check-shared: deps-build deps-shared        ## tests on the data in ../shared (set SHARED=)
	@$(MAKE) $(PARALLEL) test-shared
check-shared test-shared check-hosts: export SHARED ?= $(CURDIR)/../shared
test-shared: all $(UNIT) $B/tests/comm_ranks $B/tests/dedup_truth
	@$(RUN) shared
check-san: deps-build deps-dev              ## the tools' tests under sanitizers: SANS=address,undefined or thread; ONLY=dedup for some
	@$(MAKE) $(PARALLEL) $(SANITIZED) test-cli
check-san-unit: deps-build deps-dev         ## the same of the unit tests
	@$(MAKE) $(PARALLEL) $(SANITIZED) test-unit
SANITIZED = CC="$(CLANG)" CXX="$(CLANG)++" HAVE_CUDA=0 DEBUG=1 SAN=$(or $(SANS),address$(comma)undefined$(comma)float-cast-overflow)
test-cli: all $B/tests/comm_ranks $B/tests/dedup_truth $B/tests/http_server $(FAKES)
	@$(RUN) cli
check-san-ranks: deps-build deps-dev        ## the same of training: its unit tests, and ranks over TCP and by NCCL
	@$(MAKE) $(PARALLEL) $(SANITIZED) test-ranks
RANKS_UNIT := trainer checkpoint zero pipeline comm
test-ranks: $(RANKS_UNIT:%=$B/tests/unit/%_test) $B/bin/quern-train $(FAKES)
	@UNITS='$(RANKS_UNIT)' $(RUN) unit san
check-hosts: all                            ## ranks on several hosts, made of network namespaces (root, iproute2)
	@$(RUN) hosts
lint: all $(BENCHES) $B/bench/content_train                        ## floors, headers, banned calls, scripts; benchmarks build
	@B=$B CC="$(CC)" bash tests/lint.sh
.PHONY: record check check-all check-release test tests slow-tests check-shared test-shared check-san test-cli check-san-unit test-unit check-san-ranks test-ranks check-hosts lint

# The CUDA kernels once more, for the CPU: tests/simt.h.
SIMTFLAGS := -O1 -fPIC -fno-strict-aliasing -Wno-unknown-pragmas -fsanitize=alignment -fno-sanitize-recover=alignment
SIMT := $(patsubst %,$B/simt/%.o,$(filter-out kernels/device_cuda.cu kernels/cub_cuda.cu,$(CU)) \
  $(patsubst %,tests/simt_%.cpp,device memory launch lt dnn dnn_graph dnn_library dnn_text))
# As a device: a backend that programs open, or tests themselves.
SIMT_DEVICE := $(SIMT) $B/simt/tests/simt_backend.cpp.o
$B/simt/%.o: % $B/flags
	@mkdir -p $(@D); $(CXX) $(CPPFLAGS) $(CXXFLAGS) $(SIMTFLAGS) -x c++ -include tests/simt.h -c $< -o $@
# Compiled quickly: they are little of what the tests take.
$B/tests/%.c.o: private OPT := $(filter-out -O3,$(OPT)) -O1
$B/tests/unit/train_twins_test: $(TRAIN_TWINS:%=$B/%.o)
$B/tests/unit/twins_test: $B/tests/twins.c.o
$B/tests/unit/twins_test $B/tests/unit/simt_test: $B/simt/tests/simt_kernels.cu.o
$B/tests/unit/cudnn_test: $(patsubst %,$B/tests/train_twins/%.c.o,attention attention_dropout tensor)
$B/tests/unit/gpu_operands_test: $B/bench/gpu_train/rows.c.o $B/bench/gpu_train/products.c.o
SIMT_TESTS := $(patsubst %,$B/tests/unit/%_test,approximations train_twins cudnn twins simt)
$(SIMT_TESTS): %: %.c.o $(SIMT_DEVICE) $B/tests/streams.c.o $(call objs,$(GPU))
	@$(CXX) $(CXXFLAGS) -fopenmp $^ $(LDFLAGS) $(LDLIBS) -o $@
# Without simulated kernels, which compile for long with sanitizers.
test-unit: $(filter-out $(SIMT_TESTS),$(UNIT))
	@UNITS='$(patsubst $B/tests/unit/%_test,%,$^)' $(RUN) unit
$B/tests/simt-cuda.so: $(SIMT_DEVICE) base/err.c tests/streams.c
	@mkdir -p $(@D); $(CC) $(CPPFLAGS) $(CFLAGS) -shared -fPIC -MF $@.d base/err.c tests/streams.c $(filter %.o,$^) -lstdc++ -o $@
# Makes each allocation of a program fail in turn, or kills it at each change of a file: tests/slow/faults.sh.
$B/tests/faults.so: tests/faults.c $B/flags
	@mkdir -p $(@D); $(CC) -std=c11 -D_GNU_SOURCE -O2 -g $(WARN) -shared -fPIC $< -o $@
$B/tests/fake-profiler.so: tests/fake_profiler.c $B/flags
	@mkdir -p $(@D); $(CC) -std=c11 -O2 -g $(WARN) -shared -fPIC -fvisibility=hidden $< -o $@
NCCL_H := $(firstword $(wildcard $(patsubst %/bin/nvcc,%/include/nccl.h,$(NVCC)) /usr/include/nccl.h))
$B/tests/fake-nccl.so $B/tests/fake-nccl-old.so: tests/fake_nccl.c tests/nccl_numbers.c tests/streams.h comm/nccl_api.h $B/flags
	@mkdir -p $(@D); $(if $(NCCL_H),$(CC) -std=c11 -I. -I$(dir $(NCCL_H)) -fsyntax-only tests/nccl_numbers.c)
	@$(CC) -std=c11 -D_GNU_SOURCE -I. -O2 -g $(WARN) $(if $(SAN),-fsanitize=$(SAN)) $(if $(findstring old,$@),-DNO_SPLIT) -shared -fPIC -fvisibility=hidden \
	  tests/fake_nccl.c -o $@
# Runs under mpirun: tests/cli/comm.sh.
$B/tests/comm_ranks: $B/tests/comm_ranks.c.o $B/tests/streams.c.o $B/libcomm.a $B/libbase.a
	@$(CC) $(CFLAGS) $^ $(LDFLAGS) $(LDLIBS) -o $@
$B/tests/http_server: $B/tests/http_server.c.o
	@$(CC) $(CFLAGS) $^ $(LDFLAGS) -lpthread -o $@
# Calls that tests/failing_calls.c makes fail.
FAILING := mkdir rename renameat2 unlink unlinkat rmdir fsync ftruncate opendir open write close
$B/tests/checkpoint_ranks: private LDFLAGS += $(FAILING:%=-Wl,--wrap=%)
$B/tests/checkpoint_ranks: $B/tests/failing_calls.c.o
$(filter-out $(SIMT_TESTS),$(UNIT)) $(SLOW) $B/tests/dedup_truth $B/tests/checkpoint_ranks $B/tests/pipeline_ranks $(filter-out $B/bench/gpu_%,$(BENCHES)): %: %.c.o $(ARCHIVES)
	@$(CC) $(CFLAGS) $(filter %.o,$^) -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LDFLAGS) $(LDLIBS) -o $@
# A program of the library's, and what it is held against.
$B/tests/unit/library_test: private LDFLAGS += $(LIBQUERN) -Wl,-rpath,'$$ORIGIN/../../lib'
$B/tests/unit/library_test: $(LIBQUERN)
# Trains the models of main content.
CONTENT_TRAIN := $(patsubst %,$B/%.o,$(wildcard bench/content/*.c))
$(CONTENT_TRAIN): private CFLAGS += -O3 -fopenmp
$B/bench/content_train: $(CONTENT_TRAIN) $(ARCHIVES)
	@mkdir -p $(@D); $(CC) $(CFLAGS) -fopenmp $(filter %.o,$^) -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LDFLAGS) $(LDLIBS) -o $@
