// The predictor ranks what the mutator derives. Whoever searches passes it in, so that the same
// derivations propose other programs for another device.
#ifndef MENDEL_MUTATOR_PREDICTOR_H_
#define MENDEL_MUTATOR_PREDICTOR_H_

#include <string>

#include "graph/device_rates.h"
#include "graph/graph.h"

namespace mendel {

/// Only ratios of predictions matter: what is proposed is measured. Thread-safe.
class Predictor {
 public:
  virtual ~Predictor() = default;
  /// One run of a graph. Expressions of weights and views cost nothing.
  virtual double GraphSeconds(const Graph& graph) const = 0;
  /// One operator that moves `bytes` and does `flops` of arithmetic as a matrix product does.
  virtual double OperatorSeconds(double flops, double bytes) const = 0;
  /// Predictors of one key predict the same.
  virtual std::string Key() const = 0;
};

/// Arithmetic at an efficiency by operator, or bytes, whichever takes longer, and a constant an
/// operator. Source: the roofline model (Williams, Waterman and Patterson 2009).
class RooflinePredictor final : public Predictor {
 public:
  explicit RooflinePredictor(const DeviceRates& rates) : rates_(rates) {}
  double GraphSeconds(const Graph& graph) const override;
  double OperatorSeconds(double flops, double bytes) const override;
  std::string Key() const override;

 private:
  DeviceRates rates_;
};

/// The roofline of one core (DeviceRates as they stand), where no device is chosen.
const Predictor& DefaultPredictor();

}  // namespace mendel

#endif  // MENDEL_MUTATOR_PREDICTOR_H_
