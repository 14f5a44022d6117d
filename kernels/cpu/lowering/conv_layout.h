// Layouts as a choice of their own: oneDNN's convolutions with source and result in a layout that
// oneDNN would not have chosen.
#ifndef MENDEL_KERNELS_CPU_LOWERING_CONV_LAYOUT_H_
#define MENDEL_KERNELS_CPU_LOWERING_CONV_LAYOUT_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/lowering/conv_problem.h"

namespace mendel::cpu {

/// Algorithms by layout: layout:channels-last, layout:blocked16, layout:blocked8 (of channels),
/// layout:plain (pointwise products only, which need no im2col).
bool IsLayoutAlgorithm(std::string_view name);
/// Returns how far down oneDNN's list of implementations the algorithm `name` may go.
Quality QualityIn(std::string_view name);
/// The problem with source and result in the algorithm's layout; a source of fewer channels than a
/// block stays oneDNN's choice. nullopt where the result has fewer, or the layout is not for this
/// convolution.
std::optional<ConvProblem> InLayout(const ConvProblem& problem, std::string_view name);

struct LayoutOffers {
  std::vector<std::string> names;         ///< of layouts that the default does not have anyway
  std::set<std::string> implementations;  ///< that these run
};
/// Returns the layouts for which oneDNN has a generated kernel (plain: its matrix product).
LayoutOffers OffersInLayouts(const ConvProblem& problem);

/// Backend::AlgorithmKind of this backend: the layout that an algorithm wants, "" for the default's
/// or none in particular.
std::string LayoutKind(std::string_view algorithm);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_CONV_LAYOUT_H_
