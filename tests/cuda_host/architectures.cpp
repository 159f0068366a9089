// The emulated GPU's kernels are the CPU's code: they run on whatever it plays.
#include "kernels/cuda/gpu_choice.h"

namespace plumb::cuda {

std::string_view built_architectures() {
  return "50-virtual";
}

}  // namespace plumb::cuda
