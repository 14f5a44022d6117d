// Convolutions on thin boxes of a tensor (one row, one column, a small plane), written in place:
// they correct a mutant.
//
// All boxes are one launch. Their inputs are gathered once, position by position, from whatever
// layout they have. Then all positions of all boxes are the rows of one product with packed
// weights, so that weights are read once however many boxes there are. Taps that read nothing but
// padding in a whole box are left out.
//
// Any strides, dilations, paddings and groups, one to three spatial dimensions, f32. Sums are exact
// reorderings: class `strict`.
#ifndef MENDEL_KERNELS_CPU_KERNELS_STRIP_H_
#define MENDEL_KERNELS_CPU_KERNELS_STRIP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/kernels/strip_kernels.h"
#include "kernels/cpu/memory/weight_view.h"

namespace mendel::cpu {

/// Returns the kernels for this machine, within the limits of oneDNN (DNNL_MAX_CPU_ISA); null when
/// it has neither AVX2 nor AVX-512.
const StripIsa* StripIsaHere();

/// StripTensor gives an element's position, in floats: image * n + channel / block * c + channel %
/// block + sum of positions * d. A missing spatial dimension has extent one and any stride.
struct StripTensor {
  int64_t n = 0;
  int64_t c = 0;
  int64_t block = 1;
  std::array<int64_t, 3> d{};
  int64_t Channel(int64_t channel) const { return channel / block * c + channel % block; }
};

/// One convolution on one box. Output p reads the positions p * stride - pad + tap * step.
/// Positions outside [0, in) are zero; a negative pad skips positions.
struct StripTerm {
  int weights = 0;  ///< number of the weights
  int source = 0;   ///< number of the source address
  StripTensor from;
  std::array<int64_t, 3> in{1, 1, 1}, pad{}, stride{1, 1, 1}, step{1, 1, 1};
};

/// Outputs of one box: the sum of its terms, then the epilogue. The terms of one box have different
/// weights.
struct StripBox {
  int64_t images = 1;
  std::array<int64_t, 3> out{1, 1, 1};
  std::vector<StripTerm> terms;
  int64_t to = 0;  ///< floats from the destination's address to the box's first element
  /// Number of the residual address; -1: none; kInPlace: what the destination holds.
  int residual = -1;
  StripTensor residual_from;
  static constexpr int kInPlace = -2;
};

/// Weights of one group: out x channels_in x taps.
struct StripWeights {
  int64_t channels_in = 1;
  std::array<int64_t, 3> taps{1, 1, 1};
  int64_t Taps() const { return taps[0] * taps[1] * taps[2]; }
};

struct StripProblem {
  const StripIsa* isa = nullptr;
  int64_t groups = 1;
  int64_t channels_out = 1;  ///< of one group; all boxes hold all channels
  StripTensor to;
  std::vector<StripWeights> weights;
  std::vector<StripBox> boxes;
};

/// Addresses of one call.
struct StripOperands {
  std::vector<const float*> sources;
  std::vector<const float*> residuals;
  std::vector<const float*> weights;  ///< packed
  float* to = nullptr;
};

/// A problem with everything that follows from its geometry. Immutable after construction.
class StripPlan {
 public:
  StripPlan(StripProblem problem, int threads);
  StripPlan(StripPlan&&) = default;  // parts point into the problem's boxes

  const StripProblem& problem() const { return problem_; }
  int64_t rows() const { return static_cast<int64_t>(rows_.size()); }
  /// Multiply-adds count two; taps in padding are not counted.
  double flops() const { return flops_; }
  int64_t PackedFloats(int weights) const;
  /// `values`: groups * channels_out x channels_in x taps, row-major; `scale`: one factor an output
  /// channel, or empty.
  void Pack(int weights, const WeightView& values, const std::vector<double>& scale,
            float* to) const;
  int64_t ScratchBytes() const;
  /// Runs in the current ThreadScope. `epilogue.bias` has one number a channel; the epilogue's
  /// residual is not read. `scratch` has ScratchBytes() bytes and lies on a 64-byte boundary.
  /// Sources are read before anything is written, so they may share memory with the destination.
  void Run(const StripOperands& operands, const WinogradEpilogue& epilogue, float* scratch) const;

