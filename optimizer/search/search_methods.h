// The search methods, all of one form: they look for programs and let them compete. search.h
// chooses one.
#ifndef MENDEL_OPTIMIZER_SEARCH_SEARCH_METHODS_H_
#define MENDEL_OPTIMIZER_SEARCH_SEARCH_METHODS_H_

#include "absl/status/status.h"
#include "optimizer/search/search_session.h"

namespace mendel {

/// One program, improved step by step: beam_search.cc.
absl::Status BeamSearch(SearchSession& session);

/// All alternatives in one e-graph, from which the cheapest programs are extracted:
/// egraph/egraph_search.cc.
absl::Status EGraphSearch(SearchSession& session);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_SEARCH_METHODS_H_
