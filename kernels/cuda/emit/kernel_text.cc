#include "kernels/cuda/emit/kernel_text.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>

#include "base/status.h"
#include "kernels/cuda/emit/box_table.h"
#include "kernels/cuda/emit/expand.h"
#include "kernels/cuda/emit/kernel_template.h"
#include "kernels/cuda/emit/number_text.h"
#include "kernels/cuda/emit/roofline.h"

namespace mendel::cuda {
namespace {

using Stage = DividedSum::Stage;
using Values = std::map<std::string, std::string>;

constexpr size_t kReportedBoxes = 32;
constexpr Tile kTiles[] = {{64, 64, 16, 4, 4}, {64, 32, 16, 4, 4}, {32, 32, 16, 4, 2},
                           {64, 16, 16, 4, 2}, {128, 8, 16, 4, 2}, {128, 4, 16, 4, 1}};

std::string ByShape(const Shape& shape) {
  std::string text;
  for (int64_t extent : shape) text += Cat(text.empty() ? "" : "x", extent);
  return text;
}

/// The comment that a reader of the .cu file starts with.
std::string Header(const Correction& correction, const Tile& tile, const LaunchShape& launch) {
  const Stage stage = correction.divided.stage;
  std::string text = Cat(
      "// Written by Mendel: ",
      stage == Stage::kParts ? "partial sums of a convolution on" : "recomputes a convolution on",
      " the boxes where a mutant is wrong, ",
      stage == Stage::kParts ? "into scratch memory" : "in place",
      stage == Stage::kTotal ? ", from partial sums.\n" : ", in one launch.\n");
  if (stage != Stage::kNone)
    text += Cat("// parts:    ", correction.divided.parts, " of every sum\n");
  text += Cat("// mutant:   ", correction.mutant, "\n");
  text += Cat("// conv:     kernel ", ByShape(correction.kernel), ", strides ",
              ByShape(correction.strides), ", dilations ", ByShape(correction.dilations), ", ",
              correction.channels, " channels a group -> ", correction.out_channels, " channels, ",
              DTypeName(correction.dtype), ", ", LayoutName(correction.layout), "\n");
  text += Cat("// epilogue: ", EpilogueText(correction.epilogue), "\n");
  text += Cat("// boxes:    ", correction.boxes.size(), "\n");
  for (size_t k = 0; k < std::min(correction.reported.size(), kReportedBoxes); ++k)
    text += Cat("//   ", correction.reported[k], "\n");
  if (correction.reported.size() > kReportedBoxes)
    text += Cat("//   and ", correction.reported.size() - kReportedBoxes, " more\n");
  text += Cat("// launch:   ", launch.grid, " blocks of ", launch.block, " threads, ",
              launch.shared, " bytes of dynamic shared memory\n");
  char line[160];
  std::snprintf(line, sizeof line, "// work:     %.3f Mflop, %.3f MB\n", FlopsOf(correction) / 1e6,
                BytesOf(correction) / 1e6);
  text += line;
  for (const GpuModel& gpu : KnownGpus()) {
    std::snprintf(line, sizeof line, "// estimate: %.1f us on %s (roofline, not measured)\n",
                  RooflineSeconds(correction, launch, tile, gpu) * 1e6, gpu.name);
    text += line;
  }
  return text;
}

/// Lines for the spatial dimensions: members, decoding of rows, taps.
void AddSpatial(const Correction& correction, Values& values) {
  const std::vector<std::string> names = SpatialNames(correction.kernel.size());
  std::string constants, members, position, tap, outside, tap_offset, decode_output,
      y_at = "$y_base + rest * $y_n", rows = "$images";
  std::string divisor;
  const bool partial = HasPartialSums(correction);
  for (size_t d = names.size(); d-- > 0;) {
    const std::string& n = names[d];
    const std::string upper(1, static_cast<char>(n[0] - 'a' + 'A'));
    constants +=
        Cat("constexpr int kKernel", upper, " = ", correction.kernel[d], ", kStride", upper, " = ",
            correction.strides[d], ", kDilation", upper, " = ", correction.dilations[d], ";\n");
    members += Cat("int at_", n, "[kPositions];\n");
    position += Cat("at_", n, "[i] = rest % $size_", n, " * kStride", upper, " + $origin_", n,
                    ";\nrest /= $size_", n, ";\n");
    const std::string taps = partial ? "$taps_" + n : "kKernel" + upper;
    tap += Cat("const int ", n, " = at_", n, "[i] + tap", divisor, d > 0 ? Cat(" % ", taps) : "",
               " * kDilation", upper, ";\n");
    outside += Cat(outside.empty() ? "" : " || ", "static_cast<unsigned>(", n,
                   ") >= static_cast<unsigned>($limit_", n, ")");
    tap_offset += Cat(tap_offset.empty() ? "" : " + ", "static_cast<long long>(", n, ") * $x_", n);
    decode_output += Cat("const int ", n, " = rest % $size_", n, ";\nrest /= $size_", n, ";\n");
    y_at += Cat(" + static_cast<long long>(", n, ") * $y_", n);
    rows += Cat(" * $size_", n);
    divisor += Cat(" / ", taps);
  }
  const Values table = values;  // the fields' expressions
  values["window_constants"] = constants;
  values["position_members"] = members;
  values["first_member"] = "at_" + names[0];
  const auto expand = [&](const std::string& text) {
    std::string line = Expand(" " + text, table);  // not alone on its line
    return line.substr(1, line.size() - 2);
  };
  values["decode_position"] = Expand(position, table);
  values["tap_position"] = Expand(tap, table);
  values["outside"] = expand(outside);
  values["tap_offset"] = expand(tap_offset);
  values["decode_output"] = Expand(decode_output, table);
  values["y_at"] = expand(y_at);
  values["box_rows"] = expand(rows);
}

/// The extent of the sum: all of the kernel, or for each box its own part.
void AddSum(const Correction& correction, Values& values) {
  if (!HasPartialSums(correction)) {
    values["sum_constant"] =
        Cat("constexpr int kSum = ", NumElements(correction.kernel) * correction.channels,
            ";  // products in a sum: taps * kInChannels, the channel running fastest\n");
    values["sum"] = "kSum";
    values["row_of_part"] = "";
    values["row_w"] = "k";
    return;
  }
  std::string sum = "(", row, divisor;
  const std::vector<std::string> names = SpatialNames(correction.kernel.size());
  for (size_t d = names.size(); d-- > 0;) {
    const std::string taps = values["taps_" + names[d]];
    const std::string at =
        Cat(values["tap_" + names[d]], " + tap", divisor, d > 0 ? Cat(" % ", taps) : "");
    divisor += Cat(" / ", taps);
    sum += Cat(taps, " * ");
    const int64_t stride = NumElements(
        {correction.kernel.begin() + static_cast<int64_t>(d) + 1, correction.kernel.end()});
    row = Cat("(", at, ") * ", stride, row.empty() ? "" : " + ", row);
  }
  values["sum_constant"] = "";
  values["sum"] = sum + "kInChannels)";  // products in a sum
  values["row_of_part"] =
      Cat("// The packed row of element k of the sum, whose taps are part of the kernel.\n",
          "__device__ __forceinline__ int RowOfPart(int k) const {\n  const int tap = k / "
          "kInChannels;\n",
          "  return (", row, ") * kInChannels + k % kInChannels;\n}\n\n");
  values["row_w"] = "RowOfPart(k)";
}

/// Parameters, and the epilogue's code.
void AddInterface(const Correction& correction, const std::vector<std::string>& names, bool bias,
                  Values& values) {
  std::vector<std::string> parameters = {"x"};
  if (correction.divided.stage != Stage::kTotal) parameters.push_back("w");
  if (bias) parameters.push_back("bias");
  std::vector<std::string> offsets;
  for (size_t k = 0; k < correction.boxes[0].operands.size(); ++k) {
    const std::string prefix = Cat("add", k);
    parameters.push_back(prefix);
    std::string offset = Cat(values[prefix + "_base"], " + rest * ", values[prefix + "_n"],
                             " + (channel + j) * ", values[prefix + "_c"]);
    for (const std::string& n : names)
      offset += Cat(" + static_cast<long long>(", n, ") * ", values[Cat(prefix, "_", n)]);
    offsets.push_back(offset);
  }
  const std::string number = NumberName(correction.dtype);
  std::string declared, entry, arguments;
  for (const std::string& name : parameters) {
    declared += Cat("const typename Number::Stored* ", name, ", ");
    entry += Cat("const ", number, "::Stored* ", name, ", ");
    arguments += name + ", ";
  }
  values["parameters"] = declared + "typename Number::Stored* y";
  values["entry_parameters"] = Cat(entry, number, "::Stored* y");
  values["arguments"] = arguments + "y";
  values["epilogue"] = EpilogueCode(correction, offsets, values["bias_begin"] + " + channel + j");
  values["epilogue_text"] = EpilogueText(correction.epilogue);
  values["number"] = NumberText(correction.dtype);
  values["number_name"] = number;
}

void AddLayout(const Correction& correction, const Tile& tile,
               const std::vector<std::string>& names, Values& values) {
  const bool last = correction.layout == Layout::kNhwc;
  const int units = tile.rows * tile.depth / (last ? 4 : 1) / tile.threads();
  values["window_constants"] +=
      Cat("constexpr int kPositions = ", last ? units : 1, ";  // whose input one thread fetches\n",
          "constexpr int kFetchX = ", last ? 4 * units : units,
          ";  // elements of x a thread fetches\n", "constexpr int kFetchW = ",
          (tile.depth * tile.columns / 4 + tile.threads() - 1) / tile.threads(),
          ";  // fours of w a thread fetches\n");
  values["fetched_row"] = last ? "(thread + i * kThreads) / (kDepth / 4)" : "thread % kRows";
  values["fetch_x"] = last ? kFetchNhwc : kFetchNchw;
  values["stage_x"] = last ? kStageNhwc : kStageNchw;
  // Neighboring threads write neighboring elements: channels, or positions.
  values["thread_row"] =
      last ? "(thread / (kColumns / kThreadColumns))" : "(thread % (kRows / kThreadRows))";
  values["thread_column"] =
      last ? "(thread % (kColumns / kThreadColumns))" : "(thread / (kRows / kThreadRows))";
  std::string strides = Cat("(", values["x_base"], " | ", values["x_n"]);
  for (const std::string& n : names) strides += Cat(" | ", values["x_" + n]);
  values["vector_x"] = last ? Cat("kInChannels % 4 == 0 && ", values["x_c"], " == 1 && ", strides,
                                  ") % 4 == 0 && IsAligned<Stored, 4>(x)")
                            : "false";
}

/// The division of sums among blocks: a block has whole sums, or one part of them.
void AddDivision(const Correction& correction, int64_t tiles, Values& values) {
  const DividedSum& divided = correction.divided;
  values["parts"] = Cat(divided.parts);
  values["tiles"] = Cat(tiles);
  values["partial_base"] = Cat(divided.base);
  values["divided_block"] = "";
  values["lines"] = "int i = 0; i < kThreadRows; ++i";
  values["value"] = "Real value = sum[i][j];\n";
  values["products"] = Cat("const int begin = 0, end = ", values["sum"], ";  // of the products\n");
  if (divided.stage == Stage::kParts) {
    values["divided_block"] = "const int part = block / kTiles;\nblock %= kTiles;\n";
    values["products"] =
        Expand(R"(// Whole steps of kDepth products, as many in each part or one less.
const long long steps = ($sum + kDepth - 1) / kDepth;
const int begin = static_cast<int>(steps * part / kParts) * kDepth;
const int whole = static_cast<int>(steps * (part + 1) / kParts) * kDepth;
const int end = whole < $sum ? whole : $sum;
)",
               values);
  }
  if (divided.stage == Stage::kTotal) {
    values["divided_block"] =
        "// A line of every thread's sums a block.\nconst int line = block % kThreadRows;\nblock "
        "/= kThreadRows;\n";
    values["lines"] = "int i = line; i <= line; ++i";
    values["value"] = kTotal;
  }
}

/// The bodies of the stage in order.
std::string Bodies(Stage stage, const Values& values) {
  std::string text = Expand(kPreamble, values);
  if (stage != Stage::kTotal) text += Expand(kLoader, values);
  if (stage != Stage::kNone) text += Expand(kDivision, values);
  text += Expand(kTileOfBlock, values);
  text += Expand(stage == Stage::kTotal ? kReadParts : kSums, values);
  return text + Expand(stage == Stage::kParts ? kWriteParts : kFinish, values);
}

absl::Status CheckTile(const Tile& tile) {
  const bool fits = tile.rows % tile.thread_rows == 0 && tile.columns % tile.thread_columns == 0 &&
                    tile.columns % 4 == 0 && tile.depth % 4 == 0 &&
                    tile.threads() % tile.rows == 0 && tile.threads() % (tile.depth / 4) == 0 &&
                    tile.rows * tile.depth / 4 % tile.threads() == 0 &&
                    tile.rows * tile.depth % tile.threads() == 0;
  return fits ? absl::OkStatus()
              : InvalidInput("a tile of ", tile.rows, " by ", tile.columns,
                             " does not divide among its threads");
}

absl::StatusOr<KernelShape> ShapeFrom(const Correction& correction, const Tile& tile,
                                      const BoxTable& table) {
  const Stage stage = correction.divided.stage;
  const int64_t blocks =
      table.tiles * (stage == Stage::kParts ? correction.divided.parts
                                            : (stage == Stage::kTotal ? tile.thread_rows : 1));
  if (blocks > std::numeric_limits<int32_t>::max())
    return Unsupported(correction.name, ": ", blocks, " blocks");
  if (table.bytes > kConstantBytes) {
    return Unsupported(correction.name, ": a table of ", correction.boxes.size(), " boxes takes ",
                       table.bytes, " bytes of constant memory, of which there are ",
                       kConstantBytes);
  }
  const int staged = stage == Stage::kTotal ? 0 : 2 * tile.depth * (tile.rows + tile.columns + 8);
  const LaunchShape launch{static_cast<unsigned>(blocks), static_cast<unsigned>(tile.threads()),
                           static_cast<unsigned>(staged * 4)};
  return KernelShape{tile, launch, table.bytes};
}

}  // namespace

