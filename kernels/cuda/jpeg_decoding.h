// Images decoded by nvJPEG and resized by a kernel of ours, beside training.
#pragma once

#include <memory>

#include "kernels/image_decoding.h"

namespace plumb::cuda {

// For `workers` threads, on the GPU of the calling thread. Throws Error(unavailable) if nvJPEG isn't there or
// doesn't start, Error(out_of_memory).
std::unique_ptr<ImageDecoding> make_jpeg_decoding(int workers);

}  // namespace plumb::cuda
