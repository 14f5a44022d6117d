#include "server/http_message.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/status.h"

namespace mendel::server {
namespace {

std::string_view ReasonPhrase(int code) {
  static const auto* const phrases = new std::map<int, std::string_view>{
      {200, "OK"},
      {202, "Accepted"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {409, "Conflict"},
      {429, "Too Many Requests"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
  };
  const auto found = phrases->find(code);
  return found == phrases->end() ? "Status" : found->second;
}

std::string LowerCase(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The text up to `end`, which is taken away together with it.
std::string_view Take(std::string_view& text, std::string_view end) {
  const size_t at = text.find(end);
  const std::string_view result = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
  return result;
}

int Hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string Decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && Hex(text[i + 1]) >= 0 && Hex(text[i + 2]) >= 0) {
      result += static_cast<char>(Hex(text[i + 1]) * 16 + Hex(text[i + 2]));
      i += 2;
    } else {
      result += text[i] == '+' ? ' ' : text[i];
    }
  }
  return result;
}

bool IsToken(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  });
}

std::string_view Find(const std::map<std::string, std::string>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? std::string_view() : found->second;
}

}  // namespace

std::string_view HttpRequest::Header(const std::string& name) const { return Find(headers, name); }
std::string_view HttpRequest::Parameter(const std::string& name) const { return Find(query, name); }

absl::StatusOr<HttpRequest> ParseHttpRequest(std::string_view head) {
  std::string_view line = Take(head, "\r\n");
  const std::string_view method = Take(line, " ");
  std::string_view target = Take(line, " ");
  if (target.empty() || target.front() != '/' || !line.starts_with("HTTP/1."))
    return InvalidInput("not an HTTP/1 request");
  if (method != "GET" && method != "HEAD" && method != "POST")
    return absl::UnimplementedError("only GET, HEAD and POST");
  HttpRequest request;
  request.head = method == "HEAD";
  request.post = method == "POST";
  request.path = std::string(Take(target, "?"));
  while (!target.empty()) {
    std::string_view value = Take(target, "&");
    const std::string name = Decoded(Take(value, "="));
    request.query[name] = Decoded(value);
  }
  while (!head.empty()) {
    line = Take(head, "\r\n");
    if (line.empty()) break;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon)))
      return InvalidInput("not a header");
    const std::string name = LowerCase(line.substr(0, colon));
    const bool added = request.headers.emplace(name, WithoutBlanks(line.substr(colon + 1))).second;
    if (!added && (name == "authorization" || name == "host"))
      return InvalidInput(name, " comes twice");
  }
  const std::string_view length = request.Header("content-length");
  if (request.headers.contains("transfer-encoding") || (!length.empty() && length != "0"))
    return InvalidInput("requests have no body here");
  return request;
}

std::string HttpHead(const HttpResponse& response) {
  const int64_t size = response.stream != nullptr ? response.stream->size()
                                                  : static_cast<int64_t>(response.body.size());
  std::string head = Cat("HTTP/1.1 ", response.code, " ", ReasonPhrase(response.code),
                         "\r\nContent-Type: ", response.type, "\r\nContent-Length: ", size);
  static constexpr std::array<std::string_view, 8> kAlways = {
      "Connection: close",
      "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'; object-src "
      "'none'; "
      "require-trusted-types-for 'script'; trusted-types 'none'",
      "Cross-Origin-Opener-Policy: same-origin",
      "Cross-Origin-Resource-Policy: same-origin",
      "Permissions-Policy: camera=(), geolocation=(), microphone=()",
      "Referrer-Policy: no-referrer",
      "X-Content-Type-Options: nosniff",
      "X-Frame-Options: DENY",
  };
  for (const std::string_view line : kAlways) head += Cat("\r\n", line);
  for (const auto& [name, value] : response.headers) head += Cat("\r\n", name, ": ", value);
  return head + "\r\n\r\n";
}

}  // namespace mendel::server
