#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/paths.h"
#include "base/text.h"
#include "results/simulation/prediction.h"
#include "results/simulation/step_model.h"
#include "results/statistics/robust.h"
#include "results/statistics/significance.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

struct ProfiledRun {
  const Sample* sample = nullptr;
  const Measurement* run = nullptr;
};

bool is_profiled(const Measurement& run) {
  std::error_code ignored;
  return run.record && fs::is_regular_file(run.run_folder / "profile.json", ignored);
}

// The one curve among the samples: those on several devices, with the sample alone that belongs to them.
CurveSamples only_curve(const std::vector<Sample>& samples) {
  const std::vector<CurveSamples> groups = group_by_curve(samples);
  std::vector<CurveSamples> curves;
  for (const CurveSamples& group : groups)
    if (group.back()->configuration.devices() > 1) curves.push_back(group);
  if (curves.empty()) curves = groups;
  if (curves.size() > 1)
    throw Error(ExitCode::bad_data,
                "RUN holds runs of {} configurations, first {} and {}; pass the runs of one", curves.size(),
                configuration_text(curves[0].front()->configuration),
                configuration_text(curves[1].front()->configuration));
  return behind_base(curves.front(), groups);
}

// No run if none has a profile.
ProfiledRun profiled_run(const CurveSamples& curve) {
  for (const Sample* sample : curve)
    for (const Measurement& run : sample->runs)
      if (is_profiled(run)) return {sample, &run};
  return {};
}

MeasuredCase measured_case(const Sample& sample) {
  MeasuredCase result{.layout = {sample.configuration.nodes, sample.configuration.devices_per_node},
                      .images_per_second = median(sample.figures()),
                      .runs = static_cast<int>(sample.runs.size())};
  double least = HUGE_VAL;
  for (const Measurement& run : sample.runs)
    if (const double distance = std::abs(run.images_per_second - result.images_per_second);
        run.record && distance < least) {
      least = distance;
      result.record = *run.record;
    }
  return result;
}

// The interval of the step alone, and how much it varies from step to step.
void add_spread(ScalingBasis& basis, const ProfiledRun& from) {
  const double seconds = basis.step.seconds();
  std::vector<double> factors{1};
  const std::span<const double> window = from.run->record->window();
  const double middle = window.empty() ? 0 : median(window);
  if (middle > 0) {
    basis.deviation_seconds = median_deviation(window, middle) / middle * seconds;
    if (const auto interval = median_interval(window))
      factors.insert(factors.end(), {interval->low / middle, interval->high / middle});
  }
  const double typical = median(from.sample->figures());
  for (const double figure : from.sample->figures())
    if (figure > 0) factors.push_back(typical / figure);
  basis.fastest_seconds = seconds * std::ranges::min(factors);
  basis.slowest_seconds = seconds * std::ranges::max(factors);
}

void add_notes(ScalingBasis& basis, const LoadedSamples& loaded, const CurveSamples& curve) {
  for (const Note& bad : loaded.bad)
    basis.notes.push_back(fmt::format("{} is left out: {}", bad.subject, bad.text));
  for (const Sample& sample : loaded.samples)
    if (std::ranges::find(curve, &sample) == curve.end())
      basis.notes.push_back(fmt::format("{} is left out, as it differs from the runs on several devices",
                                        configuration_text(sample.configuration)));
}

}  // namespace

bool has_profile(const CurveSamples& curve) {
  return profiled_run(curve).run != nullptr;
}

std::optional<Links> probed_links(const std::vector<MeasuredCase>& measured) {
  std::optional<Links> found;
  for (const MeasuredCase& one : measured) {
    const std::optional<Links>& links = one.record.links;
    if (!links || (found && found->hosts.size() >= links->hosts.size())) continue;
    const auto comm = one.record.config.find("comm");
    if (comm != one.record.config.end() && *comm == links->comm) found = links;
  }
  return found;
}

std::vector<MeasuredCase> measured_cases(const CurveSamples& curve) {
  return mapped(curve, [](const Sample* sample) { return measured_case(*sample); });
}

ScalingBasis scaling_basis(const CurveSamples& curve) {
  const ProfiledRun from = profiled_run(curve);
  if (from.run == nullptr)
    throw Error(ExitCode::bad_data, "no run of {} has a profile.json; run again with --profile",
                configuration_text(curve.front()->configuration));
  const RunRecord& record = *from.run->record;
  const fs::path folder = from.run->run_folder;
  StepModel step = read_recorded_step(folder / "program.json");
  if (step.sharded)
    throw Error(ExitCode::bad_data,
                "file '{}' spreads class centers over its ranks, which the simulation does not follow; pass "
                "a run of resnet50 or with --head dp",
                printable((folder / "program.json").string()));
  if (record.device != "cuda") step.roofline_seconds = 0;
  ScalingBasis basis{.configuration = configuration_of(record), .run = folder.string()};
  const double throughput = median(from.sample->figures());
  const double whole =
      static_cast<double>(record.batch_per_device) * record.world_size / std::max(throughput, 1e-9);
  const double exposed = record.world_size > 1 ? positive_or_zero(record.exposed_communication_seconds) : 0;
  if (!(throughput > 0) || exposed >= whole || record.batch_per_device < 1)
    throw Error(ExitCode::bad_data,
                "'{}' has a step of {:.6g} s with {:.6g} s of exposed communication, so no time to compute; "
                "pass another run",
                printable(folder.string()), whole, exposed);
  basis.step = stretched_to(std::move(step), whole - exposed);
  basis.data_wait_seconds = positive_or_zero(record.data_wait_seconds);
  add_spread(basis, from);
  basis.measured = measured_cases(curve);
  return basis;
}

ScalingBasis load_scaling_basis(const std::vector<std::string>& paths) {
  const LoadedSamples loaded = load_samples(paths);
  const CurveSamples curve = only_curve(loaded.samples);
  ScalingBasis basis = scaling_basis(curve);
  add_notes(basis, loaded, curve);
  return basis;
}

void check_hosts(const ScalingBasis& basis, const Links& links, const std::string& file) {
  for (const MeasuredCase& one : basis.measured)
    for (const RankRecord& rank : one.record.ranks) {
      if (rank.host.empty() ||
          std::ranges::find(links.hosts, rank.host, &LinkHost::name) != links.hosts.end())
        continue;
      std::string names;
      for (const LinkHost& host : links.hosts) append_part(names, printable(host.name));
      throw Error(ExitCode::bad_data,
                  "--links {}: it has hosts {}, and the run {} was on {}; measure its links with "
                  "bench_allreduce --output, or pass --force to plumbline scaling",
                  printable(file), shortened(names, 200), one.layout.name(), printable(rank.host));
    }
}

}  // namespace plumb
