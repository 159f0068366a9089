// R1 to R4: a rank that is killed, stopped or stuck is named, every process ends, and nothing else is an
// alarm.
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/machine/host_addresses.h"
#include "tests/faults/started_program.h"

namespace plumb {
namespace {

using namespace std::chrono_literals;

const std::string kEndless = kSmall + "--lr 0.001 --iters 100000 --timeout-s 4 ";
// mpirun sends the others SIGTERM and SIGKILL 2 and 4 s after it sees a rank end, instead of 1 and 2.
constexpr const char* kPatientMpirun = "OMPI_MCA_odls_base_sigkill_timeout=2";

// False after a minute.
template <typename Reached>
bool reaches(Reached&& reached) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!reached()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

pid_t pid_of(const StartedProgram& program, int rank) {
  for (const Process& one : program.ranks())
    if (one.rank == rank) return one.pid;
  return 0;
}

struct Fault {
  int signal = SIGKILL;
  int rank = 0;
};

class LostRank : public testing::TestWithParam<Fault> {};

TEST_P(LostRank, InTheWindowIsNamedAndAllEnd) {
  const auto [signal, rank] = GetParam();
  const Place place;
  StartedProgram program = place.start(Place::mpirun(3, place.bench(kEndless)), kPatientMpirun);
  wait_for_lines(place, program);
  // A rank tells of its phase within 0.2 s; three iterations may take less.
  std::this_thread::sleep_for(2s);
  const std::string who = fmt::format("rank {} on {} (pid {}) ", rank, own_host(), pid_of(program, rank));
  program.send(rank, signal);
  const Ended ended = program.wait();
  expect_peer_lost(ended);
  expect_named(ended,
               {"bench_arcface: " + who, "in the window, iteration ",
                signal == SIGKILL ? "is gone" : "has sent nothing for "},
               rank == 0 ? 2 : 1);  // each rank that misses rank 0 prints
  expect_all_gone(program);
  if (rank != 0) expect_no_score(place, who);  // rank 0 writes the result
  const std::vector<std::string> words = place.contents_ending_in(".json");
  for (int other = 0; other < 3; ++other) {
    if (other == rank) continue;
    const auto file = std::ranges::find_if(
        words, [&](const std::string& name) { return name.ends_with(fmt::format("/rank_{}.json", other)); });
    ASSERT_NE(file, words.end()) << "rank " << other << " left no words";
    const auto said = nlohmann::json::parse(read_text(place.file(*file)));
    EXPECT_EQ(said.at("exit_code"), kPeerLost);
    EXPECT_TRUE(said.at("failure").get<std::string>().starts_with(who)) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(Watchdog, LostRank,
                         testing::Values(Fault{SIGKILL, 0}, Fault{SIGKILL, 1}, Fault{SIGSTOP, 0},
                                         Fault{SIGSTOP, 1}),
                         [](const auto& tested) {
                           return (tested.param.signal == SIGKILL ? "Killed" : "Stopped") +
                                  std::to_string(tested.param.rank);
                         });

struct PhaseFault {
  int signal = SIGKILL;
  std::string phase;
};

void PrintTo(const PhaseFault& fault, std::ostream* stream) {
  *stream << "signal " << fault.signal << " in " << fault.phase;
}

class LostInPhase : public testing::TestWithParam<PhaseFault> {};

TEST_P(LostInPhase, IsNamedAndAllEnd) {
  const auto& [signal, phase] = GetParam();
  const Place place;
  StartedProgram program = place.start(
      Place::mpirun(3, place.damaged(kSmall + "--lr 0.001 --iters 3 --timeout-s 4 --startup-timeout-s 8")),
      kPatientMpirun + fmt::format(" PLUMB_DAMAGE={} PLUMB_DAMAGE_PHASE='{}'", signal, phase));
  const Ended ended = program.wait();
  expect_peer_lost(ended);
  // mpirun reports a rank that is killed in MPI_Finalize.
  if (signal == SIGSTOP && phase == "the end")
    expect_named(ended, {"rank 0 on ", "has been in the end for ", "--timeout-s"});
  else if (phase != "the end")
    expect_named(ended,
                 {"rank 1 on ", "in " + phase, signal == SIGKILL ? "is gone" : "has sent nothing for "});
  expect_all_gone(program);
  if (phase == "preparation" || phase == "tuning")
    EXPECT_TRUE(place.contents_ending_in(".log").empty());  // nor a folder of the run
  else if (phase != "the end")
    expect_no_score(place);
}

INSTANTIATE_TEST_SUITE_P(Watchdog, LostInPhase,
                         testing::Values(PhaseFault{SIGKILL, "preparation"},
                                         PhaseFault{SIGSTOP, "preparation"}, PhaseFault{SIGKILL, "tuning"},
                                         PhaseFault{SIGSTOP, "tuning"}, PhaseFault{SIGKILL, "warm-up"},
                                         PhaseFault{SIGSTOP, "warm-up"}, PhaseFault{SIGKILL, "the checks"},
                                         PhaseFault{SIGSTOP, "the checks"}, PhaseFault{SIGKILL, "the end"},
                                         PhaseFault{SIGSTOP, "the end"}),
                         [](const auto& tested) {
                           std::string name =
                               (tested.param.signal == SIGKILL ? "Killed In " : "Stopped In ") +
                               tested.param.phase;
                           std::erase_if(name, [](char c) { return c == ' ' || c == '-'; });
                           return name;
                         });

TEST(Watchdog, NamesARankThatNeverEntersACollective) {
  const Place place;
  StartedProgram program = place.start(Place::mpirun(2, place.damaged(kEndless)), "PLUMB_DAMAGE=hang");
  const Ended ended = program.wait();
  expect_peer_lost(ended);
  expect_named(ended, {"rank 1 on ", "has not entered allreduce_sum bucket", "in the window, iteration 3"});
  expect_all_gone(program);
  expect_no_score(place, "rank 1 on ");
}

TEST(Watchdog, LetsARankPauseForFiveSeconds) {
  for (const char* watch : {"--timeout-s 12", "--no-watchdog --timeout-s 1"}) {
    const Place place;
    StartedProgram program =
        place.start(Place::mpirun(2, place.bench(kSmall + "--lr 0.001 --iters 30 " + watch)));
    wait_for_lines(place, program);
    program.send(1, SIGSTOP);
    std::this_thread::sleep_for(5s);
    program.send(1, SIGCONT);
    const Ended ended = program.wait();
    EXPECT_EQ(ended.exit_code, 0) << watch << testing::PrintToString(ended.lines);
    EXPECT_EQ(place.contents_ending_in(".log").size(), 1u);
  }
}

// Of the process's connections on this host: its port and the other one's.
std::set<std::pair<unsigned, unsigned>> local_connections(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  std::set<std::string> sockets;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(process + "/fd", gone))
    sockets.insert(std::filesystem::read_symlink(entry.path(), gone).string());
  std::set<std::pair<unsigned, unsigned>> ports;
  std::istringstream lines(read_text(process + "/net/tcp"));
  for (std::string line; std::getline(lines, line);) {
    unsigned own = 0, other = 0, state = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), " %*d: 0100007F:%x 0100007F:%x %x %*s %*s %*s %*s %*s %lu", &own, &other,
                    &state, &inode) == 4 &&
        state == TCP_ESTABLISHED && sockets.contains("socket:[" + std::to_string(inode) + "]"))
      ports.emplace(own, other);
  }
  return ports;
}

