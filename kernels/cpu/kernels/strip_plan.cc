// The plan that follows from a problem's geometry: panels, gathered positions, and the order in
// which weights are applied to rows.

#include <algorithm>
#include <set>
#include <utility>

#include "kernels/cpu/kernels/strip.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

// Channels times taps whose weights of a panel stay in the second-level cache.
constexpr int64_t kWorkDepth = 1024;
constexpr int64_t kLine = 16;  // floats a cache line
constexpr size_t kDims = 3;

/// A stride of an odd number of cache lines, so that neighboring positions fall into different
/// cache sets.
int64_t OddLines(int64_t floats) {
  const int64_t lines = (floats + kLine - 1) / kLine;
  return (lines + 1 - lines % 2) * kLine;
}

using Position = std::array<int64_t, kDims>;

/// Calls body(position) for all positions below `extent`, the last dimension fastest.
template <class Body>
void ForPositions(const Position& extent, const Body& body) {
  Position at{};
  for (at[0] = 0; at[0] < extent[0]; ++at[0]) {
    for (at[1] = 0; at[1] < extent[1]; ++at[1]) {
      for (at[2] = 0; at[2] < extent[2]; ++at[2]) body(at);
    }
  }
}

/// Does `tap` read a real position of dimension d for one of the outputs [begin, end)?
bool ReadsSomething(const StripTerm& term, size_t d, int64_t begin, int64_t end, int64_t tap) {
  for (int64_t p = begin; p < end; ++p) {
    const int64_t at = p * term.stride[d] - term.pad[d] + tap * term.step[d];
    if (at >= 0 && at < term.in[d]) return true;
  }
  return false;
}

}  // namespace

StripPlan::StripPlan(StripProblem problem, int threads) : problem_(std::move(problem)) {
  MakePanels();
  const int64_t channels = problem_.groups * problem_.channels_out;
  for (int64_t c = 0; c < channels; ++c) to_steps_.push_back(problem_.to.Channel(c));
  for (const StripBox& box : problem_.boxes) {
    const size_t first_halo = halos_.size();
    for (const StripTerm& term : box.terms) AddHalo(box, term);
    AddRows(box, first_halo);
  }
  // Entries of one halo are contiguous, so that a share finds its own by bisection.
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.halo < b.halo; });
  MakeShares(threads, entries_);
}

void StripPlan::MakePanels() {
  const StripIsa& isa = *problem_.isa;
  int64_t before = 0;
  for (int64_t group = 0; group < problem_.groups; ++group) {
    for (int64_t channel = 0; channel < problem_.channels_out;
         channel += isa.panel_vectors * isa.lanes) {
      Panel panel{group, channel, 0, 0, before};
      panel.channels =
          std::min<int64_t>(problem_.channels_out - channel, isa.panel_vectors * isa.lanes);
      panel.vectors = (panel.channels + isa.lanes - 1) / isa.lanes;
      before += panel.vectors;
      panels_.push_back(panel);
    }
  }
}

void StripPlan::AddHalo(const StripBox& box, const StripTerm& term) {
  const StripWeights& weights = problem_.weights[static_cast<size_t>(term.weights)];
  Halo halo;
  halo.term = &term;
  halo.images = box.images;
  int64_t positions = box.images;
  for (size_t d = 0; d < kDims; ++d) {
    int64_t begin = 0, end = weights.taps[d];
    while (begin < end && !ReadsSomething(term, d, 0, box.out[d], begin)) ++begin;
    while (end > begin && !ReadsSomething(term, d, 0, box.out[d], end - 1)) --end;
    halo.tap_begin[d] = begin;
    halo.tap_end[d] = end;
    halo.begin[d] = begin * term.step[d] - term.pad[d];
    halo.extent[d] =
        end == begin ? 0 : (box.out[d] - 1) * term.stride[d] + (end - begin - 1) * term.step[d] + 1;
    positions *= halo.extent[d];
  }
  halo.row = OddLines(problem_.groups * weights.channels_in);
  halo.at = scratch_;
  halo.first_line = lines_;
  ForPositions(weights.taps, [&](const Position& tap) {
    int64_t offset = 0;
    bool inside = positions > 0;
    for (size_t d = 0; d < kDims; ++d) {
      inside = inside && tap[d] >= halo.tap_begin[d] && tap[d] < halo.tap_end[d];
      offset = offset * halo.extent[d] + (tap[d] - halo.tap_begin[d]) * term.step[d];
    }
    halo.tap_offsets.push_back(inside ? offset * halo.row : -1);
  });
  scratch_ += positions * halo.row;
  if (positions > 0) lines_ += halo.images * halo.extent[0] * halo.extent[1];
  halos_.push_back(std::move(halo));
}

