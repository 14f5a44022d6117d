// Progress of long work on standard error: one line that is rewritten on a terminal, a plain line
// every few seconds otherwise.
#ifndef MENDEL_CLIENT_PROGRESS_LINE_H_
#define MENDEL_CLIENT_PROGRESS_LINE_H_

#include <string>

#include "base/deadline.h"
#include "optimizer/search/progress.h"

namespace mendel {

class ProgressLine {
 public:
  /// `quiet`: says nothing (JSON).
  explicit ProgressLine(bool quiet);
  void Show(const ProgressEvent& event);
  /// Ends the line, so that what follows starts on a fresh one.
  void Finish();

 private:
  bool quiet_;
  bool terminal_;
  bool open_ = false;
  double last_shown_ = -1e9;
  std::string last_phase_;
  Stopwatch clock_;
};

}  // namespace mendel

#endif  // MENDEL_CLIENT_PROGRESS_LINE_H_
