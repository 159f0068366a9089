// Shared by the two dialects of NVIDIA's TensorFlow 1 logs. A line of rank 0 for every iteration from the
// 21st on: "DLL 2021-03-23 11:48:38.824370 - (0, 20) imgs_per_sec : 2879.142978189404  cross_entropy : 7.2
// …".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "results/dialects/dialect.h"

namespace plumb {

inline constexpr std::int64_t kNgcTfUnlogged = 20;  // iterations before the first line

bool is_of_ngc_tf(std::string_view line);
// 20 for "- (0, 20) " and "Iteration: 20 ".
std::optional<std::int64_t> ngc_tf_step(std::string_view line);
// See Dialect::indices_wanted.
std::int64_t ngc_tf_indices_wanted(const Window& window, std::int64_t first_index);

}  // namespace plumb
