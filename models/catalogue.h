// The trainable networks. Each is a file in this folder and a line in catalogue.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/graph.h"
#include "models/model_options.h"

namespace plumb {

// Training and timing defaults.
struct Recipe {
  std::int64_t iterations = 120, warmup = 20;  // warmup: leading iterations excluded from averages
  double learning_rate = 0.1, momentum = 0.875, weight_decay = 3.0517578125e-5, label_smoothing = 0.1;
};

struct Model {
  std::string_view name;                          // "r50": names Graphs, logs and results
  std::string_view title;                         // "IResNet-50", for people
  std::string_view task;                          // "ArcFace face recognition", as its program prints it
  std::string_view program;                       // "bench_arcface"
  std::string_view published_name;                // part of its name in published tables
  std::array<std::string_view, 4> other_names{};  // in other frameworks' logs, lower case
  Graph (*make)(const ModelOptions& options) = nullptr;
  std::int64_t image_size = 224;  // pixels, in published results
  bool only_this_size = false;    // another size is another network
  Recipe recipe;
  bool margin_head = false;  // embeddings and class centres instead of a softmax loss
  // Margin heads only.
  std::int64_t embedding = 512;
  double dropout = 0;            // 0: none
  bool prelu_per_layer = false;  // supports ModelOptions::prelu_per_layer
};

std::span<const Model> model_catalogue();

// Null if no model has this name.
const Model* find_model(std::string_view name, std::span<const Model> catalogue = model_catalogue());

// A program's models: its default first, the others chosen by model_option().
std::vector<const Model*> models_of(std::string_view program,
                                    std::span<const Model> catalogue = model_catalogue());

// The option that chooses among several models of a program.
inline std::string_view model_option(const Model& model) {
  return model.margin_head ? "--backbone" : "--model";
}

// Programs that train models, in catalogue order.
std::vector<std::string_view> programs_of(std::span<const Model> catalogue = model_catalogue());

}  // namespace plumb
