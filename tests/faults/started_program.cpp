#include "tests/faults/started_program.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <thread>

#include "tests/results/run_folder.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

// Under ThreadSanitizer a step of the emulated GPU takes seconds.
const std::chrono::seconds kLongest{std::string(PLUMB_TEST_SANITIZERS) == "thread" ? 900 : 90};
constexpr std::chrono::seconds kPatienceWithTheLast{10};
// Every process started by a Place carries its folder in this variable.
constexpr const char* kMark = "PLUMB_FAULTS_PLACE";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// An environment variable of another process; empty if unset or the process is gone.
std::string variable_of(const fs::path& process, const std::string& name) {
  const std::string environment = '\0' + read_text(process / "environ");
  const std::size_t begin = environment.find('\0' + name + '=');
  if (begin == std::string::npos) return "";
  return environment.c_str() + begin + name.size() + 2;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

Place::Place() {
  fs::create_directory(folder());
}

std::vector<std::string> Place::contents() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder()))
    names.push_back(entry.path().lexically_relative(folder()));  // never looks at a file: .part files go
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> Place::contents_ending_in(const std::string& end) const {
  std::vector<std::string> names = contents();
  std::erase_if(names, [&](const std::string& name) { return !name.ends_with(end); });
  return names;
}

nlohmann::ordered_json Place::result() const {
  const std::vector<std::string> files = contents_ending_in("/result.json");
  if (files.size() != 1) return {};
  return nlohmann::ordered_json::parse(read_text(file(files.front())), nullptr, false);
}

// Separates the program's stderr from mpirun's.
std::string Place::wrapper(const std::string& program) const {
  const std::string script = outside(fs::path(program).filename().string() + ".sh");
  write_text(script, "exec '" + program + "' \"$@\" 2>>'" + outside("messages") + "'\n");
  return "sh '" + script + "' ";
}

std::string Place::bench(const std::string& arguments) const {
  return wrapper(PLUMB_BENCH_ARCFACE) + arguments;
}

std::string Place::damaged(const std::string& arguments) const {
  return wrapper(PLUMB_DAMAGED_TRAINING) + arguments;
}

std::string Place::resnet50(const std::string& arguments) const {
  return wrapper(PLUMB_BENCH_RESNET50) + arguments;
}

std::string Place::allreduce(const std::string& arguments) const {
  return wrapper(PLUMB_BENCH_ALLREDUCE) + arguments;
}

std::string Place::plumbline(const std::string& arguments) const {
  return wrapper(PLUMB_PLUMBLINE) + arguments;
}

std::string Place::make_rec(const std::string& arguments) const {
  return wrapper(PLUMB_MAKE_REC) + arguments;
}

std::string Place::mpirun(int ranks, const std::string& command) {
  return PLUMB_MPIRUN " " PLUMB_MPIRUN_OPTIONS " -np " + std::to_string(ranks) + " " + command;
}

StartedProgram Place::start(const std::string& command, const std::string& environment) const {
  return {*this, command, environment};
}

Ended Place::run(const std::string& command, const std::string& environment) const {
  return start(command, environment).wait();
}

StartedProgram::StartedProgram(const Place& place, const std::string& command, const std::string& environment)
    : place_(place) {
  const std::string script =
      "cd '" + place.folder() + "' && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " +
      "OMP_WAIT_POLICY=passive " + kMark + "='" + place.folder() + "' " + environment + " && { " + command +
      "; } >'" + place.outside("output") + "' 2>'" + place.outside("launcher") + "' </dev/null";
  shell_ = ::fork();
  if (shell_ != 0) return;
  ::setsid();
  for (const int signal : {SIGHUP, SIGINT})
    ::signal(signal, SIG_DFL);  // a job in the background ignores them
  ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
  ::_exit(127);
}

StartedProgram::~StartedProgram() {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::vector<Process> left = processes();
    if (left.empty()) break;
    for (const Process& process : left) ::kill(process.pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    reap(false);
  }
  if (!reaped_) reap(true);
}

void StartedProgram::reap(bool block) {
  if (reaped_) return;
  rusage usage{};
  if (::wait4(shell_, &status_, block ? 0 : WNOHANG, &usage) != shell_) return;
  peak_bytes_ = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
  reaped_ = true;
}

bool StartedProgram::running() {
  reap(false);
  return !reaped_;
}

std::vector<Process> StartedProgram::processes() const {
  std::vector<Process> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || variable_of(entry.path(), kMark) != place_.folder()) continue;
    found.push_back({pid, std::atoi(variable_of(entry.path(), "OMPI_COMM_WORLD_RANK").c_str())});
  }
  return found;
}

std::vector<Process> StartedProgram::ranks() const {
  return running_one_of(
      {PLUMB_BENCH_ALLREDUCE, PLUMB_BENCH_ARCFACE, PLUMB_BENCH_RESNET50, PLUMB_DAMAGED_TRAINING});
}

std::vector<Process> StartedProgram::launchers() const {
  const fs::path mpirun = fs::canonical(PLUMB_MPIRUN);
  return running_one_of({mpirun, mpirun.parent_path() / "prterun"});  // which Open MPI 5's mpirun becomes
}

void StartedProgram::send(int rank, int signal) const {
  for (const Process& process : ranks())
    if (process.rank == rank) ::kill(process.pid, signal);
}

std::vector<Process> StartedProgram::running_one_of(const std::vector<std::string>& programs) const {
  std::vector<Process> found = processes();
  std::erase_if(found, [&](const Process& process) {
    std::error_code gone;
    const std::string program = fs::read_symlink("/proc/" + std::to_string(process.pid) + "/exe", gone);
    return std::find(programs.begin(), programs.end(), program) == programs.end();
  });
  return found;
}

