// Curves of a report: throughput, speedup and efficiency over numbers of devices, own ones, predicted and
// published ones.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/compare/scaling_loss.h"
#include "results/published/published.h"
#include "results/report/report_data.h"

namespace plumb {

// One curve for each group, one point for each sample. Speedups are against the median on one device, also
// where that is in another curve that differs by how devices talk. ReportPoint::runs counts the runs of all
// samples in this order.
std::vector<ReportCurve> own_curves(const std::vector<CurveSamples>& groups);

// The published tables nearest to the last point of each own curve, at most `most` per curve, the nearest
// first. A published curve is one table of a report, GPU, precision and batch; `differences` compares it with
// the own curve.
std::vector<ReportCurve> published_curves(std::span<const ReportCurve> own,
                                          std::span<const PublishedResult> published, std::size_t most);

// Gives own curves labels that tell them apart ("fp16, batch 128, NVIDIA H200"), and returns what all of them
// share ("Plumbline, synthetic"). A single curve, and curves that differ in nothing that is known, have
// framework, precision and batch. Devices are not counted; values that are usual for a model are not named.
std::string name_curves(std::vector<ReportCurve>& curves);

// Speedups that no point states yet, against `one_device` images/s, and efficiencies.
void add_speedups(ReportCurve& curve, std::optional<double> one_device);
// "r50, resnet50 on NVIDIA H200": the models, and the device if it is one.
std::string subject_of(const std::vector<ReportCurve>& curves);
// Numbers the labels that are used twice: "… (2)".
void make_unique(std::vector<ReportCurve>& curves);

// Fills in answer and predicted of data.curves, which are those of `groups`, and data.links; adds the
// verdicts to data.notes. What can't be used is named in data.left_out.
void add_predictions(const std::vector<CurveSamples>& groups, const ReportOptions& options, ReportData& data);

}  // namespace plumb
