#include "models/catalogue.h"

#include <gtest/gtest.h>

#include <set>

namespace plumb {
namespace {

TEST(Catalogue, GraphsAreCalledAsTheirModels) {
  for (const Model& model : model_catalogue()) {
    SCOPED_TRACE(model.name);
    const ModelOptions options{
        .batch = 2, .image_size = model.image_size, .embedding = model.embedding, .dropout = model.dropout};
    const Graph graph = model.make(options);
    EXPECT_EQ(graph.model, model.name);
    EXPECT_EQ(graph.values.front().shape, (Shape{2, model.image_size, model.image_size, 3}));
    EXPECT_EQ(std::holds_alternative<MarginLoss>(graph.ops.back()), model.margin_head);
  }
}

TEST(Catalogue, NoNameIsGivenTwice) {
  std::set<std::string_view> names;
  for (const Model& model : model_catalogue()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    for (const std::string_view other : model.other_names)
      EXPECT_TRUE(other.empty() || names.insert(other).second) << other;
  }
}

TEST(Catalogue, RecipesLeaveIterationsToMeasure) {
  for (const Model& model : model_catalogue()) EXPECT_LT(model.recipe.warmup, model.recipe.iterations);
}

TEST(Catalogue, ProgramsHaveTheirModelsInOrder) {
  EXPECT_EQ(programs_of(), (std::vector<std::string_view>{"bench_resnet50", "bench_arcface"}));
  const std::vector<const Model*> faces = models_of("bench_arcface");
  ASSERT_EQ(faces.size(), 3U);
  EXPECT_EQ(faces.front(), find_model("r50"));
  EXPECT_EQ(faces.back(), find_model("y1"));
  EXPECT_EQ(find_model("vgg16"), nullptr);
  EXPECT_TRUE(models_of("bench_vgg").empty());
}

}  // namespace
}  // namespace plumb
