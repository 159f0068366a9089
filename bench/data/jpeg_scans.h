// How much work a JPEG file wants: a progressive one is decoded once over for each of its scans.
#pragma once

#include <cstdint>
#include <span>

namespace plumb {

// Encoders write 10 scans, scripts of theirs some 30. kMostScannedPixels: those of 12 scans of the largest
// photographs (44 megapixels), a few seconds of decoding.
inline constexpr std::int64_t kMostScans = 100, kMostScannedPixels = std::int64_t{1} << 29;

// Scans that a decoder goes through; 1 for a file whose first scan has the whole image. Only markers are
// looked at, from their beginnings; a file that isn't whole has those that are there.
std::int64_t count_scans(std::span<const std::uint8_t> jpeg);

// `pixels`: of the image. Throws CorruptImage if there are more than kMostScans, or if they go over more than
// kMostScannedPixels. To be called before a decoder starts.
void require_few_scans(std::span<const std::uint8_t> jpeg, std::int64_t pixels);

}  // namespace plumb
