#include "bench/commands/sweep_programs.h"

#include <map>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "bench/options/options.h"
#include "bench/plan/step_plan.h"
#include "kernels/roofline.h"
#include "kernels/targets.h"

namespace plumb {
namespace {

std::vector<const char*> pointers(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<const char*> words{program.c_str()};
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  return words;
}

// As far as they can be read: the parts that this program lacks come after all that is wanted of them here.
BenchOptions read_options(const std::string& program, const std::vector<std::string>& arguments) {
  const std::vector<const char*> words = pointers(program, arguments);
  try {
    return parse_options(static_cast<int>(words.size()), words.data(), program);
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable) throw;
  }
  BenchOptions options = default_options(program);
  try {
    parse_command_line(bench_option_table(options), static_cast<int>(words.size()), words.data());
  } catch (const Error& error) {
    if (error.code() != ExitCode::unavailable) throw;
  }
  return options;
}

// Why runs with these options leave no results to keep; empty if they do.
std::string why_no_run(const BenchOptions& options) {
  if (options.help || options.version || options.list_targets || !options.completions.empty() ||
      options.dry_run || options.find_max_bs)
    return "asks for something else than a run";
  if (!options.save_weights.empty()) return "would have every run write the same file";
  return "";
}

}  // namespace

RunLength check_options(const std::string& program, const std::vector<std::string>& arguments) {
  const BenchOptions options = read_options(program, arguments);
  if (const std::string why = why_no_run(options); !why.empty())
    throw Error(ExitCode::usage, "a sweep measures runs, and one of these options {}; leave it out", why);
  return {options.iterations, options.warmup};
}

std::optional<double> least_seconds(const SweepPlan& plan, const std::vector<std::size_t>& open,
                                    const std::string& target) {
  std::map<std::pair<std::size_t, int>, double> seconds_of_case;
  double seconds = 0;
  for (const std::size_t index : open) {
    const SweepRun& run = plan.runs[index];
    const SweepGroup& group = plan.groups[run.group];
    const auto [entry, is_new] = seconds_of_case.try_emplace({run.group, run.devices}, 0);
    if (is_new) {
      BenchOptions options = read_options(group.program, group.options);
      const bool on_cpu = options.device == DeviceChoice::cpu;
      const auto limits = find_target(target.empty() && on_cpu ? "cpu" : target);
      if (!limits || !limits->flops_per_second.contains(options.precision)) return std::nullopt;
      if (options.comm == "nccl" && limits->kind == DeviceKind::cpu) return std::nullopt;
      options = resolve(options, *limits, run.devices);
      const Program program = make_step_plan(options, *limits, 0, run.devices).program;
      entry->second = std::max(options.seconds, roofline(program, *limits, options.precision).seconds *
                                                    static_cast<double>(group.length.iterations));
    }
    seconds += entry->second;
  }
  return seconds;
}

std::filesystem::path folder_of_this_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace plumb
