#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "models/arcface.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

using Change = std::function<void(ModelOptions&)>;

void make(const Change& change) {
  ModelOptions options{.backbone = kMobileFaceNet, .embedding = 128};
  change(options);
  make_arcface(options);
}

TEST(ArcFaceLimits, RefusesOptionsThatMakeNoNetworkAndNamesThem) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto refuses = [](const std::string& option, auto member, const auto& values) {
    for (const auto& value : values)
      expect_error(ExitCode::usage, {option}, [&] { make([&](ModelOptions& o) { o.*member = value; }); });
  };
  using Integers = std::vector<std::int64_t>;
  using Numbers = std::vector<double>;
  refuses("--bs", &ModelOptions::batch, Integers{0, -1});
  refuses("--image-size", &ModelOptions::image_size, Integers{0, 16, 100, 1 << 20});
  refuses("--embedding", &ModelOptions::embedding, Integers{0, -5, 12, 1 << 20});
  refuses("--dropout", &ModelOptions::dropout, Numbers{-0.1, 1, kNan});
  refuses("--sample-rate", &ModelOptions::sample_rate, Numbers{0, -0.5, 1.01, kNan});
  refuses("--scale", &ModelOptions::scale, Numbers{0, -64, kNan, kInfinity});
  refuses("--margins", &ModelOptions::margins,
          std::vector<Margins>{{kNan, 0, 0}, {1, kInfinity, 0}, {1, 0, -kInfinity}});
  refuses("--classes", &ModelOptions::classes, Integers{0, -3, std::int64_t{1} << 31});
}

TEST(ArcFaceLimits, RefusesFewerClassesThanRanksThatShareThemOut) {
  const auto with = [](Head head, std::int64_t classes, int ranks) {
    make([&](ModelOptions& o) { o.head = head, o.classes = classes, o.world_size = ranks; });
  };
  for (const Head head : {Head::sharded, Head::sampled}) {
    expect_error(ExitCode::usage, {"--classes 7", "8 ranks", "--head dp"}, [&] { with(head, 7, 8); });
    EXPECT_NO_THROW(with(head, 8, 8));
  }
  EXPECT_NO_THROW(with(Head::replicated, 7, 8));
  EXPECT_NO_THROW(with(Head::sampled, (std::int64_t{1} << 31) - 1, 1024));  // the most that 32 bits count
}

}  // namespace
}  // namespace plumb
