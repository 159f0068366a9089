// A stand-in for nvJPEG, loaded as a shared object: libjpeg-turbo behind its names. Pixels get to the
// emulated GPU's memory in the order of the stream; its own memory comes from the allocator that it is given.
// Some of it is freed while the stream still uses it, and then overwritten by another stream.
//
//   FAKE_NVJPEG_ENGINES=0      the GPU has no JPEG engines
//   FAKE_NVJPEG_FAIL_WIDTH=N   decoding images of this width fails
//   FAKE_NVJPEG_BYTES=N        device memory that a decoder takes besides the pixels
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/data/image_decoder.h"
#include "kernels/cuda/nvjpeg.h"

using plumb::cuda::nvjpeg::Backend, plumb::cuda::nvjpeg::Allocator, plumb::cuda::nvjpeg::Image,
    plumb::cuda::nvjpeg::Status, plumb::cuda::nvjpeg::kAllocatorFailure, plumb::cuda::nvjpeg::kSuccess;

namespace {

constexpr Status kInvalidParameter = 2, kBadJpeg = 3, kArchMismatch = 7;

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

}  // namespace

// Allocated memory that grows on demand.
struct GrowingBuffer {
  explicit GrowingBuffer(const Allocator& of) : allocator(of) {}
  ~GrowingBuffer() { free(); }
  bool hold(std::size_t wanted) {
    if (wanted <= bytes) return true;
    free();
    memory = nullptr, bytes = 0;
    if (allocator.allocate(allocator.context, &memory, wanted, nullptr) != 0) return false;
    bytes = wanted;
    return true;
  }
  void free() {
    if (memory) allocator.free(allocator.context, memory, bytes, nullptr);
  }
  Allocator allocator;
  void* memory = nullptr;
  std::size_t bytes = 0;
};

struct nvjpegHandle {
  Allocator allocator;
};
struct nvjpegJpegDecoder {
  nvjpegHandle* handle;
  Backend backend;
};
struct nvjpegBufferPinned : GrowingBuffer {
  using GrowingBuffer::GrowingBuffer;
};
struct nvjpegBufferDevice : GrowingBuffer {
  using GrowingBuffer::GrowingBuffer;
};
struct nvjpegJpegState {
  nvjpegBufferPinned* pinned = nullptr;
  nvjpegBufferDevice* device = nullptr;
  std::vector<unsigned char> pixels;
  std::size_t row_bytes = 0;
};
struct nvjpegJpegStream {
  std::vector<std::uint8_t> bytes;
  plumb::ImageDecoder decoder;
  plumb::ImageSize size;
};
struct nvjpegDecodeParams {
  int format = 0;
  plumb::ImagePart part;  // all of it with a width of -1
};

namespace {

template <typename T>
Status make(T** made, auto&&... from) {
  *made = new T{static_cast<decltype(from)>(from)...};
  return kSuccess;
}
template <typename T>
Status destroy(T* made) {
  delete made;
  return kSuccess;
}

// As another thread may do at any time.
bool use_on_another_stream(const Allocator& allocator, std::size_t bytes) {
  cudaStream_t stream = nullptr;
  void* memory = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != 0) return false;
  bool good = true;
  if (allocator.allocate(allocator.context, &memory, bytes, stream) == 0) {
    good = cudaMemsetAsync(memory, 0xff, bytes, stream) == 0 && cudaStreamSynchronize(stream) == 0;
    good &= allocator.free(allocator.context, memory, bytes, stream) == 0;
  }
  return cudaStreamDestroy(stream) == 0 && good;
}

}  // namespace

