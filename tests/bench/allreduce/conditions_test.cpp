#include <gtest/gtest.h>

#include "bench/allreduce/allreduce_report.h"

namespace plumb {
namespace {

constexpr double kGigabyte = 1e9;

TEST(AllreduceConditions, NamesLinksThatChangedAndCollectivesFarBelowThem) {
  const auto warnings = [](double before, double after, double busbw) {
    return ring_warnings({before * kGigabyte, after * kGigabyte}, busbw * kGigabyte);
  };
  EXPECT_TRUE(warnings(0.118, 0.100, 0.06).empty());
  ASSERT_EQ(warnings(0.118, 0.05, 0.05).size(), 1);
  EXPECT_TRUE(
      warnings(0.118, 0.05, 0.05)[0].starts_with("a ring of single messages reached 0.118 GB/s before"));
  ASSERT_EQ(warnings(0.118, 0.118, 0.013).size(), 1);
  EXPECT_TRUE(warnings(0.118, 0.118, 0.013)[0].starts_with("collectives reached at most 0.013 GB/s"));
}

TEST(AllreduceConditions, ShortMessagesSayNothingAboutLinks) {
  MeasuredTransfer one{.bytes = 1024, .world_size = 4, .times = {.iterations = {.median = 1e-3}}};
  EXPECT_EQ(highest_busbw(std::span(&one, 1)), std::nullopt);
  EXPECT_TRUE(ring_warnings({kGigabyte, kGigabyte}, std::nullopt).empty());
  one.bytes = 1 << 20;
  EXPECT_EQ(highest_busbw(std::span(&one, 1)), one.busbw_bytes_per_second());
}

TEST(AllreduceConditions, TimeIsThatOfRingsInAndOutOfPlace) {
  AllreduceOptions options;
  options.warmup = 5, options.iterations = 20;
  const std::vector<std::uint64_t> sizes{1'000'000, 3'000'000};
  // 2 places x 26 times x 2 (4 - 1) / 4 x 4 MB at 1 MB/s
  EXPECT_DOUBLE_EQ(estimated_seconds(options, sizes, 4, {.bytes_per_second = 1e6}), 2 * 26 * 1.5 * 4);
  // and 6 hops of 10 ms for each of the 2 sizes
  EXPECT_DOUBLE_EQ(estimated_seconds(options, sizes, 4, {.latency_seconds = 0.01, .bytes_per_second = 1e6}),
                   2 * 26 * (1.5 * 4 + 2 * 6 * 0.01));
}

}  // namespace
}  // namespace plumb
