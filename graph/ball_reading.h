// How balls read the constants that a definition gives as a decimal or an irrational without saying how it is rounded: 0.044715
// and pi of Gelu by tanh, 1/6 of HardSwish. Runtimes hold them in float, libraries in double. A claim that holds under every
// reading does not depend on the choice.
#ifndef MENDEL_GRAPH_BALL_READING_H_
#define MENDEL_GRAPH_BALL_READING_H_

namespace mendel {

enum class ConstantReading { kReal, kDouble, kFloat };

/// The reading of this thread while the scope lives (kReal without any). The functions concerned are elementwise, and an
/// evaluation calls them on its own thread. Scopes nest.
class ConstantReadingScope {
 public:
  explicit ConstantReadingScope(ConstantReading reading) : reading_(reading), previous_(current_) { current_ = this; }
  ~ConstantReadingScope() { current_ = previous_; }
  ConstantReadingScope(const ConstantReadingScope&) = delete;
  ConstantReadingScope& operator=(const ConstantReadingScope&) = delete;

  /// Some constant was read.
  bool used() const { return used_; }

  /// For the functions themselves.
  static ConstantReading Read() {
    if (current_ == nullptr) return ConstantReading::kReal;
    current_->used_ = true;
    return current_->reading_;
  }

 private:
  ConstantReading reading_;
  bool used_ = false;
  ConstantReadingScope* previous_;
  static inline thread_local ConstantReadingScope* current_ = nullptr;
};

}  // namespace mendel

#endif  // MENDEL_GRAPH_BALL_READING_H_
