#include "kernels/cpu/lowering/tile_peephole.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace mendel::cpu {
namespace {

class Peephole {
 public:
  Peephole(TileProgram& program, const std::map<int, float>& numbers)
      : program_(program), numbers_(numbers), makers_(static_cast<size_t>(program.registers), -1) {
    for (size_t k = 0; k < program.calls.size(); ++k)
      makers_[static_cast<size_t>(program.calls[k].out)] = static_cast<int>(k);
  }

  void Run() {
    // Calls that are replaced stay where they are, so that later ones still find them.
    const std::vector<TileCall> before = program_.calls;
    for (size_t k = 0; k < before.size(); ++k) {
      std::optional<TileCall> fused = Quantize(before, before[k]);
      if (!fused.has_value()) fused = Dequantize(before, before[k]);
      if (fused.has_value()) program_.calls[k] = *fused;
    }
    DropUnread();
  }

 private:
  const TileCall* Maker(const std::vector<TileCall>& calls, int reg, std::string_view name) const {
    const int maker = makers_[static_cast<size_t>(reg)];
    if (maker < 0 || calls[static_cast<size_t>(maker)].name != name) return nullptr;
    return &calls[static_cast<size_t>(maker)];
  }
  std::optional<float> Number(int reg) const {
    const auto known = numbers_.find(reg);
    return known == numbers_.end() ? std::nullopt : std::optional(known->second);
  }

  /// Cast(Clip(Round(x / scale) + zero)), where the clip ends at numbers of the type.
  std::optional<TileCall> Quantize(const std::vector<TileCall>& calls, const TileCall& cast) const {
    const bool is_signed = cast.name == "CastI8";
    if (!is_signed && cast.name != "CastU8") return std::nullopt;
    const TileCall* const clip = Maker(calls, cast.in[0], "Clip");
    if (clip == nullptr) return std::nullopt;
    const float low = clip->parameters[0], high = clip->parameters[1];
    if (low != std::rint(low) || high != std::rint(high) || low > high ||
        low < (is_signed ? -128 : 0) || high > (is_signed ? 127 : 255))
      return std::nullopt;
    float zero = 0, scale = 1;
    int rounded = clip->in[0];
    if (const TileCall* const add = Maker(calls, rounded, "Add"); add != nullptr) {
      const std::optional<float> summand = Number(add->in[1]);
      if (!summand.has_value()) return std::nullopt;
      zero = *summand;
      rounded = add->in[0];
    }
    const TileCall* const round = Maker(calls, rounded, "Round");
    if (round == nullptr) return std::nullopt;
    int source = round->in[0];
    if (const TileCall* const div = Maker(calls, source, "Div"); div != nullptr) {
      if (const std::optional<float> divisor = Number(div->in[1]); divisor.has_value()) {
        scale = *divisor;
        source = div->in[0];
      }
    }
    return Call("Quantize", source, cast.out, {scale, zero, low, high});
  }

  /// (x - zero) * scale.
  std::optional<TileCall> Dequantize(const std::vector<TileCall>& calls,
                                     const TileCall& product) const {
    if (product.name != "Mul") return std::nullopt;
    const TileCall* const difference = Maker(calls, product.in[0], "Sub");
    const std::optional<float> scale = Number(product.in[1]);
    if (difference == nullptr || !scale.has_value()) return std::nullopt;
    const std::optional<float> zero = Number(difference->in[1]);
    if (!zero.has_value()) return std::nullopt;
    return Call("Dequantize", difference->in[0], product.out, {*zero, *scale, 0, 0});
  }

  static TileCall Call(std::string_view name, int in, int out, std::array<float, 4> parameters) {
    TileCall call;
    call.name = name;
    call.function = FindTileFunction(name);
    call.in = {in, in, in};
    call.out = out;
    call.parameters = parameters;
    return call;
  }

  void DropUnread() {
    std::vector<bool> read(static_cast<size_t>(program_.registers), false);
    read[static_cast<size_t>(program_.result)] = true;
    std::vector<TileCall> kept;
    for (size_t k = program_.calls.size(); k-- > 0;) {
      const TileCall& call = program_.calls[k];
      if (!read[static_cast<size_t>(call.out)]) continue;
      for (const int in : call.in) read[static_cast<size_t>(in)] = true;
      kept.push_back(call);
    }
    std::reverse(kept.begin(), kept.end());
    std::vector<int> numbers(static_cast<size_t>(program_.registers), 0);
    std::vector<TileOperand> operands;
    int next = 0;
    for (size_t k = 0; k < program_.operands.size(); ++k) {
      if (!read[k]) continue;
      numbers[k] = next++;
      operands.push_back(std::move(program_.operands[k]));
    }
    for (TileCall& call : kept) {
      for (int& in : call.in) in = numbers[static_cast<size_t>(in)];
      call.out = numbers[static_cast<size_t>(call.out)] = next++;
    }
    program_.operands = std::move(operands);
    program_.calls = std::move(kept);
    program_.result = numbers[static_cast<size_t>(program_.result)];
    program_.registers = next;
  }

  TileProgram& program_;
  const std::map<int, float>& numbers_;
  std::vector<int> makers_;  ///< call that writes a register, -1: none
};

}  // namespace

void FuseQuantization(TileProgram& program, const std::map<int, float>& numbers) {
  Peephole(program, numbers).Run();
}

}  // namespace mendel::cpu
