// The MPI job that this process is a rank of: who else is there, agreement between ranks, and the end of it all.
// MPI carries set-up and results; training's collectives go through a Communicator.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace plumb {

// Owns MPI_Init and MPI_Finalize: `main` makes exactly one, before and after everything else.
class Job {
 public:
  Job(int* argc, char*** argv);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }    // among the ranks of this host
  int local_size() const { return local_size_; }
  int nodes() const { return nodes_; }              // hosts with at least one rank
  int devices_per_node() const;                     // of the fullest host
  const std::string& host() const { return host_; }

  // Every rank's text, in rank order, on every rank.
  std::vector<std::string> all_gather(const std::string& mine) const;
  // Every rank's numbers, in rank order, on rank 0 (elsewhere empty). All ranks give the same count.
  std::vector<double> gather(const std::vector<double>& mine) const;
  // Element-wise sum over ranks, on every rank.
  std::vector<double> sum(const std::vector<double>& mine) const;
  // Rank 0's floats to every rank, in place.
  void broadcast(float* values, std::size_t count) const;
  void broadcast(std::uint64_t& value) const;
  void barrier() const;

  // Runs `set_up` on this rank, then agrees with all others: if it threw Error on any rank, every rank throws that
  // Error (the lowest failing rank's; on other ranks than that one the sentence is marked as already told).
  // A collective: every rank calls it, in the same order.
  void together(const std::function<void()>& set_up) const;

  // Throws Error(usage), on every rank, that names the first rank (and host) whose `text` differs from the most common one, and
  // what differs. `what`: "options", "build", "Program".
  void require_same(const std::string& what, const std::string& text) const;

  // Ends the whole job at once with this code; for failures that only this rank knows of.
  [[noreturn]] void abort(int exit_code) const;

 private:
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1, nodes_ = 1;
  std::string host_;
};

// Before MPI_Init, from the launcher's environment (Open MPI, PMI, Slurm): this process's rank, and how many the
// launcher started. {0, 1} outside a launcher.
struct LaunchedAs {
  int rank = 0;
  int size = 1;
};
LaunchedAs launched_as();

}  // namespace plumb
