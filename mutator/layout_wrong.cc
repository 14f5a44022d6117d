// Wrong elements of a region in a layout, one dimension at a time: windows are products of ranges,
// so an output element is wrong when its position along some dimension is.

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/status.h"
#include "mutator/layout.h"
#include "mutator/parallel.h"
#include "mutator/region.h"

namespace mendel {
namespace {

/// The content of a place of a slot: the value it stands for, another value, zero where it stands
/// for nothing, or anything where it stands for nothing.
enum class Held : uint8_t { kRight, kWrong, kZero, kJunk };

/// One dimension of one node's value in the layout: `parts` entries of the batch with `extent`
/// places each.
struct Line {
  int64_t parts = 1;
  int64_t extent = 0;
  std::vector<int64_t>
      owner;  ///< image * extents + position that the place stands for; -1: nothing
  std::vector<Held> held;
  bool uneven = false;  ///< some channels only are as wrong as `held` says

  size_t At(int64_t part, int64_t place) const {
    return static_cast<size_t>(part * extent + place);
  }
};

struct Dimension {
  const Graph& region;
  const Layout& layout;
  const std::vector<LaidOutNode>& plan;
  size_t d;
  int64_t images;  ///< present in a tile (batch to space)

  Line EmptyLine(const LaidOutNode& node) const {
    const int64_t factor = layout.factors[d], extents = node.extents[d], slot = node.slots[d];
    const bool in_batch =
        layout.move == Move::kSpaceToBatch || layout.move == Move::kResiduesToBatch;
    Line line;
    line.parts = in_batch ? factor : 1;
    line.extent = in_batch ? slot : factor * slot;
    line.owner.assign(static_cast<size_t>(factor * slot), -1);
    line.held.assign(line.owner.size(), Held::kZero);
    for (int64_t image = 0; image < (layout.move == Move::kBatchToSpace ? images : 1); ++image) {
      for (int64_t p = 0; p < extents; ++p) {
        int64_t place = image * slot + p;  // stripes lie one behind the other, too
        if (layout.move == Move::kResiduesToBatch || layout.move == Move::kResiduesStacked)
          place = p % factor * slot + p / factor;
        line.owner[static_cast<size_t>(place)] = image * extents + p;
        line.held[static_cast<size_t>(place)] = Held::kRight;
      }
    }
    return line;
  }

  Line Windowed(int32_t id, const Line& input) const {
    const Node& node = region.node(id);
    const LaidOutNode& here = plan[static_cast<size_t>(id)];
    const Window original = WindowsOfNode(region, id)[d];
    const Window& window = here.windows[d];
    const bool conv = node.op->name == "Conv";
    const bool zero_is_padding =
        conv || (node.op->name == "AveragePool" && node.attrs.Int("count_include_pad") == 1);
    const bool zero_stays = !(conv && node.inputs.size() > 2);
    Line line = EmptyLine(here);
    line.uneven = input.uneven && !(conv && node.attrs.Int("group") == 1);
    for (int64_t part = 0; part < line.parts; ++part) {
      for (int64_t place = 0; place < line.extent; ++place) {
        const size_t at = line.At(part, place);
        const int64_t position = line.owner[at] % std::max<int64_t>(1, here.extents[d]);
        const int64_t image = line.owner[at] / std::max<int64_t>(1, here.extents[d]);
        bool right = true, zero = zero_stays;
        for (int64_t tap = 0; tap < window.kernel; ++tap) {
          const int64_t read = window.Position(place, tap);
          const bool padding = read < 0 || read >= input.extent;
          const size_t source = padding ? 0 : input.At(part, read);
          zero = zero && (padding || input.held[source] == Held::kZero);
          if (line.owner[at] < 0) continue;
          const int64_t wanted = original.Position(position, tap);
          if (wanted < 0 || wanted >= original.input) {
            right = right && (padding || (zero_is_padding && input.held[source] == Held::kZero));
          } else {
            right = right && !padding && input.held[source] == Held::kRight &&
                    input.owner[source] == image * original.input + wanted;
          }
        }
        if (line.owner[at] >= 0) {
          line.held[at] = right ? Held::kRight : Held::kWrong;
        } else {
          line.held[at] = zero ? Held::kZero : Held::kJunk;
        }
      }
    }
    return line;
  }

  Line Combined(int32_t id, const std::vector<Line>& lines) const {
    static const auto* zero_stays =
        new std::vector<std::string_view>{"Relu", "Add", "Sub", "Mul", "Neg", "Concat"};
    const Node& node = region.node(id);
    Line line = EmptyLine(plan[static_cast<size_t>(id)]);
    bool constants = false, first = true;
    std::vector<Held> before;
    for (ValueId value : node.inputs) {
      if (IsWeight(region, value)) {
        constants = true;
        continue;
      }
      const Line& input = lines[static_cast<size_t>(value.node)];
      line.uneven = line.uneven || input.uneven ||
                    (!first && node.op->name == "Concat" && input.held != before);
      before = input.held;
      for (size_t at = 0; at < line.held.size(); ++at) {
        if (input.held[at] == Held::kWrong || input.held[at] == Held::kJunk)
          line.held[at] = input.held[at];
      }
      first = false;
    }
    const bool stays =
        std::find(zero_stays->begin(), zero_stays->end(), node.op->name) != zero_stays->end() &&
        (!constants || node.op->name == "Mul");
    for (size_t at = 0; at < line.held.size(); ++at) {
      if (line.held[at] == Held::kZero && line.owner[at] < 0 && !stays) line.held[at] = Held::kJunk;
    }
    return line;
  }