std::span<const Tile> Tiles() { return kTiles; }

Tile ChooseTile(const Correction& correction) {
  if (correction.divided.stage != Stage::kNone) return correction.divided.tile;
  Tile best = kTiles[0];
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double waves =
        std::max(1.0, static_cast<double>(TilesOf(correction, tile)) / kMultiprocessors);
    // Instructions a product, roughly: itself, its loads from shared memory, and its share of
    // bringing operands there (an element of x first has to be found).
    const double instructions = 1 + 1.0 / tile.thread_rows + 1.0 / tile.thread_columns +
                                12.0 / tile.columns + 4.0 / tile.rows;
    const double cost = waves * tile.rows * tile.columns * instructions;
    if (cost >= least) continue;
    best = tile;
    least = cost;
  }
  return best;
}

absl::StatusOr<KernelShape> ShapeOf(const Correction& correction) {
  MENDEL_RETURN_IF_ERROR(CheckCorrection(correction));
  const Tile tile = ChooseTile(correction);
  return ShapeFrom(correction, tile, MakeBoxTable(correction, tile));
}

absl::StatusOr<EmittedKernel> EmitKernel(const Correction& correction) {
  MENDEL_RETURN_IF_ERROR(CheckCorrection(correction));
  return EmitKernel(correction, ChooseTile(correction));
}

