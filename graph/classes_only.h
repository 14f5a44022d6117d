// Abstract elements (graph/extended.h) of known inputs.
#ifndef MENDEL_GRAPH_CLASSES_ONLY_H_
#define MENDEL_GRAPH_CLASSES_ONLY_H_

namespace mendel {

/// While one lives, elements that this thread computes serve for their classes alone, and nothing
/// is concluded from formal values. A function that absorbs a NaN then has the class of its result
/// (no comparison of NaN holds) instead of an event. Scopes do not nest.
class ClassesOnlyScope {
 public:
  ClassesOnlyScope() { active_ = true; }
  ~ClassesOnlyScope() { active_ = false; }
  ClassesOnlyScope(const ClassesOnlyScope&) = delete;
  ClassesOnlyScope& operator=(const ClassesOnlyScope&) = delete;
  static bool IsActive() { return active_; }

 private:
  static inline thread_local bool active_ = false;
};

}  // namespace mendel

#endif  // MENDEL_GRAPH_CLASSES_ONLY_H_
