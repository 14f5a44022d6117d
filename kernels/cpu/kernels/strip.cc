#include "kernels/cpu/kernels/strip.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kGatherGrain = 4;   // lines
constexpr int64_t kLine = 16;         // floats a cache line
constexpr int64_t kAskedLines = 128;  // cache lines under way while a column is gathered, roughly
constexpr int64_t kMostAhead = 8;

/// Floats between any two neighboring channels; 0 where they lie in blocks.
int64_t EqualStep(const StripTensor& tensor) { return tensor.block == 1 ? tensor.c : 0; }

}  // namespace

int64_t StripPlan::ScratchBytes() const { return scratch_ * static_cast<int64_t>(sizeof(float)); }

StripPlan::Line StripPlan::LineOf(const StripOperands& operands, int64_t line) const {
  const auto after =
      std::upper_bound(halos_.begin(), halos_.end(), line,
                       [](int64_t number, const Halo& halo) { return number < halo.first_line; });
  const Halo& halo = *(after - 1);
  const StripTerm& term = *halo.term;
  Line result;
  result.halo = &halo;
  result.number = line - halo.first_line;
  const int64_t y = result.number % halo.extent[1] + halo.begin[1];
  const int64_t z = result.number / halo.extent[1] % halo.extent[0] + halo.begin[0];
  const int64_t image = result.number / (halo.extent[1] * halo.extent[0]);
  const bool inside = y >= 0 && y < term.in[1] && z >= 0 && z < term.in[0];
  result.begin = inside ? std::clamp<int64_t>(-halo.begin[2], 0, halo.extent[2]) : halo.extent[2];
  result.end = std::clamp<int64_t>(term.in[2] - halo.begin[2], result.begin, halo.extent[2]);
  if (result.begin == result.end) return result;
  result.from = operands.sources[static_cast<size_t>(term.source)] + image * term.from.n +
                z * term.from.d[0] + y * term.from.d[1] +
                (result.begin + halo.begin[2]) * term.from.d[2];
  return result;
}

int64_t StripPlan::ChannelsOf(const Halo& halo) const {
  return problem_.groups * problem_.weights[static_cast<size_t>(halo.term->weights)].channels_in;
}

void StripPlan::PrefetchLine(const StripOperands& operands, int64_t line) const {
  const Line asked = LineOf(operands, line);
  const StripTensor& from = asked.halo->term->from;
  const int64_t channels = ChannelsOf(*asked.halo);
  const int64_t positions = asked.end - asked.begin;
  // Gathers runs of neighboring floats: the positions of a channel, or the channels of a position.
  const bool apart = from.block == 1 && from.c != 1;  // channels
  const bool by_channel = apart && from.d[2] < kLine;
  const int64_t side_by_side =
      apart ? 1 : std::min(channels, from.block == 1 ? channels : from.block);
  const int64_t inner = by_channel ? from.d[2] * (positions - 1) + 1 : side_by_side;
  for (int64_t c = 0; positions > 0 && c < channels; c += side_by_side) {
    for (int64_t p = 0; p < (by_channel ? 1 : positions); ++p) {
      const float* run = asked.from + from.Channel(c) + p * from.d[2];
      for (int64_t i = 0; i < inner; i += kLine) __builtin_prefetch(run + i);
      __builtin_prefetch(run + inner - 1);
    }
  }
}

void StripPlan::GatherLine(const StripOperands& operands, int64_t number, float* scratch) const {
  const Line line = LineOf(operands, number);
  const Halo& halo = *line.halo;
  const StripTensor& from = halo.term->from;
  float* to = scratch + halo.at + line.number * halo.extent[2] * halo.row;
  std::fill_n(to, line.begin * halo.row, 0.0f);
  std::fill_n(to + line.end * halo.row, (halo.extent[2] - line.end) * halo.row, 0.0f);
  if (line.begin == line.end) return;
  const int64_t channels = ChannelsOf(halo);
  to += line.begin * halo.row;
  if (from.block == 1) {
    problem_.isa->gather(line.from, from.c, from.d[2], channels, line.end - line.begin, to,
                         halo.row);
    return;
  }
  const float* source = line.from;
  for (int64_t x = line.begin; x < line.end; ++x, source += from.d[2], to += halo.row) {
    for (int64_t c = 0; c < channels; c += from.block) {
      std::copy_n(source + from.Channel(c), std::min(from.block, channels - c), to + c);
    }
  }
}

