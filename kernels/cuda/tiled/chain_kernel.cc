#include "kernels/cuda/tiled/chain_kernel.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/fusion/kernel_code.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/tiled/chain_places.h"
#include "kernels/cuda/tiled/chain_shape.h"
#include "kernels/cuda/tiled/operand_order.h"
#include "kernels/cuda/tiled/operand_text.h"
#include "kernels/cuda/tiled/tile_sum.h"

namespace mendel::cuda {
namespace {

class ChainWriter {
 public:
  ChainWriter(const Graph& graph, const ProductChain& chain, const TiledCandidate& candidate,
              ChainShape shape, const NodeView& first, const NodeView& second)
      : graph_(graph),
        chain_(chain),
        candidate_(candidate),
        tile_(candidate.tile),
        shape_(std::move(shape)),
        first_(first),
        second_(second),
        real_(RealName(graph.type(chain.kept()).dtype)),
        zero_(LiteralOf(graph.type(chain.kept()).dtype, 0.0)),
        widest_lanes_(static_cast<int>(16 / WidestElement(graph, chain.fused))),
        code_(graph, chain.fused, IndexTypeOf(graph, chain.fused)),
        block_(code_, shape_) {}

  absl::StatusOr<FusedKernel> Write() {
    if (shape_.Blocks() > std::numeric_limits<int32_t>::max())
      return Unsupported("a launch of ", shape_.Blocks(), " blocks");
    Begin();
    First();
    // Otherwise a barrier of the second product's loop precedes the reads of what is kept.
    if (!shape_.in_place || chain_.kept() != Middle()) code_.Line("__syncthreads();");
    places_ = TextOf(1).places(code_, second_, matrix_);
    if (chain_.kept() != Middle()) Refine();
    Second();
    const int64_t shared =
        (SharedBeforeKept(chain_, candidate_) + shape_.KeptElements()) * (real_ == "float" ? 4 : 8);
    FusedKernel kernel =
        FinishedKernel(code_, ResultParameter(graph_, chain_.second.result, "y"), shape_.Blocks(),
                       tile_.threads(), static_cast<unsigned>(shared), 1);
    kernel.lanes = lanes_;
    kernel.block_products = shape_.BlockProducts(tile_);
    return kernel;
  }

 private:
  const Node& Product(int number) const { return graph_.node(chain_.product(number)); }
  const ProductText& TextOf(int number) const {
    return FindOperatorText(Product(number).op->name)->product;
  }
  ValueId Middle() const { return Product(1).inputs[chain_.operand]; }
  void Unrolled(const std::string& header) {
    code_.Line("#pragma unroll");
    code_.Open(header);
  }
  /// A loop of all threads over [0, `limit`), `step` at a time.
  void OpenTiles(const std::string& name, int64_t limit, int64_t step) {
    if (limit > step)
      return code_.Open(Cat("for (", code_.index_type(), " ", name, " = 0; ", name, " < ", limit,
                            "; ", name, " += ", step, ")"));
    code_.Open("");
    code_.Line(Cat("const ", code_.index_type(), " ", name, " = 0;"));
  }

  /// Declares the block's part of the results, and this thread's part of a tile.
  void Begin() {
    const std::string index = code_.index_type();
    code_.Line("const int thread = static_cast<int>(threadIdx.x);");
    code_.Line(Cat("const ", index, " block = static_cast<", index, ">(blockIdx.x);"));
    code_.Line(Cat("const ", index, " part = ", Modulo("block", shape_.parts), ";"));
    const std::string rest = code_.LetIndex(Divided("block", shape_.parts));
    block_.Begin(code_.LetIndex(Modulo(rest, shape_.Tiles())));
    matrix_ = shape_.second.batch == 1 ? "0" : code_.LetIndex(Divided(rest, shape_.Tiles()));
    const int64_t left =
        OperandText(code_, tile_, real_, {"left", tile_.rows, "", 0}).shared().Words();
    DeclareShared("left", 0);
    DeclareShared("right", left);
    DeclareShared("kept", SharedBeforeKept(chain_, candidate_));
    code_.Line("MENDEL_KEPT(kept);");
    const int across = tile_.columns / tile_.thread_columns;
    code_.Line(Cat("const int thread_row = thread / ", across, " * ", tile_.thread_rows, ";"));
    code_.Line(
        Cat("const int thread_column = thread % ", across, " * ", tile_.thread_columns, ";"));
  }
  void DeclareShared(const char* name, int64_t offset) {
    code_.Line(Cat(real_, "* const ", name, " = reinterpret_cast<", real_, "*>(mendel_shared) + ",
                   offset, ";"));
  }

