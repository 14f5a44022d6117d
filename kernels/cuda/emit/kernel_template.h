// The bodies of the emitted text, with $names for what depends on the correction (expand.h).
// Readers of an emitted .cu file see these lines, which are in the text's own style.
#ifndef MENDEL_KERNELS_CUDA_EMIT_KERNEL_TEMPLATE_H_
#define MENDEL_KERNELS_CUDA_EMIT_KERNEL_TEMPLATE_H_

#include <string_view>

namespace mendel::cuda {

/// Constants, the table of boxes and the number type.
inline constexpr std::string_view kPreamble = R"(
extern __shared__ __align__(16) unsigned char mendel_shared[];

namespace $name_space {

// A block computes kRows positions by kColumns output channels, kDepth products of every sum at a time.
constexpr int kRows = $rows;
constexpr int kColumns = $columns;
constexpr int kDepth = $depth;
constexpr int kThreadRows = $thread_rows;
constexpr int kThreadColumns = $thread_columns;
constexpr int kThreads = $threads;
// Rows in shared memory are padded against bank conflicts.
constexpr int kPitchX = kRows + 4;
constexpr int kPitchW = kColumns + 4;

constexpr int kInChannels = $in_channels;  // input channels a group
$sum_constant
constexpr int kWeightRow = $weight_row;  // output channels of the packed weights
$window_constants

// What all boxes have in common.
$box_constants
// What differs between boxes, with the prefix sums of their tiles.
struct Box {
  $box_members
};
constexpr int kBoxCount = $box_count;
__constant__ const Box kBoxes[kBoxCount] = {
  $box_entries
};

template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T v[N];
};

template <class T, int N>
__device__ __forceinline__ bool IsAligned(const T* address) {
  return reinterpret_cast<unsigned long long>(address) % alignof(Pack<T, N>) == 0;
}

$number
)";

/// Global to shared memory. $read_x, $stage_x are the layout's.
inline constexpr std::string_view kLoader = R"(
// Brings the operands of kDepth products to shared memory: Fetch into registers, Stage into one of two buffers.
template <class Number>
struct Loader {
  typedef typename Number::Stored Stored;
  typedef typename Number::Real Real;

  const Stored* x;
  const Stored* w;
  const Box& box;
  Real* tile_x;  // [2][kDepth][kPitchX]
  Real* tile_w;  // [2][kDepth][kPitchW]
  int thread;
  int first_column;  // of the block's output channels, in their group
  int first_out;     // the group's output channel 0 in the weights
  bool vector_x;
  bool vector_w;
  // The positions whose input this thread fetches, and what it has fetched.
  long long base[kPositions];
  $position_members
  Real next_x[kFetchX];
  Real next_w[4 * kFetchW];

  // Decodes the positions. A position beyond the box reads zeros only.
  __device__ __forceinline__ void Aim(int first_row, int rows, int group) {
#pragma unroll
    for (int i = 0; i < kPositions; ++i) {
      const int row = first_row + $fetched_row;
      int rest = row;
      $decode_position
      base[i] = $x_base + rest * $x_n + static_cast<long long>(group) * kInChannels * $x_c;
      if (row >= rows) $first_member[i] = -(1 << 30);
    }
  }

  // Where element k of the sum at position i lies in x; -1 where it is zero.
  __device__ __forceinline__ long long OffsetX(int k, int i) const {
    const int tap = k / kInChannels;
    $tap_position
    if (k >= $sum || $outside) return -1;
    return base[i] + (k % kInChannels) * $x_c + $tap_offset;
  }

  $row_of_part
  $fetch_x

