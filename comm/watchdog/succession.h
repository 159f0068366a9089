// Whom a rank asks who tells, where rank 0 is lost.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace plumb {

// The lowest rank that can be reached tells. Of each host the lowest rank that answers is asked, hosts beside
// each other: one that is lost doesn't even refuse. So a rank that is cut off from all others knows it after
// 2 s and 0.1 s for each of their hosts, 5 s at most. Times are seconds on any clock that doesn't jump.
class Succession {
 public:
  // `hosts`: of every rank. It asks the ranks from 1 on below `own_rank`.
  Succession(const std::vector<std::string>& hosts, int own_rank, double now);

  // Ranks to be dialled now; each is returned once.
  std::vector<int> to_dial(double now);
  void joined(int rank);
  // It can't be reached, or its connection has ended: the next rank of its host is asked.
  void closed(int rank);
  // The rank that has joined and is to be asked: all lower ones have had their time.
  std::optional<int> to_ask(double now) const;
  // It was asked in vain: its host isn't asked again.
  void gives_no_answer(int rank);
  // Nobody is left to be asked: this rank tells.
  bool is_over(double now) const;

 private:
  struct Host {
    std::string name;
    std::vector<int> ranks;  // not yet asked, ascending
    std::optional<double> dialled_at;
    bool joined = false;
  };

  bool is_dialled_now(std::size_t host, double now) const;
  bool is_left_out(const Host& host, double now) const;
  Host* host_asked_through(int rank);

  double begin_;
  std::vector<Host> hosts_;  // by their lowest rank
};

}  // namespace plumb
