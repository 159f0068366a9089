#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.h"
#include "models/arcface.h"

namespace plumb {
namespace {

ModelOptions small_options() {
  ModelOptions options;
  options.backbone = kMobileFaceNet;
  options.embedding = 128;
  return options;
}

// The message that rejects these options; empty if accepted.
template <typename Change>
std::string refusal(Change change) {
  ModelOptions options = small_options();
  change(options);
  try {
    make_arcface(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(ArcFaceLimits, RefusesOptionsThatMakeNoNetworkAndNamesThem) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto names = [](const std::string& sentence, const std::string& option) {
    EXPECT_NE(sentence.find(option), std::string::npos) << sentence;
  };
  for (const std::int64_t batch : {0, -1}) names(refusal([&](auto& o) { o.batch = batch; }), "--bs");
  for (const std::int64_t size : {0, 16, 100, 1 << 20}) {
    names(refusal([&](auto& o) { o.image_size = size; }), "--image-size");
  }
  for (const std::int64_t embedding : {0, -5, 12, 1 << 20}) {
    names(refusal([&](auto& o) { o.embedding = embedding; }), "--embedding");
  }
  for (const double dropout : {-0.1, 1.0, kNan}) {
    names(refusal([&](auto& o) { o.dropout = dropout; }), "--dropout");
  }
  for (const double rate : {0.0, -0.5, 1.01, kNan}) {
    names(refusal([&](auto& o) { o.sample_rate = rate; }), "--sample-rate");
  }
  for (const double scale : {0.0, -64.0, kNan, kInfinity}) {
    names(refusal([&](auto& o) { o.scale = scale; }), "--scale");
  }
  for (const Margins margins : {Margins{kNan, 0, 0}, Margins{1, kInfinity, 0}, Margins{1, 0, -kInfinity}}) {
    names(refusal([&](auto& o) { o.margins = margins; }), "--margins");
  }
  for (const std::int64_t classes : {std::int64_t{0}, std::int64_t{-3}, std::int64_t{1} << 31}) {
    names(refusal([&](auto& o) { o.classes = classes; }), "--classes");
  }
}

TEST(ArcFaceLimits, RefusesFewerClassesThanRanksThatShareThemOut) {
  const auto with = [](Head head, std::int64_t classes) {
    return refusal([&](auto& o) {
      o.head = head;
      o.classes = classes;
      o.world_size = 8;
    });
  };
  for (const Head head : {Head::sharded, Head::sampled}) {
    const std::string sentence = with(head, 7);
    for (const char* part : {"--classes 7", "8 ranks", "--head dp"}) {
      EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
    }
    EXPECT_EQ(with(head, 8), "");
  }
  EXPECT_EQ(with(Head::replicated, 7), "");
}

TEST(ArcFaceLimits, TakesTheMostClassesThatAnIntegerOf32BitsCounts) {
  EXPECT_EQ(refusal([](auto& o) {
              o.classes = (std::int64_t{1} << 31) - 1;
              o.head = Head::sampled;
              o.world_size = 1024;
            }),
            "");
}

}  // namespace
}  // namespace plumb