void StripPlan::GatherLines(const StripOperands& operands, int64_t begin, int64_t end,
                            float* scratch) const {
  // Lines of a column lie far apart: each is prefetched while the ones before it are gathered.
  int64_t asked = begin;
  for (int64_t line = begin; line < end; ++line) {
    const Halo& halo = *LineOf(operands, line).halo;
    const int64_t ahead = std::clamp<int64_t>(kAskedLines / ChannelsOf(halo), 1, kMostAhead);
    for (; asked < std::min(end, line + 1 + ahead); ++asked) {
      if (asked > line) PrefetchLine(operands, asked);
    }
    GatherLine(operands, line, scratch);
  }
}

void StripPlan::PrefetchRows(const StripOperands& operands, const Entry* entries, int64_t count,
                             const Panel& panel) const {
  const int64_t* steps = to_steps_.data() + panel.group * problem_.channels_out + panel.channel;
  const bool apart = EqualStep(problem_.to) > 1;
  const int64_t step = apart ? 1 : std::max<int64_t>(1, std::min(problem_.to.block, kLine));
  for (int64_t r = 0; r < count; ++r) {
    const Row& row = rows_[static_cast<size_t>(entries[r].row)];
    // Only the first and the last of neighboring positions are fetched: they are no more than a
    // cache line apart.
    if (apart && r > 0 && r + 1 < count && row.adjacent &&
        rows_[static_cast<size_t>(entries[r + 1].row)].adjacent)
      continue;
    for (int64_t c = 0; c < panel.channels; c += step)
      __builtin_prefetch(operands.to + row.to + steps[c], 1);
  }
}

StripRow StripPlan::RowOf(const StripOperands& operands, int64_t number, const Panel& panel,
                          PanelSteps& steps) const {
  const Row& row = rows_[static_cast<size_t>(number)];
  const size_t channel = static_cast<size_t>(panel.group * problem_.channels_out + panel.channel);
  StripRow out{};
  out.channels = panel.channels;
  out.positions = 1;
  out.to = operands.to + row.to + to_steps_[channel];
  out.to_steps = steps.to.data();
  out.to_step = EqualStep(problem_.to);
  if (row.residual == -1) return out;
  const std::vector<int64_t>& all = residual_steps_[static_cast<size_t>(row.box)];
  for (size_t c = 0; steps.residual_of != row.box && c < static_cast<size_t>(panel.channels); ++c) {
    steps.residual[c] = all[channel + c] - all[channel];
  }
  steps.residual_of = row.box;
  const bool in_place = row.residual == StripBox::kInPlace;
  const float* from =
      in_place ? operands.to : operands.residuals[static_cast<size_t>(row.residual)];
  out.residual = from + row.residual_from + all[channel];
  out.residual_steps = steps.residual.data();
  out.residual_step = in_place
                          ? out.to_step
                          : EqualStep(problem_.boxes[static_cast<size_t>(row.box)].residual_from);
  return out;
}

void StripPlan::FinishRows(const StripOperands& operands, const WinogradEpilogue& epilogue,
                           const Share& share, const Panel& panel, const float* sums) const {
  const int64_t channel = panel.group * problem_.channels_out + panel.channel;
  const int64_t width = panel.vectors * problem_.isa->lanes;
  PanelSteps steps;
  for (int64_t c = 0; c < panel.channels; ++c) {
    steps.to[static_cast<size_t>(c)] =
        to_steps_[static_cast<size_t>(channel + c)] - to_steps_[static_cast<size_t>(channel)];
  }
  for (int64_t r = share.begin; r < share.end;) {
    StripRow out = RowOf(operands, r, panel, steps);
    out.sums = sums + (r - share.begin) * width;
    out.sums_step = width;
    out.bias = epilogue.bias + channel;
    const bool apart = out.to_step > 1 && (out.residual == nullptr || out.residual_step > 1);
    while (apart && out.positions < kStripPositions && r + out.positions < share.end &&
           rows_[static_cast<size_t>(r + out.positions)].adjacent) {
      ++out.positions;
    }
    problem_.isa->finish(out, epilogue);
    r += out.positions;
  }
}