  /// A side of product `number` that is read from global memory.
  SummedSide Side(int number, bool is_left, std::string origin, int64_t limit,
                  PlaceOfElement place) {
    const ProductText& text = TextOf(number);
    const ValueId value = Product(number).inputs[is_left ? text.left : text.right];
    const ProductExtents& extents = number == 0 ? shape_.first : shape_.second;
    OperandTile operand{is_left ? "left" : "right", is_left ? tile_.rows : tile_.columns,
                        std::move(origin), limit};
    const int64_t run = is_left ? extents.left_run : extents.right_run;
    const bool last_axis_first = FollowsLastAxis(graph_, value, chain_.fused);
    operand.by_depth = is_left == last_axis_first && run > 1;
    const int along = operand.by_depth ? tile_.depth : operand.across;
    if (last_axis_first && run % widest_lanes_ == 0 && along % widest_lanes_ == 0)
      operand.lanes = widest_lanes_;
    SummedSide side{OperandText(code_, tile_, real_, std::move(operand)), graph_.type(value).shape,
                    std::move(place)};
    side.element = [this, value](const Position& position) {
      return code_.Element(value, position);
    };
    return side;
  }

  /// Computes the first product's part into shared memory, with what follows it.
  void First() {
    if (!shape_.of_rows) OpenTiles("group", shape_.groups, 1);
    Matrix();
    places_ = TextOf(0).places(code_, first_, first_matrix_);
    OpenTiles("inner0", shape_.limits[0], shape_.other);
    if (!shape_.of_rows) OpenTiles("kept0", shape_.Kept(), shape_.across);
    const auto left = [this](const std::string& at, const std::string& k, std::string&) {
      return places_.left(shape_.of_rows ? at : Added(first_channel_, at), k);
    };
    const auto right = [this](const std::string& at, const std::string& k, std::string& inside) {
      if (shape_.of_rows) return places_.right(k, at, inside);
      std::string here;
      const std::string column = block_.KeptColumn(first_.outputs[0].shape, at, inside);
      Position position = places_.right(k, column, here);
      Require(inside, here);
      return position;
    };
    const SummedSide sides[] = {
        shape_.of_rows ? Side(0, true, block_.first_result(0), shape_.second.rows, left)
                       : Side(0, true, "inner0", shape_.limits[0], left),
        shape_.of_rows ? Side(0, false, "inner0", shape_.limits[0], right)
                       : Side(0, false, "kept0", shape_.Kept(), right)};
    WriteTileSum(code_, tile_, real_, zero_, shape_.first.depth, sides[0], sides[1]);
    Keep();
    for (int k = shape_.of_rows ? 1 : 3; k > 0; --k) code_.Close();
    if (const int64_t zeros = (shape_.padded_depth - shape_.depth) * shape_.pitch; zeros > 0) {
      code_.Open(Cat("for (int i = thread; i < ", zeros, "; i += ", tile_.threads(), ")"));
      code_.Line(Cat("kept[", shape_.depth * shape_.pitch, " + i] = ", zero_, ";"));
      code_.Close();
    }
  }

