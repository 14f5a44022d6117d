#include "kernels/cpu/kernels/depthwise.h"

#include <algorithm>

#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kMostRows = 64;  ///< of taps
/// Block of one product: a multiple of what most kernels keep in registers.
constexpr int64_t kMostPositions = 96;
constexpr int64_t kHeldFloats = int64_t{40} << 10;
/// Outputs, or a row, whose sum is kept in f32; those sums are added in double.
constexpr int64_t kSummed = 256;
constexpr int64_t kMostLanes = 16;

/// Rows of the source, padding included, that `rows` rows of outputs read.
int64_t Reach(const DepthwisePlan& plan, int64_t rows) {
  return (rows - 1) * plan.stride[0] + (plan.taps[0] - 1) * plan.dilation[0] + 1;
}

/// One thread's work on one task.
class Rows {
 public:
  Rows(const DepthwisePlan& plan, const DepthwiseOperands& operands,
       const WinogradEpilogue& product, const WinogradEpilogue& epilogue, float* held, double* sums)
      : plan_(plan),
        operands_(operands),
        product_(product),
        epilogue_(epilogue),
        held_(held),
        sums_(sums) {}

  void Run(const DepthwisePlan::Task& task) {
    task_ = task;
    panel_ = plan_.panels[task.panel];
    if (plan_.averaged) std::fill_n(SumsOf(0), panel_.vectors * plan_.isa->lanes, 0.0);
    int64_t made = std::max<int64_t>(0, task.first * plan_.stride[0] - plan_.pad[0]);
    for (int64_t h = task.first; h < task.last; h += plan_.strip) {
      const int64_t end = std::min(task.last, h + plan_.strip);
      const int64_t begin = h * plan_.stride[0] - plan_.pad[0];
      made = std::max(made, begin);
      const int64_t wanted = std::min(plan_.in[0], begin + Reach(plan_, end - h));
      if (plan_.inputs > 0 && made < wanted) {
        Multiply(made, wanted);
        made = wanted;
      }
      for (int64_t v = 0; v < panel_.vectors; ++v) {
        if (plan_.averaged) {
          Average(h, end, v);
        } else {
          for (int64_t row = h; row < end; ++row) Convolve(row, v, nullptr);
        }
      }
    }
  }

 private:
  /// Returns the sums of the task's rows, one a channel from the panel's vector on.
  double* SumsOf(int64_t vector) const {
    return sums_ +
           ((task_.band * plan_.batch + task_.image) * plan_.Vectors() + panel_.vector + vector) *
               plan_.isa->lanes;
  }

  /// Rows [begin, end) of outputs of one vector, and their sums.
  void Average(int64_t begin, int64_t end, int64_t vector) const {
    double* to = SumsOf(vector);
    const int64_t together = std::max<int64_t>(1, kSummed / plan_.out[1]);
    for (int64_t row = begin; row < end;) {
      alignas(64) float sums[kMostLanes] = {};
      for (const int64_t last = std::min(end, row + together); row < last; ++row)
        Convolve(row, vector, sums);
      for (int64_t k = 0; k < plan_.isa->lanes; ++k) to[k] += static_cast<double>(sums[k]);
    }
  }

  int64_t At(int64_t row, int64_t vector) const {
    return (row % plan_.held * panel_.vectors + vector) * plan_.in[1] * plan_.isa->lanes;
  }
  int64_t ChannelsOf(int64_t vector) const {
    return std::min<int64_t>(plan_.isa->lanes,
                             plan_.channels - (panel_.vector + vector) * plan_.isa->lanes);
  }

  /// Computes rows [begin, end) by the product.
  void Multiply(int64_t begin, int64_t end) const {
    const int64_t lanes = plan_.isa->lanes;
    int64_t src_at[kMostPositions], dst_at[kMostPositions];
    PointwiseBlock block{};
    block.src = operands_.src + task_.image * plan_.src.n;
    block.src_at = src_at;
    block.src_c = plan_.src.c;
    block.depth = plan_.inputs;
    block.weights = operands_.product_weights + panel_.weights;
    block.bias = product_.bias + panel_.vector * lanes;
    block.dst = held_;
    block.dst_at = dst_at;
    block.dst_c = plan_.in[1] * lanes;
    block.vectors = panel_.vectors;
    block.channels = std::min(panel_.vectors * lanes, plan_.channels - panel_.vector * lanes);
    block.padded = true;
    int64_t row = begin, w = 0;
    while (row < end) {
      block.count = 0;
      for (; row < end && block.count < kMostPositions; w = 0, ++row) {
        const int64_t from = row * plan_.src.d[1], to = At(row, 0);
        const int64_t last = std::min(plan_.in[1], w + kMostPositions - block.count);
        for (; w < last; ++w, ++block.count) {
          src_at[block.count] = from + w * plan_.src.d[2];
          dst_at[block.count] = to + w * lanes;
        }
        if (w < plan_.in[1]) break;
      }
      plan_.isa->pointwise(block, product_);
    }
  }

