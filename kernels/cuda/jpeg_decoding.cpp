#include "kernels/cuda/jpeg_decoding.h"

#include <cstring>
#include <utility>
#include <vector>

#include "kernels/cuda/memory_pool.h"
#include "kernels/cuda/nvjpeg.h"
#include "kernels/cuda/resize.h"

namespace plumb::cuda {
namespace {

[[noreturn]] void refuse_to_start(nvjpeg::Status status) {
  throw Error(
      ExitCode::unavailable,
      "option --decode: 'gpu' wants nvJPEG, and it doesn't start on this GPU (status {}); give --decode cpu",
      status);
}

// An object of the library, with the function that destroys it.
template <typename T, typename Destroyer>
class Made {
 public:
  template <typename Creator, typename... Arguments>
  Made(const Destroyer& destroy, const Creator& create, Arguments... arguments)
      : destroy_(&destroy), status_(create(arguments..., &made_)) {
    if (status_ != nvjpeg::kSuccess) made_ = nullptr;
  }
  Made(Made&& other) noexcept
      : destroy_(other.destroy_), made_(std::exchange(other.made_, nullptr)), status_(other.status_) {}
  Made& operator=(Made&& other) noexcept {
    std::swap(made_, other.made_);
    status_ = other.status_;
    return *this;
  }
  ~Made() {
    if (made_) (*destroy_)(made_);
  }
  T get() const { return made_; }
  // Throws Error(unavailable) if it wasn't made.
  const Made& needed() const {
    if (!made_) refuse_to_start(status_);
    return *this;
  }

 private:
  const Destroyer* destroy_;
  T made_ = nullptr;
  nvjpeg::Status status_;
};

using MadeHandle = Made<nvjpeg::Handle, decltype(Nvjpeg::destroy)>;
using MadeDecoder = Made<nvjpeg::Decoder, decltype(Nvjpeg::destroy_decoder)>;
using MadeState = Made<nvjpeg::State, decltype(Nvjpeg::destroy_state)>;
using MadeParsed = Made<nvjpeg::Parsed, decltype(Nvjpeg::destroy_parsed)>;
using MadeParams = Made<nvjpeg::Params, decltype(Nvjpeg::destroy_params)>;
using MadePinnedBuffer = Made<nvjpeg::PinnedBuffer, decltype(Nvjpeg::destroy_pinned_buffer)>;
using MadeDeviceBuffer = Made<nvjpeg::DeviceBuffer, decltype(Nvjpeg::destroy_device_buffer)>;

// Of MemoryPool or PageLockedCache. No exception may pass through nvJPEG, which calls these.
template <typename Memory>
int allocate_from(void* memory, void** address, std::size_t bytes, cudaStream_t) {
  try {
    *address = static_cast<Memory*>(memory)->allocate(bytes);
  } catch (...) {  // the host has no memory
    *address = nullptr;
  }
  return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}
// The stream may still use the memory, which any thread gets next. Without a stream nothing does: a worker's
// work is complete before its next image and before its decoder ends.
template <typename Memory>
int free_to(void* memory, void* address, std::size_t, cudaStream_t stream) {
  if (stream)
    if (const cudaError_t status = cudaStreamSynchronize(stream); status != cudaSuccess) return status;
  if (address) static_cast<Memory*>(memory)->free(static_cast<std::byte*>(address));
  return cudaSuccess;
}

// What all threads share. One pool serves their decoders and the library's handle: how much the handle takes
// for a thread is not documented, so a thread's part is not set aside.
struct JpegLibrary {
  explicit JpegLibrary(int workers)
      : pool(static_cast<std::size_t>(workers) * kDecodingBytesPerWorker),
        allocator{allocate_from<MemoryPool>, free_to<MemoryPool>, &pool},
        page_locked{allocate_from<PageLockedCache>, free_to<PageLockedCache>, &cache},
        handle(make(nvjpeg::Backend::hardware)) {
    has_engines = handle.get() && make_decoder(nvjpeg::Backend::hardware).get();
    if (!handle.get()) handle = make(nvjpeg::Backend::automatic);
    handle.needed();
  }

  MadeHandle make(nvjpeg::Backend backend) {
    return {call.destroy, call.create, static_cast<int>(backend), &allocator, &page_locked, 0U};
  }
  MadeDecoder make_decoder(nvjpeg::Backend backend) const {
    return {call.destroy_decoder, call.create_decoder, handle.get(), static_cast<int>(backend)};
  }

