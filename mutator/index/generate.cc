#include "mutator/index/generate.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/deadline.h"
#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/index/derive.h"

namespace mendel {
namespace {

bool AllOnes(const Ints& list) {
  return std::all_of(list.begin(), list.end(), [](int64_t v) { return v == 1; });
}

struct State {
  Program program;
  std::vector<std::string> steps;
};

class Generator {
 public:
  Generator(const Graph& subprogram, const IndexSite& site, const Predictor& predictor,
            const GenerateOptions& options)
      : subprogram_(subprogram),
        site_(site),
        predictor_(predictor),
        options_(options),
        deadline_(Deadline::After(options.seconds)) {}

  GenerateResult Run() {
    result_.site_seconds = predictor_.GraphSeconds(subprogram_);
    const std::string own = OperatorHistogram(subprogram_);
    State root{site_.program, {}};
    Normalize(root.program);
    std::vector<State> level = {root};
    seen_.insert(CanonicalKey(root.program));
    Realize(root);
    while (!level.empty() && !stopped_) {
      if (result_.depth == options_.depth) {
        result_.stop = GenerateStop::kDepth;
        break;
      }
      ++result_.depth;
      level = NextLevel(level);
    }
    result_.programs = static_cast<int64_t>(seen_.size());
    Finish(own);
    return std::move(result_);
  }

 private:
  std::vector<State> NextLevel(const std::vector<State>& level) {
    std::vector<State> next;
    for (const State& state : level) {
      for (const NamedStep& step : AllSteps()) {
        std::vector<Derived> derived;
        step.step(state.program, derived);
        for (Derived& found : derived) {
          if (Stopped()) return next;
          Normalize(found.program);
          if (!seen_.insert(CanonicalKey(found.program)).second) continue;
          next.push_back({std::move(found.program), state.steps});
          next.back().steps.push_back(std::move(found.step));
          Realize(next.back());
        }
      }
    }
    return next;
  }

  bool Stopped() {
    if (!stopped_ && static_cast<int64_t>(seen_.size()) >= options_.programs) {
      result_.stop = GenerateStop::kPrograms;
      stopped_ = true;
    } else if (!stopped_ && deadline_.Passed()) {
      result_.stop = GenerateStop::kSeconds;
      stopped_ = true;
    }
    return stopped_;
  }

  /// Matches the program with operators, both ways; keeps the cheapest graph of each operator
  /// histogram.
  void Realize(const State& state) {
    for (const bool convolutions : {true, false}) {
      const RealizeOptions realize{.convolutions = convolutions};
      const auto graph = RealizeProgram(subprogram_, site_, state.program, realize);
      if (absl::IsInternal(graph.status()))
        result_.faults.push_back(std::string(graph.status().message()));
      if (!graph.ok()) continue;
      ++result_.realized;
      Proposal proposal{state.program, realize, state.steps, OperatorHistogram(*graph),
                        predictor_.GraphSeconds(*graph)};
      if (proposal.predicted_seconds > options_.worst_ratio * result_.site_seconds) continue;
      if (RunTimeFlops(*graph) > options_.worst_flops * RunTimeFlops(subprogram_)) continue;
      const auto place = best_.find(proposal.operator_histogram);
      if (place == best_.end() || proposal.predicted_seconds < place->second.predicted_seconds) {
        best_.insert_or_assign(proposal.operator_histogram, std::move(proposal));
      }
    }
  }

  /// Cheapest first, without what is made up like the site itself.
  void Finish(const std::string& own) {
    for (auto& [operator_histogram, proposal] : best_) {
      if (operator_histogram != own) result_.proposals.push_back(std::move(proposal));
    }
    std::stable_sort(result_.proposals.begin(), result_.proposals.end(),
                     [](const Proposal& a, const Proposal& b) {
                       return a.predicted_seconds < b.predicted_seconds;
                     });
    if (result_.proposals.size() > options_.keep) result_.proposals.resize(options_.keep);
  }

  const Graph& subprogram_;
  const IndexSite& site_;
  const Predictor& predictor_;
  const GenerateOptions& options_;
  const Deadline deadline_;
  GenerateResult result_;
  std::set<std::string> seen_;
  std::map<std::string, Proposal> best_;
  bool stopped_ = false;
};

}  // namespace

std::string_view GenerateStopName(GenerateStop stop) {
  switch (stop) {
    case GenerateStop::kSaturated:
      return "saturated";
    case GenerateStop::kDepth:
      return "depth";
    case GenerateStop::kPrograms:
      return "programs";
    case GenerateStop::kSeconds:
      return "seconds";
  }
  return "";
}

std::string OperatorHistogram(const Graph& graph) {
  const std::vector<bool> weights = ConstantExpressions(graph);
  std::map<std::string, int> counts;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (weights[id] || IsInput(node) || node.op->is_view) continue;
    std::string name(node.op->name);
    if (name == "Conv") {
      const Shape& w = graph.type(node.inputs[1]).shape;
      name += Cat(" ", ShapeString(Shape(w.begin() + 2, w.end())));
      for (const char* attribute : {"strides", "dilations"}) {
        const Ints& list = node.attrs.IntList(attribute);
        if (!AllOnes(list)) name += Cat(" ", attribute, " ", ShapeString(list));
      }
    }
    ++counts[name];
  }
  std::string text;
  for (const auto& [op, count] : counts) text += Cat(text.empty() ? "" : ", ", count, " ", op);
  return text;
}

GenerateResult Generate(const Graph& subprogram, const IndexSite& site, const Predictor& predictor,
                        const GenerateOptions& options) {
  return Generator(subprogram, site, predictor, options).Run();
}

}  // namespace mendel
