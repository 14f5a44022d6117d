#include "kernels/cpu/elementwise.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "graph/types.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kTile = 512;
constexpr size_t kMaxLoops = kMaxRank + 1;  // one dimension may be cut into blocks

/// Merges neighbouring loops along which every operand goes on as it went.
void Collapse(TileProgram& program) {
  Shape extents;
  std::vector<Shape> strides(program.operands.size());
  for (size_t d = 0; d < program.extents.size(); ++d) {
    const int64_t extent = program.extents[d];
    if (extent == 1) continue;
    bool follows = !extents.empty();
    for (size_t k = 0; k < strides.size(); ++k) {
      follows = follows && strides[k].back() == program.operands[k].strides[d] * extent;
    }
    if (follows) {
      extents.back() *= extent;
    } else {
      extents.push_back(extent);
    }
    for (size_t k = 0; k < strides.size(); ++k) {
      if (follows) strides[k].pop_back();
      strides[k].push_back(program.operands[k].strides[d]);
    }
  }
  if (extents.empty()) {
    extents = {1};
    for (Shape& own : strides) own = {0};
  }
  program.extents = std::move(extents);
  for (size_t k = 0; k < strides.size(); ++k) program.operands[k].strides = std::move(strides[k]);
}

/// A walk over an operand in rows: runs of the innermost loop.
class Rows {
 public:
  Rows(const Shape& extents, const Shape& strides, int64_t begin) : extents_(extents), strides_(strides) {
    for (size_t d = extents.size(); d-- > 0; begin /= extents[d]) {
      index_[d] = begin % extents[d];
      at_ += index_[d] * strides[d];
    }
  }

  int64_t at() const { return at_; }
  /// Elements left in the row.
  int64_t left() const { return extents_.back() - index_[extents_.size() - 1]; }
  void Advance(int64_t count) {
    size_t d = extents_.size() - 1;
    at_ += count * strides_[d];
    for (index_[d] += count; index_[d] == extents_[d] && d > 0; ++index_[d]) {
      at_ -= extents_[d] * strides_[d];
      index_[d] = 0;
      at_ += strides_[--d];
    }
  }

 private:
  const Shape& extents_;
  const Shape& strides_;
  std::array<int64_t, kMaxLoops> index_{};
  int64_t at_ = 0;
};

template <class T>
void Load(const T* base, const Shape& extents, const Shape& strides, int64_t begin, int64_t count, float* out) {
  const int64_t step = strides.back();
  for (Rows rows(extents, strides, begin); count > 0;) {
    const int64_t n = std::min(count, rows.left());
    const T* source = base + rows.at();
    if (step == 0) {
      std::fill(out, out + n, static_cast<float>(*source));
    } else if (step == 1) {
      std::copy(source, source + n, out);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(source[i * step]);
    }
    out += n;
    count -= n;
    rows.Advance(n);
  }
}

class ElementwiseKernel : public Kernel {
 public:
  explicit ElementwiseKernel(TileProgram program) : program_(std::move(program)) {
    Collapse(program_);
    const Shape dense = RowMajorStrides(program_.extents);
    for (const TileOperand& operand : program_.operands) direct_.push_back(!operand.boolean && operand.strides == dense);
    total_ = NumElements(program_.extents);
  }

  absl::Status Run(const Bindings& bindings) override {
    ParallelRange(total_, 1 << 14, [&](int64_t begin, int64_t end) { RunRange(bindings, begin, end); });
    return absl::OkStatus();
  }

 private:
  void RunRange(const Bindings& bindings, int64_t begin, int64_t end) const {
    alignas(64) float storage[kMaxRegisters][kTile];
    std::array<const float*, kMaxRegisters> registers{};
    float* const output = program_.boolean_output ? nullptr : bindings.At<float>(program_.output);
    for (int64_t at = begin; at < end; at += kTile) {
      const int64_t count = std::min(kTile, end - at);
      for (size_t k = 0; k < program_.operands.size(); ++k) {
        const TileOperand& operand = program_.operands[k];
        if (direct_[k]) {
          registers[k] = bindings.At<float>(operand.place) + at;
          continue;
        }
        if (const float* whole = Unbroken(bindings, operand, at, count); whole != nullptr) {
          registers[k] = whole;
          continue;
        }
        registers[k] = storage[k];
        if (operand.boolean) {
          Load(bindings.At<uint8_t>(operand.place), program_.extents, operand.strides, at, count, storage[k]);
        } else {
          Load(bindings.At<float>(operand.place), program_.extents, operand.strides, at, count, storage[k]);
        }
      }
      for (const TileCall& call : program_.calls) {
        const float* in[3] = {registers[static_cast<size_t>(call.in[0])], registers[static_cast<size_t>(call.in[1])],
                              registers[static_cast<size_t>(call.in[2])]};
        float* const to = storage[call.out];
        call.function(to, in, count, call.parameters.data());
        registers[static_cast<size_t>(call.out)] = to;
      }
      Store(bindings, registers[static_cast<size_t>(program_.result)], output, at, count);
    }
  }

  /// The operand's elements of a tile where they follow each other, else null.
  const float* Unbroken(const Bindings& bindings, const TileOperand& operand, int64_t at, int64_t count) const {
    if (operand.boolean || operand.strides.back() != 1 || program_.extents.back() < count) return nullptr;
    const Rows rows(program_.extents, operand.strides, at);
    return rows.left() < count ? nullptr : bindings.At<float>(operand.place) + rows.at();
  }

  void Store(const Bindings& bindings, const float* values, float* output, int64_t at, int64_t count) const {
    if (!program_.boolean_output) {
      std::memcpy(output + at, values, static_cast<size_t>(count) * sizeof(float));
      return;
    }
    uint8_t* to = bindings.At<uint8_t>(program_.output) + at;
    for (int64_t i = 0; i < count; ++i) to[i] = values[i] != 0;
  }

  TileProgram program_;
  std::vector<bool> direct_;
  int64_t total_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> MakeElementwiseKernel(TileProgram program) {
  return std::make_unique<ElementwiseKernel>(std::move(program));
}

}  // namespace mendel::cpu
