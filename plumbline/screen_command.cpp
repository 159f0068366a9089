// `plumbline screen`: every device alone, then all at once, with the same short work.
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/console/print.h"
#include "base/console/progress.h"
#include "base/output.h"
#include "base/paths.h"
#include "base/process/child_process.h"
#include "base/shallow_json.h"
#include "base/text.h"
#include "base/text_table.h"
#include "launch/hosts/ask_hosts.h"
#include "launch/hosts/screening.h"
#include "plumbline/command.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTogether = 256;  // devices that start at once
constexpr double kTransportSeconds = 20;    // that a run's way there and back may take on top

struct ScreenArguments {
  HostArguments hosts;
  std::string program, gpu;
  std::vector<std::string> options;
  double seconds = 5, run_timeout_seconds = 300;
  bool here = false, json = false;
};

OptionTable screen_options(ScreenArguments& arguments) {
  return {
      "plumbline screen",
      "Runs the same short training on every device alone, one of each host at a time, then on all at once "
      "without communication, which shares power, cooling and CPUs as a run does. Ranks the devices, names "
      "those that are slower than others of their kind (time per image more than 5 % and 3.5 robust standard "
      "deviations above their median) with clocks and reasons, and prints what to leave out for mpirun and "
      "Slurm. Exit code 0: none is slow; 1: some are; 69: a host or device has no result. Finds devices by "
      "plumbline doctor's facts.",
      {host_options(arguments.hosts),
       {"Work",
        {positional("OPTION…", arguments.options,
                    "behind --: options of the program, such as -- --bs 256 --fp16; without them --bs 4 "
                    "--image-size 64 on CPUs, and the program's own defaults on GPUs")
             .as_words_behind_dashes(),
         text_option("--program", "PATH", arguments.program, "what to run")
             .with_default("bench_resnet50 beside plumbline"),
         number_option("--seconds", "X", arguments.seconds,
                       {.lowest = 0, .highest = 86400, .above_lowest = true}, "least length of each run"),
         number_option("--run-timeout-s", "X", arguments.run_timeout_seconds,
                       {.lowest = 0, .highest = 86400, .above_lowest = true},
                       "a run that takes longer, with its start, counts as failed")}},
       {"Output",
        {flag_option("--json", arguments.json, true, "print one JSON object instead of the table")}},
       {"For the other side",
        {flag_option(
             "--here", arguments.here, true,
             "run on one device of this host and print its result.json as one line: what screen runs on "
             "every host"),
         text_option("--gpu", "UUID", arguments.gpu, "with --here: the device; without it the CPUs")}}}};
}

Error unusable_tmpdir(const std::string& folder, const std::string& why) {
  return cannot_create({.option = "TMPDIR", .path = folder}, "cannot create a folder in it: " + why,
                       "set TMPDIR to another folder");
}

std::string temporary_folder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  const char* const variable = std::getenv("TMPDIR");
  if (error) throw unusable_tmpdir(variable ? variable : "/tmp", error.message());
  return folder;
}