Ended StartedProgram::wait() {
  const auto start = std::chrono::steady_clock::now();
  while (running()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (std::chrono::steady_clock::now() - start < kLongest) continue;
    ADD_FAILURE() << "still running: " << joined(lines_of(read_text(place_.outside("messages"))))
                  << read_text(place_.outside("launcher"));
    for (const Process& process : processes()) ::kill(process.pid, SIGKILL);
    reap(true);
  }
  // The watchdog's helper ends a moment after the launcher.
  const auto reaped = std::chrono::steady_clock::now();
  while (!processes().empty() && std::chrono::steady_clock::now() - reaped < kPatienceWithTheLast)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return {.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_),
          .output = read_text(place_.outside("output")),
          .lines = lines_of(read_text(place_.outside("messages"))),
          .launcher_messages = read_text(place_.outside("launcher")),
          .peak_bytes = peak_bytes_};
}

void expect_all_gone(const StartedProgram& program) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!program.processes().empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(program.processes().empty()) << "a process is left";
}

void expect_peer_lost(const Ended& ended) {
  EXPECT_TRUE(ended.exit_code == kPeerLost || ended.exit_code == kKilled)
      << ended.exit_code << ended.launcher_messages;
}

void expect_named(const Ended& ended, const std::vector<std::string>& words, std::size_t most) {
  std::vector<std::string> lines = ended.lines;
  std::erase_if(lines, [](const std::string& line) { return line.find("(pid ") == std::string::npos; });
  EXPECT_TRUE(!lines.empty() && lines.size() <= most) << joined(ended.lines) << ended.launcher_messages;
  for (const std::string& line : lines)
    for (const std::string& word : words)
      EXPECT_NE(line.find(word), std::string::npos) << "'" << word << "' is missing in: " << line;
}

void expect_one_sentence(const Ended& ended, int code, const std::vector<std::string>& words,
                         const std::string& program) {
  EXPECT_EQ(ended.exit_code, code) << joined(ended.lines) << ended.launcher_messages;
  const auto has_all_words = [&](const std::string& line) {
    return std::ranges::all_of(words,
                               [&](const std::string& word) { return line.find(word) != std::string::npos; });
  };
  // A rank that still runs 3 s after its failure says so itself.
  static const std::regex of_a_later_rank(R"(\w+: rank [1-9]\d*: .*)");
  std::vector<std::string> lines = ended.lines;
  if (lines.size() > 1)
    std::erase_if(lines, [&](const std::string& line) {
      return std::regex_match(line, of_a_later_rank) && has_all_words(line);
    });
  ASSERT_EQ(lines.size(), 1u) << joined(ended.lines);
  const std::string& sentence = lines.front();
  EXPECT_TRUE(sentence.starts_with(program)) << sentence;
  for (const std::string& word : words)
    EXPECT_NE(sentence.find(word), std::string::npos) << "'" << word << "' is missing in: " << sentence;
}

void expect_no_score(const Place& place, const std::string& reason) {
  EXPECT_EQ(place.contents_ending_in(".log"), std::vector<std::string>{});
  const nlohmann::ordered_json result = place.result();
  ASSERT_TRUE(result.is_object()) << "no result.json";
  EXPECT_EQ(result.at("status"), "failed");
  const std::string failure = result.at("failure");
  EXPECT_NE(failure.find(reason), std::string::npos) << failure;
}

int log_lines_so_far(const Place& place) {
  int lines = 0;
  for (const std::string& part : place.contents_ending_in(".log.part")) {
    const std::string text = read_text(place.file(part));
    lines += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
  return lines;
}

void wait_for_lines(const Place& place, StartedProgram& program) {
  while (program.running() && log_lines_so_far(place) < 3)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

int expect_whole_lines(const std::string& log) {
  static const std::regex line(
      R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}-INFO: \[Pass 0, train batch (\d+)\] \tloss \S+, acc1 \d\.\d{5}, )"
      R"(acc5 (?:\d\.\d{5}|nan), lr \S+, elapse \d+\.\d{6} sec Epoch\[0\] Batch\[(\d+)\]\tSpeed: \d+\.\d\d samples/sec)");
  const std::string text = read_text(log);
  EXPECT_TRUE(text.empty() || text.back() == '\n') << log << " ends in a torn line: " << text;
  int count = 0;
  for (const std::string& found : lines_of(text)) {
    std::smatch parts;
    EXPECT_TRUE(std::regex_match(found, parts, line)) << log << ": " << found;
    if (parts.empty()) continue;
    EXPECT_EQ(parts[1], std::to_string(count));
    EXPECT_EQ(parts[2], std::to_string(++count));
  }
  return count;
}

std::string with_own_mounts(const std::string& script) {
  return std::string("unshare ") + (::geteuid() == 0 ? "-m" : "-rm") + " sh -c \"" + script + "\"";
}

bool can_mount() {
  const Place place;
  const bool can = place.run(with_own_mounts("mount -t tmpfs none .")).exit_code == 0;
  if (!can) std::puts("this process may not mount a small file system, so that none can be filled up");
  return can;
}

void write_example_runs(const Place& place, const std::string& folder, double images_per_second) {
  for (int run = 0; run < 3; ++run) {
    const std::string path = place.file(folder + "/" + std::to_string(run));
    fs::create_directories(path);
    RunRecord record = example_run(images_per_second + run);
    record.checks = {{"loss_finite", true}};
    write_text(path + "/result.json", to_json(record).dump());
  }
}

}  // namespace plumb
