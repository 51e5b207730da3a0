# quern: `make help` lists the targets.  Knobs: PREFIX= DESTDIR= DEBUG=1
# SAN=address,undefined CC= CXX= B=build-folder, and HAVE_X=0 or 1 for each library
# X below (0: do without it; 1: fail if it is missing).
.DEFAULT_GOAL := all
PREFIX ?= /usr/local
B ?= build$(if $(DEBUG),-debug)$(if $(SAN),-$(subst $(comma),-,$(SAN)))
comma := ,

# Debian packages: to build, to test, for the demo.
DEBS := gcc g++ make libc6-dev libsimdjson-dev libzstd-dev zlib1g-dev libdeflate-dev \
  libxxhash-dev libyaml-dev libbz2-dev libicu-dev libbrotli-dev nettle-dev libcld2-dev libfasttext-dev libdnnl-dev \
  libpcre2-dev libpsl-dev libdivsufsort-dev libcmocka-dev libopenmpi-dev openmpi-bin zstd bzip2
DEBS_DEMO := wget ca-certificates busybox
DEBS_SHARED := python3
DEBS_DEB := debhelper lintian debootstrap
DEBS_DEV := clang libclang-rt-14-dev libomp-14-dev shellcheck man-db

# LIBRARY:header:what the linker needs.  The first five are needed by everything.
PROBES := SIMDJSON:simdjson.h:-lsimdjson ZSTD:zstd.h:-lzstd ZLIB:zlib.h:-lz \
  LIBDEFLATE:libdeflate.h:-ldeflate YAML:yaml.h:-lyaml BZ2:bzlib.h:-lbz2 XXHASH:xxhash.h: \
  ICU:unicode/unorm2.h:-licui18n@-licuuc@-licudata \
  BROTLI:brotli/decode.h:-lbrotlidec@-lbrotlicommon CLD2:cld2/public/compact_lang_det.h:-lcld2_full@-lcld2 \
  NETTLE:nettle/sha1.h:-lnettle FASTTEXT:fasttext/fasttext.h:-lfasttext DIVSUFSORT:divsufsort.h:-ldivsufsort \
  DNNL:oneapi/dnnl/dnnl.h:-ldnnl PCRE2:pcre2.h:-lpcre2-8 PSL:libpsl.h:-lpsl CMOCKA:cmocka.h:-lcmocka
BASE_NEEDS := SIMDJSON ZSTD ZLIB LIBDEFLATE YAML XXHASH
# What a command cannot do without, beside those.
needs_extract := ICU BROTLI NETTLE
needs_clean := ICU
needs_filter := ICU PSL
needs_langid := CLD2
needs_classify := ICU
needs_dedup := ICU
needs_curate := ICU BROTLI NETTLE
needs_why := ICU PSL
needs_stats := ICU PSL
needs_report := ICU PSL
needs_decontaminate := ICU

OPT := $(if $(DEBUG),-Og,-O3) -g $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
WARN := -Wall -Wextra -Wshadow -Wvla -Wpointer-arith -Wcast-qual
INC := -I.
CPPFLAGS += -D_GNU_SOURCE -DPCRE2_CODE_UNIT_WIDTH=8 $(INC) -MMD -MP
CFLAGS += -std=c11 $(OPT) $(WARN) -Wstrict-prototypes -Wmissing-prototypes -ffp-contract=off -fopenmp
# The C compiler links, which lacks what checks the types of C++ objects.
CXXFLAGS += -std=c++17 $(OPT) $(WARN) -ffp-contract=off $(if $(SAN),-fno-sanitize=vptr$(if $(findstring clang,$(CXX)),$(comma)function))
# base/isa.h: NAME_simd.c is compiled once for each of these.
ISAS := base
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine)),)
ISAS := base avx2 avx512
CFLAGS += -march=x86-64-v2
CXXFLAGS += -march=x86-64-v2
isa_avx2 := -march=x86-64-v3
isa_avx512 := -march=x86-64-v4 -mavx512vbmi -mavx512vbmi2 -mavx512ifma -mavx512vnni -mavx512bitalg -mavx512vpopcntdq -mgfni -mprefer-vector-width=512
endif

