# Which libraries are here, which Debian packages they come in, and what cannot be built without them.

# Debian packages: to build and test, for the demo, for tests on shared data, for a package, for the slow tests.
DEBS := gcc g++ make libc6-dev libsimdjson-dev libzstd-dev zlib1g-dev libdeflate-dev \
  libxxhash-dev libyaml-dev libbz2-dev liblzma-dev liblz4-dev libsnappy-dev libcurl4-openssl-dev libicu-dev libbrotli-dev nettle-dev libcld2-dev \
  libfasttext-dev libdnnl-dev libpcre2-dev libpsl-dev libdivsufsort-dev liblbfgs-dev libcmocka-dev libopenmpi-dev openmpi-bin zstd bzip2 xz-utils lz4
DEBS_DEMO := wget ca-certificates busybox
DEBS_SHARED := python3
DEBS_DEB := debhelper lintian debootstrap
DEBS_DEV := zsh clang libclang-rt-14-dev libomp-14-dev shellcheck cppcheck man-db

# LIBRARY:header:what the linker needs (nothing: headers are all there is to it, or, CURL, it is opened at run time).
PROBES := SIMDJSON:simdjson.h:-lsimdjson ZSTD:zstd.h:-lzstd ZLIB:zlib.h:-lz \
  LIBDEFLATE:libdeflate.h:-ldeflate YAML:yaml.h:-lyaml BZ2:bzlib.h:-lbz2 LZMA:lzma.h:-llzma LZ4:lz4frame.h:-llz4 SNAPPY:snappy-c.h:-lsnappy XXHASH:xxhash.h: \
  ICU:unicode/unorm2.h:-licui18n@-licuuc@-licudata \
  CURL:curl/curl.h: BROTLI:brotli/decode.h:-lbrotlidec@-lbrotlicommon CLD2:cld2/public/compact_lang_det.h:-lcld2_full@-lcld2 \
  NETTLE:nettle/sha1.h:-lnettle FASTTEXT:fasttext/fasttext.h:-lfasttext DIVSUFSORT:divsufsort.h:-ldivsufsort LBFGS:lbfgs.h:-llbfgs \
  DNNL:oneapi/dnnl/dnnl.h:-ldnnl PCRE2:pcre2.h:-lpcre2-8 PSL:libpsl.h:-lpsl CMOCKA:cmocka.h:-lcmocka
# What everything needs, and what a command cannot do without beside that.
BASE_NEEDS := SIMDJSON ZSTD ZLIB LIBDEFLATE YAML XXHASH
needs_extract := ICU BROTLI NETTLE
needs_crawl := ICU PSL
needs_clean := ICU
needs_filter := ICU PSL
needs_langid := CLD2
needs_classify := ICU
needs_perplexity := ICU
needs_stats := ICU PSL
needs_decontaminate := ICU NETTLE
needs_curate := ICU BROTLI NETTLE PSL CLD2
needs_ablate := $(needs_curate) LBFGS
needs_scale := $(needs_curate) LBFGS
needs_dedup := $(needs_curate)
needs_why := $(needs_curate)
needs_report := $(needs_curate)

MPICC ?= $(shell command -v mpicc)
-include $B/config.mk
$B/config.mk: libraries.mk                  # a second make may ask at the same time
	@mkdir -p $B; t=$$(mktemp -d $B/probe.XXXXXX); for p in $(PROBES); do n=$${p%%:*}; p=$${p#*:}; \
	  printf '#include <stddef.h>\n#include <stdio.h>\n#include <%s>\nint main(void){return 0;}\n' "$${p%%:*}" >$$t/probe.cc; \
	  l=$$(echo "$${p#*:}" | tr @ ' '); echo "LIB_$$n := $$l"; \
	  if $(CXX) -std=c++17 -DPCRE2_CODE_UNIT_WIDTH=8 -include stdarg.h -include setjmp.h -include stdint.h $(INC) \
	    $$t/probe.cc $$l -o $$t/probe 2>/dev/null; then echo "HAVE_$$n ?= 1"; else echo "HAVE_$$n ?= 0"; fi; \
	  done >$$t/config.mk; echo '#include <mpi.h>' >$$t/probe.c; \
	  if [ -n "$(MPICC)" ] && $(MPICC) -shared -fPIC $$t/probe.c -o $$t/probe 2>/dev/null; \
	  then echo "HAVE_MPI ?= 1"; else echo "HAVE_MPI ?= 0"; fi >>$$t/config.mk; \
	  mv $$t/config.mk $@; rm -rf $$t

LIBS := $(foreach p,$(PROBES),$(firstword $(subst :, ,$p)))
MISSING := $(strip $(foreach l,$(LIBS),$(if $(filter 0,$(HAVE_$l)),$l)))
header_of = $(word 2,$(subst :, ,$(filter $1:%,$(PROBES))))
# Of the sources given, those that include a header of a missing library and do not ask HAVE_X.
without_library = $(foreach l,$(MISSING),$(shell \
  grep -l '^#include <$(firstword $(subst /,/ ,$(call header_of,$l)))' $1 | xargs -r grep -L HAVE_$l))
# A base library that is missing is said by name, unless the goal installs it or does not need it.
NEEDED := $(filter-out check check-% deps% demo fuzz clean help gpu-% optional deb dist uninstall $B/tests/gpu% $B/bench/gpu%,$(or $(MAKECMDGOALS),all))
NO_BASE := $(filter $(BASE_NEEDS),$(MISSING))
ifneq ($(and $(NO_BASE),$(NEEDED)),)
$(error Nothing can be built without $(NO_BASE): `make deps` installs what is missing)
endif
OPTIONAL := $(filter-out $(BASE_NEEDS),$(LIBS)) MPI CUDA
optional: ; @echo $(OPTIONAL)
.PHONY: optional
# What a command lacks.
lacks = $(strip $(filter $(MISSING),$(needs_$1)))
