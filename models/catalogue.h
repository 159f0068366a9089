// The networks that can be trained. A network is a file beside this one, and a line in catalogue.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/arcface.h"

namespace plumb {

// How a network is trained and timed unless options say otherwise.
struct Recipe {
  std::int64_t iterations = 120, warmup = 20;  // of all iterations, the leading ones that are not averaged
  double learning_rate = 0.1, momentum = 0.875, weight_decay = 3.0517578125e-5, label_smoothing = 0.1;
};

struct Model {
  std::string_view name;     // "r50": of its graphs, logs and results
  std::string_view title;    // "IResNet-50", for people
  std::string_view task;     // "ArcFace face recognition": what its program says that it trains
  std::string_view program;  // that trains it: "bench_arcface"
  std::array<std::string_view, 4> other_names{};  // in other frameworks' logs, in lower case
  std::string_view short_name;  // in names of logs of which a framework trains only this network; may be
                                // another one's name
  Graph (*make)(const ModelOptions& options) = nullptr;
  std::int64_t image_size = 224;  // pixels, of published results
  bool only_this_size = false;    // another one is another network
  Recipe recipe;
  bool margin_head = false;  // embeddings and class centers instead of a softmax loss
  // With a margin head.
  std::int64_t embedding = 512;
  double dropout = 0;            // 0: it has none
  bool prelu_per_layer = false;  // has the variant of ModelOptions::prelu_per_layer
};

std::span<const Model> model_catalogue();

// Null if there is none of this name.
const Model* find_model(std::string_view name);

// One name per network, whatever a log calls it; `name` itself if nothing knows it.
std::string network_of_log(std::string_view name);

// The model whose figures may stand beside those of this network: its own name, mostly.
std::string_view comparable_model(std::string_view network);

// The models that a program trains: the first one by default, the others by model_option().
std::vector<const Model*> models_of(std::string_view program,
                                    std::span<const Model> catalogue = model_catalogue());

// The option that chooses among the models of a program with several.
inline std::string_view model_option(const Model& model) {
  return model.margin_head ? "--backbone" : "--model";
}

// Programs that train models, in the catalogue's order.
std::vector<std::string_view> programs_of();

}  // namespace plumb
