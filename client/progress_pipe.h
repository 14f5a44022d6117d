// Progress of long work for a program that watches: `--progress-fd N`, one JSON object a line on a
// descriptor that the caller opened.
//
//   {"phase":"search","detail":"merge_convs","candidates":12,"candidates_per_second":3.5,"best_speedup":1.2,"seconds_left":41.0}
//   {"phase":"import","warnings":["..."]}
//
// Members that a phase does not have are absent. A new phase and warnings are reported at once, the
// rest at most four times a second. Lines are at most 4,000 bytes; nothing is reported once writing
// fails (the watcher went away), and the work goes on.
#ifndef MENDEL_CLIENT_PROGRESS_PIPE_H_
#define MENDEL_CLIENT_PROGRESS_PIPE_H_

#include <string>

#include "base/deadline.h"
#include "optimizer/search/progress.h"

namespace CLI {
class App;
}

namespace mendel {

/// Declares --progress-fd. `descriptor` must outlive the command line's parsing.
void AddProgressOption(CLI::App& app, int& descriptor);

/// Not thread-safe.
class ProgressPipe {
 public:
  /// Negative: says nothing.
  explicit ProgressPipe(int descriptor) : descriptor_(descriptor) {}
  void Show(const ProgressEvent& event);
  void Phase(const std::string& phase) { Show({.phase = phase, .detail = "", .seconds_left = -1}); }
  /// Something that the work's owner should know.
  void Warn(const std::string& text);

 private:
  void Write(std::string line);

  int descriptor_;
  double last_shown_ = -1e9;
  std::string last_phase_;
  Stopwatch clock_;
};

}  // namespace mendel

#endif  // MENDEL_CLIENT_PROGRESS_PIPE_H_
