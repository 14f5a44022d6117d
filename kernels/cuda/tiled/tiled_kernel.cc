#include "kernels/cuda/tiled/tiled_kernel.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cuda/fusion/kernel_code.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/tiled/async_copies.h"
#include "kernels/cuda/tiled/epilogue.h"
#include "kernels/cuda/tiled/operand_order.h"
#include "kernels/cuda/tiled/operand_text.h"
#include "kernels/cuda/tiled/tensor_cores.h"

namespace mendel::cuda {
namespace {

class TiledWriter {
 public:
  TiledWriter(const Graph& graph, const TiledChain& chain, const TiledCandidate& candidate,
              const DividedDepth& divided, const NodeView& view)
      : graph_(graph),
        chain_(chain),
        candidate_(candidate),
        tile_(candidate.tile),
        divided_(divided),
        cores_(candidate.tensor_cores.has_value() ? FindTensorCores(*candidate.tensor_cores)
                                                  : nullptr),
        view_(view),
        text_(FindOperatorText(graph.node(chain.products[0]).op->name)->product),
        extents_(text_.extents(view)),
        real_(RealName(view.outputs[0].dtype)),
        widest_lanes_(static_cast<int>(16 / WidestElement(graph, chain.fused))),
        code_(graph, chain.fused, IndexTypeOf(graph, chain.fused)) {}

  absl::StatusOr<FusedKernel> Write() {
    const int64_t blocks = divided_.parts * Tiles();
    if (blocks > std::numeric_limits<int32_t>::max())
      return Unsupported("a launch of ", blocks, " blocks");
    Begin();
    if (chain_.row >= 0) Statistics();
    Sum();
    Finish();
    const std::string written = divided_.parts == 1 ? ResultParameter(graph_, chain_.result, "y")
                                                    : Cat(real_, "* __restrict__ parts");
    // Statistics of rows are reduced where the tiles will lie, an element a warp or more.
    const int64_t shared =
        std::max<int64_t>(shared_, chain_.row < 0 ? 0 : tile_.threads()) * RealBytes();
    // ptxas spills registers for one more block of a pair, or of what is copied.
    const int fewest = chain_.products.size() > 1 || candidate_.asynchronous ? 1 : 0;
    FusedKernel kernel = FinishedKernel(code_, written, blocks, tile_.threads(),
                                        static_cast<unsigned>(shared), fewest);
    kernel.lanes = lanes_;
    const int64_t steps = (divided_.products + tile_.depth - 1) / tile_.depth;
    kernel.block_products = static_cast<double>(candidate_.products() * steps * tile_.depth) *
                            static_cast<double>(tile_.rows * tile_.columns);
    if (cores_ != nullptr) kernel.text = Cat(cores_->text, kernel.text);
    if (candidate_.asynchronous) kernel.text = Cat(AsyncCopiesText(), kernel.text);
    return kernel;
  }

 private:
  int RealBytes() const { return real_ == "float" ? 4 : 8; }
  int64_t Tiles() const { return extents_.batch * RowTiles() * ColumnTiles(); }
  int64_t RowTiles() const { return (extents_.rows + tile_.rows - 1) / tile_.rows; }
  int64_t ColumnTiles() const { return (extents_.columns + tile_.columns - 1) / tile_.columns; }
  std::string Index(const std::string& name) const {
    return Cat("static_cast<", code_.index_type(), ">(", name, ")");
  }
  void Unrolled(const std::string& header) {
    code_.Line("#pragma unroll");
    code_.Open(header);
  }
  std::string Zero() const { return LiteralOf(view_.outputs[0].dtype, 0.0); }
  std::string SumOf(size_t product) const { return Cat("sum", product); }

