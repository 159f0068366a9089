// The emulated GPU's kernels are CPU code: they run for any emulated architecture.
#include "kernels/cuda/plan/gpu_choice.h"

namespace plumb::cuda {

std::string_view built_architectures() {
  return "50-virtual";
}

}  // namespace plumb::cuda
