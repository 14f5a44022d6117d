#include "kernels/cpu/primitive.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace mendel::cpu {
namespace {

class PrimitiveKernel : public Kernel {
 public:
  PrimitiveKernel(dnnl::primitive_desc_base desc, std::vector<PrimitiveArgument> arguments,
                  dnnl::memory::desc scratchpad, std::optional<Place> sum_source)
      : desc_(std::move(desc)),
        arguments_(std::move(arguments)),
        scratchpad_(scratchpad),
        sum_source_(std::move(sum_source)),
        stream_(Engine()) {}

  absl::Status Create() override {
    try {
      primitive_ = dnnl::primitive(desc_.get());
      return absl::OkStatus();
    } catch (const dnnl::error& error) {
      return InternalError("oneDNN: ", error.what(), " (", error.status, ")");
    }
  }

  absl::Status Prepare(const Bindings& bindings) override {
    for (const PrimitiveArgument& argument : arguments_)
      Add(argument.index, argument.desc, Find(bindings, argument));
    if (scratchpad_.get_size() > 0) Add(DNNL_ARG_SCRATCHPAD, scratchpad_, bindings.scratch);
    for (const PrimitiveArgument& argument : arguments_) {
      if (argument.index == DNNL_ARG_DST) destination_ = argument;
    }
    return absl::OkStatus();
  }

  absl::Status Run(const Bindings& bindings) override {
    for (size_t k = 0; k < arguments_.size(); ++k) {
      void* address = Find(bindings, arguments_[k]);
      if (addresses_[k] == address) continue;
      addresses_[k] = address;
      dnnl_memory_set_data_handle(memories_[k].get(), address);
    }
    if (sum_source_.has_value()) {
      std::byte* to = bindings.Address(destination_.place);
      const std::byte* from = bindings.Address(*sum_source_);
      if (to != from) std::memcpy(to, from, destination_.desc.get_size());
    }
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive_.get(), stream_.get(),
                               static_cast<int>(arguments_c_.size()), arguments_c_.data());
    if (status != dnnl_success)
      return InternalError("oneDNN refused to run a primitive (", status, ")");
    return absl::OkStatus();
  }

 private:
  static void* Find(const Bindings& bindings, const PrimitiveArgument& argument) {
    std::byte* base = bindings.buffers[static_cast<size_t>(argument.place.buffer)];
    return base == nullptr ? nullptr : base + argument.place.offset;
  }

  void Add(int index, const dnnl::memory::desc& desc, void* address) {
    // oneDNN clears the padding of memory that it is given. Without an address there is nothing to
    // clear yet.
    memories_.emplace_back(desc, Engine(), address == nullptr ? DNNL_MEMORY_NONE : address);
    addresses_.push_back(address);
    arguments_c_.push_back({index, memories_.back().get()});
  }

  dnnl::primitive_desc_base desc_;
  dnnl::primitive primitive_;
  std::vector<PrimitiveArgument> arguments_;
  dnnl::memory::desc scratchpad_;
  std::optional<Place> sum_source_;
  PrimitiveArgument destination_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<void*> addresses_;
  std::vector<dnnl_exec_arg_t> arguments_c_;
};

}  // namespace

const dnnl::engine& Engine() {
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::memory::desc DescOf(const Shape& shape, const Layout& layout, dnnl::memory::data_type type) {
  if (shape.empty()) return {{1}, type, dnnl::memory::dims{1}};
  if (layout.block_dim < 0) return {shape, type, layout.strides};
  // oneDNN has no constructor for descriptors of arbitrary blocks: a plain descriptor is given
  // blocks and strides.
  const size_t d = static_cast<size_t>(layout.block_dim);
  dnnl::memory::desc desc(shape, type, RowMajorStrides(shape));
  dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
  desc.data.padded_dims[d] = (shape[d] + layout.block - 1) / layout.block * layout.block;
  blocking.inner_nblks = 1;
  blocking.inner_blks[0] = layout.block;
  blocking.inner_idxs[0] = layout.block_dim;
  std::copy(layout.strides.begin(), layout.strides.end(), blocking.strides);
  return desc;
}

std::optional<Layout> LayoutOf(const dnnl::memory::desc& desc) {
  if (desc.data.format_kind != dnnl_blocked) return std::nullopt;
  const dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
  if (blocking.inner_nblks > 1 || desc.data.offset0 != 0) return std::nullopt;
  Layout layout{Shape(blocking.strides, blocking.strides + desc.data.ndims), -1, 1};
  if (blocking.inner_nblks == 1) {
    layout.block_dim = static_cast<int>(blocking.inner_idxs[0]);
    layout.block = blocking.inner_blks[0];
  }
  return layout;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

std::unique_ptr<Kernel> MakePrimitiveKernel(dnnl::primitive_desc_base desc,
                                            std::vector<PrimitiveArgument> arguments,
                                            dnnl::memory::desc scratchpad,
                                            std::optional<Place> sum_source) {
  return std::make_unique<PrimitiveKernel>(std::move(desc), std::move(arguments), scratchpad,
                                           std::move(sum_source));
}

bool IsReference(const std::string& implementation) {
  return implementation.find("ref") != std::string::npos;
}
bool IsGemm(const std::string& implementation) {
  return implementation.find("gemm:") != std::string::npos &&
         implementation.find("brg") == std::string::npos;
}

}  // namespace mendel::cpu
