// JPEG files and image folders for tests.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace plumb {

enum class JpegKind { color, progressive, gray, cmyk_with_adobe_marker, cmyk_without_marker, arithmetic };

// A pixel's samples as stored: 3, 1 or 4 of them are used.
using Pixel = std::array<std::uint8_t, 4>;

std::vector<std::uint8_t> encode_jpeg(int width, int height, JpegKind kind,
                                      const std::function<Pixel(int x, int y)>& pixel_at);
// Gray, by three components of full resolution in one progressive scan of a bit per block.
std::vector<std::uint8_t> progressive_jpeg(int width, int height);
std::vector<std::uint8_t> flat_jpeg(int width, int height, Pixel pixel);

void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);

// `classes` folders with `images_per_class` small images each, all different.
void write_image_folder(const std::filesystem::path& path, int classes, int images_per_class);

}  // namespace plumb
