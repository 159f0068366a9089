// What a run leaves that ends by something its computing thread can't see to, and what a postmortem makes of
// it.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/unique_fd.h"
#include "tests/faults/started_program.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

const std::string kLong = kSmall + "--lr 0.001 --iters 100000 ";

std::size_t steps_kept(const Place& place) {
  const nlohmann::ordered_json result = place.result();
  return result.is_object() ? result.at("step_seconds").size() : 0;
}

void wait_until(StartedProgram& program, const std::function<bool()>& holds) {
  while (program.running() && !holds()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

std::string run_folder(const Place& place) {
  const std::vector<std::string> results = place.contents_ending_in("/result.json");
  return results.empty() ? "" : fs::path(results.front()).parent_path().string();
}

void expect_in(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << " in " << text;
}

TEST(Keep, AKilledRunLeavesItsLogAndNoScore) {
  const Place place;
  StartedProgram program = place.start(place.bench(kLong));
  wait_for_lines(place, program);
  const Place elsewhere;  // the end of a program of this place ends the others
  const Ended early = elsewhere.run(elsewhere.plumbline("postmortem " + place.file(run_folder(place))));
  EXPECT_EQ(early.exit_code, kBadData);
  ASSERT_FALSE(early.lines.empty());
  expect_in(early.lines.back(), {"still runs", "as process " + std::to_string(program.ranks().at(0).pid)});
  program.send(0, SIGKILL);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  expect_no_score(place, "interrupted before it ended");
  EXPECT_EQ(place.contents_ending_in(".log.part").size(), 1u);
  EXPECT_EQ(place.result().at("images_per_second").at("mean"), 0);
  for (const char* reader : {"report runs -o page.html", "compare runs runs", "gate runs --baseline runs",
                             "export runs --format prometheus"})
    EXPECT_NE(place.run(place.plumbline(reader)).exit_code, 0) << reader;
  const Ended postmortem = place.run(place.plumbline("postmortem " + run_folder(place)));
  EXPECT_EQ(postmortem.exit_code, 0);
  expect_in(postmortem.output, {"interrupted before it ended", "no words of rank 0"});
}

// mpirun sends the other rank SIGTERM, and SIGKILL 2 s later.
TEST(Keep, ARankThatIsKilledLeavesNoWordsAndTheOtherSaysWhereItWas) {
  const Place place;
  StartedProgram program =
      place.start(Place::mpirun(2, place.bench(kLong)), "OMPI_MCA_odls_base_sigkill_timeout=2");
  wait_for_lines(place, program);
  const std::vector<Process> ranks = program.ranks();
  program.send(1, SIGKILL);
  program.wait();
  EXPECT_TRUE(program.processes().empty()) << "a process is left";
  expect_no_score(place);
  const Ended postmortem = place.run(place.plumbline("postmortem " + run_folder(place)));
  EXPECT_EQ(postmortem.exit_code, 0) << postmortem.launcher_messages;
  expect_in(postmortem.output, {"no words of rank 1 (on ", "first to end", "rank 0 on ", "iteration "});
  const auto json = nlohmann::ordered_json::parse(
      place.run(place.plumbline("postmortem --json " + run_folder(place))).output);
  ASSERT_EQ(json.at("last_words").size(), 1u);
  EXPECT_GT(json.at("last_words")[0].at("collectives").size(), 3u);
}

// A failure that one rank knows of alone.
TEST(Keep, ARankThatFailsSaysWhyInItsLastWords) {
  const Place place;
  place.run(Place::mpirun(2, place.damaged(kSmall + "--iters 4")), "PLUMB_DAMAGE=error");
  const Ended postmortem = place.run(place.plumbline("postmortem " + run_folder(place)));
  EXPECT_EQ(postmortem.exit_code, 0) << testing::PrintToString(postmortem.lines);
  expect_in(postmortem.output, {"first to end, by the hosts' clocks: rank 1", "code 74: file images/1.jpg"});
}

TEST(Keep, ASignalBeforeTheWindowIsInResultJson) {
  const Place place;
  StartedProgram program = place.start(place.bench("--bs 64 --threads 1 --iters 100000"));
  wait_until(program, [&] { return !run_folder(place).empty(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // any time will do
  program.send(0, SIGHUP);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGHUP);
  expect_no_score(place, "interrupted");
}

struct Connection {
  UniqueFd socket;  // the rank's own, by another descriptor
  int own_port = 0, peer_port = 0;
};

std::vector<Connection> connections_of(pid_t pid) {
  const auto port_of = [](const UniqueFd& socket, auto name) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (!socket || name(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    return address.sin_family == AF_INET ? ntohs(address.sin_port) : 0;
  };
  std::vector<Connection> connections;
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
    const int number = std::atoi(entry.path().filename().c_str());
    UniqueFd socket(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
    const int own = port_of(socket, ::getsockname), peer = port_of(socket, ::getpeername);
    if (own != 0 && peer != 0) connections.push_back({std::move(socket), own, peer});
  }
  return connections;
}

// Shuts the TCP connection between two ranks behind their backs.
bool shut_connection_between(pid_t one, pid_t other) {
  const std::vector<Connection> ends = connections_of(one), other_ends = connections_of(other);
  for (const Connection& end : ends)
    for (const Connection& other_end : other_ends)
      if (end.own_port == other_end.peer_port && end.peer_port == other_end.own_port)
        return ::shutdown(end.socket.get(), SHUT_RDWR) == 0;
  return false;
}

TEST(Keep, AShutConnectionEndsTheJobWith75AndTheStepsKept) {
  if (std::string(PLUMB_MPIRUN_OPTIONS).find("oversubscribe") == std::string::npos)
    GTEST_SKIP() << "Open MPI's option to send over TCP on one host";
  const Place place;
  StartedProgram program = place.start(Place::mpirun(2, place.bench(kLong)), "OMPI_MCA_btl=tcp,self");
  wait_for_lines(place, program);
  const std::vector<Process> ranks = program.ranks();
  ASSERT_EQ(ranks.size(), 2u);
  if (!shut_connection_between(ranks[0].pid, ranks[1].pid))
    GTEST_SKIP() << "another process's sockets can't be reached here";
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, kPeerLost) << ended.launcher_messages.substr(0, 2000);
  EXPECT_TRUE(program.processes().empty()) << "a process is left";
  EXPECT_LT(ended.launcher_messages.size(), 100'000u) << "MPI repeats itself";
  expect_in(testing::PrintToString(ended.lines),
            {"bench_arcface: rank ", "the connection to another rank was closed at iteration "});
  expect_no_score(place);
  EXPECT_GE(steps_kept(place), 1u);
}

TEST(Keep, AFileSizeLimitIsToldAsAFullDisk) {
  if (std::string(PLUMB_TEST_SANITIZERS) == "thread")
    GTEST_SKIP() << "ThreadSanitizer writes a file of its own";
  const Place place;
  // Units of 512 bytes. result.json is smaller at first, program.json isn't.
  const Ended ended = place.run("(ulimit -f 16 && exec " + place.bench(kOne + "--iters 4") + ")");
  EXPECT_EQ(ended.exit_code, kIoError) << ended.launcher_messages;
  ASSERT_FALSE(ended.lines.empty());
  expect_in(ended.lines.back(), {"--output runs: cannot write runs/", "File too large"});
  expect_no_score(place);
}

TEST(Keep, AFileSizeLimitThatALogReachesLeavesItsWholeLines) {
  const Place place;
  StartedProgram program = place.start(place.bench(kOne + "--lr 0.001 --iters 100000"));
  wait_for_lines(place, program);
  const std::string log = place.file(place.contents_ending_in(".log.part").front());
  const rlimit limit{.rlim_cur = std::filesystem::file_size(log) + 2000, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(::prlimit(program.ranks().front().pid, RLIMIT_FSIZE, &limit, nullptr), 0);
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, kIoError) << ended.launcher_messages;
  ASSERT_FALSE(ended.lines.empty());
  expect_in(ended.lines.back(),
            {"logs/1n1g/", "cannot write log", "at iteration ", "whole line", "--log-dir"});
  EXPECT_GE(expect_whole_lines(log), 3);
  EXPECT_TRUE(place.contents_ending_in(".log").empty());
}

// Descriptors of files that the run opens are none of these numbers.
TEST(Keep, ClosedStandardDescriptorsTakeInNoLog) {
  const Place place;
  const Ended ended =
      place.run("'" + std::string(PLUMB_BENCH_ARCFACE) + "' " + kSmall + "--iters 4 0<&- 1>&- 2>&-");
  EXPECT_EQ(ended.exit_code, 0);
  const std::vector<std::string> logs = place.contents_ending_in(".log");
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(expect_whole_lines(place.file(logs.front())), 4);
  EXPECT_EQ(place.result().at("status"), "ok");
}

TEST(Keep, AReaderThatIsGoneFailsNoRun) {
  const Place place;
  const Ended ended = place.run("{ " + place.bench(kSmall + "--iters 4") + "; echo $? >code; } | true");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(read_text(place.file("code")), "0\n");
  EXPECT_EQ(place.result().at("status"), "ok");
}

}  // namespace
}  // namespace plumb
