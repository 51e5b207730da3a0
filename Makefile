# quern: `make help` lists the targets.  Knobs: PREFIX= DESTDIR= DEBUG=1 SAN=address,undefined CC= CXX= B=build-folder,
# and HAVE_X=0 or 1 for each library X of libraries.mk (0: do without it; 1: fail if it is missing).
.DEFAULT_GOAL := all
PREFIX ?= /usr/local
B ?= build$(if $(DEBUG),-debug)$(if $(SAN),-$(subst $(comma),-,$(SAN)))
comma := ,

DEBUG_OPT ?= -Og
# -g1: lines and functions, for backtraces and perf; DEBUG=1 has variables and types too.
OPT := $(if $(DEBUG),$(DEBUG_OPT) -g,-O3 -g1 $(if $(SAN),,-D_FORTIFY_SOURCE=2)) $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
# A table of 200 options takes clang seven minutes with sanitizers, without optimising one second.
$(if $(SAN),$B/train/config_options.c.o): private OPT := $(filter-out -O%,$(OPT)) -O0
# And attention, for each instruction set, a minute or two; without, seven seconds.  Fuzzers wait for no model.
$(if $(findstring fuzzer,$(SAN)),$B/kernels/attention%.o $B/train/%.o): private OPT := $(filter-out -O%,$(OPT)) -O0
HARDEN := -fstack-protector-strong -fstack-clash-protection
HARDEN_LD := -Wl,-z,relro,-z,now
WARN := -Wall -Wextra -Wshadow -Wvla -Wpointer-arith -Wcast-qual
INC := -I.
CPPFLAGS += -D_GNU_SOURCE -DPCRE2_CODE_UNIT_WIDTH=8 $(INC) -MMD -MP
CFLAGS += -std=c11 $(OPT) -fPIE $(HARDEN) $(WARN) -Wstrict-prototypes -Wmissing-prototypes -ffp-contract=off -fopenmp
# The C compiler links, which lacks what checks the types of C++ objects.
CXXFLAGS += -std=c++17 $(OPT) -fPIE $(HARDEN) $(WARN) -ffp-contract=off $(if $(SAN),-fno-sanitize=vptr$(if $(findstring clang,$(CXX)),$(comma)function))
# base/isa.h: NAME_simd.c is compiled once for each of these.
ISAS := base
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine 2>/dev/null)),)
ISAS := base avx2 avx512
CFLAGS += -march=x86-64-v2
CXXFLAGS += -march=x86-64-v2
isa_avx2 := -march=x86-64-v3
isa_avx512 := -march=x86-64-v4 -mavx512vbmi -mavx512vbmi2 -mavx512ifma -mavx512vnni -mavx512bitalg -mavx512vpopcntdq -mgfni -mprefer-vector-width=512
endif

include libraries.mk
CPPFLAGS += $(foreach l,$(LIBS),-DHAVE_$l=$(HAVE_$l))
LDFLAGS += -pie $(HARDEN_LD)
LDLIBS += -Wl,--as-needed -lm -lpthread $(foreach l,$(LIBS),$(if $(filter 1,$(HAVE_$l)),$(LIB_$l))) -lstdc++

# Sources, and the commands among them; those of a backend stand apart.
FLOORS := base comm kernels indexed_dataset curate tokenize train pipelines
MPI_SRC := comm/mpi_backend.c
FOUND := $(filter-out $(MPI_SRC),$(wildcard $(foreach e,c cpp,$(FLOORS:%=%/*.$e) $(FLOORS:%=%/*/*.$e))))
SRCS := $(filter-out $(call without_library,$(FOUND)),$(FOUND))
CMDS := $(filter $(FLOORS:%=%/cmd_%),$(SRCS))
NAMES := $(sort $(patsubst cmd_%,%,$(basename $(notdir $(CMDS)))))
ON := $(foreach n,$(NAMES),$(if $(call lacks,$n),,$n))
BINS := $(patsubst %,$B/bin/quern-%,$(filter-out quern,$(ON))) $B/bin/quern
objs = $(patsubst %,$B/%.o,$(filter-out %_simd.c,$1)) $(foreach i,$(ISAS),$(patsubst %,$B/%.$i.o,$(filter %_simd.c,$1)))
ARCHIVES := $(foreach f,$(FLOORS),$(if $(filter-out $(CMDS),$(filter $f/%,$(SRCS))),$B/lib$f.a))
# The backend of MPI is a shared object, built where mpicc works.
MPI_BACKEND := $(if $(filter 1,$(HAVE_MPI)),$B/lib/quern-mpi.so)

# libquern.so: what stands below bindings/ is position-independent and hidden, in commands too, so all is compiled once.
LIBQUERN := $B/lib/libquern.so
LIBQUERN_FLOORS := base indexed_dataset tokenize
PIC := -fPIC -fvisibility=hidden

include kernels/cuda.mk tests/tests.mk tests/fuzz/fuzz.mk debian/package.mk