  /// Declares the matrix of the first product's batch and, if that product is a convolution, the
  /// first of the matrix's rows that the block computes.
  void Matrix() {
    first_matrix_ = matrix_;
    first_channel_ = "0";
    if (shape_.of_rows) return;
    if (shape_.depth >= shape_.first.rows) {
      first_matrix_ = code_.LetIndex(Added(Scaled(matrix_, shape_.groups), "group"));
    } else {
      const std::string channel = code_.LetIndex(Scaled(matrix_, shape_.depth));
      first_matrix_ = code_.LetIndex(Divided(channel, shape_.first.rows));
      first_channel_ = code_.LetIndex(Modulo(channel, shape_.first.rows));
    }
  }

  /// Copies the sums to shared memory. Positions without an element become zeros, which the second
  /// product multiplies.
  void Keep() {
    const std::string index = code_.index_type();
    const std::string row = Cat(shape_.of_rows ? "" : "inner0 + ", "thread_row + i");
    const std::string column = Cat(shape_.of_rows ? "inner0 + " : "kept0 + ", "thread_column + j");
    Unrolled(Cat("for (int i = 0; i < ", tile_.thread_rows, "; ++i)"));
    Unrolled(Cat("for (int j = 0; j < ", tile_.thread_columns, "; ++j)"));
    code_.Line(Cat("const ", index, " inner = ", shape_.of_rows ? column : row, ";"));
    code_.Line(Cat("const ", index, " at = ", shape_.of_rows ? row : column, ";"));
    const bool is_cut = !shape_.in_place && shape_.Kept() % shape_.across != 0;
    code_.Open(
        Cat("if (inner < ", shape_.limits[0], is_cut ? Cat(" && at < ", shape_.Kept()) : "", ")"));
    code_.Line(Cat(real_, " element = ", zero_, ";"));
    std::string inside, place;
    if (shape_.of_rows) {
      place = code_.LetIndex(Added(block_.first_result(0), "at"));
      inside = Cat(place, " < ", shape_.second.rows);
    } else {
      if (shape_.Kept() < shape_.across) inside = Cat("at < ", shape_.Kept());
      place = block_.KeptColumn(first_.outputs[0].shape, "at", inside);
    }
    code_.Open(inside.empty() ? "" : Cat("if (", inside, ")"));
    const std::string channel =
        shape_.of_rows ? place : code_.LetIndex(Added(first_channel_, "inner"));
    BindSum(0, channel);
    code_.Line(
        Cat("element = ",
            code_.Element(chain_.kept(), places_.result(channel, shape_.of_rows ? "inner" : place)),
            ";"));
    code_.Close();
    const std::string depth =
        shape_.groups == 1 ? "inner" : Cat("(group * ", shape_.group_depth, " + inner)");
    code_.Line(Cat("kept[", depth, " * ", shape_.pitch, " + at] = element;"));
    for (int k = 0; k < 3; ++k) code_.Close();
  }

  void BindSum(int number, const std::string& row, const std::string& j = "j") {
    const std::vector<ValueId>& inputs = Product(number).inputs;
    std::string sum = Cat("sum[i][", j, "]");
    if (inputs.size() > 2)
      sum = Cat("Plus(", sum, ", ", code_.Element(inputs[2], places_.bias(row)), ")");
    code_.Bind({chain_.product(number), 0}, code_.Let(real_, sum));
  }

