#include "comm/recursive_doubling.h"

#include <bit>

#include "comm/mpi_check.h"

namespace plumb {

RecursiveDoubling::RecursiveDoubling(const RanksByHost& ranks, std::size_t most_bytes)
    : ranks_(ranks),
      steps_(steps_of(ranks)),
      step_(steps_.size()),
      arrival_(CacheLine::lines_of(most_bytes)) {}

RecursiveDoubling::~RecursiveDoubling() {
  MPI_Request& receive = requests_[0];
  if (receive == MPI_REQUEST_NULL) return;
  MPI_Cancel(&receive);
  MPI_Request_free(&receive);
}

std::vector<RecursiveDoubling::Step> RecursiveDoubling::steps_of(const RanksByHost& ranks) {
  const std::size_t doubling = std::bit_floor(ranks.ranks.size()), pairs = ranks.ranks.size() - doubling;
  const bool paired = ranks.position < 2 * pairs;
  const auto rank_at = [&](std::size_t position) { return ranks.ranks[position]; };
  if (paired && ranks.position % 2 == 0) {
    const int keeper = rank_at(ranks.position + 1);
    return {{.partner = keeper, .sends = true, .receives = false, .adds = false},
            {.partner = keeper, .sends = false, .receives = true, .adds = false}};
  }
  std::vector<Step> steps;
  if (paired)
    steps.push_back({.partner = rank_at(ranks.position - 1), .sends = false, .receives = true, .adds = true});
  const std::size_t id = paired ? ranks.position / 2 : ranks.position - pairs;
  for (std::size_t bit = 1; bit < doubling; bit *= 2) {
    const std::size_t other = id ^ bit;
    steps.push_back({.partner = rank_at(other < pairs ? 2 * other + 1 : other + pairs),
                     .sends = true,
                     .receives = true,
                     .adds = true});
  }
  if (paired)
    steps.push_back(
        {.partner = rank_at(ranks.position - 1), .sends = true, .receives = false, .adds = false});
  return steps;
}

void RecursiveDoubling::start(const Work& work) {
  work_ = work;
  step_ = 0;
  if (!ended()) post();
}

void RecursiveDoubling::advance() {
  while (!ended()) {
    for (MPI_Request& request : requests_) {
      int ended = 0;
      check(MPI_Test(&request, &ended, MPI_STATUS_IGNORE), "MPI_Test");
      if (!ended) return;
    }
    if (steps_[step_].adds)
      check(MPI_Reduce_local(arrival_.data()->bytes, work_.data, static_cast<int>(work_.elements), work_.type,
                             work_.operation),
            "MPI_Reduce_local");
    ++step_;
    if (!ended()) post();
  }
}

void RecursiveDoubling::post() {
  const Step& step = steps_[step_];
  const auto bytes = static_cast<int>(work_.elements * work_.element_bytes);
  if (step.receives)
    check(MPI_Irecv(step.adds ? arrival_.data()->bytes : work_.data, bytes, MPI_BYTE, step.partner, work_.tag,
                    ranks_.communicator, &requests_[0]),
          "MPI_Irecv");
  if (step.sends)
    check(MPI_Isend(work_.data, bytes, MPI_BYTE, step.partner, work_.tag, ranks_.communicator, &requests_[1]),
          "MPI_Isend");
}

}  // namespace plumb