  /// Declares the block's tile, and this thread's part of it.
  void Begin() {
    const std::string index = code_.index_type();
    code_.Line("const int thread = static_cast<int>(threadIdx.x);");
    code_.Line(Cat("const ", index, " block = ",
                   Index(divided_.parts == 1 ? "blockIdx.x" : Cat("blockIdx.x % ", Tiles())), ";"));
    if (divided_.parts > 1) {
      code_.Line(Cat("const int part = static_cast<int>(blockIdx.x / ", Tiles(), ");"));
      code_.Line(Cat("const ", index, " begin = ", Scaled(Index("part"), divided_.products), ";"));
      code_.Line(Cat("const ", index, " end = Min<", index, ">(begin + ", divided_.products, ", ",
                     extents_.depth, ");"));
      begin_ = "begin";
      end_ = "end";
    }
    const std::string column_tile = Modulo("block", ColumnTiles()),
                      rest = Divided("block", ColumnTiles());
    code_.Line(Cat("const ", index, " column0 = ", Scaled(column_tile, tile_.columns), ";"));
    code_.Line(Cat("const ", index, " row0 = ", Scaled(Modulo(rest, RowTiles()), tile_.rows), ";"));
    batch_ = code_.LetIndex(extents_.batch == 1 ? "0" : Divided(rest, RowTiles()));
    places_ = text_.places(code_, view_, batch_);
    const Node& node = graph_.node(chain_.products[0]);
    values_ = {node.inputs[text_.left]};
    operands_.push_back(Operand("left", tile_.rows, "row0", extents_.rows, true));
    for (size_t k = 0; k < chain_.products.size(); ++k) {
      values_.push_back(graph_.node(chain_.products[k]).inputs[text_.right]);
      operands_.push_back(
          Operand(Cat("right", k), tile_.columns, "column0", extents_.columns, false));
    }
    for (const OperandText& operand : operands_) {
      const std::string type = Cat(operand.word(), "*");
      code_.Line(Cat(type, " const ", operand.shared().name, " = reinterpret_cast<", type,
                     ">(mendel_shared) + ", shared_, ";"));
      shared_ += operand.shared().Words();
    }
    if (cores_ != nullptr) return WriteWarpPlaces(code_, tile_);
    const int across = tile_.columns / tile_.thread_columns;
    code_.Line(Cat("const int thread_row = thread / ", across, " * ", tile_.thread_rows, ";"));
    code_.Line(
        Cat("const int thread_column = thread % ", across, " * ", tile_.thread_columns, ";"));
  }

  /// The text of the operand that is the last value in values_.
  OperandText Operand(std::string name, int across, std::string origin, int64_t limit,
                      bool is_left) {
    OperandTile operand{std::move(name), across, std::move(origin), limit};
    operand.padding = TilePadding(candidate_);
    operand.cores = cores_;
    const OperandOrder order =
        OrderOf(graph_, chain_, candidate_, extents_, values_.back(), is_left);
    operand.by_depth = order.by_depth;
    operand.lanes = order.lanes;
    operand.copied = order.copied;
    return OperandText(code_, tile_, real_, std::move(operand));
  }

  /// Declares the row operator's statistics of the rows that this thread reads, in registers. All
  /// threads compute those of each row of the tile together.
  void Statistics() {
    code_.Line(Cat(real_, " statistics[", operands_[0].Reads() * kMostStatistics, "];"));
    code_.Open(Cat("for (int r = 0; r < ", tile_.rows, "; ++r)"));
    code_.Line(Cat("const ", code_.index_type(), " row = row0 + r;"));
    code_.Open(Cat("if (row < ", extents_.rows, ")"));  // for all threads or for none
    WithRow("row", [&](const RowAt& row, const RowText& text) {
      const std::vector<std::string> names = text.statistics(row);
      statistics_ = names.size();
      MENDEL_CHECK(statistics_ <= static_cast<size_t>(kMostStatistics));
      operands_[0].OpenReads();
      code_.Open("if (across == r)");
      for (size_t k = 0; k < names.size(); ++k)
        code_.Line(Cat("statistics[i * ", kMostStatistics, " + ", k, "] = ", names[k], ";"));
      code_.Close();
      code_.Close();
    });
    code_.Close();
    code_.Close();
    code_.Line("__syncthreads();");
  }

  void WithRow(const std::string& r,
               const std::function<void(const RowAt&, const RowText&)>& body) {
    WithView(graph_, chain_.row, [&](const NodeView& view) {
      const RowText& text = FindOperatorText(graph_.node(chain_.row).op->name)->row;
      auto [shape, axes] = text.geometry(view);
      RowAt row{code_,
                chain_.row,
                view,
                tile_.threads(),
                std::move(shape),
                std::move(axes),
                places_.left(r, "").at};
      body(row, text);
    });
  }

