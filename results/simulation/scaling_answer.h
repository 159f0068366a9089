// The answer to one question, as one sentence: does it scale as it should, and if not, what holds it back?
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/scaling/scaling_loss.h"
#include "results/simulation/prediction.h"
#include "results/simulation/scaling_verdicts.h"

namespace plumb {

struct JudgedScaling {
  ScalingBasis basis;
  ScalingPrediction prediction;
  std::vector<Note> verdicts;
};

// `subject`: "ResNet-50 v1.5 fp16"; `measured`: of one configuration, by devices. By its verdicts
// (scaling_verdicts.h) where `judged` has one of the measured cases on several devices: the case furthest
// below its prediction, with the largest part of what it lost; else the largest case, held back where its
// links alone cost over kLeastLoss. Without a prediction: as it should where the largest case loses less than
// kLeastLoss, else by slow ranks and `losses`; `missing` says what would tell more: "a run with --profile".
// Nothing for fewer than two cases. Kinds: "as_it_should", "held_back", "not_judged".
std::optional<Note> scaling_answer(const std::string& subject, const std::vector<MeasuredCase>& measured,
                                   std::span<const ScalingLoss> losses, const JudgedScaling* judged,
                                   const std::string& missing);

}  // namespace plumb
