#include "kernels/cpu/kernels/integer_conv.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// The extents of a block. Its sums fit the second-level cache.
constexpr int64_t kRows = 96, kColumns = 256;
/// Blocks have whole tiles of each instruction set.
constexpr int64_t kRowUnit = 12;
static_assert(kRows % kRowUnit == 0);
/// Bytes that kernels may read after the last code.
constexpr int64_t kSlack = 64;

const IntegerIsa* Isa() { return NativeKernelsHere(IntegerAvx2, IntegerAvx512); }
int64_t Ceil(int64_t value, int64_t unit) { return (value + unit - 1) / unit; }
int64_t RoundUp(int64_t value, int64_t unit) { return Ceil(value, unit) * unit; }

IntegerIsa::Finish FinishOf(const IntegerIsa& isa, DType result) {
  if (result == DType::kU8) return isa.to_u8;
  if (result == DType::kI8) return isa.to_i8;
  return result == DType::kI32 ? isa.to_i32 : isa.to_f32;
}

/// The codes that a convolution reads: its source, or a copy with padding.
class Codes {
 public:
  explicit Codes(const IntegerConv& c) : c_(c), channels_(c.groups * c.inputs) {
    copied_ =
        c.from == DType::kI8 || (c.IsDepthwise() ? c.groups % Isa()->panel : c.Run() % kQuad) != 0;
    for (int d = 0; d < 3; ++d) {
      const int64_t reach = (c.out[d] - 1) * c.stride[d] + (c.taps[d] - 1) * c.dilation[d] + 1;
      extent_[d] = std::max(c.in[d] + c.pad[d], reach);
      copied_ = copied_ || extent_[d] != c.in[d];
    }
  }

  int64_t CopyBytes() const {
    return copied_ ? RoundUp(c_.batch * extent_[0] * Line() * extent_[1] + kSlack, 64) : 0;
  }
  /// Copies in the current ThreadScope, or returns the source itself.
  const uint8_t* Prepare(const uint8_t* source, uint8_t zero, uint8_t* copy) const {
    if (!copied_) return source;
    const int64_t lines = c_.batch * extent_[0] * extent_[1];
    ParallelRange(lines, GrainOf(Line()), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) CopyLine(source, k, zero, copy + k * Line());
    });
    return copy;
  }
  /// From an image's first code to the first one that an output position reads.
  int64_t CornerOf(int64_t number) const {
    const int64_t x = number % c_.out[2], y = number / c_.out[2] % c_.out[1];
    const int64_t z = number / c_.out[2] / c_.out[1] % c_.out[0];
    return At(number / c_.Positions() * extent_[0] + z * c_.stride[0], y * c_.stride[1],
              x * c_.stride[2]);
  }
  /// From a position's first code to that of the next one along the last dimension.
  int64_t Step() const { return c_.stride[2] * channels_; }
  /// From a first code to those of each quad of the depth, or of each tap when it is depthwise.
  std::vector<int32_t> Offsets() const {
    const int64_t run = c_.IsDepthwise() ? 1 : c_.Run();
    std::vector<int32_t> offsets;
    for (int64_t tap = 0; tap < c_.Taps(); tap += run / c_.inputs) {
      for (int64_t k = 0; k < run; k += kQuad)
        offsets.push_back(static_cast<int32_t>(OffsetOf(tap) + k));
    }
    return offsets;
  }

 private:
  int64_t OffsetOf(int64_t tap) const {
    return At(tap / c_.taps[2] / c_.taps[1] * c_.dilation[0],
              tap / c_.taps[2] % c_.taps[1] * c_.dilation[1], tap % c_.taps[2] * c_.dilation[2]);
  }
  int64_t Line() const { return extent_[2] * channels_; }
  int64_t At(int64_t z, int64_t y, int64_t x) const {
    return ((z * extent_[1] + y) * extent_[2] + x) * channels_;
  }

  void CopyLine(const uint8_t* source, int64_t line, uint8_t zero, uint8_t* to) const {
    const int64_t y = line % extent_[1] - c_.pad[1];
    const int64_t z = line / extent_[1] % extent_[0] - c_.pad[0];
    const int64_t image = line / extent_[1] / extent_[0];
    int64_t before = Line(), count = 0;
    if (y >= 0 && y < c_.in[1] && z >= 0 && z < c_.in[0]) {
      before = c_.pad[2] * channels_;
      count = c_.in[2] * channels_;
      const uint8_t* const from = source + ((image * c_.in[0] + z) * c_.in[1] + y) * count;
      if (c_.from == DType::kU8) {
        std::memcpy(to + before, from, static_cast<size_t>(count));
      } else {
        for (int64_t k = 0; k < count; ++k) to[before + k] = static_cast<uint8_t>(from[k] + 128);
      }
    }
    std::memset(to, zero, static_cast<size_t>(before));
    std::memset(to + before + count, zero, static_cast<size_t>(Line() - before - count));
  }

  const IntegerConv& c_;
  int64_t channels_, extent_[3];  ///< of an image with its padding
  bool copied_ = false;
};

