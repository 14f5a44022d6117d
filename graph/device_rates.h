// The rates of a device, by which programs are ranked before they are measured.
#ifndef MENDEL_GRAPH_DEVICE_RATES_H_
#define MENDEL_GRAPH_DEVICE_RATES_H_

namespace mendel {

/// The defaults are those of one core of a current processor.
struct DeviceRates {
  double flops = 4e10;             ///< operations a second of a matrix product
  double bytes = 8e9;              ///< a second, of memory
  double operator_seconds = 2e-6;  ///< of an operator besides its work
  double dense_3x3 = 1.5;          ///< speed of a dense 3x3 convolution of at least 16 channels, in
                           ///< that of a matrix product: more than 1 by Winograd's algorithm
};

}  // namespace mendel

#endif  // MENDEL_GRAPH_DEVICE_RATES_H_
