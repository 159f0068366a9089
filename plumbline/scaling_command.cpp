// `plumbline scaling`: the throughput that links allow, beside what was measured.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/console/print.h"
#include "base/error.h"
#include "base/units.h"
#include "plumbline/command.h"
#include "results/simulation/scaling_verdicts.h"

namespace plumb {
namespace {

constexpr int kMostSimulatedDevices = 1 << 20;

struct ScalingArguments {
  std::vector<std::string> runs;
  std::string links;
  std::optional<int> to;
  std::optional<double> link, bandwidth, latency;  // GB/s, GB/s, µs
  bool force = false, json = false;
};

OptionTable scaling_options(ScalingArguments& arguments) {
  return {
      "plumbline scaling",
      "Predicts a run's throughput on more devices and hosts from its profile and measured links, and "
      "compares it with measured runs. REJECT: faster than the links allow; EXPLAIN: over 10 % slower than "
      "predicted; FLAG: steps that get shorter as devices are added; LINKS: what links of --link would "
      "allow.",
      {{"Input",
        {positional("RUN…", arguments.runs, "folder of a run with --profile, or of runs of one configuration")
             .as_required(),
         text_option("--links", "FILE", arguments.links,
                     "links.json of bench_allreduce, or an output of nccl-tests")
             .with_default("links.json in a RUN, else the runs' own probes"),
         link_option(arguments.link).rare(),
         flag_option("--force", arguments.force, true, "accept links.json of other hosts").rare()}},
       {"Cases",
        {number_option("--to", "N", arguments.to, {1, kMostSimulatedDevices}, "predict for up to N devices")
             .with_default("as links.json and the runs have")}},
       {"What if",
        {quantity_option("--bandwidth", "100Gbps", arguments.bandwidth,
                         {{"GB/s", 1}, {"MB/s", 1e-3}, {"Gbps", 0.125}, {"Mbps", 0.125e-3}},
                         {.lowest = 0, .highest = 1e6, .above_lowest = true},
                         "bandwidth of a host's links, instead of the measured one"),
         quantity_option("--latency", "5us", arguments.latency,
                         {{"us", 1}, {"ns", 1e-3}, {"ms", 1e3}, {"s", 1e6}}, {.lowest = 0, .highest = 1e6},
                         "latency of a hop between hosts, instead of the measured one")}},
       {"Output",
        {flag_option("--json", arguments.json, true, "print one JSON object instead of the tables")}}},
      {"plumbline scaling runs --links links.json --link 25Gbit/s # do they scale, and should they?",
       "plumbline scaling runs/RUN --links links.json --to 1024 # predict larger clusters",
       "plumbline scaling runs/RUN --links links.json --bandwidth 400Gbps # and faster links"}};
}

WhatIf what_if_of(const ScalingArguments& arguments) {
  WhatIf what_if;
  if (arguments.bandwidth) what_if.between_bytes_per_second = *arguments.bandwidth * kGiga;
  if (arguments.latency) what_if.between_latency_seconds = *arguments.latency * 1e-6;
  return what_if;
}

// Takes links from --links, from a links.json in a RUN, or as the runs probed them. Returns them with a name
// for messages.
std::pair<Links, std::string> links_of(const ScalingArguments& arguments, const ScalingBasis& basis) {
  if (const std::string file =
          arguments.links.empty() ? file_in_folders(arguments.runs, kLinksFile) : arguments.links;
      !file.empty())
    return {read_links(file), file};
  if (auto probed = probed_links(basis.measured)) return {std::move(*probed), kProbedLinks};
  throw Error(
      ExitCode::usage,
      "--links is missing, and no run is over several hosts; pass links.json of bench_allreduce --output");
}

int scaling_command(const ScalingArguments& arguments) {
  ScalingBasis basis = load_scaling_basis(arguments.runs);
  const auto [links, links_name] = links_of(arguments, basis);
  if (!arguments.force) check_hosts(basis, links, links_name);
  const JudgedScaling scaling = judge_scaling(
      std::move(basis), links, arguments.link ? std::optional(*arguments.link * kGiga) : std::nullopt,
      what_if_of(arguments), arguments.to);
  for (const auto* notes : {&scaling.basis.notes, &scaling.prediction.notes})
    for (const std::string& note : *notes) say(note);
  print_text(arguments.json ? json_text(prediction_json(scaling)) : prediction_text(scaling));
  return 0;
}

}  // namespace

const Command kScalingCommand = make_command("scaling", "predict throughput on more hosts, and compare it",
                                             scaling_options, scaling_command);

}  // namespace plumb
