#include "kernels/cpu/kernels/elementwise.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "graph/types.h"
#include "kernels/cpu/simd/tile_convert.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kTile = 512;
constexpr size_t kMaxLoops = kMaxRank + 1;  // one dimension may be cut into blocks

/// The loops over one operand. Loops along which it continues evenly are merged.
struct Loops {
  Shape extents, strides;
};
Loops Collapse(const Shape& extents, const Shape& strides) {
  Loops loops;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    if (!loops.extents.empty() && loops.strides.back() == strides[d] * extents[d]) {
      loops.extents.back() *= extents[d];
      loops.strides.back() = strides[d];
    } else {
      loops.extents.push_back(extents[d]);
      loops.strides.push_back(strides[d]);
    }
  }
  return loops.extents.empty() ? Loops{{1}, {1}} : loops;
}

/// A walk over an operand in rows: runs of the innermost loop.
class Rows {
 public:
  Rows(const Loops& loops, int64_t begin) : extents_(loops.extents), strides_(loops.strides) {
    for (size_t d = extents_.size(); d-- > 0; begin /= extents_[d]) {
      index_[d] = begin % extents_[d];
      at_ += index_[d] * strides_[d];
    }
  }

  int64_t at() const { return at_; }
  /// Elements left in the row.
  int64_t left() const { return extents_.back() - index_[extents_.size() - 1]; }
  /// Number of rows at the same address, from this one on; 1 within a row.
  int64_t Repeats() const {
    const size_t last = extents_.size() - 1;
    return last > 0 && index_[last] == 0 && strides_[last - 1] == 0
               ? extents_[last - 1] - index_[last - 1]
               : 1;
  }
  /// Moves past `count` elements of this row or, where these end the row, past `repeats` rows.
  void Advance(int64_t count, int64_t repeats) {
    size_t d = extents_.size() - 1;
    at_ += count * strides_[d];
    index_[d] += count;
    for (int64_t more = repeats; index_[d] == extents_[d] && d > 0; more = 1) {
      at_ -= extents_[d] * strides_[d];
      index_[d--] = 0;
      at_ += more * strides_[d];
      index_[d] += more;
    }
  }

 private:
  const Shape& extents_;
  const Shape& strides_;
  std::array<int64_t, kMaxLoops> index_{};
  int64_t at_ = 0;
};

void Load(const std::byte* base, const TileOperand& operand, const Loops& loops, int64_t begin,
          int64_t count, float* out) {
  const TileConversion& conversion = *FindTileConversion(operand.dtype);
  const auto convert = [&](const std::byte* from, float* to, int64_t number) {
    if (operand.scaled) {
      conversion.load_scaled(from, to, number, operand.zero, operand.scale);
    } else {
      conversion.load(from, to, number);
    }
  };
  const int64_t bytes = DTypeSize(operand.dtype);
  const int64_t step = loops.strides.back();
  for (Rows rows(loops, begin); count > 0;) {
    const int64_t row = std::min(count, rows.left());
    const int64_t repeats = std::min(rows.Repeats(), count / row);
    const std::byte* source = base + rows.at() * bytes;
    if (step == 0) {
      float value = 0;
      convert(source, &value, 1);
      std::fill(out, out + row, value);
    } else if (step == 1) {
      convert(source, out, row);
    } else if (operand.dtype == DType::kF32 && !operand.scaled) {
      const float* const floats = reinterpret_cast<const float*>(source);
      for (int64_t i = 0; i < row; ++i) out[i] = floats[i * step];
    } else {
      for (int64_t i = 0; i < row; ++i) convert(source + i * step * bytes, out + i, 1);
    }
    // Repeated rows, such as one factor for all positions of a block of channels: the part that is
    // there already is copied as a whole.
    const int64_t all = row * repeats;
    for (int64_t done = row; done < all; done *= 2)
      std::copy(out, out + std::min(done, all - done), out + done);
    rows.Advance(row, repeats);
    out += all;
    count -= all;
  }
}

class ElementwiseKernel : public Kernel {
 public:
  explicit ElementwiseKernel(TileProgram program)
      : program_(std::move(program)), total_(NumElements(program_.extents)) {
    for (const TileOperand& operand : program_.operands)
      loops_.push_back(Collapse(program_.extents, operand.strides));
  }

