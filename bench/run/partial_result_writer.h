// Keeps what was measured, and where each rank was, of a run whose end its computing thread can't see to: a
// signal, a shut connection, a rank that is stuck.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/run/interruption.h"
#include "bench/run/run_record.h"
#include "comm/job.h"
#include "comm/watchdog/watchdog.h"
#include "results/record/last_words.h"

namespace plumb {

// A thread of its own ends every rank's process by a signal that comes while the run doesn't look at signals.
class PartialResultWriter {
 public:
  // On every rank, by the thread that computes, after open_outputs(). All must outlive it. `watchdog` may be
  // null; else it calls before_exit().
  PartialResultWriter(const Job& job, const RunRecord& record, const RunOutputs& outputs,
                      Interruption& interruption, Watchdog* watchdog);
  ~PartialResultWriter();
  PartialResultWriter(const PartialResultWriter&) = delete;
  PartialResultWriter& operator=(const PartialResultWriter&) = delete;

  // What a partial result says from now on.
  void update(const RunRecord& record);
  // An iteration has ended.
  void note(double step_seconds, double loss);

  // Writes the result of a successful run. From now on only the caller's thread writes result.json.
  void succeed(const RunRecord& record);
  // Marks the record as failed, adds the steps so far, and writes result.json and the last words. From now on
  // only the caller's thread writes result.json.
  void fail(const Error& error, RunRecord& record);
  // What can still be saved before the process ends by _exit(): a result.json that says failed, with the
  // steps so far, and the last words. For any thread, whatever the others are stuck in; it waits for a lock
  // 2 s at most.
  void before_exit(const std::string& failure, int exit_code) noexcept;

 private:
  void watch();
  void end_by_signal(int signal);
  void write_partial_result(const std::string& failure);
  void mark_failed(const std::string& failure, RunRecord& record) const;
  // Writes this rank's rank_<N>.json, the first time only: into the run's folder, or where this host has none
  // into a temporary folder, which a line on stderr names.
  void leave_words(const std::string& failure, int exit_code);
  LastWords words(const std::string& failure, int exit_code) const;
  std::int64_t ended() const;

  const Job& job_;
  Interruption& interruption_;
  Watchdog* const watchdog_;
  const ResultWriter* results_;  // null: another rank writes it
  const std::string folder_;
  const std::int64_t asked_iterations_;
  const LastWords identity_;

  mutable std::mutex mutex_;  // never held while anything is waited for
  RunRecord record_;
  std::vector<double> step_seconds_, loss_;

  std::mutex writing_;  // of result.json
  bool handed_over_ = false, says_ok_ = false;
  std::mutex saying_;  // of the last words
  bool said_ = false;
  std::atomic<bool> is_over_{false}, stops_{false};
  std::jthread thread_;  // last: uses the others
};

}  // namespace plumb
