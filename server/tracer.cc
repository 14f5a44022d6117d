#include "server/tracer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status.h"
#include "server/trace_parent.h"

namespace mendel::server {
namespace {

using nlohmann::json;

// Numbers of OTLP's enumerations.
constexpr int kInternal = 1, kServer = 2, kError = 2;

/// Ids are not all zeros.
std::string NewTraceId() {
  const auto [high, low] = FreshEntropy();
  return absl::StrFormat("%016x%016x", high, low | 1);
}

std::string NewSpanId() { return absl::StrFormat("%016x", FreshEntropy()[0] | 1); }

json AttributeJson(const std::string& key, const LogValue& value) {
  json typed;
  if (const auto* text = std::get_if<std::string>(&value)) {
    typed = {{"stringValue", *text}};
  } else if (const auto* number = std::get_if<int64_t>(&value)) {
    typed = {{"intValue", std::to_string(*number)}};
  } else {
    typed = {{"doubleValue", std::get<double>(value)}};
  }
  return {{"key", key}, {"value", typed}};
}

}  // namespace

std::string SpanLine(const Span& span, const std::string& version) {
  json record = {{"traceId", TraceIdOf(span.context)},
                 {"spanId", SpanIdOf(span.context)},
                 {"name", span.name},
                 {"kind", span.is_call ? kServer : kInternal},
                 {"startTimeUnixNano", std::to_string(span.begin_micros * 1000)},
                 {"endTimeUnixNano", std::to_string(span.end_micros * 1000)},
                 {"attributes", json::array()}};
  if (!span.parent.empty()) record["parentSpanId"] = SpanIdOf(span.parent);
  for (const auto& [key, value] : span.attributes)
    record["attributes"].push_back(AttributeJson(key, value));
  if (!span.error.empty()) record["status"] = {{"code", kError}, {"message", span.error}};
  const json resource = {{"attributes",
                          {AttributeJson("service.name", std::string("mendeld")),
                           AttributeJson("service.version", version),
                           AttributeJson("process.pid", int64_t{getpid()})}}};
  const json scope = {{"scope", {{"name", "mendel"}}}, {"spans", {record}}};
  const json request = {
      {"resourceSpans", {{{"resource", resource}, {"scopeSpans", json::array({scope})}}}}};
  return request.dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<std::unique_ptr<Tracer>> Tracer::Open(const std::string& path,
                                                     const std::string& version, Logger& log) {
  std::unique_ptr<Tracer> tracer(new Tracer(path, version, log));
  if (path.empty()) return tracer;
  tracer->Reopen();
  if (tracer->file_ < 0) return absl::ErrnoToStatus(errno, Cat("trace-file: cannot open ", path));
  return tracer;
}

Tracer::~Tracer() {
  if (file_ >= 0) close(file_);
}

bool Tracer::IsRecorded(const std::string& parent) const {
  return !path_.empty() && (parent.empty() || IsSampled(parent));
}

std::string Tracer::Begin(const std::string& parent) {
  if (!IsRecorded(parent)) return parent;
  const std::string trace = parent.empty() ? NewTraceId() : TraceIdOf(parent);
  return Cat("00-", trace, "-", NewSpanId(), "-01");
}

void Tracer::Record(const Span& span) {
  if (!IsRecorded(span.parent) || span.context.empty() || span.context == span.parent) return;
  const std::string line = SpanLine(span, version_) + "\n";
  const std::lock_guard<std::mutex> lock(mutex_);
  // One write to a file that is open for appending: lines of several servers do not mix.
  const bool written = write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!written && !failed_)
    log_.Log(LogLevel::kWarning, "spans are lost", {{"error", std::string(std::strerror(errno))}});
  failed_ = !written;
}

void Tracer::Reopen() {
  if (path_.empty()) return;
  const int opened = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (opened < 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (file_ >= 0) close(file_);
  file_ = opened;
}

}  // namespace mendel::server