  /// Computes in place what is between the products and not in the first one's epilogue. Several
  /// threads share a row.
  void Refine() {
    const int lanes = tile_.threads() / tile_.rows;
    const std::string index = code_.index_type(), last = Cat(shape_.second.rows - 1);
    code_.Open("");
    code_.Line(Cat("const int own = thread % ", lanes, ", kept_row = thread / ", lanes, ";"));
    const std::string row = code_.LetIndex(Added(block_.first_result(0), "kept_row"));
    // Beyond the last row there are zeros, which are not used.
    code_.Line(Cat("const ", index, " row = ", row, " < ", last, " ? ", row, " : ", last, ";"));
    code_.BindElements(chain_.kept(), [this](const Position& position) {
      return Cat("kept[", Added(Scaled(position.at.back(), shape_.pitch), "kept_row"), "]");
    });
    if (chain_.second.row < 0) {
      RefineElements(lanes, [](const Position&) {});
    } else {
      WithView(graph_, chain_.second.row, [&](const NodeView& view) { RefineRow(lanes, view); });
    }
    code_.Close();
    if (chain_.second.row >= 0) code_.Line("__syncthreads();");  // reductions lie where tiles will
  }
  void RefineRow(int lanes, const NodeView& view) {
    const int32_t id = chain_.second.row;
    const RowText& text = FindOperatorText(graph_.node(id).op->name)->row;
    auto [shape, axes] = text.geometry(view);
    RowAt row{
        code_, id, view, lanes, std::move(shape), std::move(axes), places_.left("row", "").at};
    row.thread = "own";
    const std::vector<std::string> statistics = text.statistics(row);
    RefineElements(lanes, [&](const Position& position) {
      if (text.element == nullptr) return code_.Bind({id, 0}, statistics.back());
      const std::string x = code_.Element(graph_.node(id).inputs[0], position);
      code_.Bind({id, 0}, code_.Let(real_, text.element(row, statistics, x, position)));
    });
  }
  template <class Function>
  void RefineElements(int lanes, const Function& bind) {
    code_.Open(
        Cat("for (", code_.index_type(), " k = own; k < ", shape_.depth, "; k += ", lanes, ")"));
    const Position position = places_.left("row", "k");
    bind(position);
    code_.Line(
        Cat("kept[k * ", shape_.pitch, " + kept_row] = ", code_.Element(Middle(), position), ";"));
    code_.Close();
  }

  /// Computes the second product's tiles of this part, one after the other.
  void Second() {
    const int64_t span = shape_.OtherTiles() * shape_.other;
    const std::string begin = code_.LetIndex(Scaled("part", span)), limit = Cat(shape_.limits[1]);
    const std::string end =
        shape_.parts == 1 ? limit
                          : code_.LetIndex(Cat("Min(", Added(begin, span), ", ", "static_cast<",
                                               code_.index_type(), ">(", limit, "))"));
    code_.Open(Cat("for (", code_.index_type(), " outer0 = ", begin, "; outer0 < ", end,
                   "; outer0 += ", shape_.other, ")"));
    const auto other = [this](const std::string& at, const std::string& k, std::string& inside) {
      return shape_.of_rows ? places_.right(k, at, inside) : places_.left(at, k);
    };
    const SummedSide made = KeptSide();
    const SummedSide read = Side(1, !shape_.of_rows, "outer0", shape_.limits[1], other);
    const SummedSide &left = shape_.of_rows ? made : read, &right = shape_.of_rows ? read : made;
    WriteTileSum(code_, tile_, real_, zero_, shape_.second.depth, left, right);
    Finish();
    code_.Close();
  }

  /// The kept side, read in place or, around the taps of a convolution, gathered.
  SummedSide KeptSide() {
    if (shape_.in_place) return {.kept = "kept", .pitch = shape_.pitch};
    OperandTile operand{"right", tile_.columns, "0", shape_.Results()};
    SummedSide side{OperandText(code_, tile_, real_, std::move(operand)),
                    graph_.type(Middle()).shape};
    side.place = [this](const std::string& at, const std::string& k, std::string& inside) {
      const std::string column = block_.ResultColumn(at, inside);
      std::string here;
      Position position = places_.right(k, column, here);
      Require(inside, here);
      return position;
    };
    side.element = [this](const Position& position) {
      return Cat("kept[", block_.KeptOffset(position, matrix_), "]");
    };
    return side;
  }

