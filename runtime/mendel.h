/* Mendel's C interface: loads plans and runs them.
 *
 * Link with -lmendel. Functions that can fail return NULL, -1 or a status other than MENDEL_OK, and
 * mendel_last_error() then says why. Several threads may use one plan handle: their calls take
 * turns. The selection of shapes is the handle's, not the thread's; mendel_run_shapes selects and
 * runs in one turn. Several handles run side by side. mendel_free needs all other calls to have
 * ended. Nothing here throws. Functions that compile or run a plan for a GPU
 * leave its primary context current on the calling thread, but for mendel_run_device.
 */
#ifndef MENDEL_RUNTIME_MENDEL_H_
#define MENDEL_RUNTIME_MENDEL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MENDEL_API __attribute__((visibility("default")))
#else
#define MENDEL_API
#endif

typedef struct mendel_plan mendel_plan;

typedef enum mendel_status {
  MENDEL_OK = 0,
  MENDEL_INVALID = 1,     /* the caller's mistake, or a plan for another machine or version */
  MENDEL_NOT_FOUND = 2,   /* no such file */
  MENDEL_UNSUPPORTED = 3, /* the backend cannot run the plan */
  MENDEL_ERROR = 4,       /* anything else */
  MENDEL_STOPPED = 5      /* the caller stopped the work before there was a result */
} mendel_status;

/* Element types. 8- and 16-bit floats are passed as their bits; booleans are bytes, 0 or 1. */
typedef enum mendel_dtype {
  MENDEL_F32 = 0,
  MENDEL_F16 = 1,
  MENDEL_BF16 = 2,
  MENDEL_F64 = 3,
  MENDEL_I8 = 4,
  MENDEL_U8 = 5,
  MENDEL_I32 = 6,
  MENDEL_I64 = 7,
  MENDEL_BOOL = 8,
  MENDEL_I16 = 9,
  MENDEL_U16 = 10,
  MENDEL_U32 = 11,
  MENDEL_U64 = 12,
  MENDEL_F8E4M3FN = 13,
  MENDEL_F8E4M3FNUZ = 14,
  MENDEL_F8E5M2 = 15,
  MENDEL_F8E5M2FNUZ = 16
} mendel_dtype;

/* One input or output. The pointers live as long as the plan. */
typedef struct mendel_value {
  const char* name;
  mendel_dtype dtype;
  int rank;
  const int64_t* shape; /* `rank` extents, outermost first */
  size_t bytes;         /* size of the row-major buffer */
} mendel_value;

/* Version of the library, e.g. "0.1.0". */
MENDEL_API const char* mendel_version(void);

/* Message of the last failure on this thread; "" when there was none. Valid until the next call on
 * this thread. */
MENDEL_API const char* mendel_last_error(void);

/* Loads the plan file at `path` and compiles it for `threads` threads (0: as many as it was tuned
 * for). NULL on failure. Of a bundle member 0 is compiled and selected. */
MENDEL_API mendel_plan* mendel_load(const char* path, int threads);

/* How a plan is loaded; later versions add members at the end. */
typedef struct mendel_load_options {
  size_t size; /* sizeof(mendel_load_options) */
  int threads; /* 0: as many as the plan was tuned for; of a model that is compiled as it is: one
                  for each physical core that the process may use */
  const char*
      affinity; /* Where they run: NULL or "none": where the system puts them; "cores": each on a
                   core of its own; a list such as "0,2-3": each on a CPU of it, the calling thread
                   on the lowest. A run pins the calling thread and gives it its own CPUs back at
                   its end. Only plans of the processor (the backend "cpu") can be pinned. */
} mendel_load_options;

/* As mendel_load, with more options; NULL: the defaults. MENDEL_INVALID: a list that is none, a CPU
 * that the process may not run on, fewer CPUs or cores than threads. */
MENDEL_API mendel_plan* mendel_load_with(const char* path, const mendel_load_options* options);

/* Frees a plan; NULL is allowed. */
MENDEL_API void mendel_free(mendel_plan* plan);

/* A file may be a bundle: plans of one model for several input shapes, its members, which have the
 * same inputs and outputs but for their shapes. One member is selected at a time: mendel_input,
 * mendel_output and mendel_run are about it. A plan of its own is a bundle of one. */

/* Number of members; -1 when `plan` is NULL. */
MENDEL_API int mendel_member_count(const mendel_plan* plan);

/* Selects member number `member`, and compiles it if that has not been done: select each once to
 * have no such pause later. Weights that members have in common are kept once. On failure the
 * selection stays. */
MENDEL_API mendel_status mendel_select(mendel_plan* plan, int member);

/* Selects the member whose input number k has the `ranks[k]` extents at `shapes[k]`, for every
 * input in order. MENDEL_INVALID reports the shapes offered when there is none. */
