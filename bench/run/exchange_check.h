// Integers through a step's collectives, before the first iteration: a sum that is wrong on all ranks alike
// leaves replicas identical, and no check after the run finds it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "bench/run/session.h"
#include "comm/job.h"

namespace plumb {

// Changes what a rank reads of a message's first elements, before they are checked. For tests.
using MessageDamage = std::function<void(std::span<std::byte> message)>;

// Carries every collective of the Program that differs in kind, dtype or size out once, the smallest first,
// and checks every element. Messages of over 2 MiB that would take over 5 s each, by the speed of the one
// before, are left out: all together send no more than a step, which takes minutes on the slowest networks.
// Every rank calls it, with a session that is prepared; it leaves zeros in the messages' buffers. Returns the
// bytes of the largest message that was checked, if a larger one was left out; else 0. Throws
// Error(verification_failed), on all ranks, that names rank, collective, dtype and element.
std::size_t check_exchange(const Job& job, Session& session, const MessageDamage& damage = {});

}  // namespace plumb
