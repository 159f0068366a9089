#include "models/catalogue.h"

#include <algorithm>

#include "base/text.h"
#include "models/arcface.h"
#include "models/resnet50.h"

namespace plumb {
namespace {

Graph resnet50(const ModelOptions& options) {
  return make_resnet50({.batch = options.batch,
                        .image_size = options.image_size,
                        .label_smoothing = options.label_smoothing,
                        .decay = options.decay});
}

template <const Backbone& kBackbone>
Graph faces(const ModelOptions& options) {
  ModelOptions own = options;
  own.backbone = kBackbone;
  return make_arcface(own);
}

// Defaults of all bench_arcface networks: insightface's recipe and the length of PLSC's benchmark.
constexpr Model face(Model model) {
  model.task = "ArcFace face recognition";
  model.program = "bench_arcface";
  model.image_size = 112;
  model.only_this_size = true;
  model.recipe = {.iterations = 150,
                  .warmup = 50,
                  .learning_rate = 0.01,
                  .momentum = 0.9,
                  .weight_decay = 5e-4,
                  .label_smoothing = 0};
  model.margin_head = true;
  return model;
}

constexpr std::array kCatalogue{
    Model{.name = "resnet50",
          .title = "ResNet-50 v1.5",
          .task = "ResNet-50 v1.5",
          .program = "bench_resnet50",
          .other_names = {"rn50", "resnet-50", "resnet50v1.5", "resnet50-v1.5"},
          .short_name = "r50",
          .make = resnet50},
    face({.name = "r50",
          .title = "IResNet-50",
          .other_names = {"iresnet50"},
          .make = faces<kIResNet50>,
          .dropout = 0.4,
          .prelu_per_layer = true}),
    face({.name = "r100",
          .title = "IResNet-100",
          .other_names = {"iresnet100"},
          .make = faces<kIResNet100>,
          .dropout = 0.4,
          .prelu_per_layer = true}),
    face({.name = "y1",
          .title = "MobileFaceNet y1",
          .other_names = {"mobilefacenet"},
          .make = faces<kMobileFaceNet>,
          .embedding = 128}),
};

// A network that frameworks publish figures of and no program here trains.
struct PublishedNetwork {
  std::string_view name;                          // in results
  std::array<std::string_view, 2> other_names{};  // as in Model
  std::string_view like;                          // the model of nearly the same cost
};

constexpr std::array kPublishedNetworks{
    PublishedNetwork{.name = "rn50v1b", .other_names = {"resnet50v1b", "resnet50-v1b"}, .like = "resnet50"},
};

}  // namespace

std::span<const Model> model_catalogue() {
  return kCatalogue;
}

std::string network_of_log(std::string_view name) {
  const std::string wanted = lower_case(std::string(name));
  const auto is_meant = [&](const auto& network) {
    return !wanted.empty() && std::ranges::find(network.other_names, wanted) != network.other_names.end();
  };
  for (const Model& model : kCatalogue)
    if (is_meant(model)) return std::string(model.name);
  for (const PublishedNetwork& network : kPublishedNetworks)
    if (is_meant(network)) return std::string(network.name);
  return std::string(name);
}

std::string_view comparable_model(std::string_view network) {
  const auto found = std::ranges::find(kPublishedNetworks, network, &PublishedNetwork::name);
  return found == kPublishedNetworks.end() ? network : found->like;
}

const Model* find_model(std::string_view name) {
  const auto found = std::ranges::find(kCatalogue, name, &Model::name);
  return found == kCatalogue.end() ? nullptr : &*found;
}

std::vector<const Model*> models_of(std::string_view program, std::span<const Model> catalogue) {
  std::vector<const Model*> models;
  for (const Model& model : catalogue)
    if (model.program == program) models.push_back(&model);
  return models;
}

std::vector<std::string_view> programs_of() {
  std::vector<std::string_view> programs;
  for (const Model& model : kCatalogue)
    if (std::ranges::find(programs, model.program) == programs.end()) programs.push_back(model.program);
  return programs;
}

}  // namespace plumb
