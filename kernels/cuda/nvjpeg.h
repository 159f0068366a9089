// nvJPEG, loaded when a run wants it, so that builds and machines without it are no different. Names, numbers
// and types are those of its header (nvJPEG Library User Guide, "nvJPEG API Reference").
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstddef>
#include <memory>
#include <string>

namespace plumb::cuda {

// Objects of the library that only it looks into.
namespace nvjpeg {
using Handle = struct nvjpegHandle*;
using Decoder = struct nvjpegJpegDecoder*;
using State = struct nvjpegJpegState*;
using Parsed = struct nvjpegJpegStream*;
using Params = struct nvjpegDecodeParams*;
using PinnedBuffer = struct nvjpegBufferPinned*;
using DeviceBuffer = struct nvjpegBufferDevice*;

using Status = int;  // nvjpegStatus_t
inline constexpr Status kSuccess = 0, kAllocatorFailure = 5;
// nvjpegBackend_t: who undoes Huffman's code: the CPU, or the GPU's JPEG engines, which do the rest, too.
enum class Backend : int { automatic = 0, hybrid = 1, hardware = 3 };
inline constexpr int kInterleavedRgb = 5;  // nvjpegOutputFormat_t
struct Image {                             // nvjpegImage_t
  unsigned char* channel[4] = {};
  std::size_t pitch[4] = {};
};
struct Allocator {  // nvjpegDevAllocatorV2_t and nvjpegPinnedAllocatorV2_t; both answer 0 where they could
  int (*allocate)(void* context, void** address, std::size_t bytes, cudaStream_t stream);
  int (*free)(void* context, void* address, std::size_t bytes, cudaStream_t stream);
  void* context;
};
}  // namespace nvjpeg

// Its functions, each by its name. A library that lacks one isn't taken.
class Nvjpeg {
  struct Close {
    void operator()(void* library) const { dlclose(library); }
  };
  template <typename... Arguments>
  class Function {
   public:
    Function(Nvjpeg& of, const char* name)
        : call_(reinterpret_cast<nvjpeg::Status (*)(Arguments...)>(of.address_of(name))) {}
    nvjpeg::Status operator()(Arguments... arguments) const { return call_(arguments...); }

   private:
    nvjpeg::Status (*call_)(Arguments...);
  };

  void* address_of(const char* name);

  std::unique_ptr<void, Close> library_;

 public:
  // Throws Error(unavailable) that names the option --decode, what is wrong with the library, and the remedy.
  Nvjpeg();

  // "nvJPEG 13.0.2"
  std::string name() const;

  Function<int, int*> get_property{*this, "nvjpegGetProperty"};
  // Takes an allocator each for device and page-locked memory; nvJPEG 13.3 rejects a null one.
  Function<int, nvjpeg::Allocator*, nvjpeg::Allocator*, unsigned, nvjpeg::Handle*> create{*this,
                                                                                          "nvjpegCreateExV2"};
  Function<nvjpeg::Handle> destroy{*this, "nvjpegDestroy"};
  Function<nvjpeg::Handle, int, nvjpeg::Decoder*> create_decoder{*this, "nvjpegDecoderCreate"};
  Function<nvjpeg::Decoder> destroy_decoder{*this, "nvjpegDecoderDestroy"};
  Function<nvjpeg::Handle, nvjpeg::Decoder, nvjpeg::State*> create_state{*this, "nvjpegDecoderStateCreate"};
  Function<nvjpeg::State> destroy_state{*this, "nvjpegJpegStateDestroy"};
  Function<nvjpeg::Handle, nvjpeg::Allocator*, nvjpeg::PinnedBuffer*> create_pinned_buffer{
      *this, "nvjpegBufferPinnedCreateV2"};
  Function<nvjpeg::PinnedBuffer> destroy_pinned_buffer{*this, "nvjpegBufferPinnedDestroy"};
  Function<nvjpeg::Handle, nvjpeg::Allocator*, nvjpeg::DeviceBuffer*> create_device_buffer{
      *this, "nvjpegBufferDeviceCreateV2"};
  Function<nvjpeg::DeviceBuffer> destroy_device_buffer{*this, "nvjpegBufferDeviceDestroy"};
  Function<nvjpeg::State, nvjpeg::PinnedBuffer> attach_pinned_buffer{*this, "nvjpegStateAttachPinnedBuffer"};
  Function<nvjpeg::State, nvjpeg::DeviceBuffer> attach_device_buffer{*this, "nvjpegStateAttachDeviceBuffer"};
  Function<nvjpeg::Handle, nvjpeg::Parsed*> create_parsed{*this, "nvjpegJpegStreamCreate"};
  Function<nvjpeg::Parsed> destroy_parsed{*this, "nvjpegJpegStreamDestroy"};
  Function<nvjpeg::Handle, const unsigned char*, std::size_t, int, int, nvjpeg::Parsed> parse{
      *this, "nvjpegJpegStreamParse"};
  Function<nvjpeg::Handle, nvjpeg::Params*> create_params{*this, "nvjpegDecodeParamsCreate"};
  Function<nvjpeg::Params> destroy_params{*this, "nvjpegDecodeParamsDestroy"};
  Function<nvjpeg::Params, int> set_output_format{*this, "nvjpegDecodeParamsSetOutputFormat"};
  Function<nvjpeg::Params, int, int, int, int> set_region{*this, "nvjpegDecodeParamsSetROI"};
  // *not_supported becomes 0 where it is.
  Function<nvjpeg::Decoder, nvjpeg::Parsed, nvjpeg::Params, int*> is_supported{*this,
                                                                               "nvjpegDecoderJpegSupported"};
  Function<nvjpeg::Handle, nvjpeg::Decoder, nvjpeg::State, nvjpeg::Params, nvjpeg::Parsed> decode_on_host{
      *this, "nvjpegDecodeJpegHost"};
  Function<nvjpeg::Handle, nvjpeg::Decoder, nvjpeg::State, nvjpeg::Parsed, cudaStream_t> transfer{
      *this, "nvjpegDecodeJpegTransferToDevice"};
  Function<nvjpeg::Handle, nvjpeg::Decoder, nvjpeg::State, nvjpeg::Image*, cudaStream_t> decode_on_device{
      *this, "nvjpegDecodeJpegDevice"};
};

}  // namespace plumb::cuda
