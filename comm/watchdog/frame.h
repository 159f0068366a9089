// What ranks send each other beside MPI: frames of one size, each with the job's token. All ranks run the
// same build, so frames travel as they lie in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace plumb {

// Random bytes that the job's messages spread. They keep out strangers who try ports, but not somebody who
// reads the hosts' traffic.
using Token = std::array<std::byte, 16>;
// Throws Error(internal) if the system has no random numbers.
Token random_token();

enum class FrameType : std::uint32_t {
  hello,       // who dials
  welcome,     // who is dialled
  heartbeat,   // a RankSummary
  report,      // a rank to the hub: a Verdict of its own
  verdict,     // the hub to all: a Verdict, all end
  failing,     // a rank to the hub: it ends the job itself, with this exit code
  stand_down,  // the hub to all: a rank ends the job, no alarm any more
  goodbye      // this rank ends in good order
};

struct Frame {
  static constexpr std::size_t kPayloadBytes = 192;

  FrameType type = FrameType::hello;
  std::int32_t rank = 0;  // the sender's
  Token token{};
  std::array<std::byte, kPayloadBytes> payload{};
};
static_assert(std::is_trivially_copyable_v<Frame>);

template <typename Value>
void put(Frame& frame, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) <= Frame::kPayloadBytes);
  std::memcpy(frame.payload.data(), &value, sizeof value);
}

template <typename Value>
Value value_in(const Frame& frame) {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) <= Frame::kPayloadBytes);
  Value value;
  std::memcpy(static_cast<void*>(&value), frame.payload.data(), sizeof value);
  return value;
}

}  // namespace plumb
