#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "models/catalogue.h"
#include "results/report/report_curves.h"
#include "results/simulation/scaling_verdicts.h"

namespace plumb {
namespace {

struct NamedLinks {
  Links links;
  std::string file;  // that they are from
};

std::optional<NamedLinks> links_of_file(const std::string& file, std::vector<std::string>& left_out) {
  if (file.empty()) return {};
  try {
    return NamedLinks{read_links(file), file};
  } catch (const Error& error) {
    left_out.push_back(error.what());
    return {};
  }
}

std::optional<JudgedScaling> judge(const CurveSamples& curve, const NamedLinks& links,
                                   std::optional<double> expected_link, std::vector<std::string>& left_out) {
  try {
    ScalingBasis basis = scaling_basis(curve);
    check_hosts(basis, links.links, links.file);
    return judge_scaling(std::move(basis), links.links, expected_link);
  } catch (const Error& error) {
    left_out.push_back(error.what());
    return {};
  }
}

ReportPoint predicted_point(const PredictedCase& one) {
  const int devices = one.layout.devices();
  return {.case_name = one.layout.name(),
          .devices = devices,
          .median_images_per_second = one.images_per_second,
          .interval = Interval{one.low_images_per_second, one.high_images_per_second, 0},
          .speedup = one.efficiency * devices,
          .efficiency = one.efficiency};
}

std::string answered_subject(const Configuration& configuration) {
  const Model* model = find_model(configuration.model);
  return fmt::format("{} {}", model ? std::string(model->title) : configuration.model,
                     configuration.precision);
}

// Why nothing is predicted: what is missing, or what judging said last.
std::string reason_of(bool profiled, bool has_links, const std::optional<JudgedScaling>& judged,
                      const std::vector<std::string>& left_out) {
  if (profiled && has_links && !judged) return ": " + left_out.back();
  if (judged && !judged->prediction.notes.empty()) return ": " + judged->prediction.notes.front();
  if (profiled) return has_links ? " without a links.json that has its links" : " without links.json";
  return has_links ? " without a run with --profile" : " without a run with --profile and links.json";
}

std::optional<NamedLinks> probed_by(const CurveSamples& curve) {
  std::optional<Links> probed = probed_links(measured_cases(curve));
  return probed ? std::optional(NamedLinks{std::move(*probed), kProbedLinks}) : std::nullopt;
}

void add_prediction(const CurveSamples& curve, const std::optional<NamedLinks>& links,
                    std::optional<double> expected_link, ReportCurve& shown, ReportData& data) {
  std::vector<std::string>& left_out = data.left_out;
  const bool profiled = has_profile(curve);
  std::optional<JudgedScaling> judged;
  if (links && profiled) judged = judge(curve, *links, expected_link, left_out);
  if (judged) {
    for (const PredictedCase& one : judged->prediction.cases) shown.predicted.push_back(predicted_point(one));
    for (const Note& verdict : judged->verdicts)
      data.notes.push_back({"prediction", verdict.kind + " " + note_text(verdict), shown.label});
    for (const std::string& note : judged->prediction.notes) left_out.push_back(links->file + ": " + note);
  }
  for (const std::string& sentence : scaling_verdict(shown.scaling))
    data.notes.push_back({"scaling", sentence, shown.label});
  shown.answer =
      scaling_answer(answered_subject(shown.configuration), measured_cases(curve), shown.scaling,
                     judged ? &*judged : nullptr, reason_of(profiled, links.has_value(), judged, left_out));
}

}  // namespace

void add_predictions(const std::vector<CurveSamples>& groups, const ReportOptions& options,
                     ReportData& data) {
  const std::optional<NamedLinks> named = links_of_file(options.links, data.left_out);
  if (named) data.links = to_json(named->links);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const CurveSamples curve = behind_base(groups[i], groups);
    if (curve.size() < 2) continue;
    const std::optional<NamedLinks> links = named ? named : probed_by(curve);
    if (links && data.links.is_null()) data.links = to_json(links->links);
    add_prediction(curve, links, options.expected_link, data.curves[i], data);
  }
}

}  // namespace plumb