bool watch_each_other(const StartedProgram& program) {
  const auto of_rank_0 = local_connections(pid_of(program, 0)),
             of_rank_1 = local_connections(pid_of(program, 1));
  return std::ranges::any_of(of_rank_0, [&](const auto& ports) {
    return of_rank_1.contains({ports.second, ports.first});
  });
}

TEST(Watchdog, NamesALostRankOfAMeasurement) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const Place place;
    const std::string command = place.allreduce("-b 1M -e 1M -n 1000000 --timeout-s 2");
    StartedProgram program = place.start(Place::mpirun(2, command), kPatientMpirun);
    EXPECT_TRUE(reaches([&] { return watch_each_other(program) || !program.running(); }));
    std::this_thread::sleep_for(500ms);
    program.send(1, signal);
    const Ended ended = program.wait();
    expect_peer_lost(ended);
    expect_named(ended,
                 {"bench_allreduce: rank 1 on ", signal == SIGKILL ? "is gone" : "has sent nothing for "});
    expect_all_gone(program);
  }
}

TEST(Watchdog, LeavesNoProcessBehindAKilledMpirun) {
  for (const int ranks : {1, 2}) {
    const Place place;
    StartedProgram program = place.start(Place::mpirun(ranks, place.bench(kEndless)));
    wait_for_lines(place, program);
    for (const Process& process : program.launchers()) ::kill(process.pid, SIGKILL);
    expect_named(program.wait(), {"the launcher that started rank 0", " is gone", "in the window"});
    expect_all_gone(program);
    expect_no_score(place);
  }
}

