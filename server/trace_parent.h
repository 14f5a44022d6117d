// W3C trace context (https://www.w3.org/TR/trace-context/): the header `traceparent`.
#ifndef MENDEL_SERVER_TRACE_PARENT_H_
#define MENDEL_SERVER_TRACE_PARENT_H_

#include <string>
#include <string_view>

namespace mendel::server {

/// The header, or "" when it is not well formed: version 00, no id of zeros.
std::string ValidTraceParent(std::string_view header);
/// The 32 digits of the trace's id in a valid header; "" for "".
std::string TraceIdOf(std::string_view trace_parent);

/// The 16 digits of the parent span's id in a valid header; "" for "".
std::string SpanIdOf(std::string_view trace_parent);
/// The flag "sampled" of a valid header.
bool IsSampled(std::string_view trace_parent);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_TRACE_PARENT_H_
