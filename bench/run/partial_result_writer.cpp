#include "bench/run/partial_result_writer.h"

#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <utility>

#include "base/console/print.h"
#include "base/output.h"
#include "base/steady_clock.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::int64_t kMostReserved = 1 << 20;
constexpr std::chrono::seconds kPatienceForResult{2};

// Returns the value of --iters, or 0 with --seconds, which leaves the number open.
std::int64_t asked_iterations(const RunRecord& record) {
  return record.config.value("seconds", 0.0) > 0 ? 0 : record.iterations;
}

// The disk may be full, or the memory: the computing thread says so where it matters.
template <typename Body>
void unless_it_fails(Body body) noexcept {
  try {
    body();
  } catch (const std::exception&) {
  }
}

// Without the lock if it takes longer. A std::timed_mutex would do, but ThreadSanitizer doesn't see its
// locks.
std::unique_lock<std::mutex> locked_within(milliseconds patience, std::mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  for (const auto end = steady_clock::now() + patience; !lock && steady_clock::now() < end;) {
    std::this_thread::sleep_for(milliseconds(2));
    (void)lock.try_lock();
  }
  return lock;
}

LastCollective last_collective(const EnteredCollective& entered) {
  LastCollective last{.sequence = entered.sequence,
                      .name = entered.name.data(),
                      .bytes = entered.bytes,
                      .entered_seconds_ago = steady_seconds() - entered.entered_at,
                      .left_seconds_ago = {}};
  if (!entered.under_way()) last.left_seconds_ago = steady_seconds() - entered.left_at;
  return last;
}

}  // namespace

PartialResultWriter::PartialResultWriter(const Job& job, const RunRecord& record, const RunOutputs& outputs,
                                         Interruption& interruption, Watchdog* watchdog)
    : job_(job),
      interruption_(interruption),
      watchdog_(watchdog),
      results_(outputs.results ? &*outputs.results : nullptr),
      folder_(outputs.folder),
      asked_iterations_(asked_iterations(record)),
      identity_{.run_id = record.run_id,
                .rank = job.rank(),
                .world_size = job.size(),
                .host = job.host(),
                .pid = ::getpid()},
      record_(record) {
  const auto expected = static_cast<std::size_t>(std::min(record.iterations, kMostReserved));
  step_seconds_.reserve(expected);
  loss_.reserve(expected);
  thread_ = std::jthread([this] { watch(); });
  if (watchdog_)
    watchdog_->set_before_exit(
        [this](const std::string& sentence, int exit_code) { before_exit(sentence, exit_code); });
}

PartialResultWriter::~PartialResultWriter() {
  if (watchdog_) watchdog_->set_before_exit({});
  stops_ = true;
  interruption_.wake();
  thread_.join();
}

void PartialResultWriter::update(const RunRecord& record) {
  RunRecord copy = record;
  const std::lock_guard lock(mutex_);
  record_ = std::move(copy);
}

void PartialResultWriter::note(double step_seconds, double loss) {
  const std::lock_guard lock(mutex_);
  step_seconds_.push_back(step_seconds);
  loss_.push_back(loss);
}

void PartialResultWriter::succeed(const RunRecord& record) {
  const std::lock_guard lock(writing_);
  handed_over_ = true;
  results_->write_result(record);
  says_ok_ = true;
}

void PartialResultWriter::fail(const Error& error, RunRecord& record) {
  leave_words(error.what(), static_cast<int>(error.code()));
  if (!results_) return;
  mark_failed(error.what(), record);
  record.log_files.clear();
  const std::lock_guard lock(writing_);
  handed_over_ = true;
  try {
    results_->write_result(record);
  } catch (const Error&) {
    // The same disk may be what failed. The result.json from the start says failed, too.
    if (says_ok_) results_->remove_result();
  }
}

void PartialResultWriter::mark_failed(const std::string& failure, RunRecord& record) const {
  record.status = "failed";
  record.failure = failure;
  const std::lock_guard lock(mutex_);
  if (record.step_seconds.empty()) record.step_seconds = step_seconds_;
  if (record.loss.empty()) record.loss = loss_;
}

std::int64_t PartialResultWriter::ended() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(step_seconds_.size());
}

void PartialResultWriter::write_partial_result(const std::string& failure) {
  const std::unique_lock lock = locked_within(kPatienceForResult, writing_);
  if (!results_ || !lock || handed_over_) return;
  RunRecord partial;
  {
    const std::lock_guard snapshot(mutex_);
    partial = record_;
  }
  mark_failed(failure, partial);
  results_->write_result(partial);
}

void PartialResultWriter::watch() {
  while (!stops_) {
    interruption_.wait(std::chrono::hours(1));
    if (const int signal = interruption_.signal_unseen(); signal != 0) end_by_signal(signal);
    if (const int signal = interruption_.signal(); signal != 0 && !is_over_) {
      // The computing thread will look at it, unless it is stuck.
      before_exit(Interrupted(signal, ended(), asked_iterations_).what(), exit_code_of(signal));
      job_.announce_end(exit_code_of(signal));
    }
  }
}

void PartialResultWriter::end_by_signal(int signal) {
  const int exit_code = exit_code_of(signal);
  std::string failure = Interrupted(signal, ended(), asked_iterations_).what();
  const StatusBoard* const board = job_.board();
  if (board && signal != SIGPIPE)  // whose sentence ends with the remedy
    failure += fmt::format(", in {}", name_of(board->status().phase));
  before_exit(failure, exit_code);
  job_.announce_end(exit_code);
  if (signal == SIGPIPE)  // for other signals the shell or mpirun has its word
    say_at_once(fmt::format("{}: rank {} on {}: {}\n", program_invocation_short_name, identity_.rank,
                            identity_.host, failure));
  std::_Exit(exit_code);
}

LastWords PartialResultWriter::words(const std::string& failure, int exit_code) const {
  LastWords words = identity_;
  words.failure = failure;
  words.exit_code = exit_code;
  if (const StatusBoard* const board = job_.board()) {
    const RunStatus status = board->status();
    words.phase = name_of(status.phase);
    words.iteration = status.iteration;
    for (const EnteredCollective& entered : board->collectives())
      words.collectives.push_back(last_collective(entered));
  }
  words.unix_seconds =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return words;
}

void PartialResultWriter::leave_words(const std::string& failure, int exit_code) {
  // The thread that ends the process waits until another one has written them.
  const std::unique_lock lock = locked_within(kPatienceForResult, saying_);
  if (folder_.empty() || !lock || std::exchange(said_, true)) return;
  const std::string text = json_text(to_json(words(failure, exit_code)));
  const std::string file = last_words_file(identity_.rank);
  if (replace_file(fs::path(folder_) / file, text).empty()) return;
  std::error_code error;
  const fs::path elsewhere =
      fs::temp_directory_path(error) / kept_elsewhere(identity_.run_id, identity_.rank);
  if (error || !replace_file(elsewhere, text).empty()) return;
  say_at_once(fmt::format("{}: rank {} on {}: {} can't be written, so its last words are in {}\n",
                          program_invocation_short_name, identity_.rank, identity_.host, folder_,
                          elsewhere.string()));
}

void PartialResultWriter::before_exit(const std::string& failure, int exit_code) noexcept {
  if (is_over_.exchange(true)) return;  // nothing may write over the reason
  unless_it_fails([&] { write_partial_result(failure); });
  unless_it_fails([&] { leave_words(failure, exit_code); });
}

}  // namespace plumb
