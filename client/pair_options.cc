#include <CLI/CLI.hpp>
#include <string>

#include "client/verify_pair.h"

namespace mendel {

void AddPairOptions(CLI::App& app, PairOptions& pair) {
  AddModelOptions(app, pair.import);
  app.add_option_function<std::string>(
         "--weights",
         [&pair](const std::string& mode) {
           pair.weights = mode == "exact" ? WeightMode::kExact : WeightMode::kSymbolic;
         },
         "exact: weights are the numbers stored; symbolic: random tensors equal by name")
      ->check(CLI::IsMember({"exact", "symbolic"}));
  app.add_option("--tests", pair.tests, "Make at least this many random tests")
      ->check(CLI::Range(1, 256));
  app.add_option("--seed", pair.seed,
                 "Seed of regions and witnesses; the deciding tests are always fresh");
  app.add_flag("--regions,!--no-regions", pair.regions,
               "Report the wrong boxes, exact to the element (default)");
  app.add_option("--time-limit", pair.time_limit,
                 "Stop undecided after this time, e.g. 30s (default: 60s, more for large models)");
  app.add_option("--memory-limit", pair.memory_limit,
                 "Stop undecided beyond this memory, e.g. 6GB (default: half of the machine)");
  app.add_option("--map", pair.names,
                 "Pair A's input, output or weight with B's, NAME_OF_A=NAME_OF_B")
      ->take_all();
  app.add_option("--outputs", pair.outputs, "Compare only these outputs of A")
      ->delimiter(',')
      ->take_all();
  app.add_option("--witness", pair.witness_folder,
                 "Folder for the inputs of witnesses, as float64 .npy files");
  app.add_option("--junit", pair.junit, "Also write the verdict as JUnit XML");
  app.add_option("--html", pair.html,
                 "Also write the verdict as one page (not when a limit stops the comparison)");
  app.add_flag("!--no-cut-points", pair.cut_points,
               "Evaluate both programs whole: slower, a second opinion");
  app.add_option("--fold-tolerance", pair.fold_tolerance,
                 "Accept constants folded within so many units in the last place")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--explain-regions", pair.explain_regions,
               "Report where the regions' borders come from");
}

}  // namespace mendel