  /// Computes all sums: the products of one step are summed while those of the next one are read.
  void Sum() {
    for (size_t k = 0; k < chain_.products.size(); ++k) {
      code_.Line(
          Cat(real_, " ", SumOf(k), "[", tile_.thread_rows, "][", tile_.thread_columns, "];"));
      Unrolled(Cat("for (int i = 0; i < ", tile_.thread_rows * tile_.thread_columns, "; ++i)"));
      code_.Line(Cat(SumOf(k), "[i / ", tile_.thread_columns, "][i % ", tile_.thread_columns,
                     "] = ", Zero(), ";"));
      code_.Close();
    }
    for (const OperandText& operand : operands_) {
      if (!operand.copied()) operand.DeclareRegisters();
    }
    code_.Line("int buffer = 1;");
    const std::string next = Cat("k0 + ", tile_.depth), more = Cat("if (", next, " < ", end_, ")");
    code_.Open(Cat("for (", code_.index_type(), " k0 = ", Added(begin_, -tile_.depth), "; k0 < ",
                   end_, "; k0 += ", tile_.depth, ")"));
    code_.Open(more);
    for (size_t k = 0; k < operands_.size(); ++k) Fetch(k, next);
    code_.Close();
    code_.Open(Cat("if (k0 >= ", begin_, ")"));
    cores_ == nullptr ? Multiply() : MultiplyByTensorCores();
    code_.Close();
    code_.Open(more);
    for (const OperandText& operand : operands_) {
      if (!operand.copied()) operand.Stage();
    }
    if (candidate_.asynchronous) code_.Line("AwaitCopies();");
    code_.Close();
    code_.Line("__syncthreads();");
    code_.Line("buffer ^= 1;");
    code_.Close();
  }

  void Fetch(size_t number, const std::string& k0) {
    const bool is_left = number == 0;
    const PlaceOfElement place = [&](const std::string& at, const std::string& k,
                                     std::string& inside) {
      return is_left ? places_.left(at, k) : places_.right(k, at, inside);
    };
    const OperandText& operand = operands_[number];
    if (operand.copied()) return operand.Copy(k0, extents_.depth, values_[number], place);
    operand.Fetch(k0, extents_.depth, Zero(), graph_.type(values_[number]).shape, place,
                  [&](const Position& position) {
                    if (is_left && chain_.row >= 0) BindRow(position);
                    return code_.Element(values_[number], position);
                  });
  }

  /// The row operator's value at a position of the left side.
  void BindRow(const Position& position) {
    WithRow("at", [&](const RowAt& row, const RowText& text) {
      std::vector<std::string> statistics;
      for (size_t k = 0; k < statistics_; ++k)
        statistics.push_back(Cat("statistics[i * ", kMostStatistics, " + ", k, "]"));
      if (text.element == nullptr) return code_.Bind({chain_.row, 0}, statistics.back());
      const std::string x = code_.Element(graph_.node(chain_.row).inputs[0], position);
      code_.Bind({chain_.row, 0}, code_.Let(real_, text.element(row, statistics, x, position)));
    });
  }

  void Multiply() {
    Unrolled(Cat("for (int k = 0; k < ", tile_.depth, "; ++k)"));
    operands_[0].Factors("a", "thread_row", tile_.thread_rows);
    for (size_t k = 0; k < chain_.products.size(); ++k) {
      operands_[k + 1].Factors(Cat("b", k), "thread_column", tile_.thread_columns);
    }
    Unrolled(Cat("for (int i = 0; i < ", tile_.thread_rows, "; ++i)"));
    Unrolled(Cat("for (int j = 0; j < ", tile_.thread_columns, "; ++j)"));
    for (size_t k = 0; k < chain_.products.size(); ++k) {
      code_.Line(Cat(SumOf(k), "[i][j] = Plus(", SumOf(k), "[i][j], Times(a[i], b", k, "[j]));"));
    }
    code_.Close();
    code_.Close();
    code_.Close();
  }

