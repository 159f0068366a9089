#include "bench/run/failures.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "base/console/messages.h"
#include "base/current_error.h"
#include "base/paths.h"
#include "bench/output/version.h"
#include "comm/launched_as.h"

namespace plumb {
namespace {

void tell(const std::string& program, const std::string& sentence) {
  const std::string text = lines_on(terminal_of(stderr), program + ": " + printable(sentence));
  std::fprintf(stderr, "%s\n", text.c_str());
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

}  // namespace

// Most failures before there is a job are the same on all ranks: rank 0 prints, and when it exits mpirun ends
// the others, within 2 s even if they ignore SIGTERM. A rank that still runs after this time has a failure of
// its own.
constexpr std::chrono::seconds kRankZeroTells{3};

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

void end_for_all(const std::string& program, const Job& job, const Error& error) {
  if (job.size() == 1) return;
  job.announce_end(static_cast<int>(error.code()));
  tell_with_rank(program, job, error.what());
  job.abort(static_cast<int>(error.code()));
}

void run_in_job(const std::string& program, const Job& job, const std::function<void()>& body) {
  const auto end = [&](const Error& error) {
    end_for_all(program, job, error);
    tell_with_rank(program, job, error.what());
    throw ErrorToldElsewhere(error.code(), error.what());
  };
  try {
    require_one_build(job);
    body();
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

}  // namespace plumb