  __device__ __forceinline__ void FetchW(int k0) {
#pragma unroll
    for (int i = 0; i < kFetchW; ++i) {
      const int unit = thread + i * kThreads;  // four output channels of one product
      const int k = k0 + unit / (kColumns / 4);
      const int column = first_column + unit % (kColumns / 4) * 4;
      const bool any = unit < kDepth * kColumns / 4 && k < $sum && column < $channels;
      const Stored* const from = w + static_cast<long long>($row_w) * kWeightRow + first_out + column;
      if (any && vector_w && (first_out + column) % 4 == 0) {
        const Pack<Stored, 4> four = *reinterpret_cast<const Pack<Stored, 4>*>(from);
#pragma unroll
        for (int j = 0; j < 4; ++j) next_w[4 * i + j] = Number::Load(four.v[j]);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) next_w[4 * i + j] = any && column + j < $channels ? Number::Load(from[j]) : Number::Zero();
      }
    }
  }

  __device__ __forceinline__ void Stage(int buffer) const {
    $stage_x
#pragma unroll
    for (int i = 0; i < kFetchW; ++i) {
      const int unit = thread + i * kThreads;
      Real* const to = tile_w + (buffer * kDepth + unit / (kColumns / 4)) * kPitchW + unit % (kColumns / 4) * 4;
      if (unit < kDepth * kColumns / 4) {
#pragma unroll
        for (int j = 0; j < 4; ++j) to[j] = next_w[4 * i + j];
      }
    }
  }
};
)";

/// Channels first: a thread stays at one position and takes every (kThreads / kRows)-th product,
/// neighbors in a row of x.
inline constexpr std::string_view kFetchNchw = R"(__device__ __forceinline__ void FetchX(int k0) {
#pragma unroll
  for (int i = 0; i < kFetchX; ++i) {
    const long long at = OffsetX(k0 + thread / kRows + i * (kThreads / kRows), 0);
    next_x[i] = at < 0 ? Number::Zero() : Number::Load(x[at]);
  }
}
)";
inline constexpr std::string_view kStageNchw = R"(#pragma unroll
for (int i = 0; i < kFetchX; ++i) {
  tile_x[(buffer * kDepth + thread / kRows + i * (kThreads / kRows)) * kPitchX + thread % kRows] = next_x[i];
}
)";

/// Channels last: a thread takes four channels of a position at a time.
inline constexpr std::string_view kFetchNhwc = R"(__device__ __forceinline__ void FetchX(int k0) {
#pragma unroll
  for (int i = 0; i < kPositions; ++i) {
    const int k = k0 + thread % (kDepth / 4) * 4;
    if (vector_x) {
      const long long at = OffsetX(k, i);
      Pack<Stored, 4> four;
      if (at >= 0) four = *reinterpret_cast<const Pack<Stored, 4>*>(x + at);
#pragma unroll
      for (int j = 0; j < 4; ++j) next_x[4 * i + j] = at < 0 ? Number::Zero() : Number::Load(four.v[j]);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const long long at = OffsetX(k + j, i);
        next_x[4 * i + j] = at < 0 ? Number::Zero() : Number::Load(x[at]);
      }
    }
  }
}
)";
inline constexpr std::string_view kStageNhwc = R"(#pragma unroll
for (int i = 0; i < kPositions; ++i) {
  const int row = (thread + i * kThreads) / (kDepth / 4);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    tile_x[(buffer * kDepth + thread % (kDepth / 4) * 4 + j) * kPitchX + row] = next_x[4 * i + j];
  }
}
)";

/// The kernel's function template: which tile a block has.
inline constexpr std::string_view kTileOfBlock = R"(
template <class Number>
__device__ __forceinline__ void Mend(int block, $parameters) {
  typedef typename Number::Stored Stored;
  typedef typename Number::Real Real;
  const int thread = static_cast<int>(threadIdx.x);
  $divided_block

  // The box of this block, then its tile in the box.
  int low = 0;
  for (int high = kBoxCount - 1; low < high;) {
    const int middle = (low + high + 1) / 2;
    if (kBoxes[middle].first_tile <= block) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const Box& box = kBoxes[low];
  const int rows = $box_rows;
  const int row_tiles = (rows + kRows - 1) / kRows;
  const int column_tiles = ($channels + kColumns - 1) / kColumns;
  const int tile = block - box.first_tile;
  const int first_row = tile % row_tiles * kRows;
  const int first_column = tile / row_tiles % column_tiles * kColumns;
  const int group = tile / row_tiles / column_tiles;
  const int thread_row = $thread_row * kThreadRows;
  const int thread_column = $thread_column * kThreadColumns;
)";

/// The block's sums, or its parts of them.
inline constexpr std::string_view kSums = R"(
  Real* const tile_x = reinterpret_cast<Real*>(mendel_shared);
  Real* const tile_w = tile_x + 2 * kDepth * kPitchX;
  const bool vector_x = $vector_x;
  Loader<Number> loader{x,      w,         box,       tile_x, tile_w, thread, first_column, $w_begin + group * $channels,
                        vector_x, IsAligned<Stored, 4>(w)};
  loader.Aim(first_row, rows, group);

  // Every thread sums kThreadRows x kThreadColumns elements in registers.
  Real sum[kThreadRows][kThreadColumns];
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) sum[i][j] = Number::Zero();
  }
  $products
  loader.FetchX(begin);
  loader.FetchW(begin);
  loader.Stage(0);
  __syncthreads();
  for (int k0 = begin, buffer = 0; k0 < end; k0 += kDepth, buffer ^= 1) {
    // The next products travel while these are summed; the other buffer is free since the last barrier.
    const bool more = k0 + kDepth < end;
    if (more) loader.FetchX(k0 + kDepth);
    if (more) loader.FetchW(k0 + kDepth);
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const Real* const at_x = tile_x + (buffer * kDepth + k) * kPitchX + thread_row;
      const Real* const at_w = tile_w + (buffer * kDepth + k) * kPitchW + thread_column;
      const Pack<Real, kThreadRows> a = *reinterpret_cast<const Pack<Real, kThreadRows>*>(at_x);
      const Pack<Real, kThreadColumns> b = *reinterpret_cast<const Pack<Real, kThreadColumns>*>(at_w);
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
        for (int j = 0; j < kThreadColumns; ++j) sum[i][j] = sum[i][j] + a.v[i] * b.v[j];
      }
    }
    if (more) loader.Stage(buffer ^ 1);
    __syncthreads();
  }
)";

