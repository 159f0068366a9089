// Verdicts on measured throughput: impossible, slower than predicted, or odd; and the answer to one question:
// does it scale as it should, and if not, what holds it back? What `plumbline scaling` prints.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/compare/scaling_loss.h"
#include "results/record/note.h"
#include "results/simulation/prediction.h"

namespace plumb {

struct JudgedScaling {
  ScalingBasis basis;
  ScalingPrediction prediction;
  std::vector<Note> verdicts;
  static void fields(auto& self, auto&& each);
};

// Predicts the cases of up to `to` devices, by default as many as links and measured cases have, and judges
// what was measured. REJECT: measured faster than the bound by over 5 %, or than the roofline by over 2 %.
// EXPLAIN: slower than predicted by over kLeastLoss, with what holds it back, the largest part first: exposed
// communication, slow ranks, data, gaps and computing; and both bandwidths where such a run's own buckets
// reached under 0.8 of what was predicted for them. FLAG: steps get shorter by over 1 % where devices are
// added. LINKS: links of `expected_link` bytes/s between hosts would allow over kLeastLoss more than the
// measured ones. Subjects are cases, in their order; no verdicts on what-if predictions.
JudgedScaling judge_scaling(ScalingBasis basis, const Links& links, std::optional<double> expected_link = {},
                            const WhatIf& what_if = {}, std::optional<int> to = {});

// `subject`: "ResNet-50 v1.5 fp16"; `measured`: of one configuration, by devices. By its verdicts where
// `judged` has one of the measured cases on several devices: the case furthest below its prediction, with its
// EXPLAIN; else not judged where a case is rejected; else the largest case, held back where its links alone
// cost over kLeastLoss. Without a prediction: as it should where the largest case loses less than kLeastLoss,
// else by `losses`; `reason` says why nothing is predicted: " without a run with --profile". Nothing for
// fewer than two cases. Kinds: "as_it_should", "held_back", "not_judged".
std::optional<Note> scaling_answer(const std::string& subject, const std::vector<MeasuredCase>& measured,
                                   std::span<const ScalingLoss> losses, const JudgedScaling* judged,
                                   const std::string& reason);

inline constexpr const char* kScalingSchema = "plumbline.scaling/1";
extern const Document kScalingDocument;

// Cases with interval, efficiency, exposed communication and what was measured; the buckets of the largest
// case; verdicts. At most 100 columns.
std::string prediction_text(const JudgedScaling& scaling);
Json prediction_json(const JudgedScaling& scaling);

}  // namespace plumb
