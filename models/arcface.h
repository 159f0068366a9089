// Face recognition as a Graph: a backbone, and a margin loss over class centres that ranks may share out.
#pragma once

#include <cstdint>

#include "models/model_options.h"

namespace plumb {

inline constexpr std::int64_t kMaxEmbedding = std::int64_t{1} << 16;
inline constexpr std::int64_t kMaxClasses = (std::int64_t{1} << 31) - 1;  // labels and samples are i32

// The graph is called as its backbone; its last parameter is "head.weight". Image sizes are multiples of 16,
// published results have 112. Throws Error(usage).
Graph make_arcface(const ModelOptions& options);

}  // namespace plumb
