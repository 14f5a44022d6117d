// How an operator is written as CUDA text. One family of operators a file in kernels/cuda/operators/, registered on its last line.
#ifndef MENDEL_KERNELS_CUDA_FUSION_OPERATOR_TEXT_H_
#define MENDEL_KERNELS_CUDA_FUSION_OPERATOR_TEXT_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/fusion/kernel_code.h"
#include "kernels/cuda/fusion/preamble.h"

namespace mendel::cuda {

/// One element of a node's output that is to be written.
struct ElementAt {
  KernelCode& code;
  int32_t node;
  const NodeView& view;
  int output;
  const Position& position;

  /// Element of input k.
  std::string In(size_t k, const Position& at) const { return code.Element(code.graph().node(node).inputs[k], at); }
  /// The same under broadcasting at `position`.
  std::string In(size_t k) const;
  std::string In(size_t k, std::vector<std::string> at) const { return In(k, Position{std::move(at)}); }
  DType dtype(size_t k) const { return view.inputs[k].dtype; }
  DType dtype() const { return view.outputs[static_cast<size_t>(output)].dtype; }
  const Shape& shape(size_t k) const { return view.inputs[k].shape; }
  const Shape& shape() const { return view.outputs[static_cast<size_t>(output)].shape; }
  std::string_view real() const { return code.RealOf(dtype()); }
  std::string Literal(double value) const { return code.Literal(dtype(), value); }
};

/// What reading the node means for its inputs, which decides about fusion.
enum class Reads {
  kAtPosition,  ///< elementwise: at the output's position, under broadcasting
  kMoved,       ///< one element of the inputs, somewhere; costs nothing but the index
  kMany,        ///< several elements, or the same ones for several outputs
};

/// Rows of input 0 over which something is summed by threads of a block.
struct RowAt {
  KernelCode& code;
  int32_t node;
  const NodeView& view;
  int threads;                        ///< that share a row: all of the block, or a power of two of neighbours
  Shape shape;                        ///< of input 0 as rows see it: as many elements, see RowText::shape
  Ints axes;                          ///< of `shape`, that are summed over
  std::vector<std::string> position;  ///< of the row: coordinates of the other axes, "" for `axes`
  /// Elements that a thread reads at once; more than 1 only where the row lies side by side in memory, from element
  /// `number` * Count() on.
  int lanes = 1;
  std::string number = "";
  std::string thread = "threadIdx.x";  ///< number among those that share the row

  int64_t Count() const;
  /// Whether the elements of a row follow one another in input 0.
  bool IsContiguous() const;
  DType dtype() const { return view.inputs[0].dtype; }
  /// Writes a loop of this thread over its elements of the row; `body` gets each with its position in input 0. With lanes, `body`
  /// is about element number `first` + `lane` of input 0, and the statements `before` and `after` surround the lanes.
  void ForElements(const std::function<void(const std::string& x, const Position& at)>& body, const std::string& before = "",
                   const std::string& after = "") const;
  /// term(x) combined over the row: "SumOf", "MaxOf", "MinOf" or "ProductOf". The name of the result, for every thread.
  std::string Over(std::string_view combine, const std::string& initial,
                   const std::function<std::string(const std::string&)>& term) const;
};

struct RowText {
  /// Extents of input 0 and the axes that are summed over.
  std::function<std::pair<Shape, Ints>(const NodeView& view)> geometry = {};
  /// Writes what all elements of the row need: names that the next function gets.
  std::function<std::vector<std::string>(const RowAt& row)> statistics = {};
  /// Null: the row has one result, the last of the statistics. Else the result at each of its elements.
  std::function<std::string(const RowAt& row, const std::vector<std::string>& statistics, const std::string& x, const Position& at)>
      element = {};
};

/// The extents of a product: result(z, r, c) = the sum over k < depth of left(z, r, k) * right(z, k, c).
struct ProductExtents {
  int64_t batch = 1, rows = 1, columns = 1, depth = 0;
  /// Elements that lie side by side in memory, from every multiple of this number on: of left along k, of right and of the result
  /// along c. 1: none do.
  int64_t left_run = 1, right_run = 1, result_run = 1;
};

/// Where the elements of one matrix z of the batch lie.
struct ProductPlaces {
  std::function<Position(const std::string& r, const std::string& k)> left = {};
  /// `inside` becomes the condition under which there is such an element, which is 0 elsewhere; "" where there always is.
  std::function<Position(const std::string& k, const std::string& c, std::string& inside)> right = {};
  std::function<Position(const std::string& r, const std::string& c)> result = {};
  /// In input 2, which is added to the sum. Called where there is one.
  std::function<Position(const std::string& r)> bias = {};
};

/// How tiled kernels (kernels/cuda/tiled/) see an operator that sums products.
struct ProductText {
  size_t left = 0, right = 1;  ///< inputs
  bool left_has_rows = false;  ///< left's last axis is the depth, so that what normalises its rows can be computed with it
  std::function<ProductExtents(const NodeView& view)> extents = {};
  /// Writes what all elements of matrix `z` share; the result refers to `code` and `view`.
  std::function<ProductPlaces(KernelCode& code, const NodeView& view, const std::string& z)> places = {};
};

/// How an operator that only moves elements is computed where its values lie in another form (backend/form_choice.h).
struct MoveText {
  /// Its attributes where dimension d of all its inputs and outputs is the present dimension perm[d].
  std::function<Attributes(const NodeView& view, const Ints& perm)> permuted = {};
  /// The number that it writes besides elements of its inputs. Null: none.
  std::function<double(const NodeView& view)> fills = {};
};

struct OperatorText {
  std::string op;
  Reads reads = Reads::kAtPosition;
  /// Writes what computes one element; an expression in RealName of the output's dtype. Empty for row operators.
  std::function<std::string(const ElementAt& at)> element = {};
  /// Reads no element of an input twice, though its output be larger (Concat).
  bool once = false;
  /// Of kMany: elements of input 0 near the output's position in few dimensions, at its coordinates in the others, so that the
  /// kernel may compute its elements in another order, as memory has the input and the result (pools, Resize).
  bool windowed = false;
  /// Of kAtPosition: reads the inputs after the first at the coordinate of dimension 1 (BatchNormalization).
  bool by_channel = false;
  /// Of kMany: its elements are elements of input 0, so that numbers of a format stay in it (MaxPool).
  bool chooses = false;
  /// Of kMoved; empty: it moves elements in the graph's own form only.
  MoveText move = {};
  /// Empty: not a row operator.
  RowText row = {};
  /// Empty: no tiled kernel computes it.
  ProductText product = {};
  /// Null: every node that inference accepts. Else Unimplemented says what of this node no kernel computes.
  std::function<absl::Status(const NodeView& view)> check = {};

  bool is_row() const { return row.geometry != nullptr; }
  bool is_product() const { return product.extents != nullptr; }
};

/// Null where the operator has no text.
const OperatorText* FindOperatorText(std::string_view op);
/// Those of `op` or an Unimplemented that names the node.
absl::StatusOr<const OperatorText*> OperatorTextOf(const Graph& graph, int32_t node);

struct OperatorTextRegistrar {
  explicit OperatorTextRegistrar(std::vector<OperatorText> texts);
};
/// `...` is a std::vector<OperatorText>.
#define MENDEL_REGISTER_OPERATOR_TEXTS(...) const ::mendel::cuda::OperatorTextRegistrar text_registrar(__VA_ARGS__)

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_OPERATOR_TEXT_H_
