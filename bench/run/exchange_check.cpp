#include "bench/run/exchange_check.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/steady_clock.h"
#include "base/text.h"
#include "bench/run/device_communicator.h"
#include "bench/run/device_memory.h"
#include "comm/message_pattern.h"

namespace plumb {
namespace {

constexpr std::size_t kPieceElements = std::size_t{1} << 20;  // filled and checked at a time
// Shorter ones are carried out whatever they take: their time says how long the others would.
constexpr std::size_t kAlwaysBytes = std::size_t{2} << 20;
constexpr double kMostSeconds = 5;

struct Message {
  std::string name;  // "bucket0.allreduce"
  Collective collective;

  std::size_t bytes() const { return collective.elements * bytes_of(collective.dtype); }
};

// One for each kind, dtype and size, the smallest first.
std::vector<Message> distinct_messages(const Program& program) {
  std::vector<Message> messages;
  for (const Instruction& instruction : program.instructions) {
    const auto* collective = instruction.as<Collective>();
    if (!collective) continue;
    const auto is_same = [&](const Message& other) {
      return other.collective.kind == collective->kind && other.collective.dtype == collective->dtype &&
             other.collective.elements == collective->elements;
    };
    if (std::ranges::none_of(messages, is_same)) messages.push_back({instruction.name, *collective});
  }
  std::ranges::stable_sort(messages, {}, &Message::bytes);
  return messages;
}

class ExchangeCheck {
 public:
  ExchangeCheck(const Job& job, Session& session, const MessageDamage& damage)
      : job_(job), session_(session), memory_(*session.device), damage_(damage) {}

  // Seconds that the collective took on this rank.
  double check(const Message& message) {
    const Collective& collective = message.collective;
    const MessagePattern pattern(collective, job_.rank(), job_.size());
    each_piece(collective, [&](std::size_t first, std::span<std::byte> bytes) {
      pattern.fill(bytes, first);
      memory_.write(collective.buffer, first * bytes_of(collective.dtype), bytes);
    });
    job_.barrier();
    const double start = steady_seconds();
    carry_out(collective);
    const double seconds = steady_seconds() - start;
    MessagePattern::Wrong wrong;
    each_piece(collective, [&](std::size_t first, std::span<std::byte> bytes) {
      const std::size_t offset = first * bytes_of(collective.dtype);
      memory_.read(collective.buffer, offset, bytes);
      if (damage_ && first == 0) damage_(bytes);
      const MessagePattern::Wrong found = pattern.check(bytes, first);
      const std::size_t elements = wrong.elements + found.elements;
      if (wrong.elements == 0) wrong = found;
      wrong.elements = elements;
      std::memset(bytes.data(), 0, bytes.size());  // gaps between gradients must hold zeros
      memory_.write(collective.buffer, offset, bytes);
    });
    job_.together([&] { require_right(message, wrong); });
    return seconds;
  }

 private:
  // Calls `each(first element, bytes)` for pieces of the message; `bytes` is scratch memory of that size.
  template <typename Each>
  void each_piece(const Collective& collective, Each each) {
    const std::size_t element_bytes = bytes_of(collective.dtype);
    scratch_.resize(std::max(scratch_.size(), std::min(collective.elements, kPieceElements) * element_bytes));
    for (std::size_t first = 0; first < collective.elements; first += kPieceElements) {
      const std::size_t count = std::min(kPieceElements, collective.elements - first);
      each(first, std::span(scratch_).first(count * element_bytes));
    }
  }

  void carry_out(const Collective& collective) {
    Communicator& communicator = *session_.communicator;
    try {
      communicator.wait(communicator.start(collective, session_.device->data(collective.buffer)));
      wait_for_lane(*session_.device, &communicator, Lane::communication);
    } catch (const Error&) {
      memory_.abandon();
      throw;
    }
  }

  void require_right(const Message& message, const MessagePattern::Wrong& wrong) const {
    if (wrong.elements == 0) return;
    throw Error(
        ExitCode::verification_failed,
        "{} of {} elements in {} over {} is wrong on rank {} on {}: element {} is {} in place of {}, the "
        "first of {}; bench_allreduce shows which sizes are, another --comm may do",
        message.name, message.collective.elements, name_of(message.collective.dtype),
        session_.communicator->name(), job_.rank(), job_.host(), wrong.first, wrong.found, wrong.wanted,
        wrong.elements);
  }

  const Job& job_;
  Session& session_;
  DeviceMemory memory_;
  const MessageDamage& damage_;
  std::vector<std::byte> scratch_;
};

}  // namespace

std::size_t check_exchange(const Job& job, Session& session, const MessageDamage& damage) {
  ExchangeCheck check(job, session, damage);
  std::size_t checked_bytes = 0;
  double seconds = 0;  // of the last one
  for (const Message& message : distinct_messages(session.plan.program)) {
    const double expected = checked_bytes == 0 ? 0
                                               : seconds * static_cast<double>(message.bytes()) /
                                                     static_cast<double>(checked_bytes);
    std::uint64_t goes_on = message.bytes() <= kAlwaysBytes || expected <= kMostSeconds ? 1 : 0;
    job.broadcast(goes_on);  // ranks' clocks differ
    if (goes_on == 0) return checked_bytes;
    seconds = check.check(message);
    checked_bytes = message.bytes();
  }
  return 0;
}

}  // namespace plumb