  /// wrong[image * extents + position], an entry an output of the region.
  absl::StatusOr<std::vector<std::vector<bool>>> Wrong() const {
    std::vector<Line> lines(plan.size());
    for (size_t i = 0; i < plan.size(); ++i) {
      const int32_t id = static_cast<int32_t>(i);
      if (plan[i].extents.empty()) continue;
      if (IsInput(region.node(id))) {
        lines[i] = EmptyLine(plan[i]);
        continue;
      }
      lines[i] = plan[i].windows.empty()
                     ? Combined(id, lines)
                     : Windowed(id, lines[static_cast<size_t>(region.node(id).inputs[0].node)]);
      if (!layout.gaps) continue;
      for (size_t at = 0; at < lines[i].held.size(); ++at) {
        if (lines[i].owner[at] < 0) lines[i].held[at] = Held::kZero;
      }
    }
    std::vector<std::vector<bool>> wrong;
    for (const GraphOutput& output : region.outputs()) {
      const size_t id = static_cast<size_t>(output.value.node);
      MENDEL_ASSIGN_OR_RETURN(std::vector<bool> here, WrongOn(lines[id], plan[id].extents[d]));
      wrong.push_back(std::move(here));
    }
    return wrong;
  }

  absl::StatusOr<std::vector<bool>> WrongOn(const Line& line, int64_t extents) const {
    const int64_t shown = layout.move == Move::kBatchToSpace ? layout.factors[d] : 1;
    std::vector<bool> wrong(static_cast<size_t>(shown * extents), false);
    bool any = false;
    for (size_t at = 0; at < line.owner.size(); ++at) {
      if (line.owner[at] < 0 || line.held[at] != Held::kWrong) continue;
      wrong[static_cast<size_t>(line.owner[at])] = true;
      any = true;
    }
    if (any && line.uneven)
      return absl::FailedPreconditionError("channels are wrong in different places");
    return wrong;
  }
};

/// Runs of wrong positions [from, from + extent) as boxes of images [first, last).
void AddBoxes(const std::vector<bool>& wrong, size_t from, const Shape& shape, size_t dim,
              int64_t first, int64_t last, std::vector<Box>& boxes) {
  Box box = Box::Whole(shape);
  box.begin[0] = first;
  box.end[0] = last;
  for (int64_t p = 0; p < shape[dim]; ++p) {
    if (!wrong[from + static_cast<size_t>(p)]) continue;
    box.begin[dim] = p;
    while (p < shape[dim] && wrong[from + static_cast<size_t>(p)]) ++p;
    box.end[dim] = p;
    boxes.push_back(box);
  }
}

/// Images of a batch that stand in one row with image `n`: the last tile may not be full.
int64_t ImagesInRow(int64_t n, int64_t batch, int64_t factor, int64_t inner) {
  const int64_t first = n - n / inner % factor * inner;
  int64_t images = 0;
  while (images < factor && first + images * inner < batch) ++images;
  return images;
}

double ShareOf(const std::vector<bool>& wrong) {
  return static_cast<double>(std::count(wrong.begin(), wrong.end(), true)) /
         static_cast<double>(std::max<size_t>(1, wrong.size()));
}

}  // namespace

bool WrongRegion::Nowhere() const {
  return std::all_of(boxes.begin(), boxes.end(),
                     [](const std::vector<Box>& of_output) { return of_output.empty(); });
}

absl::StatusOr<WrongRegion> WrongIn(const Graph& region, const Layout& layout) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<LaidOutNode> plan, PlanLayout(region, layout));
  const size_t outputs = region.outputs().size();
  WrongRegion result{std::vector<std::vector<Box>>(outputs), 0};
  std::vector<double> right_share(outputs, 1);
  const int64_t batch = region.type(region.outputs()[0].value).shape[0];
  int64_t inner = 1;  // images of a tile that the dimensions behind this one distinguish
  for (size_t d = layout.factors.size(); d-- > 0;) {
    const int64_t factor = layout.factors[d];
    if (factor == 1) continue;
    std::map<int64_t, std::vector<std::vector<bool>>>
        wrong;  // by the number of images in a row of tiles along this dimension
    const auto row_of = [&](int64_t n) {
      return layout.move == Move::kBatchToSpace ? ImagesInRow(n, batch, factor, inner) : factor;
    };
    for (int64_t n = -1; n < batch; ++n) {
      const int64_t row = n < 0 ? factor : row_of(n);  // a full one always, for the share
      if (wrong.count(row) > 0) continue;
      MENDEL_ASSIGN_OR_RETURN(wrong[row], (Dimension{region, layout, plan, d, row}.Wrong()));
    }
    for (size_t k = 0; k < outputs; ++k) {
      const Shape& shape = region.type(region.outputs()[k].value).shape;
      right_share[k] *= 1 - ShareOf(wrong[factor][k]);
      if (layout.move != Move::kBatchToSpace) {
        AddBoxes(wrong[factor][k], 0, shape, d + 2, 0, batch, result.boxes[k]);
        continue;
      }
      for (int64_t n = 0; n < batch; ++n) {
        const size_t image = static_cast<size_t>(n / inner % factor);
        AddBoxes(wrong[row_of(n)][k], image * static_cast<size_t>(shape[d + 2]), shape, d + 2, n,
                 n + 1, result.boxes[k]);
      }
    }
    inner *= factor;
  }
  for (const double share : right_share) result.share = std::max(result.share, 1 - share);
  return result;
}

}  // namespace mendel
