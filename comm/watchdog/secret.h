// The key that the ranks of a job share, and codes that only who has it can make.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace plumb {

using Secret = std::array<std::byte, 32>;  // as long as what SHA-256 makes

// From the system's random numbers. Throws Error(internal) if there are none.
Secret random_secret();

// HMAC-SHA-256 (RFC 2104).
Secret message_code(const Secret& key, std::span<const std::byte> message);

// Takes as long wherever they differ.
bool same_code(const Secret& a, const Secret& b);

}  // namespace plumb
