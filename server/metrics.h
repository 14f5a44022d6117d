// Numbers for Prometheus, in its text format (version 0.0.4).
#ifndef MENDEL_SERVER_METRICS_H_
#define MENDEL_SERVER_METRICS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mendel::server {

using Labels = std::vector<std::pair<std::string, std::string>>;

/// Only names in the table of metrics.cc (which docs/service.md repeats) are shown. Thread-safe.
class Metrics {
 public:
  /// Adds to a counter.
  void Add(const std::string& name, const Labels& labels, double value = 1);
  /// Sets a gauge, or a counter that somebody else counts.
  void Set(const std::string& name, const Labels& labels, double value);
  /// Adds an observation to a histogram of seconds.
  void Observe(const std::string& name, const Labels& labels, double seconds);
  /// Runs `collector` before every scrape.
  void AddCollector(std::function<void(Metrics&)> collector);
  /// The value of one series, 0 when there is none (for tests).
  double Value(const std::string& name, const Labels& labels) const;
  std::string Text();

 private:
  struct Histogram {
    std::vector<int64_t> counts;
    double sum = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, double>> values_;
  std::map<std::string, std::map<std::string, Histogram>> histograms_;
  std::vector<std::function<void(Metrics&)>> collectors_;
};

/// Names of all metrics, for the test of the documentation.
std::vector<std::string> MetricNames();

}  // namespace mendel::server

#endif  // MENDEL_SERVER_METRICS_H_