// Only a launcher whose job is over may be ended.
TEST(Watchdog, LeavesAnMpirunAloneThatGoesOnAfterARank) {
  const Place place;
  const Ended ended = place.run(
      Place::mpirun(1, "sh -c 'timeout -s KILL 2 " + place.bench(kEndless) + "; sleep 7; echo went on'"));
  EXPECT_NE(ended.exit_code, kKilled) << ended.launcher_messages;  // mpirun misses MPI_Finalize
  EXPECT_NE(ended.output.find("went on"), std::string::npos) << ended.output;
}

// Neither its phase nor the watch counts what a stopped process didn't see. A start takes over 3 s on busy
// cores.
TEST(Watchdog, LetsAllRanksPauseAtOnce) {
  const Place place;
  StartedProgram program = place.start(
      Place::mpirun(2, place.bench(kSmall + "--lr 0.001 --iters 30 --timeout-s 4 --startup-timeout-s 8")));
  reaches([&] { return program.ranks().size() == 2; });
  for (const auto pause : {10s, 6s}) {
    for (const int rank : {0, 1}) program.send(rank, SIGSTOP);
    std::this_thread::sleep_for(pause);
    for (const int rank : {0, 1}) program.send(rank, SIGCONT);
    wait_for_lines(place, program);
  }
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, 0) << testing::PrintToString(ended.lines);
  EXPECT_EQ(place.contents_ending_in(".log").size(), 1u);
}

TEST(Watchdog, LeavesNoProcessBehindARankKilledAtStart) {
  const Place place;
  StartedProgram program = place.start(Place::mpirun(2, place.bench(kEndless)));
  reaches([&] { return program.ranks().size() == 2; });
  program.send(1, SIGKILL);
  EXPECT_NE(program.wait().exit_code, 0);
  expect_all_gone(program);
}

// MPI_Init waits for it for ever.
TEST(Watchdog, EndsAStartWithAnotherProgramAmongTheRanks) {
  const Place place;
  StartedProgram program =
      place.start(Place::mpirun(1, place.bench(kSmall + "--startup-timeout-s 3")) + " : -np 1 sleep 1000");
  const Ended ended = program.wait();
  expect_peer_lost(ended);
  expect_named(ended,
               {"rank 0 on ", "in start-up for ", "every rank runs this program", "--startup-timeout-s"});
  expect_all_gone(program);
}

std::string lost_at_start(const Place& place, const std::string& what) {
  return Place::mpirun(3, "-x LD_PRELOAD='" PLUMB_LOST_AT_START "' -x PLUMB_LOST='" + what + "' " +
                              place.bench(kSmall + "--startup-timeout-s 4"));
}

TEST(Watchdog, EndsAStartInWhichARankIsStopped) {
  for (const int rank : {0, 1}) {
    const Place place;
    StartedProgram program = place.start(
        lost_at_start(place, std::to_string(rank) + " MPI_Init_thread 1 " + std::to_string(SIGSTOP)));
    const Ended ended = program.wait();
    expect_peer_lost(ended);
    expect_named(ended,
                 {rank == 0 ? "rank " : "rank 0 on ", "has been in start-up for ", "--startup-timeout-s"},
                 rank == 0 ? 2 : 1);
    expect_all_gone(program);
  }
}

// The others watch it already, and leave the sentence to it.
TEST(Watchdog, NamesARank0ThatHangsAsTheWatchBegins) {
  const Place place;
  StartedProgram program = place.start(lost_at_start(place, "0 MPI_Allgatherv 3 0"));
  const Ended ended = program.wait();
  expect_peer_lost(ended);
  expect_named(ended, {"rank 0 on ", "in preparation for ", "--startup-timeout-s"});
  expect_all_gone(program);
}

TEST(Watchdog, ReportsSharedMemoryWithoutRoom) {
  const Place place;
  StartedProgram program = place.start(lost_at_start(place, "0 MPI_Init_thread 1 " + std::to_string(SIGBUS)));
  expect_one_sentence(program.wait(), kIoError, {"no room left", "TMPDIR and /dev/shm"});
  expect_all_gone(program);
}

TEST(Watchdog, RefusesNoTimeAtAll) {
  const Place place;
  expect_one_sentence(place.run(place.bench("--timeout-s 0")), kUsage, {"--timeout-s", "0"});
}

}  // namespace
}  // namespace plumb
