// Options that the bench programs share.
#include "base/error.h"
#include "base/ranges.h"
#include "bench/options/options.h"
#include "comm/communicator.h"

namespace plumb {

std::vector<std::string> target_names() {
  return mapped(targets(), &DeviceLimits::name);
}

OptionSpec communicator_option(std::string& target, const std::string& help) {
  OptionSpec spec = choice_option("--comm", target, {"auto", "nccl", "mpi"}, help);
  spec.set = [set = spec.set](const std::string& value) {
    if (value == "nccl" && !why_no_nccl().empty())
      throw Error(ExitCode::unavailable, "--comm nccl is not available, {}; pass --comm mpi", why_no_nccl());
    set(value);
  };
  return spec;
}

OptionSpec target_option(std::string& target, const std::string& help) {
  OptionSpec spec = text_option("--target", "NAME", target, help);
  spec.values = target_names();
  spec.set = [&target](const std::string& text) {
    if (!find_target(text)) parse_choice("--target", text, target_names());
    target = text;
  };
  return spec;
}

OptionGroup watchdog_options(WatchOptions& watch) {
  constexpr double kShortest = 1, kLongest = 1e6;
  return rare(
      {"Ranks that die or hang",
       {number_option("--timeout-s", "S", watch.timeout_seconds, {kShortest, kLongest},
                      "end all ranks (exit code 75) if one sends no heartbeat, or is missing from a "
                      "collective, for S seconds"),
        number_option("--startup-timeout-s", "S", watch.startup_timeout_seconds, {kShortest, kLongest},
                      "the same limit for start-up, tuning and the last checks"),
        flag_option("--no-watchdog", watch.on, false,
                    "run without these limits: a lost rank can block all others")
            .with_key("watchdog")}});
}

std::vector<OptionSpec> question_options(Questions& questions) {
  OptionSpec completions = choice_option("--completions", questions.completions, completion_shells(),
                                         "print completions for a shell")
                               .rare();
  completions.config_key.clear();
  completions.ends_parsing = true;
  std::vector<OptionSpec> options{
      std::move(completions),
      stop_option("--version", questions.version, "print version and libraries").rare()};
  for (OptionSpec& spec : help_options(questions.help)) options.push_back(std::move(spec));
  return options;
}

std::string fingerprint_of(const nlohmann::ordered_json& config) {
  std::string lines;
  for (const auto& [key, value] : config.items()) lines += key + "=" + value.dump() + "\n";
  return lines;
}

}  // namespace plumb