extern "C" {

Status nvjpegGetProperty(int part, int* value) {
  *value = part == 0 ? 13 : part;
  return kSuccess;
}

Status nvjpegCreateExV2(int backend, Allocator* allocator, Allocator* page_locked, unsigned,
                        nvjpegHandle** handle) {
  if (!allocator || !page_locked) return kInvalidParameter;
  if (Backend{backend} == Backend::hardware && number("FAKE_NVJPEG_ENGINES", 1) == 0) return kArchMismatch;
  return make(handle, *allocator);
}
Status nvjpegDestroy(nvjpegHandle* handle) {
  return destroy(handle);
}

Status nvjpegDecoderCreate(nvjpegHandle* handle, int backend, nvjpegJpegDecoder** decoder) {
  return make(decoder, handle, Backend{backend});
}
Status nvjpegDecoderDestroy(nvjpegJpegDecoder* decoder) {
  return destroy(decoder);
}
Status nvjpegDecoderStateCreate(nvjpegHandle*, nvjpegJpegDecoder*, nvjpegJpegState** state) {
  return make(state);
}
Status nvjpegJpegStateDestroy(nvjpegJpegState* state) {
  return destroy(state);
}
Status nvjpegBufferPinnedCreateV2(nvjpegHandle*, Allocator* allocator, nvjpegBufferPinned** buffer) {
  return make(buffer, *allocator);
}
Status nvjpegBufferPinnedDestroy(nvjpegBufferPinned* buffer) {
  return destroy(buffer);
}
Status nvjpegBufferDeviceCreateV2(nvjpegHandle*, Allocator* allocator, nvjpegBufferDevice** buffer) {
  return make(buffer, *allocator);
}
Status nvjpegBufferDeviceDestroy(nvjpegBufferDevice* buffer) {
  return destroy(buffer);
}
Status nvjpegStateAttachPinnedBuffer(nvjpegJpegState* state, nvjpegBufferPinned* buffer) {
  state->pinned = buffer;
  return kSuccess;
}
Status nvjpegStateAttachDeviceBuffer(nvjpegJpegState* state, nvjpegBufferDevice* buffer) {
  state->device = buffer;
  return kSuccess;
}
Status nvjpegJpegStreamCreate(nvjpegHandle*, nvjpegJpegStream** parsed) {
  return make(parsed);
}
Status nvjpegJpegStreamDestroy(nvjpegJpegStream* parsed) {
  return destroy(parsed);
}
Status nvjpegDecodeParamsCreate(nvjpegHandle*, nvjpegDecodeParams** params) {
  return make(params);
}
Status nvjpegDecodeParamsDestroy(nvjpegDecodeParams* params) {
  return destroy(params);
}
Status nvjpegDecodeParamsSetOutputFormat(nvjpegDecodeParams* params, int format) {
  params->format = format;
  return kSuccess;
}
Status nvjpegDecodeParamsSetROI(nvjpegDecodeParams* params, int left, int top, int width, int height) {
  params->part = {left, top, {width, height}};
  return kSuccess;
}

Status nvjpegJpegStreamParse(nvjpegHandle*, const unsigned char* bytes, std::size_t count, int, int,
                             nvjpegJpegStream* parsed) {
  parsed->bytes.assign(bytes, bytes + count);
  try {
    parsed->size = parsed->decoder.read_header(parsed->bytes);
  } catch (const plumb::CorruptImage&) {
    return kBadJpeg;
  }
  return kSuccess;
}

// Engines decode whole images of even width.
Status nvjpegDecoderJpegSupported(nvjpegJpegDecoder* decoder, nvjpegJpegStream* parsed,
                                  nvjpegDecodeParams* params, int* not_supported) {
  const bool for_engines = params->part.size.width < 0 && parsed->size.width % 2 == 0;
  *not_supported = decoder->backend == Backend::hardware && !for_engines ? 1 : 0;
  return kSuccess;
}

Status nvjpegDecodeJpegHost(nvjpegHandle*, nvjpegJpegDecoder*, nvjpegJpegState* state,
                            nvjpegDecodeParams* params, nvjpegJpegStream* parsed) {
  if (!state->pinned || !state->device || params->format != plumb::cuda::nvjpeg::kInterleavedRgb)
    return kInvalidParameter;
  if (parsed->size.width == number("FAKE_NVJPEG_FAIL_WIDTH", 0)) return kBadJpeg;
  if (!state->device->hold(static_cast<std::size_t>(number("FAKE_NVJPEG_BYTES", 1 << 20))) ||
      !state->pinned->hold(parsed->bytes.size()))
    return kAllocatorFailure;
  std::memcpy(state->pinned->memory, parsed->bytes.data(), parsed->bytes.size());
  const plumb::ImagePart part =
      params->part.size.width < 0 ? plumb::ImagePart{0, 0, parsed->size} : params->part;
  const auto width = static_cast<std::size_t>(part.size.width);
  const auto height = static_cast<std::size_t>(part.size.height);
  state->row_bytes = width * 3;
  state->pixels.resize(state->row_bytes * height);
  try {
    parsed->decoder.read_header(parsed->bytes);
    const plumb::DecodedPart decoded = parsed->decoder.decode(part, 8);
    const auto left = static_cast<std::size_t>(decoded.box.left),
               top = static_cast<std::size_t>(decoded.box.top);
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x)
        std::memcpy(
            &state->pixels[y * state->row_bytes + x * 3],
            &decoded.image
                 .pixels[((top + y) * static_cast<std::size_t>(decoded.image.size.width) + left + x) * 4],
            3);
  } catch (const plumb::CorruptImage&) {
    return kBadJpeg;
  }
  return kSuccess;
}

Status nvjpegDecodeJpegTransferToDevice(nvjpegHandle*, nvjpegJpegDecoder*, nvjpegJpegState*,
                                        nvjpegJpegStream*, cudaStream_t stream) {
  return stream ? kSuccess : kInvalidParameter;
}

Status nvjpegDecodeJpegDevice(nvjpegHandle* handle, nvjpegJpegDecoder*, nvjpegJpegState* state, Image* image,
                              cudaStream_t stream) {
  const Allocator& allocator = handle->allocator;
  const std::size_t bytes = state->pixels.size();
  void* decoded = nullptr;
  if (allocator.allocate(allocator.context, &decoded, bytes, stream) != 0) return kAllocatorFailure;
  bool good = cudaMemcpyAsync(decoded, state->pixels.data(), bytes, cudaMemcpyHostToDevice, stream) == 0;
  for (std::size_t at = 0, row = 0; at < bytes; at += state->row_bytes, ++row)
    good &= cudaMemcpyAsync(image->channel[0] + row * image->pitch[0], static_cast<char*>(decoded) + at,
                            state->row_bytes, cudaMemcpyDeviceToDevice, stream) == 0;
  good &= allocator.free(allocator.context, decoded, bytes, stream) == 0;
  return good && use_on_another_stream(allocator, bytes) ? kSuccess : kInvalidParameter;
}

}  // extern "C"
