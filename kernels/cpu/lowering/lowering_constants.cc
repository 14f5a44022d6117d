// Constants of a program: shared by content, packed once.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "kernels/cpu/lowering/lowering.h"
#include "kernels/cpu/memory/shared_bytes.h"

namespace mendel::cpu {
namespace {

std::string Key(const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted) {
  return std::string(reinterpret_cast<const char*>(&plain.data), sizeof(plain.data)) +
         std::string(reinterpret_cast<const char*>(&wanted.data), sizeof(wanted.data));
}

void Reorder(const dnnl::memory::desc& plain, const std::byte* from,
             const dnnl::memory::desc& wanted, std::byte* to) {
  dnnl::memory source(plain, Engine(), const_cast<std::byte*>(from));  // it is only read
  dnnl::memory target(wanted, Engine(), to);
  dnnl::stream stream(Engine());
  dnnl::reorder(source, target).execute(stream, source, target);
  stream.wait();
}

/// oneDNN's transform of weights for its Winograd restarts the team for every few elements.
Divides DividesInto(const dnnl::memory::desc& wanted) {
  return wanted.data.format_kind == dnnl_format_kind_wino ? Divides::kNo : Divides::kYes;
}

}  // namespace

Place Lowering::Constant(const std::string& key, int64_t bytes,
                         const std::function<void(std::byte*)>& fill) {
  if (const auto known = constants_.find(key); !key.empty() && known != constants_.end())
    return known->second;
  std::shared_ptr<std::byte> fresh = room_.Take(bytes);
  fill(fresh.get());
  std::shared_ptr<const std::byte> memory = Share(fresh, bytes);
  if (memory != fresh) room_.GiveBack(std::move(fresh), bytes);
  Buffer buffer;
  buffer.kind = BufferKind::kConstant;
  buffer.bytes = bytes;
  buffer.constant = memory.get();
  buffer.owner = std::move(memory);
  buffer.packed = true;
  const Place place{AddBuffer(std::move(buffer)), 0, {}};
  if (!key.empty()) constants_.emplace(key, place);
  return place;
}

Place Lowering::DeferredConstant(int64_t bytes, DeferredConstants::Fill fill, Divides divides) {
  Buffer buffer;
  buffer.kind = BufferKind::kConstant;
  buffer.bytes = bytes;
  buffer.packed = true;
  const Place place{AddBuffer(std::move(buffer)), 0, {}};
  deferred_.Add(place.buffer, room_.Take(bytes), bytes, divides, std::move(fill));
  return place;
}

Place Lowering::DeferredConstant(const void* key, int64_t bytes, DeferredConstants::Fill fill) {
  const auto known = keyed_.find(key);
  if (known != keyed_.end()) return known->second;
  return keyed_.emplace(key, DeferredConstant(bytes, std::move(fill))).first->second;
}

Place Lowering::PackedWeights(ScaledWeights weights, const dnnl::memory::desc& plain,
                              const dnnl::memory::desc& wanted) {
  const int64_t bytes = static_cast<int64_t>(wanted.get_size());
  if (plain == wanted) {
    return DeferredConstant(bytes, [weights = std::move(weights)](std::byte* to) {
      weights.WriteTo(reinterpret_cast<float*>(to));
    });
  }
  return DeferredConstant(
      bytes,
      [weights = std::move(weights), plain, wanted](std::byte* to) {
        const AlignedBytes scaled(static_cast<int64_t>(weights.values.size() * sizeof(float)));
        weights.WriteTo(reinterpret_cast<float*>(scaled.data()));
        Reorder(plain, scaled.data(), wanted, to);
      },
      DividesInto(wanted));
}

Place Lowering::PackedWeights(const Tensor& tensor, const dnnl::memory::desc& plain,
                              const dnnl::memory::desc& wanted) {
  const auto key = std::make_tuple(tensor.bytes().data(), Key(plain, wanted));
  if (const auto known = packed_.find(key); known != packed_.end()) return known->second;
  Place place;
  if (plain == wanted) {
    const auto kept = std::make_shared<const Tensor>(WithoutSubnormals(tensor));
    Buffer buffer;
    buffer.kind = BufferKind::kConstant;
    buffer.bytes = ByteSize(tensor.type());
    buffer.constant = kept->bytes().data();
    buffer.owner = kept;
    place.buffer = AddBuffer(std::move(buffer));
  } else {
    place = DeferredConstant(
        static_cast<int64_t>(wanted.get_size()),
        [tensor, plain, wanted](std::byte* to) {
          Reorder(plain, tensor.bytes().data(), wanted, to);
          if (wanted.data_type() == dnnl::memory::data_type::f32)
            DropSubnormals(reinterpret_cast<float*>(to),
                           static_cast<int64_t>(wanted.get_size() / sizeof(float)));
        },
        DividesInto(wanted));
  }
  kept_.push_back(tensor);  // the key is its address
  packed_.emplace(key, place);
  return place;
}

void Lowering::CopyConstants() {
  for (Buffer& buffer : program_.buffers) {
    if (buffer.kind != BufferKind::kConstant || buffer.packed) continue;
    std::shared_ptr<std::byte> copy = room_.Take(buffer.bytes);
    std::copy_n(buffer.constant, buffer.bytes, copy.get());
    const std::shared_ptr<const std::byte> kept = Share(copy, buffer.bytes);
    if (kept != copy) room_.GiveBack(std::move(copy), buffer.bytes);
    buffer.constant = kept.get();
    buffer.owner = kept;
    buffer.packed = true;
  }
}

}  // namespace mendel::cpu
