#include "server/grpc_log.h"

#include <grpc/support/log.h>

#include <atomic>
#include <cstring>
#include <string>

#include "base/status.h"

namespace mendel::server {
namespace {

std::atomic<Logger*> current = nullptr;

LogLevel LevelOf(gpr_log_severity severity) {
  if (severity == GPR_LOG_SEVERITY_ERROR) return LogLevel::kError;
  return severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo : LogLevel::kDebug;
}

void Write(gpr_log_func_args* args) {
  Logger* const log = current;
  if (log == nullptr) return;
  const char* const slash = std::strrchr(args->file, '/');
  log->Log(LevelOf(args->severity), "grpc",
           {{"message", std::string(args->message)},
            {"place", Cat(slash == nullptr ? args->file : slash + 1, ":", args->line)}});
}

}  // namespace

GrpcLog::GrpcLog(Logger& log) {
  current = &log;
  gpr_set_log_function(&Write);
}

GrpcLog::~GrpcLog() {
  gpr_set_log_function(nullptr);
  current = nullptr;
}

}  // namespace mendel::server
