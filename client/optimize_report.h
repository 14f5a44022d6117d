// The report of `optimize` about one plan.
#ifndef MENDEL_CLIENT_OPTIMIZE_REPORT_H_
#define MENDEL_CLIENT_OPTIMIZE_REPORT_H_

#include <string>

#include "client/command.h"
#include "optimizer/pipeline.h"

namespace mendel {

/// Reports times, the search (`method` is its name), seconds per phase, certificate and errors, as
/// lines and facts.
void ReportOptimized(const OptimizeResult& result, const std::string& method, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_OPTIMIZE_REPORT_H_
