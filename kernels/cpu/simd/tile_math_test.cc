// Every form of every tile function against its definition in double.

#include "kernels/cpu/simd/tile_math.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/guarded.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

constexpr double kAlpha = 0.25, kBeta = 0.75;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A domain describes how operands are drawn: reals in [low, high] or whole numbers.
struct Domain {
  double low, high;
  bool whole = false;
};
constexpr Domain kReals{-8, 8}, kAngles{-1.4, 1.4}, kUnit{-0.99, 0.99}, kPositive{0.01, 50},
    kLarge{-1e10, 1e10}, kWhole{-3, 3, true}, kBooleans{0, 1, true};

struct Definition {
  std::string_view name;
  Domain domain;
  double (*value)(double x, double y, double z);
};

#define MENDEL_DEFINITION(name, domain, expression)                               \
  {                                                                               \
#name, domain,                                                                \
        [](double x, [[maybe_unused]] double y,                                   \
           [[maybe_unused]] double z) { return static_cast<double>(expression); } \
  }

/// Cast to an integer type: towards zero, infinity as the largest i64, the low bits of that.
template <class T>
double Integer(double x) {
  if (std::isnan(x)) return 0;
  if (x >= 0x1p63) return static_cast<double>(static_cast<T>(-1));
  return x < -0x1p63 ? 0 : static_cast<double>(static_cast<T>(static_cast<int64_t>(x)));
}
constexpr double kLow = -2, kHigh = 5;
double Exponential(double x) { return std::exp(x) - 1; }

