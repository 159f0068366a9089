#include "image_files.h"

#include <jpeglib.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace plumb {

std::vector<std::uint8_t> encode_jpeg(int width, int height, JpegKind kind,
                                      const std::function<Pixel(int x, int y)>& pixel_at) {
  const bool inks = kind == JpegKind::cmyk_with_adobe_marker || kind == JpegKind::cmyk_without_marker;
  jpeg_compress_struct compress{};
  jpeg_error_mgr errors{};
  compress.err = jpeg_std_error(&errors);
  jpeg_create_compress(&compress);
  unsigned char* buffer = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&compress, &buffer, &bytes);
  compress.image_width = static_cast<unsigned>(width);
  compress.image_height = static_cast<unsigned>(height);
  compress.input_components = inks ? 4 : kind == JpegKind::gray ? 1 : 3;
  compress.in_color_space = inks ? JCS_CMYK : kind == JpegKind::gray ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&compress);
  jpeg_set_quality(&compress, 95, TRUE);
  if (kind == JpegKind::progressive) jpeg_simple_progression(&compress);
  if (kind == JpegKind::arithmetic) compress.arith_code = TRUE;
  if (kind == JpegKind::cmyk_without_marker) compress.write_Adobe_marker = FALSE;
  jpeg_start_compress(&compress, TRUE);
  std::vector<std::uint8_t> row;
  for (int y = 0; y < height; ++y) {
    row.clear();
    for (int x = 0; x < width; ++x) {
      const Pixel pixel = pixel_at(x, y);
      row.insert(row.end(), pixel.begin(), pixel.begin() + compress.input_components);
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&compress, &rows, 1);
  }
  jpeg_finish_compress(&compress);
  jpeg_destroy_compress(&compress);
  std::vector<std::uint8_t> jpeg(buffer, buffer + bytes);
  std::free(buffer);
  return jpeg;
}

std::vector<std::uint8_t> progressive_jpeg(int width, int height) {
  std::vector<std::uint8_t> jpeg;
  const auto append = [&](std::initializer_list<int> values) {
    for (const int value : values) jpeg.push_back(static_cast<std::uint8_t>(value));
  };
  append({0xff, 0xd8, 0xff, 0xc2, 0, 17, 8, height >> 8, height & 255, width >> 8, width & 255, 3});
  append({1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0});
  append({0xff, 0xdb, 0, 67, 0});
  jpeg.insert(jpeg.end(), 64, 1);
  append({0xff, 0xc4, 0, 20, 0, 1});  // one code of one bit, "as the block before"
  jpeg.insert(jpeg.end(), 15, 0);
  append({0});
  append({0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 0, 0});
  const int blocks = 3 * ((width + 7) / 8) * ((height + 7) / 8);
  jpeg.insert(jpeg.end(), static_cast<std::size_t>(blocks + 7) / 8, 0);
  append({0xff, 0xd9});
  return jpeg;
}

std::vector<std::uint8_t> flat_jpeg(int width, int height, Pixel pixel) {
  return encode_jpeg(width, height, JpegKind::color, [&](int, int) { return pixel; });
}

void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void write_image_folder(const std::filesystem::path& path, int classes, int images_per_class) {
  for (int label = 0; label < classes; ++label)
    for (int i = 0; i < images_per_class; ++i) {
      const auto shade = [&](int x, int y) {
        return Pixel{static_cast<std::uint8_t>(label * 7 + x), static_cast<std::uint8_t>(i * 11 + y),
                     static_cast<std::uint8_t>(x * y)};
      };
      const std::string class_name = "class_" + std::to_string(1000 + label);
      write_file(path / class_name / ("image_" + std::to_string(i) + ".jpg"),
                 encode_jpeg(40 + i, 36, JpegKind::color, shade));
    }
}

}  // namespace plumb