MENDEL_API mendel_status mendel_select_shapes(mendel_plan* plan, const int* ranks,
                                              const int64_t* const* shapes);

/* As mendel_select_shapes, for the inputs at hand: one pointer each, as for mendel_run. A plan of
 * mendel_open_model may contain an input of one element that decides which branches of the model
 * are taken; it is then not among the inputs that mendel_input and mendel_run know. */
MENDEL_API mendel_status mendel_select_inputs(mendel_plan* plan, const int* ranks,
                                              const int64_t* const* shapes,
                                              const void* const* inputs);

/* Number of inputs and outputs; -1 when `plan` is NULL or has no shapes yet. */
MENDEL_API int mendel_input_count(const mendel_plan* plan);
MENDEL_API int mendel_output_count(const mendel_plan* plan);

/* Describes input or output number `index` of the selected member. */
MENDEL_API mendel_status mendel_input(const mendel_plan* plan, int index, mendel_value* value);
MENDEL_API mendel_status mendel_output(const mendel_plan* plan, int index, mendel_value* value);

/* Runs the selected member. `inputs` and `outputs` hold one pointer an input and an output, in
 * order, each to a buffer of the size that mendel_input and mendel_output report, aligned to its
 * element size. */
MENDEL_API mendel_status mendel_run(mendel_plan* plan, const void* const* inputs,
                                    void* const* outputs);

/* mendel_select_inputs, then mendel_run: the member is chosen by the inputs at hand. `inputs` has
 * all inputs of the model. */
MENDEL_API mendel_status mendel_run_shapes(mendel_plan* plan, const int* ranks,
                                           const int64_t* const* shapes, const void* const* inputs,
                                           void* const* outputs);

/* Runs with inputs and outputs in a GPU's memory
 *
 * A plan for CUDA can be put onto a stream of the caller's between its own work, with pointers to
 * device memory: no copy to or from the host, and no waiting.
 *
 *   const void* inputs[] = {x};   // of cuMemAlloc or cudaMalloc, filled by work on `stream`
 *   void* outputs[] = {y};
 *   mendel_run_device(plan, inputs, outputs, stream, NULL);
 *   my_kernel<<<grid, block, 0, stream>>>(y);   // reads what the plan wrote
 */

/* Where the plan's device memory is: "cuda:0", the first GPU that CUDA shows this process
 * (CUDA_VISIBLE_DEVICES); "cpu" when the plan runs on the host and mendel_run_device does not. NULL
 * when `plan` is NULL. The text lives as long as the plan. */
MENDEL_API const char* mendel_device(const mendel_plan* plan);

/* Puts a run of the selected member onto `stream` and returns.
 *
 * Pointers: one an input and an output, in order, to memory that the device can reach (cuMemAlloc,
 * cudaMalloc, cudaMallocManaged or a pool), of the size that mendel_input and mendel_output report,
 * row-major, aligned to the element size. No output may share memory with another output or with an
 * input. Where a value has no bytes, its pointer may be NULL.
 *
 * Stream: a CUstream (that is a cudaStream_t) of the device's primary context, the one of the CUDA
 * runtime and of what is built upon it; NULL is the default stream. It must not be capturing.
 *
 * Order: the run begins after the work that was on the stream before, and what is put there
 * afterwards sees the outputs. Inputs may be overwritten and all buffers freed in stream order.
 * `ready_event`, where not NULL, a CUevent (cudaEvent_t), is recorded when the outputs are there,
 * for other streams and for the host to wait for.
 *
 * Inside: nothing is allocated on the device, and nothing waits for it: copies on the device to and
 * from the plan's own memory, and the replay of its graph between them. The calling thread's
 * current context is the same afterwards.
 *
 * Threads: calls of one handle take turns. Several of its runs may be under way, also on different
 * streams; they are done one after the other, since they share the plan's memory. Runs of different
 * handles overlap as the device allows.
 *
 * Lifetime: the stream and the event must live until the run has ended. mendel_free and mendel_run
 * wait for runs under way.
 *
 * Errors: MENDEL_INVALID names a pointer or stream that cannot be used; MENDEL_UNSUPPORTED:
 * mendel_device is "cpu". Errors of work that was put onto the device earlier, this plan's or
 * another's, may be answered here (MENDEL_ERROR). After a kernel's fault or the loss of the device
 * every later call answers MENDEL_ERROR, and mendel_last_error names the first error: such a
 * process must be started again. */
MENDEL_API mendel_status mendel_run_device(mendel_plan* plan, const void* const* inputs,
                                           void* const* outputs, void* stream, void* ready_event);

#ifdef __cplusplus
}
#endif

#endif /* MENDEL_RUNTIME_MENDEL_H_ */
