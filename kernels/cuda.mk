# The CUDA backend is a shared object, built where nvcc is.  HAVE_CUDA=0: without; 1: fail if it is missing.
NVCC ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc))
HAVE_CUDA ?= $(if $(NVCC),1,0)
# Machine code for these, compressed; PTX of sm_90 for what comes later.  NVARCHS="80 90 100 120" has all that tests/sass.sh holds.
NVARCHS ?= 80 90
NVFLAGS ?= -O3 -lineinfo $(foreach a,$(NVARCHS),-gencode arch=compute_$a,code=sm_$a) -gencode arch=compute_90,code=compute_90 -Xfatbin -compress-all
# Warnings are errors with the compiler that was looked at: another one's spills a register more is no reason to have no backend.
NVSTRICT ?= $(if $(NVCC),$(if $(findstring release 13.0,$(shell $(NVCC) --version)),1))
NVWARN := -Xptxas -warn-spills$(if $(filter 1,$(NVSTRICT)),$(comma)-Werror -Werror all-warnings)
NVALL = -std=c++17 $(NVFLAGS) -fmad=false -I. $(NVWARN) -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,$(subst $() ,$(comma),$(HARDEN)) -MMD -MP
CU := $(wildcard kernels/*.cu)
CUDA_BACKEND := $(if $(filter 1,$(HAVE_CUDA)),$B/lib/quern-cuda.so)
$B/lib/quern-cuda.so: $(CU:%=$B/%.o) base/err.c
	@mkdir -p $(@D); $(NVCC) -shared -cudart static -Xlinker -z,defs,-z,relro,-z,now $(filter %.o,$^) -Xcompiler -O2,-D_FORTIFY_SOURCE=2,-fPIC,-fvisibility=hidden,$(subst $() ,$(comma),$(HARDEN)) base/err.c -I. -o $@
$B/%.cu.o: %.cu $B/flags
	@test -n "$(NVCC)" || { echo "no nvcc here: set NVCC=" >&2; exit 1; }
	@mkdir -p $(@D); $(NVCC) $(NVALL) -c $< -o $@

# Programs for a machine with a GPU.  They stand on these files alone, and need no library but libc (and oneDNN where it is).
GPU := base/err.c base/isa.c base/mem.c base/plugin.c base/rng.c kernels/band_keys.c kernels/cuda.c kernels/device.c \
  kernels/device_cpu.c kernels/minhash.c kernels/minhash_sign.c kernels/minhash_simd.c kernels/mirror.c
GPU_LIBS := -lm -lpthread -ldl $(if $(filter 1,$(HAVE_DNNL)),$(LIB_DNNL))
TRAIN := act update attention embedding factored fp8 gate heads matmul norm rope route vec xent
GPU += kernels/amx.c kernels/device_train.c kernels/eight_bit.c kernels/matmul_amx_simd.c kernels/matmul_grouped.c $(if $(filter 1,$(HAVE_DNNL)),kernels/matmul_dnnl.c) \
  $(TRAIN:%=kernels/%.c) $(patsubst %,kernels/%_simd.c,$(filter-out rope heads,$(TRAIN)))
TRAIN_TWINS := $(wildcard tests/train_twins/*.c)                # cases of the ops of training
# A model that trains, with a hash for seeds where xxHash is missing.
STEPS := tests/steps.c $(patsubst %,train/%.c,model model_room model_forward model_back model_fp8 model_graph model_pool \
  model_config branch layer_attention module_attention module_experts module_latent module_mlp module_ring module_router module_shared \
  module_value moe_layers linear lora mtp params param_buffer param_gather param_reduce bucketing data_parallel pieces exchange trace \
  optim orthogonal squares) \
  comm/self.c comm/comm.c comm/collective.c comm/reduce.c base/log.c base/utf8.c
ifneq ($(HAVE_XXHASH),1)
$B/train/%.c.o: CPPFLAGS += -Itests/bare
endif
STEPS += $(filter-out comm/mpi_backend.c $(STEPS),$(wildcard comm/*.c)) $(wildcard base/nvtx.c)
GPU_TRAIN_BENCH := bench/gpu_train_bench.c $(wildcard bench/gpu_train/*.c)
PLANS := train/plan_ops.c train/plan_micro.c train/plan_device.c
gpu-sources: ; @echo $(STEPS) $(GPU) tests/gpu_check.c tests/jobs.c tests/twins.c $(TRAIN_TWINS) bench/gpu_bench.c $(GPU_TRAIN_BENCH) $(PLANS)
.PHONY: gpu-sources
$B/tests/gpu_check: $B/tests/gpu_check.c.o $B/tests/jobs.c.o $B/tests/twins.c.o $(TRAIN_TWINS:%=$B/%.o) $(call objs,$(STEPS) $(GPU))
	@$(CC) $(CFLAGS) $^ $(LDFLAGS) $(GPU_LIBS) -o $@
$B/bench/gpu_train_bench: $(GPU_TRAIN_BENCH:%=$B/%.o) $B/tests/jobs.c.o $(call objs,$(PLANS) $(STEPS) $(GPU))
	@mkdir -p $(@D); $(CC) $(CFLAGS) $^ $(LDFLAGS) $(GPU_LIBS) -o $@
$B/bench/gpu_bench: $B/bench/gpu_bench.c.o $B/tests/jobs.c.o $(call objs,$(GPU))
	@mkdir -p $(@D); $(CC) $(CFLAGS) $^ $(LDFLAGS) $(GPU_LIBS) -o $@
# NVIDIA's libraries may be PyTorch's alone.
WHEELS = $(shell python3 -c 'import glob, nvidia; print(":".join(d for p in nvidia.__path__ for d in sorted(glob.glob(p + "/*/lib"))))' 2>/dev/null)
NCCL_WHEEL = $(firstword $(wildcard $(addsuffix /libnccl.so.2,$(subst :, ,$(WHEELS)))))
ON_GPU = export QUERN_CUDA=$B/lib/quern-cuda.so QUERN_CUDA_NOTES=1 QUERN_CUDA_LIBRARIES="$${QUERN_CUDA_LIBRARIES-$(WHEELS)}" \
  $(if $(NCCL_WHEEL),QUERN_NCCL="$${QUERN_NCCL-$(NCCL_WHEEL)}");
# All of make gpu-check and gpu-bench ends within so many seconds, the build included; what has no time is left out.
GPU_SECONDS ?= 520
GPU_RUN = @end=$$(($$(date +%s) + $(GPU_SECONDS))); $(MAKE) $(PARALLEL) gpu-programs && { $(ON_GPU) bash tests/gpu.sh
gpu-programs: $B/tests/gpu_check $B/bench/gpu_bench $B/bench/gpu_train_bench $B/lib/quern-cuda.so
gpu-check:                                              ## on a GPU: each kernel against its twin (gcc, make and CUDA suffice)
	$(GPU_RUN) check $B $$end; }
# Of cuDNN's kernels, which wait by barriers in shared memory, racecheck and synccheck say what is not so.
NOT_OURS := --kernel-name-exclude kernel_substring=cudnn
gpu-sanitize: $B/tests/gpu_check $B/lib/quern-cuda.so   ## on a GPU: the same, small, under compute-sanitizer
	@for t in "memcheck --report-api-errors no" racecheck synccheck; do echo "# $$t"; $(ON_GPU) \
	  $(or $(wildcard $(dir $(NVCC))compute-sanitizer),compute-sanitizer) --tool $$t $(NOT_OURS) --error-exitcode 1 $B/tests/gpu_check 1 "" || exit 1; done
gpu-bench:                                              ## on a GPU: whole steps, ops, beside PyTorch if it is here; GPU_SECONDS=520
	$(GPU_RUN) bench $B $$end; }
sass-record: $(CUDA_BACKEND)                            ## with nvcc: write the table of what it makes of the kernels anew
	@NVCC=$(NVCC) bash tests/sass.sh record $B
.PHONY: gpu-check gpu-programs gpu-sanitize gpu-bench sass-record