  void MultiplyByTensorCores() {
    std::vector<RightProduct> rights;
    const auto factors = [&](size_t number) {
      const OperandText& operand = operands_[number];
      return SharedFactors{operand.shared(), operand.copied() && cores_->word_products == 1};
    };
    for (size_t k = 0; k < chain_.products.size(); ++k)
      rights.push_back({factors(k + 1), SumOf(k)});
    WriteProducts(code_, tile_, *cores_, factors(0), rights);
  }

  /// Stores the result after the epilogue, or parts of the sums for the kernel that totals them.
  void Finish() {
    const bool whole = divided_.parts == 1;
    const int beside = cores_ == nullptr ? tile_.thread_columns : 2;  // sums of a thread
    lanes_ = whole ? ResultLanes(std::min(widest_lanes_, beside), extents_.result_run)
                   : ResultLanes(std::min(16 / RealBytes(), beside), extents_.columns);
    Unrolled(Cat("for (int i = 0; i < ", tile_.thread_rows, "; ++i)"));
    Unrolled(Cat("for (int j = 0; j < ", tile_.thread_columns, "; j += ", lanes_, ")"));
    code_.Line(Cat("const ", code_.index_type(), " row = row0 + thread_row + ",
                   cores_ == nullptr ? "i" : "i * 8", ";"));
    code_.Line(Cat("const ", code_.index_type(), " column = column0 + thread_column + ",
                   cores_ == nullptr ? "j" : "j / 2 * 8 + j % 2", ";"));
    code_.Open(Cat("if (row < ", extents_.rows, " && column < ", extents_.columns, ")"));
    const SumAtLane sum = [&](size_t product, const std::string& lane) {
      return Cat(SumOf(product), "[i][", Added("j", lane), "]");
    };
    whole ? WriteResults(code_, chain_, places_, lanes_, sum) : WriteParts(sum);
    code_.Close();
    code_.Close();
    code_.Close();
  }

  /// Stores the parts where the total kernel reads them (PartialElements).
  void WriteParts(const SumAtLane& sum) {
    const int64_t matrix = extents_.rows * extents_.columns;
    code_.Line(Cat(
        "const long long at = static_cast<long long>(part) * ", extents_.batch * matrix, " + ",
        extents_.batch == 1 ? "" : Cat("static_cast<long long>(", batch_, ") * ", matrix, " + "),
        "row * ", extents_.columns, " + column;"));
    const std::string pack = Cat("Pack<", real_, ", ", lanes_, ">");
    for (size_t k = 0; k < chain_.products.size(); ++k) {
      code_.Line(Cat(pack, " own", k, ";"));
      Unrolled(Cat("for (int lane = 0; lane < ", lanes_, "; ++lane)"));
      code_.Line(Cat("own", k, ".v[lane] = ", sum(k, "lane"), ";"));
      code_.Close();
      const int64_t before = static_cast<int64_t>(k) * divided_.parts * extents_.batch * matrix;
      code_.Line(
          Cat("*reinterpret_cast<", pack, "*>(parts + ", Added("at", before), ") = own", k, ";"));
    }
  }

  const Graph& graph_;
  const TiledChain& chain_;
  const TiledCandidate& candidate_;
  const Tile tile_;
  const DividedDepth divided_;
  const TensorCores* const cores_;  // null: none
  const NodeView& view_;
  const ProductText& text_;
  const ProductExtents extents_;
  const std::string real_;
  const int widest_lanes_;  // elements of one access of 16 bytes
  KernelCode code_;
  std::string begin_ = "0", end_ = Cat(extents_.depth);  // of the products that this block sums
  std::string batch_;                                    // batch of this block's matrix
  ProductPlaces places_;
  std::vector<OperandText> operands_;  // left, then a right one a product
  std::vector<ValueId> values_;        // likewise
  int64_t shared_ = 0;                 // words of their tiles
  size_t statistics_ = 0;
  int lanes_ = 1;
};

}  // namespace

absl::StatusOr<FusedKernel> WriteTiledKernel(const Graph& graph, const TiledChain& chain,
                                             const TiledCandidate& candidate,
                                             const DividedDepth& divided) {
  return WithView(graph, chain.products[0], [&](const NodeView& view) {
    return TiledWriter(graph, chain, candidate, divided, view).Write();
  });
}

}  // namespace mendel::cuda