/// The constants of a divided sum. Neighboring threads' parts of one element lie side by side, and
/// one part of all sums lies together.
inline constexpr std::string_view kDivision = R"(
constexpr int kParts = $parts;                 // of a sum
constexpr int kTiles = $tiles;                 // of all boxes
constexpr long long kPartialBase = $partial_base;  // of the scratch buffer, in stored elements
constexpr int kSumsOfThread = kThreadRows * kThreadColumns;
constexpr long long kSumsOfPart = static_cast<long long>(kTiles) * kSumsOfThread * kThreads;

)";
inline constexpr std::string_view kWriteParts = R"(
  Real* const partial = reinterpret_cast<Real*>(y + kPartialBase) + part * kSumsOfPart +
                        static_cast<long long>(block) * kSumsOfThread * kThreads + thread;
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) partial[(i * kThreadColumns + j) * kThreads] = sum[i][j];
  }
}
)";
inline constexpr std::string_view kReadParts = R"(
  const Real* const partial = reinterpret_cast<const Real*>(x + kPartialBase) +
                              static_cast<long long>(block) * kSumsOfThread * kThreads + thread;
)";
/// The total of one element, in the order of its parts whatever blocks have written them first.
inline constexpr std::string_view kTotal =
    R"(const Real* const own = partial + (i * kThreadColumns + j) * kThreads;
Real value = own[0];
#pragma unroll 16
for (int part = 1; part < kParts; ++part) value = value + own[part * kSumsOfPart];
)";

/// The code that follows the sums.
inline constexpr std::string_view kFinish = R"(
  // Epilogue: $epilogue_text. Written over the mutant's output.
#pragma unroll
  for ($lines) {
    const int row = first_row + thread_row + i;
    if (row >= rows) continue;
    int rest = row;
    $decode_output
    const int column = first_column + thread_column;
    const int channel = group * $channels + column;
    Stored* const out = y + ($y_at + channel * $y_c);
    Pack<Stored, kThreadColumns> result;
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) {
      if (column + j >= $channels) continue;
      $value
      $epilogue
      result.v[j] = Number::Store(value);
    }
    if ($y_c == 1 && column + kThreadColumns <= $channels && IsAligned<Stored, kThreadColumns>(out)) {
      *reinterpret_cast<Pack<Stored, kThreadColumns>*>(out) = result;
    } else {
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) {
        if (column + j < $channels) out[j * $y_c] = result.v[j];
      }
    }
  }
}
)";

/// The entry, and what a text without one ends with.
inline constexpr std::string_view kEntry = R"(
extern "C" __global__ void __launch_bounds__(kThreads) $name($entry_parameters) {
  Mend<$number_name>(static_cast<int>(blockIdx.x), $arguments);
}
)";
inline constexpr std::string_view kEnd = R"(
}  // namespace $name_space
)";

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_KERNEL_TEMPLATE_H_
