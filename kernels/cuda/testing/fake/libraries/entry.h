// Exported functions that call a fake's table: their parameters are those of its entries, so that
// the two cannot differ.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_LIBRARIES_ENTRY_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_LIBRARIES_ENTRY_H_

#include <cstddef>
#include <tuple>

#include "kernels/cuda/testing/fake/libraries/installation.h"

namespace mendel::cuda {

template <class Member>
struct EntryOf;
template <class Table, class Result, class... Parameters>
struct EntryOf<Result (*Table::*)(Parameters...)> {
  using Returned = Result;
  template <size_t k>
  using Parameter = std::tuple_element_t<k, std::tuple<Parameters...>>;
};

#define MENDEL_FAKE_P(Table, entry, k) \
  ::mendel::cuda::EntryOf<decltype(&::mendel::cuda::Table::entry)>::Parameter<k> p##k
#define MENDEL_FAKE_HEAD(Table, entry)  \
  extern "C" __attribute__((visibility( \
      "default"))) ::mendel::cuda::EntryOf<decltype(&::mendel::cuda::Table::entry)>::Returned
#define MENDEL_FAKE_CALL(table, entry) return ::mendel::cuda::FakeInstallation::Get().table.entry

// Defines `symbol` as entry `entry` of `table`, which is a `Table`. The digit is
// the number of parameters.
#define MENDEL_FAKE_ENTRY0(symbol, Table, table, entry) \
  MENDEL_FAKE_HEAD(Table, entry) symbol() { MENDEL_FAKE_CALL(table, entry)(); }
#define MENDEL_FAKE_ENTRY1(symbol, Table, table, entry)                   \
  MENDEL_FAKE_HEAD(Table, entry) symbol(MENDEL_FAKE_P(Table, entry, 0)) { \
    MENDEL_FAKE_CALL(table, entry)(p0);                                   \
  }
#define MENDEL_FAKE_ENTRY2(symbol, Table, table, entry)                    \
  MENDEL_FAKE_HEAD(Table, entry)                                           \
  symbol(MENDEL_FAKE_P(Table, entry, 0), MENDEL_FAKE_P(Table, entry, 1)) { \
    MENDEL_FAKE_CALL(table, entry)(p0, p1);                                \
  }
#define MENDEL_FAKE_ENTRY3(symbol, Table, table, entry)                  \
  MENDEL_FAKE_HEAD(Table, entry)                                         \
  symbol(MENDEL_FAKE_P(Table, entry, 0), MENDEL_FAKE_P(Table, entry, 1), \
         MENDEL_FAKE_P(Table, entry, 2)) {                               \
    MENDEL_FAKE_CALL(table, entry)(p0, p1, p2);                          \
  }
#define MENDEL_FAKE_ENTRY4(symbol, Table, table, entry)                    \
  MENDEL_FAKE_HEAD(Table, entry)                                           \
  symbol(MENDEL_FAKE_P(Table, entry, 0), MENDEL_FAKE_P(Table, entry, 1),   \
         MENDEL_FAKE_P(Table, entry, 2), MENDEL_FAKE_P(Table, entry, 3)) { \
    MENDEL_FAKE_CALL(table, entry)(p0, p1, p2, p3);                        \
  }
#define MENDEL_FAKE_ENTRY5(symbol, Table, table, entry)                  \
  MENDEL_FAKE_HEAD(Table, entry)                                         \
  symbol(MENDEL_FAKE_P(Table, entry, 0), MENDEL_FAKE_P(Table, entry, 1), \
         MENDEL_FAKE_P(Table, entry, 2), MENDEL_FAKE_P(Table, entry, 3), \
         MENDEL_FAKE_P(Table, entry, 4)) {                               \
    MENDEL_FAKE_CALL(table, entry)(p0, p1, p2, p3, p4);                  \
  }
#define MENDEL_FAKE_ENTRY6(symbol, Table, table, entry)                    \
  MENDEL_FAKE_HEAD(Table, entry)                                           \
  symbol(MENDEL_FAKE_P(Table, entry, 0), MENDEL_FAKE_P(Table, entry, 1),   \
         MENDEL_FAKE_P(Table, entry, 2), MENDEL_FAKE_P(Table, entry, 3),   \
         MENDEL_FAKE_P(Table, entry, 4), MENDEL_FAKE_P(Table, entry, 5)) { \
    MENDEL_FAKE_CALL(table, entry)(p0, p1, p2, p3, p4, p5);                \
  }
#define MENDEL_FAKE_ENTRY7(symbol, Table, table, entry)                  \
  MENDEL_FAKE_HEAD(Table, entry)                                         \
  symbol(MENDEL_FAKE_P(Table, entry, 0), MENDEL_FAKE_P(Table, entry, 1), \
         MENDEL_FAKE_P(Table, entry, 2), MENDEL_FAKE_P(Table, entry, 3), \
         MENDEL_FAKE_P(Table, entry, 4), MENDEL_FAKE_P(Table, entry, 5), \
         MENDEL_FAKE_P(Table, entry, 6)) {                               \
    MENDEL_FAKE_CALL(table, entry)(p0, p1, p2, p3, p4, p5, p6);          \
  }
#define MENDEL_FAKE_ENTRY8(symbol, Table, table, entry)                    \
  MENDEL_FAKE_HEAD(Table, entry)                                           \
  symbol(MENDEL_FAKE_P(Table, entry, 0), MENDEL_FAKE_P(Table, entry, 1),   \
         MENDEL_FAKE_P(Table, entry, 2), MENDEL_FAKE_P(Table, entry, 3),   \
         MENDEL_FAKE_P(Table, entry, 4), MENDEL_FAKE_P(Table, entry, 5),   \
         MENDEL_FAKE_P(Table, entry, 6), MENDEL_FAKE_P(Table, entry, 7)) { \
    MENDEL_FAKE_CALL(table, entry)(p0, p1, p2, p3, p4, p5, p6, p7);        \
  }
#define MENDEL_FAKE_ENTRY10(symbol, Table, table, entry)                    \
  MENDEL_FAKE_HEAD(Table, entry)                                            \
  symbol(MENDEL_FAKE_P(Table, entry, 0), MENDEL_FAKE_P(Table, entry, 1),    \
         MENDEL_FAKE_P(Table, entry, 2), MENDEL_FAKE_P(Table, entry, 3),    \
         MENDEL_FAKE_P(Table, entry, 4), MENDEL_FAKE_P(Table, entry, 5),    \
         MENDEL_FAKE_P(Table, entry, 6), MENDEL_FAKE_P(Table, entry, 7),    \
         MENDEL_FAKE_P(Table, entry, 8), MENDEL_FAKE_P(Table, entry, 9)) {  \
    MENDEL_FAKE_CALL(table, entry)(p0, p1, p2, p3, p4, p5, p6, p7, p8, p9); \
  }
#define MENDEL_FAKE_ENTRY11(symbol, Table, table, entry)                         \
  MENDEL_FAKE_HEAD(Table, entry)                                                 \
  symbol(MENDEL_FAKE_P(Table, entry, 0), MENDEL_FAKE_P(Table, entry, 1),         \
         MENDEL_FAKE_P(Table, entry, 2), MENDEL_FAKE_P(Table, entry, 3),         \
         MENDEL_FAKE_P(Table, entry, 4), MENDEL_FAKE_P(Table, entry, 5),         \
         MENDEL_FAKE_P(Table, entry, 6), MENDEL_FAKE_P(Table, entry, 7),         \
         MENDEL_FAKE_P(Table, entry, 8), MENDEL_FAKE_P(Table, entry, 9),         \
         MENDEL_FAKE_P(Table, entry, 10)) {                                      \
    MENDEL_FAKE_CALL(table, entry)(p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10); \
  }
#define MENDEL_FAKE_ENTRY16(symbol, Table, table, entry)                     \
  MENDEL_FAKE_HEAD(Table, entry)                                             \
  symbol(MENDEL_FAKE_P(Table, entry, 0), MENDEL_FAKE_P(Table, entry, 1),     \
         MENDEL_FAKE_P(Table, entry, 2), MENDEL_FAKE_P(Table, entry, 3),     \
         MENDEL_FAKE_P(Table, entry, 4), MENDEL_FAKE_P(Table, entry, 5),     \
         MENDEL_FAKE_P(Table, entry, 6), MENDEL_FAKE_P(Table, entry, 7),     \
         MENDEL_FAKE_P(Table, entry, 8), MENDEL_FAKE_P(Table, entry, 9),     \
         MENDEL_FAKE_P(Table, entry, 10), MENDEL_FAKE_P(Table, entry, 11),   \
         MENDEL_FAKE_P(Table, entry, 12), MENDEL_FAKE_P(Table, entry, 13),   \
         MENDEL_FAKE_P(Table, entry, 14), MENDEL_FAKE_P(Table, entry, 15)) { \
    MENDEL_FAKE_CALL(table, entry)                                           \
    (p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15);  \
  }

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_LIBRARIES_ENTRY_H_