// A folder for one run's files, which goes with it.
class ScratchFolder {
 public:
  ScratchFolder() {
    const std::string parent = temporary_folder();
    std::string name = parent + "/plumbline-screen-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw unusable_tmpdir(parent, std::strerror(errno));
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string text_of_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The result.json of the only run in a folder; a null if there is none.
nlohmann::ordered_json only_result(const fs::path& runs) {
  std::error_code error;
  for (const fs::path& run : visible_entries(runs, error))
    if (const auto json = parse_shallow_json(text_of_file(run / "result.json")); json.is_object())
      return json;
  return nullptr;
}

CommandWords training_words(const ScreenArguments& arguments, const fs::path& folder) {
  const bool on_gpu = !arguments.gpu.empty();
  CommandWords words{"env", "CUDA_VISIBLE_DEVICES=" + arguments.gpu,
                     program_path(arguments.program, "bench_resnet50")};
  if (!arguments.options.empty())
    words.insert(words.end(), arguments.options.begin(), arguments.options.end());
  else if (on_gpu)
    words.insert(words.end(), {"--iters", "30", "--warmup", "10"});
  else
    words.insert(words.end(), {"--bs", "4", "--image-size", "64", "--iters", "10", "--warmup", "3"});
  words.insert(words.end(),
               {"--seconds", fmt::format("{}", arguments.seconds), "--device", on_gpu ? "cuda" : "cpu",
                "--quiet", "--log-dir", (folder / "logs").string(), "--output", (folder / "runs").string()});
  return words;
}

int screen_here(const ScreenArguments& arguments) {
  const ScratchFolder folder;
  const fs::path output = folder.path() / "output";
  const ChildEnd end = run_child({training_words(arguments, folder.path()), output, folder.path().string()},
                                 SignalWatch(), arguments.run_timeout_seconds, [] {});
  if (end.signal != 0) return 128 + end.signal;
  if (end.timed_out)
    throw Error(ExitCode::unavailable, "the run took longer than {:g} s; raise --run-timeout-s",
                arguments.run_timeout_seconds);
  const nlohmann::ordered_json result = only_result(folder.path() / "runs");
  if (result.is_null())
    throw Error(ExitCode::unavailable, "the run left no result (exit code {}): {}", end.code,
                printable(last_line(text_of_file(output))));
  print_text(result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  return 0;
}

std::vector<ScreenedDevice> devices_of(const HostAnswer& host, bool cpus_only) {
  if (!host.answered)
    return {{.host = host.name,
             .failure = fmt::format("{} ({}): {}", host.failure, host.failure_detail, host.remedy)}};
  if (host.facts.gpus.empty() || cpus_only) return {{.host = host.name, .name = host.facts.cpu}};
  std::vector<ScreenedDevice> devices;
  for (const GpuFacts& gpu : host.facts.gpus)
    devices.push_back(
        {.host = host.name, .gpu = gpu.uuid, .index = static_cast<int>(devices.size()), .name = gpu.name});
  return devices;
}

CommandWords here_words(const ScreenArguments& arguments, const ScreenedDevice& device) {
  CommandWords words{own_program(),
                     "screen",
                     "--here",
                     "--program",
                     program_path(arguments.program, "bench_resnet50"),
                     "--seconds",
                     fmt::format("{}", arguments.seconds),
                     "--run-timeout-s",
                     fmt::format("{}", arguments.run_timeout_seconds)};
  if (!device.gpu.empty()) words.insert(words.end(), {"--gpu", device.gpu});
  if (arguments.options.empty()) return words;
  words.push_back("--");
  words.insert(words.end(), arguments.options.begin(), arguments.options.end());
  return words;
}

// Runs on the devices given by index, at most `at_once` of them at a time, and keeps each one's run in
// `slot`.
class Screening {
 public:
  Screening(const ScreenArguments& arguments, const HostTransport& transport,
            const std::map<std::string, std::vector<std::string>>& addresses,
            std::vector<ScreenedDevice>& devices)
      : arguments_(arguments), transport_(transport), addresses_(addresses), devices_(devices) {}

  void run(const std::vector<std::size_t>& indices, std::optional<ScreenRun> ScreenedDevice::*slot,
           std::size_t at_once, const std::function<void(std::size_t)>& told) {
    std::vector<CommandWords> commands;
    for (const std::size_t i : indices)
      commands.push_back(words_on(transport_, devices_[i].host, addresses_.at(devices_[i].host),
                                  here_words(arguments_, devices_[i])));
    const auto ends = run_side_by_side(commands,
                                       {.most_at_once = at_once,
                                        .timeout_seconds = arguments_.run_timeout_seconds + kTransportSeconds,
                                        .told = told},
                                       signals_);
    for (std::size_t i = 0; i < ends.size(); ++i) keep(ends[i], devices_[indices[i]], slot);
  }

 private:
  void keep(const CommandEnd& end, ScreenedDevice& device,
            std::optional<ScreenRun> ScreenedDevice::*slot) const {
    try {
      const std::size_t begin = end.output.find('{');  // behind what a login prints
      const RunRecord record = run_record_from_json(
          parse_shallow_json(begin == end.output.npos ? "" : std::string_view(end.output).substr(begin)),
          device.host);
      if (record.status == "ok")
        device.*slot = screen_run_of(record);
      else
        device.failure = record.failure;
    } catch (const Error&) {
      HostAnswer answer;
      explain_failure(end, own_program(), arguments_.run_timeout_seconds, answer);
      device.failure = answer.failure_detail.empty() ? answer.failure : answer.failure_detail;
    }
  }

  const ScreenArguments& arguments_;
  const HostTransport& transport_;
  const std::map<std::string, std::vector<std::string>>& addresses_;
  std::vector<ScreenedDevice>& devices_;
  SignalWatch signals_;
};

// Rounds of the runs alone: the first device of every host, then the second ones, and so on.
std::vector<std::vector<std::size_t>> rounds_alone(const std::vector<ScreenedDevice>& devices) {
  std::vector<std::vector<std::size_t>> rounds;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].failure.empty()) continue;
    const auto round = static_cast<std::size_t>(std::max(0, devices[i].index));
    if (rounds.size() <= round) rounds.resize(round + 1);
    rounds[round].push_back(i);
  }
  return rounds;
}