const Definition kDefinitions[] = {
    MENDEL_DEFINITION(Abs, kReals, std::fabs(x)),
    MENDEL_DEFINITION(Acos, kUnit, std::acos(x)),
    MENDEL_DEFINITION(Acosh, (Domain{1.01, 50}), std::acosh(x)),
    MENDEL_DEFINITION(Add, kReals, x + y),
    MENDEL_DEFINITION(And, kBooleans, x* y),
    MENDEL_DEFINITION(Asin, kUnit, std::asin(x)),
    MENDEL_DEFINITION(Asinh, kReals, std::asinh(x)),
    MENDEL_DEFINITION(Atan, kReals, std::atan(x)),
    MENDEL_DEFINITION(Atanh, kUnit, std::atanh(x)),
    MENDEL_DEFINITION(Cast, kReals, x),
    MENDEL_DEFINITION(CastBool, kWhole, x != 0),
    MENDEL_DEFINITION(CastI32, kLarge, Integer<int32_t>(x)),
    MENDEL_DEFINITION(CastI8, kLarge, Integer<int8_t>(x)),
    MENDEL_DEFINITION(CastU8, kLarge, Integer<uint8_t>(x)),
    MENDEL_DEFINITION(Ceil, kReals, std::ceil(x)),
    MENDEL_DEFINITION(Celu, kReals, x > 0 ? x : kAlpha * Exponential(x / kAlpha)),
    MENDEL_DEFINITION(Clip, kReals, std::isnan(x) ? x : std::clamp(x, kAlpha, kBeta)),
    MENDEL_DEFINITION(Cos, kReals, std::cos(x)),
    MENDEL_DEFINITION(Cosh, kReals, std::cosh(x)),
    MENDEL_DEFINITION(Dequantize, kReals, (x - kAlpha) * kBeta),
    MENDEL_DEFINITION(Div, kPositive, x / y),
    MENDEL_DEFINITION(Elu, kReals, x < 0 ? kAlpha * Exponential(x) : x),
    MENDEL_DEFINITION(Equal, kWhole, x == y),
    MENDEL_DEFINITION(Erf, kReals, std::erf(x)),
    MENDEL_DEFINITION(Exp, (Domain{-80, 80}), std::exp(x)),
    MENDEL_DEFINITION(Floor, kReals, std::floor(x)),
    MENDEL_DEFINITION(GeluErf, kReals, x * 0.5 * (1 + std::erf(x * std::sqrt(0.5)))),
    MENDEL_DEFINITION(GeluTanh, kReals,
                      x * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))),
    MENDEL_DEFINITION(Greater, kWhole, x > y),
    MENDEL_DEFINITION(GreaterOrEqual, kWhole, x >= y),
    MENDEL_DEFINITION(HardSigmoid, kReals,
                      std::isnan(x) ? x : std::clamp(kAlpha* x + kBeta, 0.0, 1.0)),
    MENDEL_DEFINITION(HardSwish, kReals, x* std::clamp(x / 6 + 0.5, 0.0, 1.0)),
    MENDEL_DEFINITION(IsInf, kReals, std::isinf(x)),
    MENDEL_DEFINITION(IsNaN, kReals, std::isnan(x)),
    MENDEL_DEFINITION(LeakyRelu, kReals, x < 0 ? kAlpha * x : x),
    MENDEL_DEFINITION(Less, kWhole, x < y),
    MENDEL_DEFINITION(LessOrEqual, kWhole, x <= y),
    MENDEL_DEFINITION(Log, kPositive, std::log(x)),
    MENDEL_DEFINITION(Max, kReals, x > y || std::isnan(x) ? x : y),
    MENDEL_DEFINITION(Min, kReals, x < y || std::isnan(x) ? x : y),
    MENDEL_DEFINITION(Mish, kReals, x* std::tanh(std::log1p(std::exp(x)))),
    MENDEL_DEFINITION(Mod, kPositive, std::fmod(x, y)),
    MENDEL_DEFINITION(Mul, kReals, x* y),
    MENDEL_DEFINITION(Neg, kReals, -x),
    MENDEL_DEFINITION(Not, kBooleans, 1 - x),
    MENDEL_DEFINITION(Or, kBooleans, std::fmax(x, y)),
    MENDEL_DEFINITION(PRelu, kReals, x < 0 ? y * x : x),
    MENDEL_DEFINITION(Pow, (Domain{0.1, 5}), std::pow(x, y)),
    MENDEL_DEFINITION(
        Quantize, kReals,
        std::isnan(x) ? 0 : std::clamp(std::nearbyint(x / kAlpha) + kBeta, kLow, kHigh)),
    MENDEL_DEFINITION(Reciprocal, kPositive, 1 / x),
    MENDEL_DEFINITION(Relu, kReals, x < 0 ? 0 : x),
    MENDEL_DEFINITION(Round, kReals, std::nearbyint(x)),
    MENDEL_DEFINITION(ScaleShift, kReals, x* y + z),
    MENDEL_DEFINITION(Selu, kReals, kBeta*(x > 0 ? x : kAlpha * Exponential(x))),
    MENDEL_DEFINITION(Sigmoid, kReals, 1 / (1 + std::exp(-x))),
    MENDEL_DEFINITION(Sign, kReals, x > 0 ? 1 : (x < 0 ? -1 : x)),
    MENDEL_DEFINITION(Sin, kReals, std::sin(x)),
    MENDEL_DEFINITION(Sinh, kReals, std::sinh(x)),
    MENDEL_DEFINITION(Softplus, (Domain{-30, 30}), std::log1p(std::exp(x))),
    MENDEL_DEFINITION(Softsign, kReals, x / (1 + std::fabs(x))),
    MENDEL_DEFINITION(Sqrt, kPositive, std::sqrt(x)),
    MENDEL_DEFINITION(Sub, kReals, x - y),
    MENDEL_DEFINITION(Tan, kAngles, std::tan(x)),
    MENDEL_DEFINITION(Tanh, kReals, std::tanh(x)),
    MENDEL_DEFINITION(ThresholdedRelu, kReals, x > kAlpha ? x : 0),
    MENDEL_DEFINITION(Where, kBooleans, x != 0 ? y : z),
    MENDEL_DEFINITION(Xor, kBooleans, x != y),
};
#undef MENDEL_DEFINITION

