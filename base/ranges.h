// Loops over ranges that only collect or look for something.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

namespace plumb {

// `of` of every item: a member or a function.
template <typename Range, typename Of>
auto mapped(const Range& range, Of of) {
  std::vector<std::decay_t<decltype(std::invoke(of, *std::begin(range)))>> all;
  for (const auto& item : range) all.push_back(std::invoke(of, item));
  return all;
}

// The first item of which `of` is `value`; nullptr if none is.
template <typename Range, typename Value, typename Of = std::identity>
auto find_in(Range& range, const Value& value, Of of = {}) {
  const auto found = std::ranges::find(range, value, of);
  return found == std::end(range) ? nullptr : &*found;
}

}  // namespace plumb
