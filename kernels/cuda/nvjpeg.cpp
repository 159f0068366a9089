#include "kernels/cuda/nvjpeg.h"

#include <cstdlib>

#include "base/error.h"

namespace plumb::cuda {
namespace {

// From the environment variable PLUMBLINE_NVJPEG_LIBRARY, else that of the CUDA runtime's version.
std::string library_name() {
  const char* given = std::getenv("PLUMBLINE_NVJPEG_LIBRARY");
  return given && *given ? given : "libnvjpeg.so." + std::to_string(CUDART_VERSION / 1000);
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ExitCode::unavailable,
              "option --decode: 'gpu' wants nvJPEG, and {}; install CUDA's libnvjpeg (python3's package "
              "nvidia-nvjpeg{} has it), name it in PLUMBLINE_NVJPEG_LIBRARY, or give --decode cpu",
              what, CUDART_VERSION / 1000 < 13 ? "-cu12" : "");
}

}  // namespace

Nvjpeg::Nvjpeg() : library_(dlopen(library_name().c_str(), RTLD_NOW | RTLD_LOCAL)) {}

void* Nvjpeg::address_of(const char* name) {
  if (!library_) refuse(library_name() + " can't be loaded");
  void* const address = dlsym(library_.get(), name);
  if (!address) refuse(library_name() + " has no " + name);
  return address;
}

std::string Nvjpeg::name() const {
  int version[3] = {};  // libraryPropertyType: MAJOR_VERSION 0, MINOR_VERSION 1, PATCH_LEVEL 2
  for (int part = 0; part < 3; ++part) get_property(part, &version[part]);
  return fmt::format("nvJPEG {}.{}.{}", version[0], version[1], version[2]);
}

}  // namespace plumb::cuda