  /// Computes one row of outputs of one vector, and adds them to `sums`, if any.
  void Convolve(int64_t h, int64_t vector, float* sums) const {
    const int64_t lanes = plan_.isa->lanes;
    const bool held = plan_.inputs > 0;
    const float* src =
        operands_.src + task_.image * plan_.src.n + (panel_.vector + vector) * plan_.src.c;
    const float* rows[kMostRows];  // not cleared: this is called for every few outputs
    for (int64_t k = 0; k < plan_.taps[0]; ++k) {
      const int64_t at = h * plan_.stride[0] - plan_.pad[0] + k * plan_.dilation[0];
      rows[k] = at < 0 || at >= plan_.in[0] ? nullptr
                : held                      ? held_ + At(at, vector)
                                            : src + at * plan_.src.d[1];
    }
    DepthwiseRun run;
    run.rows = rows;
    run.row_count = plan_.taps[0];
    run.line = plan_.in[1];
    run.position = held ? lanes : plan_.src.d[2];
    run.readable = held || plan_.src_padded ? lanes : ChannelsOf(vector);
    run.pad = plan_.pad[1];
    run.taps = plan_.taps[1];
    run.dilation = plan_.dilation[1];
    run.stride = plan_.stride[1];
    run.weights =
        operands_.weights + (panel_.vector + vector) * plan_.taps[0] * plan_.taps[1] * lanes;
    run.bias = epilogue_.bias + (panel_.vector + vector) * lanes;
    run.count = plan_.out[1];
    run.dst = operands_.dst;
    run.at =
        task_.image * plan_.dst.n + (panel_.vector + vector) * plan_.dst.c + h * plan_.dst.d[1];
    run.step = plan_.dst.d[2];
    run.channels = ChannelsOf(vector);
    run.padded = plan_.padded;
    run.sums = sums;
    plan_.isa->depthwise[plan_.kernel](run, epilogue_);
  }

  const DepthwisePlan& plan_;
  const DepthwiseOperands& operands_;
  const WinogradEpilogue& product_;
  const WinogradEpilogue& epilogue_;
  float* held_;
  double* sums_;
  DepthwisePlan::Task task_;
  DepthwisePlan::Panel panel_;
};

/// Cuts vectors [first, last) into panels of like width; without a product one is enough.
void AddPanels(DepthwisePlan& plan, int64_t first, int64_t last) {
  const int64_t most =
      plan.inputs > 0 ? plan.isa->panel_vectors : std::max<int64_t>(1, last - first);
  const int64_t count = (last - first + most - 1) / most;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t begin = first + (last - first) * k / count;
    plan.panels.push_back({begin, first + (last - first) * (k + 1) / count - begin,
                           begin * plan.inputs * plan.isa->lanes});
  }
}

/// Returns the load of the busiest thread relative to an equal share when threads share the
/// vectors.
double LoadOfVectors(const DepthwisePlan& plan, int64_t threads) {
  const int64_t vectors = plan.Vectors();
  const int64_t most = (vectors + threads - 1) / threads;
  return static_cast<double>(most * threads) / static_cast<double>(vectors);
}

/// Returns the same load when threads share the images, or the rows in `bands` bands. Neighboring
/// bands compute some inputs twice.
double LoadOfRows(const DepthwisePlan& plan, int64_t bands) {
  if (bands == 1) return 1;
  const int64_t rows = (plan.out[0] + bands - 1) / bands;
  const int64_t most = plan.inputs > 0 ? std::min(plan.in[0], Reach(plan, rows)) : rows;
  return static_cast<double>(most * bands) /
         static_cast<double>(plan.inputs > 0 ? plan.in[0] : plan.out[0]);
}

/// Threads share the vectors, so that only one thread reads each vector's weights. Images or rows
/// are shared where that is clearly more even.
void MakeTasks(DepthwisePlan& plan, int64_t threads) {
  constexpr double kClearly = 1.05;
  const int64_t vectors = plan.Vectors();
  const int64_t bands = plan.batch % threads == 0 ? 1 : std::min(threads, plan.out[0]);
  // Otherwise some threads would have no rows.
  const bool enough = bands == threads || plan.batch % threads == 0;
  plan.panels.clear();
  plan.bands = 1;
  plan.shares.assign(static_cast<size_t>(threads), {});
  if (enough ? LoadOfVectors(plan, threads) <= kClearly * LoadOfRows(plan, bands)
             : vectors >= threads) {
    for (int64_t share = 0; share < threads; ++share) {
      const size_t first = plan.panels.size();
      AddPanels(plan, vectors * share / threads, vectors * (share + 1) / threads);
      for (size_t panel = first; panel < plan.panels.size(); ++panel) {
        for (int64_t image = 0; image < plan.batch; ++image) {
          plan.shares[static_cast<size_t>(share)].push_back({image, 0, plan.out[0], panel, 0});
        }
      }
    }
    return;
  }
  AddPanels(plan, 0, vectors);
  plan.bands = bands;
  std::vector<DepthwisePlan::Task> tasks;
  for (int64_t image = 0; image < plan.batch; ++image) {
    for (int64_t band = 0; band < bands; ++band) {
      const int64_t first = plan.out[0] * band / bands, last = plan.out[0] * (band + 1) / bands;
      for (size_t panel = 0; panel < plan.panels.size(); ++panel)
        tasks.push_back({image, first, last, panel, band});
    }
  }
  for (size_t k = 0; k < tasks.size(); ++k) {
    plan.shares[k * static_cast<size_t>(threads) / tasks.size()].push_back(tasks[k]);
  }
}

