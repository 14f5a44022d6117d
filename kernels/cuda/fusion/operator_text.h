// An operator text says how an operator is written as CUDA code. Each file in
// kernels/cuda/operators/ contains one family of operators and registers it on its last line.
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
  std::string In(size_t k, const Position& at) const {
    return code.Element(code.graph().node(node).inputs[k], at);
  }
  /// The same under broadcasting at `position`.
  std::string In(size_t k) const;
  std::string In(size_t k, std::vector<std::string> at) const {
    return In(k, Position{std::move(at)});
  }
  DType dtype(size_t k) const { return view.inputs[k].dtype; }
  DType dtype() const { return view.outputs[static_cast<size_t>(output)].dtype; }
  const Shape& shape(size_t k) const { return view.inputs[k].shape; }
  const Shape& shape() const { return view.outputs[static_cast<size_t>(output)].shape; }
  std::string_view real() const { return code.RealOf(dtype()); }
  std::string Literal(double value) const { return code.Literal(dtype(), value); }
};

/// The way in which a node reads its inputs. It decides which nodes can be fused.
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
  int threads;  ///< that share a row: all of the block, or a power of two of neighbors
  Shape shape;  ///< shape of input 0 as rows see it: as many elements, see RowText::shape
  Ints axes;    ///< axes of `shape`, that are summed over
  std::vector<std::string> position;  ///< of the row: coordinates of the other axes, "" for `axes`
  /// Elements that a thread reads at once; more than 1 only where the row lies side by side in
  /// memory, from element `number` * Count() on.
  int lanes = 1;
  std::string number = "";
  std::string thread = "threadIdx.x";  ///< number among those that share the row
  // Set by Keep: the number of a thread's accesses, and that their elements are in its registers
  // `kept`.
  int64_t kept_steps = 0;
  bool is_kept = false;

  int64_t Count() const;
  /// True if the elements of a row follow one another in input 0.
  bool IsContiguous() const;
  DType dtype() const { return view.inputs[0].dtype; }
  /// Reads the row to registers, where few enough suffice; later loops do not read memory.
  void Keep();
  /// Writes a loop of this thread over its elements of the row; `body` gets each with its position
  /// in input 0. With lanes, `body` is about element number `first` + `lane` of input 0, and the
  /// statements `before` and `after` surround the lanes.
  void ForElements(const std::function<void(const std::string& x, const Position& at)>& body,
                   const std::string& before = "", const std::string& after = "") const;
  /// Combines term(x) over the row by "SumOf", "MaxOf", "MinOf" or "ProductOf". Returns the name of
  /// the result, which every thread has.
  std::string Over(std::string_view combine, const std::string& initial,
                   const std::function<std::string(const std::string&)>& term) const;

 private:
  /// Opens the loop over a thread's accesses, with their first element `k`; CloseSteps ends it.
  void OpenSteps() const;
  void CloseSteps() const;
  bool HasPartialStep() const { return Count() % (int64_t{threads} * lanes) != 0; }
};

struct RowText {
  /// Extents of input 0 and the axes that are summed over.
  std::function<std::pair<Shape, Ints>(const NodeView& view)> geometry = {};
  /// Writes what all elements of the row need: names that the next function gets.
  std::function<std::vector<std::string>(const RowAt& row)> statistics = {};
  /// Null: the row has one result, the last of the statistics. Else it returns the result at each
  /// of the row's elements.
  std::function<std::string(const RowAt& row, const std::vector<std::string>& statistics,
                            const std::string& x, const Position& at)>
      element = {};
};

/// The extents of a product: result(z, r, c) = the sum over k < depth of left(z, r, k) * right(z,
/// k, c).
struct ProductExtents {
  int64_t batch = 1, rows = 1, columns = 1, depth = 0;
  /// Elements that lie side by side in memory, from every multiple of this number on: of left along
  /// k, of right and of the result along c. 1: none do.
  int64_t left_run = 1, right_run = 1, result_run = 1;
};

/// Maps coordinates in matrix z of the batch to positions in the operands and the result.
struct ProductPlaces {
  std::function<Position(const std::string& r, const std::string& k)> left = {};
  /// `inside` becomes the condition under which the element exists; "" if it always does. An
  /// element that does not exist is 0.
  std::function<Position(const std::string& k, const std::string& c, std::string& inside)> right =
      {};
  std::function<Position(const std::string& r, const std::string& c)> result = {};
  /// The position in input 2, which is added to the sum. Called if there is one.
  std::function<Position(const std::string& r)> bias = {};
};

/// Describes an operator that sums products to the tiled kernels (kernels/cuda/tiled/).
struct ProductText {
  size_t left = 0, right = 1;  ///< inputs
  bool left_has_rows = false;  ///< left's last axis is the depth, so that what normalizes its rows
                               ///< can be computed with it
  std::function<ProductExtents(const NodeView& view)> extents = {};
  /// Writes what all elements of matrix `z` share; the result refers to `code` and `view`.
  std::function<ProductPlaces(KernelCode& code, const NodeView& view, const std::string& z)>
      places = {};
};

/// A move text computes an operator that only moves elements when its values have another memory
/// format (backend/format_choice.h).
struct MoveText {
  /// The operator's attributes after a permutation: dimension d of all its inputs and outputs is
  /// then the present dimension perm[d].
  std::function<Attributes(const NodeView& view, const Ints& perm)> permuted = {};
  /// The number that it writes besides elements of its inputs. Null: none.
  std::function<double(const NodeView& view)> fills = {};
};

struct OperatorText {
  std::string op;
  Reads reads = Reads::kAtPosition;
  /// Writes the statements for one element and returns it, an expression in RealName of the
  /// output's dtype. Empty for row operators.
  std::function<std::string(const ElementAt& at)> element = {};
  /// The operator reads no element of an input twice, even if its output is larger (Concat).
  bool once = false;
  /// For kMany: the operator reads elements of input 0 near the output's position in few
  /// dimensions, and at its coordinates in the others (pools, Resize). The kernel may then compute
  /// its elements in the memory order of the input and the result.
  bool windowed = false;
  /// For kAtPosition: the operator reads the inputs after the first at the coordinate of dimension
  /// 1 (BatchNormalization).
  bool by_channel = false;
  /// For kMany: every output element is an element of input 0, so that numbers of a format stay in
  /// it (MaxPool).
  bool chooses = false;
  /// For kMoved. Empty: the operator moves elements in the graph's own memory format only.
  MoveText move = {};
  /// Empty: not a row operator.
  RowText row = {};
  /// Empty: no tiled kernel computes it.
  ProductText product = {};
  /// Null: kernels compute every node that inference accepts. Else Unimplemented names the part of
  /// this node that no kernel computes.
  std::function<absl::Status(const NodeView& view)> check = {};

  bool is_row() const { return row.geometry != nullptr; }
  bool is_product() const { return product.extents != nullptr; }
};

/// Returns null if the operator has no text.
const OperatorText* FindOperatorText(std::string_view op);
/// The text of the node's operator, or an Unimplemented that names the node.
absl::StatusOr<const OperatorText*> OperatorTextOf(const Graph& graph, int32_t node);

struct OperatorTextRegistrar {
  explicit OperatorTextRegistrar(std::vector<OperatorText> texts);
};
/// `...` is a std::vector<OperatorText>.
#define MENDEL_REGISTER_OPERATOR_TEXTS(...) \
  const ::mendel::cuda::OperatorTextRegistrar text_registrar(__VA_ARGS__)

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_OPERATOR_TEXT_H_
