#include "launch/hosts/device_runs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/output.h"
#include "base/paths.h"
#include "base/process/this_process.h"
#include "base/shallow_json.h"
#include "base/text.h"
#include "launch/programs.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTogether = 256;  // devices that start at once
constexpr double kBitsSeconds = 1e-6;       // iterations alone decide their length
constexpr double kTransportSeconds = 20;    // that a run's way there and back may take on top

// Runs the words that follow its time limit, with a folder for the files of that run, which goes with it.
constexpr const char* kRunInScratchFolder = R"(
scratch=$(mktemp -d "${TMPDIR:-/tmp}/plumbline-screen-XXXXXX") || exit
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' HUP INT TERM
limit=$1 && shift
timeout --foreground --kill-after=10 "$limit" env "$@" --log-dir "$scratch/logs" --output "$scratch/runs")";
constexpr int kTookTooLong = 124, kKilled = 137;  // timeout's exit codes

CommandWords training_words(const ScreenWork& work, const std::string& gpu) {
  const bool on_gpu = !gpu.empty();
  CommandWords words{"sh", "-c", fmt::format("{}{}", kWithoutScheduler, kRunInScratchFolder), "sh",
                     fmt::format("{}", work.run_timeout_seconds)};
  words.insert(words.end(), {"CUDA_VISIBLE_DEVICES=" + gpu, screened_program(work)});
  words.insert(words.end(), work.options.begin(), work.options.end());
  // Enough for a median; --seconds makes it more where steps are short.
  if (std::ranges::find(work.options, "--iters") == work.options.end())
    words.insert(words.end(), {"--iters", on_gpu ? "30" : "10"});
  if (std::ranges::find(work.options, "--warmup") == work.options.end())
    words.insert(words.end(), {"--warmup", on_gpu ? "10" : "3"});
  words.insert(words.end(), {"--seconds", fmt::format("{}", work.seconds), "--device",
                             on_gpu ? "cuda" : "cpu", "--quiet", "--json"});
  return words;
}

std::vector<ScreenedDevice> devices_of(const HostAnswer& host, bool cpus_only) {
  if (host.facts.gpus.empty() || cpus_only) return {{.host = host.name, .name = host.facts.cpu}};
  std::vector<ScreenedDevice> devices;
  for (const GpuFacts& gpu : host.facts.gpus)
    devices.push_back(
        {.host = host.name, .gpu = gpu.uuid, .index = static_cast<int>(devices.size()), .name = gpu.name});
  return devices;
}

// Devices without a failure.
std::vector<std::size_t> usable(const std::vector<ScreenedDevice>& devices) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i].failure.empty()) found.push_back(i);
  return found;
}

// The faster one of several runs.
auto keeps_speed(RunMember slot, const std::vector<ReferenceSpeed>& references) {
  return [slot, &references](ScreenedDevice& device, const RunRecord& record) {
    const ScreenRun run = screen_run_of(record, references);
    if (!(device.*slot) || (device.*slot)->images_per_second < run.images_per_second) device.*slot = run;
  };
}

}  // namespace

OptionGroup screen_work_options(ScreenWork& work) {
  return {"Work",
          {positional("OPTION…", work.options, "options of the program, after --")
               .with_default("-- --bs 4 --image-size 64 on CPUs")
               .as_words_behind_dashes(),
           text_option("--program", "PATH", work.program, "program that the devices run")
               .with_default("bench_resnet50 next to plumbline")
               .rare(),
           number_option("--seconds", "X", work.seconds,
                         {.lowest = 0, .highest = 86400, .above_lowest = true}, "shortest time of a run"),
           number_option("--run-timeout-s", "X", work.run_timeout_seconds,
                         {.lowest = 0, .highest = 86400, .above_lowest = true},
                         "longest time of a run, with its start; a longer one has failed")
               .rare()}};
}

std::string screened_program(const ScreenWork& work) {
  if (std::ranges::find(work.options, "--device") != work.options.end())
    throw Error(ExitCode::usage, "--device: screen chooses the device itself; leave it out");
  return program_path(work.program, "bench_resnet50");
}

std::vector<std::string> small_cpu_step() {
  return {"--bs", "4", "--image-size", "64"};
}

std::string temporary_folder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  const std::string variable = environment_variable("TMPDIR");
  if (error)
    throw cannot_create({.option = "TMPDIR", .path = variable.empty() ? "/tmp" : variable},
                        "cannot create a folder in it: " + error.message(), "set TMPDIR to another folder");
  return folder;
}