  /// Computes what follows the second product, and stores the result.
  void Finish() {
    const int lanes = std::min(widest_lanes_, tile_.thread_columns);
    lanes_ = shape_.LieSideBySide(lanes) ? lanes : 1;
    Unrolled(Cat("for (int i = 0; i < ", tile_.thread_rows, "; ++i)"));
    Unrolled(Cat("for (int j = 0; j < ", tile_.thread_columns, "; j += ", lanes_, ")"));
    const std::string index = code_.index_type();
    std::string inside, column;
    if (shape_.of_rows) {
      code_.Line(Cat("const ", index, " row = ", block_.first_result(0), " + thread_row + i;"));
      code_.Line(Cat("const ", index, " column = outer0 + thread_column + j;"));
      inside = Cat("row < ", shape_.second.rows, " && column < ", shape_.limits[1]);
    } else {
      code_.Line(Cat("const ", index, " row = outer0 + thread_row + i;"));
      code_.Line(Cat("const ", index, " at = thread_column + j;"));
      inside = Cat("row < ", shape_.limits[1],
                   shape_.Results() < tile_.columns ? Cat(" && at < ", shape_.Results()) : "");
      code_.Line(Cat("const ", index, " column = ", block_.ResultColumn("at", inside), ";"));
    }
    code_.Open(Cat("if (", inside, ")"));
    if (lanes_ == 1) {
      const Position position = places_.result("row", "column");
      const std::string at =
          code_.LetIndex(FlatOf(graph_.type(chain_.second.result).shape, position));
      code_.Line(Cat("y[", at, "] = ", Result(position, "j"), ";"));
    } else {
      FinishLanes();
    }
    for (int k = 0; k < 3; ++k) code_.Close();
  }

  void FinishLanes() {
    const TensorType& type = graph_.type(chain_.second.result);
    const std::string first = code_.LetIndex(FlatOf(type.shape, places_.result("row", "column")));
    const std::string pack = Cat("Pack<", StoredName(type.dtype), ", ", lanes_, ">");
    code_.Line(Cat(pack, " result;"));
    code_.BeginLanes(lanes_, first, type.shape);
    code_.Line(Cat("const ", code_.index_type(), " f = ", first, " + lane;"));
    const Position position = AsRoot(places_.result("row", code_.LetIndex("column + lane")));
    code_.Line(Cat("result.v[lane] = ", Result(position, "j + lane"), ";"));
    code_.EndLanes(Cat("for (int lane = 0; lane < ", lanes_, "; ++lane)"));
    code_.Line(Cat("*reinterpret_cast<", pack, "*>(y + ", first, ") = result;"));
  }

  std::string Result(const Position& position, const std::string& j) {
    BindSum(1, "row", j);
    return Stored(graph_, chain_.second.result, code_.Element(chain_.second.result, position));
  }

  const Graph& graph_;
  const ProductChain& chain_;
  const TiledCandidate& candidate_;
  const Tile tile_;
  const ChainShape shape_;
  const NodeView& first_;
  const NodeView& second_;
  const std::string real_, zero_;
  const int widest_lanes_;  // elements of one access of 16 bytes
  KernelCode code_;
  ChainPlaces block_;
  ProductPlaces places_;  // places of the product that is written
  std::string matrix_, first_matrix_, first_channel_;
  int lanes_ = 1;
};

}  // namespace

absl::StatusOr<FusedKernel> WriteChainKernel(const Graph& graph, const ProductChain& chain,
                                             const TiledCandidate& candidate) {
  MENDEL_ASSIGN_OR_RETURN(ChainShape shape, ShapeOfChain(graph, chain, candidate));
  return WithView(graph, chain.product(0), [&](const NodeView& first) {
    return WithView(graph, chain.product(1), [&](const NodeView& second) {
      return ChainWriter(graph, chain, candidate, std::move(shape), first, second).Write();
    });
  });
}

}  // namespace mendel::cuda
