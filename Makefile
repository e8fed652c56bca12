# gpurhh: GROUP BY on a GPU (or a CPU built to behave like one) for PostgreSQL.
#
#   make                 build against the PostgreSQL that PG_CONFIG names
#   make install         as root, or whoever owns PostgreSQL's directories
#   make installcheck    regression tests in a server that is running
#   make demo            everything from nothing: set up, build, install, show
#   make check           the same, then every test in throw-away clusters
#   make check-core      PostgreSQL's own regression suite, with the node and without
#   make device-test     test/device_test: the devices without PostgreSQL; host_test
#   make table-test-cuda test/table_test: the CUDA table by itself, on a GPU
#   make simt-test       both of the CUDA code on the CPU, without a GPU or nvcc
#   make table-bench     this table and others, on an NVIDIA GPU
#   make table-test      the others' tests, without a GPU as well
#   make format          format src/, gpu/ and test/; format-check only looks
#
# Options: PG_CONFIG=…  WITH_CUDA=auto|yes|no  NVCC=…  CUDA_ARCHS="80 90"
#          WERROR=1  COPT=…  CC=clang

# The goals below must work before PostgreSQL's own makefiles are installed, so
# they never get as far as PGXS (whose "check" only says it is unsupported).
SCRIPT_GOALS = setup demo check check-core bench table-bench table-test format format-check

ifneq ($(filter $(SCRIPT_GOALS),$(MAKECMDGOALS)),)

.PHONY: $(MAKECMDGOALS)
setup:        ; @scripts/setup.sh
demo:         ; @scripts/demo.sh
check:        ; @scripts/check.sh
check-core:   ; @test/core_suite.sh
bench:        ; @bench/sql_bench.sh
table-bench:  ; @bench/table_bench.sh
table-test:   ; @bench/tables/test/run.sh
format:       ; @scripts/format.sh
format-check: ; @scripts/format.sh --check
$(filter-out $(SCRIPT_GOALS),$(MAKECMDGOALS)): ; @$(MAKE) --no-print-directory $@

else

MODULE_big = gpurhh
EXTENSION  = gpurhh
DATA       = $(wildcard gpurhh--*.sql)
PGFILEDESC = "gpurhh - GROUP BY on a GPU"

OBJS = $(patsubst %.c,%.o,$(wildcard src/*.c src/*/*.c))