int screen_hosts(const ScreenArguments& arguments) {
  auto [hosts, user] = named_hosts(arguments.hosts);
  const HostTransport transport = hosts.empty() ? HostTransport{} : transport_of(arguments.hosts, user);
  if (hosts.empty()) hosts = {"localhost"};
  const HostQuestions questions{.program = program_path(arguments.program, "bench_resnet50"),
                                .log_folder = temporary_folder()};
  const auto& options = arguments.options;
  const auto device_option = std::ranges::find(options, "--device");
  if (device_option != options.end())
    throw Error(ExitCode::usage, "option --device: screen chooses the device itself; leave it out");
  std::vector<ScreenedDevice> devices;
  std::map<std::string, std::vector<std::string>> addresses;
  for (const HostAnswer& host :
       ask_hosts(hosts, arguments.hosts, transport, questions, nullptr, SignalWatch())) {
    addresses[host.name] = host.addresses.value_or(std::vector<std::string>{});
    const bool without_cuda = !host.facts.program.libraries.contains("CUDA");
    std::ranges::move(devices_of(host, without_cuda), std::back_inserter(devices));
  }
  const auto rounds = rounds_alone(devices);
  std::vector<std::size_t> all;
  for (const auto& round : rounds) all.insert(all.end(), round.begin(), round.end());
  ProgressBar bar(stderr, terminal_of(stderr), 2 * std::ssize(all), 1, "runs/s");
  const double start = wall_seconds();
  std::size_t before = 0;  // ended in earlier rounds
  const auto told = [&](std::size_t ended) {
    bar.update(static_cast<std::int64_t>(before + ended), wall_seconds() - start);
  };
  Screening screening(arguments, transport, addresses, devices);
  for (const auto& round : rounds) {
    screening.run(round, &ScreenedDevice::alone, static_cast<std::size_t>(arguments.hosts.most_at_once),
                  told);
    before += round.size();
  }
  std::ranges::sort(all);
  screening.run(all, &ScreenedDevice::together, kMostTogether, told);
  bar.clear();
  const ScreenReport report = judge_devices(hosts, std::move(devices));
  print_text(arguments.json ? json_text(screen_json(report)) : screen_text(report));
  return static_cast<int>(report.exit_code());
}

int screen_command(const ScreenArguments& arguments) {
  return arguments.here ? screen_here(arguments) : screen_hosts(arguments);
}

}  // namespace

const Command kScreenCommand = make_command(
    "screen", "every device alone, then all at once: which ones are slow", screen_options, screen_command);

}  // namespace plumb
