// The MPI job that this process is a rank of: who else is there, agreement between ranks, and the end of it
// all. MPI carries set-up and results; training's collectives go through a Communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/launched_as.h"

namespace plumb {

// An Error that all ranks throw together and another rank prints: `main` returns its code and stays silent.
// The rank that prints must do so before its Job ends: mpirun kills the rest once the first process ended
// with a failure.
class ErrorToldElsewhere : public Error {
 public:
  using Error::Error;
};

// Owns MPI_Init and MPI_Finalize: `main` makes exactly one, before and after everything else. Its methods are
// for the thread that made it. They throw Error(peer_lost), or Error(internal) where MPI blames the
// arguments.
class Job {
 public:
  // Throws Error(usage) on a rank outside its job: launchers that started n processes while MPI, belonging to
  // another launcher, sees one job of fewer.
  Job(int* argc, char*** argv);
  // Waits for all other ranks to end theirs. After a failure that only this rank knows of, call abort()
  // instead.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }  // among the ranks of this host
  int local_size() const { return local_size_; }
  int nodes() const { return nodes_; }                        // hosts with at least one rank
  int devices_per_node() const { return devices_per_node_; }  // ranks of the fullest host
  const std::string& host() const { return host_; }

  // Every rank's text, in rank order, on every rank.
  std::vector<std::string> all_gather(const std::string& mine) const;
  // Every rank's numbers, in rank order, on rank 0 (elsewhere empty). All ranks give the same count.
  std::vector<double> gather(const std::vector<double>& mine) const;
  // Every rank's numbers one after the other, in rank order, on rank 0 (elsewhere empty). Counts may differ.
  std::vector<float> concatenate(const std::vector<float>& mine) const;
  // Element-wise sum over ranks, on every rank. All ranks give the same count.
  std::vector<double> sum(const std::vector<double>& mine) const;
  // Rank 0's values to every rank, in place.
  void broadcast(float* values, std::size_t count) const;
  void broadcast(std::uint64_t& value) const;
  void broadcast(std::span<std::byte> bytes) const;
  void barrier() const;

  // Runs `set_up` on this rank, then agrees with all others: if it threw on any rank, every rank throws the
  // lowest failing rank's Error: that rank its own, the others ErrorToldElsewhere with the same code and
  // sentence. (Other exceptions count as Error(internal), lack of memory as Error(out_of_memory).) A
  // collective: every rank calls it, in the same order; `set_up` itself must hold no collective.
  void together(const std::function<void()>& set_up) const;

  // Throws Error(usage), on every rank (ErrorToldElsewhere but on rank 0), that names the first rank (and
  // host) whose `text` differs from the most common one, and what differs. `what`: "options", "build",
  // "Program". `text`: lines of key=value.
  void require_same(const std::string& what, const std::string& text) const;

  // Ends the whole job at once with this code; for failures that only this rank knows of.
  [[noreturn]] void abort(int exit_code) const;

 private:
  void find_places();
  void broadcast_bytes(void* data, std::size_t bytes, int from) const;
  std::string broadcast_text(const std::string& text, int from) const;

  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1, nodes_ = 1, devices_per_node_ = 1;
  std::string host_;
};

}  // namespace plumb
