#include "client/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/status.h"
#include "client/format.h"

namespace mendel {

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::Show(const ProgressEvent& event) {
  if (quiet_) return;
  const double period = terminal_ ? 0.1 : 5;
  if (!event.last && event.phase == last_phase_ && clock_.Seconds() - last_shown_ < period) return;
  last_shown_ = clock_.Seconds();
  last_phase_ = event.phase;
  std::string line = event.phase;
  if (event.phase == "search") {
    line += Cat("  ", event.candidates, " candidates (", Decimals(event.candidates_per_second, 1),
                "/s)  best ", Decimals(event.best_speedup, 2), "x  ",
                Decimals(std::max(0.0, event.seconds_left), 0), " s left  ", event.detail);
  } else if (!event.detail.empty()) {
    line += Cat("  ", event.detail);
  }
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%s", line.substr(0, 110).c_str());
    std::fflush(stderr);
    open_ = true;
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

void ProgressLine::Finish() {
  if (open_) std::fprintf(stderr, "\r\033[K");
  open_ = false;
}

}  // namespace mendel