std::vector<ScreenedDevice> screened_devices(const std::vector<HostAnswer>& hosts) {
  std::vector<ScreenedDevice> devices;
  for (const HostAnswer& host : hosts)
    std::ranges::move(devices_of(host, !host.facts.program.libraries.contains("CUDA")),
                      std::back_inserter(devices));
  return devices;
}

void DeviceRuns::alone(std::vector<ScreenedDevice>& devices) {
  alone(devices, usable(devices));
}

void DeviceRuns::alone(std::vector<ScreenedDevice>& devices, const std::vector<std::size_t>& indices) {
  // Rounds: the first device of every host, then the second ones, and so on.
  std::vector<std::vector<std::size_t>> rounds;
  for (const std::size_t i : indices) {
    if (!devices[i].failure.empty()) continue;
    const auto round = static_cast<std::size_t>(std::max(0, devices[i].index));
    if (rounds.size() <= round) rounds.resize(round + 1);
    rounds[round].push_back(i);
  }
  for (const auto& round : rounds)
    run(work_, devices, round, most_at_once_, keeps_speed(&ScreenedDevice::alone, references_));
}

void DeviceRuns::together(std::vector<ScreenedDevice>& devices) {
  run(work_, devices, usable(devices), kMostTogether, keeps_speed(&ScreenedDevice::together, references_));
}

void DeviceRuns::compare_bits(std::vector<ScreenedDevice>& devices) {
  std::vector<ScreenedDevice> compared = devices;  // a run that fails says nothing about speed
  run(bits_work(), compared, usable(devices), kMostTogether,
      [](ScreenedDevice& device, const RunRecord& record) {
        device.bits = {.losses = record.loss, .tensors = record.tensors};
      });
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].bits = std::move(compared[i].bits);
    if (devices[i].bits.losses.empty()) devices[i].bits.failure = compared[i].failure;
  }
}

ScreenWork DeviceRuns::bits_work() const {
  ScreenWork work = work_;
  work.seconds = kBitsSeconds;
  const auto give = [&](const char* option, std::initializer_list<std::string> values) {
    if (const auto given = std::ranges::find(work.options, option); given != work.options.end())
      work.options.erase(given, std::min(given + 1 + std::ssize(values), work.options.end()));
    work.options.emplace_back(option);
    work.options.insert(work.options.end(), values);
  };
  give("--deterministic", {});
  give("--iters", {"10"});
  give("--warmup", {"0"});
  // Steps that neither overflow nor diverge, which would leave nothing to compare.
  give("--lr", {"0.001"});
  if (std::ranges::count(work.options, "--fp16") > 0) give("--loss-scale", {"4"});
  if (std::ranges::find(work.options, "--seed") == work.options.end()) give("--seed", {"1"});
  return work;
}

void DeviceRuns::run(const ScreenWork& work, std::vector<ScreenedDevice>& devices,
                     const std::vector<std::size_t>& indices, std::size_t at_once, const Keep& keep) {
  const auto commands = mapped(indices, [&](std::size_t i) { return command_for(work, devices[i]); });
  const auto ends = run_side_by_side(
      commands, {.most_at_once = at_once, .timeout_seconds = work.run_timeout_seconds + kTransportSeconds},
      signals_);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ScreenedDevice& device = devices[indices[i]];
    const std::string& said = ends[i].output;
    try {
      const RunRecord record = run_record_from_json(parse_shallow_json(json_in(said)), device.host);
      if (record.status == "ok")
        keep(device, record);
      else
        device.failure = record.failure;
    } catch (const Error&) {
      HostAnswer answer;
      explain_failure(ends[i], own_program(), work.run_timeout_seconds, answer);
      device.failure = answer.failure_detail.empty() ? answer.failure : answer.failure_detail;
      if (ends[i].code == kTookTooLong ||
          (ends[i].code == kKilled && ends[i].seconds >= work.run_timeout_seconds))
        device.failure =
            fmt::format("the run took longer than {:g} s; raise --run-timeout-s", work.run_timeout_seconds);
    }
  }
}

CommandWords DeviceRuns::command_for(ScreenWork work, const ScreenedDevice& device) const {
  if (work_.options.empty() && device.gpu.empty()) {
    const std::vector<std::string> step = small_cpu_step();
    work.options.insert(work.options.begin(), step.begin(), step.end());
  }
  const auto host = std::ranges::find(hosts_, device.host, &HostAnswer::name);
  return words_on(transport_, *host, training_words(work, device.gpu));
}

}  // namespace plumb