  absl::Status Run(const Bindings& bindings) override {
    ParallelRange(total_, 1 << 14,
                  [&](int64_t begin, int64_t end) { RunRange(bindings, begin, end); });
    return absl::OkStatus();
  }

 private:
  void RunRange(const Bindings& bindings, int64_t begin, int64_t end) const {
    alignas(64) float storage[kMaxRegisters][kTile];
    std::array<const float*, kMaxRegisters> registers{};
    float* const output =
        program_.output_dtype == DType::kF32 ? bindings.At<float>(program_.output) : nullptr;
    const bool at_once = AtOnce(bindings, output);
    // One number for all elements is loaded once: no call writes an operand's register.
    for (size_t k = 0; k < program_.operands.size(); ++k) {
      if (!IsUniform(loops_[k])) continue;
      const TileOperand& operand = program_.operands[k];
      Load(bindings.Address(operand.place), operand, loops_[k], begin, std::min(kTile, end - begin),
           storage[k]);
      registers[k] = storage[k];
    }
    for (int64_t at = begin; at < end; at += kTile) {
      const int64_t count = std::min(kTile, end - at);
      for (size_t k = 0; k < program_.operands.size(); ++k) {
        if (IsUniform(loops_[k])) continue;
        const TileOperand& operand = program_.operands[k];
        registers[k] = operand.dtype == DType::kF32
                           ? Unbroken(bindings.At<float>(operand.place), loops_[k], at, count)
                           : nullptr;
        if (registers[k] != nullptr) continue;
        registers[k] = storage[k];
        Load(bindings.Address(operand.place), operand, loops_[k], at, count, storage[k]);
      }
      for (size_t k = 0; k < program_.calls.size(); ++k) {
        const TileCall& call = program_.calls[k];
        const float* in[3] = {registers[static_cast<size_t>(call.in[0])],
                              registers[static_cast<size_t>(call.in[1])],
                              registers[static_cast<size_t>(call.in[2])]};
        float* const to =
            at_once && k + 1 == program_.calls.size() ? output + at : storage[call.out];
        call.function(to, in, count, call.parameters.data());
        registers[static_cast<size_t>(call.out)] = to;
      }
      if (!at_once)
        Store(bindings, registers[static_cast<size_t>(program_.result)], output, at, count);
    }
  }

  static bool IsUniform(const Loops& loops) {
    return loops.strides.size() == 1 && loops.strides[0] == 0;
  }

  /// True when the last call may write the output itself. It must make the result, as floats, and
  /// over no operand, since functions do not write what they read.
  bool AtOnce(const Bindings& bindings, const float* output) const {
    if (output == nullptr || program_.calls.empty() || program_.calls.back().out != program_.result)
      return false;
    return std::none_of(
        program_.operands.begin(), program_.operands.end(), [&](const TileOperand& operand) {
          return operand.dtype == DType::kF32 && bindings.At<float>(operand.place) == output;
        });
  }

  /// The operand's elements of a tile where they follow each other, else null.
  static const float* Unbroken(const float* base, const Loops& loops, int64_t at, int64_t count) {
    if (loops.strides.back() != 1 || loops.extents.back() < count) return nullptr;
    const Rows rows(loops, at);
    return rows.left() < count ? nullptr : base + rows.at();
  }

  void Store(const Bindings& bindings, const float* values, float* output, int64_t at,
             int64_t count) const {
    if (output != nullptr) {
      std::memcpy(output + at, values, static_cast<size_t>(count) * sizeof(float));
      return;
    }
    std::byte* const to = bindings.Address(program_.output) + at * DTypeSize(program_.output_dtype);
    const TileConversion& conversion = *FindTileConversion(program_.output_dtype);
    if (program_.quantizes) {
      conversion.quantize(values, to, count, program_.quantization.data());
    } else {
      conversion.store(values, to, count);
    }
  }

  TileProgram program_;
  std::vector<Loops> loops_;  ///< an entry an operand
  int64_t total_;
};

}  // namespace

std::unique_ptr<Kernel> MakeElementwiseKernel(TileProgram program) {
  return std::make_unique<ElementwiseKernel>(std::move(program));
}

}  // namespace mendel::cpu
