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
  compress.input_components = inks ? 4 : kind == JpegKind::grey ? 1 : 3;
  compress.in_color_space = inks ? JCS_CMYK : kind == JpegKind::grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&compress);
  jpeg_set_quality(&compress, 95, TRUE);
  if (kind == JpegKind::progressive) jpeg_simple_progression(&compress);
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
