// Collectives of training over one small interface: an options struct (Collective, from the Program), a
// buffer, and a ticket to wait on. Implementations: mpi (host buffers), nccl (device buffers).
#pragma once

#include <cstddef>
#include <string>

#include "kernels/program.h"

namespace plumb {

class Communicator {
 public:
  using Ticket = std::size_t;
  virtual ~Communicator() = default;

  virtual std::string name() const = 0;  // "mpi", "nccl"
  virtual int size() const = 0;
  // Whether start() only enqueues on the device's communication lane. Then collectives are ordered like any
  // step, may be captured, wait() has nothing to do and done() is always true. Otherwise the host carries
  // them.
  virtual bool enqueues() const { return false; }

  // Starts the collective on `data` (in place) and returns at once; `data` must stay as it is until the end.
  // All ranks start the same ones in the same order. Throws what require_sound() throws.
  virtual Ticket start(const Collective& collective, std::byte* data) = 0;
  // Lets started collectives move on, or finds out that they failed: throws Error(peer_lost). Called between
  // compute steps, or, if enqueues(), once per iteration.
  virtual void progress() = 0;
  // Whether the collective had ended when progress() was last called.
  virtual bool done(Ticket ticket) const = 0;
  // Returns when the collective has ended.
  virtual void wait(Ticket ticket) = 0;
};

// The checks with which every start() begins: any dtype is gathered, f32, f16 and bf16 are summed, maxima
// are of f32. Throws Error(internal) for another one, std::logic_error where ranks can't have equal parts.
void require_sound(const Collective& collective, int world_size);

}  // namespace plumb
