#include "kernels/cpu/kernels/integer_panels.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace mendel::cpu {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kMostLanes = 2 * kMostPanel;  ///< sums in 16 bits of an entry

int64_t Ceil(int64_t value, int64_t unit) { return (value + unit - 1) / unit; }
int64_t RoundUp(int64_t value, int64_t unit) { return Ceil(value, unit) * unit; }

/// Bundles of a chunk, stored with it.
struct Sections {
  int32_t fours, threes, twos, ones;
};

using Entry = std::array<int8_t, kMostPanel * kQuad>;
using Weights = std::array<int16_t, kMostPanel * kQuad>;

/// The largest weights that the lanes of some entries add up to, positive and negative apart.
struct Load {
  std::array<int16_t, kMostLanes> positive{}, negative{};

  void Add(const Entry& entry, int64_t lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      for (int64_t k = 2 * lane; k < 2 * lane + 2; ++k) {
        const int16_t weight = entry[static_cast<size_t>(k)];
        int16_t& load =
            weight > 0 ? positive[static_cast<size_t>(lane)] : negative[static_cast<size_t>(lane)];
        load = static_cast<int16_t>(load + std::abs(weight));
      }
    }
  }
  bool Fits(const Load& other, int64_t lanes) const {
    for (int64_t begin = 0; begin < lanes; begin += 8) {
      int16_t most = 0;
      for (int64_t k = begin; k < begin + 8; ++k) {
        const auto lane = static_cast<size_t>(k);
        most = std::max<int16_t>(
            most, std::max<int16_t>(static_cast<int16_t>(positive[lane] + other.positive[lane]),
                                    static_cast<int16_t>(negative[lane] + other.negative[lane])));
      }
      if (most > kMostWeight) return false;
    }
    return true;
  }
  void Add(const Load& other, int64_t lanes) {
    for (size_t lane = 0; lane < static_cast<size_t>(lanes); ++lane) {
      positive[lane] = static_cast<int16_t>(positive[lane] + other.positive[lane]);
      negative[lane] = static_cast<int16_t>(negative[lane] + other.negative[lane]);
    }
  }
};

/// Reads the weights of one panel, quad by quad.
class PanelReader {
 public:
  PanelReader(const StoredIntegers& stored, int64_t group, int64_t column, int64_t panel)
      : s_(stored),
        first_(group * stored.outputs + column),
        columns_(std::min(panel, stored.outputs - column)) {}

  /// Zeros where there is no column, and after the end of a run.
  Weights Read(int64_t quad) const {
    Weights weights{};
    const int64_t begin = quad % s_.RunQuads() * kQuad;
    for (int64_t k = 0; k < std::min(kQuad, s_.run - begin); ++k) {
      const int64_t d = quad / s_.RunQuads() * s_.run + begin + k;
      const int16_t* const from =
          s_.weights + d % s_.inputs * s_.input_step + d / s_.inputs * s_.tap_step;
      for (int64_t c = 0; c < columns_; ++c)
        weights[static_cast<size_t>(c * kQuad + k)] = from[(first_ + c) * s_.channel_step];
    }
    return weights;
  }

 private:
  const StoredIntegers& s_;
  int64_t first_, columns_;
};

/// Moves as much as one entry may hold from `weights` to the result.
Entry TakeEntry(Weights& weights) {
  Entry entry;
  for (size_t k = 0; k < entry.size(); k += 2) {
    int positive = kMostWeight, negative = -kMostWeight;
    for (const size_t one : {k, k + 1}) {
      const int taken = std::clamp<int>(weights[one], negative, std::min(positive, 127));
      (taken > 0 ? positive : negative) -= taken;
      entry[one] = static_cast<int8_t>(taken);
      weights[one] = static_cast<int16_t>(weights[one] - taken);
    }
  }
  return entry;
}

bool IsZero(const Weights& weights) {
  return std::all_of(weights.begin(), weights.end(), [](int16_t weight) { return weight == 0; });
}

/// The entries of a chunk, in bundles.
class Bundler {
 public:
  explicit Bundler(int64_t panel) : lanes_(2 * panel) {}

  void Add(int32_t quad, const Entry& entry) {
    Load load;
    load.Add(entry, lanes_);
    const auto number = static_cast<int32_t>(entries_.size());
    entries_.push_back({quad, entry});
    for (size_t k = 0; k < open_.size(); ++k) {
      Bundle& bundle = open_[k];
      if (!bundle.load.Fits(load, lanes_)) continue;
      bundle.load.Add(load, lanes_);
      bundle.entries.push_back(number);
      if (bundle.entries.size() == 4) Close(k);
      return;
    }
    if (open_.size() == kOpen) Close(0);
    open_.push_back({load, {number}});
  }