class IntegerConvKernel final : public Kernel {
 public:
  IntegerConvKernel(IntegerConv conv, std::shared_ptr<const PackedIntegers> packed, int threads)
      : c_(std::move(conv)),
        packed_(std::move(packed)),
        isa_(*Isa()),
        codes_(c_),
        threads_(std::max(1, threads)),
        rows_(c_.batch * c_.Positions()) {
    const size_t room =
        static_cast<size_t>(RoundUp(c_.groups * c_.outputs, isa_.panel) + isa_.panel);
    c_.scale.resize(room, 1.0f);
    c_.shift.resize(room, 0.0f);
    if (c_.result == DType::kU8 || c_.result == DType::kI8) {
      const auto lowest = static_cast<float>(LowestInteger(c_.result) - c_.result_zero);
      const auto highest = static_cast<float>(HighestInteger(c_.result) - c_.result_zero);
      c_.low = std::clamp(c_.low, lowest, highest);
      c_.high = std::clamp(c_.high, lowest, highest);
    }
    across_ = c_.groups * Ceil(c_.outputs, kColumns);
    // Blocks of rows are equal, and as many as the threads share evenly.
    blocks_ = std::max<int64_t>(1, Ceil(rows_, kRows));
    if (c_.IsDepthwise() || across_ * blocks_ % threads_ != 0) blocks_ = RoundUp(blocks_, threads_);
    block_rows_ = RoundUp(Ceil(rows_, blocks_), kRowUnit);
    blocks_ = Ceil(rows_, block_rows_);
    if (c_.IsDepthwise()) offsets_ = codes_.Offsets();
  }

  absl::Status Run(const Bindings& bindings) override {
    const int32_t zero = c_.zero.has_value() ? *bindings.At<int32_t>(*c_.zero) : c_.source_zero;
    // 128 is added to i8 codes.
    const int32_t code = c_.from == DType::kI8 ? zero + 128 : zero;
    const uint8_t* const codes =
        codes_.Prepare(bindings.At<uint8_t>(c_.source), static_cast<uint8_t>(code),
                       reinterpret_cast<uint8_t*>(bindings.scratch));
    std::byte* const scratch = bindings.scratch + codes_.CopyBytes();
    const int64_t tasks = c_.IsDepthwise() ? blocks_ : across_ * blocks_;
    ParallelRange(threads_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t share = begin; share < end; ++share) {
        auto* const sums = reinterpret_cast<int32_t*>(scratch + share * ShareBytes(c_));
        for (int64_t k = tasks * share / threads_; k < tasks * (share + 1) / threads_; ++k)
          c_.IsDepthwise() ? RunDepthwise(bindings, codes, k, code, sums)
                           : RunBlock(bindings, codes, k, code, sums);
      }
    });
    return absl::OkStatus();
  }

  /// Bytes of sums that one thread needs.
  static int64_t ShareBytes(const IntegerConv& c) {
    return kRows * (c.IsDepthwise() ? kMostPanel : kColumns) *
           static_cast<int64_t>(sizeof(int32_t));
  }

 private:
  IntegerFinish Finishing() const {
    return {c_.scale.data(), c_.shift.data(), c_.low, c_.high, c_.result_zero};
  }

  /// Sets where the positions of a block read their codes, and returns their number.
  int64_t SetRows(const uint8_t* codes, int64_t row, const uint8_t** rows) const {
    const int64_t count = std::min(block_rows_, rows_ - row);
    for (int64_t r = 0; r < count;) {
      const uint8_t* corner = codes + codes_.CornerOf(row + r);
      for (int64_t x = (row + r) % c_.out[2]; x < c_.out[2] && r < count; ++x, ++r) {
        rows[r] = corner;
        corner += codes_.Step();
      }
    }
    return count;
  }

  /// Sums of a panel begin with minus the zero point's part.
  void FirstSums(const Bindings& bindings, int64_t channel, int32_t zero, int32_t* to) const {
    const int32_t* const weight_sums = bindings.At<int32_t>(c_.weights) + channel;
    for (int64_t c = 0; c < isa_.panel; ++c) to[c] = -zero * weight_sums[c];
  }

  void RunBlock(const Bindings& bindings, const uint8_t* codes, int64_t task, int32_t zero,
                int32_t* sums) const {
    const int64_t per_group = across_ / c_.groups, group = task / per_group / blocks_;
    const int64_t row = task / per_group % blocks_ * block_rows_;
    const int64_t first_column = task % per_group * kColumns;
    const int64_t columns = std::min(kColumns, c_.outputs - first_column);
    const int64_t to_stride = c_.groups * c_.outputs;
    const IntegerPanels& panels = packed_->panels();
    const std::byte* const weights = bindings.Address(c_.weights);
    const uint8_t* rows[kRows];
    const int64_t count = SetRows(codes + group * c_.inputs, row, rows);
    for (int64_t block = 0; block < panels.Blocks(); ++block) {
      for (int64_t j = 0; j < columns; j += isa_.panel) {
        const int64_t channel = group * c_.outputs + first_column + j;
        int32_t first[kMostPanel];
        FirstSums(bindings, channel, zero, first);
        // One block's sums stay in the first-level cache.
        int32_t* const panel_sums = sums + (panels.Blocks() > 1 ? j * kRows : 0);
        isa_.add(rows, count, panels.ChunkAt(weights, group, first_column + j, block),
                 block == 0 ? first : nullptr, panel_sums);
        if (block + 1 < panels.Blocks()) continue;
        FinishOf(isa_, c_.result)(
            panel_sums, count, Finishing(), channel, columns - j,
            bindings.Address(c_.to) + (row * to_stride + channel) * DTypeSize(c_.result),
            to_stride);
      }
    }
  }

  void RunDepthwise(const Bindings& bindings, const uint8_t* codes, int64_t block, int32_t zero,
                    int32_t* sums) const {
    const int64_t padded = RoundUp(c_.groups, isa_.panel), row = block * block_rows_;
    const auto* const weights = reinterpret_cast<const int32_t*>(
        bindings.Address(c_.weights) + WeightSumBytes(c_.groups, isa_.panel));
    const uint8_t* rows[kRows];
    const int64_t count = SetRows(codes, row, rows);
    for (int64_t c = 0; c < c_.groups; c += isa_.panel) {
      int32_t first[kMostPanel];
      FirstSums(bindings, c, zero, first);
      isa_.depthwise(rows, count, offsets_.data(), c_.Taps(), weights + c, padded, first, sums);
      FinishOf(isa_, c_.result)(
          sums, count, Finishing(), c, c_.groups - c,
          bindings.Address(c_.to) + (row * c_.groups + c) * DTypeSize(c_.result), c_.groups);
      for (int64_t r = 0; r < count; ++r) rows[r] += isa_.panel;
    }
  }

  IntegerConv c_;
  std::shared_ptr<const PackedIntegers> packed_;
  const IntegerIsa& isa_;
  Codes codes_;
  int64_t threads_, rows_, across_ = 1, blocks_ = 1, block_rows_ = 1;
  std::vector<int32_t> offsets_;  ///< of taps, when it is depthwise
};

}  // namespace

