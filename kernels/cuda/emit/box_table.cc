#include "kernels/cuda/emit/box_table.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "base/status.h"

namespace mendel::cuda {
namespace {

struct Field {
  std::string name;
  bool wide = false;  // 64 bits
  std::function<int64_t(const CorrectionBox&)> get;
};

/// "x_base" -> "kXBase".
std::string ConstantName(const std::string& name) {
  std::string constant = "k";
  bool upper = true;
  for (char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    constant += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return constant;
}

/// base, image, channel and spatial strides of one view.
void AddView(const std::string& prefix, size_t spatial,
             const std::function<const View&(const CorrectionBox&)>& view,
             std::vector<Field>& fields) {
  fields.push_back(
      {prefix + "_base", true, [view](const CorrectionBox& box) { return view(box).base; }});
  fields.push_back(
      {prefix + "_n", true, [view](const CorrectionBox& box) { return view(box).strides[0]; }});
  fields.push_back(
      {prefix + "_c", true, [view](const CorrectionBox& box) { return view(box).strides[1]; }});
  const std::vector<std::string> names = SpatialNames(spatial);
  for (size_t d = 0; d < spatial; ++d) {
    fields.push_back({prefix + "_" + names[d], false,
                      [view, d](const CorrectionBox& box) { return view(box).strides[d + 2]; }});
  }
}

std::vector<Field> Fields(const Correction& correction) {
  const size_t spatial = correction.kernel.size();
  const std::vector<std::string> names = SpatialNames(spatial);
  std::vector<Field> fields = {
      {"images", false, [](const CorrectionBox& box) { return box.extents[0]; }},
      {"channels", false, [](const CorrectionBox& box) { return box.extents[1] / box.groups; }},
      {"w_begin", false, [](const CorrectionBox& box) { return box.w_begin; }},
      {"bias_begin", false, [](const CorrectionBox& box) { return box.bias_begin; }},
  };
  for (size_t d = 0; d < spatial; ++d) {
    fields.push_back(
        {"size_" + names[d], false, [d](const CorrectionBox& box) { return box.extents[d + 2]; }});
    fields.push_back(
        {"limit_" + names[d], false, [d](const CorrectionBox& box) { return box.x_extents[d]; }});
    fields.push_back(
        {"origin_" + names[d], false, [d](const CorrectionBox& box) { return box.x_origin[d]; }});
  }
  for (size_t d = 0; d < spatial && HasPartialSums(correction); ++d) {
    fields.push_back({"taps_" + names[d], false, [&correction, d](const CorrectionBox& box) {
                        return TapsOf(correction, box).Extents()[d];
                      }});
    fields.push_back({"tap_" + names[d], false, [&correction, d](const CorrectionBox& box) {
                        return TapsOf(correction, box).begin[d];
                      }});
  }
  AddView(
      "x", spatial, [](const CorrectionBox& box) -> const View& { return box.x; }, fields);
  AddView(
      "y", spatial, [](const CorrectionBox& box) -> const View& { return box.y; }, fields);
  for (size_t k = 0; k < correction.boxes[0].operands.size(); ++k) {
    AddView(
        Cat("add", k), spatial,
        [k](const CorrectionBox& box) -> const View& { return box.operands[k]; }, fields);
  }
  return fields;
}

}  // namespace

std::vector<std::string> SpatialNames(size_t spatial) {
  const std::vector<std::string> all = {"d", "h", "w"};
  return {all.end() - static_cast<int64_t>(spatial), all.end()};
}

int64_t TilesOf(const CorrectionBox& box, const Tile& tile) {
  const int64_t rows = NumElements(box.extents) / box.extents[1];
  const int64_t columns = box.extents[1] / box.groups;
  return (rows + tile.rows - 1) / tile.rows * ((columns + tile.columns - 1) / tile.columns) *
         box.groups;
}

int64_t TilesOf(const Correction& correction, const Tile& tile) {
  int64_t tiles = 0;
  for (const CorrectionBox& box : correction.boxes) tiles += TilesOf(box, tile);
  return tiles;
}

BoxTable MakeBoxTable(const Correction& correction, const Tile& tile) {
  BoxTable table;
  table.members = "int first_tile;  // tiles of the boxes before\n";
  std::vector<Field> varying;
  int64_t entry_bytes = 4, alignment = 4;
  for (const Field& field : Fields(correction)) {
    const int64_t first = field.get(correction.boxes[0]);
    const std::string type = field.wide ? "long long" : "int";
    if (std::all_of(correction.boxes.begin(), correction.boxes.end(),
                    [&](const CorrectionBox& box) { return field.get(box) == first; })) {
      table.constants +=
          Cat("constexpr ", type, " ", ConstantName(field.name), " = ", first, ";\n");
      table.expressions[field.name] = ConstantName(field.name);
    } else {
      table.members += Cat(type, " ", field.name, ";\n");
      table.expressions[field.name] = "box." + field.name;
      varying.push_back(field);
      const int64_t size = field.wide ? 8 : 4;
      alignment = std::max(alignment, size);
      entry_bytes = (entry_bytes + size - 1) / size * size + size;
    }
  }
  entry_bytes = (entry_bytes + alignment - 1) / alignment * alignment;
  table.bytes = entry_bytes * static_cast<int64_t>(correction.boxes.size());
  for (const CorrectionBox& box : correction.boxes) {
    table.entries += Cat("{", table.tiles);
    for (const Field& field : varying) table.entries += Cat(", ", field.get(box));
    table.entries += "},\n";
    table.tiles += TilesOf(box, tile);
  }
  return table;
}

}  // namespace mendel::cuda
