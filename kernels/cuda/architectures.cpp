#include "kernels/cuda/plan/gpu_choice.h"

namespace plumb::cuda {

std::string_view built_architectures() {
  return PLUMB_BUILT_ARCHITECTURES;
}

}  // namespace plumb::cuda