MPICC ?= $(shell command -v mpicc)
-include $B/config.mk
$B/config.mk: Makefile                      # which libraries are here; a second make may ask at the same time
	@mkdir -p $B; t=$$(mktemp -d $B/probe.XXXXXX); for p in $(PROBES); do n=$${p%%:*}; p=$${p#*:}; \
	  printf '#include <stddef.h>\n#include <stdio.h>\n#include <%s>\nint main(void){return 0;}\n' "$${p%%:*}" >$$t/probe.cc; \
	  l=$$(echo "$${p#*:}" | tr @ ' '); echo "LIB_$$n := $$l"; \
	  if $(CXX) -std=c++17 -DPCRE2_CODE_UNIT_WIDTH=8 -include stdarg.h -include setjmp.h -include stdint.h $(INC) \
	    $$t/probe.cc $$l -o $$t/probe 2>/dev/null; then echo "HAVE_$$n ?= 1"; else echo "HAVE_$$n ?= 0"; fi; \
	  done >$$t/config.mk; echo '#include <mpi.h>' >$$t/probe.c; \
	  if [ -n "$(MPICC)" ] && $(MPICC) -shared -fPIC $$t/probe.c -o $$t/probe 2>/dev/null; then echo "HAVE_MPI ?= 1"; else echo "HAVE_MPI ?= 0"; fi >>$$t/config.mk; \
	  mv $$t/config.mk $@; rm -rf $$t

# The CUDA backend is a shared object, built where nvcc is.  HAVE_CUDA=0: without; 1: fail if it is missing.
NVCC ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc))
HAVE_CUDA ?= $(if $(NVCC),1,0)
NVFLAGS ?= -O3 -lineinfo -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]
# Warnings are errors with the compiler that was looked at: another one's spills a register more is no reason to have no backend.
NVSTRICT ?= $(if $(NVCC),$(if $(findstring release 13.0,$(shell $(NVCC) --version)),1))
NVWARN := -Xptxas -warn-spills$(if $(filter 1,$(NVSTRICT)),$(comma)-Werror -Werror all-warnings)
NVALL = -std=c++17 $(NVFLAGS) -fmad=false -I. $(NVWARN) -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra -MMD -MP
CU := $(wildcard kernels/*.cu)
CUDA_BACKEND := $(if $(filter 1,$(HAVE_CUDA)),$B/lib/quern-cuda.so)

# The MPI backend is one too, built where mpicc works.  HAVE_MPI=0: without; 1: fail if it is missing.
MPI_BACKEND := $(if $(filter 1,$(HAVE_MPI)),$B/lib/quern-mpi.so)

LIBS := $(foreach p,$(PROBES),$(firstword $(subst :, ,$p)))
CPPFLAGS += $(foreach l,$(LIBS),-DHAVE_$l=$(HAVE_$l))
MISSING := $(strip $(foreach l,$(LIBS),$(if $(filter 0,$(HAVE_$l)),$l)))
header_of = $(word 2,$(subst :, ,$(filter $1:%,$(PROBES))))
LDLIBS += -Wl,--as-needed -lm -lpthread $(foreach l,$(LIBS),$(if $(filter 1,$(HAVE_$l)),$(LIB_$l))) -lstdc++

FLOORS := base comm kernels indexed_dataset curate tokenize train
SRCS := $(filter-out comm/mpi_backend.c,$(wildcard $(FLOORS:%=%/*.c) $(FLOORS:%=%/*/*.c) $(FLOORS:%=%/*.cpp) $(FLOORS:%=%/*/*.cpp)))
# Sources that include the header of a missing library are left out, unless they ask HAVE_X.
ifneq ($(MISSING),)
SRCS := $(wildcard $(FLOORS:%=%/*.c) $(FLOORS:%=%/*/*.c) $(FLOORS:%=%/*.cpp) $(FLOORS:%=%/*/*.cpp))
endif
CMDS := $(filter $(FLOORS:%=%/cmd_%),$(SRCS))
NAMES := $(sort $(patsubst cmd_%,%,$(basename $(notdir $(CMDS)))))
lacks = $(strip $(foreach l,$(needs_$1),$(if $(filter 1,$(HAVE_$l)),,$l)))
ON := $(foreach n,$(NAMES),$(if $(call lacks,$n),,$n))
BINS := $(patsubst %,$B/bin/quern-%,$(filter-out quern,$(ON))) $B/bin/quern
objs = $(patsubst %,$B/%.o,$(filter-out %_simd.c,$1)) $(foreach i,$(ISAS),$(patsubst %,$B/%.$i.o,$(filter %_simd.c,$1)))
ARCHIVES := $(foreach f,$(FLOORS),$(if $(filter-out $(CMDS),$(filter $f/%,$(SRCS))),$B/lib$f.a))
UNIT := $(patsubst %.c,$B/%,$(wildcard tests/unit/*_test.c))
FUZZ := $(patsubst tests/fuzz/%.c,$B-fuzz/%,$(wildcard tests/fuzz/*_fuzz.c))
FUZZ_SECONDS ?= 60
BENCHES := $(patsubst %.c,$B/%,$(wildcard bench/*_bench.c))

include debian/package.mk
all: $(BINS) $(CUDA_BACKEND) $(MPI_BACKEND)                ## build every command
	@$(foreach n,$(filter-out $(ON),$(NAMES)),echo "left out: quern-$n, for want of $(call lacks,$n) (make deps installs it)";)
	@$(if $(MPI_BACKEND),,echo "left out: several ranks (quern-mpi.so), for want of mpicc (make deps installs it)")
check: deps-build                           ## install what is missing, build, run all tests
	@$(MAKE) --no-print-directory test
test: all $(UNIT) $B/tests/comm_ranks $B/tests/checkpoint_ranks $B/tests/pipeline_ranks $B/tests/simt-cuda.so $B/tests/gpu_check $B/bench/gpu_train_bench     # what check runs, with what is installed
	@B=$B sh tests/run.sh unit cli
check-shared: deps-build deps-shared        ## tests on the data in ../shared (set SHARED=)
	@$(MAKE) --no-print-directory test-shared
test-shared: all $(UNIT) $B/tests/comm_ranks
	@B=$B sh tests/run.sh shared
check-san: deps-build deps-dev              ## the tools' tests under sanitizers: SANS=address,undefined or thread; ONLY=dedup for some
	@$(MAKE) --no-print-directory CC="$(CLANG)" CXX="$(CLANG)++" HAVE_CUDA=0 DEBUG=1 SAN=$(or $(SANS),address$(comma)undefined) test-cli
test-cli: all $B/tests/comm_ranks $B/tests/simt-cuda.so
	@B=$B sh tests/run.sh cli
check-san-ranks: deps-build deps-dev        ## the same of training: its unit tests, and ranks over TCP and by NCCL
	@$(MAKE) --no-print-directory CC="$(CLANG)" CXX="$(CLANG)++" HAVE_CUDA=0 DEBUG=1 SAN=$(or $(SANS),address$(comma)undefined) test-ranks
test-ranks: $(patsubst %,$B/tests/unit/%_test,trainer checkpoint division pipeline comm) $B/bin/quern-train $B/tests/simt-cuda.so
	@B=$B sh tests/run.sh unit san
check-hosts: all                            ## ranks on several hosts, made of network namespaces (root, iproute2)
	@B=$B sh tests/run.sh hosts
demo: deps-build deps-demo                  ## from a crawl to a model that writes; SHORT=1 for a quick one
	@$(MAKE) --no-print-directory all && B=$B SHORT=$(SHORT) sh pipelines/demo.sh
bench: all                                  ## measure; BENCH=name for one
	@B=$B bash bench/run.sh $(BENCH)
lint: all $(BENCHES)                        ## floors, headers, banned calls, scripts; benchmarks build
	@B=$B CC="$(CC)" bash tests/lint.sh
fuzz: deps-dev                              ## every parser of outside bytes, FUZZ_SECONDS each
	@$(MAKE) --no-print-directory B=$B fuzz-run
fuzz-run: $(FUZZ)                           # FUZZ=build-fuzz/x_fuzz for one
	@for f in $(FUZZ); do bash tests/fuzz/run.sh $$f $(FUZZ_SECONDS) || exit 1; done
# NVIDIA's libraries may be PyTorch's alone.
WHEELS = $(shell python3 -c 'import glob, nvidia; print(":".join(d for p in nvidia.__path__ for d in sorted(glob.glob(p + "/*/lib"))))' 2>/dev/null)
NCCL_WHEEL = $(firstword $(wildcard $(addsuffix /libnccl.so.2,$(subst :, ,$(WHEELS)))))
ON_GPU = export QUERN_CUDA=$B/lib/quern-cuda.so QUERN_CUDA_NOTES=1 QUERN_CUDA_LIBRARIES="$${QUERN_CUDA_LIBRARIES-$(WHEELS)}" \
  $(if $(NCCL_WHEEL),QUERN_NCCL="$${QUERN_NCCL-$(NCCL_WHEEL)}");
gpu-check: $B/tests/gpu_check $B/lib/quern-cuda.so      ## on a GPU: each kernel against its twin (gcc, make and CUDA suffice)
	@$(ON_GPU) $B/tests/gpu_check
gpu-sanitize: $B/tests/gpu_check $B/lib/quern-cuda.so   ## on a GPU: the same, small, under compute-sanitizer
	@for t in memcheck racecheck synccheck; do echo "# $$t"; $(ON_GPU) \
	  $(or $(wildcard $(dir $(NVCC))compute-sanitizer),compute-sanitizer) --tool $$t --error-exitcode 1 $B/tests/gpu_check 1 "" || exit 1; done
GPU_SECONDS ?= 480
gpu-bench: $B/bench/gpu_bench $B/bench/gpu_train_bench $B/lib/quern-cuda.so      ## on a GPU: whole steps, ops, beside PyTorch if it is here; GPU_SECONDS=480
	@$(ON_GPU) end=$$(($$(date +%s) + $(GPU_SECONDS))); left() { echo $$((end - $$(date +%s) - $$1)); }; \
	$B/bench/gpu_train_bench $$(($(GPU_SECONDS) / 2)); \
	$B/bench/gpu_bench 60; \
	if ! python3 -c 'import torch' 2>/dev/null; then echo "no python3 with torch here: no peer"; \
	elif [ $$(left 0) -gt 40 ]; then timeout $$(left 0) python3 bench/gpu_torch.py $$(left 45) || echo "# the peer ended early"; fi
deps: deps-build deps-demo deps-shared deps-dev         ## install the Debian packages
deps-build: ; @B=$B sh tests/deps.sh $(DEBS)
deps-demo: ; @B=$B sh tests/deps.sh $(DEBS_DEMO)
deps-shared: ; @B=$B sh tests/deps.sh $(DEBS_SHARED)
deps-dev: ; @B=$B sh tests/deps.sh $(DEBS_DEV)
clean:                                      ## remove what was built
	rm -rf $B $B-fuzz
help:                                       ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(filter-out %.d $B/%,$(MAKEFILE_LIST)) | expand -t 24
.PHONY: all check test check-san test-cli check-san-ranks test-ranks check-shared test-shared check-hosts demo bench lint fuzz fuzz-run gpu-check gpu-sanitize gpu-bench deps deps-build deps-demo deps-shared deps-dev clean help
.DELETE_ON_ERROR:
.SECONDARY:

define floor
$B/lib$1.a: $(call objs,$(filter-out $(CMDS),$(filter $1/%,$(SRCS))))
	@rm -f $$@; $(AR) rcs $$@ $$^
endef
$(foreach f,$(FLOORS),$(eval $(call floor,$f)))
# What a command links: its folder and those below; the trainer's mains use tokenizers.
not_base := comm kernels indexed_dataset curate tokenize train
not_kernels := indexed_dataset curate tokenize train
not_curate := tokenize train
not_tokenize := curate train
not_train := curate
links = $(filter-out $(foreach f,$(not_$1),$B/lib$f.a),$(ARCHIVES))
define command
$B/bin/$(if $(filter quern,$2),quern,quern-$2): $B/$1.o $(call links,$3)
	@mkdir -p $$(@D); $$(CC) $$(CFLAGS) $$< -Wl,--start-group $(call links,$3) -Wl,--end-group $$(LDFLAGS) $$(LDLIBS) -o $$@
endef
$(foreach c,$(CMDS),$(eval $(call command,$c,$(patsubst cmd_%,%,$(basename $(notdir $c))),$(firstword $(subst /, ,$c)))))
# The CUDA kernels once more, for the CPU: tests/simt.h.
SIMTFLAGS := -fPIC -fno-strict-aliasing -Wno-unknown-pragmas
SIMT := $(patsubst %,$B/simt/%.o,$(filter-out kernels/device_cuda.cu kernels/cub_cuda.cu,$(CU)) tests/simt_device.cpp tests/simt_lt.cpp tests/simt_dnn.cpp)
$B/simt/%.o: % $B/flags
	@mkdir -p $(@D); $(CXX) $(CPPFLAGS) $(CXXFLAGS) $(SIMTFLAGS) -x c++ -include tests/simt.h -c $< -o $@
# These programs stand on these files alone: gpu_check and gpu_bench need no library but libc
# (and oneDNN where it is).
GPU := base/err.c base/isa.c base/mem.c base/plugin.c base/rng.c kernels/band_keys.c kernels/buckets.c kernels/cuda.c kernels/device.c \
  kernels/device_cpu.c kernels/minhash.c kernels/minhash_chars.c kernels/minhash_sign.c kernels/minhash_words.c \
  kernels/minhash_simd.c kernels/minhash_window_simd.c kernels/mirror.c kernels/set_common.c kernels/text_hash.c \
  kernels/text_hash_simd.c
GPU_LIBS := -lm -lpthread -ldl $(if $(filter 1,$(HAVE_DNNL)),$(LIB_DNNL))
TRAIN := act adamw attention embedding fp8 gate matmul norm rope route vec xent
GPU += kernels/device_train.c kernels/matmul_grouped.c $(if $(filter 1,$(HAVE_DNNL)),kernels/matmul_dnnl.c) $(TRAIN:%=kernels/%.c) $(patsubst %,kernels/%_simd.c,$(filter-out rope,$(TRAIN)))
# Cases of the ops of training.
TRAIN_TWINS := $(wildcard tests/train_twins/*.c)
$B/tests/unit/train_twins_test: $B/tests/unit/train_twins_test.c.o $(TRAIN_TWINS:%=$B/%.o) $(SIMT) $(call objs,$(GPU))
	@$(CXX) $(CXXFLAGS) -fopenmp $^ $(LDFLAGS) $(LDLIBS) -o $@
$B/tests/unit/cudnn_test: $B/tests/unit/cudnn_test.c.o $(SIMT) $(call objs,$(GPU))
	@$(CXX) $(CXXFLAGS) -fopenmp $^ $(LDFLAGS) $(LDLIBS) -o $@
$B/tests/unit/twins_test: $B/tests/unit/twins_test.c.o $B/tests/twins.c.o $B/simt/tests/simt_kernels.cu.o $(SIMT) $(call objs,$(GPU))
	@$(CXX) $(CXXFLAGS) -fopenmp $^ $(LDFLAGS) $(LDLIBS) -o $@
$B/tests/simt-cuda.so: $B/simt/tests/simt_backend.cpp.o $(SIMT) base/err.c tests/streams.c
	@mkdir -p $(@D); $(CC) -shared -fPIC $(CPPFLAGS) $(CFLAGS) -MF $@.d base/err.c tests/streams.c $(filter %.o,$^) $(LDFLAGS) -lstdc++ -o $@
# A model that trains, with a hash for seeds where xxHash is missing.
STEPS := tests/steps.c train/model.c train/store.c train/shards.c train/pieces.c train/model_forward.c train/model_back.c train/model_linear.c train/model_fp8.c train/model_graph.c train/model_moe.c train/model_pool.c train/model_ring.c train/model_shared.c train/trace.c train/model_config.c train/params.c train/exchange.c \
  comm/self.c comm/comm.c comm/collective.c comm/reduce.c base/log.c
ifneq ($(HAVE_XXHASH),1)
$B/train/%.c.o $B/kernels/text_hash_simd.c.%.o: CPPFLAGS += -Itests/bare
endif
STEPS += $(filter-out comm/mpi_backend.c $(STEPS),$(wildcard comm/*.c)) $(wildcard base/nvtx.c)
GPU_TRAIN_BENCH := bench/gpu_train_bench.c $(wildcard bench/gpu_train/*.c)
gpu-sources: ; @echo $(STEPS) $(GPU) tests/gpu_check.c tests/jobs.c tests/twins.c $(TRAIN_TWINS) bench/gpu_bench.c $(GPU_TRAIN_BENCH)
.PHONY: gpu-sources
$B/tests/gpu_check: $B/tests/gpu_check.c.o $B/tests/jobs.c.o $B/tests/twins.c.o $(TRAIN_TWINS:%=$B/%.o) $(call objs,$(STEPS) $(GPU))
	@$(CC) $(CFLAGS) $^ $(LDFLAGS) $(GPU_LIBS) -o $@
$B/bench/gpu_train_bench: $(GPU_TRAIN_BENCH:%=$B/%.o) $B/tests/jobs.c.o $(call objs,$(STEPS) $(GPU))
	@mkdir -p $(@D); $(CC) $(CFLAGS) $^ $(LDFLAGS) $(GPU_LIBS) -o $@
$B/bench/gpu_bench: $B/bench/gpu_bench.c.o $B/tests/jobs.c.o $(call objs,$(GPU))
	@mkdir -p $(@D); $(CC) $(CFLAGS) $^ $(LDFLAGS) $(GPU_LIBS) -o $@
$B/lib/quern-cuda.so: $(CU:%=$B/%.o) base/err.c
	@mkdir -p $(@D); $(NVCC) -shared -cudart static -Xlinker -z,defs $(filter %.o,$^) -Xcompiler -fPIC,-fvisibility=hidden base/err.c -I. -o $@
$B/%.cu.o: %.cu $B/flags
	@test -n "$(NVCC)" || { echo "no nvcc here: set NVCC=" >&2; exit 1; }
	@mkdir -p $(@D); $(NVCC) $(NVALL) -c $< -o $@
$B/lib/quern-mpi.so: comm/mpi_backend.c comm/message.h comm/comm.h base/err.h base/err.c $B/flags
	@mkdir -p $(@D); $(MPICC) -std=c11 -D_GNU_SOURCE -I. -O2 -g $(WARN) -shared -fPIC -fvisibility=hidden comm/mpi_backend.c base/err.c -o $@
# Libraries in NCCL's place, for tests, the second an old one.
FAKES := $B/tests/fake-nccl.so $B/tests/fake-nccl-old.so
NCCL_H := $(firstword $(wildcard $(patsubst %/bin/nvcc,%/include/nccl.h,$(NVCC)) /usr/include/nccl.h))
test test-cli test-ranks: $(FAKES) $B/tests/fake-profiler.so
$B/tests/fake-profiler.so: tests/fake_profiler.c $B/flags
	@mkdir -p $(@D); $(CC) -std=c11 -O2 -g $(WARN) -shared -fPIC -fvisibility=hidden $< -o $@
$(FAKES): tests/fake_nccl.c tests/nccl_numbers.c tests/streams.h comm/nccl_api.h $B/flags
	@mkdir -p $(@D); $(if $(NCCL_H),$(CC) -std=c11 -I. -I$(dir $(NCCL_H)) -fsyntax-only tests/nccl_numbers.c)
	@$(CC) -std=c11 -D_GNU_SOURCE -I. -O2 -g $(WARN) $(if $(SAN),-fsanitize=$(SAN)) $(if $(findstring old,$@),-DNO_SPLIT) -shared -fPIC -fvisibility=hidden \
	  tests/fake_nccl.c -o $@
# Runs under mpirun: tests/cli/comm.sh.
$B/tests/comm_ranks: $B/tests/comm_ranks.c.o $B/tests/streams.c.o $B/libcomm.a $B/libbase.a
	@$(CC) $(CFLAGS) $^ $(LDFLAGS) $(LDLIBS) -o $@
# Calls that tests/failing_calls.c makes fail.
FAILING := mkdir rename renameat2 unlink unlinkat rmdir fsync ftruncate opendir open write close
$B/tests/checkpoint_ranks: $B/tests/checkpoint_ranks.c.o $B/tests/failing_calls.c.o $(ARCHIVES)
	@$(CC) $(CFLAGS) $(filter %.o,$^) $(FAILING:%=-Wl,--wrap=%) -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LDFLAGS) $(LDLIBS) -o $@
$B/tests/pipeline_ranks: %: %.c.o $(ARCHIVES)
	@$(CC) $(CFLAGS) $< -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LDFLAGS) $(LDLIBS) -o $@
$B/tests/unit/%_test: $B/tests/unit/%_test.c.o $(ARCHIVES)
	@$(CC) $(CFLAGS) $< -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LDFLAGS) $(LDLIBS) -o $@
$B/bench/%_bench: $B/bench/%_bench.c.o $(ARCHIVES)
	@$(CC) $(CFLAGS) $< -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(LDFLAGS) $(LDLIBS) -o $@
$B/%.c.o: %.c $B/flags
	@mkdir -p $(@D); $(CC) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$B/kernels/cmd_doctor.c.o: CPPFLAGS += '-DQUERN_LIBRARIES="$(foreach l,$(LIBS),$l=$(HAVE_$l))"'
$B/base/version.c.o: CPPFLAGS += '-DQUERN_COMMIT="$(COMMIT)"'
$B/base/version.c.o: $B/commit
$B/%.cpp.o: %.cpp $B/flags
	@mkdir -p $(@D); $(CXX) $(CPPFLAGS) $(CXXFLAGS) -c $< -o $@
define isa
$B/%.c.$1.o: %.c $B/flags
	@mkdir -p $$(@D); $$(CC) $$(CPPFLAGS) $$(CFLAGS) $(isa_$1) -DQUERN_ISA=$1 -c $$< -o $$@
endef
$(foreach i,$(ISAS),$(eval $(call isa,$i)))
# Fuzzers: everything again with clang, libFuzzer, and the sanitizers.
CLANG := $(filter ccache,$(CC)) clang
FUZZ_LIBS := $(ARCHIVES:$B/%=$B-fuzz/%)
$(FUZZ): $B-fuzz/%: tests/fuzz/%.c fuzz-libs
	@$(CLANG) $(CPPFLAGS) -std=c11 -g -fopenmp -fsanitize=fuzzer,address,undefined -MF $@.d -c $< -o $@.o
	@clang++ -fopenmp -fsanitize=fuzzer,address,undefined $@.o -Wl,--start-group $(FUZZ_LIBS) -Wl,--end-group $(LDLIBS) -o $@
fuzz-libs:
	@$(MAKE) --no-print-directory B=$B-fuzz CC="$(CLANG)" CXX="$(CLANG)++" DEBUG=1 SAN=fuzzer-no-link,address,undefined archives
archives: $(ARCHIVES)
.PHONY: archives fuzz-libs
# Changed flags rebuild.
FLAGS = $(CC) $(CXX) $(NVALL) $(SIMTFLAGS) $(CPPFLAGS) $(CFLAGS) $(CXXFLAGS) $(MISSING)
ifneq ($(file <$B/flags),$(FLAGS))
$(shell mkdir -p $B)$(file >$B/flags,$(FLAGS))
endif
# The commit, of git, else of .commit, into which git archive writes it; a changed one rebuilds a file of a line.
COMMIT := $(shell if [ -e .git ]; then git describe --always --dirty --abbrev=7 --exclude='*' 2>/dev/null; else sed -n '/^[0-9a-f]*$$/p' .commit; fi)
ifneq ($(file <$B/commit),$(COMMIT))
$(shell mkdir -p $B)$(file >$B/commit,$(COMMIT))
endif
-include $(shell find $B -name '*.d' 2>/dev/null)
