// Kernel code is the text of one kernel while it is written: statements and elements of values.
// Elements of fused nodes are computed, all others are loaded.
#ifndef MENDEL_KERNELS_CUDA_FUSION_KERNEL_CODE_H_
#define MENDEL_KERNELS_CUDA_FUSION_KERNEL_CODE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/fusion/position.h"

namespace mendel::cuda {

/// A kernel operand is what one pointer of the kernel refers to: a value of the graph, or
/// (value.node is -1) a table of constants that belongs to the kernel.
struct KernelOperand {
  ValueId value;
  Tensor table = {};
  DType dtype = DType::kF32;
};

/// The text of one kernel while it is written. Not thread-safe. `graph` must outlive it.
class KernelCode {
 public:
  /// Nodes in `fused` are computed where they are read.
  KernelCode(const Graph& graph, const std::set<int32_t>& fused, std::string index_type);

  const Graph& graph() const { return graph_; }
  /// "int", or "long long" where a tensor has too many elements for it.
  const std::string& index_type() const { return index_type_; }
  /// From here on elements are expressions in StoredName of their dtype, so that their bits stay.
  /// Used for groups that only move elements.
  void KeepBits() { keeps_bits_ = true; }
  bool keeps_bits() const { return keeps_bits_; }
  /// The C type of elements of this dtype, and one of them as a number.
  std::string_view RealOf(DType dtype) const;
  std::string Literal(DType dtype, double value) const;

  // Statements.
  void Line(const std::string& text);
  /// `header` and a brace; Close ends it.
  void Open(const std::string& header);
  /// Opens a block of statements for positions within all of `extents`, in a tensor of `shape`;
  /// Close ends it. Its vectors are loaded under the same condition. Other blocks may only load
  /// what exists at every position of the kernel's result. Blocks of the same `alternatives`, where
  /// that is not empty, share no position: their vectors are kept in the same registers.
  void OpenWithin(const Shape& shape, const Position& position, const std::vector<Extent>& extents,
                  const std::string& alternatives = "");
  void Close();
  /// A new constant of this C type; its name.
  std::string Let(std::string_view type, const std::string& expression);
  std::string LetIndex(const std::string& expression) { return Let(index_type_, expression); }
  /// A new variable.
  std::string Variable(std::string_view type, const std::string& expression);
  /// Opens a loop over [0, extent); the name of its index, "0" where one pass suffices. Close ends
  /// it.
  std::string Loop(int64_t extent);

  // Values.
  /// The element of a value at a position: an expression in RealName of its dtype.
  std::string Element(ValueId value, const Position& position);
  /// The name of the pointer to a value that is stored, not computed here.
  std::string Pointer(ValueId value);
  /// Row-major number `flat` (an expression) as a position in a tensor of `shape`. `is_root`: its
  /// coordinates are the result's.
  Position Decode(const std::string& flat, const Shape& shape, bool is_root = false);
  /// The name of the pointer to a table of constants, in the dtype's StoredName.
  std::string Table(const Tensor& tensor);
  /// From here on `value` is read as this expression at every position.
  void Bind(ValueId value, std::string expression) {
    BindElements(value,
                 [expression = std::move(expression)](const Position&) { return expression; });
  }
  /// The same, with an expression that depends on the position.
  void BindElements(ValueId value, std::function<std::string(const Position& position)> element) {
    bound_[value] = std::move(element);
  }

  // Vector access: the text between BeginLanes and EndLanes computes one of `lanes` consecutive
  // elements, the first of them at `first`, and becomes the body of a loop. Loads that the lanes
  // share, or that one vector access makes, are hoisted before the loop.
  void BeginLanes(int lanes, const std::string& first, const Shape& root_shape);
  /// Number of vector loads. `from_registers`: the lanes need none.
  int EndLanes(const std::string& loop_header, bool from_registers = false);
  /// True if any lanes, not `from_registers`, ended without a vector load: neighboring threads
  /// would then read elements that lie apart.
  bool has_scalar_lanes() const { return has_scalar_lanes_; }

  const std::vector<KernelOperand>& operands() const { return operands_; }
  std::string Take() { return std::move(text_); }

 private:
  /// Coordinate d of `position` at the first lane; "" where it is not known.
  std::string FirstOf(const Position& position, size_t d) const;
  /// True if either all lanes are within the extent or none is.
  bool LanesAgree(const Position& position, const Extent& extent) const;
  std::string Load(ValueId value, const Position& position);
  /// Name of the pack that contains the lanes' elements; "" where they do not lie side by side.
  std::string VectorLoad(const std::string& pointer, const TensorType& type,
                         const Position& position);
  /// Name of a pack that is loaded under a condition, declared.
  std::string ConditionalPack(const std::string& pack_type);
  std::string Operand(KernelOperand operand, const std::string& key);
  std::string Fresh() { return "v" + std::to_string(next_++); }

  const Graph& graph_;
  const std::set<int32_t>& fused_;
  std::string index_type_;
  bool keeps_bits_ = false;
  std::string text_;
  int depth_ = 1;
  int next_ = 0;
  std::map<ValueId, std::function<std::string(const Position& position)>> bound_;
  std::vector<KernelOperand> operands_;
  std::map<std::string, std::string> pointers_;

  int lanes_ = 1;
  std::string outside_;  // the text before the lanes' loop
  std::string first_;
  Position root_;  // root of the first lane
  Shape root_shape_;
  struct Guard {
    int depth;              // depth of the statements in the block
    std::string condition;  // condition of all lanes; "": they may differ
    std::string alternatives;
    int loads;  // loads of vectors in the block
  };
  std::vector<Guard> guards_;  // guards of the open blocks
  int vector_loads_ = 0;
  bool has_scalar_lanes_ = false;
  std::map<std::string, std::string> packs_;
  std::map<std::string, std::string> shared_packs_;  // by type, alternatives and number
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_KERNEL_CODE_H_
