// Loops over sliding windows, for convolutions and pools.
#ifndef MENDEL_KERNELS_CUDA_OPERATORS_WINDOWS_H_
#define MENDEL_KERNELS_CUDA_OPERATORS_WINDOWS_H_

#include <string>
#include <vector>

#include "graph/window.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {

/// The open loops over the taps of a window. At the innermost statement all places are inside of
/// the input.
struct OpenTaps {
  std::vector<std::string> taps;    ///< a spatial dimension
  std::vector<std::string> places;  ///< in the input
  int braces = 0;                   ///< to be closed
};

/// Opens the loops for output position `out` (a coordinate for each spatial dimension). `before`
/// writes statements for every tap, inside or not; it gets the places.
inline OpenTaps OpenWindow(
    KernelCode& code, const std::vector<Window>& windows, const std::vector<std::string>& out,
    const std::function<void(const std::vector<std::string>&)>& before = {}) {
  OpenTaps open;
  std::string inside;
  for (size_t d = 0; d < windows.size(); ++d) {
    const Window& w = windows[d];
    open.taps.push_back(code.Loop(w.kernel));
    ++open.braces;
    const std::string place =
        Added(Added(Scaled(out[d], w.stride), Scaled(open.taps[d], w.dilation)), -w.pad_begin);
    open.places.push_back(code.LetIndex(place));
    inside += (inside.empty() ? "" : " && ") + open.places[d] + " >= 0 && " + open.places[d] +
              " < " + std::to_string(w.input);
  }
  if (before != nullptr) before(open.places);
  code.Open("if (" + inside + ")");
  ++open.braces;
  return open;
}

inline void CloseAll(KernelCode& code, const OpenTaps& open) {
  for (int k = 0; k < open.braces; ++k) code.Close();
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_OPERATORS_WINDOWS_H_