bool SuitsIntegerConv(const IntegerConv& conv) {
  if (Isa() == nullptr) return false;
  for (int d = 0; d < 3; ++d) {
    if (conv.pad[d] < 0) return false;
  }
  return conv.IsDepthwise() || conv.groups == 1 || conv.outputs >= Isa()->panel / 2;
}

PackedIntegers::PackedIntegers(const IntegerConv& conv, const StoredIntegers& stored) {
  const int64_t panel = Isa()->panel;
  if (conv.IsDepthwise()) {
    padded_ = RoundUp(conv.groups, panel);
    bytes_ = WeightSumBytes(conv.groups, panel) +
             conv.Taps() * padded_ * static_cast<int64_t>(sizeof(int32_t));
  } else {
    panels_ = IntegerPanels(stored, panel, Codes(conv).Offsets());
    bytes_ = panels_.Bytes();
  }
}

void PackedIntegers::Pack(const StoredIntegers& stored, std::byte* to) const {
  if (padded_ == 0) return panels_.Pack(stored, to);
  std::memset(to, 0, static_cast<size_t>(bytes_));
  StoreWeightSums(stored, reinterpret_cast<int32_t*>(to));
  auto* lanes = reinterpret_cast<int16_t*>(to + WeightSumBytes(stored.groups, Isa()->panel));
  for (int64_t tap = 0; tap < stored.taps; ++tap) {
    for (int64_t c = 0; c < stored.groups; ++c)
      lanes[2 * (tap * padded_ + c)] =
          stored.weights[c * stored.channel_step + tap * stored.tap_step];
  }
}

int64_t IntegerConvScratch(const IntegerConv& conv, int threads) {
  return Codes(conv).CopyBytes() + std::max(1, threads) * IntegerConvKernel::ShareBytes(conv);
}

std::unique_ptr<Kernel> MakeIntegerConvKernel(IntegerConv conv,
                                              std::shared_ptr<const PackedIntegers> packed,
                                              int threads) {
  return std::make_unique<IntegerConvKernel>(std::move(conv), std::move(packed), threads);
}

}  // namespace mendel::cpu
