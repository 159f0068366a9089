#include <algorithm>

#include "kernels/cuda/plan/gpu_choice.h"
#include "kernels/cuda/plan/window_shape.h"

namespace plumb::cuda {

std::string_view built_architectures() {
  return PLUMB_BUILT_ARCHITECTURES;
}
bool built_for_warpgroups() {
  return std::ranges::count(parse_architectures(built_architectures()), kWindowComputeCapability,
                            &BuiltArchitecture::compute_capability) > 0;
}

}  // namespace plumb::cuda
