#include "kernels/cuda/tiled/candidate.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/tiled/tensor_cores.h"

namespace mendel::cuda {
namespace {

constexpr int64_t kRegisters = 65536, kMostRegisters = 255;  // of a multiprocessor, of a thread
constexpr int64_t kOtherRegisters = 48;                      // indices and addresses

constexpr Tile kTiles[] = {
    {128, 128, 8, 8, 8}, {128, 64, 8, 8, 4}, {64, 128, 8, 4, 8}, {64, 64, 16, 4, 4},
    {64, 32, 16, 4, 2},  {32, 64, 16, 2, 4}, {32, 32, 32, 2, 2}, {16, 64, 32, 2, 4},
    {16, 32, 32, 1, 2},  {8, 128, 16, 2, 4}, {1, 128, 16, 1, 1},
};

// A warp's part of a block is 8 * thread rows x 4 * thread columns.
constexpr Tile kTensorCoreTiles[] = {
    {128, 128, 16, 8, 8}, {128, 64, 16, 4, 8}, {64, 128, 16, 8, 4}, {64, 64, 32, 4, 4},
    {64, 32, 32, 4, 4},   {32, 64, 32, 4, 4},  {32, 32, 32, 2, 4},  {16, 64, 32, 2, 4},
};

int64_t RegistersOf(const TiledCandidate& candidate, int64_t real_bytes) {
  const Tile& tile = candidate.tile;
  const int64_t products = candidate.products();
  const int64_t sums = products * tile.thread_rows * tile.thread_columns;
  int64_t factors = tile.thread_rows + tile.thread_columns;
  // One step of tensor cores takes two numbers of 16 bits a register, or one of tf32.
  if (candidate.tensor_cores.has_value())
    factors = 2 * tile.thread_rows + products * tile.thread_columns;
  const int64_t fetched =
      CeilDiv((tile.rows + products * tile.columns) * tile.depth, tile.threads());
  const int64_t statistics =
      candidate.fusion == TiledFusion::kRows ? CeilDiv(tile.rows * tile.depth, tile.threads()) : 0;
  return (sums + factors + fetched + statistics) * real_bytes / 4 + kOtherRegisters;
}

/// Checks the limits that tensor cores add.
absl::Status CheckTensorCores(const TiledCandidate& candidate, int64_t real_bytes) {
  const Tile& tile = candidate.tile;
  const TensorCores& cores = *FindTensorCores(*candidate.tensor_cores);
  const std::string_view name = NumericsName(cores.numerics);
  if (real_bytes != 4) return InvalidInput("tensor cores of ", name, " multiply f32, f16 and bf16");
  if (candidate.fusion == TiledFusion::kChain)
    return InvalidInput("chains of products are not computed by tensor cores");
  if (tile.thread_rows % 2 != 0 || tile.thread_columns % 2 != 0) {
    return InvalidInput("by tensor cores a thread computes 2, 4 or 8 rows and columns");
  }
  if (tile.rows < kWarpRows * tile.thread_rows ||
      tile.columns < kWarpColumns * tile.thread_columns) {
    return InvalidInput("a warp of ", kWarpRows, " x ", kWarpColumns,
                        " threads has more than its block");
  }
  if (tile.depth % cores.depth == 0) return absl::OkStatus();
  return InvalidInput("a depth of ", tile.depth, ", where tensor cores of ", name, " take ",
                      cores.depth, " products at a time");
}

absl::Status CheckLimits(const TiledCandidate& candidate, int64_t real_bytes) {
  const Tile& tile = candidate.tile;
  const auto is_power = [](int value, int most) {
    return value >= 1 && value <= most && (value & (value - 1)) == 0;
  };
  if (!is_power(tile.rows, 256) || !is_power(tile.columns, 256) || !is_power(tile.depth, 64)) {
    return InvalidInput(
        "a block computes 1 to 256 rows and columns, 1 to 64 products at a time, powers of two");
  }
  if (!is_power(tile.thread_rows, 8) || !is_power(tile.thread_columns, 8)) {
    return InvalidInput("a thread computes 1 to 8 rows and columns, powers of two");
  }
  if (tile.rows < tile.thread_rows || tile.columns < tile.thread_columns)
    return InvalidInput("a thread has more than its block");
  if (candidate.fusion == TiledFusion::kChain && !is_power(candidate.parts, kMostPartsOfChain)) {
    return InvalidInput("a chain has 1 to ", kMostPartsOfChain, " parts, a power of two");
  }
  if (candidate.fusion == TiledFusion::kChain && candidate.asynchronous)
    return InvalidInput("chains copy nothing asynchronously");
  if (candidate.tensor_cores.has_value())
    MENDEL_RETURN_IF_ERROR(CheckTensorCores(candidate, real_bytes));
  const int threads = tile.threads();
  if (threads < 32 || threads > 1024)
    return InvalidInput(threads, " threads a block, not 32 to 1,024");
  const int64_t shared = SharedElements(candidate) * real_bytes;
  if (shared > kMostShared)
    return InvalidInput(shared, " bytes of shared memory, more than ", kMostShared);
  if (candidate.parts < 1 || candidate.parts > kMostParts) {
    return InvalidInput(candidate.parts, " parts of a sum, not 1 to ", kMostParts);
  }
  const int64_t registers = RegistersOf(candidate, real_bytes),
                most = std::min(kMostRegisters, kRegisters / threads);
  if (registers > most)
    return InvalidInput("about ", registers, " registers a thread, more than ", most);
  return absl::OkStatus();
}

/// Parses "4x2x1" into `numbers`; false for other text or another number of them.
bool ParseExtents(std::string_view text, std::span<int* const> numbers) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (k > 0 && (at == end || *at++ != 'x')) return false;
    const auto [rest, error] = std::from_chars(at, end, *numbers[k]);
    if (error != std::errc()) return false;
    at = rest;
  }
  return at == end;
}