  /// Writes weights, quads and Sections.
  void Store(std::byte* to, int64_t panel) {
    while (!open_.empty()) Close(0);
    const size_t size = static_cast<size_t>(panel * kQuad);
    auto* quads = reinterpret_cast<int32_t*>(to + entries_.size() * size);
    for (const std::vector<int32_t>* list : {&fours_, &threes_, &twos_, &ones_}) {
      for (const int32_t number : *list) {
        const auto& [quad, entry] = entries_[static_cast<size_t>(number)];
        std::memcpy(to, entry.data(), size);
        *quads++ = quad;
        to += size;
      }
    }
    const Sections sections{
        static_cast<int32_t>(fours_.size() / 4), static_cast<int32_t>(threes_.size() / 3),
        static_cast<int32_t>(twos_.size() / 2), static_cast<int32_t>(ones_.size())};
    std::memcpy(quads, &sections, sizeof(sections));
  }

 private:
  static constexpr size_t kOpen = 16;
  struct Bundle {
    Load load;
    std::vector<int32_t> entries;
  };

  void Close(size_t k) {
    const std::vector<int32_t> entries = std::move(open_[k].entries);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(k));
    std::vector<int32_t>* const lists[] = {&ones_, &twos_, &threes_, &fours_};
    std::vector<int32_t>& list = *lists[entries.size() - 1];
    list.insert(list.end(), entries.begin(), entries.end());
  }

  int64_t lanes_;
  std::vector<std::pair<int32_t, Entry>> entries_;
  std::vector<Bundle> open_;
  std::vector<int32_t> fours_, threes_, twos_, ones_;
};

/// Calls use(quad, entry) for the entries of a chunk.
template <class Use>
void ForEachEntry(const PanelReader& reader, int64_t block, int64_t quads, const Use& use) {
  const int64_t end = std::min((block + 1) * kBlockQuads, quads);
  for (int64_t quad = block * kBlockQuads; quad < end; ++quad) {
    Weights weights = reader.Read(quad);
    do {
      use(quad, TakeEntry(weights));
    } while (!IsZero(weights));
  }
}

}  // namespace

int64_t WeightSumBytes(int64_t channels, int64_t panel) {
  return RoundUp((RoundUp(channels, panel) + panel) * static_cast<int64_t>(sizeof(int32_t)), kLine);
}

void StoreWeightSums(const StoredIntegers& stored, int32_t* to) {
  for (int64_t c = 0; c < stored.groups * stored.outputs; ++c) {
    to[c] = 0;
    for (int64_t d = 0; d < stored.Depth(); ++d)
      to[c] += stored.weights[c * stored.channel_step + d % stored.inputs * stored.input_step +
                              d / stored.inputs * stored.tap_step];
  }
}

IntegerPanels::IntegerPanels(const StoredIntegers& stored, int64_t panel,
                             std::vector<int32_t> quads)
    : outputs_(stored.outputs),
      panel_(panel),
      panels_(Ceil(stored.outputs, panel)),
      blocks_(Ceil(stored.Quads(), kBlockQuads)),
      bytes_(WeightSumBytes(stored.groups * stored.outputs, panel)),
      quads_(std::move(quads)) {
  for (int64_t group = 0; group < stored.groups; ++group) {
    for (int64_t p = 0; p < panels_; ++p) {
      const PanelReader reader(stored, group, p * panel, panel);
      for (int64_t block = 0; block < blocks_; ++block) {
        Place place{bytes_, 0};
        ForEachEntry(reader, block, stored.Quads(),
                     [&](int64_t, const Entry&) { ++place.entries; });
        places_.push_back(place);
        bytes_ += RoundUp(place.entries * (panel * kQuad + static_cast<int64_t>(sizeof(int32_t))) +
                              static_cast<int64_t>(sizeof(Sections)),
                          kLine);
      }
    }
  }
}

void IntegerPanels::Pack(const StoredIntegers& stored, std::byte* to) const {
  std::memset(to, 0, static_cast<size_t>(bytes_));
  StoreWeightSums(stored, reinterpret_cast<int32_t*>(to));
  for (int64_t group = 0; group < stored.groups; ++group) {
    for (int64_t p = 0; p < panels_; ++p) {
      const PanelReader reader(stored, group, p * panel_, panel_);
      for (int64_t block = 0; block < blocks_; ++block) {
        Bundler bundler(panel_);
        ForEachEntry(reader, block, stored.Quads(), [&](int64_t quad, const Entry& entry) {
          bundler.Add(quads_[static_cast<size_t>(quad)], entry);
        });
        bundler.Store(to + places_[Number(group, p * panel_, block)].offset, panel_);
      }
    }
  }
}

IntegerChunk IntegerPanels::ChunkAt(const std::byte* packed, int64_t group, int64_t column,
                                    int64_t block) const {
  const Place& place = places_[Number(group, column, block)];
  IntegerChunk chunk;
  chunk.columns = std::min(panel_, outputs_ - column);
  chunk.weights = reinterpret_cast<const int8_t*>(packed + place.offset);
  chunk.quads = reinterpret_cast<const int32_t*>(chunk.weights + place.entries * panel_ * kQuad);
  Sections sections;
  std::memcpy(&sections, chunk.quads + place.entries, sizeof(sections));
  chunk.fours = sections.fours;
  chunk.threes = sections.threes;
  chunk.twos = sections.twos;
  chunk.ones = sections.ones;
  return chunk;
}

}  // namespace mendel::cpu
