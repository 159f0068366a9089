// Batches of images that an emulated GPU decodes, with a stand-in for nvJPEG, against those of the CPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "bench/data/image_loader.h"
#include "kernels/cuda/jpeg_decoding.h"
#include "kernels/cuda/runtime.h"
#include "tests/bench/image_files.h"
#include "tests/scratch_folder.h"

namespace plumb::cuda {
namespace {

constexpr int kBatches = 8;

// An environment variable that is set for one test.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Setting() { ::unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

struct Loaded {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  DecodedCounts decoded{};
  std::int64_t count(Decoded who) const { return decoded[static_cast<std::size_t>(who)]; }
};

class DecodedBatches : public testing::Test {
 protected:
  // Images so small that the CPU decodes them at their full size, too.
  Loaded load(bool on_gpu) const {
    BatchSourceOptions options{.data = images_.path(), .batch_per_device = 4, .image_size = 24, .workers = 2};
    options.allocate = [](std::size_t bytes) { return std::shared_ptr<std::byte>(allocate_pinned(bytes)); };
    if (on_gpu) options.decoding = make_jpeg_decoding(options.workers);
    ImageLoader loader(options);
    Loaded loaded;
    for (int i = 0; i < kBatches; ++i) {
      const PixelBatch batch = loader.next();
      std::vector<std::uint8_t> pixels(batch.pixels.size());
      check(cudaMemcpy(pixels.data(), batch.pixels.data(), pixels.size(), cudaMemcpyDefault));
      loaded.pixels.insert(loaded.pixels.end(), pixels.begin(), pixels.end());
      loaded.labels.insert(loaded.labels.end(), batch.labels.begin(), batch.labels.end());
    }
    loaded.decoded = loader.decoded();
    return loaded;
  }
  void add(const std::string& name, JpegKind kind, const std::string& behind = "") const {
    std::vector<std::uint8_t> jpeg = encode_jpeg(40, 36, kind, [](int x, int y) {
      return Pixel{static_cast<std::uint8_t>(5 * x), static_cast<std::uint8_t>(7 * y), 90, 20};
    });
    jpeg.insert(jpeg.end(), behind.begin(), behind.end());
    write_file(images_ / name, jpeg);
  }

  Setting library_{"PLUMBLINE_NVJPEG_LIBRARY", PLUMB_FAKE_NVJPEG};
  ScratchFolder images_;
};

TEST_F(DecodedBatches, AreThoseOfTheCpu) {
  write_image_folder(images_.path(), 3, 2);
  const Loaded cpu = load(false);
  EXPECT_EQ(cpu.count(Decoded::on_gpu), 0);
  for (const char* engines : {"0", "1"}) {
    const Setting setting("FAKE_NVJPEG_ENGINES", engines);
    EXPECT_EQ(make_jpeg_decoding(1)->description(),
              *engines == '1' ? "nvJPEG 13.1.2 with the GPU's JPEG engines" : "nvJPEG 13.1.2");
    const Loaded gpu = load(true);
    EXPECT_EQ(gpu.labels, cpu.labels);
    EXPECT_EQ(gpu.pixels, cpu.pixels) << engines;
    EXPECT_EQ(gpu.count(Decoded::on_gpu), 4 * kBatches);
  }
}

// What nvJPEG isn't given, and what it fails at.
TEST_F(DecodedBatches, TheCpuTakesTheRest) {
  write_image_folder(images_.path(), 2, 2);  // 40 and 41 pixels wide
  add("class_1000/p.jpg", JpegKind::progressive);
  add("class_1000/c.jpg", JpegKind::cmyk_with_adobe_marker);
  add("class_1001/g.jpg", JpegKind::grey);
  add("class_1001/j.jpg", JpegKind::color, "junk");
  const Setting setting("FAKE_NVJPEG_FAIL_WIDTH", "41");
  const Loaded cpu = load(false), gpu = load(true);
  EXPECT_EQ(gpu.labels, cpu.labels);
  EXPECT_EQ(gpu.pixels, cpu.pixels);
  // 32 samples of 8 images: each of them four times.
  EXPECT_EQ(gpu.count(Decoded::on_gpu), 4 * 3);
  EXPECT_EQ(gpu.count(Decoded::failed), 4 * 2);
  EXPECT_EQ(gpu.count(Decoded::progressive), 4);
  EXPECT_EQ(gpu.count(Decoded::other_colours), 4);
  EXPECT_EQ(gpu.count(Decoded::no_end), 4);
}

TEST_F(DecodedBatches, AnImageThatWantsMoreMemoryThanPlannedIsForTheCpu) {
  write_image_folder(images_.path(), 1, 2);
  const Setting setting("FAKE_NVJPEG_BYTES", "200000000");
  const Loaded cpu = load(false), gpu = load(true);
  EXPECT_EQ(gpu.pixels, cpu.pixels);
  EXPECT_EQ(gpu.count(Decoded::large), 4 * kBatches);
}

TEST_F(DecodedBatches, AnImageOfMoreCoefficientsThanPlannedIsForNobody) {
  write_image_folder(images_.path(), 1, 2);
  write_file(images_ / "class_1000/large.jpg", progressive_jpeg(11584, 11584));
  const Loaded gpu = load(true);
  EXPECT_EQ(gpu.count(Decoded::on_gpu), 4 * kBatches);
}

TEST_F(DecodedBatches, WithoutNvjpegThereIsARemedy) {
  for (const std::string library : {"/nowhere/libnvjpeg.so", "libc.so.6"}) {
    const Setting setting("PLUMBLINE_NVJPEG_LIBRARY", library.c_str());
    try {
      make_jpeg_decoding(1);
      FAIL() << library;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::unavailable);
      for (const std::string part : {"--decode", "nvJPEG", library.c_str(), "--decode cpu"})
        EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace plumb::cuda
