// The error function by tables against Arb's own, at a higher precision.

#include "base/ball_erf.h"

#include <arb_hypgeom.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "base/ball.h"
#include "base/random.h"

namespace mendel {
namespace {

class Number {
 public:
  Number() { arb_init(value_); }
  ~Number() { arb_clear(value_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  arb_ptr get() { return value_; }

 private:
  arb_t value_;
};

/// A midpoint of many bits, often near a point of the grid or near the ends of the tables.
void Draw(Rng& rng, Number& x) {
  const double near = rng.Flip(0.2)   ? std::ldexp(1.0, static_cast<int>(rng.Between(-6, 4)))
                      : rng.Flip(0.3) ? static_cast<double>(rng.Between(-1100, 1100)) / 256
                                      : 3 * rng.Normal();
  arb_set_d(x.get(), near);
  for (int k = 0; k < 4; ++k) {
    Number part;
    arb_set_d(part.get(), std::ldexp(rng.Normal(), -40 * (k + 1)));
    arb_add(x.get(), x.get(), part.get(), 400);
  }
  mag_zero(arb_radref(x.get()));
}

TEST(BallErf, EnclosesWhatArbGives) {
  Rng rng(23);
  RecordProperty("seed", 23);
  for (int round = 0; round < 20000; ++round) {
    Number x, inside, true_value, got;
    Draw(rng, x);
    arb_set(inside.get(), x.get());
    const slong precision = rng.Between(10, 560);
    const int radius = static_cast<int>(rng.Between(-600, 2));
    if (rng.Flip(0.8)) {
      mag_set_ui_2exp_si(arb_radref(x.get()), 1, radius);
      // A number of the ball: one of its ends, or the middle.
      Number shift;
      arb_set_si(shift.get(), rng.Between(-1, 1));
      arb_mul_2exp_si(shift.get(), shift.get(), radius);
      arb_add(inside.get(), inside.get(), shift.get(), ARF_PREC_EXACT);
    }
    arb_hypgeom_erf(true_value.get(), inside.get(), 1400);
    BallErf(got.get(), x.get(), precision);
    ASSERT_TRUE(arb_contains(got.get(), true_value.get()))
        << round << ": " << arf_get_d(arb_midref(x.get()), ARF_RND_NEAR) << " at " << precision;
    // The enclosure is as sharp as the function allows, up to a few bits.
    const double width = mag_get_d(arb_radref(got.get()));
    if (radius < -500) continue;
    EXPECT_LE(width,
              1.3 * mag_get_d(arb_radref(x.get())) + std::ldexp(8.0, -static_cast<int>(precision)))
        << round << " at " << precision;
  }
}

TEST(BallErf, ThreadsShareTables) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      const BallContext context(64);
      const BallScope scope(context);  // frees what FLINT keeps for the thread
      Rng rng(static_cast<uint64_t>(t % 2));
      for (int round = 0; round < 2000; ++round) {
        Number x, got, true_value;
        Draw(rng, x);
        BallErf(got.get(), x.get(), 70 + 60 * (round % 3));
        arb_hypgeom_erf(true_value.get(), x.get(), 600);
        EXPECT_TRUE(arb_contains(got.get(), true_value.get()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mendel