  Nvjpeg call;
  MemoryPool pool;
  PageLockedCache cache;
  nvjpeg::Allocator allocator, page_locked;
  MadeHandle handle;
  bool has_engines;  // for JPEG
};

// A decoder of the library, and what it works in.
struct Way {
  Way(JpegLibrary& library, nvjpeg::Backend backend)
      : decoder(library.make_decoder(backend)),
        pinned(library.call.destroy_pinned_buffer, library.call.create_pinned_buffer, library.handle.get(),
               &library.page_locked),
        device(library.call.destroy_device_buffer, library.call.create_device_buffer, library.handle.get(),
               &library.allocator),
        state(library.call.destroy_state, library.call.create_state, library.handle.get(),
              decoder.needed().get()) {
    for (const nvjpeg::Status status :
         {library.call.attach_pinned_buffer(state.needed().get(), pinned.needed().get()),
          library.call.attach_device_buffer(state.get(), device.needed().get())})
      if (status != nvjpeg::kSuccess) refuse_to_start(status);
  }

  MadeDecoder decoder;
  MadePinnedBuffer pinned;
  MadeDeviceBuffer device;
  MadeState state;
};

// A piece of the pool that only grows.
class Scratch {
 public:
  explicit Scratch(MemoryPool& pool) : pool_(pool) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { free(); }
  // Null where the pool has no room.
  std::byte* of(std::size_t bytes) {
    if (bytes <= bytes_) return piece_;
    free();
    piece_ = pool_.allocate(bytes);
    bytes_ = piece_ ? bytes : 0;
    return piece_;
  }

 private:
  void free() {
    if (piece_) pool_.free(piece_);
    piece_ = nullptr;
  }
  MemoryPool& pool_;
  std::byte* piece_ = nullptr;
  std::size_t bytes_ = 0;
};

std::size_t axis_bytes(const ResizeAxis& axis) {
  return (axis.first.size() + axis.count.size()) * sizeof(int) +
         (axis.weights.size() * sizeof(std::uint16_t) + 3) / 4 * 4;
}

// Writes the axis to page-locked memory; returns where it will be once that is copied to `device`.
DeviceAxis write_axis(const ResizeAxis& axis, std::byte* host, std::byte* device) {
  DeviceAxis there{.stride = static_cast<int>(axis.stride), .lowest = axis.lowest, .highest = axis.highest};
  std::size_t at = 0;
  const auto write = [&]<typename T>(const std::vector<T>& values, const T*& place) {
    std::memcpy(host + at, values.data(), values.size() * sizeof(T));
    place = reinterpret_cast<const T*>(device + at);
    at += values.size() * sizeof(T);
  };
  write(axis.first, there.first);
  write(axis.count, there.count);
  write(axis.weights, there.weights);
  return there;
}

class JpegDecoder final : public DeviceDecoder {
 public:
  explicit JpegDecoder(JpegLibrary& library)
      : library_(library),
        stream_(make_stream(Priority::high)),  // ahead of training's long kernels
        done_(make_event(cudaEventDisableTiming | cudaEventBlockingSync)),
        parsed_(call().destroy_parsed, call().create_parsed, library.handle.get()),
        params_(call().destroy_params, call().create_params, library.handle.get()),
        pixels_(library.pool),
        rows_(library.pool),
        axes_(library.pool) {
    parsed_.needed();
    if (const nvjpeg::Status status =
            call().set_output_format(params_.needed().get(), nvjpeg::kInterleavedRgb);
        status != nvjpeg::kSuccess)
      refuse_to_start(status);
    if (library.has_engines) ways_.emplace_back(library, nvjpeg::Backend::hardware);
    ways_.emplace_back(library, nvjpeg::Backend::hybrid);
  }
  ~JpegDecoder() override { cudaStreamSynchronize(stream_.get()); }

  Decoded decode(std::span<const std::uint8_t> jpeg, const DecodedRegion& region, const ResizePlan& plan,
                 std::byte* out) override {
    if (call().parse(library_.handle.get(), jpeg.data(), jpeg.size(), 0, 0, parsed_.get()) !=
        nvjpeg::kSuccess)
      return Decoded::unsupported;
    for (const Way& way : ways_)
      for (const bool whole : {false, true})
        if (can(way, region, whole)) return decode(way, region, whole, plan, out);
    return Decoded::unsupported;
  }

  void upload(std::span<const std::uint8_t> pixels, std::byte* out) override {
    check(cudaMemcpyAsync(out, pixels.data(), pixels.size(), cudaMemcpyHostToDevice, stream_.get()));
    finish();
  }

 private:
  const Nvjpeg& call() const { return library_.call; }