const float* StripPlan::WeightsOf(const StripOperands& operands, const Work& work,
                                  const Panel& panel) const {
  const StripWeights& w = problem_.weights[static_cast<size_t>(work.weights)];
  const int64_t lanes = problem_.isa->lanes;
  return operands.weights[static_cast<size_t>(work.weights)] +
         (panel.vectors_before * w.Taps() + work.tap * panel.vectors) * lanes * w.channels_in;
}

void StripPlan::RunWork(const StripOperands& operands, const Share& share, const Work& work,
                        const Panel& panel, const Ahead& ahead, const float* scratch,
                        float* sums) const {
  const StripWeights& w = problem_.weights[static_cast<size_t>(work.weights)];
  const int64_t width = panel.vectors * problem_.isa->lanes;
  const float* weights = WeightsOf(operands, work, panel);
  const int64_t count = static_cast<int64_t>(work.entries.size());
  const int64_t blocks = (count + kStripRows - 1) / kStripRows;  // blocks of nearly equal height
  // Each block requests its part of what follows.
  const int64_t steps = work.taps * w.channels_in;
  const int64_t lines = (ahead.lines + blocks * steps - 1) / (blocks * steps);
  const float* rows[kStripTaps * kStripRows];
  float* targets[kStripRows];
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = count * b / blocks;
    const int64_t height = count * (b + 1) / blocks - begin;
    for (int64_t r = 0; r < height; ++r) {
      const Entry& entry = work.entries[static_cast<size_t>(begin + r)];
      const int64_t* offsets =
          halos_[static_cast<size_t>(entry.halo)].tap_offsets.data() + work.tap;
      const float* from = scratch + entry.from + panel.group * w.channels_in;
      for (int64_t t = 0; t < work.taps; ++t) rows[t * kStripRows + r] = from + offsets[t];
      targets[r] = sums + (entry.row - share.begin) * width;
    }
    if (work.last_of_rows) PrefetchRows(operands, work.entries.data() + begin, height, panel);
    const int64_t asked = b * steps * lines;
    const bool more = asked < ahead.lines;
    problem_.isa->multiply(rows, height, work.taps, w.channels_in, weights, panel.vectors, targets,
                           more ? ahead.weights + asked * kLine : nullptr, more ? lines : 0);
  }
}

StripPlan::Ahead StripPlan::AheadOf(const StripOperands& operands, const Work& work,
                                    const Panel& panel) const {
  const int64_t floats = work.taps *
                         problem_.weights[static_cast<size_t>(work.weights)].channels_in *
                         panel.vectors * problem_.isa->lanes;
  return {WeightsOf(operands, work, panel), (floats + kLine - 1) / kLine};
}

void StripPlan::RunTask(const StripOperands& operands, const WinogradEpilogue& epilogue,
                        int64_t task, bool last, const float* scratch) const {
  const auto share_of = [&](int64_t number) -> const Share& {
    return shares_[static_cast<size_t>(number) % shares_.size()];
  };
  const auto panel_of = [&](int64_t number) -> const Panel& {
    return panels_[static_cast<size_t>(number) / shares_.size()];
  };
  const Share& share = share_of(task);
  const Panel& panel = panel_of(task);
  // Positions are finished some at a time, the last ones with the rest.
  alignas(64) float sums[(kShareRows + kStripPositions - 1) * kStripPanel];
  std::fill_n(sums,
              (share.end - share.begin + kStripPositions - 1) * panel.vectors * problem_.isa->lanes,
              0.0f);
  for (size_t k = 0; k < share.works.size(); ++k) {
    Ahead ahead;
    if (k + 1 < share.works.size()) {
      ahead = AheadOf(operands, share.works[k + 1], panel);
    } else if (!last && !share_of(task + 1).works.empty()) {
      ahead = AheadOf(operands, share_of(task + 1).works[0], panel_of(task + 1));
    }
    RunWork(operands, share, share.works[k], panel, ahead, scratch, sums);
  }
  FinishRows(operands, epilogue, share, panel, sums);
}

void StripPlan::Run(const StripOperands& operands, const WinogradEpilogue& epilogue,
                    float* scratch) const {
  ParallelRange(lines_, kGatherGrain,
                [&](int64_t begin, int64_t end) { GatherLines(operands, begin, end, scratch); });
  ParallelRange(static_cast<int64_t>(panels_.size() * shares_.size()), 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t task = begin; task < end; ++task)
                    RunTask(operands, epilogue, task, task + 1 == end, scratch);
                });
}

}  // namespace mendel::cpu