int64_t BlocksOf(const Tile& tile, const ProductExtents& extents) {
  return extents.batch * CeilDiv(extents.rows, tile.rows) * CeilDiv(extents.columns, tile.columns);
}

constexpr double kBytesACycle = 24;  // of a multiprocessor

/// Clock cycles to total the parts of sums, roughly: a launch, and the parts written and read
/// again.
double CyclesOfTotals(const TiledCandidate& candidate, const ProductExtents& extents,
                      int64_t real_bytes, int multiprocessors) {
  constexpr double kLaunch = 3000;
  const double sums =
      static_cast<double>(candidate.products() * extents.batch * extents.rows * extents.columns);
  return kLaunch + 2 * candidate.parts * sums * static_cast<double>(real_bytes) /
                       (kBytesACycle * multiprocessors);
}

/// Clock cycles of a multiprocessor for a block's products, roughly: arithmetic, and factors from
/// shared memory.
double ArithmeticCycles(const TiledCandidate& candidate, double products) {
  constexpr double kProductsACycle = 128;
  const Tile& tile = candidate.tile;
  const double sums = tile.thread_rows * tile.thread_columns,
               factors = tile.thread_rows + tile.thread_columns;
  if (!candidate.tensor_cores.has_value())
    return products / kProductsACycle * (1 + factors / (2 * sums));
  // A thread reads a fourth of its warp's factors, and shared memory serves one read of a warp a
  // cycle.
  const double warp_sums = kWarpThreads * sums,
               reads = (tile.thread_rows + tile.thread_columns / 2.0) / 4;
  const TensorCores& cores = *FindTensorCores(*candidate.tensor_cores);
  return std::max(products / cores.products, products / warp_sums * reads / cores.word_products);
}

/// Clock cycles of all launches of a candidate that is no chain.
double CyclesOfProduct(const TiledCandidate& candidate, const ProductExtents& extents,
                       int64_t real_bytes, int multiprocessors) {
  const Tile& tile = candidate.tile;
  const int64_t steps = CeilDiv(CeilDiv(extents.depth, tile.depth), candidate.parts);
  const int64_t blocks = candidate.parts * BlocksOf(tile, extents);
  const double products =
      static_cast<double>(candidate.products() * steps * tile.depth) * tile.rows * tile.columns;
  double bytes = static_cast<double>((tile.rows + candidate.products() * tile.columns) * steps *
                                     tile.depth * real_bytes);
  // Statistics read whole rows two or three times, whatever part of the sums is the block's; from
  // near caches.
  if (candidate.fusion == TiledFusion::kRows)
    bytes += static_cast<double>(2 * tile.rows * extents.depth * real_bytes);
  const double summing =
      CyclesOf(candidate, {blocks, products, bytes, steps, SharedElements(candidate) * real_bytes},
               real_bytes, multiprocessors);
  return candidate.parts == 1
             ? summing
             : summing + CyclesOfTotals(candidate, extents, real_bytes, multiprocessors);
}

