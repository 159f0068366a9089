// An allreduce in log2(n) steps, for messages so short that steps cost more than bytes. In step k each of n
// ranks exchanges its whole buffer with the rank whose position differs in bit k, and adds (Thakur,
// Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005). If n is no
// power of two, the first ranks pair up: one gives its values to the other and gets the result from it.
// Results are equal on all ranks and in every run.
#pragma once

#include "comm/collective_algorithm.h"

namespace plumb {

class RecursiveDoubling : public CollectiveAlgorithm {
 public:
  struct Step {
    int partner;
    bool sends, receives;
    bool adds;  // what it receives; else that is the result
  };
  static std::vector<Step> steps_of(const RanksByHost& ranks);

  // Allocates what sums of up to `most_bytes` need; `ranks` must outlive it.
  RecursiveDoubling(const RanksByHost& ranks, std::size_t most_bytes);
  // Cancels a receive that is still posted.
  ~RecursiveDoubling() override;
  RecursiveDoubling(const RecursiveDoubling&) = delete;
  RecursiveDoubling& operator=(const RecursiveDoubling&) = delete;

  void start(const Work& work) override;
  void advance() override;
  bool ended() const override { return step_ == steps_.size(); }

 private:
  void post();

  const RanksByHost& ranks_;
  std::vector<Step> steps_;
  Work work_ = {};
  std::size_t step_;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};  // receive, send
  std::vector<CacheLine> arrival_;
};

}  // namespace plumb