# Everything in gpu/ is compiled without PostgreSQL's headers and flags and
# linked in as is: in OBJS, PGXS would want LLVM bitcode of it as well.  The CUDA
# device is a library of its own, which only the device service loads; what both
# devices share is in both libraries.
SHARED_OBJS = $(patsubst %.c,%.o,$(wildcard gpu/*.c))
CPU_OBJS = $(SHARED_OBJS) $(patsubst %.c,%.o,$(wildcard gpu/cpu/*.c))
GPU_OBJS = $(CPU_OBJS) $(CUDA_OBJS)
CUDA_LIBRARY = gpurhh_cuda.so

# Tells builds of gpurhh.so and gpurhh_cuda.so apart that do not fit.  What the two
# agree on is in the headers that stand beside the devices' folders.
RHH_HEADERS := $(shell cat gpu/*.h | cksum | tr ' ' '-')

# ---------- CUDA or not ----------

# The nvcc found by the first make is remembered in .build-nvcc, so that
# "make && sudo make install" does not lose a compiler that only the first PATH
# has (and build everything anew for the CPU alone).
WITH_CUDA ?= auto
NVCC_FOUND := $(shell for n in '$(NVCC)' "$$(cat .build-nvcc 2>/dev/null)" nvcc /usr/local/cuda/bin/nvcc; do \
	[ -n "$$n" ] && command -v "$$n" && break; done 2>/dev/null)

# Where the toolkit is, nvcc itself says: what PATH has may be a link or a
# script that starts an nvcc somewhere else.
ifneq ($(NVCC_FOUND),)
  CUDA_HOME := $(shell $(NVCC_FOUND) --dryrun -x cu /dev/null 2>&1 | sed -n 's/^\#\$$ TOP=//p')
  CUDART := $(firstword $(wildcard $(addsuffix /libcudart_static.a, \
	$(CUDA_HOME)/lib64 \
	$(CUDA_HOME)/targets/$(shell uname -m)-linux/lib \
	$(CUDA_HOME)/targets/sbsa-linux/lib \
	$(CUDA_HOME)/lib \
	/usr/lib/$(shell uname -m)-linux-gnu)))
endif

ifeq ($(NVCC_FOUND),)
  WHY_NO_CUDA := no nvcc in NVCC, PATH or /usr/local/cuda/bin
else ifeq ($(CUDART),)
  WHY_NO_CUDA := $(NVCC_FOUND) is there, but not its libcudart_static.a (the CUDA runtime's development files)
endif

ifeq ($(WITH_CUDA),no)
  WHY_NO_CUDA := WITH_CUDA=no
else ifeq ($(WITH_CUDA),yes)
  ifneq ($(WHY_NO_CUDA),)
    $(error WITH_CUDA=yes, but $(WHY_NO_CUDA))
  endif
else ifneq ($(WITH_CUDA),auto)
  $(error WITH_CUDA is auto, yes or no, not "$(WITH_CUDA)")
endif
CUDA := $(if $(WHY_NO_CUDA),no,yes)

ifeq ($(CUDA),yes)
  # Native code for what this nvcc knows from sm_70 up, and PTX of the newest
  # for GPUs to come.  Left out on x86: the parts of systems on a chip with an
  # Arm host (Xavier, Orin, Thor, GB10), which no x86 machine can have.
  CUDA_SOC_ARCHS = $(if $(filter x86_64,$(shell uname -m)),72 87 88 101 110 121)
  CUDA_ARCHS ?= $(filter-out $(CUDA_SOC_ARCHS),$(shell $(NVCC_FOUND) --list-gpu-code | \
	sed -n 's/^sm_\([0-9]*\)$$/\1/p' | sort -n | awk '$$1 >= 70'))
  CUDA_ARCHS := $(CUDA_ARCHS)
  ifeq ($(strip $(CUDA_ARCHS)),)
    $(error CUDA_ARCHS is empty: give the compute capabilities to build for, as in CUDA_ARCHS="80 90")
  endif
  CUDA_PTX_ARCH := $(shell printf '%s\n' $(CUDA_ARCHS) | sort -n | tail -1)

  CUDA_OBJS = gpu/cuda/rhh_cuda.o
  CUDA_LIBS = $(CUDART) -lpthread -ldl -lrt
  CUDA_DEFINE = -DRHH_WITH_CUDA
  TEST_CUDA_OBJS = test/device_memory.o
  # Compressed as a whole, which nvcc by itself does by half: 8.9 MB became 2.0
  # for sm_90 (nvcc 13.0).
  NVCC_FLAGS = -std=c++17 -O3 -lineinfo --threads 0 -Xfatbin -compress-all -Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-fno-threadsafe-statics,-Wall \
	$(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
	-gencode arch=compute_$(CUDA_PTX_ARCH),code=compute_$(CUDA_PTX_ARCH) \
	$(if $(WERROR),--Werror all-warnings -Xcompiler -Werror) $(NVCC_EXTRA)
endif

GPU_LIBS = $(CUDA_LIBS) -lpthread

# ---------- PGXS ----------

# PostgreSQL was built by gcc, perhaps: its flags and its gnu_printf attributes
# are strange to clang.
ifneq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)
  CLANG_FLAGS := -Wno-unknown-warning-option -Wno-ignored-optimization-argument \
	-Wno-ignored-attributes -Wno-unused-command-line-argument
endif

PG_CPPFLAGS  = -Isrc -Igpu $(CUDA_DEFINE)
# Floats that a contracted multiplication and addition would round differently.
PG_CFLAGS    = -MMD -MP -ffp-contract=off $(if $(WERROR),-Werror) $(CLANG_FLAGS)
SHLIB_LINK   = $(CPU_OBJS) -lpthread -ldl

REGRESS      = $(sort $(patsubst sql/%.sql,%,$(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=gpurhh
# The expected output is that of UTF8 and of the locale C, whatever the server's
# other databases have.
ENCODING     = UTF8
NO_LOCALE    = 1

# The TAP tests start servers of their own, which root may not do; they need
# the Perl modules of the server's development package and IPC::Run.  "make
# check" arranges all of that.
PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
# Debian has PGXS in the client's package: without the headers it is of no use.
ifeq ($(shell [ -e '$(PGXS)' ] && [ -e "$$($(PG_CONFIG) --includedir-server)/postgres.h" ] && echo yes),)
  $(error PostgreSQL's server development files are missing (asked $(PG_CONFIG)): run scripts/setup.sh, or name another with PG_CONFIG=)
endif
ifneq ($(wildcard t/*.pl),)
  TAP_DIR := $(dir $(PGXS))../../src/test/perl
  ifeq ($(shell [ "$$(id -u)" != 0 ] && perl -I$(TAP_DIR) -MPostgreSQL::Test::Cluster -e 'print 1' 2>/dev/null),1)
    TAP_TESTS = 1
  else ifneq ($(filter installcheck,$(MAKECMDGOALS)),)
    $(info gpurhh: leaving the TAP tests (t/) out: they need an ordinary user, IPC::Run and PostgreSQL::Test; "make check" arranges that)
  endif
endif

# A PostgreSQL built with LLVM wants bitcode of the extension too; without the
# clang it was built with, do without.
ifeq ($(wildcard $(shell sed -n 's/^CLANG *= *\([^ ]*\).*/\1/p' $(dir $(PGXS))../Makefile.global)),)
  override with_llvm := no
endif

EXTRA_CLEAN = $(CUDA_LIBRARY) $(foreach d,src src/* gpu gpu/*,$(addprefix $(d)/,*.o *.bc *.d)) .build-flags .build-flags-cuda .build-nvcc \
	test/device_test test/device_test_* test/host_test test/host_test_asan test/table_test test/table_test_* test/*.o test/*.d test/device/*.o test/device/*.d test/build-* bench/build \
	tmp_check log results regression.diffs regression.out

include $(PGXS)

# No server has a role root, and Debian's lets only postgres connect as postgres.
ifeq ($(filter installcheck,$(MAKECMDGOALS)) $(PGUSER) $(shell id -u),installcheck  0)
  override pg_regress_installcheck := scripts/regress_as_postgres.sh $(top_builddir)/src/test/regress/pg_regress --bindir='$(bindir)' $(pg_regress_locale_flags) $(EXTRA_REGRESS_OPTS)
endif

$(shlib): $(CPU_OBJS)

src/service/cuda_library.o src/service/cuda_library.bc: private override CPPFLAGS += -DRHH_HEADERS='"$(RHH_HEADERS)"'
src/service/cuda_library.o: $(wildcard gpu/*.h)

ifeq ($(CUDA),yes)
all: $(CUDA_LIBRARY)
install: install-cuda
endif
.PHONY: install-cuda uninstall-cuda
install-cuda: $(CUDA_LIBRARY) installdirs
	$(INSTALL_SHLIB) $(CUDA_LIBRARY) '$(DESTDIR)$(pkglibdir)/'
uninstall: uninstall-cuda
uninstall-cuda:
	rm -f '$(DESTDIR)$(pkglibdir)/$(CUDA_LIBRARY)'
# What a build with CUDA has installed is not of this one.
ifeq ($(CUDA),no)
install: uninstall-cuda
endif

# Their loops over columns are worth it, as core's checksums are.
src/batch/feed.o src/batch/pairs.o src/scan/heap_feed.o src/scan/heap_walk.o $(filter src/expr/%,$(OBJS)): CFLAGS += $(CFLAGS_UNROLL_LOOPS) $(CFLAGS_VECTORIZE)

# ---------- gpu/ ----------

GPU_CFLAGS = -std=gnu11 -O3 -ffp-contract=off -g -fPIC -fvisibility=hidden -pthread -Wall -Wextra \
	-Wmissing-prototypes -Wpointer-arith -Wvla $(if $(WERROR),-Werror) $(COPT)

$(CPU_OBJS): gpu/%.o: gpu/%.c .build-flags
	$(CC) $(GPU_CFLAGS) -Igpu $(CUDA_DEFINE) -MMD -MP -c -o $@ $<

gpu/cuda/rhh_cuda_library.o: gpu/cuda/rhh_cuda_library.c $(wildcard gpu/*.h) .build-flags
	$(CC) $(GPU_CFLAGS) -Igpu $(CUDA_DEFINE) -DRHH_HEADERS='"$(RHH_HEADERS)"' -c -o $@ $<

$(CUDA_LIBRARY): gpu/cuda/rhh_cuda_library.o $(CUDA_OBJS) $(SHARED_OBJS)
	$(CC) -shared -o $@ $^ -Wl,--exclude-libs,ALL -Wl,-z,relro -Wl,-z,defs $(CUDA_LIBS) -lc

gpu/cuda/rhh_cuda.o: gpu/cuda/rhh_cuda.cu .build-flags-cuda
	@echo 'nvcc: native code for $(addprefix sm_,$(CUDA_ARCHS)), PTX of compute_$(CUDA_PTX_ARCH)'
	$(NVCC_FOUND) $(NVCC_FLAGS) -Igpu $(CUDA_DEFINE) -MMD -MP -MF gpu/cuda/rhh_cuda.d -c -o $@ $<

# ---------- test/device_test, made of test/device ----------

test/device_memory.o: test/device_memory.cu gpu/table/rhh_tile.cuh .build-flags-cuda
	$(NVCC_FOUND) $(NVCC_FLAGS) -Igpu -c -o $@ $<

# The sanitizers are for the CPU device: they see nothing of a GPU's memory
# (compute-sanitizer does) and mistake the driver's mappings for leaks.
SANITIZE_asan = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SANITIZE_tsan = -fsanitize=thread
TEST_SRCS = $(wildcard test/device/*.c)
TEST_OBJS = $(TEST_SRCS:.c=.o)
TEST_CFLAGS = $(GPU_CFLAGS) -Igpu

.PHONY: device-test device-test-asan device-test-tsan
device-test: test/device_test test/host_test
device-test-asan: test/device_test_asan test/host_test_asan
device-test-tsan: test/device_test_tsan

$(TEST_OBJS): test/device/%.o: test/device/%.c .build-flags
	$(CC) $(TEST_CFLAGS) $(CUDA_DEFINE) -MMD -MP -c -o $@ $<

test/device_test: $(TEST_OBJS) $(GPU_OBJS) $(TEST_CUDA_OBJS)
	$(CC) $(TEST_CFLAGS) -o $@ $^ $(GPU_LIBS) -lm

test/device_test_asan test/device_test_tsan: test/device_test_%: $(TEST_SRCS) $(CPU_OBJS:.o=.c) .build-flags
	$(CC) $(TEST_CFLAGS) -O1 $(SANITIZE_$*) -o $@ $(TEST_SRCS) $(CPU_OBJS:.o=.c) -lpthread -lm
test/device_test_asan test/device_test_tsan: $(wildcard test/device/*.h gpu/*.h gpu/cpu/*.h)

HOST_TEST_SRCS = test/host_test.c gpu/cpu/rhh_cpu_host.c

test/host_test: $(HOST_TEST_SRCS) gpu/cpu/rhh_cpu_host.h .build-flags
	$(CC) $(TEST_CFLAGS) -o $@ $(HOST_TEST_SRCS)

test/host_test_asan: $(HOST_TEST_SRCS) gpu/cpu/rhh_cpu_host.h .build-flags
	$(CC) $(TEST_CFLAGS) -O1 $(SANITIZE_asan) -o $@ $(HOST_TEST_SRCS)

# ---------- test/table_test, and CUDA code on the CPU ----------

# The same sources by nvcc, or by a C++ compiler with test/simt.h, which runs
# CUDA's threads as fibers; with warps of 32 lanes, and of 64 as AMD's.
SIMT_CXX = $(CXX) -std=c++17 -O2 -ffp-contract=off -g -Wall -Wextra $(if $(WERROR),-Werror) -Igpu -Itest -Ibench/tables -x c++
CUDA_HEADERS = $(wildcard gpu/*.h gpu/*/*.h gpu/*/*.cuh test/simt.h test/*.cuh)

.PHONY: table-test-cuda simt-test
table-test-cuda: test/table_test
simt-test: test/table_test_simt test/table_test_simt64 test/device_test_simt

test/table_test: test/table_test.cu $(CUDA_HEADERS)
	$(NVCC_FOUND) -std=c++17 -O3 -lineinfo $(foreach a,$(filter-out 7% 8%,$(CUDA_ARCHS)),-gencode arch=compute_$(a),code=sm_$(a)) -Igpu -o $@ $<

test/table_test_simt: test/table_test.cu $(CUDA_HEADERS)
	$(SIMT_CXX) -o $@ $<

test/table_test_simt64: test/table_test.cu $(CUDA_HEADERS)
	$(SIMT_CXX) -DSIMT_WARP_SIZE=64 -o $@ $<

# Small local tables, units and pieces, so that small batches have many.
test/rhh_cuda_simt.o: gpu/cuda/rhh_cuda.cu $(CUDA_HEADERS)
	$(SIMT_CXX) -DRHH_CUDA_LOCAL_BYTES=4096 -DRHH_CUDA_UNIT_ROWS=300 -DRHH_CUDA_PIECE_ROWS=700 -c -o $@ $<

test/device_memory_simt.o: test/device_memory.cu $(CUDA_HEADERS)
	$(SIMT_CXX) -c -o $@ $<

# The same C files, which now know of a CUDA device.
TEST_SIMT_OBJS = $(TEST_SRCS:.c=_simt.o)
$(TEST_SIMT_OBJS): test/device/%_simt.o: test/device/%.c .build-flags
	$(CC) $(TEST_CFLAGS) -DRHH_WITH_CUDA -MMD -MP -c -o $@ $<

test/device_test_simt: $(TEST_SIMT_OBJS) test/rhh_cuda_simt.o test/device_memory_simt.o $(CPU_OBJS)
	$(CXX) -o $@ $^ -lpthread -lm

# ---------- what depends on what ----------

# .build-flags* hold the commands that things were built with, and change when
# those do.  What was chosen about CUDA is said when that happens: once.
BUILD_FLAGS := $(strip $(subst ',,$(CC) $(CPPFLAGS) $(CFLAGS) | $(GPU_CFLAGS) | $(PGXS) | CUDA=$(CUDA)))
CUDA_FLAGS := $(strip $(subst ',,$(NVCC_FOUND) $(NVCC_FLAGS)))

ifneq ($(filter-out clean distclean maintainer-clean,$(or $(MAKECMDGOALS),all)),)
  ifneq ($(wildcard gpurhh.so)$(shell [ -w . ] && echo writable),)
  else
    $(error $(CURDIR) cannot be written, and the extension is built in it: copy it to a place that can be)
  endif
  ifneq ($(BUILD_FLAGS),$(strip $(shell cat .build-flags 2>/dev/null)))
    $(shell echo '$(BUILD_FLAGS)' 2>/dev/null >.build-flags)
    ifeq ($(CUDA),yes)
      $(info gpurhh: building the CPU device and the CUDA device, with $(NVCC_FOUND))
    else
      $(info gpurhh: building the CPU device only ($(WHY_NO_CUDA)))
      $(shell rm -f $(CUDA_LIBRARY))
    endif
  endif
  ifeq ($(CUDA),yes)
    ifneq ($(CUDA_FLAGS),$(strip $(shell cat .build-flags-cuda 2>/dev/null)))
      $(shell echo '$(CUDA_FLAGS)' 2>/dev/null >.build-flags-cuda)
      $(shell echo '$(NVCC_FOUND)' 2>/dev/null >.build-nvcc)
    endif
  endif
endif

$(OBJS): .build-flags
$(OBJS:.o=.bc): %.bc: %.o

.build-flags .build-flags-cuda: ;

-include $(OBJS:.o=.d) $(wildcard gpu/*.d gpu/*/*.d test/*.d test/device/*.d)

endif
