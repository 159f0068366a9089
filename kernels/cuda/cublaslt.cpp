#include "kernels/cuda/cublaslt.h"

#include <dlfcn.h>

#include "base/error.h"

#define PLUMB_TEXT_OF(number) #number
#define PLUMB_TEXT(number) PLUMB_TEXT_OF(number)

namespace plumb::cuda {
namespace {

// launch/cuda_libraries.sh finds this name in programs.
constexpr const char* kCublasLt = "libcublasLt.so." PLUMB_TEXT(CUBLAS_VER_MAJOR);

Error not_loaded() {
  const char* reason = dlerror();
  return Error(ExitCode::unavailable,
               "option --device: {} can't be loaded ({}); put its folder first in LD_LIBRARY_PATH, or use "
               "--device cpu",
               kCublasLt, reason ? reason : "no reason given");
}

void* opened(int how) {
  return dlopen(kCublasLt, how | RTLD_LAZY | RTLD_LOCAL);
}

}  // namespace

CublasLt::CublasLt() : library(opened(0)) {}

LoadedFunction CublasLt::find(const char* name) const {
  void* const address = library ? dlsym(library, name) : nullptr;
  if (!address) throw not_loaded();
  return {address};
}

bool cublaslt_opens(bool load) {
  return opened(load ? 0 : RTLD_NOLOAD) != nullptr;
}

const CublasLt& cublaslt() {
  static const CublasLt library;
  return library;
}

}  // namespace plumb::cuda
