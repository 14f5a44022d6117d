// Spans of calls, queue and phases as OTLP/JSON: one ExportTraceServiceRequest a line, the format
// of OpenTelemetry's file exporter, which a collector's otlpjsonfile receiver reads.
// (https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/)
//
// Spans are linked by W3C trace context (trace_parent.h): a call's span is a child of its header
// `traceparent`, a job's of the call that submitted it, and the worker has the job's as
// TRACEPARENT. A parent that is not sampled (its last flag is 0) has no spans below it.
#ifndef MENDEL_SERVER_TRACER_H_
#define MENDEL_SERVER_TRACER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/log.h"

namespace mendel::server {

struct Span {
  std::string name;
  std::string context = {};  ///< its own trace parent, of Tracer::Begin
  std::string parent = {};   ///< the trace parent that Begin was given; may be empty
  bool is_call = false;      ///< a server's answer to a call; otherwise internal
  int64_t begin_micros = 0;  ///< wall time
  int64_t end_micros = 0;
  std::vector<std::pair<std::string, LogValue>> attributes = {};
  std::string error = {};  ///< a code or reason; empty: it went well
};

/// Thread-safe.
class Tracer {
 public:
  /// Appends to the file, which only its owner may read. "": records nothing. NotFound and the like
  /// when the file cannot be opened.
  static absl::StatusOr<std::unique_ptr<Tracer>> Open(const std::string& path,
                                                      const std::string& version, Logger& log);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// The context of a new span below `parent`, of a new trace where that is empty. Where nothing is
  /// recorded: `parent` itself.
  std::string Begin(const std::string& parent);
  /// Writes a span whose context is Begin's; others are left out.
  void Record(const Span& span);
  /// Opens the file again, which may have been renamed.
  void Reopen();

 private:
  Tracer(std::string path, std::string version, Logger& log)
      : path_(std::move(path)), version_(std::move(version)), log_(log) {}
  bool IsRecorded(const std::string& parent) const;

  const std::string path_;
  const std::string version_;
  Logger& log_;
  std::mutex mutex_;
  int file_ = -1;
  bool failed_ = false;  ///< the log has a line about it
};

/// The line of a span, without its line break; for tests.
std::string SpanLine(const Span& span, const std::string& version);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_TRACER_H_
