// When freed memory goes back to the system. The command `mendel` links jemalloc, which takes half
// the time of glibc's heap for graphs of many small nodes; the libraries that others load leave the
// choice to their process (docs/decisions/2026-11-28-heap.md).
#ifndef MENDEL_BASE_HEAP_H_
#define MENDEL_BASE_HEAP_H_

namespace mendel {

/// Returns freed memory to the system now. What a phase needed for a moment then does not add to
/// the peak of the next one. Thread-safe.
void ReturnFreedMemory();

/// Keeps freed memory for the rest of the process. A program that frees and requests blocks of a
/// few megabytes all the time would otherwise wait for the system to clear their pages: a tenth of
/// the time of a search in balls. Call it before threads start.
void KeepFreedMemory();

}  // namespace mendel

#endif  // MENDEL_BASE_HEAP_H_
