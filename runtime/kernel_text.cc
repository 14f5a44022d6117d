#include "runtime/kernel_text.h"

#include <algorithm>

#include "base/check.h"

namespace mendel {
namespace {

std::vector<const KernelWriter* (*)()>& WriterMakers() {
  static auto* makers = new std::vector<const KernelWriter* (*)()>();
  return *makers;
}

}  // namespace

std::span<const KernelWriter* const> AllKernelWriters() {
  static const auto* writers = [] {
    auto* sorted = new std::vector<const KernelWriter*>();
    for (const KernelWriter* (*make)() : WriterMakers()) sorted->push_back(make());
    std::sort(sorted->begin(), sorted->end(),
              [](const auto* a, const auto* b) { return a->name() < b->name(); });
    for (size_t i = 0; i + 1 < sorted->size(); ++i)
      MENDEL_CHECK((*sorted)[i]->name() != (*sorted)[i + 1]->name());
    return sorted;
  }();
  return *writers;
}

const KernelWriter* FindKernelWriter(std::string_view name) {
  for (const KernelWriter* writer : AllKernelWriters()) {
    if (writer->name() == name) return writer;
  }
  return nullptr;
}

KernelWriterRegistrar::KernelWriterRegistrar(const KernelWriter* (*make)()) {
  WriterMakers().push_back(make);
}

}  // namespace mendel
