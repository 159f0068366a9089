// A prediction as a table and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "results/simulation/prediction.h"
#include "results/simulation/scaling_verdicts.h"

namespace plumb {

inline constexpr const char* kScalingSchema = "plumbline.scaling/1";

// Cases with interval, efficiency, exposed communication and what was measured; the buckets of the largest
// case; verdicts. At most 100 columns.
std::string prediction_text(const ScalingBasis& basis, const ScalingPrediction& prediction,
                            const std::vector<Note>& verdicts);
Json prediction_json(const ScalingBasis& basis, const ScalingPrediction& prediction,
                     const std::vector<Note>& verdicts);
extern const Document kScalingDocument;

}  // namespace plumb
