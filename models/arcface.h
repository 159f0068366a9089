// Face recognition as a Graph: a backbone, and a margin loss over class centers that may be sharded.
#pragma once

#include <cstdint>

#include "models/model_options.h"

namespace plumb {

inline constexpr std::int64_t kMaxEmbedding = std::int64_t{1} << 16;
inline constexpr std::int64_t kMaxClasses = (std::int64_t{1} << 31) - 1;  // labels and samples are i32

// The Graph is named after its backbone; its last parameter is "head.weight". Image sizes are multiples of
// 16; published results use 112. Throws Error(usage).
Graph make_arcface(const ModelOptions& options);

}  // namespace plumb
