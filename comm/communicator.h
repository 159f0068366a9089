// Interface for training's collectives: a Collective from the Program, a buffer, and a ticket to wait on.
// Implementations: mpi (host buffers), nccl (device buffers).
#pragma once

#include <cstddef>
#include <string>

#include "kernels/program/program.h"

namespace plumb {

class Communicator {
 public:
  using Ticket = std::size_t;
  virtual ~Communicator() = default;

  virtual std::string name() const = 0;  // "mpi", "nccl"
  virtual int size() const = 0;
  // Whether start() only enqueues on the device's communication lane. Then collectives are ordered like any
  // instruction and may be captured, wait() does nothing and done() is always true. Otherwise the host runs
  // them.
  virtual bool enqueues() const { return false; }

  // Starts the collective on `data` (in place) without waiting; `data` must stay untouched until it ends.
  // All ranks start the same collectives in the same order. Throws the errors of require_sound().
  virtual Ticket start(const Collective& collective, std::byte* data) = 0;
  // Advances started collectives; throws Error(peer_lost) if one failed. Called between compute instructions,
  // or once per iteration if enqueues().
  virtual void progress() = 0;
  // Whether the collective had ended at the last progress() call.
  virtual bool done(Ticket ticket) const = 0;
  // Returns when the collective has ended.
  virtual void wait(Ticket ticket) = 0;
};

// Checks at the start of every start(): allgather and broadcast take any dtype, sums f32, f16 and bf16,
// maxima f32. Throws Error(internal) for another dtype, std::logic_error if ranks can't have equal parts.
void require_sound(const Collective& collective, int world_size);

}  // namespace plumb
