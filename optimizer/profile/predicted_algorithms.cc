#include "optimizer/profile/predicted_algorithms.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace mendel {
namespace {

constexpr double kRounding = 1e-9;  // of sums of seconds in another order
constexpr int kMostPasses = 8;

class Chooser {
 public:
  Chooser(const std::vector<AlgorithmOffers>& like, const Algorithms& known,
          const std::function<absl::StatusOr<double>(const Algorithms&)>& seconds,
          Deadline deadline)
      : like_(like), seconds_(seconds), deadline_(deadline), best_(known) {}

  absl::StatusOr<Algorithms> Run(bool& cut) {
    MENDEL_ASSIGN_OR_RETURN(least_, seconds_(best_));
    TryEverywhere();
    for (int pass = 0; pass < kMostPasses && TryOneByOne(); ++pass) {
    }
    cut = cut || stopped_;
    return std::move(best_);
  }

 private:
  static void AddOnce(const std::string& name, std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }

  /// Names that any of the nodes has: like nodes need not have the same.
  static std::vector<std::string> NamesOf(const AlgorithmOffers& offers) {
    std::vector<std::string> names;
    for (const auto& [node, offered] : offers) {
      for (const std::string& name : offered) AddOnce(name, names);
    }
    return names;
  }

  void TryEverywhere() {
    std::vector<std::string> names;
    for (const AlgorithmOffers& offers : like_) {
      for (const std::string& name : NamesOf(offers)) AddOnce(name, names);
    }
    const Algorithms known = best_;
    for (const std::string& name : names) {
      Algorithms all = known;
      for (const AlgorithmOffers& offers : like_) Give(offers, name, all);
      Try(std::move(all));
    }
  }

  /// True when something was gained.
  bool TryOneByOne() {
    bool gained = false;
    for (const AlgorithmOffers& offers : like_) {
      std::vector<std::string> names = {""};
      for (const std::string& name : NamesOf(offers)) AddOnce(name, names);
      for (const std::string& name : names) {
        Algorithms other = best_;
        for (const auto& offer : offers) other.erase(offer.first);
        Give(offers, name, other);
        if (other != best_) gained = Try(std::move(other)) || gained;
      }
    }
    return gained;
  }

  static void Give(const AlgorithmOffers& offers, const std::string& name, Algorithms& algorithms) {
    for (const auto& [node, names] : offers) {
      if (std::find(names.begin(), names.end(), name) != names.end()) algorithms[node] = name;
    }
  }

  bool Try(Algorithms algorithms) {
    stopped_ = stopped_ || deadline_.Passed();
    if (stopped_) return false;
    const auto seconds = seconds_(algorithms);
    if (!seconds.ok() || *seconds >= least_ * (1 - kRounding)) return false;
    least_ = *seconds;
    best_ = std::move(algorithms);
    return true;
  }

  const std::vector<AlgorithmOffers>& like_;
  const std::function<absl::StatusOr<double>(const Algorithms&)>& seconds_;
  const Deadline deadline_;
  Algorithms best_;
  double least_ = 0;
  bool stopped_ = false;
};

}  // namespace

absl::StatusOr<Algorithms> CheapestAlgorithms(
    const std::vector<AlgorithmOffers>& like, const Algorithms& known,
    const std::function<absl::StatusOr<double>(const Algorithms&)>& seconds, Deadline deadline,
    bool& cut) {
  return Chooser(like, known, seconds, deadline).Run(cut);
}

}  // namespace mendel