absl::StatusOr<EmittedKernel> EmitKernel(const Correction& correction, const Tile& tile) {
  MENDEL_RETURN_IF_ERROR(CheckCorrection(correction));
  MENDEL_RETURN_IF_ERROR(CheckTile(tile));
  const Stage stage = correction.divided.stage;
  if (stage != Stage::kNone && tile != correction.divided.tile) {
    return InvalidInput(correction.name, ": the parts of its sums have another tile");
  }
  const BoxTable table = MakeBoxTable(correction, tile);
  MENDEL_ASSIGN_OR_RETURN(const KernelShape shape, ShapeFrom(correction, tile, table));
  EmittedKernel kernel;
  kernel.name = correction.name;
  kernel.name_space = correction.name + "_text";
  kernel.tile = tile;
  kernel.weights = stage != Stage::kTotal;
  kernel.number = NumberName(correction.dtype);
  kernel.launch = shape.launch;
  kernel.operands = static_cast<int>(correction.boxes[0].operands.size());
  kernel.bias =
      std::any_of(correction.epilogue.begin(), correction.epilogue.end(),
                  [](const EpilogueStep& step) { return step.kind == EpilogueStep::Kind::kBias; });
  const std::vector<std::string> names = SpatialNames(correction.kernel.size());
  Values values = table.expressions;
  AddSpatial(correction, values);
  AddSum(correction, values);
  AddInterface(correction, names, kernel.bias, values);
  AddLayout(correction, tile, names, values);
  AddDivision(correction, table.tiles, values);
  values.merge(Values{{"name", kernel.name},
                      {"name_space", kernel.name_space},
                      {"rows", Cat(tile.rows)},
                      {"columns", Cat(tile.columns)},
                      {"depth", Cat(tile.depth)},
                      {"thread_rows", Cat(tile.thread_rows)},
                      {"thread_columns", Cat(tile.thread_columns)},
                      {"threads", Cat(tile.threads())},
                      {"in_channels", Cat(correction.channels)},
                      {"weight_row", Cat(PackedRow(correction))},
                      {"box_constants", table.constants},
                      {"box_members", table.members},
                      {"box_count", Cat(correction.boxes.size())},
                      {"box_entries", table.entries}});
  const std::string begin = Header(correction, tile, kernel.launch) + Bodies(stage, values),
                    end = Expand(kEnd, values);
  kernel.text = begin + Expand(kEntry, values) + end;
  kernel.body = begin + end;
  return kernel;
}

}  // namespace mendel::cuda