/// Computes the means from the sums of all bands.
void MakeMeans(const DepthwisePlan& plan, const double* sums, float* means) {
  const double factor = 1.0 / static_cast<double>(plan.out[0] * plan.out[1]);
  const int64_t row = plan.Vectors() * plan.isa->lanes;
  for (int64_t image = 0; image < plan.batch; ++image) {
    for (int64_t channel = 0; channel < plan.channels; ++channel) {
      double sum = 0;
      for (int64_t band = 0; band < plan.bands; ++band)
        sum += sums[(band * plan.batch + image) * row + channel];
      means[image * plan.channels + channel] = static_cast<float>(sum * factor);
    }
  }
}

}  // namespace

int64_t DepthwisePlan::HeldFloats() const {
  int64_t widest = 0;
  for (const Panel& panel : panels) widest = std::max(widest, panel.vectors);
  return held * widest * in[1] * isa->lanes;
}

void CutDepthwise(DepthwisePlan& plan, int threads) {
  plan.kernel = KernelForPositions(*plan.isa, plan.out[1]);
  MakeTasks(plan, std::max(1, threads));
  if (plan.inputs == 0) {
    // A strip is a whole plane of one vector of channels where its rows are contiguous. Otherwise
    // it is short, so that neighboring elements of memory are read soon after each other.
    plan.held = 0;
    plan.strip = plan.src.d[2] == plan.isa->lanes ? plan.out[0]
                                                  : std::max<int64_t>(1, kSummed / plan.out[1]);
    return;
  }
  plan.held = 1;
  const int64_t row = plan.HeldFloats();
  plan.strip = 1;
  while (plan.strip < plan.out[0] && Reach(plan, plan.strip + 1) * row <= kHeldFloats) ++plan.strip;
  plan.held = Reach(plan, plan.strip);
}

void PackDepthwiseWeights(const DepthwisePlan& plan, const WeightView& weights,
                          const std::vector<double>& scale, float* to) {
  const int64_t lanes = plan.isa->lanes;
  const int64_t taps = plan.taps[0] * plan.taps[1];
  weights.Visit([&](const auto* values) {
    for (int64_t channel = 0; channel < plan.channels; ++channel) {
      const double factor = FactorOf(scale, channel);
      float* line = to + channel / lanes * taps * lanes + channel % lanes;
      for (int64_t tap = 0; tap < taps; ++tap)
        line[tap * lanes] = ScaledWeight(values[channel * taps + tap], factor);
    }
  });
}

void PackProductWeights(const DepthwisePlan& plan, const WeightView& weights,
                        const std::vector<double>& scale, float* to) {
  const int64_t lanes = plan.isa->lanes;
  const auto pack = [&](const auto* values, const DepthwisePlan::Panel& panel) {
    const int64_t width = panel.vectors * lanes;
    const int64_t first = panel.vector * lanes;
    for (int64_t k = 0; k < std::min(width, plan.channels - first); ++k) {
      const double factor = FactorOf(scale, first + k);
      const auto* from = values + (first + k) * plan.inputs;
      for (int64_t in = 0; in < plan.inputs; ++in)
        to[panel.weights + in * width + k] = ScaledWeight(from[in], factor);
    }
  };
  weights.Visit([&](const auto* values) {
    ParallelRange(static_cast<int64_t>(plan.panels.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t number = begin; number < end; ++number)
        pack(values, plan.panels[static_cast<size_t>(number)]);
    });
  });
}

void RunDepthwise(const DepthwisePlan& plan, const DepthwiseOperands& operands,
                  const WinogradEpilogue& product, const WinogradEpilogue& epilogue,
                  float* scratch) {
  const int64_t held = plan.HeldFloats();
  double* sums =
      reinterpret_cast<double*>(scratch + plan.HeldBytes() / static_cast<int64_t>(sizeof(float)));
  ParallelRange(static_cast<int64_t>(plan.shares.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t share = begin; share < end; ++share) {
      Rows rows(plan, operands, product, epilogue, scratch + share * held, sums);
      for (const DepthwisePlan::Task& task : plan.shares[static_cast<size_t>(share)])
        rows.Run(task);
    }
  });
  if (plan.averaged) MakeMeans(plan, sums, operands.means);
}

}  // namespace mendel::cpu
