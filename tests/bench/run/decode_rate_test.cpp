#include <gtest/gtest.h>

#include "bench/run/tasks.h"

namespace plumb {
namespace {

DecodeRate measured() {
  return {.data = "9 images in 3 classes from photos, 2 workers",
          .batch_per_device = 50,
          .world_size = 2,
          .workers = 4,
          .images = 10000,
          .seconds = 2,
          .cpu_seconds = 8};
}

TEST(DecodeRate, IsToldInTotalAndPerCore) {
  EXPECT_EQ(
      to_text(measured()),
      "5000 images/s, 1250 per core, 0.800 ms of CPU time each: 4 workers on 2 ranks, 224 px; 9 images in 3 "
      "classes from photos, 2 workers");
  DecodeRate rate = measured();
  rate.corrupt = {.count = 2, .first = {"photos/a/1.jpg (Premature end of JPEG file)"}};
  EXPECT_TRUE(
      to_text(rate).ends_with("; skipped 2 corrupt images (every rank counts those it met), the first is "
                              "photos/a/1.jpg (Premature end of JPEG file)"));
}

TEST(DecodeRate, JsonHasTheSameFigures) {
  const nlohmann::ordered_json json = document_json(kDecodeSchema, measured());
  EXPECT_EQ(json.at("schema"), "plumbline.decode/1");
  EXPECT_EQ(json.at("images_per_second"), 5000);
  EXPECT_EQ(json.at("images_per_second_per_core"), 1250);
  EXPECT_EQ(json.at("workers"), 4);
  EXPECT_EQ(json.at("corrupt_images"), 0);
  EXPECT_FALSE(json.contains("first_corrupt_image"));
}

}  // namespace
}  // namespace plumb