  // Whether the image can be decoded this way: the region alone, or the whole image.
  bool can(const Way& way, const DecodedRegion& region, bool whole) const {
    const nvjpeg::Status set =
        whole ? call().set_region(params_.get(), 0, 0, -1, -1)
              : call().set_region(params_.get(), region.left, region.top, region.width, region.height);
    int not_supported = 1;
    return set == nvjpeg::kSuccess &&
           call().is_supported(way.decoder.get(), parsed_.get(), params_.get(), &not_supported) ==
               nvjpeg::kSuccess &&
           not_supported == 0;
  }

  Decoded decode(const Way& way, const DecodedRegion& region, bool whole, const ResizePlan& plan,
                 std::byte* out) {
    const auto width = static_cast<std::size_t>(whole ? region.image_width : region.width);
    const auto height = static_cast<std::size_t>(whole ? region.image_height : region.height);
    const std::size_t row_bytes = width * 3, axes_bytes = axis_bytes(plan.x) + axis_bytes(plan.y);
    std::byte* const pixels = pixels_.of(row_bytes * height);
    std::byte* const rows = rows_.of(resized_rows(plan) * sizeof(std::uint16_t));
    std::byte* const axes = axes_.of(axes_bytes);
    if (!pixels || !rows || !axes) return Decoded::large;
    auto* const corner = reinterpret_cast<std::uint8_t*>(pixels);
    if (const nvjpeg::Status status = decode(way, {.channel = {corner}, .pitch = {row_bytes}});
        status != nvjpeg::kSuccess) {
      finish();
      return status == nvjpeg::kAllocatorFailure ? Decoded::large : Decoded::failed;
    }
    if (host_axes_bytes_ < axes_bytes) {
      host_axes_ = allocate_pinned(axes_bytes);
      host_axes_bytes_ = axes_bytes;
    }
    const std::size_t offset =
        whole ? static_cast<std::size_t>(region.top) * row_bytes + static_cast<std::size_t>(region.left) * 3
              : 0;
    const ResizeTask task{
        .pixels = corner + offset,
        .row_bytes = static_cast<std::int64_t>(row_bytes),
        .x = write_axis(plan.x, host_axes_.get(), axes),
        .y = write_axis(plan.y, host_axes_.get() + axis_bytes(plan.x), axes + axis_bytes(plan.x)),
        .out_size = plan.out_size,
        .rows = reinterpret_cast<std::uint16_t*>(rows),
        .out = reinterpret_cast<std::uint8_t*>(out)};
    check(cudaMemcpyAsync(axes, host_axes_.get(), axes_bytes, cudaMemcpyHostToDevice, stream_.get()));
    launch_resize(task, stream_.get());
    finish();
    return Decoded::on_gpu;
  }

  nvjpeg::Status decode(const Way& way, nvjpeg::Image image) const {
    const auto handle = library_.handle.get();
    nvjpeg::Status status =
        call().decode_on_host(handle, way.decoder.get(), way.state.get(), params_.get(), parsed_.get());
    if (status == nvjpeg::kSuccess)
      status = call().transfer(handle, way.decoder.get(), way.state.get(), parsed_.get(), stream_.get());
    if (status == nvjpeg::kSuccess)
      status = call().decode_on_device(handle, way.decoder.get(), way.state.get(), &image, stream_.get());
    return status;
  }

  // Waits without keeping a CPU busy.
  void finish() {
    check(cudaEventRecord(done_.get(), stream_.get()));
    check(cudaEventSynchronize(done_.get()));
  }

  JpegLibrary& library_;
  Stream stream_;
  Event done_;
  MadeParsed parsed_;
  MadeParams params_;
  std::vector<Way> ways_;  // the fastest first
  Scratch pixels_, rows_, axes_;
  PinnedMemory host_axes_;
  std::size_t host_axes_bytes_ = 0;
};

class JpegDecoding final : public ImageDecoding {
 public:
  explicit JpegDecoding(int workers) : library_(workers) { check(cudaGetDevice(&gpu_)); }

  std::string description() const override {
    return library_.call.name() + (library_.has_engines ? " with the GPU's JPEG engines" : "");
  }
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override { return allocate_device(bytes); }
  std::unique_ptr<DeviceDecoder> make_decoder() override {
    check(cudaSetDevice(gpu_));  // of this thread
    return std::make_unique<JpegDecoder>(library_);
  }

 private:
  JpegLibrary library_;
  int gpu_ = 0;
};

}  // namespace

std::unique_ptr<ImageDecoding> make_jpeg_decoding(int workers) {
  return std::make_unique<JpegDecoding>(workers);
}

}  // namespace plumb::cuda
