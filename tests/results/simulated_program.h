// A program.json and profile.json for tests of the simulator: two layers, forward and backward, and their
// updates.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "results/record/profile.h"
#include "results/simulation/step_model.h"

namespace plumb {

// Backward completes the gradient "b" of 8 MiB, then "a" of 2 MiB. Times in seconds: forward 1 each, backward
// 2 each, updates 0.5 each, the last layer's first.
inline nlohmann::ordered_json two_layer_program() {
  const auto use = [](int buffer, const char* access) {
    return Json{{"operand", "x"}, {"buffer", buffer}, {"access", access}};
  };
  const auto step = [&](const char* name, const char* phase, Json uses) {
    return Json{
        {"name", name}, {"kind", "k"}, {"phase", phase}, {"lane", "compute"}, {"uses", std::move(uses)}};
  };
  const auto buffer = [](const char* name, const char* role, int bytes) {
    return Json{{"name", name}, {"role", role}, {"dtype", "f32"}, {"dims", {bytes / 4}}, {"bytes", bytes}};
  };
  return {
      {"format", kProgramFormat},
      {"arena_bytes", 0},
      {"buffers",
       {buffer("x", "activation", 64), buffer("a", "gradient", 2 << 20), buffer("b", "gradient", 8 << 20)}},
      {"ops",
       {step("a.forward", "forward", {use(0, "w")}), step("b.forward", "forward", {use(0, "rw")}),
        step("b.backward", "backward", {use(0, "r"), use(2, "w")}),
        step("a.backward", "backward", {use(0, "r"), use(1, "w")}), step("a.update", "update", {use(1, "r")}),
        step("b.update", "update", {use(2, "r")})}}};
}

inline nlohmann::ordered_json two_layer_profile() {
  Json ops = Json::array();
  const Json program = two_layer_program();
  const double seconds[]{1, 1, 2, 2, 0.5, 0.5};
  for (std::size_t i = 0; i < program["ops"].size(); ++i)
    ops.push_back({{"name", program["ops"][i]["name"]}, {"lane", "compute"}, {"seconds", seconds[i]}});
  return {{"format", kProfileFormat},
          {"precision", "fp32"},
          {"peak_bytes_per_second", 1e9},
          {"roofline_seconds", 0.1},
          {"ops", ops}};
}

// The two gradients apart, each its own bucket.
inline StepModel two_layer_step() {
  const std::vector<double> seconds =
      profiled_seconds(two_layer_program(), two_layer_profile(), "profile.json");
  return with_buckets(step_model(two_layer_program(), seconds, "program.json"),
                      {.last_bucket_bytes = 2 << 20, .bucket_bytes = 8 << 20});
}

}  // namespace plumb
