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

// As the run on the most hosts probed them; those over which its collectives didn't go say nothing.
std::optional<NamedLinks> probed_links(const CurveSamples& curve) {
  std::optional<NamedLinks> found;
  for (const Sample* sample : curve)
    for (const Measurement& run : sample->runs) {
      if (!run.record || !run.record->links) continue;
      const Links& links = *run.record->links;
      const auto comm = run.record->config.find("comm");
      const bool goes_there = comm != run.record->config.end() && *comm == links.comm;
      if (goes_there && (!found || links.hosts.size() > found->links.hosts.size()))
        found = NamedLinks{links, run.origin};
    }
  return found;
}

std::optional<JudgedScaling> judge(const CurveSamples& curve, const NamedLinks& links,
                                   std::vector<std::string>& left_out) {
  try {
    JudgedScaling judged{.basis = scaling_basis(curve)};
    check_hosts(judged.basis, links.links, links.file, false);
    judged.prediction = predict_scaling(
        judged.basis, links.links, {},
        cases_between(1, most_devices(judged.basis, links.links), devices_per_host(links.links)));
    judged.verdicts = scaling_verdicts(judged.basis, judged.prediction);
    return judged;
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

void add_prediction(const CurveSamples& curve, const std::optional<NamedLinks>& named, ReportCurve& shown,
                    std::vector<std::string>& left_out) {
  if (curve.size() < 2) return;
  const std::optional<NamedLinks> links = named ? named : probed_links(curve);
  const bool profiled = has_profile(curve);
  std::optional<JudgedScaling> judged;
  if (links && profiled) judged = judge(curve, *links, left_out);
  if (judged) {
    for (const PredictedCase& one : judged->prediction.cases) shown.predicted.push_back(predicted_point(one));
    for (const Note& verdict : judged->verdicts)
      shown.verdicts.push_back({"prediction", verdict.kind + " " + note_text(verdict)});
    for (const std::string& note : judged->prediction.notes) left_out.push_back(links->file + ": " + note);
  }
  for (const std::string& sentence : scaling_verdict(shown.scaling))
    shown.verdicts.push_back({"scaling", sentence});
  shown.answer =
      scaling_answer(answered_subject(shown.configuration), measured_cases(curve), shown.scaling,
                     judged ? &*judged : nullptr, reason_of(profiled, links.has_value(), judged, left_out));
}

}  // namespace

void add_predictions(const std::vector<CurveSamples>& groups, const std::string& links_file,
                     ReportData& data) {
  const std::optional<NamedLinks> named = links_of_file(links_file, data.left_out);
  for (std::size_t i = 0; i < groups.size(); ++i)
    add_prediction(behind_base(groups[i], groups), named, data.curves[i], data.left_out);
}

}  // namespace plumb
