#include "bench/run/run_program.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "base/build.h"
#include "base/console/print.h"
#include "base/current_error.h"
#include "base/machine/host_addresses.h"
#include "base/options/completions.h"
#include "base/paths.h"
#include "base/text.h"
#include "bench/links/address_check.h"
#include "bench/run/environment.h"
#include "comm/launcher.h"
#include "comm/status_board.h"

namespace plumb {
namespace {

// Most failures before there is a job are the same on all ranks: rank 0 prints, and when it exits mpirun ends
// the others, within 2 s even if they ignore SIGTERM. A rank that still runs after this time has a failure of
// its own.
constexpr std::chrono::seconds kRankZeroTells{3};

std::string line_of(const std::string& program, const std::string& sentence) {
  return program + ": " + sentence + "\n";
}

void tell(const std::string& program, const std::string& sentence) {
  std::fputs(line_of(program, printable(sentence)).c_str(), stderr);
}

// A sentence that all ranks agree on may name the rank that it is about.
void tell_with_rank(const std::string& program, const Job& job, const std::string& sentence) {
  const bool says_who = job.size() == 1 || sentence.starts_with("rank ");
  tell(program, says_who ? sentence : fmt::format("rank {} on {}: {}", job.rank(), job.host(), sentence));
}

// First of all messages: other commits may send others.
void require_one_build(const Job& job) {
  try {
    job.require_same("build", build_lines());
  } catch (const ErrorToldElsewhere&) {
    throw;
  } catch (const Error& error) {
    throw FailureOfThisRank(error);
  }
}

// The job, the board that its ranks write and, unless WatchOptions say otherwise, the watchdog, which watches
// this process from the constructor to the end of the destructor.
struct WatchedJob {
  WatchedJob(const std::string& program, const WatchOptions& options, const Warn& warn, int* argc,
             char*** argv) {
    JobStart start{.board = &board};
    if (options.on) {
      watchdog.emplace(
          board, WatchdogOptions{
                     .limits = {options.timeout_seconds, options.startup_timeout_seconds},
                     .print = [program](const std::string& text) { say_at_once(line_of(program, text)); },
                     .messages_are_late =
                         [warn](double waited) {
                           if (launched_as().size > 1)
                             warn(late_messages_text(addresses_of_this_host(), waited));
                         }});
      start.before_end = [this](int exit_code) { watchdog->announce_end(exit_code); };
    }
    job.emplace(argc, argv, start);
  }
  ~WatchedJob() {
    board.set_phase(RunPhase::ending);
    if (watchdog) watchdog->disconnect();
    job.reset();
  }
  WatchedJob(const WatchedJob&) = delete;
  WatchedJob& operator=(const WatchedJob&) = delete;

  // From now on ranks watch each other. Every rank calls it.
  void connect(const Warn& warn) {
    if (!watchdog || job->size() == 1) return;
    const std::string why_off = watchdog->connect(*job, reachable_address(*job));
    if (why_off.empty()) return;
    warn(
        fmt::format("ranks are not watched, so a lost one can block all others: {}; open TCP ports between "
                    "hosts, or pass --no-watchdog",
                    why_off));
  }

  StatusBoard board;
  std::optional<Watchdog> watchdog;
  std::optional<Job> job;
};

}  // namespace

int run_program(const std::string& program, const std::function<void()>& body) {
  const auto tell_once = [&](const std::string& sentence) {
    const int rank = launched_as().rank;
    if (rank != 0) std::this_thread::sleep_for(kRankZeroTells);
    tell(program, rank == 0 ? sentence : fmt::format("rank {}: {}", rank, sentence));
  };
  try {
    body();
    return static_cast<int>(ExitCode::ok);
  } catch (const ErrorToldElsewhere& error) {
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    tell_once(error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception&) {
    const Error error = current_error();
    tell(program, error.what());
    return static_cast<int>(error.code());
  }
}

std::optional<std::string> answer_to(const Questions& questions, const OptionTable& table, bool json) {
  if (questions.help) return help_text(table, *questions.help);
  if (questions.version) {
    const nlohmann::ordered_json build = engine_build_json(true);
    return json ? json_text(build) : version_text(table.program, build);
  }
  if (!questions.completions.empty()) return completions(questions.completions, table.program);
  return std::nullopt;
}

void run_job(const std::string& program, const JobOptions& options, int* argc, char*** argv,
             const JobBody& body) {
  Interruption interruption;
  const Warn warn = [quiet = options.quiet](const std::string& sentence) {
    Messages(stderr, terminal_of(stderr), quiet ? Loudness::quiet : Loudness::usual).warn(sentence);
  };
  require_open_files();
  WatchedJob watched(program, options.watch, warn, argc, argv);
  const Job& job = *watched.job;
  const auto end = [&](const Error& error) {
    end_for_all(program, job, error);
    tell_with_rank(program, job, error.what());
    throw ErrorToldElsewhere(error.code(), error.what());
  };
  try {
    require_one_build(job);
    if (options.probe) check_addresses(job, warn);
    watched.connect(warn);
    body(job, interruption, watched.watchdog ? &*watched.watchdog : nullptr);
  } catch (const FailureOfThisRank& error) {
    end(error);
  } catch (const ErrorToldElsewhere&) {
    throw;
  } catch (const Error& error) {  // all ranks agree on it
    tell_with_rank(program, job, error.what());
    throw ErrorToldElsewhere(error.code(), error.what());
  } catch (const std::exception&) {
    end(current_error());
  }
}

void end_for_all(const std::string& program, const Job& job, const Error& error) {
  if (job.size() == 1) return;
  job.announce_end(static_cast<int>(error.code()));
  tell_with_rank(program, job, error.what());
  job.abort(static_cast<int>(error.code()));
}

Messages messages_of(const Job& job, const BenchOptions& options) {
  if (options.quiet || job.rank() != 0) return Messages(stderr, terminal_of(stderr), Loudness::quiet);
  if (!options.verbose) return Messages(stderr, terminal_of(stderr), Loudness::usual);
  const std::string origin = job.size() == 1 ? "" : fmt::format("{} rank {}: ", job.host(), job.rank());
  return Messages(stderr, terminal_of(stderr), Loudness::verbose, origin);
}

}  // namespace plumb
