#include "bench/program_main.h"

#include <chrono>
#include <cstdio>
#include <new>
#include <thread>

#include "bench/training.h"
#include "comm/launched_as.h"
#include "models/error.h"

namespace plumb {
namespace {

void tell(const std::string& program, const std::string& sentence) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), sentence.c_str());
}

}  // namespace

// Most failures before there is a job are met by all ranks alike: rank 0 tells, and its end makes mpirun end
// the others, within 2 s if they don't obey SIGTERM. Who is still there after this time has a failure of its
// own.
constexpr std::chrono::seconds kRankZeroTells{3};

int run_program(const std::string& program, const std::function<void()>& body) {
  const auto tell_once = [&](const std::string& sentence) {
    const int rank = launched_as().rank;
    if (rank != 0) std::this_thread::sleep_for(kRankZeroTells);
    tell(program, rank == 0 ? sentence : "rank " + std::to_string(rank) + ": " + sentence);
  };
  try {
    body();
    return static_cast<int>(ExitCode::ok);
  } catch (const ErrorToldElsewhere& error) {
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    tell_once(error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& defect) {
    tell(program, std::string("internal error: ") + defect.what());
    return static_cast<int>(ExitCode::internal);
  }
}

void run_in_job(const std::string& program, const Job& job, const std::function<void()>& body) {
  const auto tell_with_rank = [&](const std::string& sentence) {
    tell(program, job.size() == 1
                      ? sentence
                      : "rank " + std::to_string(job.rank()) + " on " + job.host() + ": " + sentence);
  };
  const auto end_for_all = [&](const std::string& sentence, ExitCode code) {
    tell_with_rank(sentence);
    if (job.size() > 1) job.abort(static_cast<int>(code));
    throw ErrorToldElsewhere(code, sentence);
  };
  try {
    body();
  } catch (const FailureOfThisRank& error) {
    end_for_all(error.what(), error.code());
  } catch (const ErrorToldElsewhere&) {
    throw;
  } catch (const Error& error) {  // all ranks agree on it
    tell_with_rank(error.what());
    throw ErrorToldElsewhere(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    end_for_all("out of memory; use a smaller --bs", ExitCode::out_of_memory);
  } catch (const std::exception& defect) {
    end_for_all(std::string("internal error: ") + defect.what(), ExitCode::internal);
  }
}

}  // namespace plumb
