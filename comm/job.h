// The MPI job of this process: ranks and hosts, agreement between ranks, shutdown. MPI carries set-up and
// results; training's collectives go through a Communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/status_board.h"

namespace plumb {

// The MPI library that was found at run time: "Open MPI v4.1.4", "MPICH 4.0.2". May be called at any time.
std::string mpi_library();

// An Error that all ranks throw together and another rank prints, before its Job ends: mpirun kills the rest
// once the first process exits with a failure.
class ErrorToldElsewhere : public Error {
 public:
  using Error::Error;
};

// What a program does while its job starts and ends. All may be empty.
struct JobStart {
  // Where the job's messages are recorded; outlives the job.
  StatusBoard* board = nullptr;
  // What announce_end() does.
  std::function<void(int exit_code)> before_end;
};

// Owns MPI_Init and MPI_Finalize: `main` creates exactly one, first, and destroys it last. Only the creating
// thread may call its methods. They throw Error(peer_lost), or Error(out_of_memory) if MPI lacks memory.
class Job {
 public:
  // Throws Error(usage) if the launcher started more processes than MPI sees in its job, i.e. launcher and
  // MPI don't match.
  Job(int* argc, char*** argv, const JobStart& start = {});
  // Waits for all other ranks' destructors. After a failure known only to this rank, call abort() instead.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }  // among the ranks of this host
  int local_size() const { return local_size_; }
  int first_rank_of_host() const { return first_rank_of_host_; }
  int nodes() const { return nodes_; }                        // hosts with at least one rank
  int devices_per_node() const { return devices_per_node_; }  // ranks of the fullest host
  const std::string& host() const { return host_; }
  StatusBoard* board() const { return board_; }  // JobStart's, or null
  void enter_phase(RunPhase phase) const {
    if (board_) board_->set_phase(phase);
  }

  // Returns every rank's text, in rank order, on every rank.
  std::vector<std::string> all_gather(const std::string& mine) const;
  // Returns every rank's numbers, in rank order, on rank 0 (empty elsewhere). Counts must be equal.
  std::vector<double> gather(const std::vector<double>& mine) const;
  // Returns every rank's numbers, in rank order, on rank 0 (empty elsewhere). Counts may differ.
  std::vector<float> concatenate(const std::vector<float>& mine) const;
  // Element-wise sum over ranks, on every rank. Counts must be equal.
  std::vector<double> sum(const std::vector<double>& mine) const;
  // Sends rank 0's values to every rank, in place.
  void broadcast(float* values, std::size_t count) const {
    broadcast_bytes(values, count * sizeof(float), 0);
  }
  void broadcast(std::uint64_t& value) const { broadcast_bytes(&value, sizeof(value), 0); }
  void broadcast(std::span<std::byte> bytes) const { broadcast_bytes(bytes.data(), bytes.size(), 0); }
  void barrier() const;

  // Runs `set_up`, which must not call a collective, on every rank. If it threw on any, every rank throws the
  // lowest failing rank's Error: that rank its own, the others ErrorToldElsewhere with the same code and
  // message. Other exceptions count as Error(internal), lack of memory as Error(out_of_memory).
  void together(const std::function<void()>& set_up) const;

  // If texts (lines of key=value) differ, throws Error(usage) on rank 0 and ErrorToldElsewhere on the others,
  // naming the first rank whose text differs from the most common one, and the difference. `what`: "options",
  // "build", "Program". One gathering of texts, which ranks of different commits understand, too.
  void require_same(const std::string& what, const std::string& text) const;

  // Before this rank tells of a failure that it alone knows: the watchdog shall not take the end of the job
  // for the loss of a rank. abort() calls it, too.
  void announce_end(int exit_code) const {
    if (before_end_) before_end_(exit_code);
  }
  // Ends the whole job at once with this code; for failures known only to this rank.
  [[noreturn]] void abort(int exit_code) const;

 private:
  void find_places();
  void broadcast_bytes(void* data, std::size_t bytes, int from) const;

  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1, nodes_ = 1, devices_per_node_ = 1;
  int first_rank_of_host_ = 0;
  std::string host_;
  StatusBoard* board_;
  std::function<void(int)> before_end_;
};

}  // namespace plumb
