// One collective under way around a ring of MPI ranks: reduce-scatter, allgather, or both (allreduce), in
// place.
//
// Each of the n ranks' buffers has n blocks. In step s a rank sends the block that it completed in step s - 1
// to its right neighbor, and receives from its left one the block that it sends next: n - 1 steps add up, n
// - 1 more hand out the results, the least bytes that any algorithm sends (Patarasuk and Yuan 2009,
// doi:10.1016/j.jpdc.2008.09.002). A block's sum always begins at the same rank, and one rank computes it:
// results are equal on all ranks and in every run.
//
// Blocks travel as messages of some KiB, so that one is added up while the next ones are on their way.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace plumb {

// Ranks of a host stand side by side, however the launcher dealt them out.
struct RanksByHost {
  MPI_Comm communicator;
  std::size_t position;  // of this rank in `ranks`
  std::vector<int> ranks;
};

// Memory that messages arrive in. Between processes of a host the kernel copies them (process_vm_readv, rep
// movsb), which takes twice as long into other addresses.
struct alignas(64) CacheLine {
  std::byte bytes[64];

  static std::size_t lines_of(std::size_t bytes) {
    return (bytes + sizeof(CacheLine) - 1) / sizeof(CacheLine);
  }
};

// A reduce-scatter leaves block r at rank r. Any number of exchanges may be under way at once.
class RingExchange {
 public:
  struct Work {
    std::byte* data;
    std::size_t elements, element_bytes;
    bool reduces, gathers;  // at least one; both for an allreduce
    MPI_Datatype type;      // these two only if it reduces; the operation must be commutative
    MPI_Op operation;
    int tag;  // of its own among the collectives under way on this communicator
  };

  // Allocates what any exchange needs; `ranks` must outlive it. Messages hold at most `message_bytes`, 8 or
  // more.
  RingExchange(const RanksByHost& ranks, std::size_t message_bytes);
  // Cancels the receives that are still posted.
  ~RingExchange();
  RingExchange(const RingExchange&) = delete;
  RingExchange& operator=(const RingExchange&) = delete;

  // Requires ended(). All ranks start the same work.
  void start(const Work& work);
  // Does all that is possible without waiting. Throws mpi_error().
  void advance();
  bool ended() const { return received_ == messages_ && sent_ == messages_; }

 private:
  struct Piece {
    std::size_t begin, count;  // elements
  };
  int rank_at(std::size_t position) const { return by_host_.ranks[position % ranks_]; }
  Piece piece(std::size_t message, std::size_t behind) const;
  std::byte* at(const Piece& piece) const { return work_.data + piece.begin * work_.element_bytes; }
  std::byte* arrival(std::size_t message);
  bool adds(std::size_t message) const { return work_.reduces && message < half(); }
  std::size_t half() const;
  bool may_post_receive() const;
  bool may_post_send() const;
  void post_receive();
  void post_send();
  bool take_received();
  bool drop_sent();

  const RanksByHost& by_host_;
  std::size_t ranks_, message_bytes_;
  Work work_ = {};
  std::size_t messages_per_block_ = 0, elements_per_message_ = 0;
  // Messages are numbered in the order in which every rank sends and receives them: how many there are, and
  // how far this rank has come.
  std::size_t messages_ = 0, receives_posted_ = 0, received_ = 0, sends_posted_ = 0, sent_ = 0;
  std::vector<MPI_Request> receives_, sends_;  // message m's is [m % size]
  std::vector<CacheLine> arrivals_;            // summands; one message for each of receives_
};

}  // namespace plumb
