// The replacement of one stored constant: the candidates that cover its elements, put together and
// measured.
#ifndef MENDEL_OPTIMIZER_REFIT_REFIT_ASSEMBLE_H_
#define MENDEL_OPTIMIZER_REFIT_REFIT_ASSEMBLE_H_

#include <span>
#include <string>

#include "optimizer/refit/refit.h"
#include "optimizer/refit/refit_pair.h"

namespace mendel {

struct RefitReplacement {
  RefitTerm term;       ///< term of the constant's type
  RefitTensor report;   ///< without name
  bool moved = false;   ///< all elements are stored elements of the other program
  std::string failure;  ///< conflicting or unequal elements; empty when there are none
};

/// `candidates` all have this constant. Adds terms.
RefitReplacement AssembleReplacement(RefitTerms& terms, RefitTerm constant,
                                     std::span<const RefitCandidate> candidates,
                                     const RefitNames& names);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_REFIT_REFIT_ASSEMBLE_H_