all: $(BINS) $(LIBQUERN) $(CUDA_BACKEND) $(MPI_BACKEND)    ## build every command, and libquern.so
	@$(foreach n,$(filter-out $(ON),$(NAMES)),echo "left out: quern-$n, for want of $(call lacks,$n) (make deps installs it)";)
	@$(if $(MPI_BACKEND),,echo "left out: several ranks (quern-mpi.so), for want of mpicc (make deps installs it)")
demo: deps-build deps-demo                  ## from a crawl to a model that writes; SHORT=1 for a quick one
	@$(STEP) 'building quern' $B/build.log $(MAKE) $(PARALLEL) all
	@B=$B SHORT=$(SHORT) sh pipelines/demo.sh
bench: all                                  ## measure: BENCH=name for one; without it, what there is
	@B=$B bash bench/run.sh $(BENCH)
deps: deps-build deps-demo deps-shared deps-dev         ## install the Debian packages
deps-build: ; @B=$B sh tests/deps.sh $(DEBS)
deps-demo: ; @B=$B sh tests/deps.sh $(DEBS_DEMO)
deps-shared: ; @B=$B sh tests/deps.sh $(DEBS_SHARED)
deps-dev: ; @B=$B sh tests/deps.sh $(DEBS_DEV) && sh tests/cuda_tools.sh $B $(if $(filter 1,$(HAVE_CUDA)),$(NVCC))
clean:                                      ## remove what was built
	rm -rf $B $B-fuzz
help:                                       ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(filter-out %.d $B/%,$(MAKEFILE_LIST)) | expand -t 24
.PHONY: all demo bench deps deps-build deps-demo deps-shared deps-dev clean help
.DELETE_ON_ERROR:
.SECONDARY:
# What a target makes of a second make: on all processors, unless -j says how many; details go to a log.
PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc)) --no-print-directory
STEP := sh tests/step.sh

define floor
$B/lib$1.a: $(call objs,$(filter-out $(CMDS),$(filter $1/%,$(SRCS))))
	@rm -f $$@; $(AR) rcs $$@ $$^
endef
$(foreach f,$(FLOORS),$(eval $(call floor,$f)))
# What a command links: its folder and those below; the trainer's mains use tokenizers.
not_base := comm kernels indexed_dataset curate tokenize train pipelines
not_kernels := indexed_dataset curate tokenize train pipelines
not_curate := tokenize train pipelines
not_tokenize := curate train pipelines
not_train := curate pipelines
links = $(filter-out $(foreach f,$(not_$1),$B/lib$f.a),$(ARCHIVES))
define command
$B/bin/$(if $(filter quern,$2),quern,quern-$2): $B/$1.o $(call links,$3)
	@mkdir -p $$(@D); $$(CC) $$(CFLAGS) $$< -Wl,--start-group $(call links,$3) -Wl,--end-group $$(LDFLAGS) $$(LDLIBS) -o $$@
endef
$(foreach c,$(CMDS),$(eval $(call command,$c,$(patsubst cmd_%,%,$(basename $(notdir $c))),$(firstword $(subst /, ,$c)))))
$(foreach f,$(LIBQUERN_FLOORS) bindings,$B/$f/%.o): CFLAGS += $(PIC)
$(foreach f,$(LIBQUERN_FLOORS) bindings,$B/$f/%.o): CXXFLAGS += $(PIC)
$(LIBQUERN): $(call objs,$(wildcard bindings/*.c)) $(LIBQUERN_FLOORS:%=$B/lib%.a) bindings/quern.map
	@mkdir -p $(@D); $(CC) -shared $(OPT) $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -Wl,-soname,$(@F).0 \
	  -Wl,--version-script=bindings/quern.map $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -Wl,-z,nodelete $(HARDEN_LD) $(LDLIBS) -o $@.0
	@ln -sf $(@F).0 $@
$B/lib/quern-mpi.so: $(MPI_SRC) comm/message.h comm/comm.h base/err.h base/err.c $B/flags
	@mkdir -p $(@D); $(MPICC) -std=c11 -D_GNU_SOURCE -I. -O2 -g -D_FORTIFY_SOURCE=2 $(HARDEN) $(WARN) -shared -fPIC -fvisibility=hidden \
	  $(MPI_SRC) base/err.c $(HARDEN_LD) -o $@
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
# Changed flags rebuild all, another commit a file of a line: of git, else of .commit, into which git archive writes it.
FLAGS = $(CC) $(CXX) $(NVALL) $(SIMTFLAGS) $(CPPFLAGS) $(CFLAGS) $(CXXFLAGS) $(PIC) $(MISSING)
COMMIT := $(shell if [ -e .git ]; then git describe --always --dirty --abbrev=7 --exclude='*' 2>/dev/null; else sed -n '/^[0-9a-f]*$$/p' .commit; fi)
define changed
ifneq ($$(file <$B/$1),$2=$$($2))
$$(shell mkdir -p $B)$$(file >$B/$1,$2=$$($2))
endif
endef
$(eval $(call changed,flags,FLAGS))
$(eval $(call changed,commit,COMMIT))
-include $(shell find $B -name '*.d' 2>/dev/null)
