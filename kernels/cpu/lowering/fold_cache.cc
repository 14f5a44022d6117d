#include "kernels/cpu/lowering/fold_cache.h"

#include <map>
#include <mutex>
#include <utility>

namespace mendel::cpu {
namespace {

constexpr int64_t kRoom = int64_t{512} << 20;  // bytes

/// All that is kept, and for how many.
class Cache {
 public:
  static Cache& Instance() {
    static Cache* const cache = new Cache;
    return *cache;
  }

  void Retain() {
    const std::lock_guard lock(mutex_);
    ++users_;
  }
  void Release() {
    std::map<std::string, Entry> dropped;  // its destruction needs no lock
    const std::lock_guard lock(mutex_);
    if (--users_ > 0) return;
    dropped.swap(entries_);
    bytes_ = 0;
  }
  bool IsUsed() {
    const std::lock_guard lock(mutex_);
    return users_ > 0;
  }
  FoldedValues Values(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second.values;
  }
  std::optional<Tensor> Rounded(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::nullopt : found->second.rounded;
  }
  void Keep(const std::string& key, FoldedValues values, std::optional<Tensor> rounded,
            int64_t bytes, std::vector<Tensor> sources) {
    const std::lock_guard lock(mutex_);
    if (users_ == 0 || bytes_ + bytes > kRoom) return;
    Entry entry{std::move(values), std::move(rounded), std::move(sources)};
    if (entries_.emplace(key, std::move(entry)).second) bytes_ += bytes;
  }

 private:
  struct Entry {
    FoldedValues values;
    std::optional<Tensor> rounded;
    std::vector<Tensor> sources;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  int64_t bytes_ = 0;
  int users_ = 0;
};

}  // namespace

std::shared_ptr<void> KeepFoldedValues() {
  Cache::Instance().Retain();
  return {&Cache::Instance(), [](void*) { Cache::Instance().Release(); }};
}

bool KeepsFoldedValues() { return Cache::Instance().IsUsed(); }

FoldedValues FindFolded(const std::string& key) {
  return key.empty() ? nullptr : Cache::Instance().Values("values " + key);
}

std::optional<Tensor> FindRounded(const std::string& key) {
  return key.empty() ? std::nullopt : Cache::Instance().Rounded("rounded " + key);
}

void KeepFolded(const std::string& key, const FoldedValues& values, std::vector<Tensor> sources) {
  int64_t bytes = 0;
  for (const HostValue& value : *values)
    bytes += static_cast<int64_t>(value.scalars.size() * sizeof(double));
  if (!key.empty())
    Cache::Instance().Keep("values " + key, values, std::nullopt, bytes, std::move(sources));
}

void KeepRounded(const std::string& key, const Tensor& tensor, std::vector<Tensor> sources) {
  const int64_t bytes = static_cast<int64_t>(tensor.bytes().size());
  if (!key.empty())
    Cache::Instance().Keep("rounded " + key, nullptr, tensor, bytes, std::move(sources));
}

}  // namespace mendel::cpu
