#include "client/command.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace mendel {
namespace {

std::vector<Command (*)()>& Makers() {
  static auto* makers = new std::vector<Command (*)()>();
  return *makers;
}

}  // namespace

std::span<const Command* const> AllCommands() {
  static const auto* commands = [] {
    auto* sorted = new std::vector<const Command*>();
    for (Command (*make)() : Makers()) sorted->push_back(new Command(make()));
    std::sort(sorted->begin(), sorted->end(),
              [](const auto* a, const auto* b) { return a->name < b->name; });
    for (size_t i = 0; i + 1 < sorted->size(); ++i)
      MENDEL_CHECK((*sorted)[i]->name != (*sorted)[i + 1]->name);
    return sorted;
  }();
  return *commands;
}

CommandRegistrar::CommandRegistrar(Command (*make)()) { Makers().push_back(make); }

}  // namespace mendel