 private:
  /// Rows whose sums over a panel stay in the first-level cache and leave room for weights.
  static constexpr int64_t kShareRows = 192;
  /// The gathered positions of a term.
  struct Halo {
    const StripTerm* term = nullptr;
    int64_t images = 1;
    std::array<int64_t, 3> tap_begin{}, tap_end{}, begin{}, extent{};
    int64_t first_line = 0;
    int64_t at = 0;                    ///< floats into the scratch memory
    int64_t row = 0;                   ///< floats between positions
    std::vector<int64_t> tap_offsets;  ///< floats; -1: left out
  };
  struct Row {
    int64_t to;
    int64_t residual_from;
    int residual;
    int32_t box;
    bool adjacent;  ///< lies right behind the row before it, with its residual
  };
  struct Entry {
    int64_t from;  ///< floats into the scratch memory, of tap 0
    int32_t halo;
    int32_t row;
  };
  /// A run of consecutive taps with the same weights, and their readers.
  struct Work {
    int weights = 0;
    int64_t tap = 0;
    int64_t taps = 0;
    std::vector<Entry> entries;
    bool last_of_rows = false;  ///< some of its rows are finished after it
  };
  /// Rows computed together.
  struct Share {
    int64_t begin = 0;
    int64_t end = 0;
    std::vector<Work> works;
  };
  struct Panel {
    int64_t group = 0;
    int64_t channel = 0;  ///< first, of the group
    int64_t channels = 0;
    int64_t vectors = 0;
    int64_t vectors_before = 0;
  };

  void MakePanels();
  void AddHalo(const StripBox& box, const StripTerm& term);
  void AddRows(const StripBox& box, size_t first_halo);
  void MakeShares(int threads, const std::vector<Entry>& entries);
  static void MarkLastWorks(Share& share);
  /// A line is one gathered row. It reads positions [begin, end), the first one at `from`; all
  /// others are zero.
  struct Line {
    const Halo* halo = nullptr;
    int64_t number = 0;  ///< in the halo
    int64_t begin = 0;
    int64_t end = 0;
    const float* from = nullptr;
  };
  Line LineOf(const StripOperands& operands, int64_t line) const;
  int64_t ChannelsOf(const Halo& halo) const;
  /// Prefetches the inputs of GatherLine.
  void PrefetchLine(const StripOperands& operands, int64_t line) const;
  void GatherLine(const StripOperands& operands, int64_t line, float* scratch) const;
  void GatherLines(const StripOperands& operands, int64_t begin, int64_t end, float* scratch) const;
  /// Prefetches the outputs of a panel that `count` entries' rows will overwrite.
  void PrefetchRows(const StripOperands& operands, const Entry* entries, int64_t count,
                    const Panel& panel) const;
  const float* WeightsOf(const StripOperands& operands, const Work& work, const Panel& panel) const;
  /// Weights that are needed next.
  struct Ahead {
    const float* weights = nullptr;
    int64_t lines = 0;
  };
  Ahead AheadOf(const StripOperands& operands, const Work& work, const Panel& panel) const;
  void RunWork(const StripOperands& operands, const Share& share, const Work& work,
               const Panel& panel, const Ahead& ahead, const float* scratch, float* sums) const;
  /// One panel of the rows of one share; `last`: the thread has no further task.
  void RunTask(const StripOperands& operands, const WinogradEpilogue& epilogue, int64_t task,
               bool last, const float* scratch) const;
  /// Floats from a panel's first channel to each, where rows go and where their residuals lie.
  struct PanelSteps {
    std::array<int64_t, kStripPanel> to{};
    std::array<int64_t, kStripPanel> residual{};
    int32_t residual_of = -1;  ///< box
  };
  /// Addresses of row `number` over a panel.
  StripRow RowOf(const StripOperands& operands, int64_t number, const Panel& panel,
                 PanelSteps& steps) const;
  void FinishRows(const StripOperands& operands, const WinogradEpilogue& epilogue,
                  const Share& share, const Panel& panel, const float* sums) const;

  StripProblem problem_;
  std::vector<Panel> panels_;
  std::vector<Halo> halos_;
  std::vector<Row> rows_;
  std::vector<Entry> entries_;  ///< by halo, then row
  std::vector<Share> shares_;
  std::vector<int64_t> to_steps_;                     ///< floats to each output channel
  std::vector<std::vector<int64_t>> residual_steps_;  ///< by box, likewise
  int64_t lines_ = 0;
  int64_t scratch_ = 0;
  double flops_ = 0;
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_STRIP_H_
