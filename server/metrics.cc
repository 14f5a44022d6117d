#include "server/metrics.h"

#include <array>
#include <cstdio>

#include "base/status.h"

namespace mendel::server {
namespace {

struct Family {
  std::string_view name;
  std::string_view type;
  std::string_view help;
};

constexpr std::array kFamilies = {
    Family{"mendel_blob_bytes", "gauge", "Bytes of stored files and uploads."},
    Family{"mendel_build_info", "gauge", "Always 1; the labels report what runs."},
    Family{"mendel_candidates_total", "counter", "Candidates that jobs of this server verified."},
    Family{"mendel_connections_refused_total", "counter",
           "Connections that were closed because there were too many."},
    Family{"mendel_disk_free_bytes", "gauge", "Bytes that are free on the disk of the store."},
    Family{"mendel_draining", "gauge", "1 while the server drains."},
    Family{"mendel_job_duration_seconds", "histogram", "Seconds that attempts at jobs took."},
    Family{"mendel_job_queue_duration_seconds", "histogram",
           "Seconds from the submission of jobs to their first start."},
    Family{"mendel_jobs", "gauge", "Jobs by state."},
    Family{"mendel_jobs_ended_total", "counter",
           "Jobs that this server's workers ended, by state."},
    Family{"mendel_jobs_started_total", "counter",
           "Jobs that this server's workers began, by what their worker must have."},
    Family{"mendel_jobs_retried_total", "counter",
           "Attempts that were repeated because something killed their worker."},
    Family{"mendel_leases_lost_total", "counter",
           "Attempts of this server that another took over, by what they were at."},
    Family{"mendel_phase_seconds_total", "counter",
           "Seconds that jobs of this server spent, by phase."},
    Family{"mendel_plan_reuse_total", "counter", "Submitted searches answered by a stored plan."},
    Family{"mendel_queue_depth", "gauge", "Jobs that wait for a worker, by what it must have."},
    Family{"mendel_ready", "gauge", "1 while the check of the stores passes, by check."},
    Family{"mendel_rpc_duration_seconds", "histogram", "Seconds that unary calls took, by method."},
    Family{"mendel_rpc_seconds", "histogram",
           "Old name of mendel_rpc_duration_seconds; the next version drops it."},
    Family{"mendel_rpcs_total", "counter", "Calls by method and status code."},
    Family{"mendel_transfer_bytes_total", "counter", "Bytes of files, by direction."},
    Family{"mendel_verdicts_total", "counter", "The verifier's answers, by kind."},
    Family{"mendel_watchers", "gauge", "Calls that wait for jobs."},
    Family{"mendel_workers_running", "gauge", "Jobs that this server's workers run now."},
    Family{"process_heap_bytes", "gauge", "Bytes that the program has allocated and not freed."},
    Family{"process_resident_memory_bytes", "gauge", "Resident memory size in bytes."},
    Family{"process_start_time_seconds", "gauge",
           "Start time of the process since 1970 in seconds."},
};

constexpr std::array<double, 13> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25,
                                            1,     5,      30,    120,  600,   3600};

/// Enough digits for times and bytes.
std::string NumberText(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.15g", value);
  return text.data();
}

/// a="b",c="d" with what the format escapes.
std::string LabelText(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) {
    text += Cat(text.empty() ? "" : ",", key, "=\"");
    for (char c : value) {
      if (c == '\\' || c == '"') text += '\\';
      text += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    text += '"';
  }
  return text;
}

std::string Braced(const std::string& labels) {
  return labels.empty() ? "" : Cat("{", labels, "}");
}

}  // namespace

void Metrics::Add(const std::string& name, const Labels& labels, double value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  values_[name][LabelText(labels)] += value;
}

void Metrics::Set(const std::string& name, const Labels& labels, double value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  values_[name][LabelText(labels)] = value;
}

void Metrics::Observe(const std::string& name, const Labels& labels, double seconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Histogram& histogram = histograms_[name][LabelText(labels)];
  histogram.counts.resize(kBounds.size() + 1);
  size_t bucket = 0;
  while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
  ++histogram.counts[bucket];
  histogram.sum += seconds;
}

void Metrics::AddCollector(std::function<void(Metrics&)> collector) {
  const std::lock_guard<std::mutex> lock(mutex_);
  collectors_.push_back(std::move(collector));
}

double Metrics::Value(const std::string& name, const Labels& labels) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto family = values_.find(name);
  if (family == values_.end()) return 0;
  const auto series = family->second.find(LabelText(labels));
  return series == family->second.end() ? 0 : series->second;
}

std::string Metrics::Text() {
  std::vector<std::function<void(Metrics&)>> collectors;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    collectors = collectors_;
  }
  for (const auto& collector : collectors) collector(*this);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  for (const Family& family : kFamilies) {
    const std::string name(family.name);
    text += Cat("# HELP ", name, " ", family.help, "\n# TYPE ", name, " ", family.type, "\n");
    for (const auto& [labels, value] : values_[name])
      text += Cat(name, Braced(labels), " ", NumberText(value), "\n");
    for (const auto& [labels, histogram] : histograms_[name]) {
      const std::string comma = labels.empty() ? "" : ",";
      int64_t count = 0;
      for (size_t i = 0; i < histogram.counts.size(); ++i) {
        count += histogram.counts[i];
        const std::string bound = i < kBounds.size() ? Cat(kBounds[i]) : "+Inf";
        text += Cat(name, "_bucket{", labels, comma, "le=\"", bound, "\"} ", count, "\n");
      }
      text += Cat(name, "_sum", Braced(labels), " ", NumberText(histogram.sum), "\n", name,
                  "_count", Braced(labels), " ", count, "\n");
    }
  }
  return text;
}

std::vector<std::string> MetricNames() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  return names;
}

}  // namespace mendel::server
