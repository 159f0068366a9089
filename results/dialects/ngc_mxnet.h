// Shared by the two dialects of NVIDIA's MXNet logs. A line, which each rank of all nodes writes into one
// log: "2020-08-01 10:00:00,123:INFO: Epoch[0] Batch [0-0]<TAB>Speed: 392.24 samples/sec<TAB>LR: 0.001", the
// speed that of all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plumb {

bool is_of_ngc_mxnet(std::string_view line);
// 7 for "Batch [0-7]" and "Batch [7]".
std::optional<std::int64_t> ngc_mxnet_batch(std::string_view line);

}  // namespace plumb
