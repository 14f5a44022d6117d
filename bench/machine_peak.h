// Peak rates of one core of this machine: the two ceilings of a roofline (Williams, Waterman and
// Patterson 2009), measured.
#ifndef MENDEL_BENCH_MACHINE_PEAK_H_
#define MENDEL_BENCH_MACHINE_PEAK_H_

namespace mendel {

struct MachinePeak {
  /// f32 operations a second: fused multiply-adds on registers alone, each counted as two.
  double flops = 0;
  double bytes = 0;  ///< bytes a second read from memory that no cache holds
};

/// Measures one thread for about a second; takes the best of several runs, since other work on the
/// machine only lowers a rate.
MachinePeak MeasureMachinePeak();

}  // namespace mendel

#endif  // MENDEL_BENCH_MACHINE_PEAK_H_