void StripPlan::AddRows(const StripBox& box, size_t first_halo) {
  residual_steps_.emplace_back();
  const StripTensor& residual =
      box.residual == StripBox::kInPlace ? problem_.to : box.residual_from;
  for (size_t c = 0; box.residual != -1 && c < to_steps_.size(); ++c) {
    residual_steps_.back().push_back(residual.Channel(static_cast<int64_t>(c)));
  }
  for (int64_t n = 0; n < box.images; ++n) {
    ForPositions(box.out, [&](const Position& at) {
      Row row{box.to + n * problem_.to.n, n * residual.n, box.residual,
              static_cast<int32_t>(residual_steps_.size() - 1), false};
      for (size_t d = 0; d < kDims; ++d) {
        row.to += at[d] * problem_.to.d[d];
        row.residual_from += at[d] * residual.d[d];
      }
      if (box.residual == StripBox::kInPlace) row.residual_from = row.to;
      row.adjacent =
          at[2] > 0 && problem_.to.d[2] == 1 && (box.residual == -1 || residual.d[2] == 1);
      for (size_t h = first_halo; h < halos_.size(); ++h) {
        const Halo& halo = halos_[h];
        if (halo.extent[0] * halo.extent[1] * halo.extent[2] == 0) continue;
        int64_t from = n;
        int64_t taps = 1;
        for (size_t d = 0; d < kDims; ++d) {
          from = from * halo.extent[d] + at[d] * halo.term->stride[d];
          int64_t reading = 0;
          for (int64_t tap = halo.tap_begin[d]; tap < halo.tap_end[d]; ++tap) {
            reading += ReadsSomething(*halo.term, d, at[d], at[d] + 1, tap) ? 1 : 0;
          }
          taps *= reading;
        }
        if (taps == 0) continue;
        const StripWeights& weights = problem_.weights[static_cast<size_t>(halo.term->weights)];
        flops_ += 2.0 * static_cast<double>(taps * weights.channels_in) *
                  static_cast<double>(to_steps_.size());
        entries_.push_back({halo.at + from * halo.row, static_cast<int32_t>(h),
                            static_cast<int32_t>(rows_.size())});
      }
      rows_.push_back(row);
    });
  }
}

void StripPlan::MakeShares(int threads, const std::vector<Entry>& entries) {
  const int64_t total = rows();
  const int64_t panels = static_cast<int64_t>(panels_.size());
  const int64_t for_threads = panels >= threads ? 1 : (threads + panels - 1) / panels;
  const int64_t count = std::max<int64_t>(
      {1, (total + kShareRows - 1) / kShareRows, std::min(for_threads, total / kStripRows)});
  for (int64_t s = 0; s < count; ++s)
    shares_.push_back({total * s / count, total * (s + 1) / count, {}});
  for (size_t w = 0; w < problem_.weights.size(); ++w) {
    const int64_t taps = problem_.weights[w].Taps();
    // Finds the halos that read each tap. Consecutive taps with the same readers are one piece of
    // work.
    const auto readers = [&](int64_t tap) {
      std::vector<int32_t> list;
      for (size_t h = 0; h < halos_.size(); ++h) {
        const bool reads = static_cast<size_t>(halos_[h].term->weights) == w &&
                           halos_[h].tap_offsets[static_cast<size_t>(tap)] >= 0;
        if (reads) list.push_back(static_cast<int32_t>(h));
      }
      return list;
    };
    const int64_t most =
        std::clamp<int64_t>(kWorkDepth / problem_.weights[w].channels_in, 1, kStripTaps);
    for (int64_t tap = 0; tap < taps;) {
      const std::vector<int32_t> list = readers(tap);
      int64_t end = tap + 1;
      while (end < taps && end - tap < most && readers(end) == list) ++end;
      for (Share& share : shares_) {
        Work work{static_cast<int>(w), tap, end - tap, {}};
        for (int32_t halo : list) {
          const auto less = [](const Entry& entry, const std::pair<int32_t, int64_t>& key) {
            return std::pair<int32_t, int64_t>(entry.halo, entry.row) < key;
          };
          const auto first =
              std::lower_bound(entries.begin(), entries.end(), std::pair(halo, share.begin), less);
          const auto last =
              std::lower_bound(first, entries.end(), std::pair(halo, share.end), less);
          work.entries.insert(work.entries.end(), first, last);
        }
        if (!work.entries.empty()) share.works.push_back(std::move(work));
      }
      tap = end;
    }
  }
  for (Share& share : shares_) MarkLastWorks(share);
}

void StripPlan::MarkLastWorks(Share& share) {
  std::set<int32_t> later;
  for (auto work = share.works.rbegin(); work != share.works.rend(); ++work) {
    for (const Entry& entry : work->entries)
      work->last_of_rows = later.insert(entry.row).second || work->last_of_rows;
  }
}

int64_t StripPlan::PackedFloats(int weights) const {
  const StripWeights& w = problem_.weights[static_cast<size_t>(weights)];
  return w.Taps() * w.channels_in * (panels_.back().vectors_before + panels_.back().vectors) *
         problem_.isa->lanes;
}

void StripPlan::Pack(int weights, const WeightView& values, const std::vector<double>& scale,
                     float* to) const {
  const StripWeights& w = problem_.weights[static_cast<size_t>(weights)];
  const int64_t lanes = problem_.isa->lanes;
  const auto pack = [&](const auto* from, const Panel& panel) {
    float* at = to + w.Taps() * w.channels_in * panel.vectors_before * lanes;
    for (int64_t tap = 0; tap < w.Taps(); ++tap) {
      for (int64_t k = 0; k < w.channels_in; ++k, at += panel.vectors * lanes) {
        for (int64_t c = 0; c < panel.channels; ++c) {
          const int64_t o = panel.group * problem_.channels_out + panel.channel + c;
          at[c] = ScaledWeight(from[(o * w.channels_in + k) * w.Taps() + tap], FactorOf(scale, o));
        }
        std::fill(at + panel.channels, at + panel.vectors * lanes, 0.0f);
      }
    }
  };
  values.Visit([&](const auto* from) {
    ParallelRange(static_cast<int64_t>(panels_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) pack(from, panels_[static_cast<size_t>(k)]);
    });
  });
}

}  // namespace mendel::cpu
