// Evaluated weight expressions that the programs of a search have in common.
//
// A search compiles hundreds of programs with the same weights, most of them behind the same
// expressions (a batch normalization's scale times a kernel). Evaluating these takes most of a
// compilation.
#ifndef MENDEL_KERNELS_CPU_LOWERING_FOLD_CACHE_H_
#define MENDEL_KERNELS_CPU_LOWERING_FOLD_CACHE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/evaluate.h"
#include "graph/tensor.h"

namespace mendel::cpu {

using FoldedValues = std::shared_ptr<const std::vector<HostValue>>;

/// While the result lives, the process keeps what compilations evaluate, up to 512 MiB. Any thread.
std::shared_ptr<void> KeepFoldedValues();

/// `key` names an expression and its stored tensors, large ones by address; "": nothing is kept.
FoldedValues FindFolded(const std::string& key);
std::optional<Tensor> FindRounded(const std::string& key);
/// Keeps a value, and with it `sources`, the expression's stored tensors, so that their addresses
/// stay theirs. Nothing happens where nothing is kept, or the room is used up.
void KeepFolded(const std::string& key, const FoldedValues& values, std::vector<Tensor> sources);
void KeepRounded(const std::string& key, const Tensor& tensor, std::vector<Tensor> sources);
/// True while some result of KeepFoldedValues lives.
bool KeepsFoldedValues();

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_FOLD_CACHE_H_
