// Numerics classes: the rounding that a plan's kernels may change.
#ifndef MENDEL_RUNTIME_NUMERICS_H_
#define MENDEL_RUNTIME_NUMERICS_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace mendel {

/// `strict`: reassociation of sums only. `default`: bilinear algorithms (Winograd's, Strassen's),
/// too, and of values that are stored in 16 bits a library's own activations and softmax, in f32.
/// The others may also round both operands of f32 products, whose sums stay f32. `high` rounds
/// to about 16 bits (a sum of two bf16 numbers, without the product of the two small ones), `tf32`
/// to 11, `f16` to 11 with f16's range, `bf16` to 8. In `f16` and `bf16` the addends and results of
/// such a product may be rounded to the format, too. `int8` rounds no operand: products of
/// quantized operands are sums of integers, exact, and are scaled afterwards. A result that is
/// quantized may flip by one step where that rounding and the model's meet.
enum class Numerics { kStrict, kDefault, kInt8, kHigh, kTf32, kF16, kBf16 };
/// All classes, from the strictest to the laxest.
inline constexpr Numerics kAllNumerics[] = {Numerics::kStrict, Numerics::kDefault, Numerics::kInt8,
                                            Numerics::kHigh,   Numerics::kTf32,    Numerics::kF16,
                                            Numerics::kBf16};

std::string_view NumericsName(Numerics numerics);
/// "strict, default, ...": for messages and help.
std::string NumericsNames();
/// InvalidArgument lists the valid names.
absl::StatusOr<Numerics> ParseNumerics(std::string_view name);

/// The laxest class that is stricter; `strict` has none. f16 and bf16 do not allow each other: one
/// has more bits, the other more range. No other class allows `int8`.
std::optional<Numerics> Stricter(Numerics numerics);
/// True where kernels of the class `technique` may be used under `numerics`: its own and those of
/// all stricter classes.
bool Allows(Numerics numerics, Numerics technique);
/// Largest relative error of an operand's rounding to nearest: 0 for the classes that round no
/// operand of f32.
double OperandRounding(Numerics numerics);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_NUMERICS_H_
