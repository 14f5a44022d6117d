// What `optimize` tells of one plan that it made.
#ifndef MENDEL_CLIENT_OPTIMIZE_REPORT_H_
#define MENDEL_CLIENT_OPTIMIZE_REPORT_H_

#include <string>

#include "client/command.h"
#include "optimizer/pipeline.h"

namespace mendel {

/// Times, what the search did (by `method`, its name), seconds a phase, certificate and errors, as lines and facts.
void TellOptimized(const OptimizeResult& result, const std::string& method, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_OPTIMIZE_REPORT_H_
