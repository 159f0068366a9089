#include "bench/data/image_decoder.h"

#include <jconfig.h>  // chooses the codes of jerror.h
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <new>

#include "base/text.h"

namespace plumb {
namespace {

// Each scan of a file takes another pass over the whole image. Encoders write 10, custom scan scripts
// about 30. kMostScannedPixels: 12 scans of the largest photographs (44 megapixels), some seconds of
// decoding.
constexpr std::int64_t kMostScans = 100, kMostScannedPixels = std::int64_t{1} << 29;

// Warnings after which pixels are invented rather than read. The rest (junk between markers, odd versions in
// headers) leaves the pixels whole.
bool loses_pixels(int warning) {
  return warning == JWRN_JPEG_EOF || warning == JWRN_HIT_MARKER || warning == JWRN_HUFF_BAD_CODE ||
         warning == JWRN_ARITH_BAD_CODE || warning == JWRN_MUST_RESYNC || warning == JWRN_BOGUS_PROGRESSION;
}

// The marker EOI, and nothing but zeros behind it.
bool ends_as_image(std::span<const std::uint8_t> jpeg) {
  while (!jpeg.empty() && jpeg.back() == 0) jpeg = jpeg.first(jpeg.size() - 1);
  return jpeg.size() >= 2 && jpeg[jpeg.size() - 2] == 0xff && jpeg.back() == 0xd9;
}

std::int64_t pixels_of(const jpeg_decompress_struct& decompress) {
  return std::int64_t{decompress.image_width} * decompress.image_height;
}

// Bytes of the coefficients that libjpeg holds for an image of several scans; else 0. After jpeg_read_header.
std::size_t coefficient_bytes_of(jpeg_decompress_struct& decompress) {
  if (!jpeg_has_multiple_scans(&decompress)) return 0;
  const auto rounded_up = [](unsigned blocks, int factor) {
    const auto step = static_cast<unsigned>(factor);
    return std::size_t{(blocks + step - 1) / step} * step;
  };
  std::size_t blocks = 0;
  for (int i = 0; i < decompress.num_components; ++i) {
    const jpeg_component_info& component = decompress.comp_info[i];
    blocks += rounded_up(component.width_in_blocks, component.h_samp_factor) *
              rounded_up(component.height_in_blocks, component.v_samp_factor);
  }
  return blocks * sizeof(JBLOCK);
}

// CMYK in place to RGB: Adobe's files store the complement of each ink, others the ink.
void cmyk_to_rgb(std::span<std::uint8_t> pixels, bool inks_are_inverted) {
  const unsigned flip = inks_are_inverted ? 0 : 255;
  for (std::size_t i = 0; i < pixels.size(); i += 4) {
    const unsigned white = pixels[i + 3] ^ flip;
    for (std::size_t c = 0; c < 3; ++c)
      pixels[i + c] = static_cast<std::uint8_t>(((pixels[i + c] ^ flip) * white + 127) / 255);
  }
}

}  // namespace

struct ImageDecoder::Jpeg {
  jpeg_decompress_struct decompress{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf on_error{};
  char reason[JMSG_LENGTH_MAX] = "";
  bool lost_pixels = false;
};

int eighths_that_cover(ImageSize part, int wanted) {
  for (int eighths : {1, 2, 4})
    if (part.width * std::int64_t{eighths} >= wanted * std::int64_t{8} &&
        part.height * std::int64_t{eighths} >= wanted * std::int64_t{8})
      return eighths;
  return 8;
}

ImageDecoder::ImageDecoder() : jpeg_(std::make_unique<Jpeg>()) {
  jpeg_->decompress.err = jpeg_std_error(&jpeg_->errors);
  // libjpeg's functions of C get at the state through client_data.
  jpeg_->errors.error_exit = [](j_common_ptr common) {
    auto& state = *static_cast<Jpeg*>(common->client_data);
    common->err->format_message(common, state.reason);
    std::longjmp(state.on_error, 1);
  };
  jpeg_->errors.emit_message = [](j_common_ptr common, int level) {
    auto& state = *static_cast<Jpeg*>(common->client_data);
    if (level >= 0 || state.lost_pixels || !loses_pixels(common->err->msg_code)) return;
    state.lost_pixels = true;
    common->err->format_message(common, state.reason);
  };
  // Called before each row of blocks in each scan.
  jpeg_->progress.progress_monitor = [](j_common_ptr common) {
    auto& state = *static_cast<Jpeg*>(common->client_data);
    const std::int64_t scans = state.decompress.input_scan_number, pixels = pixels_of(state.decompress);
    if (scans <= 1 || (scans <= kMostScans && pixels <= kMostScannedPixels / scans)) return;
    *fmt::format_to_n(state.reason, sizeof state.reason - 1,
                      "{} or more scans of {} pixels each, more than any photograph needs", scans, pixels)
         .out = '\0';
    std::longjmp(state.on_error, 1);
  };
  jpeg_->decompress.client_data = jpeg_.get();
  run([&] { jpeg_create_decompress(&jpeg_->decompress); });
  jpeg_->decompress.progress = &jpeg_->progress;
}

ImageDecoder::~ImageDecoder() {
  jpeg_destroy_decompress(&jpeg_->decompress);
}

template <typename Calls>
void ImageDecoder::run(const Calls& calls) {
  if (setjmp(jpeg_->on_error) != 0) {
    jpeg_abort_decompress(&jpeg_->decompress);
    if (jpeg_->errors.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
    throw CorruptImage(jpeg_->reason);
  }
  calls();
}

// Rows below those that are wanted all go to the one behind.
void ImageDecoder::read_rows(unsigned end) {
  jpeg_decompress_struct& decompress = jpeg_->decompress;
  while (decompress.output_scanline < end) {
    const unsigned row = std::min(decompress.output_scanline, end_row_) - first_row_;
    JSAMPROW pixels = pixels_.data() + row * std::size_t{decompress.output_width} * 4;
    jpeg_read_scanlines(&decompress, &pixels, 1);
  }
}

ImageSize ImageDecoder::read_header(std::span<const std::uint8_t> jpeg) {
  if (jpeg.empty()) throw CorruptImage("empty file");
  bytes_ = jpeg;
  jpeg_->lost_pixels = false;
  jpeg_decompress_struct& decompress = jpeg_->decompress;
  run([&] {
    jpeg_abort_decompress(&decompress);
    jpeg_mem_src(&decompress, bytes_.data(), bytes_.size());
    jpeg_read_header(&decompress, TRUE);
  });
  if (pixels_of(decompress) > kMostPixels)
    throw CorruptImage(fmt::format("{} x {} pixels, more than any photograph", decompress.image_width,
                                   decompress.image_height));
  coefficient_bytes_ = coefficient_bytes_of(decompress);
  if (coefficient_bytes_ > kMostCoefficientBytes)
    throw CorruptImage(fmt::format(
        "{} x {} pixels in several scans take {} MiB to decode, more than the {} that are planned",
        decompress.image_width, decompress.image_height, coefficient_bytes_ >> 20,
        kMostCoefficientBytes >> 20));
  return {static_cast<int>(decompress.image_width), static_cast<int>(decompress.image_height)};
}

void ImageDecoder::choose_pixels(const Box& box) {
  jpeg_decompress_struct& decompress = jpeg_->decompress;
  const auto down = [](double number) { return static_cast<unsigned>(std::max(0.0, std::floor(number))); };
  const auto up = [](double number) { return static_cast<unsigned>(std::ceil(number)); };
  first_row_ = std::min(down(box.top), decompress.output_height - 1);
  end_row_ = std::clamp(up(box.top + box.height), first_row_ + 1, decompress.output_height);
  const unsigned left = std::min(down(box.left), decompress.output_width - 1);
  const unsigned end = std::clamp(up(box.left + box.width), left + 1, decompress.output_width);
  // Upsampled colors need their neighbors.
  constexpr unsigned kNeighbors = 2;
  first_column_ = left - std::min(left, kNeighbors);
  columns_ = std::min(end + kNeighbors, decompress.output_width) - first_column_;
}

DecodedPart ImageDecoder::decode(const ImagePart& part, int eighths) {
  jpeg_decompress_struct& decompress = jpeg_->decompress;
  const bool inks = decompress.jpeg_color_space == JCS_CMYK || decompress.jpeg_color_space == JCS_YCCK;
  decompress.out_color_space = inks ? JCS_CMYK : JCS_EXT_RGBX;
  decompress.scale_num = static_cast<unsigned>(eighths);
  decompress.scale_denom = 8;
  run([&] { jpeg_start_decompress(&decompress); });
  const double x = static_cast<double>(decompress.output_width) / decompress.image_width;
  const double y = static_cast<double>(decompress.output_height) / decompress.image_height;
  Box box{part.left * x, part.top * y, part.size.width * x, part.size.height * y};
  choose_pixels(box);
  run([&] { jpeg_crop_scanline(&decompress, &first_column_, &columns_); });  // rounds to the decoder's blocks
  const ImageSize size{static_cast<int>(decompress.output_width), static_cast<int>(end_row_ - first_row_)};
  const std::size_t row_bytes = std::size_t{decompress.output_width} * 4;
  const std::size_t bytes = row_bytes * (end_row_ - first_row_);
  if (pixels_.size() < bytes + row_bytes) pixels_.resize(bytes + row_bytes);
  run([&] {
    jpeg_skip_scanlines(&decompress, first_row_);
    read_rows(end_row_);
    // Huffman's code of the rows below takes a tenth of all time. Only a file that has been cut short is
    // read on, to where it ends. Skipping to its very end would read nothing.
    if (ends_as_image(bytes_)) return jpeg_abort_decompress(&decompress);
    if (end_row_ < decompress.output_height) {
      jpeg_skip_scanlines(&decompress, decompress.output_height - 1 - end_row_);
      read_rows(decompress.output_height);
    }
    jpeg_finish_decompress(&decompress);
  });
  if (jpeg_->lost_pixels) throw CorruptImage(jpeg_->reason);
  const std::span<std::uint8_t> pixels(pixels_.data(), bytes);
  if (inks) cmyk_to_rgb(pixels, decompress.saw_Adobe_marker);
  box.left -= first_column_;
  box.top -= first_row_;
  return {{size, pixels}, box};
}

}  // namespace plumb
