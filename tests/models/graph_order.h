// Checks that operations can run in the Graph's order.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <type_traits>
#include <variant>
#include <vector>

#include "models/graph.h"

namespace plumb {

struct Ports {
  std::vector<ValueId> in;
  std::optional<ValueId> out;
};

inline Ports ports(const Op& op) {
  return std::visit(
      [](const auto& one) {
        using Kind = std::decay_t<decltype(one)>;
        Ports result{{one.in}, std::nullopt};
        if constexpr (!std::is_same_v<Kind, SoftmaxLoss> && !std::is_same_v<Kind, MarginLoss>) {
          result.out = one.out;
        }
        if constexpr (std::is_same_v<Kind, BatchNorm>) {
          if (one.residual) result.in.push_back(*one.residual);
        }
        return result;
      },
      op);
}

// Each operation reads earlier values, and each value is written once.
inline void expect_runs_in_order(const Graph& graph) {
  std::set<ValueId> made{0};
  for (const Op& op : graph.ops) {
    const Ports io = ports(op);
    for (const ValueId in : io.in) EXPECT_TRUE(made.contains(in)) << graph.values[in].name;
    if (!io.out) continue;
    EXPECT_TRUE(made.insert(*io.out).second) << graph.values[*io.out].name;
  }
  EXPECT_EQ(made.size(), graph.values.size());
}

}  // namespace plumb