bool IsMostlyPadding(const Tile& tile, const ProductExtents& extents) {
  constexpr int64_t kMostPadding = 8;
  const int64_t rows = CeilDiv(extents.rows, tile.rows) * tile.rows;
  const int64_t columns = CeilDiv(extents.columns, tile.columns) * tile.columns;
  return rows * columns > kMostPadding * extents.rows * extents.columns;
}

/// `whole`, divided into the power of two of parts that costs least. `whole` itself if no
/// multiprocessor would be idle or no division costs less.
TiledCandidate BestDivided(const TiledCandidate& whole, const ProductExtents& extents,
                           int multiprocessors,
                           const std::function<double(const TiledCandidate&)>& cycles) {
  constexpr int64_t kStepsOfPart = 4;  // below, what a block begins with would cost as much
  constexpr int kMostOffered = 32;
  TiledCandidate best = whole;
  if (BlocksOf(whole.tile, extents) >= multiprocessors) return best;
  for (int parts = 2;
       parts <= kMostOffered && CeilDiv(extents.depth, whole.tile.depth) >= parts * kStepsOfPart;
       parts *= 2) {
    TiledCandidate divided = whole;
    divided.parts = parts;
    if (cycles(divided) < cycles(best)) best = divided;
  }
  return best;
}

}  // namespace

bool TiledCandidate::operator==(const TiledCandidate& other) const {
  const auto key = [](const TiledCandidate& c) {
    return std::tuple(c.tile.rows, c.tile.columns, c.tile.depth, c.tile.thread_rows,
                      c.tile.thread_columns, c.fusion, c.parts, c.tensor_cores, c.asynchronous);
  };
  return key(*this) == key(other);
}

std::string CandidateName(const TiledCandidate& candidate) {
  const Tile& tile = candidate.tile;
  const char* const fusions[] = {"", ":pair", ":rows", ":chain"};
  const std::string cores =
      candidate.tensor_cores.has_value() ? Cat("-", NumericsName(*candidate.tensor_cores)) : "";
  return Cat("tile", cores, ":", tile.rows, "x", tile.columns, "x", tile.depth, ":",
             tile.thread_rows, "x", tile.thread_columns,
             fusions[static_cast<size_t>(candidate.fusion)], candidate.asynchronous ? ":async" : "",
             candidate.parts == 1
                 ? ""
                 : Cat(candidate.fusion == TiledFusion::kChain ? "" : ":split", candidate.parts));
}

absl::StatusOr<TiledCandidate> ParseCandidate(std::string_view name, int64_t real_bytes) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = name;;) {
    const size_t colon = rest.find(':');
    parts.push_back(rest.substr(0, colon));
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  TiledCandidate candidate;
  Tile& tile = candidate.tile;
  constexpr std::string_view kSplit = "split";
  if (parts.back().substr(0, kSplit.size()) == kSplit) {
    const std::array number = {&candidate.parts};
    if (ParseExtents(parts.back().substr(kSplit.size()), number)) parts.pop_back();
  }
  candidate.asynchronous = parts.back() == "async";
  if (candidate.asynchronous) parts.pop_back();
  if (parts.size() == 4 && parts[3] == "pair") candidate.fusion = TiledFusion::kPair;
  if (parts.size() == 4 && parts[3] == "rows") candidate.fusion = TiledFusion::kRows;
  candidate.tensor_cores = TensorCoresOf(name);
  bool is_part = true;
  if (constexpr std::string_view kChain = "chain";
      parts.size() == 4 && parts[3].substr(0, kChain.size()) == kChain) {
    candidate.fusion = TiledFusion::kChain;
    const std::array number = {&candidate.parts};
    if (parts[3] != kChain) is_part = ParseExtents(parts[3].substr(kChain.size()), number);
  }
  const size_t known = candidate.fusion == TiledFusion::kNone ? 3 : 4;
  const std::array block = {&tile.rows, &tile.columns, &tile.depth};
  const std::array thread = {&tile.thread_rows, &tile.thread_columns};
  // The candidate's name must be the text that was read: a candidate has one name.
  if (!is_part || parts.size() != known || !ParseExtents(parts[1], block) ||
      !ParseExtents(parts[2], thread) || CandidateName(candidate) != name) {
    return InvalidInput(
        "no name of a tiled kernel, as 'tile:64x64x16:4x4' and 'tile-tf32:64x64x16:4x4' are");
  }
  MENDEL_RETURN_IF_ERROR(CheckLimits(candidate, real_bytes));
  return candidate;
}

