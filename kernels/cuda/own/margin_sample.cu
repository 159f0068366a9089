#include "kernels/cuda/own/elements.h"
#include "kernels/cuda/own/margin_loss.h"
#include "kernels/cuda/own/reduce.h"

namespace plumb::cuda {
namespace {

constexpr int kLabels = 16;  // labels per thread at once
constexpr int kCandidates = kCandidatesPerBlock / kThreads;

// The arrays in the workspace, in this order.
struct Lists {
  // [images]: labels of this rank, as rows of its centers; the image of each; 1 for a label's first
  // occurrence
  std::int32_t *own_labels, *images, *is_first;
  std::int32_t *own_count, *positives;  // [1]: own labels; distinct ones
  std::int32_t* block_counts;           // [blocks]: negatives found by each block of candidates
  explicit Lists(const MarginSample& at)
      : own_labels(at.workspace),
        images(own_labels + at.images),
        is_first(images + at.images),
        own_count(is_first + at.images),
        positives(own_count + 1),
        block_counts(positives + 1) {}
};

// A single block gathers this rank's labels in the order of images. Reads 4 bytes per label, writes 4, and 8
// per own label; bound by latency: one round per 4096 labels.
__global__ void gather_own_labels(MarginSample at, Lists lists) {
  int gathered = 0;
  for (std::int64_t round = 0; round < at.images; round += kThreads * kLabels) {
    const std::int64_t first = round + std::int64_t{threadIdx.x} * kLabels;
    int row[kLabels], count = 0;
    for (int i = 0; i < kLabels; ++i) {
      row[i] = -1;
      if (first + i >= at.images) continue;
      const std::int64_t label = std::int64_t{at.labels[first + i]} - at.first_class;
      at.columns[first + i] = -1;
      if (label < 0 || label >= at.own_classes) continue;
      row[i] = static_cast<int>(label);
      ++count;
    }
    int total = 0;
    int place = gathered + sum_in_front(count, total);
    for (int i = 0; i < kLabels; ++i) {
      if (row[i] < 0) continue;
      lists.own_labels[place] = row[i];
      lists.images[place++] = static_cast<int>(first + i);
    }
    gathered += total;
  }
  if (threadIdx.x != 0) return;
  *lists.own_count = gathered;
  *lists.positives = 0;
}

// One own label per thread: finds whether an earlier one is the same. Reads the earlier ones from the cache,
// 4 bytes per pair. There are about images / ranks own labels; blocks without any exit at once.
__global__ void find_first(Lists lists) {
  const int place = static_cast<int>(blockIdx.x * kThreads + threadIdx.x), count = *lists.own_count;
  int is_first = 0;
  if (place < count) {
    const int label = lists.own_labels[place];
    is_first = 1;
    for (int other = 0; other < place; ++other)
      if (lists.own_labels[other] == label) is_first = 0;
    lists.is_first[place] = is_first;
  }
  is_first = combine_warp(is_first, Sum());
  if (threadIdx.x % 32 == 0 && is_first > 0) atomicAdd(lists.positives, is_first);
}

// One own label per thread: its place is the number of smaller distinct labels. Reads 8 bytes per pair, like
// find_first; writes the label to its place and the place to its image's column.
__global__ void place_positives(MarginSample at, Lists lists) {
  const int own = static_cast<int>(blockIdx.x * kThreads + threadIdx.x), count = *lists.own_count;
  if (own >= count) return;
  const int label = lists.own_labels[own];
  int place = 0;
  for (int other = 0; other < count; ++other)
    place += lists.own_labels[other] < label ? lists.is_first[other] : 0;
  at.samples[place] = label;  // all threads with this label write the same
  at.columns[lists.images[own]] = place;
}

// Whether a row is among `count` ascending ones.
__device__ bool contains(const std::int32_t* rows, int count, int row) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (rows[middle] < row)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && rows[low] == row;
}

// This thread's candidates, kCandidates consecutive values of the permutation: negatives are kept; positives
// and values beyond the sample's size, where the search may stop, become -1.
__device__ void draw(const MarginSample& at, int positives, int size, int (&rows)[kCandidates]) {
  const ClassPermutation permutation =
      class_permutation(at.key, at.state->step.iteration, static_cast<std::uint32_t>(at.own_classes));
  const std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCandidates;
  for (int i = 0; i < kCandidates; ++i) {
    rows[i] = -1;
    if (first + i >= size) continue;
    const int row = static_cast<int>(permutation(static_cast<std::uint32_t>(first + i)));
    if (!contains(at.samples, positives, row)) rows[i] = row;
  }
}

__device__ int sample_size(const MarginSample& at, int positives) {
  return positives > at.least ? positives : at.least;
}

// A block counts negatives among kCandidatesPerBlock candidates. For each it reads a search path through the
// positives, from the cache, after some 150 instructions for the permutation; writes 4 bytes. Bound by
// arithmetic, and small: a tenth of a million classes are ten such blocks.
__global__ void count_negatives(MarginSample at, Lists lists) {
  int rows[kCandidates], count = 0;
  draw(at, *lists.positives, sample_size(at, *lists.positives), rows);
  for (int row : rows) count += row >= 0 ? 1 : 0;
  count = combine_block(count, Sum());
  if (threadIdx.x == 0) lists.block_counts[blockIdx.x] = count;
}

// A block writes its negatives behind the positives and the negatives of earlier blocks: draws them again,
// adds up 4 bytes per earlier block, writes 4 bytes per sample.
__global__ void place_negatives(MarginSample at, Lists lists) {
  const int positives = *lists.positives, size = sample_size(at, positives);
  int rows[kCandidates], count = 0, in_front = 0, total = 0;
  draw(at, positives, size, rows);
  for (int row : rows) count += row >= 0 ? 1 : 0;
  for (unsigned block = threadIdx.x; block < blockIdx.x; block += kThreads)
    in_front += lists.block_counts[block];
  in_front = combine_block(in_front, Sum());
  int place = positives + in_front + sum_in_front(count, total);
  const std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCandidates;
  for (int i = 0; i < kCandidates; ++i) {
    if (rows[i] >= 0 && place < size) at.samples[place] = rows[i];
    if (rows[i] >= 0) ++place;
    if (first + i >= size && first + i < at.capacity) at.samples[first + i] = -1;
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) *at.sample_count = size;
}

// A warp copies one row. Reads 4 bytes per element and writes 4 or 2, 16 at a time. Bound by memory: a row is
// 2 KB of contiguous memory for an embedding of 512.
template <typename T>
__global__ void gather_rows(GatheredRows at, std::int64_t capacity, int embedding) {
  constexpr int kCount = kPack<T>;
  const std::int64_t row = std::int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  if (row >= capacity) return;
  const bool in_use = row < *at.sample_count;
  const float* from = at.weight + (in_use ? std::int64_t{at.samples[row]} * embedding : 0);
  T* into = as<T>(at.rows) + row * embedding;
  for (int first = static_cast<int>(threadIdx.x % 32) * kCount; first < embedding; first += 32 * kCount) {
    float values[kCount] = {};
    if (in_use) load(from + first, values);
    store(into + first, values);
  }
}

}  // namespace

void launch_margin_sample(const MarginSample& at, cudaStream_t stream) {
  const Lists lists(at);
  const unsigned label_blocks = blocks_for(at.images, kThreads);
  const unsigned candidate_blocks = blocks_for(at.capacity, kCandidatesPerBlock);
  gpu::launch(gather_own_labels, 1, kThreads, 0, stream, at, lists);
  gpu::launch(find_first, label_blocks, kThreads, 0, stream, lists);
  gpu::launch(place_positives, label_blocks, kThreads, 0, stream, at, lists);
  gpu::launch(count_negatives, candidate_blocks, kThreads, 0, stream, at, lists);
  gpu::launch(place_negatives, candidate_blocks, kThreads, 0, stream, at, lists);
}

void launch_margin_gather(const GatheredRows& at, std::int64_t capacity, std::int64_t embedding,
                          cudaStream_t stream) {
  with_type_of(at.dtype, [&]<typename T>(T) {
    gpu::launch(gather_rows<T>, blocks_for(capacity, kThreads / 32), kThreads, 0, stream, at, capacity,
                static_cast<int>(embedding));
  });
}

}  // namespace plumb::cuda