class TileMath : public IsaTest {
 protected:
  /// Makes one call on `count` random numbers of the domain. `x` replaces the first operand's
  /// number at one position.
  template <class X>
  static void Check(const TileEntry& entry, const Definition& definition, int64_t count, Rng& rng,
                    const X& x) {
    GuardedFloats in[] = {
        {count, RandomGuard(rng)}, {count, RandomGuard(rng)}, {count, RandomGuard(rng)}};
    for (GuardedFloats& operand : in) {
      for (float& value : operand) {
        const double drawn = rng.Uniform(definition.domain.low, definition.domain.high);
        value = static_cast<float>(definition.domain.whole ? std::round(drawn) : drawn);
      }
    }
    for (size_t i = 0; i < in[0].size(); ++i) in[0][i] = x(i, in[0][i]);
    GuardedFloats out(count, RandomGuard(rng));
    const float* const operands[] = {in[0].data(), in[1].data(), in[2].data()};
    const float parameters[] = {static_cast<float>(kAlpha), static_cast<float>(kBeta),
                                static_cast<float>(kLow), static_cast<float>(kHigh)};
    entry.function(out.data(), operands, count, parameters);
    for (size_t i = 0; i < out.size(); ++i) {
      const double want =
          definition.value(static_cast<double>(in[0][i]), static_cast<double>(in[1][i]),
                           static_cast<double>(in[2][i]));
      const double got = static_cast<double>(out[i]);
      SCOPED_TRACE(testing::Message() << entry.name << "(" << in[0][i] << ", " << in[1][i] << ", "
                                      << in[2][i] << "), " << count << " numbers");
      if (!std::isfinite(want)) {
        ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
            << got << " instead of " << want;
      } else {
        ASSERT_NEAR(got, want, 2e-6 * std::max(1.0, std::fabs(want)));
      }
    }
  }
};

TEST_P(TileMath, EveryFunctionMeansItsDefinition) {
  std::vector<std::string_view> known, tested;
  for (const TileEntry& entry : TileFunctions(GetParam())) known.push_back(entry.name);
  for (const Definition& definition : kDefinitions) tested.push_back(definition.name);
  ASSERT_THAT(known, testing::UnorderedElementsAreArray(tested));
  Rng rng(1);
  for (const TileEntry& entry : TileFunctions(GetParam())) {
    const Definition& definition =
        *std::find_if(std::begin(kDefinitions), std::end(kDefinitions),
                      [&](const Definition& d) { return d.name == entry.name; });
    for (int64_t count = 0; count < 40; ++count) {
      Check(entry, definition, count, rng, [](size_t, float drawn) { return drawn; });
    }
    if (HasFatalFailure()) return;
  }
}

TEST_P(TileMath, InfinitiesAndNaNsAreThoseOfTheDefinitions) {
  constexpr float kSpecial[] = {static_cast<float>(kInfinity), -static_cast<float>(kInfinity),
                                std::numeric_limits<float>::quiet_NaN(), 0.0f, -0.0f};
  Rng rng(1);
  for (const TileEntry& entry : TileFunctions(GetParam())) {
    const Definition& definition =
        *std::find_if(std::begin(kDefinitions), std::end(kDefinitions),
                      [&](const Definition& d) { return d.name == entry.name; });
    if (definition.domain.whole) continue;  // of Booleans
    Check(entry, definition, 40, rng, [&](size_t i, float) { return kSpecial[i % 5]; });
  }
}
/// Swish multiplies it by large numbers.
TEST_P(TileMath, SigmoidsOfNegativeNumbersAreRightToTheirSize) {
  const std::span<const TileEntry> entries = TileFunctions(GetParam());
  const auto sigmoid = std::find_if(entries.begin(), entries.end(),
                                    [](const TileEntry& entry) { return entry.name == "Sigmoid"; });
  std::vector<float> x, y;
  for (int k = 0; k < 104 * 64; ++k) x.push_back(static_cast<float>(16 - k / 64.0));
  y.resize(x.size());
  const float* const operands[] = {x.data(), x.data(), x.data()};
  const float parameters[] = {0, 0};
  sigmoid->function(y.data(), operands, static_cast<int64_t>(x.size()), parameters);
  for (size_t k = 0; k < x.size(); ++k) {
    const double want = 1 / (1 + std::exp(-static_cast<double>(x[k])));
    if (x[k] >= -87) {
      ASSERT_NEAR(static_cast<double>(y[k]), want, (x[k] >= -16 ? 1e-6 : 4e-6) * want) << x[k];
    } else {
      ASSERT_LE(static_cast<double>(y[k]), 1.1 * want) << x[k];
    }
  }
  for (const float large : {-88.5f, -1e3f, -1e30f, -static_cast<float>(kInfinity)}) {
    const float* const same[] = {&large, &large, &large};
    sigmoid->function(y.data(), same, 1, parameters);
    EXPECT_EQ(y[0], 0.0f) << large;
  }
}
MENDEL_FOR_ISAS(TileMath, NativeIsa::kNone, NativeIsa::kAvx2, NativeIsa::kAvx512);

}  // namespace
}  // namespace mendel::cpu