double CyclesOf(const TiledCandidate& candidate, const BlockWork& work, int64_t real_bytes,
                int multiprocessors) {
  constexpr double kLatency = 500;  // of a read of global memory
  const Tile& tile = candidate.tile;
  const int64_t threads = tile.threads();
  const int64_t resident =
      std::max<int64_t>(1, std::min({2048 / threads, (100 << 10) / work.shared,
                                     kRegisters / (RegistersOf(candidate, real_bytes) * threads)}));
  const int64_t together = std::min<int64_t>(resident, CeilDiv(work.blocks, multiprocessors));
  const int64_t waves = CeilDiv(work.blocks, together * multiprocessors);
  const double arithmetic = ArithmeticCycles(candidate, work.products);
  return static_cast<double>(waves) *
         std::max({static_cast<double>(together) * arithmetic,
                   static_cast<double>(together) * work.bytes / kBytesACycle,
                   static_cast<double>(work.steps) * kLatency});
}

std::span<const Tile> OfferedTiles(std::optional<Numerics> tensor_cores) {
  if (tensor_cores.has_value()) return kTensorCoreTiles;
  return kTiles;
}

/// Tensor cores' factors are read by eight rows or columns of four products each: 8 more make 32
/// different banks of them.
int TilePadding(const TiledCandidate& candidate) {
  return candidate.tensor_cores.has_value() ? 8 : kTilePadding;
}

int64_t SharedElements(const TiledCandidate& candidate) {
  const Tile& tile = candidate.tile;
  const int words = tile.depth / (candidate.tensor_cores.has_value()
                                      ? FindTensorCores(*candidate.tensor_cores)->word_products
                                      : 1);
  const auto elements = [&](int across) {
    return WholePacks(int64_t{2} * words * (across + TilePadding(candidate)));
  };
  const int64_t tiles = elements(tile.rows) + candidate.products() * elements(tile.columns);
  return candidate.fusion == TiledFusion::kRows ? std::max<int64_t>(tiles, tile.threads()) : tiles;
}

std::vector<TiledCandidate> RankedCandidates(const ProductExtents& extents, int64_t real_bytes,
                                             std::span<const TiledFusion> fusions,
                                             int multiprocessors,
                                             std::optional<Numerics> tensor_cores) {
  constexpr size_t kMostOfAFusion = 2;
  constexpr double kHopeless = 4;  // times the best
  std::vector<TiledCandidate> offered;
  const auto offer = [&](TiledFusion fusion, size_t most) {
    std::vector<std::pair<double, TiledCandidate>> ranked;
    for (const Tile& tile : OfferedTiles(tensor_cores)) {
      const TiledCandidate candidate{tile, fusion, 1, tensor_cores};
      if (IsMostlyPadding(tile, extents) || !CheckLimits(candidate, real_bytes).ok()) continue;
      const auto cycles = [&](const TiledCandidate& one) {
        return CyclesOfProduct(one, extents, real_bytes, multiprocessors);
      };
      ranked.emplace_back(cycles(candidate), candidate);
      const TiledCandidate divided = BestDivided(candidate, extents, multiprocessors, cycles);
      if (divided.parts > 1) ranked.emplace_back(cycles(divided), divided);
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t k = 0; k < std::min(most, ranked.size()); ++k) {
      if (ranked[k].first <= kHopeless * ranked[0].first) offered.push_back(ranked[k].second);
    }
  };
  for (const TiledFusion fusion : fusions) offer(fusion, kMostOfAFusion);
  offer(TiledFusion::kNone, std::min<size_t>(4, kMostCandidates - offered.size()));
  return offered;
}

}  // namespace mendel::cuda
